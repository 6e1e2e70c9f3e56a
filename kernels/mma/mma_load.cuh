#pragma once

/// Loads an operand's tiles from global to shared memory, with zeros beyond the operand. All threads of the CTA take part.
///
/// From compute capability 8.0 on, copies are asynchronous (cp.async): of 16 bytes, or in one configuration in pieces as wide
/// as the operand's alignment allows, of 16, 8 or 4 bytes. Otherwise, and on 7.5, elements pass through registers.

#include <cstdint>
#include <type_traits>

#include "../gemm/gemm_arguments.hpp"
#include "../gemm/ptx.cuh"
#include "mma_ptx.cuh"
#include "mma_tile.cuh"
#include "mma_warp.cuh"

namespace tessera::kernels {

/// What a thread copies of one operand.
/// @tparam AnyAlignment  false if every line begins at a multiple of 16 bytes
template <class Tile, class Element, int Threads, bool AnyAlignment>
class MmaLoader {
    static constexpr int per_thread = Tile::chunks / Threads;
    static constexpr int chunks_along = Tile::line_chunks * Tile::blocks;  // of a line
    static constexpr int lines_at_once = Threads / chunks_along;           // lines that all threads copy at a time
    static_assert(Threads % chunks_along == 0 && Tile::chunks % Threads == 0);

public:
    /// @param k_extent  of the operand
    __device__ __forceinline__ MmaLoader(const Operand& operand, std::int64_t x_stride, std::int64_t k_stride,
                                         std::int64_t batch, const MmaExtent& x, std::int64_t k_extent,
                                         const MmaSteps& steps)
    {
        const auto thread = static_cast<int>(threadIdx.x);
        const int chunk = thread % chunks_along;
        const int line = thread / chunks_along;
        const std::int64_t first = steps.first * std::int64_t{Tile::block_k};
        const std::int64_t last = first + (steps.count - 1) * std::int64_t{Tile::block_k};
        const std::int64_t stride = (Tile::k_major ? x_stride : k_stride) * Tile::element_bytes;
        const std::int64_t base =
            (batch * operand.batch_stride + x.first * x_stride + last * k_stride) * Tile::element_bytes;
        source_ = static_cast<const char*>(operand.data) + base + line * stride + chunk * 16;
        line_stride_ = stride * lines_at_once;
        next_ = Tile::k_major ? 128 : stride * Tile::block_k;
        to_first_ = (first - last) * k_stride * Tile::element_bytes;
        // Both fit in 32 bits, clamped to a tile or more.
        const auto in_last = static_cast<int>(min(k_extent - last, std::int64_t{Tile::block_k}));
        const auto x_left = static_cast<int>(min(x.end - x.first, static_cast<std::int64_t>(1 << 16)));
        lines_ = (Tile::k_major ? x_left : in_last) - line;
        bytes_ = (Tile::k_major ? in_last : x_left) * Tile::element_bytes - chunk * 16;
        if (x.to_up != 0) {
            take_pairs(x.to_up * x_stride * Tile::element_bytes, stride, line, chunk, x_left);
        }
        bytes_ = min(max(bytes_, 0), 16);
        target_ = Tile::offset(line, chunk);
        if constexpr (AnyAlignment) {
            const std::uint64_t bits = reinterpret_cast<std::uint64_t>(source_) | static_cast<std::uint64_t>(stride);
            piece_ = bits % 16 == 0 ? 16 : bits % 8 == 0 ? 8 : bits % 4 == 0 ? 4 : 0;
        }
    }

    /// Starts to copy the last step, which comes first since it alone may be cut off along K: zeros are beyond the operand.
    __device__ __forceinline__ void begin_last(std::uint32_t tile)
    {
        copy_part<1>(tile, lines_, bytes_, 0);
        source_ += to_first_;
    }

    /// Parts of a step that are copied one by one, with products between them. Copies in pieces are too much code for that.
    template <int Most>
    static constexpr int parts = AnyAlignment ? 1 : Most;

