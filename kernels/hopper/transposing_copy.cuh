#pragma once

/// Copies parts of a matrix that is contiguous along M or N into stages that are contiguous along K: wgmma reads
/// operands of 8 and of 32 bits in no other order. At any alignment.
///
/// A thread makes chunks, 16 bytes along K, from the same 4 bytes of as many lines as a chunk has elements: of 32-bit
/// elements one chunk, of 8-bit elements the chunks of 4 rows, whose bytes are exchanged 4 x 4 at a time. Neighbouring
/// lanes load neighbouring rows, and eight of them store to all banks of a swizzled tile.

#include <cstddef>
#include <cstdint>

#include "kernels/common/unaligned_copy.cuh"
#include "tessera/swizzle.hpp"

namespace tessera::kernels {

/// One of 128 threads (four warps) that copy (Rows, 128 bytes of K) after (Rows, 128 bytes of K). The lines of the
/// source are those of K.
template <int ElementBytes, int Rows>
class TransposingCopier {
    static_assert(ElementBytes == 1 || ElementBytes == 4);
    static_assert(Rows == 16 || Rows % 32 == 0);

public:
    /// @param thread  of the 128
    __device__ explicit TransposingCopier(std::uint32_t thread)
        : row_(row_of(thread / 32, thread % 32)), chunk_(chunk_of(thread / 32, thread % 32))
    {}

    /// Goes to the part at (row, k). @param k  a multiple of a stage's
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

    /// Copies the thread's chunks to `tile`, in 128-byte swizzle, and goes on along K. What is beyond the matrix
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
            // More lanes than rows.
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
    static constexpr int in_chunk = 16 / ElementBytes;  // elements, and so lines
    static constexpr int rows_of_thread = 4 / ElementBytes;
    static constexpr int turns = ElementBytes == 4 ? (Rows + 31) / 32 * 2 : (Rows + 63) / 64;
    static constexpr int together = ElementBytes == 4 ? 8 : 2;  // turns whose loads are in flight

    // 32-bit elements: a warp has one chunk of 32 rows, and in the next turn the fourth next one. 8-bit ones: four
    // chunks of 32 rows. There, eight lanes have 8 rows, with the swizzle in different banks: chunk c of a row and
    // chunk c ^ 4 of the fourth next row are in the same ones.
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

    /// Where the turn's chunks begin.
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
        // Eight rows further, and four chunks, the swizzle is the same.
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
            for (std::uint32_t j = 0; j < 4;
                 ++j) {  // the row is a multiple of 4: its swizzle does not touch these bits
                *reinterpret_cast<uint4*>(tile + (place ^ j << 4) + j * 128) =
                    make_uint4(chunks[j][0], chunks[j][1], chunks[j][2], chunks[j][3]);
            }
        }
    }

    /// Whether `word_at` reads nothing but the matrix at the thread's rows of a line.
    __device__ bool is_inside(int row) const
    {
        if (is_word_aligned_ || ElementBytes == 4) {
            return row + rows_of_thread <= rows_;
        }
        return row + 8 <= rows_ && !(is_first_row_ && row == 0);
    }

    /// Four bytes, at an address of any alignment if elements are bytes.
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
    int rows_ = 0;  // left, from the part on
    int k_ = 0;
    bool is_first_row_ = false;
    bool is_word_aligned_ = false;
};

}  // namespace tessera::kernels
