/// Gemm and GemmPlan with tf32 and 8-bit operands and per-tensor scales: what reaches a SIMT kernel, and what is
/// refused.

#include <fmt/format.h>

#include <cstring>

#include "clean_runtime.hpp"
#include "gemm/variant_chooser.hpp"
#include "kernels/gemm/gemm_arguments.hpp"

using namespace tessera;
using tessera::kernels::GemmArguments;
using tessera::test::CleanRuntime;

namespace {

struct TypesRuntime : CleanRuntime {
    TypesRuntime() { fake::keep_argument_bytes(sizeof(GemmArguments)); }

    Stream stream;
    DeviceBuffer<f8e4m3> e4m3{stream, 1000};
    DeviceBuffer<f8e5m2> e5m2{stream, 1000};
    DeviceBuffer<float> a{stream, 1000};
    DeviceBuffer<float> b{stream, 1000};
    DeviceBuffer<float> d{stream, 1000};
    DeviceBuffer<float> scales{stream, 10};

    /// D (4x6) = A (4x5) * B (5x6) with this epilogue.
    void launch_with(const Epilogue& epilogue, std::source_location caller = std::source_location::current())
    {
        Gemm::launch(stream, e4m3.matrix(4, 5), e5m2.matrix(5, 6), d.matrix(4, 6), epilogue, Variant::simt_naive,
                     caller);
    }

    /// The kernel parameter of the latest launch.
    static GemmArguments argument()
    {
        GemmArguments arguments;
        const auto launches = fake::launches();
        REQUIRE_FALSE(launches.empty());
        std::memcpy(&arguments, launches.back().argument.data(), sizeof arguments);
        return arguments;
    }
};

GemmProblem problem_of(InputTypes input)
{
    GemmProblem problem{.m = 4, .n = 6, .k = 5};
    problem.input = input;
    return problem;
}

constexpr InputTypes mixed{ElementType::f8e4m3, ElementType::f8e5m2};

}  // namespace

TEST_CASE_FIXTURE(TypesRuntime, "the kernel gets both 8-bit types, exchanged with the operands for a column-major D")
{
    launch_with({});
    CHECK(argument().a_type == ElementType::f8e4m3);
    CHECK(argument().b_type == ElementType::f8e5m2);
    CHECK(argument().a.data == e4m3.data());
    Gemm::launch(stream, e4m3.matrix(4, 5), e5m2.matrix(5, 6), d.matrix(4, 6, ColumnMajor{}), {}, Variant::simt_naive);
    CHECK(argument().a_type == ElementType::f8e5m2);
    CHECK(argument().b_type == ElementType::f8e4m3);
    CHECK(argument().a.data == e5m2.data());
}

TEST_CASE_FIXTURE(TypesRuntime, "the kernel gets A's and B's own scales, whatever the order of D")
{
    const Epilogue epilogue{.alpha = 3.0F, .scale_a = scales.subspan(2, 1), .scale_b = scales.subspan(5, 1)};
    launch_with(epilogue);
    CHECK(argument().scale_a == scales.data() + 2);
    CHECK(argument().scale_b == scales.data() + 5);
    CHECK(argument().alpha == 3.0F);
    Gemm::launch(stream, e4m3.matrix(4, 5), e5m2.matrix(5, 6), d.matrix(4, 6, ColumnMajor{}), epilogue,
                 Variant::simt_naive);
    CHECK(argument().scale_a == scales.data() + 2);
    CHECK(argument().scale_b == scales.data() + 5);
    launch_with({.scale_b = scales.subspan(0, 1)});
    CHECK(argument().scale_a == nullptr);
    CHECK(argument().scale_b == scales.data());
    launch_with({.scale_a = scales.subspan(1, 0)});  // an address, but no element
    CHECK(argument().scale_a == nullptr);
}

