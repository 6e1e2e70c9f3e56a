/// Choosing a variant: eligibility on both sides of every limit, and preference.

#include "gemm/variant_chooser.hpp"

#include <fmt/format.h>

#include <set>

#include "clean_runtime.hpp"
#include "gemm/simt/simt_backend.hpp"
#include "support/variants.hpp"
#include "variant_problems.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

Variant choice(const GemmProblem& problem, const DeviceProperties& device)
{
    return detail::choose_kernel(detail::resolved(problem), device, Variant::automatic, "test",
                                 std::source_location::current())
        .variant;
}

}  // namespace

TEST_CASE("each variant has a unique name and number, and its name converts back to it")
{
    std::set<std::string_view> names{"automatic"};
    int number = 0;
    for (const Variant variant : all_variants()) {
        CHECK(static_cast<int>(variant) > number);  // lowest rung first
        number = static_cast<int>(variant);
        CHECK(names.insert(to_string(variant)).second);
        CHECK(variant_from_string(to_string(variant)) == variant);
    }
    CHECK(simt_variants().size() == 5);
    CHECK(simt_variants().back() == static_cast<Variant>(5));
    CHECK(static_cast<int>(Variant::mma_sync) == 8);
    CHECK(static_cast<int>(Variant::hopper) == 16);
    CHECK(static_cast<int>(Variant::blackwell) == 32);
    CHECK(variant_from_string("automatic") == Variant::automatic);
    CHECK(to_string(Variant::automatic) == "automatic");
    CHECK_ERROR(
        "tessera: invalid_argument in variant_from_string\n  no variant is called 'fast'\n  try: one of automatic, "
        "simt_naive, simt_tiled, simt_vectorized, simt_coarsened, simt_register_blocked, mma_sync, hopper, "
        "blackwell",
        variant_from_string("fast"));
}

TEST_CASE("no variant is eligible below compute capability 7.5, and some are from 7.5 on")
{
    const GemmProblem problem = problem_of(64, 64, 64);
    DeviceProperties old = device_of(7, 5);
    old.name = "V100";
    old.compute_capability_minor = 0;
    for (const Variant variant : all_variants()) {
        CHECK(GemmPlan::refusal(problem, old, variant) ==
              "V100 has compute capability 7.0; the kernel needs 7.5 or later");
        for (const auto& [major, minor] : {std::pair{7, 5}, {8, 0}, {9, 0}, {10, 0}, {12, 1}}) {
            if (!is_simt(variant)) {
                CHECK_FALSE(GemmPlan::refusal(problem, device_of(major, minor), variant).empty());  // f32
                continue;
            }
            CHECK(GemmPlan::refusal(problem, device_of(major, minor), variant).empty());
        }
    }
    CHECK(GemmPlan::refusal(problem, old, Variant::automatic) ==
          "V100 has compute capability 7.0; the kernel needs 7.5 or later");
    CHECK_ERROR(
        "tessera: unsupported_device in test\n  no variant can run 64x64x64 (MxNxK) f32 -> f32, A row-major, B "
        "row-major, D row-major: V100 has compute capability 7.0; the kernel needs 7.5 or later\n  try: a device "
        "of compute capability 7.5 or later",
        detail::choose_kernel(detail::resolved(problem), old, Variant::automatic, "test",
                              std::source_location::current()));
}

