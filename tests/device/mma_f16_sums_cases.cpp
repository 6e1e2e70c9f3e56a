/// The mma.sync kernel with sums in f16: a part of mma_test.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/mma_cases.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

/// The sum of a row's elements, as a configuration with sums in f16 computes it, and as the kernel does without.
struct SumInEachWay {
    std::string name;
    float in_f16;
    float in_f32;
};

/// Multiplies 64 equal rows by columns of ones, on each configuration with sums in f16.
std::vector<SumInEachWay> sums_of_row(const std::vector<float>& row)
{
    constexpr std::int64_t extent = 64;
    const auto k = static_cast<std::int64_t>(row.size());
    std::vector<f16> elements;
    for (std::int64_t i = 0; i < extent; ++i) {
        for (const float value : row) {
            elements.emplace_back(value);
        }
    }
    const auto a = DeviceBuffer<f16>::from_host(stream(), elements);
    const auto b =
        DeviceBuffer<f16>::from_host(stream(), std::vector<f16>(static_cast<std::size_t>(extent * k), f16(1.0F)));
    DeviceBuffer<float> d(stream(), extent * extent);
    const auto multiply = [&](F16Accumulation sums, std::optional<KernelChoice> choice) {
        const Epilogue epilogue{.f16_accumulation = sums};
        std::vector<float> result(extent * extent);
        if (choice) {
            const detail::GemmOperands given{detail::operand_of(a.matrix(extent, k)),
                                             detail::operand_of(b.matrix(k, extent)),
                                             detail::operand_of(d.matrix(extent, extent))};
            detail::EncodedLaunch launch;
            CHECK(detail::encode_mma(launch, detail::problem_of(given, epilogue), device(), *choice,
                                     detail::arguments_of(given, epilogue), {})
                      .status == cudaSuccess);
            CHECK(detail::enqueue(launch, stream()).status == cudaSuccess);
        } else {
            Gemm::launch(stream(), a.matrix(extent, k), b.matrix(k, extent), d.matrix(extent, extent), epilogue,
                         Variant::mma_sync);
        }
        d.copy_to(result);
        CHECK(std::all_of(result.begin(), result.end(), [&](float value) {
            return value == result[0] || (std::isnan(value) && std::isnan(result[0]));
        }));
        return result[0];
    };
    const float in_f32 = multiply(F16Accumulation::in_f32, std::nullopt);
    std::vector<SumInEachWay> sums{{"Gemm::launch", multiply(F16Accumulation::in_f16, std::nullopt), in_f32}};
    const GemmProblem problem = detail::resolved({.m = extent,
                                                  .n = extent,
                                                  .k = k,
                                                  .input = ElementType::f16,
                                                  .output = ElementType::f32,
                                                  .f16_accumulation = F16Accumulation::in_f16});
    detail::for_each_mma_candidate(problem, device(), [&](const KernelChoice& choice) {
        if (choice.cluster_k == 1 && sums_in_f16(problem.input, choice)) {
            sums.push_back({detail::describe_mma(problem, choice), multiply(F16Accumulation::in_f16, choice), in_f32});
        }
    });
    CHECK(sums.size() > 1);
    return sums;
}

}  // namespace

