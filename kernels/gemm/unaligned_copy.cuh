#pragma once

/// The fallback load without TMA: copies parts of a matrix whose base or stride is not a multiple of 16 bytes into
/// shared memory, to the same places where TMA would write them.
///
/// Reads the matrix in global memory, writes (swizzled) tiles in shared memory. Four warps copy; the caller publishes.
///
/// Terminology: a *line* is a run of elements that are contiguous in global memory, along K or along M or N. A *chunk*
/// is 16 bytes of a line. It is 16-byte aligned in shared memory and may begin at any element in global memory.
///
/// A thread makes a chunk from the two aligned 16-byte words that cover it, with funnel shifts, and stores it with one
/// instruction. Eight neighbouring lanes copy 128 bytes of a line: each of their loads reads 128 contiguous bytes, and
/// their stores cover all banks. A lane's second word is the next lane's first word and is in L1 by then. Exchanging it
/// by shuffles would cost four shuffles in the same pipe, and the last lane would still need its load.
///
/// The shift depends on the line. It is the same for every 16th line (8-bit elements), 8th line (16-bit) or 4th line
/// (32-bit). A warp therefore takes lines of equal shift together: one branch that does not diverge selects the
/// register at which a chunk begins, instead of eleven select instructions.
///
/// Only the matrix itself is read. Where one of the two words would reach outside of it, the thread loads single
/// elements and writes zeros for what is beyond the matrix. If lines follow each other without gaps, a neighbouring
/// line counts as inside.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tessera::kernels {

/// A matrix in global memory.
struct CopySource {
    const std::byte* data;
    std::int64_t stride;  // from one line to the next, in bytes
    int lines;            // number of lines
    int run;              // elements per line
};

/// Hides a value from the optimizer, which would otherwise keep all multiples of a stride in registers across tiles.
__device__ __forceinline__ void hide(std::int64_t& value) { asm volatile("" : "+l"(value)); }

/// Where a thread's chunks go in shared memory, in bytes from the start of a tile.
struct CopyTarget {
    std::uint32_t even;   // the thread's first chunk
    std::uint32_t odd;    // the chunk 4 lines further, which a swizzle puts elsewhere
    std::uint32_t line;   // per line, for lines a multiple of 8 apart
    std::uint32_t block;  // per block
};