TEST_CASE("on a Hopper GPU, mma.sync runs 16-bit products that are narrow, small or not aligned, which was measured")
{
    const DeviceProperties device = device_of(9, 0);
    GemmProblem decode = problem_of(16, 4096, 4096);
    decode.input = decode.output = ElementType::bf16;
    decode.a.row_major = false;
    if (!GemmPlan::refusal(decode, device, Variant::mma_sync).empty() ||
        !GemmPlan::refusal(decode, device, Variant::hopper).empty()) {
        return;  // not built
    }
    const auto runs = [&](const GemmProblem& problem) {
        return detail::choose_kernel(detail::resolved(problem), device, Variant::automatic, "test",
                                     std::source_location::current())
            .variant;
    };
    CHECK(runs(decode) == Variant::mma_sync);
    const std::string text = GemmPlan::explain(decode, device);
    CHECK(text.find("  runs: mma_sync as Mma") != std::string::npos);
    CHECK(text.find(
              "  passed over: hopper: eligible, but measured slower for so few rows, so short a K or such lines of an "
              "operand\n") != std::string::npos);
    CHECK(GemmPlan::explain(decode, device, Variant::hopper).find("  runs: hopper as ") != std::string::npos);

    GemmProblem transposed = problem_of(4096, 16, 4096);
    transposed.input = transposed.output = ElementType::f16;
    CHECK(runs(transposed) == Variant::mma_sync);  // B is row-major
    transposed.b.row_major = false;
    CHECK(runs(transposed) == Variant::hopper);

    const auto changed = [&](auto&& change) {
        GemmProblem problem = decode;
        change(problem);
        return runs(problem);
    };
    // Lines of A along M, from 64 bytes to 128.
    CHECK(changed([](GemmProblem& problem) { problem.m = 32; }) == Variant::mma_sync);
    CHECK(changed([](GemmProblem& problem) { problem.m = 40; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.n = 32; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.m = 64, problem.k = 896; }) == Variant::mma_sync);
    CHECK(changed([](GemmProblem& problem) { problem.m = 72, problem.k = 896; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.n = 32, problem.k = 896; }) == Variant::mma_sync);
    // A few rows of D, and a few stages.
    CHECK(changed([](GemmProblem& problem) { problem.a.row_major = true; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.a.row_major = true, problem.k = 400; }) == Variant::mma_sync);
    CHECK(changed([](GemmProblem& problem) { problem.a.row_major = true, problem.k = 400, problem.m = 24; }) ==
          Variant::hopper);
    GemmProblem columns_of_d = problem_of(4096, 16, 384);
    columns_of_d.input = columns_of_d.output = ElementType::bf16;
    columns_of_d.b.row_major = columns_of_d.d.row_major = false;
    CHECK(runs(columns_of_d) == Variant::mma_sync);
    columns_of_d.d.row_major = true;
    CHECK(runs(columns_of_d) == Variant::hopper);
    // Lines that begin at multiples of 8, 4 and 2 bytes.
    CHECK(changed([](GemmProblem& problem) { problem.b.address_alignment = 8; }) == Variant::mma_sync);
    CHECK(changed([](GemmProblem& problem) { problem.a.leading_dimension = 20; }) == Variant::mma_sync);
    CHECK(changed([](GemmProblem& problem) { problem.b.address_alignment = 8, problem.m = 72; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.a.leading_dimension = 18; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.a.leading_dimension = 18, problem.k = 128; }) ==
          Variant::mma_sync);
    CHECK(changed([](GemmProblem& problem) { problem.a.leading_dimension = 17, problem.k = 128; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.a.leading_dimension = 18, problem.n = 3000; }) ==
          Variant::mma_sync);  // 197 million products of two elements
    CHECK(changed([](GemmProblem& problem) { problem.a.leading_dimension = 17, problem.n = 3000; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.a.leading_dimension = 17, problem.k = 64; }) == Variant::mma_sync);
    CHECK(changed([](GemmProblem& problem) { problem.a.leading_dimension = 17, problem.k = 64, problem.n = 1000; }) ==
          Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.input = ElementType::tf32; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.batches = 2; }) == Variant::hopper);
}

TEST_CASE("alignment decides about eligibility on both sides of the kernel's limit")
{
    const DeviceProperties device = device_of(9, 0);
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
        const auto bytes = static_cast<std::int64_t>(size_of(type));
        for (const Variant variant : simt_variants()) {
            CAPTURE(to_string(variant));
            GemmProblem problem = problem_of(64, 64, 64);
            problem.input = type;
            const std::size_t required = GemmPlan::required_alignment(variant, type);
            const auto step = static_cast<std::int64_t>(required) / bytes;  // elements
            REQUIRE(step >= 1);
            problem.a.leading_dimension = problem.b.leading_dimension = 64 * step;
            problem.a.address_alignment = problem.b.address_alignment = required;
            problem.batches = 2;
            problem.a.batch_stride = problem.b.batch_stride = 64 * 64 * step;
            CHECK(GemmPlan::refusal(problem, device, variant).empty());
            if (required == size_of(type)) {
                continue;  // an address is at least aligned to an element
            }
            for (const auto& [name, operand] : {std::pair{'A', &GemmProblem::a}, {'B', &GemmProblem::b}}) {
                GemmProblem changed = problem;
                (changed.*operand).address_alignment = required / 2;
                CHECK(GemmPlan::refusal(changed, device, variant) ==
                      fmt::format("{}'s address is {}-byte aligned; the kernel needs {}-byte alignment", name,
                                  required / 2, required));
                changed = problem;
                (changed.*operand).leading_dimension += 1;
                CHECK(GemmPlan::refusal(changed, device, variant) ==
                      fmt::format("{}'s leading dimension is {} bytes, not a multiple of {}", name,
                                  (64 * step + 1) * bytes, required));
                changed = problem;
                (changed.*operand).batch_stride += 1;
                CHECK(GemmPlan::refusal(changed, device, variant) ==
                      fmt::format("{}'s batch stride is {} bytes, not a multiple of {}", name,
                                  (64 * 64 * step + 1) * bytes, required));
                changed.batches = 1;
                CHECK(GemmPlan::refusal(changed, device, variant).empty());  // a batch of one ignores the stride
            }
        }
    }
    CHECK(GemmPlan::required_alignment(Variant::automatic, ElementType::f32) == 4);
    CHECK(GemmPlan::required_alignment(Variant::automatic, ElementType::bf16) == 2);
    CHECK(GemmPlan::required_alignment(Variant::simt_vectorized, ElementType::f32) == 16);
}