TEST_CASE("sums in f16 are right in all orders, at ragged extents and depths, with epilogues, split or not")
{
    if (!has_f16_sums()) {
        return;
    }
    std::mt19937_64 engine = random_engine(3);
    const auto flip = [&] { return engine() % 2 == 0; };
    std::size_t number = 0;
    std::size_t launches = 0;
    for (const std::int64_t k : {1, 40, 64, 72, 136, 1160}) {
        for (const bool a_row_major : {true, false}) {
            for (const bool b_row_major : {true, false}) {
                for (const Data data_kind : {Data::random, Data::signature}) {
                    if (quick() && ++number % 5 != 0) {  // of 48: in all, each order and depth comes
                        continue;
                    }
                    GemmCase gemm;
                    gemm.m = flip() ? 70 : 200;
                    gemm.n = flip() ? 131 : 88;
                    gemm.k = k;
                    gemm.input = ElementType::f16;
                    gemm.f16_accumulation = F16Accumulation::in_f16;
                    gemm.a.row_major = a_row_major;
                    gemm.b.row_major = b_row_major;
                    gemm.d.row_major = engine() % 4 != 0;
                    align_operands(gemm);
                    gemm.batches = 1 + static_cast<std::int64_t>(engine() % 2);
                    gemm.output = flip() ? ElementType::f32 : ElementType::bf16;
                    gemm.bias_type = ElementType::f16;
                    gemm.bias = flip() ? BiasAxis::per_column : BiasAxis::none;
                    gemm.addend = flip() ? Addend::separate : Addend::none;
                    gemm.beta = gemm.addend == Addend::none ? 0.0F : -0.5F;
                    gemm.activation = flip() ? Activation::relu : Activation::none;
                    gemm.data = data_kind;
                    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
                    const Reference reference(gemm, data);
                    const DeviceOperands operands(stream(), gemm, data);
                    std::set<bool> kinds;
                    for (const KernelChoice& choice : choices_for(detail::resolved(operands.problem()))) {
                        kinds.insert(sums_in_f16(gemm.input, choice));
                        check(gemm, data, reference, choice);
                        ++launches;
                    }
                    CHECK(kinds.contains(true));
                }
            }
        }
    }
    MESSAGE(launches << " checks");
}

TEST_CASE("sums in f16 are those of 64 products, which are added in f32")
{
    if (!has_f16_sums()) {
        return;
    }
    // f16 has no odd number above 2048, and 2048 + 1 is 2048 again. No instruction adds more than 16 products.
    std::vector<float> a(64, 0.0F);
    a[0] = 2048.0F;
    a[16] = a[32] = a[48] = 1.0F;
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == 2048.0F);
        CHECK(sum.in_f32 == 2051.0F);
    }
    // What is in the next 64 is added in f32: none of these is lost.
    a.assign(64, 0.0F);
    a[0] = 2048.0F;
    a.resize(128, 1.0F);
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == 2048.0F + 64.0F);
        CHECK(sum.in_f32 == 2048.0F + 64.0F);
    }
    // In f16 alone, a sum of ones ends at 2048.
    for (const SumInEachWay& sum : sums_of_row(std::vector<float>(4096, 1.0F))) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == 4096.0F);
    }
}

TEST_CASE("a sum of 64 products that f16 does not have is infinite, and one of more products is not")
{
    if (!has_f16_sums()) {
        return;
    }
    constexpr float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> a(64, 0.0F);
    a[3] = 40000.0F;
    a[5] = 30000.0F;
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == infinity);
        CHECK(sum.in_f32 == f16(40000.0F) + f16(30000.0F));
    }
    a.assign(192, 0.0F);
    a[3] = 40000.0F;
    a[64 + 5] = 40000.0F;
    a[128 + 60] = 65504.0F;
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == 80000.0F + 65504.0F);
        CHECK(sum.in_f32 == 80000.0F + 65504.0F);
    }
    a.assign(128, 0.0F);
    a[0] = a[40] = 40000.0F;
    a[64] = a[100] = -40000.0F;
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(std::isnan(sum.in_f16));
        CHECK(sum.in_f32 == 0.0F);
    }
}

TEST_CASE("operands that are not aligned to 16 bytes keep sums in f32, and explain says what a product has")
{
    if (!has_f16_sums()) {
        return;
    }
    GemmProblem problem{.m = 512, .n = 512, .k = 512, .input = ElementType::f16, .output = ElementType::f32};
    const auto says = [&](std::string_view what) {
        return GemmPlan::explain(problem, device(), Variant::mma_sync).find(what) != std::string::npos;
    };
    CHECK_FALSE(says("sums in"));
    problem.f16_accumulation = F16Accumulation::in_f16;
    CHECK(says(", sums in f16 of 64 products"));
    problem.a.address_alignment = 2;
    CHECK(says("Mma64x64Any"));
    CHECK(says(", sums in f32"));
    problem.input = ElementType::bf16;
    CHECK_FALSE(says("sums in"));
}
