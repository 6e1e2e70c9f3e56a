/// The choice of a Blackwell configuration.

#include "gemm/blackwell/blackwell_chooser.hpp"

#include <array>
#include <string>

#include "clean_runtime.hpp"
#include "gemm/variant_chooser.hpp"
#include "variant_problems.hpp"

using namespace tessera;
using namespace tessera::test;

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
