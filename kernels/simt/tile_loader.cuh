#pragma once

/// Loads the tiles of A and B for one step along K from global to shared memory, as floats, with zeros beyond the
/// operand. All threads of the CTA take part.
///
/// The terminology is that of simt_config.hpp. A and B are loaded by the same code: x is m for A and n for B. An
/// operand's contiguous direction is a template argument. The alignment of its chunks is known at run time only, except
/// in the loaders for operands of whole chunks, which need no branch and fewer predicates.

#include <cuda_pipeline_primitives.h>

#include <cstdint>
#include <type_traits>

#include "../gemm/gemm_arguments.hpp"
#include "../gemm/ptx.cuh"
#include "input_element.cuh"
#include "simt_config.hpp"

namespace tessera::kernels::detail {

/// A tile (Extent x, BlockK k) in shared memory. Each row is padded by 4 floats. Rows then start 4 banks apart, so the
/// transposing stores of `ChunkMap` have no bank conflicts and vector loads stay aligned.
template <int Extent, int BlockK, SharedOrder Order>
struct SharedTile {
    static constexpr int extent = Extent;
    static constexpr int block_k = BlockK;
    static constexpr SharedOrder order = Order;
    static constexpr int pad = 4;
    static constexpr int run = (Order == SharedOrder::k_contiguous ? BlockK : Extent) + pad;

    __device__ static constexpr int index(int x, int k)
    {
        return Order == SharedOrder::k_contiguous ? x * run + k : k * run + x;
    }

    alignas(16) float elements[run * (Order == SharedOrder::k_contiguous ? Extent : BlockK)];
};

/// The part of an operand that a CTA reads: a block of x, all of K.
template <class Element>
struct OperandStrip {
    const Element* data;  // its first element
    std::int64_t stride;  // from one contiguous run to the next, in elements
    int x_left;           // extent of the block that is inside the operand
    bool aligned;         // every run starts at an address from which four elements can be loaded at once
    Widen<Element> widen;

    __device__ OperandStrip(const Operand& operand, ElementType type, std::int64_t x_stride, std::int64_t k_stride,
                            bool k_contiguous, std::uint32_t batch, std::uint32_t tile, std::int64_t x_extent,
                            int block)
        : widen(type)
    {
        const std::int64_t first_x = static_cast<std::int64_t>(tile) * block;
        data = static_cast<const Element*>(operand.data) + batch * operand.batch_stride + first_x * x_stride;
        stride = k_contiguous ? x_stride : k_stride;
        x_left = static_cast<int>(min(static_cast<std::int64_t>(block), x_extent - first_x));
        aligned = (reinterpret_cast<std::uint64_t>(data) | stride * sizeof(Element)) % (4 * sizeof(Element)) == 0;
    }
};

/// Assigns the chunks of a tile to threads. `Along` is the extent in the operand's contiguous direction, `Across` the
/// other.
///
/// Neighbouring lanes load neighbouring chunks of a run, as far as the stores to shared memory allow. If these
/// transpose (`Scatter`), a warp loads 8 x 4 elements (or 2 x 16 chunks of four): full 32-byte sectors that map to 32
/// banks.
template <int Along, int Across, int Width, bool Scatter>
struct ChunkMap {
    static constexpr int across_extent = Across;
    static constexpr int chunks = Along * Across / Width;
    static constexpr int scattered = Width == 1 ? 8 : 2;
    static constexpr int neighbours = Scatter && scattered < Along / Width ? scattered : Along / Width;

    /// All extents are powers of two, so the bits of `chunk` are split between the two coordinates.
    __device__ static constexpr int along(int chunk)
    {
        return (chunk / (neighbours * Across) * neighbours + chunk % neighbours) * Width;
    }
    __device__ static constexpr int across(int chunk) { return chunk / neighbours % Across; }
};

/// `ChunkMap` of a tile, and the place of a chunk in shared memory.
template <class Tile, bool KContiguous, int Width>
struct TileMap : ChunkMap<KContiguous ? Tile::block_k : Tile::extent, KContiguous ? Tile::extent : Tile::block_k, Width,
                          KContiguous != (Tile::order == SharedOrder::k_contiguous)> {
    static constexpr bool scatters = KContiguous != (Tile::order == SharedOrder::k_contiguous);

    __device__ static constexpr int shared_index(int along, int across)
    {
        return KContiguous ? Tile::index(across, along) : Tile::index(along, across);
    }
};

/// Loads through registers: `begin` reads the next tile into registers and `store` writes it to shared memory; the
/// caller computes in between. Supports any alignment and widens narrow elements on the way.
template <class Tile, bool KContiguous, class Element, int Threads, int Chunk>
class RegisterStagedLoader {
public:
    __device__ explicit RegisterStagedLoader(const OperandStrip<Element>& strip) : strip_(strip) {}

