#pragma once

/// The transposing fallback load: copies parts of an M- or N-major matrix into K-major stages, at any alignment. wgmma
/// reads 8-bit and 32-bit operands in K-major order only.
///
/// Four warps read global memory and write swizzled shared memory. A thread makes chunks of 16 bytes along K from the
/// same 4 bytes of as many lines as a chunk has elements: one chunk of 32-bit elements, or the chunks of 4 rows of
/// 8-bit elements, whose bytes it exchanges in blocks of 4 x 4. Neighbouring lanes load neighbouring rows; the stores
/// of eight lanes cover all banks of a swizzled tile.

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/unaligned_copy.cuh"
#include "tessera/swizzle.hpp"

namespace tessera::kernels {

/// One of 128 threads (four warps) that copy a matrix in parts of (Rows, 128 bytes of K). The lines of the source are
/// those of K.
template <int ElementBytes, int Rows>
class TransposingCopier {
    static_assert(ElementBytes == 1 || ElementBytes == 4);
    static_assert(Rows == 16 || Rows % 32 == 0);

public:
    /// @param thread  0 to 127
    __device__ explicit TransposingCopier(std::uint32_t thread)
        : row_(row_of(thread / 32, thread % 32)), chunk_(chunk_of(thread / 32, thread % 32))
    {}

    /// Moves to the part at (row, k). @param k  a multiple of a stage's K
    __device__ void begin(const CopySource& source, int row, int k)
    {
        source_ = source;
        first_ = source.data + (std::int64_t{k} + chunk_ * in_chunk) * source.stride +
                 (std::int64_t{row} + row_) * ElementBytes;
        rows_ = source.run - row;
        k_ = source.lines - k;
        is_first_row_ = row == 0;
        is_word_aligned_ =
            ((reinterpret_cast<std::uintptr_t>(source.data) | static_cast<std::uintptr_t>(source.stride)) & 3U) == 0;
    }

    /// Copies the thread's chunks to `tile`, with 128-byte swizzle, and moves on along K. What is beyond the matrix
    /// becomes zero.
    __device__ __forceinline__ void copy(std::byte* tile)
    {
        hide(source_.stride);
        bool inside = k_ >= block_k;
#pragma unroll
        for (int turn = 0; turn < turns; ++turn) {
            inside &= is_inside(row_at(turn));
        }
        if (!is_active()) {
            // This lane is beyond the rows.
        } else if (inside) {
#pragma unroll
            for (int first = 0; first < turns; first += together) {
                std::uint32_t words[together][in_chunk];
#pragma unroll
                for (int i = 0; i < together && first + i < turns; ++i) {
#pragma unroll
                    for (int line = 0; line < in_chunk; ++line) {
                        words[i][line] = word_at(from(first + i) + line * source_.stride);
                    }
                }
#pragma unroll
                for (int i = 0; i < together && first + i < turns; ++i) {
                    put(tile, first + i, words[i]);
                }
            }
        } else {
#pragma unroll 1
            for (int turn = 0; turn < turns; ++turn) {
                std::uint32_t words[in_chunk];
#pragma unroll
                for (int line = 0; line < in_chunk; ++line) {
                    words[line] = word_at_edge(turn, line);
                }
                put(tile, turn, words);
            }
        }
        first_ += block_k * source_.stride;
        k_ -= block_k;
    }

private:
    static constexpr int block_k = 128 / ElementBytes;
    static constexpr int in_chunk = 16 / ElementBytes;  // elements, and therefore lines
    static constexpr int rows_of_thread = 4 / ElementBytes;
    static constexpr int turns = ElementBytes == 4 ? (Rows + 31) / 32 * 2 : (Rows + 63) / 64;
    static constexpr int together = ElementBytes == 4 ? 8 : 2;  // turns whose loads are in flight at once

    // 32-bit elements: in a turn, a warp has one chunk of each of 32 rows; in the next turn, the chunk four further on.
    // 8-bit elements: four chunks of each of 32 rows. There, eight lanes have 8 rows, and the swizzle puts them in
    // different banks: chunk c of a row and chunk c ^ 4 of the fourth row after it are in the same banks.
    __device__ static int row_of(std::uint32_t warp, std::uint32_t lane)
    {
        return static_cast<int>(ElementBytes == 4 ? lane : warp / 2 * 32 + 4 * (lane / 8 * 2 + lane % 2));
    }
    __device__ static int chunk_of(std::uint32_t warp, std::uint32_t lane)
    {
        return static_cast<int>(ElementBytes == 4 ? warp : warp % 2 * 4 + lane / 2 % 4);
    }
    __device__ static constexpr int rows_to(int turn) { return ElementBytes == 4 ? turn / 2 * 32 : turn * 64; }
    __device__ static constexpr int chunks_to(int turn) { return ElementBytes == 4 ? turn % 2 * 4 : 0; }

