#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <tessera/version.hpp>

TEST_CASE("the release is the same for CMake, the preprocessor and C++")
{
    using tessera::version;
    const std::string numbers = fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
    CHECK(numbers == PROJECT_VERSION);
    CHECK(numbers == TESSERA_VERSION_STRING);
    CHECK(version.major == TESSERA_VERSION_MAJOR);
    CHECK(version.minor == TESSERA_VERSION_MINOR);
    CHECK(version.patch == TESSERA_VERSION_PATCH);
    CHECK(version.major * 10000 + version.minor * 100 + version.patch == TESSERA_VERSION);
}

// The preprocessor must be able to compare it.
#if TESSERA_VERSION < 100
#error "0.1.0 is the first release"
#endif
