// st.async, red.async, st.bulk (PTX ISA 9.7.9.13, 9.7.13.7, 9.7.9.14).

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>

#include "execute/atomics.hpp"
#include "execute/lanewise.hpp"
#include "execute/locked.hpp"
#include "execute/memory_lanes.hpp"
#include "machine/async_operation.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/mbarrier_access.hpp"

namespace tessera::emulator {

using ptx::Type;

namespace {

struct AsyncStorePayload : Payload {
    std::string what;
    AddressRef address, barrier;
    bool completes = false;  ///< on an mbarrier: shared memory; else global memory with release semantics
    unsigned element_bytes = 0, elements = 1;
    std::array<Ref, 4> rows{};
    AtomicUpdate update = nullptr;  ///< red.async
    MemoryOrder order{};
};

/// What one lane stores or reduces, in flight.
class AsyncStore final : public AsyncOperation {
public:
    AsyncStore(const AsyncStorePayload& payload, std::uint64_t address, std::uint64_t barrier)
        : payload_(payload), address_(address), barrier_(barrier)
    {
        kind = Kind::store;
    }

    std::array<std::uint64_t, 4> values{};  ///< by element

    bool step(Cluster& cluster) override
    {
        const unsigned bytes = payload_.element_bytes * payload_.elements;
        std::byte* const at = payload_.completes ? shared_bytes(cluster, bytes) : global_bytes(cluster, bytes);
        for (unsigned k = 0; k < payload_.elements; ++k) {
            std::byte* const place = at + std::size_t{k} * payload_.element_bytes;
            if (payload_.update != nullptr) {
                payload_.update(place, values[k], 0, payload_.completes);
            } else {
                switch (payload_.element_bytes) {
                    case 1: store_strong(place, static_cast<std::uint8_t>(values[k])); break;
                    case 2: store_strong(place, static_cast<std::uint16_t>(values[k])); break;
                    case 4: store_strong(place, static_cast<std::uint32_t>(values[k])); break;
                    default: store_strong(place, values[k]); break;
                }
            }
        }
        if (payload_.completes) {
            async_arrive(cluster, *this, static_cast<std::uint32_t>(barrier_), 0, bytes);
        } else if (cluster.options().check) {
            ScopedPoint& point = cluster.clocks.memory_point(address_);
            cluster.clocks.complete_async(agent, point.near[cta_rank]);
            if (!payload_.order.within_cta()) {
                cluster.clocks.complete_async(agent, point.wide);
            }
        }
        cluster.progress();
        return true;
    }

    [[nodiscard]] std::string describe() const override
    {
        return payload_.completes
                   ? fmt::format("{} to shared 0x{:x}, mbarrier 0x{:x}", payload_.what, address_, barrier_)
                   : fmt::format("{} to 0x{:x}", payload_.what, address_);
    }

private:
    std::byte* shared_bytes(Cluster& cluster, unsigned bytes)
    {
        const auto address = static_cast<std::uint32_t>(address_);
        Cta* const cta = cluster.cta_of(address);
        if (cta->started && cta->exited()) {
            cluster.report(
                *this, FindingKind::cluster_protocol,
                fmt::format("{}, but that CTA has exited: synchronize the cluster (barrier.cluster) before a CTA exits",
                            describe()));
        }
        std::byte* const at = cta->shared_bytes(address, bytes);
        if (cta->shadow && cluster.options().check) {
            const auto offset = static_cast<std::uint32_t>(at - cta->shared.data());
            const std::uint32_t line = line_of(operation);
            const KnownOfWork known(cluster, *this);
            std::optional<ShadowFinding> found;
            if (payload_.update != nullptr) {
                found = cta->shadow->read(agent, offset, bytes, Proxy::generic, payload_.what.c_str(), line, true,
                                          nullptr, Clocks::any_lane, &known);
            }
            std::optional<ShadowFinding> second =
                cta->shadow->write(agent, offset, bytes, Proxy::generic, payload_.what.c_str(), line,
                                   payload_.update != nullptr, Clocks::any_lane, &known);
            found = found ? std::move(found) : std::move(second);
            if (found) {
                cluster.report(*this, *found);
            }
            cta->shadow->end(agent);
        }
        return at;
    }

