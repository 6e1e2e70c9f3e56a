// clusterlaunchcontrol and griddepcontrol (PTX ISA 9.7.13.17-18, 9.7.13.14).

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "execute/barrier_families.hpp"
#include "execute/bulk_transfer.hpp"
#include "execute/copy_families.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/mbarrier_access.hpp"

namespace tessera::emulator {

namespace {

using ptx::Type;

constexpr std::uint32_t response_bytes = 16;

/// The 16 bytes that a request writes. Opaque to programs, except that 16 zero bytes, which some programs write
/// themselves, must mean "not canceled".
struct Response {
    std::uint32_t x = 0, y = 0, z = 0;
    std::uint32_t flags = 0;

    static constexpr std::uint32_t canceled = 1, refused = 2;
};
static_assert(sizeof(Response) == response_bytes);

/// A request to take over a cluster that has not started.
class CancelRequest : public AsyncOperation {
public:
    explicit CancelRequest(std::vector<LoadTarget> targets) : targets_(std::move(targets)) {}

    void watch()
    {
        for (const LoadTarget& target : targets_) {
            if (target.cta->shadow != nullptr) {
                target.cta->shadow->begin(agent, offset(target), response_bytes, true, name, line_of(operation));
            }
        }
    }

    bool step(Cluster& cluster) override
    {
        if (!decided_) {
            decide(cluster);
            decided_ = true;
            return false;
        }
        const LoadTarget& target = targets_[done_];
        if (!written_) {
            write(cluster, target);
            written_ = true;
            return false;
        }
        written_ = false;
        if (target.cta->shadow != nullptr) {
            target.cta->shadow->end(agent);
        }
        if (const auto found = target.cta->mbarriers.find(offset_in_cta(target.barrier));
            found != target.cta->mbarriers.end() && found->second.copies != 0) {
            --found->second.copies;
        }
        async_arrive(cluster, *this, target.barrier, 0, response_bytes);
        return ++done_ == targets_.size();
    }

    [[nodiscard]] std::string describe() const override
    {
        return fmt::format("{} with its response to shared {:#x} of {} CTAs", name, targets_.front().address,
                           targets_.size());
    }

private:
    static constexpr const char* name = "clusterlaunchcontrol.try_cancel";

    [[nodiscard]] static std::uint32_t offset(const LoadTarget& target)
    {
        return offset_in_cta(target.address) - shared_base;
    }
    void decide(Cluster& cluster)
    {
        const std::optional<std::uint64_t> taken = cluster.grid.cancel_cluster(cluster);
        if (!taken) {
            response_.flags = Response::refused;
            return;
        }
        const Dim3 position_in_grid = position(*taken, cluster.grid.clusters);
        const Dim3 extent = cluster.grid.request.cluster;
        response_ = {position_in_grid.x * extent.x, position_in_grid.y * extent.y, position_in_grid.z * extent.z,
                     Response::canceled};
    }

    void write(Cluster& cluster, const LoadTarget& target)
    {
        if (target.cta->started && target.cta->exited()) {
            cluster.report(*this, FindingKind::cluster_protocol,
                           fmt::format("{}: the response goes to CTA {}, which has exited", name, target.cta->rank));
        }
        if (target.cta->shadow != nullptr) {
            if (auto found = target.cta->shadow->write(agent, offset(target), response_bytes, Proxy::async, name,
                                                       line_of(operation))) {
                cluster.report(*this, found->kind, std::move(found->message));
            }
        }
        std::memcpy(target.cta->shared_bytes(target.address, response_bytes), &response_, response_bytes);
        cluster.progress();
    }

