// mbarrier.* (PTX ISA 9.7.13.15).

#include <fmt/format.h>

#include <bit>

#include "execute/barrier_families.hpp"
#include "machine/fault.hpp"
#include "machine/mbarrier_access.hpp"
#include "machine/memory_access.hpp"

namespace tessera::emulator {

namespace {

using ptx::Type;

enum class Arrival : std::uint8_t { arrive, drop, expect_only, complete_only };

struct MbarrierPayload : Payload {
    AddressRef address;
    bool generic = false;  ///< no state space was given
    bool remote = false;   ///< .shared::cluster
    MemoryOrder order{};
    bool within_cta = false;  ///< .cta is written out
    Arrival arrival = Arrival::arrive;
    bool expects = false;  ///< .expect_tx
    bool no_complete = false;
    bool by_parity = false, blocks = false;  ///< test_wait, try_wait
};

// Operands.
constexpr std::size_t result_row = 0, value_row = 1;

// A state token: the phase, and the number of pending arrivals.
constexpr unsigned token_shift = 20;
std::uint64_t token_of(const Mbarrier& barrier)
{
    return barrier.phase << token_shift | static_cast<std::uint64_t>(barrier.pending);
}

std::uint64_t address_of(const Warp& warp, const MbarrierPayload& payload, unsigned lane)
{
    const std::uint64_t address = warp.address(payload.address, lane);
    return payload.generic ? address : address & 0xFFFF'FFFFU;
}

/// The CTA, for its own barriers; faults if the 8 bytes are not accessible.
Cta& own_memory(Warp& warp, const Operation& operation, std::uint32_t address, unsigned lane)
{
    if (address % 8 != 0) {
        warp.fault(operation, FindingKind::misaligned, error_misaligned_address, bit(lane),
                   fmt::format("mbarrier at shared {:#x}: the address must be a multiple of 8", address));
    }
    Cta* const cta = warp.cluster.cta_of(address);
    if (cta != &warp.cta) {
        warp.report(
            operation, FindingKind::barrier_misuse, bit(lane),
            fmt::format(
                "mbarrier at shared {:#x}, which is CTA {}'s: a thread of CTA {} can only initialize, invalidate "
                "and wait on its own CTA's",
                address, address >> shared_rank_shift, warp.cta.rank));
    }
    if (cta == nullptr || cta->shared_bytes(address, 8) == nullptr) {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit(lane),
                   fmt::format("mbarrier at shared {:#x}: outside of the CTA's {} bytes of shared memory", address,
                               warp.cta.shared.size()));
    }
    return *cta;
}

Step execute_init(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MbarrierPayload>();
    const std::uint32_t* counts = warp.row<std::uint32_t>(operation.operand[value_row]);
    for_each_lane(active, [&](unsigned lane) {
        const std::uint32_t address = to_shared_window(warp, operation, address_of(warp, payload, lane), lane);
        Cta& cta = own_memory(warp, operation, address, lane);
        const auto [entry, fresh] = cta.mbarriers.try_emplace(offset_in_cta(address));
        Mbarrier& barrier = entry->second;
        if (!fresh) {
            warp.report(
                operation, FindingKind::barrier_misuse, bit(lane),
                fmt::format("the mbarrier at shared {:#x} is initialized again ({}): execute mbarrier.inval first{}",
                            address, barrier.describe(),
                            barrier.copies == 0 ? "" : ", after the copies that complete on it"));
        }
        if (cta.exit_order != nullptr) {
            cta.exit_order->forget(offset_in_cta(address));
        }
        const std::uint32_t copies = barrier.copies;  // they still complete on it
        const std::string problem = barrier.initialize(counts[lane]);
        barrier.copies = copies;
        if (!problem.empty()) {
            warp.report(operation, FindingKind::barrier_misuse, bit(lane), problem);
        }
        if (cta.shadow != nullptr) {
            const std::uint32_t offset = offset_in_cta(address) - shared_base;
            cta.shadow->mark_barrier(offset, false);
            if (auto found = cta.shadow->write(warp.agent, offset, 8, Proxy::generic, "mbarrier.init",
                                               line_of(operation), false, lane)) {
                warp.report(operation, found->kind, bit(lane), std::move(found->message));
            }
            cta.shadow->mark_barrier(offset, true);
        }
        barrier.initialized = warp.cluster.clocks.now(warp.agent);
        barrier.initialized_lane = static_cast<std::uint8_t>(lane);
    });
    warp.cluster.notify();
    return Step::next;
}

Step execute_inval(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MbarrierPayload>();
    for_each_lane(active, [&](unsigned lane) {
        const std::uint32_t address = to_shared_window(warp, operation, address_of(warp, payload, lane), lane);
        Cta& cta = own_memory(warp, operation, address, lane);
        const BarrierSite site = barrier_at(warp, operation, address, lane);
        if (!site) {
            return;
        }
        if (site.barrier->copies != 0) {
            warp.report(operation, FindingKind::barrier_misuse, bit(lane),
                        fmt::format("the mbarrier at shared {:#x} is invalidated while {} asynchronous operations that "
                                    "complete on it are in flight ({}): wait for them first",
                                    address, site.barrier->copies, site.barrier->describe()));
        }
        cta.mbarriers.erase(offset_in_cta(address));
        if (cta.exit_order != nullptr) {
            cta.exit_order->forget(offset_in_cta(address));
        }
        if (cta.shadow != nullptr) {
            cta.shadow->mark_barrier(offset_in_cta(address) - shared_base, false);
        }
    });
    return Step::next;
}

/// What the arriving thread has done counts for the threads that wait. They are of the barrier's CTA, so an arrival of
/// another CTA at CTA scope orders nothing.
void release_to(Warp& warp, LaneMask lanes, Mbarrier& barrier, const MbarrierPayload& payload, bool own_cta)
{
    const FencePoints& fences = warp.barriers.fences;
    if (!own_cta && payload.within_cta) {
        return;
    }
    SyncPoint& point = own_cta ? barrier.arriving_near : barrier.arriving;
    if (payload.order.releases()) {
        warp.cluster.clocks.release(warp.agent, point, {lanes, warp.live()});
    } else {
        point.join(own_cta ? fences.fenced_near : fences.fenced_wide);
    }
}

/// Completed asynchronous work is visible whatever the scope (PTX ISA "Async proxy").
void acquire_from(Warp& warp, LaneMask lanes, const Mbarrier& barrier, const MbarrierPayload& payload)
{
    FencePoints& fences = warp.barriers.fences;
    if (payload.order.acquires()) {
        warp.cluster.clocks.acquire(warp.agent, payload.within_cta ? barrier.completed_near : barrier.completed,
                                    {lanes, warp.live()});
        return;
    }
    fences.observed_near.join(barrier.completed_near);
    if (!payload.within_cta) {
        fences.observed_wide.join(barrier.completed);
    }
}

/// arrive, arrive_drop, expect_tx, complete_tx and their combinations.
Step execute_arrive(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MbarrierPayload>();
    const Ref values = operation.operand[value_row];
    const Ref states = operation.operand[result_row];
    Mbarrier* released = nullptr;
    std::uint64_t released_phase = 0;
    for_each_lane(active, [&](unsigned lane) {
        const BarrierSite site = barrier_at(warp, operation, address_of(warp, payload, lane), lane);
        if (!site) {
            return;
        }
        Mbarrier& barrier = *site.barrier;
        const std::int64_t value = values == no_row ? 1 : std::int64_t{warp.row<std::uint32_t>(values)[lane]};
        if (site.cta != &warp.cta && site.cta->exit_order != nullptr && !site.cta->exited()) {
            site.cta->exit_order->arrived(offset_in_cta(site.address), barrier.phase,
                                          warp.cluster.clocks.now(warp.agent),
                                          {&operation, warp.cta.rank, warp.index, active});
        }
        if (warp.checks() && (released != &barrier || released_phase != barrier.phase)) {
            released = &barrier;
            released_phase = barrier.phase;
            release_to(warp, active, barrier, payload, site.cta == &warp.cta);
        }
        if (states != no_row) {
            warp.row<std::uint64_t>(states)[lane] = token_of(barrier);
        }
        const bool counts_bytes =
            payload.expects || payload.arrival == Arrival::expect_only || payload.arrival == Arrival::complete_only;
        if (counts_bytes) {
            const std::string problem =
                barrier.add_transactions(payload.arrival == Arrival::complete_only ? -value : value);
            report_barrier_problems(warp, operation, lane, site, FindingKind::transaction_count, problem);
        }
        if (payload.arrival == Arrival::arrive || payload.arrival == Arrival::drop) {
            const std::int64_t count = counts_bytes ? 1 : value;
            std::string problem;
            if (payload.no_complete && count >= barrier.pending && barrier.transactions == 0) {
                problem = fmt::format(
                    "a .noComplete arrival must not complete the phase, but {} of {} pending arrivals arrive", count,
                    barrier.pending);
            } else if (count == 0) {
                problem = "an arrival with a count of 0";
            }
            const bool too_many = count > barrier.pending;
            const std::string late = payload.arrival == Arrival::drop ? barrier.drop(count) : barrier.arrive(count);
            if (too_many) {
                warp.fault(operation, FindingKind::barrier_misuse, error_launch_failure, bit(lane),
                           fmt::format("mbarrier at shared {:#x}: {}", site.address, late));
            }
            report_barrier_problems(warp, operation, lane, site, FindingKind::barrier_misuse,
                                    problem.empty() ? late : problem);
        }
        if (warp.cluster.monitor != nullptr) [[unlikely]] {
            warp.cluster.monitor->arrived(warp, *site.cta, offset_in_cta(site.address), barrier.phase);
        }
    });
    warp.cluster.notify();
    return Step::next;
}

/// Returns true if a try_wait whose phase is not complete may return false now; PTX allows it at any time. When nothing
/// else can run, a program that counts its tries gets some failed ones, and one that only loops is then found to be
/// deadlocked.
bool gives_up(Warp& warp)
{
    constexpr unsigned tries = 16;
    const Cluster& cluster = warp.cluster;
    if (cluster.idle()) {
        return ++warp.barriers.given_up <= tries;
    }
    return cluster.options().schedule != Schedule::in_order && warp.cluster.choose(Choice::spurious, 8) == 0;
}

Step execute_wait(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MbarrierPayload>();
    Cluster& cluster = warp.cluster;
    LaneMask complete = 0, acquiring = 0;
    BarrierSite waited, passed;
    const auto acquire = [&] {
        if (acquiring != 0 && warp.checks()) {
            acquire_from(warp, acquiring, *passed.barrier, payload);
        }
        acquiring = 0;
    };
    for_each_lane(active, [&](unsigned lane) {
        const std::uint64_t address = address_of(warp, payload, lane);
        const BarrierSite site = barrier_at(warp, operation, address, lane);
        if (!site) {
            complete |= bit(lane);  // nothing to wait for; the finding says why
            return;
        }
        if (site.cta != &warp.cta) {
            warp.report(
                operation, FindingKind::barrier_misuse, bit(lane),
                fmt::format(
                    "a thread of CTA {} waits on the mbarrier at shared {:#x} of CTA {}: threads can only wait on "
                    "their own CTA's",
                    warp.cta.rank, site.address, site.cta->rank));
        }
        const bool done =
            payload.by_parity
                ? site.barrier->parity_completed(warp.row<std::uint32_t>(operation.operand[value_row])[lane])
                : warp.row<std::uint64_t>(operation.operand[value_row])[lane] >> token_shift < site.barrier->phase;
        if (!done) {
            waited = waited ? waited : site;
            return;
        }
        complete |= bit(lane);
        if (passed.barrier != site.barrier) {
            acquire();
        }
        passed = site;
        if (operation.untested) {
            return;  // the program continues in the same way if the phase is not complete, so it has learnt nothing
        }
        if (site.cta->exit_order != nullptr) {
            site.cta->exit_order->observed(offset_in_cta(site.address), site.barrier->phase);
        }
        acquiring |= bit(lane);
    });
    acquire();
    ++cluster.statistics.barrier_polls;
    if (complete == 0) {
        const MbarrierWait wait{waited.address, waited.cta->rank, waited.barrier->phase};
        cluster.statistics.barrier_stalls += wait == warp.barriers.counted ? 0 : 1;
        warp.barriers.counted = wait;
        if (payload.blocks && !gives_up(warp)) {
            warp.split().wait = {Wait::Kind::mbarrier, waited.address, waited.cta->rank, waited.barrier->phase, active};
            return Step::wait;
        }
    }
    if (complete != 0) {
        ++cluster.statistics.barrier_waits;
        warp.barriers.given_up = 0;
        if (cluster.monitor != nullptr && passed) [[unlikely]] {
            cluster.monitor->passed(warp, *passed.cta, offset_in_cta(passed.address), passed.barrier->phase);
        }
    }
    warp.set_predicate(operation.operand[result_row], active, complete);
    return complete == active ? Step::next : Step::yield;
}

Step execute_pending_count(Warp& warp, const Operation& operation, LaneMask active)
{
    const std::uint64_t* states = warp.row<std::uint64_t>(operation.operand[value_row]);
    std::uint32_t* counts = warp.row<std::uint32_t>(operation.operand[result_row]);
    for_each_lane(active, [&](unsigned lane) {
        counts[lane] = static_cast<std::uint32_t>(states[lane] & ((std::uint64_t{1} << token_shift) - 1));
    });
    return Step::next;
}

// --- decoding ---

void take_space(Decoder& decoder, MbarrierPayload& payload)
{
    const std::string_view space = decoder.take_one_of({"shared", "shared::cta", "shared::cluster"});
    payload.generic = space.empty();
    payload.remote = space == "shared::cluster";
}

/// Takes .sem and .scope: relaxed, or `strongest`, which is the default. The default scope is .cta. But CUTLASS arrives on
/// peers' barriers, and waits for peers, without a scope, so only a .cta that is written out counts as one in the checks.
void take_order(Decoder& decoder, MbarrierPayload& payload, Semantics strongest)
{
    const bool relaxed = decoder.take_one_of({"release", "acquire", "relaxed"}) == "relaxed";
    const std::string_view scope = decoder.take_one_of({"cta", "cluster"});
    payload.order = {relaxed ? Semantics::relaxed : strongest, scope == "cluster" ? Scope::cluster : Scope::cta};
    payload.within_cta = scope == "cta";
}

void refuse_remote(Decoder& decoder, const MbarrierPayload& payload)
{
    if (payload.remote) {
        decoder.fail(
            "'.shared::cluster' is not allowed here: threads initialize and wait on barriers of their own CTA only");
    }
}

void decode_wait(Decoder& decoder, Operation& operation, MbarrierPayload& payload)
{
    payload.by_parity = decoder.take("parity");
    take_order(decoder, payload, Semantics::acquire);
    decoder.effects().sync = {.object = SyncObject::mbarrier, .waits = true, .order = payload.order};
    decoder.effects().may_wait = payload.blocks;
    take_space(decoder, payload);
    refuse_remote(decoder, payload);
    expect_operands(decoder, 3, payload.blocks ? 4 : 3);
    operation.operand[result_row] = decoder.write(0, Type::pred);
    payload.address = decoder.address(1);
    operation.operand[value_row] = decoder.read(2, payload.by_parity ? Type::u32 : Type::b64);
    if (decoder.operands() == 4) {
        decoder.read(3, Type::u32);  // suspend-time hint
    }
    operation.execute = execute_wait;
}

void decode_transaction(Decoder& decoder, Operation& operation, MbarrierPayload& payload)
{
    take_order(decoder, payload, Semantics::relaxed);
    decoder.effects().sync = {.object = SyncObject::mbarrier, .manages = true, .order = payload.order};
    take_space(decoder, payload);
    expect_operands(decoder, 2);
    payload.address = decoder.address(0);
    operation.operand[value_row] = decoder.read(1, Type::u32);
    operation.execute = execute_arrive;
}

void decode_arrive(Decoder& decoder, Operation& operation, MbarrierPayload& payload)
{
    payload.expects = decoder.take("expect_tx");
    payload.no_complete = decoder.take("noComplete");
    take_order(decoder, payload, Semantics::release);
    decoder.effects().sync = {
        .object = SyncObject::mbarrier, .arrives = true, .manages = payload.expects, .order = payload.order};
    take_space(decoder, payload);
    const bool value_needed = payload.expects || payload.no_complete;
    // An arrival on a peer's barrier returns no state; some compilers leave out the sink.
    const bool has_result = decoder.operand(0).kind != ptx::Operand::Kind::address;
    const std::size_t address = has_result ? 1 : 0;
    expect_operands(decoder, address + (value_needed ? 2 : 1), address + 2);
    if (has_result && !decoder.is_sink(0)) {
        if (payload.remote) {
            decoder.fail("with '.shared::cluster' no state is returned: write the sink _");
        }
        operation.operand[result_row] = decoder.write(0, Type::b64);
    }
    payload.address = decoder.address(address);
    if (decoder.operands() == address + 2) {
        operation.operand[value_row] = decoder.read(address + 1, Type::u32);
    }
    operation.execute = execute_arrive;
}

}  // namespace

