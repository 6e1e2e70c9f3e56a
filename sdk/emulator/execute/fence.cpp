// fence and membar (PTX ISA 9.7.13.4). Memory is sequentially consistent here, so fences matter only to the checks:
// they make relaxed operations on barriers synchronize, and proxy fences make writes visible to the async proxy.

#include <fmt/format.h>

#include "execute/barrier_families.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/memory_access.hpp"
#include "machine/tensor_map.hpp"

namespace tessera::emulator {

namespace {

struct FencePayload : Payload {
    MemoryOrder order{};
    ProxyFences proxies = 0;
};

Step execute_fence(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.checks()) {
        return Step::next;
    }
    const auto& payload = operation.as<FencePayload>();
    Clocks& clocks = warp.cluster.clocks;
    const LanesOfWarp by{active, warp.live()};
    if (payload.order.acquires()) {
        clocks.fence(warp.agent, {Semantics::acquire, payload.order.scope}, warp.barriers.fences, by);
    }
    if (payload.proxies != 0) {
        clocks.proxy_fence(warp.agent, active, payload.proxies);
    }
    if (payload.order.releases()) {
        clocks.fence(warp.agent, {Semantics::release, payload.order.scope}, warp.barriers.fences, by);
    }
    return Step::next;
}

struct TensormapFencePayload : FencePayload {
    AddressRef address;
};

/// fence.proxy.tensormap::generic.acquire [address], 128: the map at this address will be used. The fence itself accesses
/// no memory, so a GPU raises nothing whatever the address is. By PTX only an address in global memory is defined. At null
/// there is no map to use (kernels with an optional operand do this): nothing to say. Any other address is a mistake: the
/// map that was meant is left without its fence.
Step execute_tensormap_acquire(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<TensormapFencePayload>();
    for_each_lane(active, [&](unsigned lane) {
        const std::uint64_t address = warp.address(payload.address, lane);
        if (address == 0) {
            return;
        }
        GlobalProblem problem;
        if (address % tensor_map_bytes != 0) {
            warp.report(operation, FindingKind::misaligned, LaneMask{1} << lane,
                        fmt::format("a tensor map at {:#x}: the fence is for 128 bytes aligned to 128", address));
        }
        if (warp.cluster.global_shadow != nullptr) {
            warp.cluster.global_shadow->acquire_map(warp.agent, address);
        }
        if (locate_global(warp.cluster, address, tensor_map_bytes, Direction::read, problem) == nullptr) {
            warp.report(operation, FindingKind::invalid_operand, LaneMask{1} << lane,
                        fmt::format("the fence is for a tensor map at {:#x}, where none can be: {}: name the address "
                                    "of the map that is used after the fence",
                                    address, problem.text));
        }
    });
    return execute_fence(warp, operation, active);
}

Semantics semantics_of(std::string_view name)
{
    return name == "acquire"   ? Semantics::acquire
           : name == "release" ? Semantics::release
           : name == "sc"      ? Semantics::sc
                               : Semantics::acq_rel;
}

/// Fills in what the fence does.
void note_fence(Decoder& decoder, FencePayload& payload, SyncObject object, MemoryOrder order = {})
{
    payload.order = order;
    decoder.effects().sync = {.object = object, .fences = true, .order = order};
}

void decode_proxy_fence(Decoder& decoder, Operation& operation)
{
    if (decoder.take("tensormap::generic")) {
        auto& payload = decoder.emplace_payload<TensormapFencePayload>();
        const std::string_view semantics = decoder.take_one_of({"acquire", "release"});
        const Scope scope = decoder.take_scope();
        if (semantics.empty() || scope == Scope::none) {
            decoder.fail("the forms are .release.scope, and .acquire.scope [address], 128");
        }
        note_fence(decoder, payload, SyncObject::other_proxy, {semantics_of(semantics), scope});
        if (semantics == "release") {
            payload.proxies = fences_tensormap;
            operation.execute = execute_fence;
            return;
        }
        if (decoder.operands() != 2 || decoder.constant(1) != std::int64_t{tensor_map_bytes}) {
            decoder.fail("an acquire names the address and the size, which is 128");
        }
        payload.address = decoder.address(0);
        operation.execute = execute_tensormap_acquire;
        return;
    }
    auto& payload = decoder.emplace_payload<FencePayload>();
    operation.execute = execute_fence;
    if (decoder.take("alias")) {
        note_fence(decoder, payload, SyncObject::other_proxy);
        return;
    }
    if (decoder.take("async")) {
        const std::string_view space = decoder.take_one_of({"global", "shared::cta", "shared::cluster"});
        payload.proxies = space.empty()       ? fences_shared | fences_global
                          : space == "global" ? fences_global
                                              : fences_shared;
        note_fence(decoder, payload, SyncObject::async_proxy);
        return;
    }
    if (decoder.take("async::generic")) {
        const std::string_view semantics = decoder.take_one_of({"acquire", "release"});
        const bool restricted =
            !decoder.take_one_of({"sync_restrict::shared::cta", "sync_restrict::shared::cluster"}).empty();
        if (semantics.empty() || !restricted || !decoder.take("cluster")) {
            decoder.fail(
                "the forms are .acquire.sync_restrict::shared::cluster.cluster and "
                ".release.sync_restrict::shared::cta.cluster");
        }
        payload.proxies = fences_shared | fences_one_way;
        note_fence(decoder, payload, SyncObject::async_proxy, {semantics_of(semantics), Scope::cluster});
        return;
    }
    decoder.fail("the kind of proxy is missing or not known: .alias, .async, .async::generic or .tensormap::generic");
}

}  // namespace

void decode_fence(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::barrier;
    if (decoder.take("proxy")) {
        decode_proxy_fence(decoder, operation);
        return;
    }
    auto& payload = decoder.emplace_payload<FencePayload>();
    operation.execute = execute_fence;
    if (decoder.take("mbarrier_init")) {
        if (!decoder.take("release") || !decoder.take("cluster")) {
            decoder.fail("the form is fence.mbarrier_init.release.cluster");
        }
        note_fence(decoder, payload, SyncObject::memory, {Semantics::release, Scope::cluster});
        payload.proxies = fences_barrier_init;
        return;
    }
    const std::string_view semantics = decoder.take_one_of({"sc", "acq_rel", "acquire", "release"});
    decoder.take_one_of({"sync_restrict::shared::cta", "sync_restrict::shared::cluster"});
    const Scope scope = decoder.take_scope();
    if (scope == Scope::none) {
        decoder.fail("the scope is missing: .cta, .cluster, .gpu or .sys");
    }
    note_fence(decoder, payload, SyncObject::memory, {semantics_of(semantics), scope});
}

void decode_membar(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::barrier;
    auto& payload = decoder.emplace_payload<FencePayload>();
    operation.execute = execute_fence;
    if (decoder.take("proxy")) {
        if (!decoder.take("alias")) {
            decoder.fail("the form is membar.proxy.alias");
        }
        note_fence(decoder, payload, SyncObject::other_proxy);
        return;
    }
    const std::string_view level = decoder.take_one_of({"cta", "gl", "sys"});
    if (level.empty()) {
        decoder.fail("the level is missing: .cta, .gl or .sys");
    }
    note_fence(decoder, payload, SyncObject::memory,
               {Semantics::sc, level == "cta"  ? Scope::cta
                               : level == "gl" ? Scope::gpu
                                               : Scope::sys});
}

}  // namespace tessera::emulator
