// The GEMM with cp.async and mma.sync and all its faulty forms.

#include "simt_gemm.cuh"

#include <array>
#include <utility>

namespace tessera_emulator_test {
namespace {

template <int... faults>
auto instances(std::integer_sequence<int, faults...>)
{
    return std::array{&ampere_gemm<static_cast<AmpereFault>(faults)>...};
}

}  // namespace

auto ampere_gemms() { return instances(std::make_integer_sequence<int, static_cast<int>(AmpereFault::last)>()); }

}  // namespace tessera_emulator_test