std::uint32_t to_shared_window(Warp& warp, const Operation& operation, std::uint64_t address, unsigned lane)
{
    std::uint32_t shared = static_cast<std::uint32_t>(address);
    if (address >> 32U != 0 && !generic_to_shared(address, shared)) {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit(lane),
                   fmt::format("{:#x} is not an address of shared memory", address));
    }
    return shared;
}

namespace {

/// What would order mbarrier.init before its use by `warp`.
const char* missing_order(const Warp& warp, const BarrierSite& site)
{
    const Epoch initialized = site.barrier->initialized;
    const Times& relaxed = warp.cluster.barrier.relaxed.seen;
    if (warp.barriers.cluster_has_started && initialized.agent < relaxed.size() &&
        relaxed[initialized.agent] >= initialized.time) {
        return "barrier.cluster.arrive.relaxed in between does not order it; execute fence.mbarrier_init before the "
               "relaxed arrival, or arrive without .relaxed";
    }
    return site.cta == &warp.cta ? "execute bar.sync in between"
                                 : "execute fence.mbarrier_init and barrier.cluster in between";
}

}  // namespace

BarrierSite barrier_at(Warp& warp, const Operation& operation, std::uint64_t address, unsigned lane)
{
    BarrierSite site;
    site.barrier = find_mbarrier(warp, operation, address, lane);
    site.address = to_shared_window(warp, operation, address, lane);
    site.cta = warp.cluster.cta_of(site.address);
    if (site && warp.checks() && !warp.cluster.clocks.ordered(site.barrier->initialized, warp.agent)) {
        warp.report(
            operation, FindingKind::barrier_misuse, bit(lane),
            fmt::format(
                "the mbarrier at shared {:#x} of CTA {} is used without synchronization after its mbarrier.init: {}",
                site.address, site.cta->rank, missing_order(warp, site)));
        site.barrier->initialized = {};  // report it once
    }
    return site;
}

