// What bulk copies check when they are issued: their shared memory, the CTAs that receive, and the mbarriers.

#include <fmt/format.h>

#include <bit>

#include "execute/bulk_transfer.hpp"
#include "machine/fault.hpp"

namespace tessera::emulator {

namespace {

std::uint32_t rank_of(std::uint32_t address) { return address >> shared_rank_shift; }

}  // namespace

Cta& check_shared_range(Warp& warp, const Operation& operation, unsigned lane, const char* what, std::uint32_t address,
                        std::uint32_t bytes, std::uint32_t alignment)
{
    const LaneMask bit = LaneMask{1} << lane;
    if (address % alignment != 0) {
        warp.fault(operation, FindingKind::misaligned, error_misaligned_address, bit,
                   fmt::format("{}: shared address {:#x} must be a multiple of {} bytes", what, offset_in_cta(address),
                               alignment));
    }
    Cta* const cta = warp.cluster.cta_of(address);
    if (cta == nullptr) {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit,
                   fmt::format("{}: shared address {:#x} names CTA {} of a cluster of {}", what, address,
                               rank_of(address), warp.cluster.ctas.size()));
    }
    if (cta->shared_bytes(address, bytes) == nullptr) {
        warp.fault(
            operation, FindingKind::out_of_bounds, error_illegal_address, bit,
            fmt::format(
                "{}: {} bytes at shared {:#x} are not within the CTA's {} bytes of shared memory, which begin at {:#x}",
                what, bytes, offset_in_cta(address), cta->shared.size(), shared_base));
    }
    if (cta != &warp.cta && (!cta->started || cta->exited())) {
        warp.report(operation, FindingKind::cluster_protocol, bit,
                    fmt::format("{}: CTA {} {}: synchronize the cluster (barrier.cluster) {}", what, cta->rank,
                                cta->started ? "has exited" : "may not have started",
                                cta->started ? "before a CTA exits" : "before the first access to a peer"));
    }
    return *cta;
}

namespace {

/// A copy's completion is an access to the mbarrier by the async proxy, and mbarrier.init one by the generic proxy (PTX ISA
/// "Proxies"). Much code for single CTAs has no fence between the two, only a barrier: reported on request.
void check_init_fence(Warp& warp, const Operation& operation, unsigned lane, const char* what, const BarrierSite& site)
{
    if (!warp.checks() || !warp.cluster.options().strict_proxy_fences) {
        return;
    }
    const Clocks& clocks = warp.cluster.clocks;
    const Epoch at = site.barrier->initialized;
    if (clocks.fenced(at, warp.agent, site.barrier->initialized_lane, fences_shared | fences_barrier_init) ||
        clocks.fenced_by_reader(at, warp.agent, fences_shared)) {
        return;
    }
    warp.report(
        operation, FindingKind::strict_proxy_fence, bit(lane),
        fmt::format("{} completes on the mbarrier at shared {:#x} of CTA {}, and the thread that initialized it "
                    "executed no fence.mbarrier_init.release.cluster or fence.proxy.async after mbarrier.init",
                    what, site.address, site.cta->rank));
}

/// A mask must name CTAs of the cluster. A mask that names others is a fault, as on an H200. An empty mask is reported:
/// an H200 silently drops the copy.
void check_ranks(Warp& warp, const Operation& operation, unsigned lane, const char* what, std::uint16_t mask)
{
    const auto size = static_cast<unsigned>(warp.cluster.ctas.size());
    if ((mask & ~((1U << size) - 1)) != 0) {
        warp.fault(operation, FindingKind::cta_mask, error_launch_failure, LaneMask{1} << lane,
                   fmt::format("{}: the CTA mask {:#06x} names CTAs that do not exist in a cluster of {} CTAs", what,
                               mask, size));
    }
    if (mask == 0) {
        warp.report(operation, FindingKind::cta_mask, LaneMask{1} << lane,
                    fmt::format("{}: the CTA mask {:#06x} names none of the {} CTAs of the cluster", what, mask, size));
    }
}

}  // namespace

std::vector<LoadTarget> load_targets(Warp& warp, const Operation& operation, unsigned lane, const char* what,
                                     std::uint32_t destination, std::uint32_t barrier, std::uint32_t bytes,
                                     std::uint32_t alignment, std::optional<std::uint16_t> mask, unsigned cta_group)
{
    std::vector<LoadTarget> targets;
    const std::uint32_t destination_rank = rank_of(destination);
    const std::uint32_t barrier_rank = rank_of(barrier);
    const auto add = [&](std::uint32_t rank, std::uint32_t signalled) {
        LoadTarget target;
        target.address = rank << shared_rank_shift | offset_in_cta(destination);
        target.barrier = signalled << shared_rank_shift | offset_in_cta(barrier);
        target.cta = &check_shared_range(warp, operation, lane, what, target.address, bytes, alignment);
        if (const BarrierSite site = barrier_at(warp, operation, target.barrier, lane)) {
            ++site.barrier->copies;
            check_init_fence(warp, operation, lane, what, site);
        }
        targets.push_back(target);
    };
    if (mask) {
        check_ranks(warp, operation, lane, what, *mask);
        if (cta_group == 1 && barrier_rank != warp.cta.rank && (*mask & ~(1U << barrier_rank)) != 0) {
            warp.report(
                operation, FindingKind::cta_group, LaneMask{1} << lane,
                fmt::format("{}: the mbarrier is that of CTA {}, but with .multicast each CTA of the mask {:#06x} "
                            "signals its own; for that of the pair's even or odd CTA the copy needs .cta_group::2",
                            what, barrier_rank, *mask));
        }
        for (std::uint32_t rest = *mask; rest != 0; rest &= rest - 1) {
            const auto rank = static_cast<std::uint32_t>(std::countr_zero(rest));
            // In a pair the barrier may be in the peer: the CTA with the same position in the pair as the given
            // barrier.
            add(rank, cta_group == 2 ? (rank & ~1U) | (barrier_rank & 1U) : rank);
        }
        return targets;
    }
    const bool same_pair = (destination_rank | 1U) == (barrier_rank | 1U);
    if (barrier_rank != destination_rank && !(cta_group == 2 && same_pair)) {
        warp.report(
            operation, FindingKind::cta_group, LaneMask{1} << lane,
            fmt::format("{}: the data go to CTA {}, but the mbarrier is in CTA {}: {}", what, destination_rank,
                        barrier_rank,
                        same_pair ? "only with .cta_group::2 may it be the peer's of the pair"
                                  : "it must be in the same CTA, or with .cta_group::2 in the peer of the pair"));
    }
    add(destination_rank, barrier_rank);
    return targets;
}

}  // namespace tessera::emulator
