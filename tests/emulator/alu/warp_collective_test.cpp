// shfl, vote, match, redux, elect, activemask.

#include <bit>
#include <cmath>

#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

using U = std::uint32_t;
using S = std::int32_t;
using L = std::uint64_t;

template <typename D, typename... S2>
std::vector<D> warp(const std::string& text, const std::vector<std::tuple<S2...>>& lanes,
                    const Surroundings& around = {})
{
    REQUIRE(lanes.size() == 32);
    return results_of<D, S2...>(text, lanes, around);
}

/// a of lane i is 100 + i.
std::vector<std::tuple<U>> numbered()
{
    std::vector<std::tuple<U>> lanes;
    for (U i = 0; i < 32; ++i) {
        lanes.emplace_back(100 + i);
    }
    return lanes;
}

}  // namespace

TEST_CASE("shfl moves values within segments")
{
    for (const U width : {32u, 16u, 8u, 4u, 2u, 1u}) {
        const U segments = (32 - width) << 8;  // like __shfl_sync
        for (const U n : {0u, 1u, 3u, 7u, 16u, 31u}) {
            for (const std::string mode : {"up", "down", "bfly", "idx"}) {
                const U c = segments | (mode == "up" ? 0 : 31);
                const std::string text =
                    "shfl.sync." + mode + ".b32 d|p, a, " + std::to_string(n) + ", " + std::to_string(c) + ", -1;";
                const auto values = warp<U>(text, numbered());
                const auto inside = warp<U>(text, numbered(), {.after = "selp.u32 d, 1, 0, p;"});
                for (U i = 0; i < 32; ++i) {
                    const S first = static_cast<S>(i / width * width);
                    const S last = first + static_cast<S>(width) - 1;
                    const S from = mode == "up"     ? static_cast<S>(i - n)
                                   : mode == "down" ? static_cast<S>(i + n)
                                   : mode == "bfly" ? static_cast<S>(i ^ n)
                                                    : first + static_cast<S>(n % width);
                    // bfly may read below its segment: only the upper end is checked.
                    const bool ok = mode == "up" ? from >= first : from <= last;
                    INFO(text << " lane " << i);
                    CHECK(values[i] == 100 + (ok ? static_cast<U>(from) : i));
                    CHECK(inside[i] == static_cast<U>(ok));
                }
            }
        }
    }
}

TEST_CASE("shfl works in place, with an index per lane, and in groups with separate masks")
{
    std::vector<std::tuple<U, U, U>> lanes;
    for (U i = 0; i < 32; ++i) {
        lanes.emplace_back(100 + i, (i * 7 + 3) % 16, i < 16 ? 0xFFFFu : 0xFFFF0000u);
    }
    const auto values = warp<U>("shfl.sync.idx.b32 a, a, b, 0x101F, c;", lanes, {.after = "mov.u32 d, a;"});
    for (U i = 0; i < 32; ++i) {
        CHECK(values[i] == 100 + i / 16 * 16 + (i * 7 + 3) % 16);
    }
}

TEST_CASE("diverged lanes join at a collective instruction")
{
    // Both branches lead to the same shfl: the odd lanes arrive later.
    const Surroundings around{.before =
                                  "and.b32 t0, a, 1; setp.ne.u32 p, t0, 0; @p bra ODD; mov.u32 t1, a; bra MEET; ODD: "
                                  "add.u32 t1, a, 1000; MEET:"};
    const auto values = warp<U>("shfl.sync.bfly.b32 d, t1, 1, 31, -1;", numbered(), around);
    for (U i = 0; i < 32; ++i) {
        CHECK(values[i] == 100 + (i ^ 1) + ((i ^ 1) % 2 != 0 ? 1000 : 0));
    }
}

TEST_CASE("vote and activemask")
{
    for (const U pattern : {0u, 0xFFFFFFFFu, 1u, 0x80000000u, 0x0000FFFFu, 0x12345678u}) {
        const Surroundings around{.before = ".reg .b32 %lane; mov.u32 %lane, %laneid; mov.u32 t1, " +
                                            std::to_string(pattern) +
                                            "; shr.u32 t0, t1, %lane; and.b32 t0, t0, 1; setp.ne.u32 p, t0, 0;",
                                  .after = "selp.u32 d, 1, 0, q;"};
        const auto same = [&](const std::string& text, bool expected) {
            INFO(text << " of " << pattern);
            CHECK(warp<U>(text, numbered(), around) == std::vector<U>(32, expected));
        };
        same("vote.sync.all.pred q, p, -1;", pattern == ~0u);
        same("vote.sync.any.pred q, p, -1;", pattern != 0);
        same("vote.sync.uni.pred q, p, -1;", pattern == 0 || pattern == ~0u);
        same("vote.sync.all.pred q, !p, -1;", pattern == 0);
        CHECK(warp<U>("vote.sync.ballot.b32 d, p, -1;", numbered(), {.before = around.before}) ==
              std::vector<U>(32, pattern));
        CHECK(warp<U>("vote.sync.ballot.b32 d, !p, -1;", numbered(), {.before = around.before}) ==
              std::vector<U>(32, ~pattern));
        // Only the lanes of the mask count.
        std::vector<U> halves;
        for (U i = 0; i < 32; ++i) {
            halves.push_back(i < 16 ? pattern & 0xFFFF : pattern & 0xFFFF0000);
        }
        CHECK(warp<U>("vote.sync.ballot.b32 d, p, t2;", numbered(),
                      {.before = around.before + " setp.lt.u32 r, %lane, 16; selp.b32 t2, 0xFFFF, 0xFFFF0000, r;"}) ==
              halves);
        if (pattern != 0) {
            const auto masks = warp<U>("@p activemask.b32 d;", numbered(), {.before = around.before});
            for (U i = 0; i < 32; ++i) {
                CHECK(masks[i] == ((pattern >> i & 1) != 0 ? pattern : ~0u));
            }
        }
    }
}