    /// Starts to copy part `part` of `Parts` of the next step to `tile` in shared memory, or if `is_left` is false nothing that is
    /// read. After the last part, the next step follows.
    template <int Parts>
    __device__ __forceinline__ void begin(std::uint32_t tile, int part, bool is_left)
    {
        const int lines = Tile::k_major ? lines_ : Tile::block_k;
        const int bytes = Tile::k_major ? 16 : bytes_;
        if constexpr (!AnyAlignment || mma_loads_through_registers) {
            // Zeros are cheaper than a branch, which would keep apart what the compiler can mix.
            copy_part<Parts>(tile, is_left ? lines : 0, bytes, part);
        } else if (is_left) {
            copy_part<Parts>(tile, lines, bytes, part);
        }
        if (part + 1 == Parts) {
            source_ += next_;
        }
    }

    /// Stores what `begin` left in registers.
    __device__ __forceinline__ void finish(std::uint32_t tile)
    {
#if __CUDA_ARCH__ < 800
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            ptx::store_shared(tile + place(i), staged_[i]);
        }
#endif
    }

private:
    /// Takes gates or ups of x that come in turn in the tile: all that a thread copies is of one kind.
    /// @param to_up  in bytes, from a gate to its up
    __device__ __forceinline__ void take_pairs(std::int64_t to_up, std::int64_t stride, int line, int chunk, int x_left)
    {
        if constexpr (Tile::k_major) {
            static_assert(lines_at_once % 16 == 0);
            const int pair = line / 16 * 8 + line % 8;
            source_ += (pair - line) * stride + (line / 8 % 2 == 0 ? 0 : to_up);
            line_stride_ = stride * (lines_at_once / 2);
            lines_ = 2 * (x_left - pair);  // compared with twice the number of a pair
        } else {
            static_assert(chunks_along % 2 == 0);
            const int pairs = chunk / 2;  // a chunk of them
            source_ += (pairs - chunk) * 16 + (chunk % 2 == 0 ? 0 : to_up);
            bytes_ = x_left * Tile::element_bytes - pairs * 16;
        }
    }

    __device__ __forceinline__ std::uint32_t place(int i) const
    {
        // Lines 8 apart have the same swizzle.
        if constexpr (lines_at_once % 8 == 0) {
            return target_ + i * lines_at_once * Tile::line_bytes;
        } else {
            const auto thread = static_cast<int>(threadIdx.x);
            return Tile::offset(thread / chunks_along + i * lines_at_once, thread % chunks_along);
        }
    }

    /// @param lines  from the thread's first on
    /// @param bytes  of each of its chunks
    template <int Parts>
    __device__ __forceinline__ void copy_part(std::uint32_t tile, int lines, int bytes, int part)
    {
        const int first = per_thread * part / Parts;
        const int end = per_thread * (part + 1) / Parts;
#if __CUDA_ARCH__ >= 800
        if constexpr (!AnyAlignment) {
            copy<16>(tile, lines, bytes, first, end);
        } else if (piece_ == 16) {
            copy<16>(tile, lines, bytes, first, end);
        } else if (piece_ == 8) {
            copy<8>(tile, lines, bytes, first, end);
        } else if (piece_ == 4) {
            copy<4>(tile, lines, bytes, first, end);
        } else {
            copy_elements(tile, lines, bytes, first, end);
        }
#else
        load(lines, bytes, first, end);
#endif
    }

