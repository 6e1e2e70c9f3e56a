// mov: registers, constants, addresses, special registers, and packing into or unpacking of vectors (PTX ISA 9.7.9.2
// "mov").

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "execute/lanewise.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {

using ptx::Type;

namespace {

using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

// --- one value ---

template <typename T>
Step copy(Warp& warp, const Operation& operation, LaneMask active)
{
    T* const d = warp.row<T>(operation.operand[0]);
    const T* const a = warp.row<T>(operation.operand[1]);
    if (active == all_lanes) {
        std::memmove(d, a, warp_size * sizeof(T));
    } else {
        for_each_lane(active, [&](unsigned lane) { d[lane] = a[lane]; });
    }
    return Step::next;
}

[[nodiscard]] Execute copy_of(std::size_t bytes)
{
    switch (bytes) {
        case 2: return copy<U16>;
        case 4: return copy<U32>;
        case 8: return copy<U64>;
        default: return copy<Bits128>;
    }
}

struct PredicatePayload : Payload {
    Decoder::Predicate source;
};

// --- registers that change during a run ---

/// The emulated clock: scheduler steps, plus a few for each read, so that a loop that waits for the clock ends. It does
/// not use the host's time, so that a run is reproducible.
[[nodiscard]] U64 read_clock(Warp& warp)
{
    constexpr U64 cycles_per_read = 32;
    Cluster& cluster = warp.cluster;
    ++cluster.clock_reads;
    return cluster.steps() * cycles_per_read + cluster.clock_reads * cycles_per_read;
}

/// Nanoseconds. Successive launches are a second apart.
[[nodiscard]] U64 read_global_timer(Warp& warp)
{
    constexpr U64 second = 1'000'000'000;
    const Grid& grid = warp.cluster.grid;
    const U64 kilohertz = std::max(1u, grid.device.clock);
    return grid.launch_id * second + read_clock(warp) * 1'000'000 / kilohertz;
}

/// Where cooperative groups find the barrier of a cooperative launch. Null: the launch is not cooperative.
[[nodiscard]] U64 read_grid_workspace(Warp& warp) { return warp.cluster.grid.workspace; }

template <typename T, U64 (*read)(Warp&), unsigned shift>
Step read_counter(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto value = static_cast<T>(read(warp) >> shift);
    T* const d = warp.row<T>(operation.operand[0]);
    for_each_lane(active, [&](unsigned lane) { d[lane] = value; });
    return Step::next;
}

struct Counter {
    std::string_view name;
    Execute narrow, wide;  ///< into 32 and 64 bits
};

constexpr std::array counters{
    Counter{"%clock", read_counter<U32, read_clock, 0>, read_counter<U32, read_clock, 0>},
    Counter{"%clock_hi", read_counter<U32, read_clock, 32>, read_counter<U32, read_clock, 32>},
    Counter{"%clock64", read_counter<U32, read_clock, 0>, read_counter<U64, read_clock, 0>},
    Counter{"%globaltimer", read_counter<U32, read_global_timer, 0>, read_counter<U64, read_global_timer, 0>},
    Counter{"%globaltimer_lo", read_counter<U32, read_global_timer, 0>, read_counter<U32, read_global_timer, 0>},
    Counter{"%globaltimer_hi", read_counter<U32, read_global_timer, 32>, read_counter<U32, read_global_timer, 32>},
    Counter{"%envreg1", read_counter<U32, read_grid_workspace, 32>, read_counter<U32, read_grid_workspace, 32>},
    Counter{"%envreg2", read_counter<U32, read_grid_workspace, 0>, read_counter<U32, read_grid_workspace, 0>},
};

/// Special registers with one value on this machine. Performance counters and the driver's registers read as zero. The
/// first 1 KiB of the shared window is reserved (shared_base); %reserved_smem_offset_* describe it.
[[nodiscard]] std::optional<U64> fixed_value(std::string_view name)
{
    const auto numbered = [&name](std::string_view prefix, unsigned count, std::string_view suffix) {
        for (unsigned i = 0; i < count; ++i) {
            if (name == std::string(prefix) + std::to_string(i) + std::string(suffix)) {
                return true;
            }
        }
        return false;
    };
    if (numbered("%pm", 8, "") || numbered("%pm", 8, "_64") || numbered("%envreg", 32, "") ||
        name == "%current_graph_exec" || name == "%reserved_smem_offset_begin") {
        return 0;
    }
    if (name == "%reserved_smem_offset_end" || name == "%reserved_smem_offset_cap") {
        return shared_base;
    }
    if (numbered("%reserved_smem_offset_", 2, "")) {
        return 0;
    }
    return std::nullopt;
}

/// True if the source is one of these special registers.
[[nodiscard]] bool decode_special(Decoder& decoder, Operation& operation, Type type)
{
    const ptx::Operand& source = decoder.operand(1);
    if (source.kind != ptx::Operand::Kind::identifier || !source.name.starts_with('%') || !source.component.empty() ||
        decoder.is_register(1)) {
        return false;
    }
    for (const Counter& counter : counters) {
        if (counter.name == source.name) {
            const std::size_t bytes = ptx::size_of(type);
            const bool is_wide = counter.narrow != counter.wide;
            if (bytes != 4 && !(bytes == 8 && is_wide)) {
                decoder.fail(source.name + " does not fit a value of type " + dotted(type));
            }
            operation.operand[0] = decoder.write(0, type);
            operation.execute = bytes == 4 ? counter.narrow : counter.wide;
            return true;
        }
    }
    if (const std::optional<U64> value = fixed_value(source.name)) {
        operation.operand[0] = decoder.write(0, type);
        operation.operand[1] = decoder.constant_row(*value, type);
        operation.execute = copy_of(ptx::size_of(type));
        return true;
    }
    return false;
}

// --- vectors ---

/// d = {first, ...}: the first element is the least significant. Operand 0 is d, operands 1 to `count` are the
/// elements.
template <typename Whole, typename Part, unsigned count>
Step pack(Warp& warp, const Operation& operation, LaneMask active)
{
    static_assert(sizeof(Whole) == count * sizeof(Part));
    auto* const d = reinterpret_cast<Part*>(warp.row<Whole>(operation.operand[0]));
    std::array<const Part*, count> parts;
    for (unsigned i = 0; i < count; ++i) {
        parts[i] = warp.row<Part>(operation.operand[1 + i]);
    }
    if (active == all_lanes) {
#pragma GCC ivdep
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            for (unsigned i = 0; i < count; ++i) {
                d[lane * count + i] = parts[i][lane];
            }
        }
    } else {
        for_each_lane(active, [&](unsigned lane) {
            for (unsigned i = 0; i < count; ++i) {
                d[lane * count + i] = parts[i][lane];
            }
        });
    }
    return Step::next;
}