    std::vector<LoadTarget> targets_;
    Response response_;
    std::size_t done_ = 0;
    bool decided_ = false, written_ = false;
};

/// The last answer at this place was read with ordinary loads. See ResponseReads.
void check_response_reads(Warp& warp, const Operation& operation, unsigned lane, const LoadTarget& target)
{
    if (!warp.checks()) {
        return;
    }
    const Clocks& clocks = warp.cluster.clocks;
    const std::uint32_t offset = offset_in_cta(target.address) - shared_base;
    const std::vector<ResponseReads::Read>* const reads = target.cta->responses.reads(offset);
    for (std::size_t i = 0; reads != nullptr && i < reads->size(); ++i) {
        const ResponseReads::Read& read = (*reads)[i];
        // Reads without order are found as races.
        if (!clocks.ordered(read.at, warp.agent) || clocks.fenced_by_reader(read.at, warp.agent, fences_shared)) {
            continue;
        }
        LaneMask unfenced = 0;
        for_each_lane(read.lanes, [&](unsigned reader) {
            unfenced |= clocks.fenced(read.at, warp.agent, reader, fences_shared) ? 0 : bit(reader);
        });
        if (unfenced != 0) {
            warp.report(
                operation, FindingKind::missing_proxy_fence, bit(lane),
                fmt::format("clusterlaunchcontrol.try_cancel writes its answer to shared 0x{:x} of CTA {} through "
                            "the async proxy, but {} (warp {} of the cluster, PTX line {}) read the last one there "
                            "through the generic proxy and lane {} executed no fence.proxy.async since: execute "
                            "one after the load",
                            offset + shared_base, target.cta->rank,
                            read.operation->source->text.substr(0, read.operation->source->text.find(' ')),
                            read.at.agent, line_of(read.operation), std::countr_zero(unfenced)));
            break;
        }
    }
    target.cta->responses.request(offset);
}

struct TryCancelPayload : Payload {
    AddressRef response, barrier;
    bool generic = false, multicast = false;
};

Step execute_try_cancel(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<TryCancelPayload>();
    for_each_lane(active, [&](unsigned lane) {
        const auto address = [&](const AddressRef& reference) {
            const std::uint64_t value = warp.address(reference, lane);
            return to_shared_window(warp, operation, payload.generic ? value : value & 0xFFFF'FFFFU, lane);
        };
        if (warp.cta.launch_control_refused) {
            warp.report(operation, FindingKind::launch_control, LaneMask{1} << lane,
                        "clusterlaunchcontrol.try_cancel after an earlier request of this CTA failed: the result is "
                        "undefined; leave the loop when is_canceled is false");
        }
        std::optional<std::uint16_t> mask;
        if (payload.multicast) {
            mask = static_cast<std::uint16_t>((1U << warp.cluster.ctas.size()) - 1);
        }
        auto targets = load_targets(warp, operation, lane, "clusterlaunchcontrol.try_cancel", address(payload.response),
                                    address(payload.barrier), response_bytes, response_bytes, mask, 1);
        for (const LoadTarget& target : targets) {
            check_response_reads(warp, operation, lane, target);
        }
        start(warp, operation, lane, std::make_unique<CancelRequest>(std::move(targets)));
    });
    return Step::next;
}

Response response_of(const Warp& warp, Ref row, unsigned lane)
{
    Response response;
    std::memcpy(&response, warp.row<std::byte>(row) + lane * response_bytes, response_bytes);
    return response;
}

Step execute_is_canceled(Warp& warp, const Operation& operation, LaneMask active)
{
    LaneMask canceled = 0;
    for_each_lane(active, [&](unsigned lane) {
        const Response response = response_of(warp, operation.operand[1], lane);
        canceled |= (response.flags & Response::canceled) != 0 ? LaneMask{1} << lane : 0;
        warp.cta.launch_control_refused = warp.cta.launch_control_refused || (response.flags & Response::refused) != 0;
    });
    warp.set_predicate(operation.operand[0], active, canceled);
    return Step::next;
}

struct FirstCtaPayload : Payload {
    std::array<Ref, 4> rows{no_row, no_row, no_row, no_row};
    Ref response = no_row;
};

Step execute_first_cta(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<FirstCtaPayload>();
    LaneMask undefined = 0;
    for_each_lane(active, [&](unsigned lane) {
        const Response response = response_of(warp, payload.response, lane);
        const std::array<std::uint32_t, 4> values{response.x, response.y, response.z, 0};
        undefined |= (response.flags & Response::canceled) == 0 ? LaneMask{1} << lane : 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (payload.rows[i] != no_row) {
                warp.row<std::uint32_t>(payload.rows[i])[lane] = values[i];
            }
        }
    });
    if (undefined != 0) {
        warp.report(
            operation, FindingKind::launch_control, undefined,
            "clusterlaunchcontrol.query_cancel.get_first_ctaid of a request that failed: test is_canceled first");
    }
    return Step::next;
}

void decode_try_cancel(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<TryCancelPayload>();
    if (!decoder.take("async") || !decoder.take("mbarrier::complete_tx::bytes") || !decoder.take("b128")) {
        decoder.fail(
            "the form is clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes.b128");
    }
    payload.generic = !decoder.take("shared::cta");
    payload.multicast = decoder.take("multicast::cluster::all");
    if (decoder.operands() != 2) {
        decoder.fail("the operands are [response], [mbarrier]");
    }
    payload.response = decoder.address(0);
    payload.barrier = decoder.address(1);
    operation.execute = execute_try_cancel;
    Effects& effects = decoder.effects();
    effects.unit = AsyncUnit::launch_control;
    effects.access(
        {.space = Space::shared, .direction = Direction::write, .bytes = 16, .proxy = Proxy::async, .later = true});
    effects.sync = {
        .object = SyncObject::mbarrier, .arrives = true, .later = true, .order = {Semantics::release, Scope::cluster}};
}

void decode_query(Decoder& decoder, Operation& operation)
{
    if (decoder.take("is_canceled")) {
        if (!decoder.take("pred") || !decoder.take("b128") || decoder.operands() != 2) {
            decoder.fail("the form is clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response");
        }
        operation.operand[0] = decoder.write(0, Type::pred);
        operation.operand[1] = decoder.read(1, Type::b128);
        operation.execute = execute_is_canceled;
        return;
    }
    auto& payload = decoder.emplace_payload<FirstCtaPayload>();
    operation.execute = execute_first_cta;
    const std::string_view which =
        decoder.take_one_of({"get_first_ctaid", "get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"});
    const bool all = which == "get_first_ctaid";
    if (which.empty() || (all && !decoder.take("v4")) || !decoder.take("b32") || !decoder.take("b128") ||
        decoder.operands() != 2) {
        decoder.fail(
            "the forms are .is_canceled.pred.b128, .get_first_ctaid.v4.b32.b128 and "
            ".get_first_ctaid::{x,y,z}.b32.b128");
    }
    payload.response = decoder.read(1, Type::b128);
    if (!all) {
        payload.rows[static_cast<std::size_t>(which.back() - 'x')] = decoder.write(0, Type::b32);
        return;
    }
    const std::vector<Ref> rows = decoder.write_vector(0, Type::b32);
    if (rows.size() != payload.rows.size()) {
        decoder.fail("the destination is a vector of four");
    }
    std::copy(rows.begin(), rows.end(), payload.rows.begin());
}

void decode_cluster_launch_control(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::barrier;
    if (!decoder.device().cluster_launch_control) {
        decoder.fail(fmt::format("cluster launch control needs compute capability 10.0, {} has {}.{}",
                                 decoder.device().name, decoder.device().major, decoder.device().minor));
    }
    if (decoder.take("try_cancel")) {
        decode_try_cancel(decoder, operation);
    } else if (decoder.take("query_cancel")) {
        decode_query(decoder, operation);
    } else {
        decoder.fail("the forms are clusterlaunchcontrol.try_cancel and clusterlaunchcontrol.query_cancel");
    }
}

/// A grid starts when all earlier grids are complete and their writes visible, so this need not wait.
void decode_grid_dependency(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::control;
    const std::string_view what = decoder.take_one_of({"wait", "launch_dependents"});
    if (what.empty() || decoder.operands() != 0) {
        decoder.fail("the forms are griddepcontrol.wait and griddepcontrol.launch_dependents");
    }
    decoder.effects().sync = {.object = SyncObject::grids, .arrives = what != "wait", .waits = what == "wait"};
    operation.execute = execute_nothing;
}

}  // namespace

std::span<const InstructionEntry> launch_control_instructions()
{
    static constexpr std::array entries{
        InstructionEntry{"clusterlaunchcontrol", decode_cluster_launch_control},
        InstructionEntry{"griddepcontrol", decode_grid_dependency},
    };
    return entries;
}

}  // namespace tessera::emulator
