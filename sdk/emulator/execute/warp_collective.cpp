// Instructions in which the lanes of a warp exchange values: shfl, vote, match, redux, elect, activemask
// (PTX ISA 9.7.9.6 "shfl.sync", 9.7.13 "Parallel Synchronization and Communication Instructions").

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "base/shuffle.hpp"
#include "execute/lanewise.hpp"
#include "machine/warp.hpp"
#include "numerics/float_ops.hpp"

namespace tessera::emulator {

using ptx::Type;

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

[[nodiscard]] std::string hexadecimal(U32 value)
{
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "0x00000000";
    for (unsigned i = 0; i < 8; ++i) {
        text[9 - i] = digits[value >> (4 * i) & 15];
    }
    return text;
}

/// Reports wrong member masks. The participating lanes continue.
void check_members(Warp& warp, const Operation& operation, LaneMask active, LaneMask named, const U32* members)
{
    LaneMask outsiders = 0;
    for_each_lane(active,
                  [&](unsigned lane) { outsiders |= (members[lane] >> lane & 1) != 0 ? 0 : LaneMask{1} << lane; });
    if (outsiders != 0) {
        warp.report(operation, FindingKind::invalid_operand, outsiders,
                    "lanes execute this with a member mask that does not name them (" +
                        hexadecimal(members[std::countr_zero(outsiders)]) + "): every lane must be in its own mask");
    }
    const LaneMask absent = named & warp.live() & ~active;
    if (absent != 0) {
        warp.report(operation, FindingKind::invalid_operand, absent,
                    "the member mask names lanes that do not execute this (" + hexadecimal(absent) +
                        "): remove them from the mask, or remove the condition");
    }
}

/// Waits until all lanes in the member masks have arrived, then calls `body(group)` for each set of lanes with the same
/// mask.
template <typename Body>
Step for_each_group(Warp& warp, const Operation& operation, LaneMask active, Ref members_row, Body body)
{
    const U32* const members = warp.row<U32>(members_row);
    LaneMask named = 0;
    if (active == all_lanes) {  // usually they name each other
        LaneMask common = all_lanes;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            named |= members[lane];
            common &= members[lane];
        }
        if (common == all_lanes) {
            if (!warp.gather(all_lanes)) {
                return Step::wait;
            }
            body(all_lanes);
            return Step::next;
        }
    } else {
        for_each_lane(active, [&](unsigned lane) { named |= members[lane]; });
    }
    if (!warp.gather(named)) {
        return Step::wait;
    }
    if (warp.checks()) {
        check_members(warp, operation, active, named, members);
    }
    LaneMask rest = active;
    while (rest != 0) {
        const U32 mask = members[std::countr_zero(rest)];
        LaneMask group = 0;
        for_each_lane(rest, [&](unsigned lane) { group |= members[lane] == mask ? LaneMask{1} << lane : 0; });
        body(group);
        rest &= ~group;
    }
    return Step::next;
}

// --- shfl ---

/// Operands: d, p (or none), a, b, c, members.
template <Shuffle mode>
Step shuffle(Warp& warp, const Operation& operation, LaneMask active)
{
    return for_each_group(warp, operation, active, operation.operand[5], [&](LaneMask group) {
        std::array<U32, warp_size> values;
        std::copy_n(warp.row<U32>(operation.operand[2]), warp_size, values.begin());  // d may be a, b or c
        std::array<U32, warp_size> results;
        const U32* const b = warp.row<U32>(operation.operand[3]);
        const U32* const c = warp.row<U32>(operation.operand[4]);
        LaneMask inside = 0;
        LaneMask astray = 0;
        if (group == all_lanes) {  // a loop that compilers vectorize
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                const ShuffleSource source = shuffle_source(mode, lane, b[lane], c[lane]);
                results[lane] = values[source.lane & 31];
                inside |= static_cast<LaneMask>(source.inside) << lane;
            }
            std::ranges::copy(results, warp.row<U32>(operation.operand[0]));
            if (operation.operand[1] != no_row) {
                warp.set_predicate(operation.operand[1], group, inside);
            }
            return;
        }
        for_each_lane(group, [&](unsigned lane) {
            const ShuffleSource source = shuffle_source(mode, lane, b[lane], c[lane]);
            results[lane] = values[source.lane];
            inside |= source.inside ? LaneMask{1} << lane : 0;
            astray |= (group >> source.lane & 1) != 0 ? 0 : LaneMask{1} << lane;
        });
        U32* const d = warp.row<U32>(operation.operand[0]);
        for_each_lane(group, [&](unsigned lane) { d[lane] = results[lane]; });
        if (operation.operand[1] != no_row) {
            warp.set_predicate(operation.operand[1], group, inside);
        }
        if (astray != 0 && warp.checks()) {
            warp.report(operation, FindingKind::invalid_operand, astray,
                        "shfl reads from lanes that do not execute it (lanes " + hexadecimal(group) +
                            " do): the values are undefined");
        }
    });
}