    __device__ int row_at(int turn) const { return row_ + rows_to(turn); }
    __device__ int chunk_at(int turn) const { return chunk_ + chunks_to(turn); }

    /// Threads beyond a part with few rows have nothing to do.
    __device__ bool is_active() const { return row_ < Rows; }

    /// Start of the turn's chunks.
    __device__ const std::byte* from(int turn) const
    {
        return first_ + chunks_to(turn) * in_chunk * source_.stride + rows_to(turn) * ElementBytes;
    }

    /// `line` counts from the chunk's first one. What is beyond the matrix is zero.
    __device__ std::uint32_t word_at_edge(int turn, int line) const
    {
        using Element = detail::CopiedElement<ElementBytes>;
        std::uint32_t word = 0;
#pragma unroll
        for (int i = 0; i < rows_of_thread; ++i) {
            if (chunk_at(turn) * in_chunk + line < k_ && row_at(turn) + i < rows_) {
                word |= std::uint32_t{reinterpret_cast<const Element*>(from(turn) + line * source_.stride)[i]}
                        << (8 * i);
            }
        }
        return word;
    }

    __device__ __forceinline__ void put(std::byte* tile, int turn, const std::uint32_t (&words)[in_chunk]) const
    {
        // The swizzle is the same eight rows further on and four chunks further on.
        const std::uint32_t first = swizzled(Swizzle::b128, static_cast<std::uint32_t>(row_ * 128 + chunk_ * 16));
        const std::uint32_t place = (first ^ static_cast<std::uint32_t>(chunks_to(turn) * 16)) +
                                    static_cast<std::uint32_t>(rows_to(turn) * 128);
        if constexpr (ElementBytes == 4) {
            *reinterpret_cast<uint4*>(tile + place) = make_uint4(words[0], words[1], words[2], words[3]);
        } else {
            std::uint32_t chunks[4][4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const std::uint32_t* const in = words + 4 * i;
                const std::uint32_t low01 = __byte_perm(in[0], in[1], 0x5140);
                const std::uint32_t low23 = __byte_perm(in[2], in[3], 0x5140);
                const std::uint32_t high01 = __byte_perm(in[0], in[1], 0x7362);
                const std::uint32_t high23 = __byte_perm(in[2], in[3], 0x7362);
                chunks[0][i] = __byte_perm(low01, low23, 0x5410);
                chunks[1][i] = __byte_perm(low01, low23, 0x7632);
                chunks[2][i] = __byte_perm(high01, high23, 0x5410);
                chunks[3][i] = __byte_perm(high01, high23, 0x7632);
            }
#pragma unroll
            // The row is a multiple of 4, so its swizzle does not touch these bits.
            for (std::uint32_t j = 0; j < 4; ++j) {
                *reinterpret_cast<uint4*>(tile + (place ^ j << 4) + j * 128) =
                    make_uint4(chunks[j][0], chunks[j][1], chunks[j][2], chunks[j][3]);
            }
        }
    }

    /// Returns true if `word_at` reads only the matrix at the thread's rows of a line.
    __device__ bool is_inside(int row) const
    {
        if (is_word_aligned_ || ElementBytes == 4) {
            return row + rows_of_thread <= rows_;
        }
        return row + 8 <= rows_ && !(is_first_row_ && row == 0);
    }

    /// Reads four bytes, at any alignment if elements are bytes.
    __device__ std::uint32_t word_at(const std::byte* address) const
    {
        if constexpr (ElementBytes == 4) {
            return *reinterpret_cast<const std::uint32_t*>(address);
        } else {
            const auto shift = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address)) & 3U;
            const auto* const words = reinterpret_cast<const std::uint32_t*>(address - shift);
            return is_word_aligned_ ? words[0] : __funnelshift_r(words[0], words[1], shift * 8);
        }
    }

    int row_;
    int chunk_;
    CopySource source_{};
    const std::byte* first_ = nullptr;
    int rows_ = 0;  // rows left, from the part on
    int k_ = 0;     // K left
    bool is_first_row_ = false;
    bool is_word_aligned_ = false;
};

}  // namespace tessera::kernels
