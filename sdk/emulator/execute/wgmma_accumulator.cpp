// Registers that wgmmas use after they were issued: accumulators, and A.
//
// PTX leaves every access before wgmma.wait_group undefined, and ptxas waits before it. Here, too: an instruction that
// accesses a register of an accumulator waits until the wgmma is complete, and then works with the right values. If it
// is more than a move, it is reported; Warp::pass_on_in_flight follows what a move has copied.

#include <fmt/format.h>

#include <algorithm>

#include "execute/wgmma_state.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {
namespace {

void read_registers(WgmmaAccumulator& accumulator)
{
    const auto row_of = [&](unsigned index) { return accumulator.registers.row(index); };
    if (accumulator.fragment.packed) {
        accumulator.fragment.gather_f16(row_of, reinterpret_cast<float*>(accumulator.values.data()));
    } else {
        accumulator.fragment.gather<std::uint32_t>(row_of, accumulator.values.data());
    }
}

/// Writes the values to the registers, if their function has not returned.
void write_registers(WgmmaAccumulator& accumulator)
{
    accumulator.in_registers = true;
    if (!accumulator.registers.exist()) {
        return;
    }
    const auto row_of = [&](unsigned index) { return accumulator.registers.row(index); };
    if (accumulator.fragment.packed) {
        accumulator.fragment.scatter_f16(row_of, reinterpret_cast<const float*>(accumulator.values.data()), all_lanes);
    } else {
        accumulator.fragment.scatter<std::uint32_t>(row_of, accumulator.values.data(), all_lanes);
    }
}

/// Waits until the wgmmas of the accumulator are complete, and writes the values to the registers. Returns false while
/// they are not complete: Split::wait is set.
bool settle(Warp& warp, WgmmaAccumulator& accumulator)
{
    if (accumulator.in_registers) {
        return true;
    }
    if (warpgroup_state(warp).completed < accumulator.end) {
        warp.split().wait = {.kind = Wait::Kind::async_group, .phase = accumulator.end};
        return false;
    }
    write_registers(accumulator);
    return true;
}

/// The same for all accumulators in flight that have one of these registers.
bool settle(Warp& warp, const Frame* frame, std::span<const Ref> refs)
{
    return std::ranges::all_of(warpgroup_state(warp).in_flight, [&](const auto& accumulator) {
        return std::ranges::none_of(refs, [&](Ref ref) { return accumulator->registers.contain(frame, ref); }) ||
               settle(warp, *accumulator);
    });
}

/// Remembers for wgmma.fence that `operation` has written `row`; null: nothing has since the last fence.
void note_write(WarpgroupState& state, const Frame* frame, const Operation* operation, Ref row)
{
    constexpr std::uint32_t row_alignment = 64;  // of registers in a frame, except for predicates
    if (row >= in_constants) {
        return;
    }
    if (state.written_in != frame->generation) {
        state.written.clear();
        state.written_in = frame->generation;
    }
    const std::size_t place = row / row_alignment;
    if (state.written.size() <= place) {
        state.written.resize(frame->function->register_bytes / row_alignment + 1);
    }
    state.written[place] = {operation != nullptr ? state.fences + 1 : 0, operation};
}

/// The same for all that the operation writes. A move that packs registers writes what its sources wrote: compilers pack
/// the registers of A after the fence, because nothing in the PTX text says that it is about registers.
void note_writes(Warp& warp, WarpgroupState& state, const Operation& operation, const OperandRoles& roles)
{
    const Frame* const frame = warp.split().frame;
    const Operation* writer = &operation;
    const auto is_register = [](const OperandRole& role) { return role.row < in_constants; };
    if (warp.cluster.grid.program.effects.of(warp.split().pc).flow == ValueFlow::moved && roles.reads.size() > 1 &&
        std::ranges::all_of(roles.reads, is_register)) {
        writer = nullptr;
        for (const OperandRole& role : roles.reads) {
            const WarpgroupState::Written* const written =
                state.written_in == frame->generation ? state.written_since_fence(role.row) : nullptr;
            writer = written != nullptr ? written->operation : writer;
        }
    }
    for (const OperandRole& role : roles.writes) {
        note_write(state, frame, writer, role.row);
    }
}

void report_write(Warp& warp, const Operation& operation, LaneMask lanes, const Operation& wgmma, const char* what)
{
    warp.report(operation, FindingKind::async_read_pending, lanes,
                fmt::format("this instruction writes a register of {} of the wgmma at PTX line {}, for which this warp "
                            "has not waited; commit the wgmma (wgmma.commit_group) and wait for its group "
                            "(wgmma.wait_group) first, in each warp of the warpgroup",
                            what, wgmma.source->location.line));
}

}  // namespace

FrameRegisters::FrameRegisters(Frame* frame_, std::span<const Ref> refs_, std::span<const Ref> sorted_)
    : frame(frame_), generation(frame_->generation), refs(refs_), sorted(sorted_)
{}

bool FrameRegisters::contain(const Frame* of, Ref ref) const noexcept
{
    return of == frame && exist() && !sorted.empty() && ref >= sorted.front() && ref <= sorted.back() &&
           std::ranges::binary_search(sorted, ref);
}

bool FrameRegisters::overlap(const FrameRegisters& other) const noexcept
{
    return std::ranges::any_of(other.refs, [&](Ref ref) { return contain(other.frame, ref); });
}

