/// Choosing a variant: eligibility on both sides of every limit, preference, and the texts of explain().

#include "gemm/variant_chooser.hpp"
#include "gemm/simt/simt_backend.hpp"

#include <fmt/format.h>

#include <array>
#include <set>
#include <vector>

#include "clean_runtime.hpp"
#include "gemm/blackwell/blackwell_chooser.hpp"
#include "gemm/hopper/hopper_chooser.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/hopper/hopper_repack.hpp"
#include "support/variants.hpp"

using namespace tessera;

namespace {

DeviceProperties device_of(int major, int minor) { return DeviceProperties::of_compute_capability(major, minor); }

GemmProblem problem_of(std::int64_t m, std::int64_t n, std::int64_t k)
{
    GemmProblem problem;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    return problem;
}

/// The line of explain() that names the kernel.
std::string runs(Variant variant, const GemmProblem& problem, const DeviceProperties& device)
{
    const kernels::SimtKernel kernel = detail::simt_kernel_of(variant, detail::resolved(problem), device);
    return fmt::format("  runs: {} with a {}x{} tile per CTA of {} threads\n", to_string(variant), kernel.block_m,
                       kernel.block_n, kernel.threads);
}

/// The line of explain() for the Blackwell kernels.
std::string blackwell_passed_over(const std::string& reason)
{
    return "  passed over: blackwell: not eligible: " + reason + "\n";
}

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

TEST_CASE("on a Hopper GPU, mma.sync runs 16-bit products whose short side is contiguous in memory, which was measured")
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
    CHECK(
        text.find(
            "  passed over: hopper: eligible, but measured slower where an operand's lines have 64 bytes or less\n") !=
        std::string::npos);
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
    CHECK(changed([](GemmProblem& problem) { problem.m = 32; }) == Variant::mma_sync);
    CHECK(changed([](GemmProblem& problem) { problem.m = 40; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.n = 32; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.a.row_major = true; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.a.leading_dimension = 17; }) == Variant::hopper);
    CHECK(changed([](GemmProblem& problem) { problem.b.address_alignment = 8; }) == Variant::hopper);
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

TEST_CASE("explain says what runs, why, and why each other variant does not, also for a device that is absent")
{
    const DeviceProperties b200 = device_of(10, 0);
    GemmProblem problem = problem_of(1000, 500, 250);
    CHECK(GemmPlan::explain(problem, b200) ==
          "1000x500x250 (MxNxK) f32 -> f32, A row-major, B row-major, D row-major\n"
          "  on B200 (compute capability 10.0, 148 SMs)\n" +
              runs(Variant::simt_register_blocked, problem, b200) +
              "  why: the fastest SIMT variant at every measured size, and takes any alignment\n"
              "  tensor cores: not used; they would round f32 to tf32; to allow that, pass views of tf32\n"
              "  passed over: hopper: not eligible: B200 has compute capability 10.0; the kernel is for 9.0 only\n" +
              "  passed over: blackwell, mma_sync: not eligible: tensor cores would round f32 operands to tf32; to "
              "allow that, pass views of tf32\n"
              "  passed over: simt_coarsened, simt_vectorized: not eligible: A's leading dimension is 1000 bytes, not "
              "a multiple of 16\n"
              "  passed over: simt_tiled: eligible, but reads shared memory element by element\n"
              "  passed over: simt_naive: eligible, but reads global memory for every product\n");

    const DeviceProperties t4 = device_of(7, 5);
    problem = problem_of(64, 64, 64);
    CHECK(GemmPlan::explain(problem, t4, Variant::simt_vectorized) ==
          "64x64x64 (MxNxK) f32 -> f32, A row-major, B row-major, D row-major\n"
          "  on T4 (compute capability 7.5, 40 SMs)\n" +
              runs(Variant::simt_vectorized, problem, t4) +
              "  why: it was requested\n"
              "  tensor cores: not used; those of T4 do not multiply f32\n"
              "  passed over: hopper: not eligible: T4 has compute capability 7.5; the kernel is for 9.0 only\n" +
              blackwell_passed_over("T4 has compute capability 7.5; the kernel is for 10.0, 10.3 and 11.0 only") +
              "  passed over: mma_sync: not eligible: T4 has compute capability 7.5; the kernel multiplies f16 there, "
              "bf16 and "
              "tf32 from 8.0 on\n" +
              "  passed over: simt_register_blocked, simt_coarsened, simt_tiled, simt_naive: eligible, but not "
              "requested\n");

    problem.a.address_alignment = 4;
    const std::string misaligned = "not eligible: A's address is 4-byte aligned; the kernel needs 16-byte alignment\n";
    CHECK(GemmPlan::explain(problem, t4, Variant::simt_vectorized) ==
          "64x64x64 (MxNxK) f32 -> f32, A row-major, B row-major, D row-major\n"
          "  on T4 (compute capability 7.5, 40 SMs)\n"
          "  runs: nothing; simt_vectorized cannot run it\n"
          "  passed over: hopper: not eligible: T4 has compute capability 7.5; the kernel is for 9.0 only\n" +
              blackwell_passed_over("T4 has compute capability 7.5; the kernel is for 10.0, 10.3 and 11.0 only") +
              "  passed over: mma_sync: not eligible: T4 has compute capability 7.5; the kernel multiplies f16 there, "
              "bf16 and "
              "tf32 from 8.0 on\n" +
              "  passed over: simt_register_blocked: eligible, but not requested\n"
              "  passed over: simt_coarsened, simt_vectorized: " +
              misaligned + "  passed over: simt_tiled, simt_naive: eligible, but not requested\n");

    const std::string empty = GemmPlan::explain(problem_of(0, 64, 64), t4);
    CHECK(empty.find("  runs: nothing, because D is empty\n") != std::string::npos);
}

TEST_CASE("mma_sync sums in f16 if that is allowed, but for few rows, odd alignments and other types; explain says so")
{
    for (const auto& [major, minor] : {std::pair{7, 5}, {8, 0}, {8, 6}, {8, 9}, {9, 0}, {12, 0}, {12, 1}}) {
        const DeviceProperties device = device_of(major, minor);
        GemmProblem problem = problem_of(4096, 4096, 4096);
        problem.input = problem.output = ElementType::f16;
        if (!GemmPlan::refusal(problem, device, Variant::mma_sync).empty()) {
            continue;  // not built
        }
        CAPTURE(device.name);
        const auto says = [&](const GemmProblem& given, std::string_view what) {
            return GemmPlan::explain(given, device, Variant::mma_sync).find(what) != std::string::npos;
        };
        CHECK_FALSE(says(problem, "sums in f"));
        problem.f16_accumulation = F16Accumulation::in_f16;
        CHECK(says(problem, ", sums in f16 allowed\n"));
        if (!says(problem, ", sums in f16 of 64 products\n")) {
            CHECK(says(problem, ", sums in f32\n"));
            continue;  // no code for them
        }
        CHECK(says(problem, "runs: mma_sync as Mma"));
        const auto changed = [&](const auto& change) {
            GemmProblem other = problem;
            change(other);
            return other;
        };
        const auto gated = changed([](GemmProblem& p) { p.gating = Gating::side_by_side; });
        CHECK(says(gated, ", sums in f16 of 64 products\n"));
        const auto columns = changed([](GemmProblem& p) { p.a.row_major = p.d.row_major = false; });
        CHECK(says(columns, ", sums in f16 of 64 products\n"));
        const auto decode = changed([](GemmProblem& p) { p.m = 16; });
        CHECK(says(decode, "Mma16x64"));
        CHECK(says(decode, ", sums in f32\n"));
        const auto odd = changed([](GemmProblem& p) { p.a.leading_dimension = 4097; });
        CHECK(says(odd, "Mma64x64Any"));
        CHECK(says(odd, ", sums in f32\n"));
        const auto of_bf16 = changed([](GemmProblem& p) { p.input = ElementType::bf16; });
        CHECK_FALSE(says(of_bf16, "sums in f"));
    }
}

TEST_CASE("explain says so if tensor cores are not used")
{
    GemmProblem problem = problem_of(4096, 4096, 4096);
    problem.input = ElementType::bf16;
    CHECK(GemmPlan::explain(problem, device_of(7, 5))
              .find("  tensor cores: not used; no variant that uses them is eligible (see below)\n") !=
          std::string::npos);
    for (const auto& [major, minor] : {std::pair{8, 0}, {8, 6}, {8, 9}, {12, 0}}) {
        const DeviceProperties device = device_of(major, minor);
        if (GemmPlan::refusal(problem, device, Variant::mma_sync).empty()) {
            const std::string text = GemmPlan::explain(problem, device);
            CHECK(text.find("tensor cores: not used") == std::string::npos);
            CHECK(text.find("  runs: mma_sync as Mma") != std::string::npos);
        }
    }
    // Thor has them, but only a build for it has the code.
    const DeviceProperties thor = device_of(11, 0);
    if (const std::string refusal = GemmPlan::refusal(problem, thor, Variant::blackwell); !refusal.empty()) {
        CHECK(refusal.find("this build of the library has no code for compute capability 11.0") != std::string::npos);
    }
    const DeviceProperties b200 = device_of(10, 0);
    CHECK(GemmPlan::explain(problem, b200, Variant::simt_tiled)
              .find("  tensor cores: not used; simt_tiled, which runs on CUDA cores, was requested\n") !=
          std::string::npos);
    if (GemmPlan::refusal(problem, b200, Variant::blackwell).empty()) {
        CHECK(GemmPlan::explain(problem, b200).find("tensor cores: not used") == std::string::npos);
    }
}

TEST_CASE_FIXTURE(test::CleanRuntime, "explain states a plan's workspace, and none if there is none")
{
    const Device device(fake::h200);
    GemmProblem problem = problem_of(64, 64, 8192);
    problem.input = ElementType::bf16;
    if (!GemmPlan::refusal(problem, device.properties(), Variant::hopper).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    bool some = false;
    bool none = false;
    for (const std::int64_t k : {64, 8192}) {
        problem.k = k;
        const GemmPlan plan = GemmPlan::prepare(device, problem);
        const bool told = plan.explain().find(fmt::format(
                              "  workspace: {} bytes; a stream's first such launch allocates it unless you pass one\n",
                              plan.workspace_bytes())) != std::string::npos;
        CHECK(told == (plan.workspace_bytes() > 0));
        CHECK((plan.explain().find("workspace") != std::string::npos) == told);
        (told ? some : none) = true;
    }
    CHECK(some);
    CHECK(none);
}

TEST_CASE("explain gives only reasons against variants that were passed over")
{
    const DeviceProperties b200 = device_of(10, 0);
    GemmProblem problem = problem_of(512, 4096, 1024);
    problem.input = ElementType::bf16;
    if (!GemmPlan::refusal(problem, b200, Variant::blackwell).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 10.0");
        return;
    }
    for (const std::int64_t m : {64, 128, 256, 512, 1024, 4096}) {
        problem.m = m;
        const std::string text = GemmPlan::explain(problem, b200);
        CAPTURE(text);
        CHECK(text.find("  runs: blackwell as ") != std::string::npos);
        CHECK(text.find("  why: the tensor cores of compute capability 10.0, 10.3 and 11.0, fed by TMA\n") !=
              std::string::npos);
        CHECK(text.find("simt_naive: eligible, but does not use tensor cores\n") != std::string::npos);
    }
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

TEST_CASE_FIXTURE(test::CleanRuntime, "a plan's explanation names its problem, its device and the requested variant")
{
    const GemmProblem problem = problem_of(64, 64, 64);
    const Device device(fake::b200);
    const GemmPlan plan = GemmPlan::prepare(device, problem);
    CHECK(plan.variant() == Variant::simt_register_blocked);
    CHECK(plan.explain() == GemmPlan::explain(problem, device.properties()));
    const GemmPlan asked = GemmPlan::prepare(device, problem, Variant::simt_tiled);
    CHECK(asked.explain() == GemmPlan::explain(problem, device.properties(), Variant::simt_tiled));
}

TEST_CASE("on 9.0, exactly the operands that TMA or wgmma cannot use are copied or repacked")
{
    const DeviceProperties device = device_of(9, 0);
    for (const ElementType type : {ElementType::bf16, ElementType::tf32, ElementType::f8e4m3}) {
        const auto table = kernels::hopper_kernels(size_of(type));
        if (table.empty()) {
            MESSAGE("skipped: this build has no code for compute capability 9.0");
            return;
        }
        GemmProblem aligned = problem_of(48, 40, 64);
        aligned.input = type;
        aligned.b.row_major = false;
        const auto copies = [&](GemmProblem problem) {
            problem = detail::resolved(problem);
            CHECK(GemmPlan::refusal(problem, device, Variant::hopper).empty());
            const detail::KernelChoice chosen = detail::choose_hopper(problem, device);
            CHECK(detail::is_hopper_choice_valid(problem, device, chosen));
            const bool by_threads = detail::repacked_bytes(problem) > 0;
            bool some_copy = false;
            bool some_load = false;
            for (const detail::KernelChoice& candidate : detail::hopper_candidates(problem, device)) {
                const bool candidate_copies = table[candidate.config].copies;
                (candidate_copies ? some_copy : some_load) = true;
                CHECK(detail::hopper_workspace(problem, candidate).copy_bytes ==
                      (candidate_copies ? 0 : detail::repacked_bytes(problem)));
            }
            CHECK(some_copy == by_threads);
            CHECK(some_load);
            CHECK(table[chosen.config].copies == by_threads);  // a product this small is not repacked
            return by_threads;
        };
        CHECK_FALSE(copies(aligned));
        for (const auto operand : {&GemmProblem::a, &GemmProblem::b}) {
            GemmProblem problem = aligned;
            (problem.*operand).address_alignment = 8;
            CHECK(copies(problem));
            problem = aligned;
            (problem.*operand).leading_dimension = 65;
            CHECK(copies(problem));
            (problem.*operand).leading_dimension = 80;
            CHECK_FALSE(copies(problem));
            problem.batches = 2;
            problem.a.batch_stride = problem.b.batch_stride = 1 << 20;
            CHECK_FALSE(copies(problem));
            (problem.*operand).batch_stride += 1;
            CHECK(copies(problem));
            problem = aligned;
            (problem.*operand).row_major = !(problem.*operand).row_major;
            CHECK(copies(problem) == (size_of(type) != 2));
        }
    }
}

TEST_CASE("an empty D has no Hopper configuration, however long K is")
{
    const DeviceProperties device = device_of(9, 0);
    for (const std::int64_t k : {0, 64, 16384}) {
        for (GemmProblem problem : {problem_of(0, 64, k), problem_of(64, 0, k), problem_of(0, 0, k)}) {
            problem.input = ElementType::bf16;
            problem = detail::resolved(problem);
            CAPTURE(problem.describe());
            CHECK(detail::hopper_candidates(problem, device).empty());
            CHECK_FALSE(detail::is_hopper_choice_valid(
                problem, device, {.variant = Variant::hopper, .cluster_k = 2, .stream_k = true, .clusters = 2}));
            CHECK(!GemmPlan::explain(problem, device).empty());
            CHECK(!GemmPlan::explain(problem, device_of(10, 0)).empty());
        }
    }
}

TEST_CASE("on 9.0, repacking and its workspace follow from the product's size")
{
    const DeviceProperties device = device_of(9, 0);
    const auto table = kernels::hopper_kernels(2);
    if (table.empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    const auto odd = [](std::int64_t size, ElementType type) {
        GemmProblem problem = problem_of(size, size, size);
        problem.input = type;
        problem.b.row_major = false;
        problem.a.leading_dimension = problem.b.leading_dimension = size + 1;
        return detail::resolved(problem);
    };
    const auto copies = [&](const GemmProblem& problem) {
        return kernels::hopper_kernels(size_of(problem.input))[detail::choose_hopper(problem, device).config].copies;
    };
    const auto described = [&](const GemmProblem& problem) {
        return detail::describe_hopper(problem, detail::choose_hopper(problem, device));
    };
    for (const ElementType type : {ElementType::bf16, ElementType::tf32, ElementType::f8e4m3}) {
        CHECK(copies(odd(32, type)));
        CHECK_FALSE(copies(odd(4096, type)));
    }

    // Lines of the copies are multiples of 128 bytes.
    GemmProblem large = odd(4096, ElementType::bf16);
    CHECK(detail::repacked_bytes(large) == 2 * 4096 * 8192);
    CHECK(described(large).find("A and B repacked first") != std::string::npos);
    CHECK(detail::hopper_workspace(large, detail::choose_hopper(large, device)).copy_bytes == 2 * 4096 * 8192);
    large.k = 4000;
    CHECK(detail::repacked_bytes(large) == 2 * 4096 * 8064);
    large.a.row_major = false;  // 16-bit operands keep their order
    CHECK(detail::repacked_bytes(large) == 4000 * 8192 + 4096 * 8064);

    // Only the operand that needs it, under the user's name for it. All its matrices are copied, or one if it is
    // shared.
    for (const bool d_row_major : {true, false}) {
        GemmProblem one = odd(4096, ElementType::bf16);
        one.d.row_major = d_row_major;
        one.a.leading_dimension = 4096;
        CHECK(described(one).find(", B repacked first") != std::string::npos);
        one.batches = 5;
        one.a.batch_stride = one.b.batch_stride = 4096 * 4097;
        CHECK(detail::repacked_bytes(one) == 5 * 4096 * 8192);
        one.b.batch_stride = 0;
        CHECK(detail::repacked_bytes(one) == 4096 * 8192);
    }
    GemmProblem transposed = odd(4096, ElementType::f8e4m3);
    transposed.a.leading_dimension = transposed.b.leading_dimension = 4096;
    CHECK(detail::repacked_bytes(transposed) == 0);
    transposed.m = 1000;
    transposed.a.row_major = false;
    CHECK(detail::repacked_bytes(transposed) == 1000 * 4096);
    CHECK(described(transposed).find(", A repacked first") != std::string::npos);

    // The copies may use only a fraction of the device's memory.
    GemmProblem huge = odd(4096, ElementType::bf16);
    DeviceProperties smaller = device;
    smaller.memory_bytes = detail::repacked_bytes(huge) * detail::repacking_memory_share;
    CHECK_FALSE(table[detail::choose_hopper(huge, smaller).config].copies);
    --smaller.memory_bytes;
    const detail::KernelChoice within = detail::choose_hopper(huge, smaller);
    CHECK(table[within.config].copies);
    CHECK(detail::is_hopper_choice_valid(huge, smaller, within));
    CHECK_FALSE(detail::is_hopper_choice_valid(huge, smaller, detail::choose_hopper(huge, device)));
    huge.m = huge.n = huge.k = huge.batches = 0x7FFFFF00;  // more bytes than can be counted
    CHECK_FALSE(detail::may_repack(huge, device));
}

TEST_CASE("on 9.0, a product that streams one operand has work for nearly all SMs")
{
    const DeviceProperties h200 = device_of(9, 0);
    const auto table = kernels::hopper_kernels(size_of(ElementType::bf16));
    if (table.empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    // Each ran on 72 to 112 SMs while the model let any number of SMs read at the full rate of memory.
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
             {8, 18432, 2304}, {8, 5120, 5120}, {16, 28672, 4096}, {32, 24576, 1536}, {64, 10240, 5120}}) {
        CAPTURE(fmt::format("{}x{}x{}", m, n, k));
        GemmProblem problem = problem_of(m, n, k);
        problem.input = problem.output = ElementType::bf16;
        problem.b.row_major = false;
        const detail::KernelChoice chosen = detail::choose_hopper(detail::resolved(problem), h200);
        const int ctas = chosen.clusters * chosen.cluster_m * chosen.cluster_n * chosen.cluster_k;
        CHECK(ctas / table[chosen.config].ctas >= 120);
    }
}

TEST_CASE("on 9.0, stream-K divides only what L2 holds, and a choice is remembered for its own L2")
{
    DeviceProperties h200 = device_of(9, 0);
    if (kernels::hopper_kernels(size_of(ElementType::bf16)).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    const auto uses_stream_k = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
        GemmProblem problem = problem_of(m, n, k);
        problem.input = problem.output = ElementType::bf16;
        problem.b.row_major = false;
        return detail::choose_hopper(detail::resolved(problem), h200).stream_k;
    };
    const std::size_t own = h200.l2_cache_bytes;
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{2048, 13312, 16384}, {8192, 3584, 18944}}) {
        CAPTURE(fmt::format("{}x{}x{}", m, n, k));
        CHECK_FALSE(uses_stream_k(m, n, k));  // twice as slow: each cluster reads its operands from memory
        h200.l2_cache_bytes = std::size_t{1} << 40U;
        CHECK(uses_stream_k(m, n, k));
        h200.l2_cache_bytes = own;
        CHECK_FALSE(uses_stream_k(m, n, k));
    }
    CHECK(uses_stream_k(256, 256, 65536));  // one cluster's tile is all of D: nothing is read twice
}

TEST_CASE("on 10.0, the chosen configuration keeps the SMs busy")
{
    const DeviceProperties b200 = device_of(10, 0);
    GemmProblem problem{.input = ElementType::bf16, .output = ElementType::bf16};
    problem.b.row_major = false;
    if (!GemmPlan::refusal(problem, b200, Variant::blackwell).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 10");
        return;
    }
    struct Busy {
        std::int64_t m, n, k;
        double least;  // share of the time of all SMs; docs/notes/blackwell-kernel.md says what bounds it
    };
    constexpr std::array shapes{Busy{4096, 4096, 4096, 0.99}, Busy{2048, 2048, 2048, 0.86},
                                Busy{1024, 1024, 1024, 0.86}, Busy{384, 5120, 5120, 0.81},
                                Busy{64, 4096, 4096, 0.98},   Busy{16, 14336, 4096, 0.98},
                                Busy{8, 8192, 14336, 0.99},   Busy{256, 256, 65536, 0.98}};
    for (const Busy& shape : shapes) {
        problem.m = shape.m;
        problem.n = shape.n;
        problem.k = shape.k;
        const GemmProblem resolved = detail::resolved(problem);
        const detail::KernelChoice choice = detail::choose_blackwell(resolved, b200, detail::unlimited_workspace);
        CAPTURE(detail::describe_blackwell(resolved, choice));
        CHECK(detail::busy_share_of_blackwell(resolved, b200, choice) >= shape.least);
    }
}

TEST_CASE("on 10.0, the configuration follows from waves, bytes and the epilogue")
{
    const DeviceProperties b200 = device_of(10, 0);
    if (!GemmPlan::refusal({.m = 1, .n = 1, .k = 1, .input = ElementType::bf16}, b200, Variant::blackwell).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 10");
        return;
    }
    const auto runs = [&](std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t lda = 0) {
        GemmProblem problem{.m = m, .n = n, .k = k, .input = ElementType::bf16, .output = ElementType::bf16};
        problem.a.leading_dimension = lda;
        const std::string text = GemmPlan::explain(problem, b200);
        const std::string begin = "  runs: blackwell as ";
        const std::size_t at = text.find(begin) + begin.size();
        return text.substr(at, text.find(',', at) - at);
    };
    CHECK(runs(8192, 8192, 8192) == "Pair256x256");                          // many waves
    CHECK(runs(128, 128 * 148, 4096) == "Tile128x128");                      // a pair's tile would be half empty
    CHECK(runs(256 * 74, 128, 4096) == "Pair256x128");                       // one column of tiles, 128 wide
    CHECK(runs(16, 14336, 4096) == "Tile128x16 of the transposed product");  // the weights' rows fill a tile
    CHECK(runs(512, 512, 513, 513) == "Copying128x128");                     // TMA cannot address A
}