TEST_CASE_FIXTURE(TypesRuntime, "scales of rows and columns reach the kernel, and change sides with a column-major D")
{
    const Epilogue epilogue{.scale_a = scales.subspan(0, 4), .scale_b = scales.subspan(4, 6)};
    launch_with(epilogue);
    CHECK(argument().row_scales == scales.data());
    CHECK(argument().column_scales == scales.data() + 4);
    CHECK(argument().scale_a == nullptr);
    CHECK(argument().scale_b == nullptr);
    Gemm::launch(stream, e4m3.matrix(4, 5), e5m2.matrix(5, 6), d.matrix(4, 6, ColumnMajor{}), epilogue,
                 Variant::simt_naive);
    CHECK(argument().row_scales == scales.data() + 4);
    CHECK(argument().column_scales == scales.data());
    launch_with({.alpha = 0.0F, .scale_a = scales.subspan(0, 4)});
    CHECK(argument().row_scales == nullptr);
    // One row's scale is that of the whole A.
    Gemm::launch(stream, e4m3.matrix(1, 5), e5m2.matrix(5, 6), d.matrix(1, 6),
                 {.scale_a = scales.subspan(0, 1), .scale_b = scales.subspan(4, 6)}, Variant::simt_naive);
    CHECK(argument().scale_a == scales.data());
    CHECK(argument().row_scales == nullptr);
    CHECK(argument().column_scales == scales.data() + 4);

    GemmProblem problem{.m = 4, .n = 6, .k = 5, .input = ElementType::f8e4m3};
    CHECK_ERROR(
        "tessera: shape_mismatch in GemmPlan::launch\n  A has a scale for each row, but the plan was prepared "
        "without: set problem.row_scales\n  try: prepare a plan for these operands, or call Gemm::launch",
        GemmPlan::prepare(Device(fake::h200), problem)
            .launch(stream, e4m3.matrix(4, 5), e4m3.matrix(5, 6), d.matrix(4, 6), {.scale_a = scales.subspan(0, 4)}));
    problem.row_scales = true;
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), problem);
    plan.launch(stream, e4m3.matrix(4, 5), e4m3.matrix(5, 6), d.matrix(4, 6), {.scale_a = scales.subspan(0, 4)});
    CHECK(plan.problem().describe().ends_with("scales per row"));
}

TEST_CASE_FIXTURE(TypesRuntime, "with alpha = 0 neither the product nor a scale is read")
{
    launch_with({.alpha = 0.0F, .scale_a = scales.subspan(0, 1), .scale_b = scales.subspan(1, 1)});
    CHECK(argument().k == 0);
    CHECK(argument().scale_a == nullptr);
    CHECK(argument().scale_b == nullptr);
}

TEST_CASE_FIXTURE(TypesRuntime,
                  "a scale is one float, or one per row of A or column of B, on the stream's device and outside of D")
{
    CHECK_ERROR(
        "tessera: shape_mismatch in Gemm::launch\n  scale_a has 10 elements and A is 4x5: it needs 1, or 4 for "
        "one per row\n  try: a span of 1 or of 4 elements, such as scales.span().subspan(i, 1)",
        launch_with({.scale_a = scales.span()}));
    CHECK_ERROR(
        "tessera: shape_mismatch in Gemm::launch\n  scale_b has 2 elements and B is 5x6: it needs 1, or 6 for "
        "one per column\n  try: a span of 1 or of 6 elements, such as scales.span().subspan(i, 1)",
        launch_with({.scale_b = scales.subspan(0, 2)}));
    const Stream there{Device(fake::t4)};
    DeviceBuffer<float> far(there, 1);
    const auto elsewhere = [](const std::string& name) {
        return "tessera: device_mismatch in Gemm::launch\n  the stream belongs to device 0, but " + name +
               " belongs to device 1\n  try: use a stream and memory of one device, or copy the data to device 0 first";
    };
    CHECK_ERROR(elsewhere("scale_a"), launch_with({.scale_a = far.span()}));
    CHECK_ERROR(elsewhere("scale_b"), launch_with({.scale_b = far.span()}));
    const auto aliases = [&](const std::string& name) {
        return fmt::format(
            "tessera: aliasing in Gemm::launch\n  D at {} overlaps {}, which the kernel reads while it writes D\n  "
            "try: give D memory of its own",
            fmt::ptr(d.data()), name);
    };
    CHECK_ERROR(aliases("scale_a"), launch_with({.scale_a = d.subspan(23, 1)}));
    CHECK_ERROR(aliases("scale_b"), launch_with({.scale_b = d.subspan(0, 1)}));
    CHECK(fake::launches().empty());
    launch_with({.scale_a = d.subspan(24, 1)});  // outside of D
    CHECK(fake::launches().size() == 1);
}

