// Swizzles against the figures of the PTX ISA, written in another way: as a table of where each 16 bytes of a line go.

#include <doctest/doctest.h>

#include <set>

#include "machine/swizzle.hpp"

using namespace tessera::emulator;

TEST_CASE("in line r, the 16-byte piece c goes to place c xor f(r)")
{
    for (std::uint32_t line = 0; line < 32; ++line) {
        for (std::uint32_t piece = 0; piece < 8; ++piece) {
            const std::uint32_t address = line * 128 + piece * 16 + 5;
            const auto place = [&](std::uint32_t to) { return line * 128 + to * 16 + 5; };
            CHECK(swizzle(TensorSwizzle::none, address) == address);
            CHECK(swizzle(TensorSwizzle::span_128, address) == place(piece ^ line % 8));
            CHECK(swizzle(TensorSwizzle::span_64, address) == place(piece ^ line % 4));
            CHECK(swizzle(TensorSwizzle::span_32, address) == place(piece ^ line % 2));
            CHECK(swizzle(TensorSwizzle::span_128_atom_32, address) == place(piece ^ line % 4 * 2));
            CHECK(swizzle(TensorSwizzle::span_128_atom_64, address) == place(piece ^ line % 2 * 4));
        }
    }
}

TEST_CASE("the flipping swizzle exchanges the halves of 16 bytes in every second line")
{
    CHECK(swizzle(TensorSwizzle::span_128_atom_32_flip_8, 0) == 0);
    CHECK(swizzle(TensorSwizzle::span_128_atom_32_flip_8, 128) == 128 + 32 + 8);
    CHECK(swizzle(TensorSwizzle::span_128_atom_32_flip_8, 128 + 40) == 128);
    CHECK(swizzle(TensorSwizzle::span_128_atom_32_flip_8, 256) == 256 + 64);
}

TEST_CASE("known addresses of matrices in shared memory")
{
    CHECK(swizzle(TensorSwizzle::span_128, 678) == 758);  // f16, row 5, column 19
    CHECK(swizzle(TensorSwizzle::span_64, 358) == 326);
    CHECK(swizzle(TensorSwizzle::span_32, 182) == 166);
    CHECK(swizzle(TensorSwizzle::span_128_atom_32, 676) == 644);
}

TEST_CASE("a swizzle is its own inverse, keeps lines, and does not change the rank")
{
    for (unsigned mode = 0; mode <= 6; ++mode) {
        const auto which = static_cast<TensorSwizzle>(mode);
        std::set<std::uint32_t> places;
        for (std::uint32_t address = 0x0300'0400; address < 0x0300'0C00; ++address) {
            const std::uint32_t to = swizzle(which, address);
            places.insert(to);
            CHECK(to / 128 == address / 128);
            if (which != TensorSwizzle::span_128_atom_32_flip_8) {
                CHECK(swizzle(which, to) == address);
            }
            if (const std::uint32_t atom = swizzle_atom(which); atom <= 128) {
                CHECK(to == swizzle(which, address / atom * atom) + address % atom);  // an atom moves as one
            }
        }
        CHECK(places.size() == 0x800);
    }
}
