// The Hopper GEMM and all its faulty forms.

#include "hopper_gemm.cuh"

#include <array>
#include <utility>

namespace tessera_emulator_test {
namespace {

template <int... faults>
auto instances(std::integer_sequence<int, faults...>)
{
    return std::array{&hopper_gemm<static_cast<HopperFault>(faults)>...};
}

}  // namespace

auto hopper_gemms() { return instances(std::make_integer_sequence<int, static_cast<int>(HopperFault::last)>()); }

}  // namespace tessera_emulator_test
