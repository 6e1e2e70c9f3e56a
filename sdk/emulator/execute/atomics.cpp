// atom, red (PTX ISA 9.7.13.5 and 9.7.13.6).

#include "execute/atomics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "execute/lanewise.hpp"
#include "execute/locked.hpp"
#include "execute/memory_lanes.hpp"
#include "machine/cluster.hpp"
#include "numerics/float_ops.hpp"

namespace tessera::emulator {

using ptx::Type;

namespace {

// The operations of an element type, on its bits.

template <typename T>
struct Integer {
    using Bits = std::make_unsigned_t<T>;
    template <AtomicKind kind>
    static Bits apply(Bits a, Bits b, Bits c, bool)
    {
        const T x = static_cast<T>(a), y = static_cast<T>(b);
        switch (kind) {
            case AtomicKind::add: return static_cast<Bits>(a + b);
            case AtomicKind::minimum: return static_cast<Bits>(std::min(x, y));
            case AtomicKind::maximum: return static_cast<Bits>(std::max(x, y));
            case AtomicKind::increment: return a >= b ? Bits{0} : static_cast<Bits>(a + 1);
            case AtomicKind::decrement: return a == 0 || a > b ? b : static_cast<Bits>(a - 1);
            case AtomicKind::bit_and: return a & b;
            case AtomicKind::bit_or: return a | b;
            case AtomicKind::bit_xor: return a ^ b;
            case AtomicKind::exchange: return b;
            case AtomicKind::compare_and_swap: return a == b ? c : a;
        }
        return a;
    }
};

struct Single {
    using Bits = std::uint32_t;
    template <AtomicKind>
    static Bits apply(Bits a, Bits b, Bits, bool ftz)
    {
        const float x = numerics::flush_if(std::bit_cast<float>(a), ftz);
        const float y = numerics::flush_if(std::bit_cast<float>(b), ftz);
        return std::bit_cast<Bits>(numerics::flush_if(numerics::add_rn(x, y), ftz));
    }
};

struct Double {
    using Bits = std::uint64_t;
    template <AtomicKind>
    static Bits apply(Bits a, Bits b, Bits, bool)
    {
        return std::bit_cast<Bits>(numerics::add_rn(std::bit_cast<double>(a), std::bit_cast<double>(b)));
    }
};

struct Half {
    using Bits = std::uint16_t;
    template <AtomicKind kind>
    static Bits apply(Bits a, Bits b, Bits, bool)
    {
        switch (kind) {
            case AtomicKind::minimum: return numerics::minimum_f16(a, b, {});
            case AtomicKind::maximum: return numerics::maximum_f16(a, b, {});
            default: return numerics::add_f16(a, b);
        }
    }
};

struct Brain {
    using Bits = std::uint16_t;
    template <AtomicKind kind>
    static Bits apply(Bits a, Bits b, Bits, bool)
    {
        switch (kind) {
            case AtomicKind::minimum: return numerics::minimum_bf16(a, b, {});
            case AtomicKind::maximum: return numerics::maximum_bf16(a, b, {});
            default: return numerics::add_bf16(a, b);
        }
    }
};

/// Two elements in 32 bits.
template <typename Element>
struct Pair {
    using Bits = std::uint32_t;
    template <AtomicKind kind>
    static Bits apply(Bits a, Bits b, Bits, bool)
    {
        const auto low =
            Element::template apply<kind>(static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b), 0, false);
        const auto high = Element::template apply<kind>(static_cast<std::uint16_t>(a >> 16),
                                                        static_cast<std::uint16_t>(b >> 16), 0, false);
        return low | Bits{high} << 16;
    }
};

template <typename Element, AtomicKind kind>
std::uint64_t update(std::byte* at, std::uint64_t b, std::uint64_t c, bool in_shared)
{
    using Bits = typename Element::Bits;
    const auto f = [&](Bits a) {
        return Element::template apply<kind>(a, static_cast<Bits>(b), static_cast<Bits>(c), !in_shared);
    };
    if (!in_shared) {
        return update_strong<Bits>(at, f);
    }
    Bits before;
    std::memcpy(&before, at, sizeof(Bits));
    const Bits after = f(before);
    std::memcpy(at, &after, sizeof(Bits));
    return before;
}

template <typename T>
AtomicUpdate integer_update(AtomicKind kind)
{
    using E = Integer<T>;
    switch (kind) {
        case AtomicKind::add: return update<E, AtomicKind::add>;
        case AtomicKind::minimum: return update<E, AtomicKind::minimum>;
        case AtomicKind::maximum: return update<E, AtomicKind::maximum>;
        case AtomicKind::increment: return update<E, AtomicKind::increment>;
        case AtomicKind::decrement: return update<E, AtomicKind::decrement>;
        case AtomicKind::bit_and: return update<E, AtomicKind::bit_and>;
        case AtomicKind::bit_or: return update<E, AtomicKind::bit_or>;
        case AtomicKind::bit_xor: return update<E, AtomicKind::bit_xor>;
        case AtomicKind::exchange: return update<E, AtomicKind::exchange>;
        case AtomicKind::compare_and_swap: return update<E, AtomicKind::compare_and_swap>;
    }
    return nullptr;
}

template <typename E>
AtomicUpdate floating_update(AtomicKind kind)
{
    switch (kind) {
        case AtomicKind::add: return update<E, AtomicKind::add>;
        case AtomicKind::minimum: return update<E, AtomicKind::minimum>;
        case AtomicKind::maximum: return update<E, AtomicKind::maximum>;
        default: return nullptr;
    }
}

bool is_half(Type type) noexcept { return type == Type::f16 || type == Type::bf16; }
bool is_pair(Type type) noexcept { return type == Type::f16x2 || type == Type::bf16x2; }

// ---- execution ----

struct AtomicPayload : MemoryPayload {
    AtomicUpdate update = nullptr;  ///< none for 128-bit types
    bool returns = false;           ///< atom, not red
    std::array<Ref, max_vector> operand_b{};
    Ref operand_c = no_row;
};

/// The lanes with an address in shared memory.
LaneMask in_shared(const AtomicPayload& payload, const Warp& warp, LaneMask active)
{
    if (payload.access.space != Space::generic) {
        return payload.access.space == Space::shared ? all_lanes : 0;
    }
    LaneMask result = 0;
    for_each_lane(active, [&](unsigned lane) {
        std::uint32_t shared = 0;
        result |= generic_to_shared(warp.address(payload.address, lane), shared) ? LaneMask{1} << lane : LaneMask{0};
    });
    return result;
}

template <typename Bits>
Step execute_atomic(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<AtomicPayload>();
    const bool meets = reaches_global(warp, payload, active);
    if (meets && !warp.cluster.may_meet()) {
        return Step::later;
    }
    LanePointers pointers;
    resolve(warp, operation, payload, active, pointers);
    // Before the loop: the result may overwrite the register of the address.
    const LaneMask shared = in_shared(payload, warp, active);
    bool changed = false;
    Step result = Step::next;
    Bits seen{};
    for_each_lane(active, [&](unsigned lane) {
        // A lane does all its elements before the next lane starts, so a sum adds the lanes in their order.
        for (unsigned k = 0; k < payload.elements; ++k) {
            const Bits b = warp.row<Bits>(payload.operand_b[k])[lane];
            const Bits c = payload.operand_c == no_row ? Bits{0} : warp.row<Bits>(payload.operand_c)[lane];
            const auto before =
                static_cast<Bits>(payload.update(pointers[lane] + k * sizeof(Bits), b, c, (shared >> lane & 1) != 0));
            if (payload.returns) {
                warp.row<Bits>(payload.rows[k])[lane] = before;
            }
            Bits after;
            std::memcpy(&after, pointers[lane] + k * sizeof(Bits), sizeof(Bits));
            changed = changed || after != before;
            seen = before;
            if (after != before && meets && warp.cluster.changed(pointers[lane]) == Step::yield) {
                result = Step::yield;
            }
        }
    });
    if (changed) {  // a failed compare-and-swap in a spin loop is not progress
        warp.cluster.progress();
        return result;
    }
    return meets ? warp.cluster.polled(pointers[std::bit_width(active) - 1], seen) : Step::next;
}

Step execute_atomic_wide(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<AtomicPayload>();
    const bool meets = reaches_global(warp, payload, active);
    if (meets && !warp.cluster.may_meet()) {
        return Step::later;
    }
    LanePointers pointers;
    resolve(warp, operation, payload, active, pointers);
    const auto last = static_cast<unsigned>(std::bit_width(active)) - 1;
    std::uint64_t seen = 0;
    bool changed = false;
    for_each_lane(active, [&](unsigned lane) {
        const Bits128 b = warp.row<Bits128>(payload.operand_b[0])[lane];
        const bool compares = payload.operand_c != no_row;
        const Bits128 c = compares ? warp.row<Bits128>(payload.operand_c)[lane] : Bits128{};
        const Bits128 before = update_strong<Bits128>(pointers[lane], [&](const Bits128& a) {
            const Bits128 after = !compares ? b : a == b ? c : a;
            changed = changed || !(after == a);
            return after;
        });
        std::memcpy(&seen, &before, sizeof seen);
        if (payload.returns) {
            warp.row<Bits128>(payload.rows[0])[lane] = before;
        }
    });
    if (changed) {
        warp.cluster.progress();
        return warp.cluster.changed(pointers[last]);
    }
    return warp.cluster.polled(pointers[last], seen);
}

Execute handler(Type type)
{
    switch (ptx::size_of(type)) {
        case 2: return execute_atomic<std::uint16_t>;
        case 4: return execute_atomic<std::uint32_t>;
        case 8: return execute_atomic<std::uint64_t>;
        default: return execute_atomic_wide;
    }
}

/// The common part after the opcode: semantics, scope, space, operation, vector, type.
void decode_atomic(Decoder& decoder, Operation& operation, bool returns)
{
    auto& payload = decoder.emplace_payload<AtomicPayload>();
    payload.what = short_name(decoder.instruction());
    payload.access.what = payload.what.c_str();
    payload.access.direction = Direction::read_write;
    payload.access.atomic = true;
    payload.returns = returns;
    const std::string_view semantics = returns ? decoder.take_one_of({"relaxed", "acquire", "release", "acq_rel"})
                                               : decoder.take_one_of({"relaxed", "release"});
    const Scope scope = decoder.take_scope();
    payload.access.order = {semantics == "acquire"   ? Semantics::acquire
                            : semantics == "release" ? Semantics::release
                            : semantics == "acq_rel" ? Semantics::acq_rel
                                                     : Semantics::relaxed,
                            scope == Scope::none ? Scope::gpu : scope};
    payload.access.space = take_space(decoder, payload.own_cta);
    const Space space = payload.access.space;
    if (space != Space::generic && space != Space::global && space != Space::shared) {
        decoder.fail(fmt::format("{} is for global and shared memory", decoder.instruction().opcode));
    }
    const std::string_view name =
        decoder.take_one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
    const std::optional<AtomicKind> kind = atomic_named(name);
    if (!kind) {
        decoder.fail("the operation is missing: .add, .min, .max, .inc, .dec, .and, .or, .xor, .exch or .cas");
    }
    if (!returns && (*kind == AtomicKind::exchange || *kind == AtomicKind::compare_and_swap)) {
        decoder.fail(fmt::format("red has no .{}: use atom", name));
    }
    const bool noftz = decoder.take("noftz");
    const std::string_view vector = decoder.take_one_of({"v2", "v4", "v8"});
    payload.elements = vector.empty() ? 1 : static_cast<unsigned>(vector[1] - '0');
    const Type type = decoder.require_type();
    if (!has_atomic(*kind, type, !vector.empty())) {
        decoder.fail(
            fmt::format(".{} does not exist for {}.{}", name, vector.empty() ? "" : "vectors of ", ptx::name_of(type)));
    }
    if (noftz != (is_half(type) || is_pair(type))) {
        decoder.fail(noftz ? ".noftz is for 16-bit floating-point types"
                           : ".noftz is needed for 16-bit floating-point types");
    }
    payload.bytes = static_cast<unsigned>(ptx::size_of(type)) * payload.elements;
    if (!vector.empty() && (space == Space::shared || payload.bytes > 16)) {
        decoder.fail(space == Space::shared ? "vector atomics are for global memory"
                                            : "vector atomics have at most 16 bytes");
    }
    if ((!vector.empty() || type == Type::b128) && decoder.device().capability() < 90) {
        decoder.fail(fmt::format("vector and 128-bit atomics need compute capability 9.0; {} has {}.{}",
                                 decoder.device().name, decoder.device().major, decoder.device().minor));
    }
    const std::size_t data = returns ? 2 : 1;
    const std::size_t before_policy = data + (*kind == AtomicKind::compare_and_swap ? 2 : 1);
    expect_operands(decoder, take_hints_and_policy(decoder, before_policy));
    take_address(decoder, data - 1, payload);
    const auto rows = [&](const DataRows& found) {
        if (found.rows.size() != payload.elements || found.row_bytes != ptx::size_of(type)) {
            decoder.fail(fmt::format("{} registers of {} bytes, where {} of {} are needed", found.rows.size(),
                                     found.row_bytes, payload.elements, ptx::size_of(type)));
        }
        return found.rows;
    };
    std::ranges::copy(rows(read_data(decoder, data, type)), payload.operand_b.begin());
    if (*kind == AtomicKind::compare_and_swap) {
        payload.operand_c = rows(read_data(decoder, data + 1, type)).front();
    }
    if (returns && decoder.is_sink(0)) {
        payload.rows.fill(decoder.write(0, type));
    } else if (returns) {
        std::ranges::copy(rows(write_data(decoder, 0, type)), payload.rows.begin());
    }
    if (*kind == AtomicKind::exchange) {  // the other operations use the old value
        payload.access.ignores_value = decoder.is_sink(0);
        payload.access.registers = {payload.rows.data(), payload.elements};
    }
    const bool order_matters = ptx::name_of(type).find('f') != std::string_view::npos;  // sums are rounded
    decoder.effects().meets_clusters = space != Space::shared;
    // A loop may wait for another cluster's atomic.
    decoder.effects().depends_on_clusters = (returns || order_matters) && space != Space::shared;
    note_access(decoder, payload);
    payload.update = type == Type::b128 ? nullptr : atomic_update(*kind, type);
    operation.execute = handler(type);
    operation.kind = InstructionClass::memory;
}

}  // namespace

