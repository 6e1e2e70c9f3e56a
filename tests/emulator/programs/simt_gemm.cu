// The SIMT GEMM and all its faulty forms.

#include "simt_gemm.cuh"

#include <array>
#include <utility>

namespace tessera_emulator_test {
namespace {

template <int... faults>
auto instances(std::integer_sequence<int, faults...>)
{
    return std::array{&simt_gemm<static_cast<SimtFault>(faults)>...};
}

}  // namespace

auto simt_gemms() { return instances(std::make_integer_sequence<int, static_cast<int>(SimtFault::last)>()); }

}  // namespace tessera_emulator_test