    __device__ void begin(Tile&, int k_left)
    {
        const int along_left = KContiguous ? k_left : strip_.x_left;
        const int across_left = KContiguous ? strip_.x_left : k_left;
        if (Chunk > 1 && strip_.aligned && along_left % Chunk == 0) {  // no chunk crosses the operand's edge
            load(across_left, along_left, [](Vector& staged, const Element* source, int elements_left) {
                staged = elements_left > 0 ? *reinterpret_cast<const Vector*>(source) : Vector{};
            });
        } else {
            load(across_left, along_left, [](Vector& staged, const Element* source, int elements_left) {
#pragma unroll
                for (int j = 0; j < Chunk; ++j) {
                    staged.elements[j] = j < elements_left ? source[j] : Element{};
                }
            });
        }
        strip_.data += Tile::block_k * (KContiguous ? 1 : strip_.stride);
    }

    __device__ void store(Tile& tile) const
    {
        if (!has_chunk()) {
            return;
        }
        float* mine = tile.elements + Map::shared_index(Map::along(threadIdx.x), Map::across(threadIdx.x));
#pragma unroll
        for (int i = 0; i < chunks_per_thread; ++i) {
            float* target = mine + Map::shared_index(Map::along(i * Threads), Map::across(i * Threads));
            const Vector& chunk = reinterpret_cast<const Vector&>(staged_[i]);
            const Element(&elements)[Chunk] = chunk.elements;
            if constexpr (Chunk == 4 && !Map::scatters) {
                const Widen<Element>& widen = strip_.widen;
                *reinterpret_cast<float4*>(target) =
                    make_float4(widen(elements[0]), widen(elements[1]), widen(elements[2]), widen(elements[3]));
            } else {
#pragma unroll
                for (int j = 0; j < Chunk; ++j) {
                    target[Map::shared_index(j, 0)] = strip_.widen(elements[j]);
                }
            }
        }
    }

private:
    using Map = TileMap<Tile, KContiguous, Chunk>;
    struct alignas(Chunk * sizeof(Element)) Vector {
        Element elements[Chunk];
    };

    /// Register form of a chunk: four 8-bit elements in one register instead of four.
    using Staged = std::conditional_t<sizeof(Element) == 1 && Chunk == 4, std::uint32_t, Vector>;

    static constexpr int chunks_per_thread = (Map::chunks + Threads - 1) / Threads;
    static_assert(Map::chunks % Threads == 0 || Map::chunks < Threads,
                  "a tile's chunks do not divide among the threads");

    __device__ static bool has_chunk() { return Map::chunks >= Threads || threadIdx.x < Map::chunks; }

    /// Calls load_chunk(staged, source, elements inside the operand) for each chunk of this thread.
    template <class LoadChunk>
    __device__ void load(int across_left, int along_left, LoadChunk load_chunk)
    {
        const int along = Map::along(threadIdx.x);
        const int across = Map::across(threadIdx.x);
        const Element* mine = strip_.data + across * strip_.stride + along;
#pragma unroll
        for (int i = 0; i < chunks_per_thread; ++i) {
            const int step_along = Map::along(i * Threads);
            const int step_across = Map::across(i * Threads);
            const bool run_inside = has_chunk() && across + step_across < across_left;
            const Element* source = mine + step_across * strip_.stride + step_along;
            const int elements_left = run_inside ? along_left - along - step_along : 0;
            if constexpr (std::is_same_v<Staged, Vector>) {
                load_chunk(staged_[i], source, elements_left);
            } else {
                Vector chunk;
                load_chunk(chunk, source, elements_left);
                staged_[i] = __builtin_bit_cast(Staged, chunk);
            }
        }
    }

    OperandStrip<Element> strip_;
    Staged staged_[chunks_per_thread];
};

/// Returns `runs_left` (at most `extent`) if `inside`, and otherwise nothing positive.
///
/// A chunk is inside the operand if both its coordinates are; comparing its run index with this checks both at once. As
/// two conditions, the one that does not depend on k would occupy a predicate register per chunk. There are too few of
/// them, and the loads would wait for each other: up to 7 % of the time on an H200.
__device__ __forceinline__ int runs_inside(bool inside, int runs_left, int extent)
{
    return runs_left - (inside ? 0 : extent);
}

/// Loads with `cp.async`, which bypasses the registers: `begin` adds the copies of a tile to the thread's open group.
/// Copies of 4 bytes need no alignment and transpose for free; copies of 16 bytes are used if the operand is aligned.
template <class Tile, bool KContiguous, int Threads>
class AsyncLoader {
public:
    __device__ explicit AsyncLoader(const OperandStrip<float>& strip)
        : strip_(strip), vectors_(!KContiguous && strip.aligned && strip.x_left % 4 == 0)  // no chunk crosses the edge
    {
        along_ = vectors_ ? VectorMap::along(threadIdx.x) : ScalarMap::along(threadIdx.x);
        across_ = vectors_ ? VectorMap::across(threadIdx.x) : ScalarMap::across(threadIdx.x);
        strip_.data += across_ * strip_.stride + along_;
    }

    __device__ void begin(Tile& tile, int k_left)
    {
        const int along_left = KContiguous ? k_left : strip_.x_left;
        const int across_left = KContiguous ? strip_.x_left : k_left;
        if (!KContiguous && vectors_) {
            copy<VectorMap, 4>(tile, across_left, along_left);
        } else {
            copy<ScalarMap, 1>(tile, across_left, along_left);
        }
        strip_.data += Tile::block_k * (KContiguous ? 1 : strip_.stride);
    }

