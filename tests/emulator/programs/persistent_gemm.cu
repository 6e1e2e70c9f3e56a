// The persistent GEMM and all its faulty forms.

#include "persistent_gemm.cuh"

#include <array>
#include <utility>

namespace tessera_emulator_test {
namespace {

template <int... faults>
auto instances(std::integer_sequence<int, faults...>)
{
    return std::array{&persistent_gemm<static_cast<PersistentFault>(faults)>...};
}

}  // namespace

auto persistent_gemms()
{
    return instances(std::make_integer_sequence<int, static_cast<int>(PersistentFault::last)>());
}

}  // namespace tessera_emulator_test