TEST_CASE_FIXTURE(TypesRuntime, "f32 memory can be viewed as tf32 by name, and then runs on the f32 SIMT kernels")
{
    const auto view = as_tf32(a.matrix(4, 5, 8));
    static_assert(std::is_same_v<decltype(view), const MatrixView<tf32, RowMajor>>);
    CHECK(static_cast<const void*>(view.data()) == a.data());
    CHECK(view.rows() == 4);
    CHECK(view.columns() == 5);
    CHECK(view.leading_dimension() == 8);
    CHECK(view.device() == a.device());
    const auto batch = as_tf32(std::as_const(a).span().matrices(3, 40, 4, 5, 8, ColumnMajor{}));
    static_assert(std::is_same_v<decltype(batch), const BatchView<const tf32, ColumnMajor>>);
    CHECK(batch.count() == 3);
    CHECK(batch.stride() == 40);
    constexpr Variant variant = Variant::simt_register_blocked;
    Gemm::launch(stream, view, as_tf32(b.matrix(5, 6)), d.matrix(4, 6), {}, variant);
    const void* function = fake::launches().back().function;
    Gemm::launch(stream, a.matrix(4, 5, 8), b.matrix(5, 6), d.matrix(4, 6), {}, variant);
    CHECK(fake::launches().back().function == function);
}

TEST_CASE("SIMT rungs without an 8-bit kernel refuse with that reason; the others run")
{
    const DeviceProperties t4 = DeviceProperties::of_compute_capability(7, 5);
    for (const InputTypes input : {InputTypes(ElementType::f8e4m3), InputTypes(ElementType::f8e5m2), mixed}) {
        const std::string name = input == mixed ? "f8e4m3 x f8e5m2" : std::string(to_string(input.a));
        for (const Variant variant : {Variant::simt_tiled, Variant::simt_vectorized, Variant::simt_coarsened}) {
            CHECK(GemmPlan::refusal(problem_of(input), t4, variant) ==
                  "the kernel is not compiled for inputs of " + name);
        }
        for (const Variant variant : {Variant::simt_naive, Variant::simt_register_blocked}) {
            CHECK(GemmPlan::refusal(problem_of(input), t4, variant).empty());
            CHECK(GemmPlan::required_alignment(variant, input) == 1);
        }
        CHECK(GemmPlan::explain(problem_of(input), t4)
                  .find("simt_tiled: not eligible: the kernel is not compiled for inputs of " + name) !=
              std::string::npos);
    }
    for (const Variant variant : {Variant::simt_naive, Variant::simt_tiled, Variant::simt_vectorized,
                                  Variant::simt_coarsened, Variant::simt_register_blocked}) {
        GemmProblem problem = problem_of(ElementType::tf32);
        problem.a.leading_dimension = problem.b.leading_dimension = 8;
        CHECK(GemmPlan::refusal(problem, t4, variant).empty());
        CHECK(GemmPlan::refusal(problem_of({ElementType::f16, ElementType::bf16}), t4, variant) ==
              "the kernel is not compiled for inputs of f16 x bf16");
    }
    GemmProblem problem = problem_of(ElementType::f16);
    problem.output = ElementType::tf32;
    CHECK(GemmPlan::refusal(problem, t4, Variant::simt_naive) ==
          "a kernel writes f32, f16, bf16, f8e4m3 or f8e5m2, not tf32");
}

TEST_CASE("impossible types get no plan")
{
    fake::reset();
    const auto prepare = [](const GemmProblem& problem, std::source_location caller = std::source_location::current()) {
        return GemmPlan::prepare(Device(fake::t4, caller), problem, Variant::automatic, caller);
    };
    CHECK_ERROR(
        "tessera: invalid_argument in GemmPlan::prepare\n  A has elements of tf32 and B of f32\n  try: equal types; "
        "only f8e4m3 and f8e5m2 can be mixed",
        prepare(problem_of({ElementType::tf32, ElementType::f32})));
    GemmProblem problem = problem_of(mixed);
    CHECK(prepare(problem).variant() == Variant::simt_register_blocked);
    problem.output = ElementType::tf32;
    CHECK_ERROR(
        "tessera: invalid_argument in GemmPlan::prepare\n  D cannot have elements of tf32\n  try: f32, f16, bf16, "
        "f8e4m3 or f8e5m2",
        prepare(problem));
}

TEST_CASE_FIXTURE(TypesRuntime, "a plan serves only the accumulation it was made for, if there is a choice")
{
    const Device device(fake::h200);
    const auto plan = GemmPlan::prepare(device, problem_of(mixed), Variant::simt_naive);
    plan.launch(stream, e4m3.matrix(4, 5), e5m2.matrix(5, 6), d.matrix(4, 6), {.scale_a = scales.subspan(0, 1)});
    CHECK(fake::launches().size() == 1);
    CHECK_THROWS_AS(plan.launch(stream, e4m3.matrix(4, 5), e5m2.matrix(5, 6), d.matrix(4, 6),
                                {.fp8_accumulation = Fp8Accumulation::fast}),
                    Error);
    CHECK_THROWS_AS(plan.launch(stream, e4m3.matrix(4, 5), e4m3.matrix(5, 6), d.matrix(4, 6)), Error);
    const auto plain = GemmPlan::prepare(device, problem_of(ElementType::f32), Variant::simt_naive);
    plain.launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), {.fp8_accumulation = Fp8Accumulation::fast});
    CHECK(fake::launches().size() == 2);
}