void expect_sync(Decoder& decoder)
{
    if (!decoder.take("sync")) {
        decoder.fail("needs .sync and a member mask on sm_70 and later");
    }
    decoder.effects().lanes = Convergence::named;
    decoder.effects().may_wait = true;
}

void decode_shfl(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::shuffle;
    expect_sync(decoder);
    const std::string_view mode = decoder.take_one_of({"up", "down", "bfly", "idx"});
    if (mode.empty()) {
        decoder.fail("needs .up .down .bfly or .idx");
    }
    if (const Type type = decoder.require_type(); type != Type::b32) {
        fail_type(decoder, type);
    }
    expect_operands(decoder, 5);
    operation.operand[0] = decoder.write(0, Type::b32);
    operation.operand[1] = decoder.write_second(0);
    for (std::size_t i = 1; i < 5; ++i) {
        operation.operand[i + 1] = decoder.read(i, Type::b32);
    }
    operation.execute = mode == "up"     ? shuffle<Shuffle::up>
                        : mode == "down" ? shuffle<Shuffle::down>
                        : mode == "bfly" ? shuffle<Shuffle::bfly>
                                         : shuffle<Shuffle::idx>;
    decoder.effects().flow = ValueFlow::shuffled;
    decoder.effects().shuffle = mode == "up"     ? Shuffle::up
                                : mode == "down" ? Shuffle::down
                                : mode == "bfly" ? Shuffle::bfly
                                                 : Shuffle::idx;
}

// --- vote ---

enum class Vote : std::uint8_t { all, any, uni };

struct VotePayload : Payload {
    Decoder::Predicate predicate;
};

template <Vote mode>
Step vote(Warp& warp, const Operation& operation, LaneMask active)
{
    return for_each_group(warp, operation, active, operation.operand[2], [&](LaneMask group) {
        const LaneMask votes = warp.predicate(operation.as<VotePayload>().predicate) & group;
        const bool result = mode == Vote::all   ? votes == group
                            : mode == Vote::any ? votes != 0
                                                : votes == group || votes == 0;
        warp.set_predicate(operation.operand[0], group, result ? all_lanes : 0);
    });
}

Step ballot(Warp& warp, const Operation& operation, LaneMask active)
{
    return for_each_group(warp, operation, active, operation.operand[2], [&](LaneMask group) {
        const LaneMask votes = warp.predicate(operation.as<VotePayload>().predicate) & group;
        U32* const d = warp.row<U32>(operation.operand[0]);
        for_each_lane(group, [&](unsigned lane) { d[lane] = votes; });
    });
}

void decode_vote(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::shuffle;
    expect_sync(decoder);
    const std::string_view mode = decoder.take_one_of({"all", "any", "uni", "ballot"});
    if (mode.empty()) {
        decoder.fail("needs .all .any .uni or .ballot");
    }
    const Type type = decoder.require_type();
    if (type != (mode == "ballot" ? Type::b32 : Type::pred)) {
        fail_type(decoder, type);
    }
    expect_operands(decoder, 3);
    operation.operand[0] = type == Type::pred ? decoder.write(0, type) : decoder.write(0, type);
    decoder.emplace_payload<VotePayload>().predicate = decoder.read_predicate(1);
    operation.operand[2] = decoder.read(2, Type::b32);
    operation.execute = mode == "ballot" ? ballot
                        : mode == "all"  ? vote<Vote::all>
                        : mode == "any"  ? vote<Vote::any>
                                         : vote<Vote::uni>;
}

