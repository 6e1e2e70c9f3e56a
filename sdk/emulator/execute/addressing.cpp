// Instructions on addresses that do not access memory: cvta, isspacep, mapa, getctarank, and the cache hints (PTX ISA
// 9.7.9).

#include <fmt/format.h>

#include <array>

#include "execute/lanewise.hpp"
#include "execute/memory_lanes.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"
#include "program/builder.hpp"

namespace tessera::emulator {

using ptx::Type;

namespace {

constexpr std::uint64_t window_bytes = std::uint64_t{1} << 32;
constexpr std::uint32_t in_cta = (1U << shared_rank_shift) - 1;

// Start of the generic addresses of a space. Generic addresses of global and constant memory are the addresses
// themselves.
std::uint64_t window_of(std::string_view space)
{
    return space.starts_with("shared")  ? shared_window
           : space == "local"           ? local_window
           : space.starts_with("param") ? parameter_window
                                        : 0;
}

std::string_view take_address_space(Decoder& decoder)
{
    const std::string_view space = decoder.take_one_of(
        {"global", "const", "local", "shared", "shared::cta", "shared::cluster", "param", "param::entry"});
    if (space.empty()) {
        decoder.fail("a state space is missing");
    }
    return space;
}

// ---- cvta ----

void decode_cvta(Decoder& decoder, Operation& operation)
{
    const bool to = decoder.take("to");
    const std::string_view space = take_address_space(decoder);
    if (decoder.require_type() != Type::u64) {
        decoder.fail("addresses have 64 bits here: use .u64");
    }
    if (space.starts_with("param") && !to && !decoder.function().source.kernel) {
        decoder.fail("only a kernel's parameters have generic addresses");
    }
    expect_operands(decoder, 2);
    const std::uint64_t window = window_of(space);
    operation.operand = {decoder.write(0, Type::u64), decoder.read(1, Type::u64),
                         decoder.constant_row(to ? 0 - window : window, Type::u64)};
    operation.execute =
        lanewise<std::uint64_t, std::uint64_t, std::uint64_t>([](std::uint64_t a, std::uint64_t b) { return a + b; });
    operation.kind = InstructionClass::integer;
}

// ---- isspacep ----

enum class AddressKind : std::uint8_t { global, constant, local, own_shared, cluster_shared, parameter };

struct SpacePayload : Payload {
    AddressKind kind = AddressKind::global;
};

bool is_in(Warp& warp, AddressKind kind, std::uint64_t address)
{
    Cluster& cluster = warp.cluster;
    std::uint32_t shared = 0;
    if (generic_to_shared(address, shared)) {
        return (kind == AddressKind::own_shared && shared >> shared_rank_shift == warp.cta.rank) ||
               (kind == AddressKind::cluster_shared && cluster.cta_of(shared) != nullptr);
    }
    if (address - local_window < window_bytes) {
        return kind == AddressKind::local;
    }
    if (address - parameter_window < window_bytes) {
        return kind == AddressKind::parameter;
    }
    if (kind != AddressKind::global && kind != AddressKind::constant) {
        return false;
    }
    const AllocationCache::Entry* const entry = cluster.allocations->find(cluster.grid.memory, address);
    const bool constant = entry != nullptr && entry->allocation->constant;
    return constant == (kind == AddressKind::constant);
}

Step execute_isspacep(Warp& warp, const Operation& operation, LaneMask active)
{
    const AddressKind kind = operation.as<SpacePayload>().kind;
    const std::uint64_t* const address = warp.row<std::uint64_t>(operation.operand[1]);
    LaneMask result = 0;
    for_each_lane(
        active, [&](unsigned lane) { result |= is_in(warp, kind, address[lane]) ? LaneMask{1} << lane : LaneMask{0}; });
    warp.set_predicate(operation.operand[0], active, result);
    return Step::next;
}

void decode_isspacep(Decoder& decoder, Operation& operation)
{
    const std::string_view space = take_address_space(decoder);
    auto& payload = decoder.emplace_payload<SpacePayload>();
    payload.kind = space == "global"             ? AddressKind::global
                   : space == "const"            ? AddressKind::constant
                   : space == "local"            ? AddressKind::local
                   : space == "shared::cluster"  ? AddressKind::cluster_shared
                   : space.starts_with("shared") ? AddressKind::own_shared
                                                 : AddressKind::parameter;
    expect_operands(decoder, 2);
    operation.operand[0] = decoder.write(0, Type::pred);
    operation.operand[1] = decoder.read(1, Type::u64);
    operation.execute = execute_isspacep;
    operation.kind = InstructionClass::integer;
}

// ---- mapa, getctarank ----

/// The rank in a shared address. Reports addresses outside of the cluster's shared memory.
template <typename Address>
std::uint32_t rank_of(Warp& warp, const Operation& operation, unsigned lane, Address address, std::uint64_t window)
{
    const std::uint64_t shared = address - window;
    const auto rank = static_cast<std::uint32_t>(shared >> shared_rank_shift);
    if (shared >= window_bytes || rank >= warp.cluster.ctas.size()) {
        warp.report(operation, FindingKind::invalid_operand, LaneMask{1} << lane,
                    fmt::format("0x{:x} is not an address of the shared memory of the cluster's {} CTAs", address,
                                warp.cluster.ctas.size()));
    }
    return rank;
}

template <typename Address, std::uint64_t window>
Step execute_mapa(Warp& warp, const Operation& operation, LaneMask active)
{
    Address* const d = warp.row<Address>(operation.operand[0]);
    const Address* const a = warp.row<Address>(operation.operand[1]);
    const std::uint32_t* const b = warp.row<std::uint32_t>(operation.operand[2]);
    for_each_lane(active, [&](unsigned lane) {
        const Address address = a[lane];
        const std::uint32_t rank = b[lane];
        (void)rank_of(warp, operation, lane, address, window);
        if (rank >= warp.cluster.ctas.size()) {
            warp.report(operation, FindingKind::invalid_operand, LaneMask{1} << lane,
                        fmt::format("mapa to CTA {} of a cluster of {}", rank, warp.cluster.ctas.size()));
        }
        d[lane] = static_cast<Address>(window + (std::uint64_t{rank & 0xFF} << shared_rank_shift | (address & in_cta)));
    });
    return Step::next;
}

template <typename Address, std::uint64_t window>
Step execute_getctarank(Warp& warp, const Operation& operation, LaneMask active)
{
    std::uint32_t* const d = warp.row<std::uint32_t>(operation.operand[0]);
    const Address* const a = warp.row<Address>(operation.operand[1]);
    for_each_lane(active, [&](unsigned lane) { d[lane] = rank_of(warp, operation, lane, a[lane], window); });
    return Step::next;
}

void need_clusters(const Decoder& decoder)
{
    if (decoder.device().max_cluster == 0) {
        decoder.fail(fmt::format("{} has no clusters", decoder.device().name));
    }
}

/// Takes {.shared::cluster}.type. `generic` is set if the space is missing.
Type take_cluster_address(Decoder& decoder, bool& generic)
{
    need_clusters(decoder);
    generic = !decoder.take("shared::cluster");
    const Type type = decoder.require_type();
    if (type != Type::u64 && (type != Type::u32 || generic)) {
        decoder.fail(generic ? "generic addresses have 64 bits: use .u64" : "the type must be .u32 or .u64");
    }
    decoder.operation().kind = InstructionClass::integer;
    return type;
}

void decode_mapa(Decoder& decoder, Operation& operation)
{
    bool generic = false;
    const Type type = take_cluster_address(decoder, generic);
    expect_operands(decoder, 3);
    operation.operand[0] = decoder.write(0, type);
    operation.operand[1] = decoder.read(1, type);
    operation.operand[2] = decoder.read(2, Type::u32);
    operation.execute = generic             ? execute_mapa<std::uint64_t, shared_window>
                        : type == Type::u64 ? execute_mapa<std::uint64_t, 0>
                                            : execute_mapa<std::uint32_t, 0>;
}

void decode_getctarank(Decoder& decoder, Operation& operation)
{
    bool generic = false;
    const Type type = take_cluster_address(decoder, generic);
    expect_operands(decoder, 2);
    operation.operand[0] = decoder.write(0, Type::u32);
    operation.operand[1] = decoder.read(1, type);
    operation.execute = generic             ? execute_getctarank<std::uint64_t, shared_window>
                        : type == Type::u64 ? execute_getctarank<std::uint64_t, 0>
                                            : execute_getctarank<std::uint32_t, 0>;
}

// ---- caches ----

Step execute_nothing(Warp&, const Operation&, LaneMask) { return Step::next; }

void decode_prefetch(Decoder& decoder, Operation& operation)
{
    const bool uniform = decoder.instruction().opcode == "prefetchu";
    decoder.take_one_of({"global", "local", "param", "const"});
    const std::string_view level =
        uniform ? decoder.take_one_of({"L1"})
                : decoder.take_one_of({"L1", "L2", "L2::evict_last", "L2::evict_normal", "tensormap"});
    if (level.empty()) {
        decoder.fail("the cache level is missing");
    }
    expect_operands(decoder, 1);
    (void)decoder.address(std::size_t{0});
    operation.execute = execute_nothing;
    operation.kind = InstructionClass::memory;
}

void expect_line(const Decoder& decoder)
{
    expect_operands(decoder, 2);
    if (decoder.constant(1) != 128) {
        decoder.fail("the size must be 128");
    }
}

void decode_applypriority(Decoder& decoder, Operation& operation)
{
    decoder.take("global");
    if (!decoder.take("L2::evict_normal")) {
        decoder.fail("the priority must be .L2::evict_normal");
    }
    expect_line(decoder);
    (void)decoder.address(std::size_t{0});
    operation.execute = execute_nothing;
    operation.kind = InstructionClass::memory;
}

/// discard: the bytes have no defined value from now on, so reading them is a finding.
Step execute_discard(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MemoryPayload>();
    Cluster& cluster = warp.cluster;
    for_each_lane(active, [&](unsigned lane) {
        const std::uint64_t address = warp.address(payload.address, lane);
        (void)locate(warp, operation, payload.access, address, payload.bytes, payload.bytes, lane);
        const AllocationCache::Entry* const entry = cluster.allocations->find(cluster.grid.memory, address);
        if (entry != nullptr) {
            entry->allocation->mark_uninitialized(address - entry->begin, payload.bytes);
        }
    });
    return Step::next;
}

void decode_discard(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<MemoryPayload>();
    decoder.take("global");
    if (!decoder.take("L2")) {
        decoder.fail("the level must be .L2");
    }
    expect_line(decoder);
    payload.what = "discard";
    payload.access = {.space = Space::global, .direction = Direction::write, .what = payload.what.c_str()};
    payload.bytes = 128;
    take_address(decoder, 0, payload);
    note_access(decoder, payload);
    operation.execute = execute_discard;
    operation.kind = InstructionClass::memory;
}

/// The policies are opaque. These are the values that ptxas uses for a fraction of 1; some programs pass them as
/// constants.
std::uint64_t policy_bits(std::string_view priority)
{
    return priority == "L2::evict_first"  ? 0x12F0'0000'0000'0000
           : priority == "L2::evict_last" ? 0x14F0'0000'0000'0000
                                          : 0x1000'0000'0000'0000;
}

void decode_createpolicy(Decoder& decoder, Operation& operation)
{
    const std::string_view form = decoder.take_one_of({"fractional", "range", "cvt"});
    operation.operand[0] = decoder.write(0, Type::b64);
    operation.kind = InstructionClass::integer;
    operation.execute = lanewise<std::uint64_t, std::uint64_t>([](std::uint64_t a) { return a; });
    if (form == "cvt") {
        if (!decoder.take("L2") || decoder.require_type() != Type::b64) {
            decoder.fail("the form is createpolicy.cvt.L2.b64");
        }
        expect_operands(decoder, 2);
        operation.operand[1] = decoder.read(1, Type::b64);
        return;
    }
    if (form.empty()) {
        decoder.fail("the form is missing: .fractional, .range or .cvt");
    }
    const bool range = form == "range";
    if (range) {
        decoder.take("global");
    }
    const std::string_view primary =
        decoder.take_one_of({"L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"});
    if (primary.empty()) {
        decoder.fail("the primary priority is missing");
    }
    decoder.take_one_of({"L2::evict_first", "L2::evict_unchanged"});
    if (decoder.require_type() != Type::b64) {
        decoder.fail("a policy is a .b64");
    }
    if (range) {
        expect_operands(decoder, 4);
        (void)decoder.address(std::size_t{1});
        (void)decoder.read(2, Type::b32);
        (void)decoder.read(3, Type::b32);
    } else if (decoder.operands() != 1) {
        expect_operands(decoder, 2);
        (void)decoder.read(1, Type::f32);
    }
    operation.operand[1] = decoder.constant_row(policy_bits(primary), Type::b64);
}

// ---- not emulated ----

void decode_multimem(Decoder& decoder, Operation&)
{
    decoder.fail("multimem needs multicast objects of several devices, which the emulated device does not have");
}

void decode_texture(Decoder& decoder, Operation&)
{
    decoder.fail("the emulated device has no textures and surfaces: load from global memory");
}

void decode_stack(Decoder& decoder, Operation&)
{
    decoder.fail("the emulated device has no dynamic stack memory: declare a .local variable of fixed size");
}

constexpr std::array instructions{
    InstructionEntry{"cvta", decode_cvta},
    InstructionEntry{"isspacep", decode_isspacep},
    InstructionEntry{"mapa", decode_mapa},
    InstructionEntry{"getctarank", decode_getctarank},
    InstructionEntry{"prefetch", decode_prefetch},
    InstructionEntry{"prefetchu", decode_prefetch},
    InstructionEntry{"applypriority", decode_applypriority},
    InstructionEntry{"discard", decode_discard},
    InstructionEntry{"createpolicy", decode_createpolicy},
    InstructionEntry{"alloca", decode_stack},
    InstructionEntry{"stacksave", decode_stack},
    InstructionEntry{"stackrestore", decode_stack},
    InstructionEntry{"multimem", decode_multimem},
    InstructionEntry{"tex", decode_texture},
    InstructionEntry{"tld4", decode_texture},
    InstructionEntry{"txq", decode_texture},
    InstructionEntry{"suld", decode_texture},
    InstructionEntry{"sust", decode_texture},
    InstructionEntry{"sured", decode_texture},
    InstructionEntry{"suq", decode_texture},
    InstructionEntry{"istypep", decode_texture},
};

}  // namespace

std::span<const InstructionEntry> address_instructions() { return instructions; }

}  // namespace tessera::emulator