    std::byte* global_bytes(Cluster& cluster, unsigned bytes)
    {
        GlobalProblem problem;
        std::byte* const at = locate_global(
            cluster, address_, bytes, payload_.update != nullptr ? Direction::read_write : Direction::write, problem);
        if (at == nullptr) {
            cluster.fault(*this, problem.kind, error_illegal_address, problem.text);
        }
        if (!problem.text.empty()) {
            cluster.report(*this, problem.kind, {problem.text, cause_in(cluster, address_)});
        }
        return at;
    }

    const AsyncStorePayload& payload_;
    std::uint64_t address_, barrier_;
};

/// The 32 bits of a shared address, which may be generic. Checks that `bytes` bytes there are accessible.
std::uint32_t shared_place(Warp& warp, const Operation& operation, const AsyncStorePayload& payload,
                           std::uint64_t address, unsigned bytes, unsigned lane)
{
    auto shared = static_cast<std::uint32_t>(address);
    const LaneMask bit = LaneMask{1} << lane;
    if (address >> 32 != 0 && !generic_to_shared(address, shared)) {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit,
                   fmt::format("{}: 0x{:x} is not an address of shared memory", payload.what, address));
    }
    if (shared % bytes != 0) {
        warp.fault(operation, FindingKind::misaligned, error_misaligned_address, bit,
                   fmt::format("{}: shared 0x{:x} must be a multiple of {}", payload.what, shared, bytes));
    }
    Cta* const cta = warp.cluster.cta_of(shared);
    if (cta == nullptr || cta->shared_bytes(shared, bytes) == nullptr) {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit,
                   fmt::format("{}: shared 0x{:x} is outside of the shared memory of the cluster's {} CTAs",
                               payload.what, shared, warp.cluster.ctas.size()));
    }
    if (cta != &warp.cta && !cta->started) {
        warp.report(operation, FindingKind::cluster_protocol, bit,
                    fmt::format("{} to shared 0x{:x} of CTA {}, which may not have started: synchronize the cluster "
                                "(barrier.cluster) before the first access to a peer",
                                payload.what, shared, shared >> shared_rank_shift));
    }
    return shared;
}

Step execute_async_store(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<AsyncStorePayload>();
    const unsigned bytes = payload.element_bytes * payload.elements;
    for_each_lane(active, [&](unsigned lane) {
        std::uint64_t address = warp.address(payload.address, lane);
        std::uint64_t barrier = 0;
        if (payload.completes) {
            address = shared_place(warp, operation, payload, address, bytes, lane);
            barrier = shared_place(warp, operation, payload, warp.address(payload.barrier, lane), 8, lane);
            if (address >> shared_rank_shift != barrier >> shared_rank_shift) {
                warp.report(
                    operation, FindingKind::invalid_operand, LaneMask{1} << lane,
                    fmt::format(
                        "{}: shared 0x{:x} and the mbarrier 0x{:x} are in different CTAs; they must be in the same",
                        payload.what, address, barrier));
            }
        } else if (address % bytes != 0) {
            warp.fault(operation, FindingKind::misaligned, error_misaligned_address, LaneMask{1} << lane,
                       fmt::format("{}: 0x{:x} must be a multiple of {}", payload.what, address, bytes));
        }
        auto store = std::make_unique<AsyncStore>(payload, address, barrier);
        for (unsigned k = 0; k < payload.elements; ++k) {
            switch (payload.element_bytes) {
                case 1: store->values[k] = warp.row<std::uint8_t>(payload.rows[k])[lane]; break;
                case 2: store->values[k] = warp.row<std::uint16_t>(payload.rows[k])[lane]; break;
                case 4: store->values[k] = warp.row<std::uint32_t>(payload.rows[k])[lane]; break;
                default: store->values[k] = warp.row<std::uint64_t>(payload.rows[k])[lane]; break;
            }
        }
        const AsyncStore& submitted = *store;
        warp.cluster.submit(std::move(store), warp, operation, LaneMask{1} << lane);
        Cta* const cta = payload.completes ? warp.cluster.cta_of(static_cast<std::uint32_t>(address)) : nullptr;
        if (cta != nullptr && cta->shadow && warp.checks() && payload.update == nullptr) {
            const auto offset = static_cast<std::uint32_t>(address & ((1U << shared_rank_shift) - 1)) - shared_base;
            cta->shadow->begin(submitted.agent, offset, bytes, true, payload.what.c_str(), line_of(operation));
        }
        Statistics& statistics = warp.cluster.statistics;
        (payload.completes ? statistics.shared_write_bytes : statistics.global_write_bytes) += bytes;
    });
    return Step::next;
}

