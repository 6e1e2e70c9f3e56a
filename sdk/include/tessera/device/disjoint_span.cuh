#pragma once

/// Race-free output from a kernel: `ThreadIndex` proves which element is the calling thread's own, and `DisjointSpan`
/// can be written with such a proof only. Two threads of a grid never have the same ThreadIndex, so no two of them can
/// write the same element.
///
///     __global__ void scale(DisjointSpan<float> out, DeviceSpan<const float> in, float factor)
///     {
///         const auto index = ThreadIndex::in_grid();
///         if (out.contains(index)) out[index] = factor * in[index.value()];
///     }
///
/// Usable on the host to make the span, and in device code to write through it. Zero cost: an address and a compare.

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "tessera/device_span.hpp"

namespace tessera {

template <class T>
class DeviceBuffer;
template <class T>
class DisjointSpan;

#ifdef __CUDACC__

/// The calling thread's position among all threads of the grid: unique, from 0 to size - 1, neighbouring threads of a
/// warp have neighbouring values. Made only by `in_grid()`, neither from an integer nor by copying: whoever has one is
/// the thread that it names.
class ThreadIndex {
public:
    /// The calling thread's own index.
    __device__ static ThreadIndex in_grid()
    {
        const std::size_t block =
            blockIdx.x + std::size_t{gridDim.x} * (blockIdx.y + std::size_t{gridDim.y} * blockIdx.z);
        const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
        return ThreadIndex(block * threads + thread);
    }

    ThreadIndex(const ThreadIndex&) = delete;
    ThreadIndex& operator=(const ThreadIndex&) = delete;

    /// As a number, for reading elsewhere.
    __device__ std::size_t value() const { return value_; }

    /// Moves on by the number of threads in the grid, for loops over more elements than threads. Still unique: all
    /// threads move by the same amount.
    __device__ void advance()
    {
        value_ += std::size_t{gridDim.x} * gridDim.y * gridDim.z * blockDim.x * blockDim.y * blockDim.z;
    }

private:
    __device__ explicit ThreadIndex(std::size_t value) : value_(value) {}

    std::size_t value_;
};

#endif

/// Device memory that is written only element by element, each by the one thread whose index it is. Made on the host
/// from a whole buffer or a part of it. Non-owning.
///
/// Two DisjointSpans over the same memory, and reads of it through a DeviceSpan in the same kernel, are not prevented.
template <class T>
class DisjointSpan {
    static_assert(!std::is_const_v<T>, "tessera: DisjointSpan<T> is for writing: use DeviceSpan<const T> to read");

public:
    /// All elements of `buffer`, which must outlive the span.
    explicit DisjointSpan(DeviceBuffer<T>& buffer) noexcept : DisjointSpan(buffer.span()) {}
    /// The elements of `memory`, e.g. a part of a buffer.
    explicit DisjointSpan(DeviceSpan<T> memory) noexcept : memory_(memory) {}

    /// In elements.
    TESSERA_DETAIL_HOST_DEVICE std::size_t size() const noexcept { return memory_.size(); }
    /// The ordinal of the memory's device.
    TESSERA_DETAIL_HOST_DEVICE int device() const noexcept { return memory_.device(); }

#ifdef __CUDACC__
    /// True if the thread has an element here. Grids are rounded up to whole CTAs, so some threads have none.
    __device__ bool contains(const ThreadIndex& index) const { return index.value() < memory_.size(); }

    /// The calling thread's own element. Traps if it has none: ask contains() first.
    __device__ T& operator[](const ThreadIndex& index) const { return memory_[index.value()]; }

    /// Does not compile: an integer proves nothing.
    template <std::integral Index>
    __device__ T& operator[](Index) const
    {
        static_assert(!std::is_same_v<Index, Index>,
                      "tessera: a DisjointSpan is written with a ThreadIndex (the thread's own element), not with an "
                      "integer");
    }
#endif

private:
    DeviceSpan<T> memory_;
};

/// Deduces `T` from a buffer.
template <class T>
DisjointSpan(DeviceBuffer<T>&) -> DisjointSpan<T>;
/// Deduces `T` from a span.
template <class T>
DisjointSpan(DeviceSpan<T>) -> DisjointSpan<T>;

}  // namespace tessera