/// {first, ...} = a. Operands 0 to `count` - 1 are the elements, operand `count` is a. An unused element has no row.
template <typename Whole, typename Part, unsigned count>
Step unpack(Warp& warp, const Operation& operation, LaneMask active)
{
    static_assert(sizeof(Whole) == count * sizeof(Part));
    const auto* const a = reinterpret_cast<const Part*>(warp.row<Whole>(operation.operand[count]));
    for (unsigned i = 0; i < count; ++i) {
        if (operation.operand[i] == no_row) {
            continue;
        }
        Part* const d = warp.row<Part>(operation.operand[i]);
        if (active == all_lanes) {
#pragma GCC ivdep
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                d[lane] = a[lane * count + i];
            }
        } else {
            for_each_lane(active, [&](unsigned lane) { d[lane] = a[lane * count + i]; });
        }
    }
    return Step::next;
}

struct VectorMove {
    Type whole;
    std::size_t count;
    Type part;
    Execute pack, unpack;
};

template <typename Whole, typename Part, unsigned count>
[[nodiscard]] constexpr VectorMove vector_move(Type whole, Type part)
{
    return {whole, count, part, pack<Whole, Part, count>, unpack<Whole, Part, count>};
}

constexpr std::array vector_moves{
    vector_move<U16, U8, 2>(Type::b16, Type::b8),        vector_move<U32, U8, 4>(Type::b32, Type::b8),
    vector_move<U32, U16, 2>(Type::b32, Type::b16),      vector_move<U64, U16, 4>(Type::b64, Type::b16),
    vector_move<U64, U32, 2>(Type::b64, Type::b32),      vector_move<Bits128, U32, 4>(Type::b128, Type::b32),
    vector_move<Bits128, U64, 2>(Type::b128, Type::b64),
};

void decode_vector(Decoder& decoder, Operation& operation, Type type, bool packs)
{
    const ptx::Operand& vector = decoder.operand(packs ? 1 : 0);
    const auto form = std::find_if(vector_moves.begin(), vector_moves.end(), [&](const VectorMove& candidate) {
        return candidate.whole == type && candidate.count == vector.elements.size();
    });
    if (form == vector_moves.end()) {
        decoder.fail("a vector of " + std::to_string(vector.elements.size()) +
                     " elements does not make a value of type " + dotted(type));
    }
    if (packs) {
        operation.operand[0] = decoder.write(0, type);
        for (std::size_t i = 0; i < form->count; ++i) {
            operation.operand[i + 1] = decoder.read(vector.elements[i], form->part);
        }
        operation.execute = form->pack;
    } else {
        for (std::size_t i = 0; i < form->count; ++i) {
            const ptx::Operand& element = vector.elements[i];
            const bool sink = element.kind == ptx::Operand::Kind::sink || element.name == "_";
            operation.operand[i] = sink ? no_row : decoder.write(element, form->part);
        }
        operation.operand[form->count] = decoder.read(1, type);
        operation.execute = form->unpack;
    }
}

