// Dense tcgen05.mma of every kind without block scaling, against products in double. The inputs make every sum exact,
// so both numeric paths must give exactly the expected values.

#include <doctest/doctest.h>

#include "mma_case.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

void expect_exact(MmaCase test)
{
    for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
        test.options.numerics = numerics;
        const MmaCase::Result result = test.run();
        CAPTURE(test.kind);
        CAPTURE(test.m);
        CAPTURE(test.n);
        CAPTURE(result.first);
        CHECK(result.outcome.result.code == 0);
        CHECK(result.outcome.result.message == "");
        CHECK(result.worst == 0);
        CHECK(result.touched == 0);
        CHECK(result.outcome.findings.empty());
    }
}

}  // namespace

TEST_CASE("mma: f16 in every layout of A and B")
{
    const std::vector<std::pair<Layout, bool>> layouts{
        {Layout::none, false}, {Layout::swizzle_32, false}, {Layout::swizzle_64, false}, {Layout::swizzle_128, false},
        {Layout::none, true},  {Layout::swizzle_32, true},  {Layout::swizzle_64, true},  {Layout::swizzle_128, true}};
    for (const auto& [layout, mn_major] : layouts) {
        CAPTURE(static_cast<int>(layout));
        CAPTURE(mn_major);
        expect_exact({.n = 64, .a_layout = layout, .a_mn_major = mn_major});
        expect_exact({.n = 64, .b_layout = layout, .b_mn_major = mn_major});
    }
}

TEST_CASE("mma: a tile that starts within the swizzle's pattern needs no base offset if the pattern is at its place")
{
    for (const Layout layout : {Layout::swizzle_32, Layout::swizzle_64, Layout::swizzle_128}) {
        CAPTURE(static_cast<int>(layout));
        for (const unsigned skip : {1u, 3u, 8u, 13u}) {
            CAPTURE(skip);
            expect_exact({.n = 64, .a_layout = layout, .a_skip = skip});
        }
    }
}

TEST_CASE("mma: shapes of f16")
{
    for (const unsigned n : {8u, 24u, 128u, 256u}) {
        expect_exact({.m = 128, .n = n});
        expect_exact({.m = 64, .n = n});
    }
}

TEST_CASE("mma: four steps along K inside one swizzled row, with D added")
{
    expect_exact({.a = bf16, .b = bf16, .n = 128, .steps = 4});
    expect_exact({.a = bf16, .b = f16, .n = 64, .a_mn_major = true, .b_mn_major = true, .steps = 4});
    expect_exact({.n = 32, .a_layout = Layout::none, .b_layout = Layout::none, .steps = 3});
}

TEST_CASE("mma: D in f16, one per column")
{
    expect_exact({.n = 64, .f16_result = true, .steps = 2});
    expect_exact({.m = 64, .n = 16, .f16_result = true});
}

TEST_CASE("mma: negation and scale-input-d")
{
    expect_exact({.n = 16, .negate_a = true});
    expect_exact({.n = 16, .negate_b = true, .steps = 2});
    expect_exact({.n = 16, .negate_a = true, .negate_b = true});
    expect_exact({.n = 16, .steps = 2, .scale_d = 3});
    expect_exact({.kind = "tf32", .a = tf32, .b = tf32, .n = 16, .steps = 2, .scale_d = 1});
}

TEST_CASE("mma: disabled lanes of D")
{
    MmaCase test{.n = 32};
    test.disabled = "{%a4, %a5, %a6, %a7}";
    test.prepare =
        "    mov.b32 %a4, 0x1;\n    mov.b32 %a5, 0x80000000;\n    mov.b32 %a6, 0;\n    mov.b32 %a7, 0xffff0000;\n";
    test.is_disabled = [](unsigned, unsigned lane) { return lane == 0 || lane == 63 || lane >= 112; };
    expect_exact(test);
    test.kind = "i8";
    test.a = test.b = e4m3;
    expect_exact(test);
}