void report_barrier_problems(Warp& warp, const Operation& operation, unsigned lane, const BarrierSite& site,
                             FindingKind kind, const std::string& problem)
{
    if (!problem.empty()) {
        warp.report(operation, kind, bit(lane), fmt::format("mbarrier at shared {:#x}: {}", site.address, problem));
    }
    if (const std::uint32_t missed = site.barrier->take_copies_missed(); missed != 0) {
        warp.report(operation, FindingKind::transaction_count, bit(lane),
                    fmt::format("mbarrier at shared {:#x}: phase {} completed while {} copies that complete on it were "
                                "in flight: expect_tx is missing, or has too few bytes",
                                site.address, site.barrier->phase - 1, missed));
    }
}

void decode_mbarrier(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<MbarrierPayload>();
    operation.kind = InstructionClass::barrier;
    if (!decoder.take("b64")) {
        decoder.fail("the type of an mbarrier is .b64");
    }
    if (decoder.take("init")) {
        take_space(decoder, payload);
        refuse_remote(decoder, payload);
        expect_operands(decoder, 2);
        payload.address = decoder.address(0);
        operation.operand[value_row] = decoder.read(1, Type::u32);
        operation.execute = execute_init;
        decoder.effects().sync = {.object = SyncObject::mbarrier, .manages = true};
    } else if (decoder.take("inval")) {
        take_space(decoder, payload);
        refuse_remote(decoder, payload);
        expect_operands(decoder, 1);
        payload.address = decoder.address(0);
        operation.execute = execute_inval;
        decoder.effects().sync = {.object = SyncObject::mbarrier, .manages = true};
    } else if (decoder.take("arrive")) {
        decode_arrive(decoder, operation, payload);
    } else if (decoder.take("arrive_drop")) {
        payload.arrival = Arrival::drop;
        decode_arrive(decoder, operation, payload);
    } else if (decoder.take("expect_tx")) {
        payload.arrival = Arrival::expect_only;
        decode_transaction(decoder, operation, payload);
    } else if (decoder.take("complete_tx")) {
        payload.arrival = Arrival::complete_only;
        decode_transaction(decoder, operation, payload);
    } else if (decoder.take("test_wait")) {
        decode_wait(decoder, operation, payload);
    } else if (decoder.take("try_wait")) {
        payload.blocks = true;
        decode_wait(decoder, operation, payload);
    } else if (decoder.take("pending_count")) {
        expect_operands(decoder, 2);
        operation.operand[result_row] = decoder.write(0, Type::u32);
        operation.operand[value_row] = decoder.read(1, Type::b64);
        operation.execute = execute_pending_count;
    } else {
        decoder.fail("unknown operation on an mbarrier");
    }
}

}  // namespace tessera::emulator