struct RowList : Payload {
    std::vector<Ref> destinations, sources;
};

/// mov.v4.u32 {a, b, c, d}, {e, f, g, h}; or from %tid: a special register with all its components; the fourth is zero.
/// All elements are read before any is written.
template <typename T>
Step move_vector(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& list = operation.as<RowList>();
    std::array<std::array<T, warp_size>, 4> values;
    for (std::size_t i = 0; i < list.sources.size(); ++i) {
        std::memcpy(values[i].data(), warp.row<T>(list.sources[i]), sizeof values[i]);
    }
    for (std::size_t i = 0; i < list.sources.size(); ++i) {
        map_lanes(
            active, [](T value) { return value; }, warp.row<T>(list.destinations[i]),
            static_cast<const T*>(values[i].data()));
    }
    return Step::next;
}

void decode_vector_move(Decoder& decoder, Operation& operation, std::size_t count)
{
    const Type type = decoder.require_type();
    expect_operands(decoder, 2);
    const ptx::Operand& source = decoder.operand(1);
    const std::size_t bytes = ptx::size_of(type);
    const bool special = source.kind == ptx::Operand::Kind::identifier && source.component.empty() &&
                         source.name.starts_with('%') && !decoder.is_register(1) && (bytes == 2 || bytes == 4);
    if (!decoder.is_vector(0) || decoder.operand(0).elements.size() != count ||
        !(special || (decoder.is_vector(1) && source.elements.size() == count)) || bytes == 0 || bytes * count > 16) {
        decoder.fail("mov of a vector takes two vectors of its size, or a vector and a special register such as %tid");
    }
    auto& rows = decoder.emplace_payload<RowList>();
    constexpr std::array<std::string_view, 3> components{"x", "y", "z"};
    for (std::size_t i = 0; i < count; ++i) {
        rows.destinations.push_back(decoder.write(decoder.operand(0).elements[i], type));
        if (!special) {
            rows.sources.push_back(decoder.read(source.elements[i], type));
        } else if (i < components.size()) {
            ptx::Operand part = source;
            part.component = components[i];
            rows.sources.push_back(decoder.read(part, type));
        } else {
            ptx::Operand zero;
            zero.kind = ptx::Operand::Kind::integer;
            rows.sources.push_back(decoder.read(zero, type));
        }
    }
    if (!visit_bits(bytes, [&]<typename T>() { operation.execute = move_vector<T>; })) {
        fail_type(decoder, type);
    }
}

void decode_mov(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    decoder.effects().flow = ValueFlow::moved;
    if (const std::string_view vector = decoder.take_one_of({"v2", "v4"}); !vector.empty()) {
        decoder.effects().flow = ValueFlow::in_place;
        return decode_vector_move(decoder, operation, vector == "v2" ? 2 : 4);
    }
    const Type type = decoder.require_type();
    expect_operands(decoder, 2);
    if (type == Type::pred) {
        operation.operand[0] = decoder.write(0, Type::pred);
        decoder.emplace_payload<PredicatePayload>().source = decoder.read_predicate(1);
        operation.execute = [](Warp& warp, const Operation& op, LaneMask active) -> Step {
            warp.set_predicate(op.operand[0], active, warp.predicate(op.as<PredicatePayload>().source));
            return Step::next;
        };
        return;
    }
    const bool known = type == Type::b16 || type == Type::b32 || type == Type::b64 || type == Type::b128 ||
                       type == Type::f32 || type == Type::f64 || visit_integer(type, []<typename T>() {});
    if (!known) {
        fail_type(decoder, type);
    }
    if (decoder.is_vector(0) || decoder.is_vector(1)) {
        return decode_vector(decoder, operation, type, decoder.is_vector(1));
    }
    if (decode_special(decoder, operation, type)) {
        return;
    }
    operation.operand[0] = decoder.write(0, type);
    operation.operand[1] = decoder.read(1, type);
    operation.execute = copy_of(ptx::size_of(type));
}

constexpr InstructionEntry entries[] = {{"mov", decode_mov}};

}  // namespace

std::span<const InstructionEntry> move_instructions() { return entries; }

}  // namespace tessera::emulator
