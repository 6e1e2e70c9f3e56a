// How far the common exponent of a sum falls: the results of ../hardware/tiny_sum_probe.cu on an H200.

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../hardware/tiny_sum_inputs.hpp"
#include "numerics/tensor_sum.hpp"

namespace {

using namespace tessera::emulator::numerics;
namespace tiny = tessera::tiny_sums;

/// The results of all sums, each an instruction with one row and one column.
std::vector<std::uint32_t> emulate(const tiny::Kinds& kinds, TensorUnit unit)
{
    std::size_t scanned = 0;
    const std::vector<tiny::Case> cases = tiny::all_cases(kinds, scanned);
    const Format format = kinds.format.bytes() == 2 ? Format::f16 : Format::e5m2;
    const SumModel model = sum_model(unit, format, kinds.f32_result ? Accumulator::f32 : Accumulator::f16, kinds.k);
    std::vector<std::uint32_t> results;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const tiny::Sum sum = tiny::pack(kinds, cases[i], i);
        const ExactA a({format, sum.a, static_cast<std::ptrdiff_t>(kinds.k), 1, false}, 1, kinds.k);
        const ExactB b({format, sum.b, static_cast<std::ptrdiff_t>(kinds.k), 1, false}, 1, kinds.k);
        float d = kinds.f32_result ? std::bit_cast<float>(sum.c) : float_from_f16(static_cast<std::uint16_t>(sum.c));
        multiply_exact(model, a, b, &d, 1);
        results.push_back(kinds.f32_result ? std::bit_cast<std::uint32_t>(d) : f16_from_float(d));
    }
    return results;
}

constexpr tiny::Format f16{10};
constexpr tiny::Format e5m2{2};

}  // namespace

TEST_CASE("tiny sums have the bits of an H200: the common exponent of an f16 result is at least -21")
{
    CHECK(tiny::checksum(emulate({f16, false, 16}, TensorUnit::hopper_wgmma)) == 0x09B6'2F29'C83C'92DC);
    CHECK(tiny::checksum(emulate({f16, false, 16}, TensorUnit::hopper_mma)) == 0x09B6'2F29'C83C'92DC);
    CHECK(tiny::checksum(emulate({f16, false, 8}, TensorUnit::hopper_mma)) == 0x09B6'2F29'C83C'92DC);
    CHECK(tiny::checksum(emulate({e5m2, false, 32}, TensorUnit::hopper_wgmma)) == 0xD867'D5B7'0C2F'0F86);
    CHECK(tiny::checksum(emulate({f16, true, 16}, TensorUnit::hopper_wgmma)) == 0x0B12'43CF'E378'3782);
    CHECK(tiny::checksum(emulate({f16, true, 16}, TensorUnit::hopper_mma)) == 0x0B12'43CF'E378'3782);
}

TEST_CASE("the smallest common exponents of all units, by the published models")
{
    const auto smallest = [](TensorUnit unit, Accumulator accumulator) {
        return sum_model(unit, Format::f16, accumulator, 16).smallest_exponent;
    };
    CHECK(smallest(TensorUnit::blackwell, Accumulator::f16) == -21);
    CHECK(smallest(TensorUnit::blackwell, Accumulator::f32) == -133);
    CHECK(smallest(TensorUnit::ada_mma, Accumulator::f16) == -20);
    CHECK(smallest(TensorUnit::ampere_mma, Accumulator::f16) == -20);
    CHECK(smallest(TensorUnit::ampere_mma, Accumulator::f32) == -132);
    CHECK(smallest(TensorUnit::volta_mma, Accumulator::f16) == -19);
    CHECK(sum_model(TensorUnit::hopper_wgmma, Format::e4m3, Accumulator::f32, 32).smallest_exponent == -133);
}