TEST_CASE_FIXTURE(TypesRuntime, "a plan of f16 serves only launches that allow sums in f16 as it does")
{
    const Device device(fake::h200);
    DeviceBuffer<f16> half(stream, 100);
    DeviceBuffer<bf16> brain(stream, 100);
    const Epilogue in_f16{.f16_accumulation = F16Accumulation::in_f16};
    GemmProblem problem = problem_of(ElementType::f16);
    const auto plan = GemmPlan::prepare(device, problem, Variant::simt_naive);
    plan.launch(stream, half.matrix(4, 5), half.matrix(5, 6), d.matrix(4, 6));
    CHECK_THROWS_WITH_AS(
        plan.launch(stream, half.matrix(4, 5), half.matrix(5, 6), d.matrix(4, 6), in_f16),
        doctest::Contains("the accumulation of f16 products is f16, but the plan was prepared for f32"), Error);
    problem.f16_accumulation = F16Accumulation::in_f16;
    const auto allowing = GemmPlan::prepare(device, problem, Variant::simt_naive);
    allowing.launch(stream, half.matrix(4, 5), half.matrix(5, 6), d.matrix(4, 6), in_f16);
    CHECK_THROWS_AS(allowing.launch(stream, half.matrix(4, 5), half.matrix(5, 6), d.matrix(4, 6)), Error);
    CHECK(fake::launches().size() == 2);
    // Other types ignore it.
    const auto other = GemmPlan::prepare(device, problem_of(ElementType::bf16), Variant::simt_naive);
    other.launch(stream, brain.matrix(4, 5), brain.matrix(5, 6), d.matrix(4, 6), in_f16);
    CHECK(fake::launches().size() == 3);
}

TEST_CASE_FIXTURE(TypesRuntime,
                  "Gemm::launch runs another kernel if sums may be in f16, also after launches that it has seen")
{
    DeviceBuffer<f16> half(stream, 128 * 128);
    DeviceBuffer<float> sums(stream, 128 * 128);
    const auto function_with = [&](F16Accumulation accumulation) {
        fake::clear_calls();
        Gemm::launch(stream, half.matrix(128, 128), half.matrix(128, 128), sums.matrix(128, 128),
                     {.f16_accumulation = accumulation}, Variant::mma_sync);
        return fake::launches().at(0).function;
    };
    GemmProblem problem{.m = 128, .n = 128, .k = 128, .input = ElementType::f16, .output = ElementType::f32};
    problem.f16_accumulation = F16Accumulation::in_f16;
    if (GemmPlan::explain(problem, Device(fake::h200).properties(), Variant::mma_sync).find("sums in f16 of") ==
        std::string::npos) {
        return;  // not built
    }
    const void* const in_f32 = function_with(F16Accumulation::in_f32);
    const void* const in_f16 = function_with(F16Accumulation::in_f16);
    CHECK(in_f32 != in_f16);
    for (int i = 0; i < 3; ++i) {
        CHECK(function_with(F16Accumulation::in_f32) == in_f32);
        CHECK(function_with(F16Accumulation::in_f16) == in_f16);
    }
}

TEST_CASE("a problem describes its input types and its accumulation")
{
    GemmProblem problem = problem_of(mixed);
    CHECK(problem.describe() == "4x6x5 (MxNxK) f8e4m3 x f8e5m2 -> f32, A row-major, B row-major, D row-major");
    problem.fp8_accumulation = Fp8Accumulation::fast;
    CHECK(problem.describe().ends_with(", fast accumulation"));
    problem.input = ElementType::tf32;
    CHECK(problem.describe() == "4x6x5 (MxNxK) tf32 -> f32, A row-major, B row-major, D row-major");
    problem.f16_accumulation = F16Accumulation::in_f16;
    CHECK(problem.describe() == "4x6x5 (MxNxK) tf32 -> f32, A row-major, B row-major, D row-major");
    problem.input = ElementType::f16;
    CHECK(problem.describe().ends_with(", sums in f16 allowed"));
}
