#pragma once

/// An operand's tile in shared memory: what a stage has of it, and how fragments of mma.sync are read from it.
///
/// Terminology: x is m for A and n for B. A *line* is a run of elements that are contiguous in global memory: along K
/// (K-major) or along x (MN-major). A *chunk* is 16 bytes of a line. A *block* is a group of lines of at most 128 bytes
/// each, swizzled: the chunks of a line are permuted, so that neither the copies nor the reads of eight neighbouring
/// lines have bank conflicts.

#include <cstdint>

#include "mma_ptx.cuh"
#include "tessera/device/mma_sync.cuh"

namespace tessera::kernels {

/// A tile of (Extent x, 128 bytes along K).
template <class Element, int Extent, Major MajorAxis>
struct MmaTile {
    static constexpr int extent = Extent;
    static constexpr bool k_major = MajorAxis == Major::k;
    static constexpr int element_bytes = sizeof(Element);
    static constexpr int in_chunk = 16 / element_bytes;  // elements
    static constexpr int block_k = 128 / element_bytes;  // elements along K
    /// Bytes of a line in its block.
    static constexpr int line_bytes = k_major || Extent * element_bytes > 128 ? 128 : Extent* element_bytes;
    static constexpr int line_chunks = line_bytes / 16;
    static constexpr int block_lines = k_major ? Extent : block_k;
    static constexpr int blocks = k_major ? 1 : Extent * element_bytes / line_bytes;
    static constexpr int block_bytes = block_lines * line_bytes;
    static constexpr int size_bytes = blocks * block_bytes;
    static constexpr int chunks = size_bytes / 16;
    static_assert(size_bytes == Extent * 128);

    /// What a line's chunks are permuted by. It repeats after 8 lines.
    __device__ static constexpr int swizzle_of(int line) { return line / (128 / line_bytes) % line_chunks; }
    /// Byte of a chunk, counted along the whole line.
    __device__ static constexpr int offset(int line, int chunk)
    {
        return chunk / line_chunks * block_bytes + line * line_bytes + (chunk % line_chunks ^ swizzle_of(line)) * 16;
    }
};

/// A warp's view of a tile: reads its part, fragment by fragment. The address of each is one XOR and one sum away from
/// what a lane computes once.
///
/// @tparam Fragment  a FragmentA, or a FragmentB, of which two neighbours are read at once
/// @tparam WarpExtent  x of the warp's part, a power of two
template <class Tile, class Fragment, int WarpExtent, bool IsA>
class MmaReader {
    using Element = typename Fragment::element_type;
    static constexpr int fragment_chunks = Fragment::chunks;
    // ldmatrix transposes 16-bit elements only; the others are gathered.
    static constexpr bool gathers = !Tile::k_major && sizeof(Element) != 2;

public:
    /// x of what `read` reads.
    static constexpr int extent = 16;
    static constexpr int count = WarpExtent / extent;
    static constexpr int words = 2 * fragment_chunks;
    /// Steps of a fragment's K in a tile.
    static constexpr int steps = Tile::block_k / static_cast<int>(Fragment::k);

    /// @param first  x of the warp's part in the tile, a multiple of WarpExtent
    __device__ explicit MmaReader(int first)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        if constexpr (gathers) {
            first_ = byte_of(lane % 4 * in_word, first + lane / 4);
        } else {
            // Matrix `lane / 8` of four: two along x and up to two along K. A's words alternate along x, B's along K.
            const int matrix = lane / 8;
            const int along_x = IsA ? matrix % 2 : matrix / fragment_chunks % 2;
            const int along_k = (IsA ? matrix / 2 : matrix) % fragment_chunks;
            const int line = lane % 8;
            first_ = Tile::k_major ? Tile::offset(first + 8 * along_x + line, along_k)
                                   : Tile::offset(8 * along_k + line, first / 8 + along_x);
        }
    }

    /// Reads the words of x [16 * i, 16 * i + 16), step `step` along K, from the tile at `tile` in shared memory.
    __device__ __forceinline__ void read(std::uint32_t (&to)[words], std::uint32_t tile, int i, int step) const
    {
        if constexpr (gathers) {
            gather(to, tile, i, step);
        } else if constexpr (Tile::k_major) {
            // The chunk's bits are those of `first_`, XORed with the swizzle.
            const std::uint32_t place = (first_ ^ step * fragment_chunks * 16) + i * extent * Tile::line_bytes;
            load<false>(to, tile + place);
        } else {
            // A warp's part is in one block, or in whole blocks.
            constexpr int in_block = Tile::line_bytes / (extent * Tile::element_bytes);
            const std::uint32_t place = (first_ ^ i % in_block * extent * Tile::element_bytes) +
                                        i / in_block * Tile::block_bytes +
                                        step * static_cast<int>(Fragment::k) * Tile::line_bytes;
            load<true>(to, tile + place);
        }
    }

private:
    template <bool Transposed>
    __device__ __forceinline__ static void load(std::uint32_t (&to)[words], std::uint32_t address)
    {
        tessera::detail::load_matrices<Transposed>(to, address);
    }

    static constexpr int in_word = 4 / Tile::element_bytes;  // elements
    /// Byte of an element of an MN-major tile.
    __device__ static constexpr int byte_of(int k, int x)
    {
        const int byte = x * Tile::element_bytes;
        return Tile::offset(k, byte / 16) + byte % 16;
    }

    /// Reads elements that are contiguous along x, one word after the other.
    ///
    /// An element's k and x are bits of the lane and bits of constants, and no bit is of both. So its byte is the lane's first one,
    /// XORed with a constant: only in the bits of the swizzle must that be an XOR. The rest is an offset in the instruction.
    __device__ __forceinline__ void gather(std::uint32_t (&to)[words], std::uint32_t tile, int i, int step) const
    {
        constexpr int swizzled = (Tile::line_bytes - 1) / 16 * 16;
#pragma unroll
        for (int word = 0; word < words; ++word) {
            const int along_x = IsA ? word % 2 : word / fragment_chunks;
            const int along_k = IsA ? word / 2 : word % fragment_chunks;
            std::uint32_t value = 0;
#pragma unroll
            for (int j = 0; j < in_word; ++j) {
                const int from_first = byte_of(step * static_cast<int>(Fragment::k) + along_k * Tile::in_chunk + j,
                                               i * extent + 8 * along_x);
                const std::uint32_t address = tile + (first_ ^ (from_first & swizzled)) + (from_first & ~swizzled);
                value |= ptx::load_shared<Tile::element_bytes>(address) << 8 * j;
            }
            to[word] = value;
        }
    }

    int first_;  // byte in the tile, of the lane
};

}  // namespace tessera::kernels
