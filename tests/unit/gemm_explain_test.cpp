/// The texts of explain(): what runs, why, and why each other variant does not.

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "clean_runtime.hpp"
#include "gemm/simt/simt_backend.hpp"
#include "gemm/variant_chooser.hpp"
#include "support/variants.hpp"
#include "variant_problems.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

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

}  // namespace

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
    for (const std::int64_t k : {64, 16384}) {
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

TEST_CASE("a plan for fewer SMs has no more clusters than fit on them")
{
    const DeviceProperties h200 = device_of(9, 0);
    GemmProblem problem = problem_of(8192, 8192, 512);
    problem.input = ElementType::bf16;
    problem.output = ElementType::bf16;
    const auto ctas_of = [&](int max_sms) {
        problem.max_sms = max_sms;
        const std::string text = GemmPlan::explain(problem, h200);
        const std::size_t at = text.find(" clusters of ");
        REQUIRE(at != std::string::npos);
        const std::size_t begin = text.rfind(' ', at - 1) + 1;
        int clusters = 0;
        int m = 0;
        int n = 0;
        REQUIRE(std::sscanf(text.c_str() + begin, "%d clusters of %dx%d", &clusters, &m, &n) == 3);
        return clusters * m * n;
    };
    CHECK(ctas_of(0) > 116);
    CHECK(ctas_of(1000) == ctas_of(0));
    CHECK(ctas_of(116) <= 116);
    CHECK(ctas_of(116) > 100);
    CHECK(ctas_of(2) <= 2);
}

TEST_CASE_FIXTURE(test::CleanRuntime, "a negative number of SMs is refused")
{
    GemmProblem problem = problem_of(64, 64, 64);
    problem.max_sms = -1;
    const auto error = error_of([&] { GemmPlan::prepare(Device(fake::b200), problem); });
    REQUIRE(error);
    CHECK(error->message() == "a product cannot run on at most -1 SMs");
}