TEST_CASE("mma: tf32")
{
    expect_exact({.kind = "tf32", .a = tf32, .b = tf32, .n = 64, .steps = 2});
    expect_exact(
        {.kind = "tf32", .a = tf32, .b = tf32, .n = 64, .a_layout = Layout::swizzle_128_atom_32, .a_mn_major = true});
    expect_exact({.kind = "tf32",
                  .a = tf32,
                  .b = tf32,
                  .n = 64,
                  .b_layout = Layout::swizzle_128_atom_32,
                  .b_mn_major = true,
                  .steps = 2});
}

TEST_CASE("mma: fp8")
{
    for (const NumberFormat& a : {e4m3, e5m2}) {
        for (const NumberFormat& b : {e4m3, e5m2}) {
            expect_exact({.kind = "f8f6f4", .a = a, .b = b, .n = 32, .steps = 2});
        }
    }
    expect_exact({.kind = "f8f6f4",
                  .a = e4m3,
                  .b = e4m3,
                  .m = 64,
                  .n = 48,
                  .b_layout = Layout::swizzle_32,
                  .b_mn_major = true,
                  .f16_result = true});
}

TEST_CASE("mma: integers")
{
    for (const bool a : {false, true}) {
        for (const bool b : {false, true}) {
            expect_exact({.kind = "i8", .a = e4m3, .b = e4m3, .is_signed_a = a, .is_signed_b = b, .n = 32, .steps = 2});
        }
    }
    expect_exact({.kind = "i8", .a = e4m3, .b = e4m3, .is_signed_a = true, .m = 64, .n = 24});
}

TEST_CASE("mma: pairs")
{
    expect_exact({.m = 256, .n = 64, .group = 2, .steps = 2});
    expect_exact({.m = 128, .n = 64, .group = 2, .steps = 2});
    expect_exact({.a = bf16, .b = bf16, .m = 256, .n = 256, .group = 2, .b_mn_major = true});
    expect_exact({.kind = "i8", .a = e4m3, .b = e4m3, .is_signed_b = true, .m = 128, .n = 96, .group = 2});
    MmaCase test{.m = 256, .n = 32, .group = 2};
    test.disabled = "{%a4, %a4, %a4, %a4, %a4, %a5, %a4, %a4}";
    test.prepare = "    mov.b32 %a4, 0;\n    mov.b32 %a5, 6;\n";
    test.is_disabled = [](unsigned cta, unsigned lane) { return cta == 1 && (lane == 33 || lane == 34); };
    expect_exact(test);
}

TEST_CASE("mma: weight stationary")
{
    for (const unsigned m : {32u, 64u, 128u}) {
        for (const unsigned n : {64u, 128u, 256u}) {
            expect_exact({.m = m, .n = n, .ws = true});
        }
    }
    expect_exact({.kind = "i8", .a = e4m3, .b = e4m3, .m = 32, .n = 64, .ws = true});
}

TEST_CASE("mma: zero-column masks, with the examples of the PTX ISA")
{
    // Zero runs of 3, used runs of 4. M = 128: 0b...111 0000 111 0000.
    MmaCase test{.m = 128, .n = 64, .ws = true};
    test.zero_mask = std::uint64_t{1} << 39 | std::uint64_t{2} << 40 | std::uint64_t{3} << 48;
    test.b_column = [](unsigned n, double value) { return n % 7 >= 4 ? 0 : value; };
    expect_exact(test);
    // M = 64, the first half starts with zeros.
    test.m = 64;
    test.zero_mask |= std::uint64_t{1} << 32;
    test.b_column = [](unsigned n, double value) {
        const unsigned in_half = n % 32;
        return (n < 32 ? in_half % 7 < 3 : in_half % 7 >= 4) ? 0 : value;
    };
    expect_exact(test);
    // M = 32: first spans {0, 0, 1, 1}, start counts {1, 2, 1, 0} from part 3 down to part 0.
    test.m = 32;
    test.zero_mask = std::uint64_t{1} << 39 | std::uint64_t{2} << 40 | std::uint64_t{3} << 48 | std::uint64_t{3} << 32 |
                     std::uint64_t{1} << 24 | std::uint64_t{2} << 16 | std::uint64_t{1} << 8;
    test.b_column = [](unsigned n, double value) {
        static const std::string masks[] = {"1110000111000011", "1100001110000111", "0011100001110000",
                                            "0001110000111000"};
        return masks[n / 16][n % 16] == '1' ? 0 : value;
    };
    expect_exact(test);
}
