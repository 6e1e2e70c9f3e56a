// The exact tensor-core arithmetic against checksums of a real H200.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "emulated_instructions.hpp"

namespace {

using namespace tessera::probe;

struct Recorded {
    const char* name;
    const char* input_class;
    std::uint64_t checksum;
};

constexpr Recorded recorded[] = {
#include "h200_tensor_checksums.inc"
};

void check_case(const Case& test)
{
    for (int which = 0; which < class_count; ++which) {
        const auto* const expected = std::find_if(std::begin(recorded), std::end(recorded), [&](const Recorded& row) {
            return std::string_view(row.name) == test.name && std::string_view(row.input_class) == class_name(which);
        });
        REQUIRE(expected != std::end(recorded));
        const std::vector<unsigned char> d = emulate(test, make_problem(test, which, instance_count), instance_count);
        const std::uint64_t checksum = fnv1a(d.data(), d.size());
        INFO(std::string(test.name), " with inputs of class ", std::string(class_name(which)));
        CHECK(checksum == expected->checksum);
    }
}

}  // namespace

TEST_CASE("wgmma has the bits of an H200")
{
    for (const Case& test : wgmma_cases) {
        check_case(test);
    }
}

TEST_CASE("mma.sync has the bits of an H200")
{
    for (const Case& test : mma_cases) {
        check_case(test);
    }
}

TEST_CASE("every recorded tensor checksum belongs to a case")
{
    CHECK(std::size(recorded) == (std::size(wgmma_cases) + std::size(mma_cases)) * class_count);
}
