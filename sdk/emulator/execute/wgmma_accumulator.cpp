#include <fmt/format.h>

#include <algorithm>

#include "execute/wgmma_state.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {
namespace {

// Poison is a quiet NaN as f32, and has a NaN in the upper half as f16x2.
constexpr std::uint32_t poison_base = 0x7FE0'0000;
constexpr std::uint32_t tokens = 128;                  // number of accumulators with different poison
constexpr std::uint32_t token_size = 128 * warp_size;  // registers x lanes of the largest accumulator

bool is_poison(const std::uint32_t* row, std::uint32_t token)
{
    std::uint32_t different = 0;
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
        different |= row[lane] ^ (token + lane);
    }
    return different == 0;
}

void poison(const WgmmaAccumulator& accumulator)
{
    for (std::uint32_t index = 0; index < accumulator.registers.refs.size(); ++index) {
        std::uint32_t* row = accumulator.registers.row(index);
        const std::uint32_t token = accumulator.token + index * warp_size;
        for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
            row[lane] = token + lane;
        }
    }
}

void read_registers(WgmmaAccumulator& accumulator)
{
    const auto row_of = [&](unsigned index) { return accumulator.registers.row(index); };
    if (accumulator.fragment.packed) {
        accumulator.fragment.gather_f16(row_of, reinterpret_cast<float*>(accumulator.values.data()));
    } else {
        accumulator.fragment.gather<std::uint32_t>(row_of, accumulator.values.data());
    }
}

/// Calls `row_of(index)` for the place of each register and writes the value there.
template <typename RowOf>
void write_registers(const WgmmaAccumulator& accumulator, RowOf&& row_of)
{
    if (accumulator.fragment.packed) {
        accumulator.fragment.scatter_f16(row_of, reinterpret_cast<const float*>(accumulator.values.data()), all_lanes);
    } else {
        accumulator.fragment.scatter<std::uint32_t>(row_of, accumulator.values.data(), all_lanes);
    }
}

/// Returns true if the frame belongs to a function that the current split is in.
bool is_live(Warp& warp, const Frame* frame)
{
    for (const Frame* live = warp.split().frame; live != nullptr; live = live->caller) {
        if (live == frame) {
            return true;
        }
    }
    return false;
}

bool overlap(const FrameRegisters& a, const FrameRegisters& b)
{
    return a.frame == b.frame && std::any_of(a.refs.begin(), a.refs.end(), [&](Ref ref) {
               return std::find(b.refs.begin(), b.refs.end(), ref) != b.refs.end();
           });
}

/// The values as registers hold them.
std::vector<std::array<std::uint32_t, warp_size>> register_values(const WgmmaAccumulator& accumulator)
{
    std::vector<std::array<std::uint32_t, warp_size>> rows(accumulator.registers.refs.size());
    write_registers(accumulator, [&](unsigned index) { return rows[index].data(); });
    return rows;
}

/// Replaces copies of the poison in the registers of all functions that the warp is in.
void resolve_copies(Warp& warp, const WgmmaAccumulator& accumulator)
{
    constexpr std::uint32_t row_alignment = 64;  // of registers in a frame
    constexpr std::uint32_t row_size = 4 * warp_size;
    std::vector<std::array<std::uint32_t, warp_size>> values;
    for (Frame* frame = warp.split().frame; frame != nullptr; frame = frame->caller) {
        const std::uint32_t bytes = frame->function->register_bytes;
        for (std::uint32_t offset = 0; offset + row_size <= bytes; offset += row_alignment) {
            auto* row = reinterpret_cast<std::uint32_t*>(frame->registers + offset);
            const std::uint32_t place = row[0] - accumulator.token;
            const std::uint32_t index = place / warp_size;
            if (place % warp_size == 0 && index < accumulator.registers.refs.size() && is_poison(row, row[0])) {
                if (values.empty()) {
                    values = register_values(accumulator);
                }
                std::copy(values[index].begin(), values[index].end(), row);
            }
        }
    }
}

void write_back(Warp& warp, const WgmmaAccumulator& accumulator)
{
    if (!is_live(warp, accumulator.registers.frame)) {
        return;
    }
    std::size_t first = 0;
    const std::size_t count = accumulator.registers.refs.size();
    while (first < count && is_poison(accumulator.registers.row(first),
                                      accumulator.token + static_cast<std::uint32_t>(first) * warp_size)) {
        ++first;
    }
    if (first < count && warp.checks()) {
        warp.report(*accumulator.last, FindingKind::async_read_pending, all_lanes,
                    fmt::format("register {} of this wgmma's accumulator was written while the wgmma was in flight: "
                                "wait with wgmma.wait_group before you touch accumulator registers",
                                first));
    }
    resolve_copies(warp, accumulator);
    write_registers(accumulator, [&](unsigned index) { return accumulator.registers.row(index); });
}