TEST_CASE("a grid has at most 2^31 - 1 CTAs")
{
    const DeviceProperties device = device_of(9, 0);
    const kernels::SimtKernel naive = detail::simt_kernel_of(Variant::simt_naive, problem_of(1, 1, 1), device);
    constexpr std::int64_t max_ctas = 0x7FFFFFFF;
    GemmProblem problem = problem_of(max_ctas * naive.block_m, 1, 1);
    CHECK(GemmPlan::refusal(problem, device, Variant::simt_naive).empty());
    problem.m += 1;
    CHECK(GemmPlan::refusal(problem, device, Variant::simt_naive) ==
          "the problem needs 2147483648 CTAs; a grid has at most 2147483647");
    problem = problem_of(1, 1, 1);
    problem.batches = max_ctas + 1;
    CHECK(GemmPlan::refusal(problem, device, Variant::simt_naive) ==
          "the problem needs 2147483648 CTAs; a grid has at most 2147483647");
    constexpr std::int64_t huge = std::int64_t{1} << 40;
    problem = problem_of(huge, huge, 1);
    problem.batches = huge;
    CHECK(GemmPlan::refusal(problem, device, Variant::simt_naive) ==
          "the problem needs 9223372036854775807 CTAs; a grid has at most 2147483647");
    CHECK_ERROR(
        "tessera: variant_refused in test\n  simt_naive cannot run 2147483648x1x1 (MxNxK) f32 -> f32, A row-major, "
        "B row-major, D row-major, 2147483648 batches: the problem needs " +
            fmt::format("{}", (std::int64_t{1} << 31) / naive.block_m * (std::int64_t{1} << 31)) +
            " CTAs; a grid has at most 2147483647\n  try: Variant::automatic, which chooses a variant that can",
        [&](std::source_location caller) {
            problem = detail::resolved(problem_of(std::int64_t{1} << 31, 1, 1));
            problem.batches = std::int64_t{1} << 31;
            return detail::choose_kernel(problem, device, Variant::simt_naive, "test", caller).variant;
        }(std::source_location::current()));
}

TEST_CASE("automatic chooses the fastest eligible variant, whatever the alignment")
{
    for (const auto& [major, minor] : {std::pair{7, 5}, {8, 6}, {9, 0}, {10, 0}}) {
        GemmProblem problem = problem_of(100, 100, 100);
        CHECK(choice(problem, device_of(major, minor)) == Variant::simt_register_blocked);
        problem.a.leading_dimension = problem.b.leading_dimension = 101;
        problem.a.address_alignment = 4;
        CHECK(choice(problem, device_of(major, minor)) == Variant::simt_register_blocked);
    }
    CHECK(GemmPlan::refusal(problem_of(100, 100, 100), device_of(9, 0), Variant::automatic).empty());
}

TEST_CASE("a column-major D uses the kernel of the transposed product")
{
    const DeviceProperties device = device_of(9, 0);
    GemmProblem columns = problem_of(100'000, 10, 5);
    columns.d.row_major = false;
    GemmProblem rows = problem_of(10, 100'000, 5);  // B^T * A^T
    rows.a.row_major = rows.b.row_major = false;
    CHECK(detail::simt_kernel_of(Variant::simt_register_blocked, columns, device).function ==
          detail::simt_kernel_of(Variant::simt_register_blocked, rows, device).function);
}

TEST_CASE("a problem describes itself in a line")
{
    GemmProblem problem = problem_of(2, 3, 4);
    CHECK(problem.describe() == "2x3x4 (MxNxK) f32 -> f32, A row-major, B row-major, D row-major");
    problem.input = ElementType::bf16;
    problem.output = ElementType::f16;
    problem.b.row_major = false;
    problem.batches = 7;
    problem.has_c = true;
    problem.bias = BiasAxis::per_row;
    problem.activation = Activation::gelu;
    CHECK(problem.describe() ==
          "2x3x4 (MxNxK) bf16 -> f16, A row-major, B column-major, D row-major, 7 batches, with C, bias per row, gelu");
}

TEST_CASE("a misspelt variant name gets the intended name as a hint")
{
    const auto text = [](std::string_view name) {
        return std::string(test::error_of([&] { variant_from_string(name); })->what());
    };
    CHECK(text("hoper").find(
              "no variant is called 'hoper'; did you mean hopper?\n  try: one of automatic, simt_naive,") !=
          std::string::npos);
    CHECK(text("simt-tiled").find("did you mean simt_tiled?") != std::string::npos);
    CHECK(text("blackwel").find("did you mean blackwell?") != std::string::npos);
    CHECK(text("auto").find("did you mean") == std::string::npos);
    CHECK(text("fastest").find("did you mean") == std::string::npos);
    CHECK(text("").find("did you mean") == std::string::npos);
    CHECK(variant_from_string("hopper") == Variant::hopper);
}
