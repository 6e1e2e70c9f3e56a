/// The operations of the epilogue in device code.

#include <doctest/doctest.h>

#include <vector>

#include "device_fixture.hpp"
#include "epilogue_kernels.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

TEST_CASE("activations with an exponential are as exact as they say, for every float")
{
    const Stream stream;
    for (const Activation activation :
         {Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::sigmoid, Activation::tanh}) {
        CAPTURE(to_string(activation));
        const auto count_different = [&](std::uint32_t stride, std::uint64_t count) {
            auto different = DeviceBuffer<unsigned long long>::from_host(stream, std::vector<unsigned long long>{0});
            launch(check_activation_kernel(), LaunchConfig::covering(stream, quick() ? 4096 : 1 << 20), activation,
                   stride, count, different.data());
            return different.to_vector().front();
        };
        CHECK(count_different(std::uint32_t{1} << 23, 512) == 0);  // zeros, powers of two, infinities
        CHECK(count_different(0x7FFFFF, 513) == 0);                // the largest floats below them, and subnormal ones
        // A few of the others are enough on the emulated device.
        CHECK((quick() ? count_different(65521, 1 << 16) : count_different(1, std::uint64_t{1} << 32)) == 0);
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
