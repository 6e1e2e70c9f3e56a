// Constant expressions. The results are those of ptxas 13.0, unless a name says otherwise.
#include "snippets.hpp"

namespace tessera::emulator::ptx {

TEST_CASE("integer literals")
{
    CHECK(parse_integer("0") == 0);
    CHECK(parse_integer("42U") == 42);
    CHECK(parse_integer("0x7f") == 127);
    CHECK(parse_integer("0XFFU") == 255);
    CHECK(parse_integer("017") == 15);
    CHECK(parse_integer("00") == 0);
    CHECK(parse_integer("0b1011") == 11);
    CHECK(parse_integer("0B1U") == 1);
    CHECK(parse_integer("9223372036854775807") == INT64_MAX);
    CHECK(parse_integer("18446744073709551615") == -1);
    CHECK(parse_integer("0xffffffffffffffff") == -1);
    CHECK(parse_integer("WARP_SZ") == 32);
}

TEST_CASE("precedence and associativity are those of C")
{
    CHECK(parse_integer("1 + 2 * 3") == 7);
    CHECK(parse_integer("(1 + 2) * 3") == 9);
    CHECK(parse_integer("10 - 4 - 3") == 3);
    CHECK(parse_integer("64 / 4 / 2") == 8);
    CHECK(parse_integer("1 << 2 + 1") == 8);
    CHECK(parse_integer("1 | 6 ^ 3 & 2") == 5);
    CHECK(parse_integer("1 == 1 && 2 != 2 || 3 >= 3") == 1);
    CHECK(parse_integer("4 < 5 == 5 > 4") == 1);
    CHECK(parse_integer("3 <= 2") == 0);
    CHECK(parse_integer("5 - - 3") == 8);
    CHECK(parse_integer("-(1 + 2) * + 3") == -9);
    CHECK(parse_integer("!5") == 0);
    CHECK(parse_integer("!0") == 1);
    CHECK(parse_integer("~0") == -1);
    CHECK(parse_integer("1 + 2 == 3 ? 10 : 20 ? 1 : 2") == 10);
    CHECK(parse_integer("0 ? 10 : 0 ? 1 : 2") == 2);
    CHECK(parse_integer("0x10|1") == 17);
}

TEST_CASE("signed and unsigned arithmetic")
{
    CHECK(parse_integer("-1 / 2") == 0);
    CHECK(parse_integer("-1 / 2U") == INT64_MAX);
    CHECK(parse_integer("-7 / 2") == -3);
    CHECK(parse_integer("-7 % 2") == 1);  // always unsigned
    CHECK(parse_integer("-8 >> 1") == -4);
    CHECK(parse_integer("-8U >> 1") == INT64_MAX - 3);
    CHECK(parse_integer("~0 >> 1") == INT64_MAX);
    CHECK(parse_integer("(-1 & -1) >> 1") == -1);
    CHECK(parse_integer("(-1 + 0U) / 2") == INT64_MAX);
    CHECK(parse_integer("-1 < 0") == 1);
    CHECK(parse_integer("-1 < 0U") == 0);
    CHECK(parse_integer("-1 > 0U") == 1);
    CHECK(parse_integer("-1 <= 0U") == 0);
    CHECK(parse_integer("-1 != 0xffffffffffffffff") == 0);
    CHECK(parse_integer("1 << 65") == 2);
    CHECK(parse_integer("-1 >> 64") == -1);
    CHECK(parse_integer("(.u64)-1 >> 1") == INT64_MAX);
    CHECK(parse_integer("(.s64) 0xffffffffffffffff / 2") == 0);
    CHECK(parse_integer("(1 ? -1 : 3U) >> 60") == -1);
    CHECK(parse_integer("18446744073709551615 / 2") == INT64_MAX);
}

TEST_CASE("the quotient that overflows wraps; ptxas crashes on it")
{
    CHECK(parse_integer("(-9223372036854775807 - 1) / -1") == INT64_MIN);
}

TEST_CASE("reals can be compared")
{
    CHECK(parse_integer("1.5 < 2.0") == 1);
    CHECK(parse_integer("1.5 == 3 * 0.5") == 1);
    CHECK(parse_integer("0f3FC00000 >= 2") == 0);
    CHECK(parse_integer("1.5 != 1.5") == 0);
    CHECK(parse_integer("1.5 > 1") == 1);
    CHECK(parse_integer("3.5 - 1 <= 2.5") == 1);
    CHECK(parse_integer("-1 < 18446744073709551615 * 1.0") == 1);
}

}  // namespace tessera::emulator::ptx
