// ld, ldu, st (PTX ISA 9.7.9.8 to 9.7.9.12).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "execute/compare_paths.hpp"
#include "execute/fast_access.hpp"
#include "execute/lanewise.hpp"
#include "execute/locked.hpp"
#include "execute/memory_lanes.hpp"
#include "machine/cluster.hpp"

namespace tessera::emulator {

using ptx::Type;

namespace {

/// Reads an M and writes it to a register of type R, sign-extended if M is signed, else zero-extended.
template <typename M, typename R, bool strong>
Step load(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MemoryPayload>();
    const bool meets = strong && reaches_global(warp, payload, active);
    if (meets && !warp.cluster.may_meet()) {
        return Step::later;
    }
    LanePointers pointers;
    resolve(warp, operation, payload, active, pointers);
    const auto value = [&](unsigned lane, std::size_t offset) {
        const std::byte* const at = pointers[lane] + offset;
        M memory;
        if constexpr (strong) {
            memory = load_strong<M>(at);
        } else {
            std::memcpy(&memory, at, sizeof(M));
        }
        if constexpr (std::is_same_v<M, R>) {
            return memory;
        } else {
            return static_cast<R>(memory);
        }
    };
    for (unsigned k = 0; k < payload.elements; ++k) {
        R* const row = warp.row<R>(payload.rows[k]);
        const std::size_t offset = k * sizeof(M);
        for_each_lane(active, [&](unsigned lane) { row[lane] = value(lane, offset); });
    }
    if (meets) {
        const auto first = static_cast<unsigned>(std::countr_zero(active));
        std::uint64_t seen = 0;
        std::memcpy(&seen, warp.row<R>(payload.rows[0]) + first, std::min(sizeof seen, sizeof(R)));
        return warp.cluster.polled(pointers[first], seen);
    }
    return Step::next;
}

/// A strong store has changed what other clusters may poll.
Step changed(Warp& warp, const LanePointers& pointers, LaneMask active)
{
    Step result = Step::next;
    for_each_lane(active, [&](unsigned lane) {
        if (warp.cluster.changed(pointers[lane]) == Step::yield) {
            result = Step::yield;
        }
    });
    return result;
}

/// Writes the low bits of a register of type R to an M.
template <typename M, typename R, bool strong>
Step store(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MemoryPayload>();
    const bool meets = strong && reaches_global(warp, payload, active);
    if (meets && !warp.cluster.may_meet()) {
        return Step::later;
    }
    LanePointers pointers;
    resolve(warp, operation, payload, active, pointers);
    if (warp.follows_undefined()) [[unlikely]] {
        store_undefined(warp, operation, payload, active);
    }
    for (unsigned k = 0; k < payload.elements; ++k) {
        const R* const row = warp.row<R>(payload.rows[k]);
        const std::size_t offset = k * sizeof(M);
        const auto put = [&](unsigned lane) {
            std::byte* const at = pointers[lane] + offset;
            const M memory = static_cast<M>(row[lane]);
            if constexpr (strong) {
                store_strong<M>(at, memory);
            } else {
                std::memcpy(at, &memory, sizeof(M));
            }
        };
        for_each_lane(active, put);
    }
    warp.cluster.progress();
    return meets ? changed(warp, pointers, active) : Step::next;
}

template <typename M, typename R>
Execute choose(bool loads, bool strong)
{
    if (loads) {
        return strong ? load<M, R, true> : load<M, R, false>;
    }
    return strong ? store<M, R, true> : store<M, R, false>;
}

/// Selects rows of 1, 2, 4 or 8 bytes, at least as wide as the type in memory.
template <typename M, typename R1, typename R2, typename R4, typename R8>
Execute choose_row(unsigned row_bytes, bool loads, bool strong)
{
    switch (row_bytes) {
        case 1:
            if constexpr (sizeof(M) <= 1) {
                return choose<M, R1>(loads, strong);
            }
            break;
        case 2:
            if constexpr (sizeof(M) <= 2) {
                return choose<M, R2>(loads, strong);
            }
            break;
        case 4:
            if constexpr (sizeof(M) <= 4) {
                return choose<M, R4>(loads, strong);
            }
            break;
        case 8: return choose<M, R8>(loads, strong);
        default: break;
    }
    return nullptr;
}

Execute handler(Type type, unsigned row_bytes, bool loads, bool strong)
{
    const auto unsigned_row = [&]<typename M>(M) {
        return choose_row<M, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(row_bytes, loads, strong);
    };
    const auto signed_row = [&]<typename M>(M) {
        return choose_row<M, std::int8_t, std::int16_t, std::int32_t, std::int64_t>(row_bytes, loads, strong);
    };
    const bool extend = loads && is_signed(type);
    switch (ptx::size_of(type)) {
        case 1: return extend ? signed_row(std::int8_t{}) : unsigned_row(std::uint8_t{});
        case 2: return extend ? signed_row(std::int16_t{}) : unsigned_row(std::uint16_t{});
        case 4: return extend ? signed_row(std::int32_t{}) : unsigned_row(std::uint32_t{});
        case 8: return unsigned_row(std::uint64_t{});
        case 16: return row_bytes == 16 ? choose<Bits128, Bits128>(loads, strong) : nullptr;
        default: return nullptr;
    }
}

bool is_memory_type(Type type)
{
    switch (type) {
        case Type::b8:
        case Type::b16:
        case Type::b32:
        case Type::b64:
        case Type::b128:
        case Type::u8:
        case Type::u16:
        case Type::u32:
        case Type::u64:
        case Type::s8:
        case Type::s16:
        case Type::s32:
        case Type::s64:
        case Type::f32:
        case Type::f64: return true;
        default: return false;
    }
}

/// The faster handlers, where there are some.
void choose_handlers(MemoryPayload& payload, Operation& operation, Type type, unsigned register_bytes, bool strong)
{
    const bool loads = payload.access.direction == Direction::read;
    const auto element_bytes = static_cast<unsigned>(ptx::size_of(type));
    const AddressRef& address = payload.address;
    payload.register_bytes = register_bytes;
    payload.extends_sign = loads && is_signed(type);
    FastHandlers fast;
    if (strong) {
        // There are none.
    } else if (address.anchor == AddressRef::Anchor::kernel_parameter) {
        fast = fast_parameter_load(element_bytes, register_bytes, payload.extends_sign);
    } else if (address.anchor == AddressRef::Anchor::absolute && element_bytes == register_bytes) {
        fast = fast_access(payload.access.space, element_bytes, loads);
    }
    payload.any = operation.execute;
    if (loads) {
        payload.site = {payload.access.what, payload.line};
    }
    if (!address.wide) {  // load_row() needs no more
        operation.operand[0] = payload.elements == 1 ? payload.rows[0] : no_row;
        operation.operand[1] = static_cast<Ref>(static_cast<std::uint64_t>(address.offset));
        operation.operand[2] = address.base;
    }
    payload.compared = fast.compared != nullptr ? fast.compared : payload.any;
    payload.handlers = {fast.checked, fast.unchecked, nullptr, execute_compared};
}

void decode_access(Decoder& decoder, Operation& operation, bool loads)
{
    auto& payload = decoder.emplace_payload<MemoryPayload>();
    const bool uniform = decoder.instruction().opcode == "ldu";
    payload.access.order = uniform ? MemoryOrder{} : take_order(decoder, loads);
    const bool strong = payload.access.order.strong();
    payload.access.space = take_space(decoder, payload.own_cta);
    payload.access.direction = loads ? Direction::read : Direction::write;
    payload.what = short_name(decoder.instruction());
    payload.access.what = payload.what.c_str();
    const std::string_view vector = decoder.take_one_of({"v2", "v4", "v8"});
    payload.elements = vector.empty() ? 1 : static_cast<unsigned>(vector[1] - '0');
    const Type type = decoder.require_type();
    if (!is_memory_type(type)) {
        decoder.fail(fmt::format(".{} is not a type of {}: use .b{}", ptx::name_of(type), decoder.instruction().opcode,
                                 8 * ptx::size_of(type)));
    }
    if (payload.elements == 8 && ptx::size_of(type) != 4 && ptx::size_of(type) != 1) {
        decoder.fail(".v8 is for 32-bit types");
    }
    payload.bytes = static_cast<unsigned>(ptx::size_of(type)) * payload.elements;
    const Space space = payload.access.space;
    const bool global = space == Space::global || space == Space::generic;
    if (payload.bytes > 32 || (payload.bytes > 16 && (!global || ptx::size_of(type) < 4 || type == Type::b128))) {
        decoder.fail(
            "vectors have at most 16 bytes; .v8 of 32-bit and .v4 of 64-bit types in global memory may have 32");
    }
    if (payload.bytes > 16 && decoder.device().capability() < 100) {
        decoder.fail(fmt::format("accesses of 32 bytes need compute capability 10.0; {} has {}.{}",
                                 decoder.device().name, decoder.device().major, decoder.device().minor));
    }
    if (strong && !global && space != Space::shared) {
        decoder.fail(".volatile, .relaxed and stronger are for global and shared memory");
    }
    if (uniform && !global) {
        decoder.fail("ldu is for global memory");
    }
    if (!loads && space == Space::constant) {
        decoder.fail("constant memory cannot be written");
    }
    const auto left = decoder.remaining();
    const auto has = [&](std::string_view name) { return std::ranges::find(left, name) != left.end(); };
    static constexpr std::array<std::string_view, 5> not_for_st{"ca", "lu", "cv", "nc", "uni"};
    static constexpr std::array<std::string_view, 3> not_for_ld{"wb", "wt", "uni"};
    const std::span<const std::string_view> refused =
        loads ? std::span<const std::string_view>(not_for_ld) : not_for_st;
    for (const std::string_view name : refused) {
        if (has(name)) {
            decoder.fail(fmt::format(".{} is not for {}", name, decoder.instruction().opcode));
        }
    }
    if (has("nc") && (strong || !global)) {
        decoder.fail(".nc is for weak loads from global memory");
    }
    const std::size_t count = take_hints_and_policy(decoder, 2);
    expect_operands(decoder, count);
    take_address(decoder, loads ? 1 : 0, payload);
    if (!loads && payload.address.anchor == AddressRef::Anchor::kernel_parameter) {
        decoder.fail("kernel parameters cannot be written");
    }
    const DataRows data = loads ? write_data(decoder, 0, type) : read_data(decoder, 1, type);
    if (data.rows.size() != payload.elements) {
        decoder.fail(fmt::format("{} registers are given for a vector of {}", data.rows.size(), payload.elements));
    }
    std::copy(data.rows.begin(), data.rows.end(), payload.rows.begin());
    if (loads) {
        payload.access.registers = {payload.rows.data(), payload.elements};
    } else {
        payload.row_bytes = data.row_bytes;
    }
    decoder.effects().meets_clusters = strong && global;
    decoder.effects().depends_on_clusters = strong && loads && global;  // may wait for another cluster's store
    note_access(decoder, payload);
    if (!loads) {
        decoder.effects().flow = ValueFlow::stored;
    }
    operation.execute = handler(type, data.row_bytes, loads, strong);
    choose_handlers(payload, operation, type, data.row_bytes, strong);
    operation.kind = InstructionClass::memory;
    if (operation.execute == nullptr) {
        decoder.fail(fmt::format("registers of {} bytes do not fit .{}", data.row_bytes, ptx::name_of(type)));
    }
}

}  // namespace

void decode_ld(Decoder& decoder, Operation& operation) { decode_access(decoder, operation, true); }

void decode_st(Decoder& decoder, Operation& operation)
{
    if (decoder.take("async")) {
        decode_st_async(decoder, operation);
    } else if (decoder.take("bulk")) {
        decode_st_bulk(decoder, operation);
    } else {
        decode_access(decoder, operation, false);
    }
}

}  // namespace tessera::emulator
