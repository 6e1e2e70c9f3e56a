#include "machine/mbarrier_access.hpp"

#include <fmt/format.h>

#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/memory_access.hpp"

namespace tessera::emulator {

Mbarrier* find_mbarrier(Warp& warp, const Operation& operation, std::uint64_t address, unsigned lane)
{
    std::uint32_t shared = 0;
    if (address >> 32 == 0) {
        shared = static_cast<std::uint32_t>(address);
    } else if (!generic_to_shared(address, shared)) {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit(lane),
                   fmt::format("0x{:x} is not an address of shared memory, where mbarriers are", address));
    }
    if (shared % 8 != 0) {
        warp.fault(operation, FindingKind::misaligned, error_misaligned_address, bit(lane),
                   fmt::format("mbarrier at shared 0x{:x}: the address must be a multiple of 8", shared));
    }
    const std::uint32_t rank = shared >> shared_rank_shift;
    Cta* const cta = warp.cluster.cta_of(shared);
    if (cta == nullptr || cta->shared_bytes(shared, 8) == nullptr) {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit(lane),
                   cta == nullptr
                       ? fmt::format("mbarrier at shared 0x{:x}: it names CTA {} of a cluster of {}", shared, rank,
                                     warp.cluster.ctas.size())
                       : fmt::format("mbarrier at shared 0x{:x}: CTA {} has {} bytes of shared memory, from 0x{:x} on",
                                     shared, rank, cta->shared.size(), (rank << shared_rank_shift) + shared_base));
    }
    if (cta != &warp.cta && (!cta->started || cta->exited())) {
        warp.report(
            operation, FindingKind::cluster_protocol, bit(lane),
            fmt::format("mbarrier at shared 0x{:x} of CTA {}, which {}: synchronize the cluster (barrier.cluster) {}",
                        shared, rank, cta->exited() && cta->started ? "has exited" : "may not have started",
                        cta->exited() && cta->started ? "before a CTA exits" : "before the first access to a peer"));
    }
    const auto found = cta->mbarriers.find(offset_in_cta(shared));
    if (found == cta->mbarriers.end()) {
        warp.report(operation, FindingKind::barrier_misuse, bit(lane),
                    fmt::format("no mbarrier at shared 0x{:x}: execute mbarrier.init and synchronize before it is used",
                                shared));
        return nullptr;
    }
    return &found->second;
}

void async_arrive(Cluster& cluster, const AsyncOperation& by, std::uint32_t shared_address, std::int64_t count,
                  std::int64_t completed_bytes)
{
    const std::uint32_t rank = shared_address >> shared_rank_shift;
    Cta* const cta = cluster.cta_of(shared_address);
    if (cta == nullptr || shared_address % 8 != 0 || cta->shared_bytes(shared_address, 8) == nullptr) {
        cluster.fault(
            by, FindingKind::out_of_bounds, error_illegal_address,
            fmt::format("arrival on an mbarrier at shared 0x{:x}: {}", shared_address,
                        cta == nullptr ? fmt::format("it names CTA {} of a cluster of {}", rank, cluster.ctas.size())
                                       : "not a multiple of 8, or beyond the CTA's shared memory"));
    }
    // A CTA's own work may outlive its warps: hardware keeps the CTA's memory until it is complete.
    if (cta->started && cta->exited() && rank != by.cta_rank) {
        cluster.report(by, FindingKind::cluster_protocol,
                       fmt::format("arrival on the mbarrier at shared 0x{:x} of CTA {}, which has exited: synchronize "
                                   "the cluster (barrier.cluster) before a CTA exits",
                                   shared_address, rank));
    }
    const auto found = cta->mbarriers.find(offset_in_cta(shared_address));
    if (found == cta->mbarriers.end()) {
        cluster.report(
            by, FindingKind::barrier_misuse,
            fmt::format(
                "arrival on the mbarrier at shared 0x{:x} of CTA {}, which is not initialized: before a multicast or a "
                "remote arrival, initialize the barriers of all CTAs and synchronize the cluster",
                shared_address, rank));
        return;
    }
    Mbarrier& barrier = found->second;
    if (cta->exit_order != nullptr && rank != by.cta_rank && !cta->exited()) {
        cta->exit_order->arrived(offset_in_cta(shared_address), barrier.phase, cluster.clocks.now(by.agent),
                                 {by.operation, by.cta_rank, by.warp, by.lanes});
    }
    if (cluster.options().check) {
        cluster.clocks.complete_async(by.agent, barrier.arriving_near);
    }
    barrier.last_arrival = by.describe();
    if (completed_bytes != 0) {
        const std::string problem = barrier.add_transactions(-completed_bytes);
        if (!problem.empty()) {
            cluster.report(by, FindingKind::transaction_count,
                           fmt::format("mbarrier at shared 0x{:x}: {}", shared_address, problem));
        }
    }
    if (count != 0) {
        const std::string problem = barrier.arrive(count);
        if (!problem.empty()) {
            cluster.report(by, FindingKind::barrier_misuse,
                           fmt::format("mbarrier at shared 0x{:x}: {}", shared_address, problem));
        }
    }
    if (cluster.monitor != nullptr) [[unlikely]] {
        cluster.monitor->arrived(by, *cta, offset_in_cta(shared_address), barrier.phase);
    }
    if (const std::uint32_t missed = barrier.take_copies_missed(); missed != 0) {
        cluster.report(by, FindingKind::transaction_count,
                       fmt::format("mbarrier at shared 0x{:x}: phase {} completed while {} other copies that complete "
                                   "on it were in flight: expect_tx had too few bytes",
                                   shared_address, barrier.phase - 1, missed));
    }
    cluster.notify();
    cluster.progress();
}

}  // namespace tessera::emulator
