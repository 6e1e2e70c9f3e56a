#pragma once

// One wgmma of one warp in flight: the decoded instruction, and the asynchronous operation that reads the operands and
// multiplies.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "execute/matrix_product.hpp"
#include "execute/warp_matrix.hpp"
#include "execute/wgmma_state.hpp"
#include "machine/async_operation.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"
#include "machine/matrix_descriptor.hpp"
#include "machine/tile_provenance.hpp"

namespace tessera::emulator {

inline constexpr unsigned rows_per_warp = 16;

struct WgmmaPayload final : Payload {
    Product product;  ///< of one warp: m = 16
    bool a_in_registers = false;
    bool a_mn_major = false, b_mn_major = false;
    OperandFragment a_fragment;
    AccumulatorFragment accumulator;
    std::vector<Ref> d, a;                ///< a: with A in registers
    std::vector<Ref> d_sorted, a_sorted;  ///< without immediates
    Ref a_descriptor = no_row, b_descriptor = no_row;
    Decoder::Predicate scale_d;
    Ref metadata = no_row;
    unsigned selector = 0;

    /// The tile of a descriptor: 64 rows of A, or B.
    [[nodiscard]] OperandTile tile(const MatrixDescriptor& descriptor, bool is_a) const
    {
        const unsigned rows = is_a ? warps_per_warpgroup * rows_per_warp : product.n;
        const unsigned k = is_a && metadata != no_row ? product.k / 2 : product.k;
        const unsigned bits = bits_of(is_a ? product.a : product.b);
        const bool mn_major = is_a ? a_mn_major : b_mn_major;
        return {.descriptor = descriptor,
                .major = mn_major ? Major::mn : Major::k,
                .lines = mn_major ? k : rows,
                .line_bytes = (mn_major ? rows : k) * bits / 8};
    }
};

class WgmmaOperation final : public AsyncOperation {
public:
    WgmmaOperation(Warp& warp, const WgmmaPayload& payload, std::shared_ptr<WgmmaAccumulator> accumulator)
        : warp_(warp), payload_(payload), accumulator_(std::move(accumulator))
    {
        kind = Kind::mma;
    }

    [[nodiscard]] bool trusts_issuers_fence() const override { return true; }

    std::uint64_t number = 0;  ///< index among the warp's wgmmas
    bool accumulate = false, whole_warpgroup = true;
    MatrixDescriptor a_descriptor, b_descriptor;
    std::vector<std::byte> a_registers;    ///< A's rows, if A is in registers
    std::vector<std::uint16_t> positions;  ///< for a sparse A

    bool step(Cluster& cluster) override
    {
        Product product = payload_.product;
        product.numerics = cluster.options().numerics;
        product.positions = positions.empty() ? nullptr : positions.data();
        thread_local std::vector<std::byte> a_bytes, b_bytes;
        const unsigned rank = warp_.index % warps_per_warpgroup;
        if (rank == 0 && warp_.cta.tiles != nullptr) {
            check_layouts(cluster);
        }
        OperandBlock a;
        if (payload_.a_in_registers) {
            a = {a_registers.data(), payload_.a_fragment.line_bytes(), false};
        } else {
            a = read_tile(cluster, payload_.tile(a_descriptor, true), rank * rows_per_warp, rows_per_warp, 0, 1,
                          a_bytes, "A");
        }
        if (product.positions != nullptr && warp_.checks() && names_a_place_twice(product, a)) {
            cluster.report(*this, FindingKind::invalid_operand, sparse_problem);
        }
        // All four warps read B. Each checks the races of a quarter of it, so that all of B is checked at a quarter of
        // the cost. It is not the quarter that the warp's own threads are likely to write next.
        const unsigned quarter = (rank + 1) % warps_per_warpgroup;
        const OperandBlock b = read_tile(cluster, payload_.tile(b_descriptor, false), 0, product.n, quarter,
                                         warps_per_warpgroup, b_bytes, "B");
        if (product.sum == SumType::s32) {
            multiply(product, a, b, reinterpret_cast<std::int32_t*>(accumulator_->values.data()), accumulate);
        } else {
            multiply(product, a, b, reinterpret_cast<float*>(accumulator_->values.data()), accumulate);
        }
        Statistics& statistics = cluster.statistics;
        statistics.mma_flops += std::uint64_t{2} * product.m * product.n * product.k;
        statistics.mma_operand_bytes += payload_.a_in_registers ? 0 : a_bytes.size();
        if (rank == 0) {  // the four warps execute one instruction
            ++statistics.mma_issued;
            statistics.mma_operand_bytes += b_bytes.size();
        }
        ++warpgroup_state(warp_).completed;
        for (Warp* const warp : warps_that_wait_for_each_other(warp_)) {
            WarpgroupState& state = warpgroup_state(*warp);
            if (warp_.checks() && number >= state.acquired) {
                const std::size_t place = number - state.acquired;
                state.completions.resize(std::max(state.completions.size(), place + 1));
                cluster.clocks.complete_async(agent, state.completions[place]);
            }
        }
        cluster.notify();
        return true;
    }