// --- match ---

/// Operands: d, p (or none), a, members. d: the lanes of the group with the same value.
template <typename T>
Step match_any(Warp& warp, const Operation& operation, LaneMask active)
{
    return for_each_group(warp, operation, active, operation.operand[3], [&](LaneMask group) {
        std::array<T, warp_size> values;
        std::copy_n(warp.row<T>(operation.operand[2]), warp_size, values.begin());
        U32* const d = warp.row<U32>(operation.operand[0]);
        for_each_lane(group, [&](unsigned lane) {
            LaneMask same = 0;
            for_each_lane(group,
                          [&](unsigned other) { same |= values[other] == values[lane] ? LaneMask{1} << other : 0; });
            d[lane] = same;
        });
    });
}

/// d: the lanes of the group if all have the same value, else 0. p: whether all have the same value.
template <typename T>
Step match_all(Warp& warp, const Operation& operation, LaneMask active)
{
    return for_each_group(warp, operation, active, operation.operand[3], [&](LaneMask group) {
        const T* const values = warp.row<T>(operation.operand[2]);
        const T first = values[std::countr_zero(group)];
        bool same = true;
        for_each_lane(group, [&](unsigned lane) { same = same && values[lane] == first; });
        U32* const d = warp.row<U32>(operation.operand[0]);
        for_each_lane(group, [&](unsigned lane) { d[lane] = same ? group : 0; });
        if (operation.operand[1] != no_row) {
            warp.set_predicate(operation.operand[1], group, same ? all_lanes : 0);
        }
    });
}

void decode_match(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::shuffle;
    expect_sync(decoder);
    const std::string_view mode = decoder.take_one_of({"any", "all"});
    const Type type = decoder.require_type();
    if (mode.empty()) {
        decoder.fail("needs .any or .all");
    }
    if (type != Type::b32 && type != Type::b64) {
        fail_type(decoder, type);
    }
    expect_operands(decoder, 3);
    operation.operand[0] = decoder.write(0, Type::b32);
    operation.operand[1] = decoder.write_second(0);
    operation.operand[2] = decoder.read(1, type);
    operation.operand[3] = decoder.read(2, Type::b32);
    if (mode == "any" && operation.operand[1] != no_row) {
        decoder.fail("match.any has no predicate as second destination");
    }
    if (mode == "any") {
        operation.execute = type == Type::b32 ? match_any<U32> : match_any<U64>;
    } else {
        operation.execute = type == Type::b32 ? match_all<U32> : match_all<U64>;
    }
}

// --- redux ---

/// Operands: d, a, members. `f` combines two values.
template <typename T, typename F>
[[nodiscard]] Execute reduction(F)
{
    return [](Warp& warp, const Operation& operation, LaneMask active) -> Step {
        return for_each_group(warp, operation, active, operation.operand[2], [&](LaneMask group) {
            const T* const values = warp.row<T>(operation.operand[1]);
            T total = values[std::countr_zero(group)];
            for_each_lane(group & (group - 1), [&](unsigned lane) { total = F{}(total, values[lane]); });
            T* const d = warp.row<T>(operation.operand[0]);
            for_each_lane(group, [&](unsigned lane) { d[lane] = total; });
        });
    };
}

struct FloatReduction : Payload {
    bool maximum = false;
    numerics::Selection how;
};

Step reduce_floats(Warp& warp, const Operation& operation, LaneMask active)
{
    return for_each_group(warp, operation, active, operation.operand[2], [&](LaneMask group) {
        const auto& payload = operation.as<FloatReduction>();
        const float* const values = warp.row<float>(operation.operand[1]);
        const float first = values[std::countr_zero(group)];
        float total = numerics::canonical(payload.how.abs ? numerics::abs(first, false) : first);
        for_each_lane(group & (group - 1), [&](unsigned lane) {
            total = payload.maximum ? numerics::maximum(total, values[lane], payload.how)
                                    : numerics::minimum(total, values[lane], payload.how);
        });
        float* const d = warp.row<float>(operation.operand[0]);
        for_each_lane(group, [&](unsigned lane) { d[lane] = total; });
    });
}

