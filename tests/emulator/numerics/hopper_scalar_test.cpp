// The scalar arithmetic and conversions against checksums of a real H200.

#include <doctest/doctest.h>

#include <string>

#include "emulated_instructions.hpp"

namespace {

struct Recorded {
    const char* name;
    std::uint64_t checksum;
};

constexpr Recorded recorded[] = {
#include "h200_scalar_checksums.inc"
};

}  // namespace

TEST_CASE("scalar instructions have the bits of an H200")
{
    using namespace tessera::probe;
    for (const Recorded& expected : recorded) {
        const std::vector<std::uint64_t> results = emulate_scalar(expected.name);
        REQUIRE(!results.empty());
        const std::uint64_t checksum = fnv1a(results.data(), results.size() * sizeof(std::uint64_t));
        INFO(std::string(expected.name));
        CHECK(checksum == expected.checksum);
    }
}
