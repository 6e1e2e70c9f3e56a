/// A D of 8 bits: what the kernel gets, what fits beside it, and every rule with the text that a user sees.

#include <fmt/format.h>

#include <cstring>

#include "clean_runtime.hpp"
#include "kernels/gemm/gemm_arguments.hpp"
#include "tuning/tuner.hpp"
#include "tuning/tuning_table.hpp"

using namespace tessera;
using tessera::kernels::GemmArguments;
using tessera::test::CleanRuntime;

namespace {

struct Float8Runtime : CleanRuntime {
    Float8Runtime() { fake::keep_argument_bytes(sizeof(GemmArguments)); }

    Stream stream;
    DeviceBuffer<f8e4m3> a{stream, 1000};
    DeviceBuffer<f8e4m3> b{stream, 1000};
    DeviceBuffer<f8e4m3> d{stream, 1000};
    DeviceBuffer<bf16> c{stream, 1000};
    DeviceBuffer<float> scales{stream, 10};

    static GemmArguments argument()
    {
        GemmArguments arguments{};
        const fake::Launch& launch = fake::launches().back();
        REQUIRE(launch.argument.size() >= sizeof(GemmArguments));
        std::memcpy(&arguments, launch.argument.data(), sizeof(GemmArguments));
        return arguments;
    }
    /// Calls Gemm::launch for D (4x6) = A (4x5) * B (5x6) with this epilogue.
    void launch_with(const Epilogue& epilogue, std::source_location caller = std::source_location::current())
    {
        Gemm::launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), epilogue, Variant::simt_naive, caller);
    }
    /// The same with a D of bf16.
    void launch_wide(const Epilogue& epilogue, std::source_location caller = std::source_location::current())
    {
        Gemm::launch(stream, a.matrix(4, 5), b.matrix(5, 6), c.matrix(4, 6), epilogue, Variant::simt_naive, caller);
    }
};

std::string refused(const std::string& code, const std::string& text)
{
    return "tessera: " + code + " in Gemm::launch\n  " + text;
}

}  // namespace

TEST_CASE_FIXTURE(Float8Runtime, "the kernel gets D's type, scale and largest magnitude, and C's own type")
{
    launch_with({});
    CHECK(argument().d_type == ElementType::f8e4m3);
    CHECK(argument().scale_d == nullptr);
    CHECK(argument().amax_d == nullptr);
    DeviceBuffer<f16> x(stream, 100);
    const Epilogue epilogue{.c = c.matrix(4, 6),
                            .pre_activation = x.matrix(4, 6),
                            .scale_d = scales.subspan(3, 1),
                            .amax_d = scales.subspan(4, 1)};
    launch_with(epilogue);
    CHECK(argument().scale_d == scales.data() + 3);
    CHECK(argument().amax_d == scales.data() + 4);
    CHECK(argument().c_type == ElementType::bf16);
    CHECK(argument().pre_activation.type == ElementType::f16);
    Epilogue without_product = epilogue;
    without_product.alpha = 0;
    launch_with(without_product);  // D's scale is not one of the product
    CHECK(argument().scale_d == scales.data() + 3);
    // Every input type can have a D of 8 bits.
    DeviceBuffer<float> wide(stream, 100);
    DeviceBuffer<f8e5m2> e5m2(stream, 100);
    Gemm::launch(stream, wide.matrix(4, 5), wide.matrix(5, 6), e5m2.matrix(4, 6));
    CHECK(argument().d_type == ElementType::f8e5m2);
    launch_wide({});
    CHECK(argument().c_type == ElementType::bf16);
}