std::optional<AtomicKind> atomic_named(std::string_view name) noexcept
{
    static constexpr std::string_view names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"};
    const auto* const found = std::find(std::begin(names), std::end(names), name);
    return found == std::end(names) ? std::nullopt : std::optional(static_cast<AtomicKind>(found - std::begin(names)));
}

bool has_atomic(AtomicKind kind, Type type, bool vector) noexcept
{
    const auto one_of = [type](std::initializer_list<Type> types) {
        return std::find(types.begin(), types.end(), type) != types.end();
    };
    if (vector) {
        const bool ordered = kind == AtomicKind::minimum || kind == AtomicKind::maximum;
        return (kind == AtomicKind::add && type == Type::f32) ||
               ((kind == AtomicKind::add || ordered) && (is_half(type) || is_pair(type)));
    }
    switch (kind) {
        case AtomicKind::add:
            return one_of({Type::u32, Type::s32, Type::u64, Type::f32, Type::f64}) || is_half(type) || is_pair(type);
        case AtomicKind::minimum:
        case AtomicKind::maximum: return one_of({Type::u32, Type::s32, Type::u64, Type::s64});
        case AtomicKind::increment:
        case AtomicKind::decrement: return type == Type::u32;
        case AtomicKind::bit_and:
        case AtomicKind::bit_or:
        case AtomicKind::bit_xor: return one_of({Type::b32, Type::b64});
        case AtomicKind::exchange: return one_of({Type::b32, Type::b64, Type::b128});
        case AtomicKind::compare_and_swap: return one_of({Type::b16, Type::b32, Type::b64, Type::b128});
    }
    return false;
}

AtomicUpdate atomic_update(AtomicKind kind, Type type)
{
    switch (type) {
        case Type::b16: return integer_update<std::uint16_t>(kind);
        case Type::b32:
        case Type::u32: return integer_update<std::uint32_t>(kind);
        case Type::s32: return integer_update<std::int32_t>(kind);
        case Type::b64:
        case Type::u64: return integer_update<std::uint64_t>(kind);
        case Type::s64: return integer_update<std::int64_t>(kind);
        case Type::f32: return update<Single, AtomicKind::add>;
        case Type::f64: return update<Double, AtomicKind::add>;
        case Type::f16: return floating_update<Half>(kind);
        case Type::bf16: return floating_update<Brain>(kind);
        case Type::f16x2: return floating_update<Pair<Half>>(kind);
        case Type::bf16x2: return floating_update<Pair<Brain>>(kind);
        default: return nullptr;
    }
}

void decode_atom(Decoder& decoder, Operation& operation) { decode_atomic(decoder, operation, true); }

void decode_red(Decoder& decoder, Operation& operation)
{
    if (decoder.take("async")) {
        decode_red_async(decoder, operation);
    } else {
        decode_atomic(decoder, operation, false);
    }
}

}  // namespace tessera::emulator
