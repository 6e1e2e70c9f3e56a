#pragma once

// How the warp-level matrix instructions distribute a matrix over the registers of a warp (PTX ISA "Matrix Fragments"
// of mma). All except m8n8k4 with f16 follow one scheme. Operands consist of tiles of 8 rows x 16 bytes (32 bytes of
// f64). Lane t holds bytes 4*(t%4).. of row t/4 of a tile in one register, so four neighbouring lanes hold 16
// consecutive bytes of a row. Accumulators consist of tiles of 8 x 8. Lane t holds columns 2*(t%4) and 2*(t%4)+1 of row
// t/4.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "machine/warp.hpp"
#include "numerics/formats.hpp"
#include "program/decoder.hpp"

namespace tessera::emulator {

/// Operand A (rows = M) or B (rows = N).
struct OperandFragment {
    unsigned rows = 0;        ///< multiple of 8
    unsigned chunks = 1;      ///< tiles along K
    unsigned lane_bytes = 4;  ///< 8 for f64
    unsigned pair = 1;        ///< row tiles that alternate before K advances: 2 for A with 16 rows or more

    [[nodiscard]] unsigned registers() const noexcept { return rows / 8 * chunks; }
    [[nodiscard]] std::size_t line_bytes() const noexcept { return std::size_t{chunks} * 4 * lane_bytes; }
    /// Calls body(register index, first row, byte in the line) for each register.
    template <typename Body>
    void for_each_register(Body&& body) const
    {
        for (unsigned index = 0; index < registers(); ++index) {
            const unsigned group = index / (chunks * pair);
            const unsigned chunk = index / pair % chunks;
            const unsigned half = index % pair;
            body(index, 8 * (group * pair + half), std::size_t{chunk} * 4 * lane_bytes);
        }
    }
    void gather(Warp& warp, std::span<const Ref> refs, std::byte* block) const
    {
        const std::size_t piece = std::size_t{4} * lane_bytes;
        for_each_register([&](unsigned index, unsigned row, std::size_t byte) {
            const std::byte* from = warp.row<std::byte>(refs[index]);
            for (unsigned r = 0; r < 8; ++r) {
                std::memcpy(block + (row + r) * line_bytes() + byte, from + r * piece, piece);
            }
        });
    }
    void scatter(Warp& warp, std::span<const Ref> refs, const std::byte* block, LaneMask active) const
    {
        for_each_register([&](unsigned index, unsigned row, std::size_t byte) {
            std::byte* to = warp.row<std::byte>(refs[index]);
            for_each_lane(active, [&](unsigned lane) {
                std::memcpy(to + lane * lane_bytes,
                            block + (row + lane / 4) * line_bytes() + byte + (lane % 4) * lane_bytes, lane_bytes);
            });
        });
    }
};

/// Accumulator C or D of `rows` x `columns`.
struct AccumulatorFragment {
    unsigned rows = 0, columns = 0;  ///< multiples of 8
    unsigned pair = 1;               ///< as for A
    bool packed = false;             ///< f16: two neighbours in one register

    [[nodiscard]] unsigned registers() const noexcept { return rows * columns / 64 * (packed ? 1 : 2); }
    /// Calls body(tile index, first row, first column) for each 8 x 8 tile, in register order.
    template <typename Body>
    void for_each_tile(Body&& body) const
    {
        unsigned index = 0;
        for (unsigned group = 0; group < rows / 8 / pair; ++group) {
            for (unsigned tile = 0; tile < columns / 8; ++tile) {
                for (unsigned half = 0; half < pair; ++half) {
                    body(index++, 8 * (group * pair + half), 8 * tile);
                }
            }
        }
    }
    /// 32-bit elements or, if `Value` is double, 64-bit elements. `row_of(index)` gives a register's 32 values.
    template <typename Value, typename RowOf>
    void gather(RowOf&& row_of, Value* matrix) const
    {
        for_each_tile([&](unsigned tile, unsigned row, unsigned column) {
            const Value* even = row_of(2 * tile);
            const Value* odd = row_of(2 * tile + 1);
            Value* to = matrix + std::size_t{row} * columns + column;
            for (unsigned r = 0; r < 8; ++r, to += columns) {
                for (unsigned q = 0; q < 4; ++q) {
                    to[2 * q] = even[4 * r + q];
                    to[2 * q + 1] = odd[4 * r + q];
                }
            }
        });
    }
    template <typename Value, typename RowOf>
    void scatter(RowOf&& row_of, const Value* matrix, LaneMask active) const
    {
        for_each_tile([&](unsigned tile, unsigned row, unsigned column) {
            Value* even = row_of(2 * tile);
            Value* odd = row_of(2 * tile + 1);
            const Value* from = matrix + std::size_t{row} * columns + column;
            if (active == all_lanes) {
                for (unsigned r = 0; r < 8; ++r, from += columns) {
                    for (unsigned q = 0; q < 4; ++q) {
                        even[4 * r + q] = from[2 * q];
                        odd[4 * r + q] = from[2 * q + 1];
                    }
                }
            } else {
                for_each_lane(active, [&](unsigned lane) {
                    even[lane] = from[(lane / 4) * columns + 2 * (lane % 4)];
                    odd[lane] = from[(lane / 4) * columns + 2 * (lane % 4) + 1];
                });
            }
        });
    }
    /// f16 pairs in 32-bit registers; the matrix holds their values as floats.
    template <typename RowOf>
    void gather_f16(RowOf&& row_of, float* matrix) const
    {
        for_each_tile([&](unsigned tile, unsigned row, unsigned column) {
            const std::uint32_t* pairs = row_of(tile);
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                float* to = matrix + std::size_t{row + lane / 4} * columns + column + 2 * (lane % 4);
                to[0] = numerics::float_from_f16(static_cast<std::uint16_t>(pairs[lane]));
                to[1] = numerics::float_from_f16(static_cast<std::uint16_t>(pairs[lane] >> 16));
            }
        });
    }
    template <typename RowOf>
    void scatter_f16(RowOf&& row_of, const float* matrix, LaneMask active) const
    {
        for_each_tile([&](unsigned tile, unsigned row, unsigned column) {
            std::uint32_t* pairs = row_of(tile);
            for_each_lane(active, [&](unsigned lane) {
                const float* from = matrix + std::size_t{row + lane / 4} * columns + column + 2 * (lane % 4);
                pairs[lane] = numerics::f16_from_float(from[0]) |
                              (static_cast<std::uint32_t>(numerics::f16_from_float(from[1])) << 16);
            });
        });
    }
};

/// For .aligned instructions: returns false until the whole warp has arrived; the handler then returns Step::wait.
/// Reports lanes that a guard predicate excludes.
[[nodiscard]] inline bool whole_warp(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.gather_aligned(operation)) {
        return false;
    }
    if (active != all_lanes && active != warp.live() && warp.checks()) {
        warp.report(operation, FindingKind::divergent_aligned, warp.live() & ~active,
                    "the guard predicate excludes lanes of the warp from an .aligned instruction, whose results are "
                    "then undefined; use the same predicate value in all lanes");
    }
    return true;
}

}  // namespace tessera::emulator
