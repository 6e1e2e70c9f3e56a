// tcgen05.commit: an mbarrier arrival when all earlier asynchronous tcgen05 work of the thread is complete (PTX ISA
// "tcgen05.commit").

#include <fmt/format.h>

#include "execute/tcgen05.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/mbarrier_access.hpp"
#include "machine/memory_access.hpp"

namespace tessera::emulator::tcgen05 {
namespace {

struct Commit : Payload {
    AddressRef barrier;
    Ref mask = no_row;  ///< of .multicast::cluster
    unsigned cta_group = 1;
};

class CommitWork : public TensorWork {
public:
    bool step(Cluster& cluster) override
    {
        if (cluster.options().check) {
            cluster.clocks.acquire(agent, known);
        }
        for (const std::uint32_t barrier : barriers) {
            async_arrive(cluster, *this, barrier, 1, 0);
        }
        return true;
    }
    [[nodiscard]] std::string describe() const override
    {
        return fmt::format("tcgen05.commit of CTA {} to the mbarrier at {:#x}{}", cta_rank,
                           barriers.empty() ? 0 : barriers.front(),
                           barriers.size() > 1 ? fmt::format(" and {} others", barriers.size() - 1) : "");
    }
    std::vector<std::uint32_t> barriers;
};

/// A commit whose CTA group differs from that of the work before it completes at once.
void check_group(Warp& warp, const Operation& operation, LaneMask lane, unsigned cta_group)
{
    const TensorMemory& memory = *warp.cta.tensor_memory;
    if (memory.cta_group != 0 && memory.cta_group != cta_group) {
        warp.report(operation, FindingKind::cta_group, lane,
                    fmt::format("tcgen05.commit with cta_group::{} does not cover this CTA's tcgen05 instructions, "
                                "which have cta_group::{}: use the same group in all",
                                cta_group, memory.cta_group));
    }
}

std::vector<std::uint32_t> multicast_targets(Warp& warp, const Operation& operation, LaneMask lane,
                                             std::uint32_t barrier, unsigned mask)
{
    const auto ctas = static_cast<unsigned>(warp.cluster.ctas.size());
    if (mask == 0 || (mask >> ctas) != 0) {
        warp.report(
            operation, FindingKind::cta_mask, lane,
            mask == 0
                ? std::string{"the CTA mask of tcgen05.commit is 0: set a bit for each CTA to signal"}
                : fmt::format("the CTA mask {:#x} of tcgen05.commit names CTAs that do not exist in a cluster of {}",
                              mask, ctas));
    }
    std::vector<std::uint32_t> targets;
    for (unsigned rank = 0; rank < ctas; ++rank) {
        if ((mask >> rank & 1) != 0) {
            targets.push_back(offset_in_cta(barrier) | rank << shared_rank_shift);
        }
    }
    return targets;
}

Step execute(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& commit = operation.as<Commit>();
    for_each_lane(active, [&](unsigned lane) {
        const LaneMask bit = LaneMask{1} << lane;
        check_group(warp, operation, bit, commit.cta_group);
        if (commit.cta_group == 2) {
            static_cast<void>(require_peer(warp, operation, bit));
        }
        const std::uint64_t address = warp.address(commit.barrier, lane);
        std::uint32_t barrier = static_cast<std::uint32_t>(address);
        if (address >> 32 != 0 && !generic_to_shared(address, barrier)) {
            warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit,
                       fmt::format("the mbarrier of tcgen05.commit has address {:#x}, which is not in shared memory",
                                   address));
        }
        auto work = std::make_unique<CommitWork>();
        work->is_commit = true;
        work->cta_group = commit.cta_group;
        if (commit.mask != no_row) {
            work->barriers =
                multicast_targets(warp, operation, bit, barrier, warp.row<std::uint16_t>(commit.mask)[lane]);
        } else if (find_mbarrier(warp, operation, address, lane) != nullptr) {
            work->barriers.push_back(barrier);
        }
        submit(warp.cluster, std::move(work), warp, operation, lane);
    });
    return Step::next;
}

}  // namespace

void decode_commit(Decoder& decoder, Operation& operation)
{
    auto& commit = decoder.emplace_payload<Commit>();
    decoder.take("commit");
    commit.cta_group = take_cta_group(decoder);
    if (!decoder.take("mbarrier::arrive::one")) {
        decoder.fail("tcgen05.commit needs .mbarrier::arrive::one");
    }
    decoder.take("shared::cluster");
    const bool multicast = decoder.take("multicast::cluster");
    if (!decoder.take("b64")) {
        decoder.fail("tcgen05.commit needs .b64");
    }
    if (decoder.operands() != (multicast ? 2u : 1u)) {
        decoder.fail(multicast ? "tcgen05.commit with .multicast::cluster takes an mbarrier and a CTA mask"
                               : "tcgen05.commit takes an mbarrier");
    }
    commit.barrier = decoder.address(std::size_t{0});
    if (multicast) {
        commit.mask = decoder.read(1, ptx::Type::b16);
    }
    operation.execute = execute;
    decoder.effects().unit = AsyncUnit::tensor;
    decoder.effects().sync = {.object = SyncObject::mbarrier,
                              .arrives = true,
                              .commits = true,
                              .later = true,
                              .order = {Semantics::release, Scope::cluster}};
}

}  // namespace tessera::emulator::tcgen05