    template <int Piece>
    __device__ __forceinline__ void copy(std::uint32_t tile, int lines, int bytes, int first, int end) const
    {
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            if (i >= first && i < end) {
                const int valid = i * lines_at_once < lines ? bytes : 0;
                const char* const from = source_ + i * line_stride_;
                if (Piece < 16 && valid == 0) {  // rows that the operand lacks, all at once
                    ptx::store_shared(tile + place(i), uint4{});
                    continue;
                }
#pragma unroll
                for (int piece = 0; piece < 16; piece += Piece) {
                    const int left = Piece == 16 ? valid : min(max(valid - piece, 0), Piece);
                    ptx::cp_async<Piece>(tile + place(i) + piece, from + piece, left);
                }
            }
        }
    }

    __device__ __forceinline__ void copy_elements(std::uint32_t tile, int lines, int bytes, int first, int end) const
    {
        uint4 chunks[per_thread];  // all under way at the same time
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            if (i >= first && i < end) {
                const int valid = i * lines_at_once < lines ? bytes : 0;
                chunks[i] = elements(source_ + i * line_stride_, valid);
            }
        }
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            if (i >= first && i < end) {
                ptx::store_shared(tile + place(i), chunks[i]);
            }
        }
    }

    /// A chunk of 16-bit elements in five loads: the words that are inside of it, and two elements. Nothing else is read.
    __device__ __forceinline__ static uint4 whole_chunk(const char* from)
    {
        const bool even = reinterpret_cast<std::uint64_t>(from) % 4 == 0;  // it begins with a word
        const auto* const words = reinterpret_cast<const std::uint32_t*>(from + (even ? 0 : 2));
        const auto* const elements = reinterpret_cast<const std::uint16_t*>(from);
        const std::uint32_t middle[3] = {__ldg(words), __ldg(words + 1), __ldg(words + 2)};
        const std::uint32_t other = __ldg(elements + (even ? 6 : 0));
        const std::uint32_t last = __ldg(elements + 7);
        const std::uint32_t shift = even ? 0 : 16;
        return make_uint4(__funnelshift_r(even ? middle[0] : other << 16, middle[0], shift),
                          __funnelshift_r(even ? middle[1] : middle[0], middle[1], shift),
                          __funnelshift_r(even ? middle[2] : middle[1], middle[2], shift),
                          __funnelshift_r(even ? other | last << 16 : middle[2], last, shift));
    }

    /// The first `bytes` bytes from there, and zeros.
    __device__ __forceinline__ static uint4 elements(const char* from, int bytes)
    {
        using Bits = std::conditional_t<sizeof(Element) == 1, std::uint8_t,
                                        std::conditional_t<sizeof(Element) == 2, std::uint16_t, std::uint32_t>>;
        if constexpr (sizeof(Element) == 2) {
            if (bytes == 16) {
                return whole_chunk(from);
            }
        }
        std::uint32_t words[4] = {};
#pragma unroll
        for (int j = 0; j < Tile::in_chunk; ++j) {
            const int byte = j * Tile::element_bytes;
            if (byte < bytes) {
                words[byte / 4] |= static_cast<std::uint32_t>(__ldg(reinterpret_cast<const Bits*>(from) + j))
                                   << 8 * (byte % 4);
            }
        }
        return make_uint4(words[0], words[1], words[2], words[3]);
    }

#if __CUDA_ARCH__ < 800
    __device__ __forceinline__ void load(int lines, int bytes, int first, int end)
    {
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            if (i >= first && i < end) {
                const int valid = i * lines_at_once < lines ? bytes : 0;
                const char* const from = source_ + i * line_stride_;
                const bool whole = valid == 16 && (!AnyAlignment || piece_ == 16);
                staged_[i] = whole ? __ldg(reinterpret_cast<const uint4*>(from)) : elements(from, valid);
            }
        }
    }

    uint4 staged_[per_thread];
#endif

    const char* source_;        // the thread's first chunk of the next step
    std::int64_t line_stride_;  // in bytes, between the lines of two of its chunks
    std::int64_t next_;         // in bytes, to the next step
    std::int64_t to_first_;     // in bytes, from the last step to the first
    int lines_;                 // of the operand, from the first chunk's on
    int bytes_;                 // of the operand in a chunk
    int piece_;                 // bytes of a copy; 0: single elements
    int target_;
};

}  // namespace tessera::kernels