/// The common part of st.async and red.async. `type` and the number of elements are known.
void decode_async_store(Decoder& decoder, Operation& operation, AsyncStorePayload& payload, Type type)
{
    payload.what = short_name(decoder.instruction());
    payload.element_bytes = static_cast<unsigned>(ptx::size_of(type));
    expect_operands(decoder, payload.completes ? 3 : 2);
    payload.address = decoder.address(std::size_t{0});
    if (payload.completes) {
        payload.barrier = decoder.address(std::size_t{2});
    }
    if (payload.address.anchor != AddressRef::Anchor::absolute ||
        payload.barrier.anchor != AddressRef::Anchor::absolute) {
        decoder.fail("the addresses must be in shared or global memory");
    }
    const DataRows data = read_data(decoder, 1, type);
    if (data.rows.size() != payload.elements || data.row_bytes != payload.element_bytes) {
        decoder.fail(fmt::format("{} registers of {} bytes, where {} of {} are needed", data.rows.size(),
                                 data.row_bytes, payload.elements, payload.element_bytes));
    }
    std::ranges::copy(data.rows, payload.rows.begin());
    const unsigned needed = payload.completes ? 90 : 100;
    if (decoder.device().capability() < needed) {
        decoder.fail(fmt::format("this needs compute capability {}.{}; {} has {}.{}", needed / 10, needed % 10,
                                 decoder.device().name, decoder.device().major, decoder.device().minor));
    }
    operation.execute = execute_async_store;
    operation.kind = InstructionClass::memory;
    Effects& effects = decoder.effects();
    const bool reduces = payload.update != nullptr;
    effects.unit = AsyncUnit::load_store;
    effects.access({.space = payload.completes ? Space::shared : Space::global,
                    .direction = reduces ? Direction::read_write : Direction::write,
                    .bytes = payload.element_bytes * payload.elements,
                    .atomic = reduces,
                    .later = true,
                    .order = payload.order});
    if (payload.completes) {
        effects.sync = {.object = SyncObject::mbarrier,
                        .arrives = true,
                        .later = true,
                        .order = {Semantics::release, Scope::cluster}};
    }
}

/// Takes the form without an mbarrier: {.mmio}.release.scope{.global}.
void take_release_to_global(Decoder& decoder, AsyncStorePayload& payload)
{
    decoder.take("mmio");
    const bool release = decoder.take("release");
    payload.order = {Semantics::release, decoder.take_scope()};
    if (!release || payload.order.scope == Scope::none) {
        decoder.fail("without .mbarrier::complete_tx::bytes it must have .release and a scope");
    }
    decoder.take("global");
}

// ---- st.bulk ----

struct BulkStorePayload : Payload {
    std::string what;
    MemoryAccess access;
    AddressRef address;
    Ref size = no_row;
};