TEST_CASE_FIXTURE(Float8Runtime, "C and the pre-activation of an 8-bit D have 16 bits")
{
    const auto wrong = [](const std::string& name, const std::string& type, const std::string& cure) {
        return refused("invalid_argument",
                       fmt::format("{} has elements of {} and D of f8e4m3: beside an 8-bit D it has "
                                   "16 bits\n  try: a {} of f16 or bf16",
                                   name, type, cure));
    };
    DeviceBuffer<float> wide(stream, 100);
    DeviceBuffer<f8e4m3> narrow(stream, 100);
    CHECK_ERROR(wrong("C", "f32", "C"), launch_with({.c = wide.matrix(4, 6)}));
    CHECK_ERROR(wrong("C", "f8e4m3", "C"), launch_with({.c = narrow.matrix(4, 6)}));
    CHECK_ERROR(wrong("C", "f8e4m3", "C"), launch_with({.c = d.matrix(4, 6)}));
    CHECK_ERROR(wrong("the pre-activation", "f32", "pre-activation"),
                launch_with({.pre_activation = wide.matrix(4, 6)}));
    // C at D's address has other extents in bytes: it is not the same matrix.
    const auto at_d = MatrixOperand::from_raw_device_pointer(d.data(), ElementType::bf16, {.rows = 4, .columns = 6});
    CHECK_ERROR(refused("aliasing", fmt::format("D at {} overlaps C, which the kernel reads while it writes D\n  try: "
                                                "pass the same view as C and as D, or give D memory of its own",
                                                fmt::ptr(d.data()))),
                launch_with({.c = at_d}));
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(Float8Runtime, "scale_d and amax_d are one float each, for an 8-bit D, in memory of their own")
{
    CHECK_ERROR(refused("invalid_argument",
                        "scale_d is given and D has elements of bf16: it is for an 8-bit D\n  try: a D of f8e4m3 or "
                        "f8e5m2, or no scale_d"),
                launch_wide({.scale_d = scales.subspan(0, 1)}));
    CHECK_ERROR(refused("invalid_argument",
                        "amax_d is given and D has elements of bf16: it is for an 8-bit D\n  try: a D of f8e4m3 or "
                        "f8e5m2, or no amax_d"),
                launch_wide({.amax_d = scales.subspan(0, 1)}));
    CHECK_ERROR(refused("shape_mismatch",
                        "scale_d has 2 elements: a tensor has one scale\n  try: a span of one element, such as "
                        "scales.span().subspan(i, 1)"),
                launch_with({.scale_d = scales.subspan(0, 2)}));
    CHECK_ERROR(refused("shape_mismatch",
                        "amax_d has 10 elements: a tensor has one largest magnitude\n  try: a span of one element, "
                        "such as maxima.span().subspan(i, 1)"),
                launch_with({.amax_d = scales.span()}));
    const Stream there{Device(fake::t4)};
    DeviceBuffer<float> far(there, 1);
    const auto elsewhere = [](const std::string& name) {
        return refused("device_mismatch",
                       "the stream belongs to device 0, but " + name +
                           " belongs to device 1\n  try: use a stream and memory of one device, or copy the data to "
                           "device 0 first");
    };
    CHECK_ERROR(elsewhere("scale_d"), launch_with({.scale_d = far.span()}));
    CHECK_ERROR(elsewhere("amax_d"), launch_with({.amax_d = far.span()}));
    const auto overlaps = [&](const std::string& name) {
        return refused("aliasing", fmt::format("amax_d at {} overlaps {}\n  try: give amax_d memory of its own",
                                               fmt::ptr(scales.data()), name));
    };
    const auto amax = scales.subspan(0, 1);
    const auto one = scales.subspan(0, 1);
    CHECK_ERROR(overlaps("scale_a"), launch_with({.scale_a = one, .amax_d = amax}));
    CHECK_ERROR(overlaps("scale_b"), launch_with({.scale_b = one, .amax_d = amax}));
    CHECK_ERROR(overlaps("scale_d"), launch_with({.scale_d = one, .amax_d = amax}));
    CHECK_ERROR(overlaps("the bias"), launch_with({.bias = Bias::per_row(scales.subspan(0, 4)), .amax_d = amax}));
    const auto raw = [&](ElementType type, std::int64_t rows, std::int64_t columns) {
        return MatrixOperand::from_raw_device_pointer(scales.data(), type, {.rows = rows, .columns = columns});
    };
    const Epilogue with_amax{.amax_d = amax};
    CHECK_ERROR(overlaps("A"),
                Gemm::launch(stream, raw(ElementType::f8e4m3, 4, 5), b.matrix(5, 6), d.matrix(4, 6), with_amax));
    CHECK_ERROR(overlaps("B"),
                Gemm::launch(stream, a.matrix(4, 5), raw(ElementType::f8e4m3, 5, 6), d.matrix(4, 6), with_amax));
    CHECK_ERROR(overlaps("D"),
                Gemm::launch(stream, a.matrix(4, 5), b.matrix(5, 6), raw(ElementType::f8e4m3, 4, 6), with_amax));
    DeviceBuffer<float> block(stream, 20);
    const auto x = MatrixOperand::from_raw_device_pointer(block.data(), ElementType::bf16, {.rows = 4, .columns = 6});
    const auto of_block = [&](const std::string& name) {
        return refused("aliasing", fmt::format("amax_d at {} overlaps {}\n  try: give amax_d memory of its own",
                                               fmt::ptr(block.data() + 11), name));
    };
    CHECK_ERROR(of_block("C"), launch_with({.c = x, .amax_d = block.subspan(11, 1)}));
    CHECK_ERROR(of_block("the pre-activation"), launch_with({.pre_activation = x, .amax_d = block.subspan(11, 1)}));
    CHECK(fake::launches().empty());
    launch_with({.c = x, .amax_d = block.subspan(12, 1)});
    launch_with({.scale_d = scales.subspan(1, 1), .amax_d = amax});
    CHECK(fake::launches().size() == 2);
}

TEST_CASE_FIXTURE(Float8Runtime, "a plan for an 8-bit D serves any C, scale and largest magnitude")
{
    const GemmProblem problem{
        .m = 4, .n = 6, .k = 5, .input = ElementType::f8e4m3, .output = ElementType::f8e4m3, .has_c = true};
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), problem, Variant::simt_naive);
    CHECK(plan.explain().find("f8e4m3 -> f8e4m3") != std::string::npos);
    DeviceBuffer<f16> half(stream, 100);
    const auto launch = [&](const Epilogue& epilogue) {
        plan.launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), epilogue);
    };
    launch({.c = c.matrix(4, 6)});
    launch({.c = half.matrix(4, 6), .scale_d = scales.subspan(0, 1), .amax_d = scales.subspan(1, 1)});
    CHECK(fake::launches().size() == 2);
    // The plan keeps what it has launched: each address is a value of its own.
    const auto launched = [&](const Epilogue& epilogue) {
        launch(epilogue);
        return argument();
    };
    CHECK(launched({.c = c.matrix(4, 6), .scale_d = scales.subspan(2, 1)}).scale_d == scales.data() + 2);
    CHECK(launched({.c = c.matrix(4, 6), .scale_d = scales.subspan(3, 1)}).scale_d == scales.data() + 3);
    CHECK(launched({.c = c.matrix(4, 6), .amax_d = scales.subspan(2, 1)}).amax_d == scales.data() + 2);
    CHECK(launched({.c = c.matrix(4, 6), .amax_d = scales.subspan(3, 1)}).amax_d == scales.data() + 3);
    CHECK(launched({.c = c.matrix(4, 6)}).amax_d == nullptr);
    const GemmProblem large{
        .m = 4096, .n = 4096, .k = 4096, .input = ElementType::f8e4m3, .output = ElementType::f8e5m2};
    const auto h200 = DeviceProperties::of_compute_capability(9, 0);
    if (GemmPlan::refusal(large, h200, Variant::hopper).empty()) {
        CHECK(GemmPlan::explain(large, h200).find("runs: hopper") != std::string::npos);
    }
}

TEST_CASE("a tuned result may differ by a step of D's type")
{
    GemmProblem problem{.m = 64, .n = 64, .k = 1, .input = ElementType::bf16, .output = ElementType::f8e4m3};
    CHECK(detail::result_bound(problem, 1.0) > 0.125);
    CHECK(detail::result_bound(problem, 1.0) < 0.128);
    CHECK(detail::result_bound(problem, 0.0) > 0x1p-9);
    problem.output = ElementType::f8e5m2;
    CHECK(detail::result_bound(problem, 1.0) > 0.25);
    CHECK(detail::result_bound(problem, 1.0) < 0.253);
}