    __device__ void store(Tile&) const {}  // the copies have written it

private:
    static_assert(Tile::order == SharedOrder::x_contiguous);
    using VectorMap = TileMap<Tile, KContiguous, 4>;
    using ScalarMap = TileMap<Tile, KContiguous, 1>;

    template <class Map, int Width>
    __device__ void copy(Tile& tile, int across_left, int along_left) const
    {
        static_assert(Map::chunks % Threads == 0, "a tile's chunks do not divide among the threads");
        float* mine = tile.elements + Map::shared_index(along_, across_);
#pragma unroll
        for (int i = 0; i < Map::chunks / Threads; ++i) {
            const int along = Map::along(i * Threads);
            const int across = Map::across(i * Threads);
            const int runs_left = runs_inside(along_ + along < along_left, across_left - across_, Map::across_extent);
            ptx::cp_async_or_zero<4 * Width>(mine + Map::shared_index(along, across),
                                             strip_.data + across * strip_.stride + along, across < runs_left);
        }
    }

    OperandStrip<float> strip_;
    bool vectors_;
    int along_;  // of this thread's first chunk
    int across_;
};

/// `AsyncLoader` for an operand of whole chunks (`SimtOrders`) that is contiguous in x: 16 bytes at a time.
template <class Tile, int Threads>
class WholeChunkAsyncLoader {
public:
    __device__ explicit WholeChunkAsyncLoader(const OperandStrip<float>& strip)
    {
        const int x = Map::along(threadIdx.x);
        const int k = Map::across(threadIdx.x);
        source_ = strip.data + k * strip.stride + x;
        stride_ = strip.stride;
        k_ = x < strip.x_left ? k : Tile::block_k;
        target_ = Map::shared_index(x, k);
    }

    __device__ void begin(Tile& tile, int k_left)
    {
#pragma unroll
        for (int i = 0; i < Map::chunks / Threads; ++i) {
            const int k = Map::across(i * Threads);
            ptx::cp_async_or_zero<16>(tile.elements + target_ + Map::shared_index(0, k), source_ + k * stride_,
                                      k_ + k < k_left);
        }
        source_ += Tile::block_k * stride_;
    }

    __device__ void store(Tile&) const {}  // the copies have written it

private:
    using Map = TileMap<Tile, false, 4>;
    static_assert(Tile::order == SharedOrder::x_contiguous);
    static_assert(Map::chunks % Threads == 0 && Map::along(Map::chunks - Threads) == 0, "a thread's chunks have one x");

    const float* source_;  // of this thread's first chunk
    std::int64_t stride_;
    int k_;  // of the first chunk; beyond every tile if x is outside the operand
    int target_;
};

/// `RegisterStagedLoader` for a float operand of whole chunks (`SimtOrders`) that is contiguous in k: loads vectors
/// from global memory and transposes them in its stores.
template <class Tile, int Threads>
class WholeChunkTransposingLoader {
public:
    __device__ explicit WholeChunkTransposingLoader(const OperandStrip<float>& strip)
    {
        k_ = Map::along(threadIdx.x);
        const int x = Map::across(threadIdx.x);
        source_ = strip.data + x * strip.stride + k_;
        stride_ = strip.stride;
        x_left_ = strip.x_left - x;
        target_ = Map::shared_index(k_, x);
    }

    __device__ void begin(Tile&, int k_left)
    {
#pragma unroll
        for (int i = 0; i < chunks_per_thread; ++i) {
            const int x = Map::across(i * Threads);
            const int x_left = runs_inside(k_ < k_left, x_left_, Map::across_extent);
            staged_[i] = x < x_left ? __ldg(reinterpret_cast<const float4*>(source_ + x * stride_)) : float4{};
        }
        source_ += Tile::block_k;
    }

    __device__ void store(Tile& tile) const
    {
#pragma unroll
        for (int i = 0; i < chunks_per_thread; ++i) {
            float* target = tile.elements + target_ + Map::shared_index(0, Map::across(i * Threads));
            target[Map::shared_index(0, 0)] = staged_[i].x;
            target[Map::shared_index(1, 0)] = staged_[i].y;
            target[Map::shared_index(2, 0)] = staged_[i].z;
            target[Map::shared_index(3, 0)] = staged_[i].w;
        }
    }

private:
    using Map = TileMap<Tile, true, 4>;
    static_assert(Tile::order == SharedOrder::x_contiguous);
    static_assert(Map::chunks % Threads == 0 && Map::along(Map::chunks - Threads) == 0, "a thread's chunks have one k");
    static constexpr int chunks_per_thread = Map::chunks / Threads;

    const float* source_;  // of this thread's first chunk
    std::int64_t stride_;
    int k_;       // of its chunks
    int x_left_;  // from its first chunk to the end of the operand
    int target_;
    float4 staged_[chunks_per_thread];
};

}  // namespace tessera::kernels::detail