[[nodiscard]] Execute integer_reduction(Decoder& decoder, std::string_view name, Type type)
{
    const bool bitwise = name == "and" || name == "or" || name == "xor";
    if (bitwise != (type == Type::b32) || (!bitwise && type != Type::u32 && type != Type::s32)) {
        decoder.fail("." + std::string(name) + " is not defined for type " + dotted(type));
    }
    if (name == "add") {
        return reduction<U32>([](U32 a, U32 b) { return a + b; });
    }
    if (name == "and") {
        return reduction<U32>([](U32 a, U32 b) { return a & b; });
    }
    if (name == "or") {
        return reduction<U32>([](U32 a, U32 b) { return a | b; });
    }
    if (name == "xor") {
        return reduction<U32>([](U32 a, U32 b) { return a ^ b; });
    }
    using S32 = std::int32_t;
    if (name == "min") {
        return type == Type::u32 ? reduction<U32>([](U32 a, U32 b) { return std::min(a, b); })
                                 : reduction<S32>([](S32 a, S32 b) { return std::min(a, b); });
    }
    return type == Type::u32 ? reduction<U32>([](U32 a, U32 b) { return std::max(a, b); })
                             : reduction<S32>([](S32 a, S32 b) { return std::max(a, b); });
}

void decode_redux(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::shuffle;
    expect_sync(decoder);
    expect_capability(decoder, 80, "redux.sync");
    const std::string_view name = decoder.take_one_of({"add", "min", "max", "and", "or", "xor"});
    if (name.empty()) {
        decoder.fail("needs .add .min .max .and .or or .xor");
    }
    const bool magnitudes = decoder.take("abs");
    const bool nan = decoder.take("NaN");
    const Type type = decoder.require_type();
    decode_rows(decoder, operation, type, {type, Type::b32});
    if (type == Type::f32) {
        expect_capability(decoder, 100, "redux.sync.f32");
        if (name != "min" && name != "max") {
            decoder.fail("." + std::string(name) + " is not defined for type .f32");
        }
        auto& payload = decoder.emplace_payload<FloatReduction>();
        payload.maximum = name == "max";
        payload.how.abs = magnitudes;
        payload.how.nan = nan;
        operation.execute = reduce_floats;
        return;
    }
    if (magnitudes || nan) {
        decoder.fail(".abs and .NaN are for type .f32");
    }
    operation.execute = integer_reduction(decoder, name, type);
}

// --- elect, activemask ---

/// d|p: the lowest member lane is elected; p is true in that lane.
Step elect(Warp& warp, const Operation& operation, LaneMask active)
{
    return for_each_group(warp, operation, active, operation.operand[2], [&](LaneMask group) {
        const auto leader = static_cast<U32>(std::countr_zero(group));
        warp.set_predicate(operation.operand[1], group, LaneMask{1} << leader);
        U32* const d = warp.row<U32>(operation.operand[0]);
        for_each_lane(group, [&](unsigned lane) { d[lane] = leader; });
    });
}

void decode_elect(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::shuffle;
    expect_sync(decoder);
    expect_capability(decoder, 90, "elect.sync");
    expect_operands(decoder, 2);
    operation.operand[0] = decoder.write(0, Type::b32);
    operation.operand[1] = decoder.write_second(0);
    if (operation.operand[1] == no_row) {
        decoder.fail("needs a predicate as second destination: d|p");
    }
    operation.operand[2] = decoder.read(1, Type::b32);
    operation.execute = elect;
}

void decode_activemask(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::shuffle;
    if (const Type type = decoder.require_type(); type != Type::b32) {
        fail_type(decoder, type);
    }
    expect_operands(decoder, 1);
    operation.operand[0] = decoder.write(0, Type::b32);
    operation.execute = [](Warp& warp, const Operation& op, LaneMask active) -> Step {
        U32* const d = warp.row<U32>(op.operand[0]);
        for_each_lane(active, [&](unsigned lane) { d[lane] = active; });
        return Step::next;
    };
}

constexpr InstructionEntry entries[] = {
    {"shfl", decode_shfl},   {"vote", decode_vote},   {"match", decode_match},
    {"redux", decode_redux}, {"elect", decode_elect}, {"activemask", decode_activemask},
};

}  // namespace

std::span<const InstructionEntry> warp_instructions() { return entries; }

}  // namespace tessera::emulator