TEST_CASE("match finds equal values")
{
    std::vector<std::tuple<U, L>> lanes, equal;
    for (U i = 0; i < 32; ++i) {
        lanes.emplace_back(i % 3, L{i % 5} << 32);
        equal.emplace_back(7u, L{7} << 32);
    }
    const auto narrow = warp<U>("match.any.sync.b32 d, a, -1;", lanes);
    const auto wide = warp<U>("match.any.sync.b64 d, b, -1;", lanes);
    for (U i = 0; i < 32; ++i) {
        U expected = 0;
        U expected_wide = 0;
        for (U j = 0; j < 32; ++j) {
            expected |= U{i % 3 == j % 3} << j;
            expected_wide |= U{i % 5 == j % 5} << j;
        }
        CHECK(narrow[i] == expected);
        CHECK(wide[i] == expected_wide);
    }
    const Surroundings around{.after = "selp.u32 t0, 1, 0, p; add.u32 d, d, t0;"};
    CHECK(warp<U>("match.all.sync.b32 d|p, a, -1;", equal, around) ==
          std::vector<U>(32, 0u));  // all bits set, plus one
    CHECK(warp<U>("match.all.sync.b64 d|p, b, -1;", lanes, around) == std::vector<U>(32, 0u));  // nothing, plus nothing
    CHECK(warp<U>("match.all.sync.b64 d, b, -1;", equal) == std::vector<U>(32, ~0u));
}

TEST_CASE("redux")
{
    std::mt19937_64 random(11);
    std::vector<std::tuple<U, float>> lanes;
    U sum = 0, all = ~0u, any = 0, odd = 0, least = ~0u, most = 0;
    S signed_least = INT32_MAX, signed_most = INT32_MIN;
    float low = INFINITY, high = -INFINITY, magnitude = 0;
    for (U i = 0; i < 32; ++i) {
        const U value = static_cast<U>(random());
        const float number = static_cast<float>(static_cast<S>(random())) / 7;
        lanes.emplace_back(value, number);
        sum += value;
        all &= value | 0x10;
        any |= value;
        odd ^= value;
        least = std::min(least, value);
        most = std::max(most, value);
        signed_least = std::min(signed_least, static_cast<S>(value));
        signed_most = std::max(signed_most, static_cast<S>(value));
        low = std::min(low, number);
        high = std::max(high, number);
        magnitude = std::max(magnitude, std::fabs(number));
    }
    const auto check = [&](const std::string& operation, U expected) {
        INFO(operation);
        CHECK(warp<U>("redux.sync." + operation + " d, a, -1;", lanes,
                      {.before = operation.starts_with("and") ? "or.b32 a, a, 0x10;" : ""}) ==
              std::vector<U>(32, expected));
    };
    check("add.u32", sum);
    check("add.s32", sum);
    check("and.b32", all);
    check("or.b32", any);
    check("xor.b32", odd);
    check("min.u32", least);
    check("max.u32", most);
    check("min.s32", static_cast<U>(signed_least));
    check("max.s32", static_cast<U>(signed_most));
    CHECK(warp<float>("redux.sync.min.f32 d, b, -1;", lanes) == std::vector<float>(32, low));
    CHECK(warp<float>("redux.sync.max.f32 d, b, -1;", lanes) == std::vector<float>(32, high));
    CHECK(warp<float>("redux.sync.max.abs.f32 d, b, -1;", lanes) == std::vector<float>(32, magnitude));
    std::get<1>(lanes[9]) = NAN;
    CHECK(warp<float>("redux.sync.min.f32 d, b, -1;", lanes)[0] <= low);
    const auto poisoned = warp<float>("redux.sync.min.NaN.f32 d, b, -1;", lanes);
    CHECK(std::bit_cast<U>(poisoned[31]) == 0x7FFFFFFF);
}

TEST_CASE("elect selects the lowest member")
{
    const Surroundings around{.before = "mov.u32 t1, %laneid; setp.ge.u32 r, t1, 4;",
                              .after = "@!r bra END; selp.u32 t0, 100, 0, p; add.u32 d, d, t0; END:"};
    const auto values = warp<U>("@r elect.sync d|p, 0xFFFFFFF0;", numbered(), around);
    for (U i = 4; i < 32; ++i) {
        CHECK(values[i] == (i == 4 ? 104 : 4));
    }
}

TEST_CASE("wrong member masks and sources are reported")
{
    const auto findings = [](const std::string& text) {
        PtxRun run(module_text("sm_90",
                               ".visible .entry k()\n{ .reg .b32 a, lane; .reg .pred p; mov.u32 lane, %laneid; "
                               "setp.lt.u32 p, lane, 8;\n" +
                                   text + "\nret; }"),
                   "h200");
        CHECK(run.launch("k", {}).code == 0);
        return run.count(FindingKind::invalid_operand);
    };
    CHECK(findings("shfl.sync.idx.b32 a, lane, 0, 31, -1;") == 0);
    CHECK(findings("@p shfl.sync.idx.b32 a, lane, 0, 31, 0xFF;") == 0);
    CHECK(findings("@p shfl.sync.idx.b32 a, lane, 9, 31, 0xFF;") == 1);      // lane 9 does not execute it
    CHECK(findings("shfl.sync.bfly.b32 a, lane, 1, 31, 0x7FFFFFFF;") >= 1);  // lane 31 is not in its own mask
    CHECK(findings("@p shfl.sync.idx.b32 a, lane, 0, 31, -1;") == 1);  // the mask has 24 lanes that do not execute it
}