    [[nodiscard]] bool ready(const Cluster&) const override { return !whole_warpgroup || missing() == 0; }

    [[nodiscard]] std::string describe() const override
    {
        std::string text = fmt::format("wgmma.mma_async of warp {} of CTA {}", warp_.index, warp_.cta.rank);
        if (const LaneMask absent = whole_warpgroup ? missing() : 0; absent != 0) {
            text += ", which waits for the other warps of its warpgroup to issue it:";
            for_each_lane(absent, [&](unsigned index) {
                text += fmt::format(" warp {}", warp_.index / warps_per_warpgroup * warps_per_warpgroup + index);
            });
        }
        return text;
    }

private:
    /// Bit i is set if warp i of the warpgroup has not issued this wgmma.
    [[nodiscard]] LaneMask missing() const
    {
        LaneMask absent = 0;
        const unsigned first = warp_.index / warps_per_warpgroup * warps_per_warpgroup;
        for (unsigned i = 0; i < warps_per_warpgroup; ++i) {
            const auto& other = warp_.cta.warps[first + i]->warpgroup;
            if (other == nullptr || other->issued <= number) {
                absent |= LaneMask{1} << i;
            }
        }
        return absent;
    }

    /// Checks whether the operands are read as they were loaded. They are the same for all warps of the warpgroup.
    void check_layouts(Cluster& cluster)
    {
        for (const bool is_a : {true, false}) {
            if (is_a && payload_.a_in_registers) {
                continue;
            }
            const TileUse use{"wgmma", is_a ? "A" : "B", name_of(is_a ? payload_.product.a : payload_.product.b)};
            if (auto problem = warp_.cta.tiles->check(payload_.tile(is_a ? a_descriptor : b_descriptor, is_a), use,
                                                      *warp_.cta.shadow,
                                                      cluster.is_known(*this, FindingKind::layout_mismatch, 0))) {
                cluster.report(*this, ShadowFinding{FindingKind::layout_mismatch, std::move(*problem)});
            }
        }
        if (!payload_.a_in_registers) {
            if (auto problem =
                    warp_.cta.tiles->check_extents(payload_.tile(a_descriptor, true),
                                                   payload_.tile(b_descriptor, false), "wgmma", *warp_.cta.shadow)) {
                cluster.report(*this, FindingKind::layout_mismatch, std::move(*problem));
            }
        }
    }

    /// A part of an operand tile, and the part of it whose races are checked.
    struct Slice {
        unsigned first_line = 0, lines = 0, first_chunk = 0, chunks = 0;
        unsigned check_begin = 0, check_end = 0;  ///< lines
        const char* name = "";
    };

    /// Copies rows (or columns of B) [first, first + count) of `tile`. Checks part `part` of `parts` of the lines.
    OperandBlock read_tile(Cluster& cluster, const OperandTile& tile, unsigned first, unsigned count, unsigned part,
                           unsigned parts, std::vector<std::byte>& into, const char* name)
    {
        const bool mn_major = tile.major == Major::mn;
        constexpr unsigned elements_per_chunk = 8;  // MN-major elements have 16 bits
        Slice slice{.first_line = mn_major ? 0 : first,
                    .lines = mn_major ? tile.lines : count,
                    .first_chunk = mn_major ? first / elements_per_chunk : 0,
                    .chunks = mn_major ? count / elements_per_chunk : tile.chunks_per_line(),
                    .name = name};
        slice.check_begin = slice.first_line + slice.lines * part / parts;
        slice.check_end = slice.first_line + slice.lines * (part + 1) / parts;
        into.resize(std::size_t{slice.lines} * slice.chunks * OperandTile::chunk_bytes);
        const auto copy = [&]<TensorSwizzle mode>() {
            mn_major ? copy_chunks<mode, Major::mn>(cluster, tile, slice, into.data())
                     : copy_chunks<mode, Major::k>(cluster, tile, slice, into.data());
        };
        switch (tile.descriptor.swizzle) {
            case TensorSwizzle::span_32: copy.template operator()<TensorSwizzle::span_32>(); break;
            case TensorSwizzle::span_64: copy.template operator()<TensorSwizzle::span_64>(); break;
            case TensorSwizzle::span_128: copy.template operator()<TensorSwizzle::span_128>(); break;
            default: copy.template operator()<TensorSwizzle::none>(); break;
        }
        return {into.data(), std::size_t{slice.chunks} * OperandTile::chunk_bytes, mn_major};
    }

