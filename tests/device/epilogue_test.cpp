/// The operations of the epilogue in device code.

#include <doctest/doctest.h>

#include <vector>

#include "device_fixture.hpp"
#include "epilogue_kernels.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

TEST_CASE("SiLU divides as correctly as __fdiv_rn, for every float")
{
    const Stream stream;
    auto different = DeviceBuffer<unsigned long long>::from_host(stream, std::vector<unsigned long long>{0});
    // An odd stride visits every float. A few of them are enough on the emulated device.
    const std::uint64_t count = quick() ? std::uint64_t{1} << 16 : std::uint64_t{1} << 32;
    const std::uint32_t stride = quick() ? 65521 : 1;
    launch(compare_silu_kernel(), LaunchConfig::covering(stream, quick() ? 4096 : 1 << 20), stride, count,
           different.data());
    CHECK(different.to_vector().front() == 0);
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