void check_operands(Warp& warp, const WgmmaOperandRegisters& operand)
{
    if (!is_live(warp, operand.registers.frame)) {
        return;
    }
    for (std::size_t index = 0; index < operand.values.size(); ++index) {
        const std::uint32_t* row = operand.registers.row(index);
        if (!std::equal(row, row + warp_size, operand.values[index].begin())) {
            warp.report(*operand.operation, FindingKind::async_read_pending, all_lanes,
                        fmt::format("A register {} of this wgmma was written while the wgmma was in flight and may "
                                    "still read it: wait with wgmma.wait_group before you reuse the registers",
                                    index));
            return;
        }
    }
}

/// Reports accumulator registers that other instructions wrote since the last wgmma's result, with no wgmma.fence
/// since.
void check_fence(Warp& warp, const Operation& operation, const FrameRegisters& registers)
{
    for (const auto& written : warpgroup_state(warp).written_back) {
        if (written->registers != registers) {
            continue;
        }
        const auto values = register_values(*written);
        for (std::size_t index = 0; index < values.size(); ++index) {
            const std::uint32_t* row = registers.row(index);
            if (!std::equal(values[index].begin(), values[index].end(), row)) {
                warp.report(
                    operation, FindingKind::invalid_operand, all_lanes,
                    fmt::format(
                        "accumulator register {} was written by other instructions after the last wgmma.wait_group, "
                        "with no wgmma.fence between that write and this wgmma; put wgmma.fence.sync.aligned before "
                        "the wgmma",
                        index));
                return;
            }
        }
    }
}

}  // namespace

std::shared_ptr<WgmmaAccumulator> take_accumulator(Warp& warp, const Operation& operation, FrameRegisters registers,
                                                   const AccumulatorFragment& fragment, bool read_them)
{
    WarpgroupState& state = warpgroup_state(warp);
    for (const auto& known : state.in_flight) {
        if (known->registers == registers) {
            return known;
        }
        if (overlap(known->registers, registers)) {
            return nullptr;
        }
    }
    if (read_them && warp.checks()) {
        check_fence(warp, operation, registers);
    }
    std::erase_if(state.written_back, [&](const auto& written) { return overlap(written->registers, registers); });
    auto accumulator = std::make_shared<WgmmaAccumulator>();
    accumulator->registers = std::move(registers);
    accumulator->fragment = fragment;
    accumulator->values.resize(std::size_t{fragment.rows} * fragment.columns);
    accumulator->token = poison_base + state.next_token * token_size;
    state.next_token = (state.next_token + 1) % tokens;
    if (read_them) {
        read_registers(*accumulator);
    }
    poison(*accumulator);
    state.in_flight.push_back(accumulator);
    return accumulator;
}

void write_back(Warp& warp, std::uint64_t end)
{
    WarpgroupState& state = warpgroup_state(warp);
    std::erase_if(state.in_flight, [&](const std::shared_ptr<WgmmaAccumulator>& accumulator) {
        if (accumulator->end > end) {
            return false;
        }
        write_back(warp, *accumulator);
        state.written_back.push_back(accumulator);
        return true;
    });
    std::erase_if(state.operands, [&](const WgmmaOperandRegisters& operand) {
        if (operand.end > end) {
            return false;
        }
        check_operands(warp, operand);
        return true;
    });
}

void report_early_use(Warp& warp, std::uint32_t pc)
{
    WarpgroupState& state = warpgroup_state(warp);
    if (state.in_flight.empty() ||
        !state.inspected.emplace(pc, state.in_flight.front()->registers.refs.front()).second) {
        return;
    }
    const Frame* frame = warp.split().frame;
    const auto owner = [&](Ref ref) -> const WgmmaAccumulator* {
        for (const auto& accumulator : state.in_flight) {
            const auto& refs = accumulator->registers.refs;
            if (accumulator->registers.frame == frame && std::find(refs.begin(), refs.end(), ref) != refs.end()) {
                return accumulator.get();
            }
        }
        return nullptr;
    };
    for (std::uint32_t next = pc; next < frame->function->end; ++next) {
        const Operation& operation = warp.operation_at(next);
        const bool is_join = next != pc && operation.join;
        if (operation.source == nullptr || operation.kind == InstructionClass::control || is_join ||
            operation.source->opcode == "wgmma") {
            return;
        }
        if (operation.guard != no_row || operation.source->opcode == "mov") {
            continue;
        }
        for (const Ref ref : operation.operand) {
            if (ref != no_row && owner(ref) != nullptr) {
                warp.report(
                    operation, FindingKind::async_read_pending, all_lanes,
                    "this instruction uses an accumulator register of a wgmma that is in flight; commit the wgmma "
                    "(wgmma.commit_group) and wait for its group (wgmma.wait_group) first");
                return;
            }
        }
    }
}

}  // namespace tessera::emulator