    /// With the swizzle known at compile time, a chunk's address needs few instructions.
    template <TensorSwizzle mode, Major major>
    void copy_chunks(Cluster& cluster, OperandTile tile, const Slice& slice, std::byte* to)
    {
        tile.descriptor.swizzle = mode;
        tile.major = major;
        constexpr unsigned chunk_bytes = OperandTile::chunk_bytes;
        const std::byte* const shared = warp_.cta.shared.data();
        const std::uint64_t size = warp_.cta.shared.size();
        bool in_bounds = true;
        Run run{.clean = warp_.cta.shadow != nullptr};
        for (unsigned line = slice.first_line; line < slice.first_line + slice.lines; ++line) {
            const bool checked = line >= slice.check_begin && line < slice.check_end;
            for (unsigned chunk = slice.first_chunk; chunk < slice.first_chunk + slice.chunks;
                 ++chunk, to += chunk_bytes) {
                const std::uint32_t address = tile.chunk_address(line, chunk);
                const std::uint64_t offset = std::uint64_t{address} - shared_base;  // below shared_base: huge
                if (offset >= size || size - offset < chunk_bytes) {
                    std::memset(to, 0, chunk_bytes);
                    if (in_bounds) {
                        in_bounds = false;
                        report_bounds(cluster, tile, slice.name, line, address);
                    }
                    continue;
                }
                if (checked && run.clean) {
                    check(cluster, static_cast<std::uint32_t>(offset), run);
                }
                std::memcpy(to, shared + offset, chunk_bytes);
            }
        }
        flush(cluster, run);
    }

    /// Neighbouring chunks, checked together.
    struct Run {
        std::uint32_t begin = 0, end = 0;  ///< offsets in shared memory
        bool clean = true;                 ///< no finding yet; one is enough
    };
    void check(Cluster& cluster, std::uint32_t offset, Run& run)
    {
        constexpr std::uint32_t size = OperandTile::chunk_bytes;
        if (offset == run.end) {
            run.end += size;
        } else if (offset + size == run.begin) {
            run.begin = offset;
        } else {
            flush(cluster, run);
            run.begin = offset;
            run.end = offset + size;
        }
    }
    void flush(Cluster& cluster, Run& run)
    {
        if (!run.clean || run.begin == run.end) {
            return;
        }
        const KnownOfWork known(cluster, *this);
        const auto finding = warp_.cta.shadow->read(agent, run.begin, run.end - run.begin, Proxy::async, "wgmma",
                                                    line_of(operation), false, nullptr, Clocks::any_lane, &known);
        run.begin = run.end = 0;
        if (finding) {
            run.clean = false;
            cluster.report(*this, *finding);
        }
    }

    void report_bounds(Cluster& cluster, const OperandTile& tile, const char* name, unsigned line,
                       std::uint32_t address)
    {
        cluster.report(*this, FindingKind::out_of_bounds,
                       fmt::format("the descriptor of {} (start {:#x}, leading offset {}, stride offset {}) reaches "
                                   "address {:#x} in line {}, outside of the CTA's shared memory [{:#x}, {:#x})",
                                   name, tile.descriptor.start, tile.descriptor.leading, tile.descriptor.stride,
                                   address, line, shared_base, shared_base + warp_.cta.shared.size()));
    }

    Warp& warp_;
    const WgmmaPayload& payload_;
    std::shared_ptr<WgmmaAccumulator> accumulator_;
};

}  // namespace tessera::emulator