namespace detail {

template <int Bytes>
using CopiedElement =
    std::conditional_t<Bytes == 1, std::uint8_t, std::conditional_t<Bytes == 2, std::uint16_t, std::uint32_t>>;

/// The two aligned 16-byte words that cover a chunk.
struct CoveringWords {
    uint4 low;
    uint4 high;
};

/// Returns the 16 bytes that begin `bits` into register `Word`. `bits` is a multiple of an element's size, modulo 32.
template <int ElementBytes, int Word>
__device__ __forceinline__ uint4 shifted(const CoveringWords& from, std::uint32_t bits)
{
    const std::uint32_t words[8] = {from.low.x,  from.low.y,  from.low.z,  from.low.w,
                                    from.high.x, from.high.y, from.high.z, from.high.w};
    if constexpr (ElementBytes == 4) {
        return make_uint4(words[Word], words[Word + 1], words[Word + 2], words[Word + 3]);
    } else {
        return make_uint4(__funnelshift_r(words[Word], words[Word + 1], bits),
                          __funnelshift_r(words[Word + 1], words[Word + 2], bits),
                          __funnelshift_r(words[Word + 2], words[Word + 3], bits),
                          __funnelshift_r(words[Word + 3], words[Word + 4], bits));
    }
}

/// Returns the 16 bytes that begin at byte `bytes`, which is below 16.
template <int ElementBytes>
__device__ __forceinline__ uint4 shifted(const CoveringWords& from, std::uint32_t bytes)
{
    switch (bytes / 4) {
        case 0: return shifted<ElementBytes, 0>(from, bytes * 8);
        case 1: return shifted<ElementBytes, 1>(from, bytes * 8);
        case 2: return shifted<ElementBytes, 2>(from, bytes * 8);
        default: return shifted<ElementBytes, 3>(from, bytes * 8);
    }
}

/// Returns the first `count` elements at `from`, followed by zeros.
template <int ElementBytes>
__device__ __forceinline__ uint4 gathered(const std::byte* from, int count)
{
    using Element = CopiedElement<ElementBytes>;
    constexpr int in_word = 4 / ElementBytes;
    std::uint32_t words[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        words[word] = 0;
#pragma unroll
        for (int i = 0; i < in_word; ++i) {
            const int index = word * in_word + i;
            if (index < count) {
                words[word] |= std::uint32_t{reinterpret_cast<const Element*>(from)[index]} << (i * 8 * ElementBytes);
            }
        }
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace detail

/// One of 128 threads (four warps) that copy a matrix tile by tile. A tile is `Blocks` blocks of (Lines, Width bytes),
/// side by side along the lines or one after the other across them. `Lines` is a power of two, at least 16; `Width` is
/// 64 or 128.
template <int ElementBytes, int Lines, int Blocks, int Width = 128>
class UnalignedCopier {
public:
    static constexpr int block_elements = Width / ElementBytes;

    /// @param thread  0 to 127
    __device__ explicit UnalignedCopier(std::uint32_t thread)
        : line_(static_cast<int>(thread / 32 + thread % 32 / chunks * period)),
          element_(static_cast<int>(thread % chunks) * in_chunk)
    {}

    /// The thread's first line in a tile, and the first element of its chunks.
    __device__ int line() const { return line_; }
    __device__ int element() const { return element_; }

    /// Moves to the tile at (line, element). @param along_lines  true if its blocks are side by side along the lines
    __device__ void begin(const CopySource& source, int line, int element, bool along_lines)
    {
        source_ = source;
        along_lines_ = along_lines;
        lines_ = source.lines - line - line_;
        run_ = source.run - element - element_;
        first_ = source.data + (std::int64_t{line} + line_) * source.stride +
                 (std::int64_t{element} + element_) * ElementBytes;
    }

    /// Moves on by `count` lines.
    __device__ void skip_lines(int count)
    {
        lines_ -= count;
        first_ += count * source_.stride;
    }
    __device__ void skip_elements(int count)
    {
        run_ -= count;
        first_ += count * ElementBytes;
    }

    /// Copies the thread's chunks of a tile. What is beyond the matrix becomes zero.
    __device__ __forceinline__ void copy(std::byte* tile, const CopyTarget& target)
    {
        hide(source_.stride);
        if (are_all_inside()) {
            copy_inside(tile, target);
        } else if (is_active()) {
            copy_at_edge(tile, target);
        }
    }

private:
    using Words = detail::CoveringWords;

    static constexpr int chunks = 8;  // of 128 bytes
    static constexpr int in_chunk = 16 / ElementBytes;
    static constexpr int period = 16 / ElementBytes;  // from a line to the next one that is as far from alignment
    // Thread (warp, lane) has the lines warp + 4 * residue + period * (lane / 8 + 4 * round) of each block.
    static constexpr int residues = period / 4;
    static constexpr int rounds = Lines > 4 * period ? Lines / (4 * period) : 1;
    static constexpr int steps = Blocks * residues * rounds;
    static_assert(Lines >= 16 && (Lines & (Lines - 1)) == 0 && (Width == 128 || (Width == 64 && Blocks == 1)));

    __device__ static std::uint32_t misalignment(const std::byte* address)
    {
        return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address)) & 15U;
    }
    /// Lines from the thread's first one of a block to that of the step.
    __device__ static constexpr int line_of(int step)
    {
        return step / rounds % residues * 4 + step % rounds * (4 * period);
    }
    __device__ static constexpr int block_of(int step) { return step / (residues * rounds); }

    /// Where the step's chunk is.
    __device__ const std::byte* from(int step) const
    {
        const std::int64_t block = along_lines_ ? Width : Lines * source_.stride;
        return first_ + block_of(step) * block + line_of(step) * source_.stride;
    }

    __device__ Words words_at(int step) const
    {
        const std::byte* const chunk = from(step);
        const auto* const words = reinterpret_cast<const uint4*>(chunk - misalignment(chunk));
        return {.low = words[0], .high = words[1]};
    }

    /// All chunks are inside: no step has a condition.
    __device__ __forceinline__ void copy_inside(std::byte* tile, const CopyTarget& target) const
    {
        Words words[steps];
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            words[step] = words_at(step);
        }
#pragma unroll
        for (int residue = 0; residue < residues; ++residue) {
            const std::uint32_t shift = misalignment(from(residue * rounds));
            const auto store = [&]<int Word>() {
#pragma unroll
                for (int step = 0; step < steps; ++step) {
                    if (step / rounds % residues == residue) {
                        put(tile, target, step, detail::shifted<ElementBytes, Word>(words[step], shift * 8));
                    }
                }
            };
            switch (shift / 4) {
                case 0: store.template operator()<0>(); break;
                case 1: store.template operator()<1>(); break;
                case 2: store.template operator()<2>(); break;
                default: store.template operator()<3>();
            }
        }
    }

