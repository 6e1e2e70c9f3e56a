// bar, barrier, bar.warp.sync and barrier.cluster (PTX ISA 9.7.13.1-3), and the table of all instructions on barriers.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "execute/barrier_families.hpp"
#include "execute/lanewise.hpp"
#include "execute/row_copies.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/warp.hpp"
#include "program/decoder.hpp"

namespace tessera::emulator {

namespace {

using ptx::Type;

enum class Reduction : std::uint8_t { none, population, conjunction, disjunction };

struct NamedPayload : Payload {
    bool aligned = false, waits = true;
    Reduction reduction = Reduction::none;
    Decoder::Predicate predicate;
};

// Operands of bar and barrier.
constexpr std::size_t number_row = 0, count_row = 1, result_row = 2;

std::uint32_t whole_warps(std::uint32_t threads) { return (threads + warp_size - 1) / warp_size * warp_size; }

/// Returns true if all threads of the cluster wait at this barrier.
bool all_wait(const Cta& cta, unsigned number)
{
    const auto waits = [&](const Warp& warp) {
        const WarpBarriers& state = warp.barriers;
        if (warp.finished() || (warp.live() & ~(cta.barriers[number].lanes[warp.index] & state.at_named)) != 0) {
            return false;
        }
        bool here = true;
        for_each_lane(warp.live(), [&](unsigned lane) { here = here && state.named[lane] == number; });
        return here;
    };
    return cta.cluster.ctas.size() == 1 &&
           std::ranges::all_of(cta.warps, [&](const auto& warp) { return waits(*warp); });
}

void complete(Cta& cta, unsigned number)
{
    NamedBarrier& barrier = cta.barriers[number];
    const bool begins_interval = cta.shadow != nullptr && all_wait(cta, number);
    if (barrier.reduction) {
        for (const auto& warp : cta.warps) {
            WarpBarriers& state = warp->barriers;
            for_each_lane(state.at_named, [&](unsigned lane) {
                if (state.named[lane] != number || state.named_phase[lane] != barrier.phase) {
                    return;
                }
                const LaneMask bit = LaneMask{1} << lane;
                state.reduced_count[lane] = barrier.reduction_count;
                state.reduced_and = barrier.reduction_and ? state.reduced_and | bit : state.reduced_and & ~bit;
                state.reduced_or = barrier.reduction_or ? state.reduced_or | bit : state.reduced_or & ~bit;
            });
        }
    }
    ++barrier.phase;
    barrier.completion = barrier.last_arrival;
    barrier.last_warps = barrier.arrived_warps;
    barrier.expected = barrier.arrivals = 0;
    barrier.arrived_warps = 0;
    barrier.lanes = {};
    barrier.all_threads = false;
    barrier.reduction = barrier.reduction_or = false;
    barrier.reduction_and = true;
    barrier.reduction_count = 0;
    barrier.completed.join(barrier.arriving);
    barrier.arriving.clear();
    if (begins_interval) {
        cta.cluster.clocks.begin_interval(barrier.completed);
    }
    cta.cluster.notify();
}

/// Also called when threads exit, so that the waiting threads check again.
void complete_if_due(Cta& cta, unsigned number)
{
    const NamedBarrier& barrier = cta.barriers[number];
    if (barrier.expected == 0) {
        return;
    }
    if (cta.threads_arrived(barrier) >= barrier.expected) {
        complete(cta, number);
    }
}

/// "0, 1 and 5"
std::string warps_text(std::uint64_t warps)
{
    std::string text;
    for (; warps != 0; warps &= warps - 1) {
        const bool last = (warps & (warps - 1)) == 0;
        text += fmt::format("{}{}", text.empty() ? "" : last ? " and " : ", ", std::countr_zero(warps));
    }
    return text;
}

/// A barrier counts threads; it does not know whose they are. A warp that cannot know that the last phase of other warps
/// is complete may be counted in that phase, and then releases them too early.
void check_order(Warp& warp, const Operation& operation, LaneMask lanes, unsigned number)
{
    const NamedBarrier& barrier = warp.cta.barriers[number];
    if (!warp.cluster.clocks.ordered(barrier.completion, warp.agent)) {
        warp.report(
            operation, FindingKind::barrier_misuse, lanes,
            fmt::format("warp {} arrives at barrier {} without knowing that the phase before it, of warps {}, is "
                        "complete: it may be counted there, and release them too early; use another barrier, or "
                        "synchronize with them first",
                        warp.index, number, warps_text(barrier.last_warps)));
    }
}

/// `lanes` arrive at one barrier with one count (0: all threads of the CTA).
void arrive(Warp& warp, const Operation& operation, LaneMask lanes, std::uint32_t number, std::uint32_t count)
{
    Cta& cta = warp.cta;
    const auto& payload = operation.as<NamedPayload>();
    if (number >= cta.barriers.size()) {
        warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, lanes,
                   fmt::format("barrier {} does not exist: a CTA has barriers 0 to 15", number));
    }
    if (count % warp_size != 0) {
        warp.fault(
            operation, FindingKind::invalid_operand, error_illegal_instruction, lanes,
            fmt::format("the thread count of barrier {} is {}; it must be a multiple of {}", number, count, warp_size));
    }
    const bool all_threads = operation.operand[count_row] == no_row;
    if (count == 0 && !all_threads) {
        warp.fault(
            operation, FindingKind::invalid_operand, error_illegal_instruction, lanes,
            fmt::format("the thread count of barrier {} is 0; give the number of participating threads", number));
    }
    const std::uint32_t threads = whole_warps(cta.threads);
    const std::uint32_t expected = all_threads ? threads : count;
    NamedBarrier& barrier = cta.barriers[number];
    if (barrier.expected == 0) {
        barrier.expected = expected;
        barrier.all_threads = all_threads;
        if (expected > threads) {
            warp.report(operation, FindingKind::barrier_misuse, lanes,
                        fmt::format("barrier {} waits for {} threads, the CTA has {}: it can never complete", number,
                                    expected, cta.threads));
        }
    } else if (barrier.expected != expected) {
        warp.report(operation, FindingKind::barrier_misuse, lanes,
                    fmt::format("threads arrive at barrier {} with a count of {} while others wait there with {}: all "
                                "threads of one phase must give the same count",
                                number, expected, barrier.expected));
    }
    if (warp.checks()) {
        // For relaxed accesses, too, the barrier is a fence among the CTA's threads.
        warp.cluster.clocks.fence(warp.agent, {Semantics::acquire, Scope::cta}, warp.barriers.fences);
        check_order(warp, operation, lanes, number);
        barrier.last_arrival = warp.cluster.clocks.now(warp.agent);
        warp.cluster.clocks.release(warp.agent, barrier.arriving);
    }
    barrier.arrivals += static_cast<std::uint32_t>(std::popcount(lanes));
    barrier.arrived_warps |= std::uint64_t{1} << warp.index;
    barrier.lanes[warp.index] |= lanes;
    if (payload.reduction != Reduction::none) {
        const LaneMask yes = warp.predicate(payload.predicate) & lanes;
        barrier.reduction = true;
        barrier.reduction_count += static_cast<std::uint32_t>(std::popcount(yes));
        barrier.reduction_and = barrier.reduction_and && yes == lanes;
        barrier.reduction_or = barrier.reduction_or || yes != 0;
    }
    const std::uint32_t arrived = cta.threads_arrived(barrier);
    if (arrived > barrier.expected && barrier.expected <= threads) {
        warp.report(operation, FindingKind::barrier_misuse, lanes,
                    fmt::format("{} threads arrive at barrier {}, which expects {}: the count is too small", arrived,
                                number, barrier.expected));
    }
    if (payload.waits) {
        WarpBarriers& state = warp.barriers;
        state.at_named |= lanes;
        fill_row(state.named.data(), lanes, static_cast<std::uint8_t>(number));
        fill_row(state.named_phase.data(), lanes, barrier.phase);
    }
    complete_if_due(cta, number);
}

void arrive_all(Warp& warp, const Operation& operation, LaneMask lanes)
{
    const std::uint32_t* numbers = warp.row<std::uint32_t>(operation.operand[number_row]);
    const Ref counts_ref = operation.operand[count_row];
    const std::uint32_t* counts = counts_ref == no_row ? nullptr : warp.row<std::uint32_t>(counts_ref);
    for (LaneMask rest = lanes; rest != 0;) {
        const auto first = static_cast<unsigned>(std::countr_zero(rest));
        const LaneMask same = rest & equal_lanes(numbers, numbers[first]) &
                              (counts == nullptr ? all_lanes : equal_lanes(counts, counts[first]));
        arrive(warp, operation, same, numbers[first], counts == nullptr ? 0 : counts[first]);
        rest &= ~same;
    }
}

void write_reduction(Warp& warp, const Operation& operation, LaneMask active)
{
    const WarpBarriers& state = warp.barriers;
    const Ref result = operation.operand[result_row];
    switch (operation.as<NamedPayload>().reduction) {
        case Reduction::none: break;
        case Reduction::population:
            for_each_lane(active,
                          [&](unsigned lane) { warp.row<std::uint32_t>(result)[lane] = state.reduced_count[lane]; });
            break;
        case Reduction::conjunction: warp.set_predicate(result, active, state.reduced_and); break;
        case Reduction::disjunction: warp.set_predicate(result, active, state.reduced_or); break;
    }
}

Step execute_named(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<NamedPayload>();
    WarpBarriers& state = warp.barriers;
    const LaneMask fresh = active & ~state.at_named;
    if (fresh != 0) {
        if (payload.aligned && !warp.gather_aligned(operation)) {
            return Step::wait;
        }
        arrive_all(warp, operation, fresh);
    }
    if (!payload.waits) {
        return Step::next;
    }
    LaneMask done = 0;
    for (LaneMask rest = active; rest != 0;) {
        const auto first = static_cast<unsigned>(std::countr_zero(rest));
        const std::uint8_t number = state.named[first];
        const std::uint64_t phase = state.named_phase[first];
        const LaneMask same =
            rest & equal_lanes(state.named.data(), number) & equal_lanes(state.named_phase.data(), phase);
        const NamedBarrier& barrier = warp.cta.barriers[number];
        if (barrier.phase == phase && rest == active && fresh != active) {  // else arrive() has
            complete_if_due(warp.cta, number);
        }
        done |= barrier.phase != phase ? same : 0;
        rest &= ~same;
    }
    if (done != active) {
        warp.cluster.statistics.barrier_stalls += warp.split().wait.kind == Wait::Kind::named_barrier ? 0 : 1;
        const auto waiting = static_cast<unsigned>(std::countr_zero(active & ~done));
        warp.split().wait = {Wait::Kind::named_barrier, state.named[waiting], warp.cta.rank, state.named_phase[waiting],
                             active & ~done};
        return Step::wait;
    }
    state.at_named &= ~active;
    if (warp.checks()) {
        for (LaneMask rest = active; rest != 0;) {
            const std::uint8_t number = state.named[static_cast<unsigned>(std::countr_zero(rest))];
            warp.cluster.clocks.acquire(warp.agent, warp.cta.barriers[number].completed);
            rest &= ~equal_lanes(state.named.data(), number);
        }
        warp.cluster.clocks.fence(warp.agent, {Semantics::release, Scope::cta}, warp.barriers.fences);
    }
    write_reduction(warp, operation, active);
    return Step::next;
}

/// Each lane waits for the lanes in its own mask: several groups of a warp may synchronize in one instruction.
Step execute_warp_sync(Warp& warp, const Operation& operation, LaneMask active)
{
    const std::uint32_t* masks = warp.row<std::uint32_t>(operation.operand[0]);
    LaneMask left_out = 0;
    for (LaneMask rest = active; rest != 0;) {
        const LaneMask members = masks[std::countr_zero(rest)];
        const LaneMask same = rest & equal_lanes(masks, members);
        left_out |= same & ~members;
        rest &= ~same;
        if ((same & members) != 0 && !warp.gather(members)) {
            return Step::wait;
        }
        if (warp.checks()) {
            warp.cluster.clocks.sync_lanes(warp.agent, members, warp.live());
        }
    }
    if (left_out != 0) {
        warp.report(operation, FindingKind::invalid_operand, left_out,
                    fmt::format("lanes {:#010x} execute bar.warp.sync with a mask that does not name them", left_out));
    }
    return Step::next;
}

struct ClusterPayload : Payload {
    bool aligned = false, relaxed = false;
};

void complete_cluster_if_due(Cluster& cluster)
{
    for (const auto& cta : cluster.ctas) {
        for (const auto& warp : cta->warps) {
            if ((warp->live() & ~warp->barriers.cluster_current) != 0) {
                return;
            }
        }
    }
    ClusterBarrier& barrier = cluster.barrier;
    if (barrier.arrived == 0) {
        return;
    }
    for (const auto& cta : cluster.ctas) {
        for (const auto& warp : cta->warps) {
            warp->barriers.cluster_current = 0;
            if (warp->finished() && warp->checks()) {  // waiting threads see that this warp has finished
                cluster.clocks.release(warp->agent, barrier.arriving);
            }
        }
    }
    ++barrier.phase;
    barrier.arrived = 0;
    barrier.completed.join(barrier.arriving);
    barrier.arriving.clear();
    barrier.relaxed.join(barrier.relaxed_arriving);
    barrier.relaxed_arriving.clear();
    cluster.notify();
}

Step execute_cluster_arrive(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<ClusterPayload>();
    if (payload.aligned && !warp.gather_aligned(operation)) {
        return Step::wait;
    }
    ClusterBarrier& barrier = warp.cluster.barrier;
    WarpBarriers& state = warp.barriers;
    if (const LaneMask again = active & state.cluster_open; again != 0) {
        warp.report(operation, FindingKind::cluster_protocol, again,
                    "barrier.cluster.arrive twice without barrier.cluster.wait in between");
    }
    if (warp.checks()) {
        if (payload.relaxed) {
            barrier.arriving.join(state.fences.fenced_wide);
            warp.cluster.clocks.release(warp.agent, barrier.relaxed_arriving);
        } else {
            warp.cluster.clocks.release(warp.agent, barrier.arriving);
        }
    }
    state.cluster_current |= active;
    state.cluster_open |= active;
    barrier.arrived += static_cast<std::uint32_t>(std::popcount(active));
    for_each_lane(active, [&](unsigned lane) { state.cluster_phase[lane] = barrier.phase; });
    complete_cluster_if_due(warp.cluster);
    return Step::next;
}

Step execute_cluster_wait(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<ClusterPayload>();
    if (payload.aligned && !warp.gather_aligned(operation)) {
        return Step::wait;
    }
    ClusterBarrier& barrier = warp.cluster.barrier;
    WarpBarriers& state = warp.barriers;
    if (const LaneMask early = active & ~state.cluster_open; early != 0) {
        warp.report(operation, FindingKind::cluster_protocol, early,
                    "barrier.cluster.wait without barrier.cluster.arrive: execute the arrive first");
    }
    complete_cluster_if_due(warp.cluster);  // threads may have exited
    LaneMask waiting = 0;
    for_each_lane(active & state.cluster_open, [&](unsigned lane) {
        waiting |= state.cluster_phase[lane] == barrier.phase ? LaneMask{1} << lane : 0;
    });
    if (waiting != 0) {
        warp.cluster.statistics.barrier_stalls += warp.split().wait.kind == Wait::Kind::cluster_barrier ? 0 : 1;
        warp.split().wait = {Wait::Kind::cluster_barrier, 0, warp.cta.rank, barrier.phase, waiting};
        return Step::wait;
    }
    state.cluster_open &= ~active;
    state.cluster_has_started = true;
    if (warp.checks()) {
        warp.cluster.clocks.acquire(warp.agent, barrier.completed);
    }
    return Step::next;
}

// --- decoding ---

void decode_cluster(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<ClusterPayload>();
    if (decoder.device().max_cluster == 0) {
        decoder.fail(fmt::format("barrier.cluster needs compute capability 9.0, {} has {}.{}", decoder.device().name,
                                 decoder.device().major, decoder.device().minor));
    }
    payload.aligned = decoder.take("aligned");
    if (payload.aligned) {
        decoder.mark_aligned();
    }
    if (decoder.take("arrive")) {
        payload.relaxed = decoder.take_one_of({"relaxed", "release"}) == "relaxed";
        operation.execute = execute_cluster_arrive;
        decoder.effects().sync = {.object = SyncObject::cluster_barrier,
                                  .arrives = true,
                                  .order = {payload.relaxed ? Semantics::relaxed : Semantics::release, Scope::cluster}};
    } else if (decoder.take("wait")) {
        decoder.take("acquire");
        operation.execute = execute_cluster_wait;
        decoder.effects().may_wait = true;
        decoder.effects().sync = {
            .object = SyncObject::cluster_barrier, .waits = true, .order = {Semantics::acquire, Scope::cluster}};
    } else {
        decoder.fail("barrier.cluster needs .arrive or .wait");
    }
    if (decoder.operands() != 0) {
        decoder.fail("barrier.cluster has no operands");
    }
}

/// bar and barrier: `aligned_always` for bar.
void decode_named(Decoder& decoder, Operation& operation, bool aligned_always)
{
    auto& payload = decoder.emplace_payload<NamedPayload>();
    decoder.take("cta");
    payload.aligned = decoder.take("aligned") || aligned_always;
    if (payload.aligned) {
        decoder.mark_aligned();
    }
    operation.execute = execute_named;
    std::size_t number = 0;
    if (decoder.take("red")) {
        const std::string_view which = decoder.take_one_of({"popc", "and", "or"});
        payload.reduction = which == "popc"  ? Reduction::population
                            : which == "and" ? Reduction::conjunction
                                             : Reduction::disjunction;
        const Type type = decoder.require_type();
        if (which.empty() || type != (which == "popc" ? Type::u32 : Type::pred)) {
            decoder.fail("the forms are .red.popc.u32, .red.and.pred and .red.or.pred");
        }
        operation.operand[result_row] = decoder.write(0, type);
        payload.predicate = decoder.read_predicate(decoder.operands() - 1);
        number = 1;
    } else if (decoder.take("arrive")) {
        payload.waits = false;
        if (decoder.operands() != 2) {
            decoder.fail("an arrival needs the barrier and the number of threads");
        }
    } else if (!decoder.take("sync")) {
        decoder.fail("one of .sync, .arrive and .red is needed");
    }
    const std::size_t counted = number + (payload.reduction == Reduction::none ? 1U : 2U);
    if (decoder.operands() != counted && decoder.operands() != counted + 1) {
        decoder.fail(
            fmt::format("{} operands are given, {} or {} are needed", decoder.operands(), counted, counted + 1));
    }
    decoder.effects().may_wait = payload.aligned || payload.waits;
    decoder.effects().sync = {.object = SyncObject::named_barrier,
                              .arrives = true,
                              .waits = payload.waits,
                              .order = {payload.waits ? Semantics::acq_rel : Semantics::release, Scope::cta}};
    operation.operand[number_row] = decoder.read(number, Type::u32);
    if (decoder.operands() > counted) {
        operation.operand[count_row] = decoder.read(number + 1, Type::u32);
    }
}

void decode_bar(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::barrier;
    if (decoder.take("warp")) {
        if (!decoder.take("sync") || decoder.operands() != 1) {
            decoder.fail("the form is bar.warp.sync membermask");
        }
        operation.operand[0] = decoder.read(0, Type::b32);
        operation.execute = execute_warp_sync;
        Effects& effects = decoder.effects();
        effects.lanes = Convergence::named;
        effects.may_wait = true;
        effects.sync = {
            .object = SyncObject::lanes, .arrives = true, .waits = true, .order = {Semantics::acq_rel, Scope::cta}};
        return;
    }
    decode_named(decoder, operation, true);
}

void decode_barrier(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::barrier;
    if (decoder.take("cluster")) {
        decode_cluster(decoder, operation);
    } else {
        decode_named(decoder, operation, false);
    }
}

}  // namespace

std::span<const InstructionEntry> barrier_instructions()
{
    static constexpr std::array entries{
        InstructionEntry{"bar", decode_bar},           InstructionEntry{"barrier", decode_barrier},
        InstructionEntry{"mbarrier", decode_mbarrier}, InstructionEntry{"fence", decode_fence},
        InstructionEntry{"membar", decode_membar},
    };
    return entries;
}

}  // namespace tessera::emulator