bool FrameRegisters::operator==(const FrameRegisters& other) const noexcept
{
    return frame == other.frame && generation == other.generation && std::ranges::equal(refs, other.refs);
}

bool access_late_registers(Warp& warp, const Operation& operation, LaneMask active)
{
    if (warp.warpgroup == nullptr) {
        return true;
    }
    WarpgroupState& state = *warp.warpgroup;
    const OperandRoles roles = warp.cluster.grid.program.effects.roles(warp.split().pc);
    const Frame* const frame = warp.split().frame;
    for (const std::span<const OperandRole> some : {roles.addresses, roles.reads, roles.writes}) {
        if (!std::ranges::all_of(some, [&](const OperandRole& role) { return settle(warp, frame, {&role.row, 1}); })) {
            return false;
        }
    }
    if (!warp.checks()) {
        return true;
    }
    for (const auto& accumulator : state.in_flight) {
        const auto in_flight = [&](const OperandRole& role) { return accumulator->registers.contain(frame, role.row); };
        if (std::ranges::any_of(roles.writes, in_flight)) {
            report_write(warp, operation, active, *accumulator->last, "the accumulator");
        }
        for (const std::span<const OperandRole> sources : {roles.addresses, roles.reads}) {
            for (const OperandRole& role : sources) {
                if (in_flight(role)) {
                    warp.follow_in_flight(*accumulator->last, role.row, accumulator->end);
                }
            }
        }
    }
    for (const WgmmaOperandRegisters& operand : state.operands) {
        if (std::ranges::any_of(roles.writes,
                                [&](const OperandRole& role) { return operand.registers.contain(frame, role.row); })) {
            report_write(warp, operation, active, *operand.operation, "A");
        }
    }
    note_writes(warp, state, operation, roles);
    return true;
}

void check_fence(Warp& warp, const Operation& wgmma, std::span<const Ref> refs, const char* what)
{
    const WarpgroupState& state = warpgroup_state(warp);
    if (state.written.empty() || state.written_in != warp.split().frame->generation) {
        return;
    }
    for (const Ref ref : refs) {
        const WarpgroupState::Written* const written = state.written_since_fence(ref);
        if (written != nullptr) {
            const ptx::Instruction& write = *written->operation->source;
            warp.report(wgmma, FindingKind::invalid_operand, all_lanes,
                        fmt::format("a register of {} was written by \"{}\" (PTX line {}), with no wgmma.fence between "
                                    "that write and this wgmma; put wgmma.fence.sync.aligned before the wgmma",
                                    what, write.text, write.location.line));
            return;
        }
    }
}

void overwrite_accumulator(Warp& warp, std::span<const Ref> refs)
{
    WarpgroupState& state = warpgroup_state(warp);
    if (state.written_in == warp.split().frame->generation) {
        std::ranges::for_each(refs, [&](Ref ref) { note_write(state, warp.split().frame, nullptr, ref); });
    }
}

bool access_a(Warp& warp, const Operation& wgmma, std::span<const Ref> refs)
{
    const Frame* const frame = warp.split().frame;
    if (!settle(warp, frame, refs)) {
        return false;
    }
    for (const auto& accumulator : warpgroup_state(warp).in_flight) {
        for (const Ref ref : refs) {
            if (warp.checks() && accumulator->registers.contain(frame, ref)) {
                warp.follow_in_flight(*accumulator->last, ref, accumulator->end);
                warp.report_in_flight(wgmma, ref, all_lanes);
            }
        }
    }
    return true;
}

bool settle_overlapping(Warp& warp, const FrameRegisters& registers, bool& found)
{
    found = false;
    for (const auto& known : warpgroup_state(warp).in_flight) {
        if (known->registers != registers && known->registers.overlap(registers)) {
            if (!settle(warp, *known)) {
                return false;
            }
            found = true;
        }
    }
    return true;
}

std::shared_ptr<WgmmaAccumulator> take_accumulator(Warp& warp, FrameRegisters registers,
                                                   const AccumulatorFragment& fragment, bool read_them)
{
    WarpgroupState& state = warpgroup_state(warp);
    const auto known =
        std::ranges::find_if(state.in_flight, [&](const auto& candidate) { return candidate->registers == registers; });
    std::shared_ptr<WgmmaAccumulator> accumulator;
    if (known != state.in_flight.end()) {
        accumulator = *known;
        if (!accumulator->in_registers) {
            return accumulator;
        }
    } else {
        accumulator = std::make_shared<WgmmaAccumulator>();
        accumulator->registers = registers;
        accumulator->values.resize(std::size_t{fragment.rows} * fragment.columns);
        state.in_flight.push_back(accumulator);
    }
    accumulator->fragment = fragment;
    accumulator->in_registers = false;
    if (read_them) {
        read_registers(*accumulator);
    }
    return accumulator;
}

void waited(Warp& warp, std::uint64_t end)
{
    WarpgroupState& state = warpgroup_state(warp);
    std::erase_if(state.in_flight, [&](const std::shared_ptr<WgmmaAccumulator>& accumulator) {
        if (accumulator->end > end) {
            return false;
        }
        if (!accumulator->in_registers) {
            write_registers(*accumulator);
        }
        return true;
    });
    std::erase_if(state.operands, [&](const WgmmaOperandRegisters& operand) { return operand.end <= end; });
    warp.end_in_flight(end);
}

}  // namespace tessera::emulator