    __device__ __forceinline__ void copy_at_edge(std::byte* tile, const CopyTarget& target) const
    {
        constexpr int together = steps % 4 == 0 && ElementBytes > 1 ? 4 : steps % 2 == 0 ? 2 : 1;  // loads in flight
#pragma unroll 1
        for (int begin = 0; begin < steps; begin += together) {
            Words words[together];
#pragma unroll
            for (int i = 0; i < together; ++i) {
                words[i] = is_inside(begin + i) ? words_at(begin + i) : Words{};
            }
            uint4 edges[together];
#pragma unroll
            for (int i = 0; i < together; ++i) {
                edges[i] = detail::gathered<ElementBytes>(from(begin + i), elements_at_edge(begin + i));
            }
#pragma unroll
            for (int i = 0; i < together; ++i) {
                const int step = begin + i;
                put(tile, target, step,
                    is_inside(step) ? detail::shifted<ElementBytes>(words[i], misalignment(from(step))) : edges[i]);
            }
        }
    }

    __device__ static void put(std::byte* tile, const CopyTarget& target, int step, const uint4& chunk)
    {
        const bool odd = step / rounds % 2 != 0 && residues > 1;
        const auto lines = static_cast<std::uint32_t>(line_of(step) - (odd ? 4 : 0));
        const std::uint32_t offset = static_cast<std::uint32_t>(block_of(step)) * target.block + lines * target.line;
        *reinterpret_cast<uint4*>(tile + (odd ? target.odd : target.even) + offset) = chunk;
    }

    /// Lanes beyond a block that is smaller than theirs have nothing to do.
    __device__ bool is_active() const
    {
        return (Lines >= 4 * period || line_ < Lines) && (Width == 128 || element_ < block_elements);
    }

    // What is left of the matrix from the thread's first chunk of a step's block on.
    __device__ int lines_left(int step) const { return lines_ - (along_lines_ ? 0 : block_of(step) * Lines); }
    __device__ int run_left(int step) const { return run_ - (along_lines_ ? block_of(step) * block_elements : 0); }

    /// Lines of the step's block, from the thread's first one on, whose chunks are whole and their two words inside.
    __device__ int inside_lines(int step) const
    {
        const bool dense = source_.stride == source_.run * std::int64_t{ElementBytes} && source_.run >= 2 * in_chunk;
        const int run = run_left(step);
        const int lines = lines_left(step);
        const bool before = run < source_.run || (dense && lines < source_.lines);
        const bool after = run >= 2 * in_chunk;
        return before && (after || (dense && run >= in_chunk)) ? lines - (after ? 0 : 1) : 0;
    }
    __device__ bool is_inside(int step) const { return is_active() && line_of(step) < inside_lines(step); }

    __device__ bool are_all_inside() const
    {
        bool inside = true;
#pragma unroll
        for (int step = residues * rounds - 1; step < steps; step += residues * rounds) {
            inside &= is_inside(step);  // the last line of each block
        }
        return inside;
    }
    /// Elements of a chunk at an edge that are inside of the matrix.
    __device__ int elements_at_edge(int step) const
    {
        return !is_inside(step) && line_of(step) < lines_left(step) ? run_left(step) : 0;
    }

    int line_;
    int element_;
    CopySource source_{};
    const std::byte* first_ = nullptr;
    int lines_ = 0;
    int run_ = 0;
    bool along_lines_ = false;
};

}  // namespace tessera::kernels