Step execute_st_bulk(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<BulkStorePayload>();
    for_each_lane(active, [&](unsigned lane) {
        const std::uint64_t size = warp.row<std::uint64_t>(payload.size)[lane];
        if (size % 8 != 0 || size > std::uint64_t{0xFFFFFF}) {
            warp.fault(
                operation, FindingKind::invalid_operand, error_illegal_instruction, LaneMask{1} << lane,
                fmt::format("st.bulk of {} bytes: the size must be a multiple of 8 and within shared memory", size));
        }
        if (size == 0) {
            return;
        }
        const std::uint64_t address = warp.address(payload.address, lane);
        std::uint32_t shared = 0;
        if (payload.access.space == Space::generic && !generic_to_shared(address, shared)) {
            warp.fault(operation, FindingKind::out_of_bounds, error_invalid_address_space, LaneMask{1} << lane,
                       fmt::format("st.bulk at 0x{:x}, which is not in shared memory", address));
        }
        std::byte* const at = locate(warp, operation, payload.access, address, static_cast<unsigned>(size), 8, lane);
        std::memset(at, 0, size);
        warp.cluster.statistics.shared_write_bytes += size;
    });
    warp.cluster.progress();
    return Step::next;
}

}  // namespace

void decode_st_async(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<AsyncStorePayload>();
    payload.completes = decoder.take("mbarrier::complete_tx::bytes");
    if (payload.completes) {
        decoder.take("weak");
        decoder.take("shared::cluster");
    } else {
        take_release_to_global(decoder, payload);
    }
    const std::string_view vector = payload.completes ? decoder.take_one_of({"v2", "v4"}) : std::string_view{};
    payload.elements = vector.empty() ? 1 : static_cast<unsigned>(vector[1] - '0');
    const Type type = decoder.require_type();
    const std::size_t bytes = ptx::size_of(type);
    if (bytes == 0 || bytes > 8 || (payload.completes && bytes < 4) || bytes * payload.elements > 16) {
        decoder.fail(fmt::format(".{} is not a type of this st.async", ptx::name_of(type)));
    }
    decode_async_store(decoder, operation, payload, type);
}

void decode_red_async(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<AsyncStorePayload>();
    payload.completes = decoder.take("mbarrier::complete_tx::bytes");
    if (payload.completes) {
        if (!decoder.take("relaxed") || !decoder.take("cluster")) {
            decoder.fail("red.async on an mbarrier must be .relaxed.cluster");
        }
        payload.order = {Semantics::relaxed, Scope::cluster};
        decoder.take("shared::cluster");
    } else {
        take_release_to_global(decoder, payload);
    }
    const std::string_view name = decoder.take_one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
    const std::optional<AtomicKind> kind = atomic_named(name);
    const Type type = decoder.require_type();
    const bool add64 = kind == AtomicKind::add && type == Type::s64;
    const bool floating = type == Type::f32 || type == Type::f64 || type == Type::f16 || type == Type::bf16 ||
                          type == Type::f16x2 || type == Type::bf16x2;
    if (!kind || floating || (!add64 && !has_atomic(*kind, type, false)) ||
        (!payload.completes && *kind != AtomicKind::add)) {
        decoder.fail(fmt::format("red.async has no .{}.{}", name, ptx::name_of(type)));
    }
    payload.update = atomic_update(*kind, type);
    decode_async_store(decoder, operation, payload, type);
}

void decode_st_bulk(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<BulkStorePayload>();
    decoder.take("weak");
    payload.access.space = decoder.take_one_of({"shared::cta", "shared"}).empty() ? Space::generic : Space::shared;
    payload.access.direction = Direction::write;
    payload.what = short_name(decoder.instruction());
    payload.access.what = payload.what.c_str();
    expect_operands(decoder, 3);
    payload.address = decoder.address(std::size_t{0});
    if (payload.address.anchor != AddressRef::Anchor::absolute) {
        decoder.fail("the address must be in shared memory");
    }
    payload.size = decoder.read(1, Type::u64);
    if (decoder.constant(2) != 0) {
        decoder.fail("st.bulk can only store 0");
    }
    if (decoder.device().capability() < 100) {
        decoder.fail(fmt::format("st.bulk needs compute capability 10.0; {} has {}.{}", decoder.device().name,
                                 decoder.device().major, decoder.device().minor));
    }
    operation.execute = execute_st_bulk;
    decoder.effects().access({.space = payload.access.space, .direction = Direction::write});
    operation.kind = InstructionClass::memory;
}

}  // namespace tessera::emulator
