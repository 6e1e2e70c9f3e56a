// The Blackwell GEMM and all its faulty forms, for one CTA and for pairs.

#include "blackwell_gemm.cuh"

#include <array>
#include <utility>

namespace tessera_emulator_test {
namespace {

template <int group, int... faults>
auto instances(std::integer_sequence<int, faults...>)
{
    return std::array{&blackwell_gemm<group, static_cast<BlackwellFault>(faults)>...};
}

constexpr auto all = std::make_integer_sequence<int, static_cast<int>(BlackwellFault::last)>();

}  // namespace

auto blackwell_gemms() { return instances<1>(all); }
auto blackwell_pair_gemms() { return instances<2>(all); }

}  // namespace tessera_emulator_test
