/// Captured launches of Hopper kernels whose clusters share tiles. They need a workspace while a capture forbids many
/// calls. On an SDK stream, on a raw stream, and on concurrent branches. Needs a device of compute capability 9.0, or
/// the emulated one.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <source_location>

#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "support/gemm_runner.hpp"
#include "support/hopper_device.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;
using detail::KernelChoice;

namespace {

/// Few tiles, with enough stages to share them.
GemmCase shared_case()
{
    GemmCase gemm;
    gemm.m = 200;
    gemm.n = 136;
    gemm.k = 1000;
    gemm.input = ElementType::f16;
    return gemm;
}

/// The smallest of the tuner's choices that share tiles: between clusters, and between clusters that also split K.
std::array<KernelChoice, 2> sharing_choices(const GemmProblem& problem)
{
    std::array<KernelChoice, 2> choices;
    for (const bool layers : {false, true}) {
        std::vector<KernelChoice> candidates = detail::hopper_candidates(problem, device());
        std::erase_if(candidates,
                      [&](const KernelChoice& choice) { return !choice.stream_k || (choice.cluster_k > 1) != layers; });
        REQUIRE_FALSE(candidates.empty());
        choices[layers ? 1 : 0] =
            *std::min_element(candidates.begin(), candidates.end(), [](const KernelChoice& a, const KernelChoice& b) {
                return a.clusters * a.cluster_m * a.cluster_n * a.cluster_k <
                       b.clusters * b.cluster_m * b.cluster_n * b.cluster_k;
            });
        REQUIRE(detail::hopper_workspace(problem, choices[layers ? 1 : 0]).counters > 0);
    }
    return choices;
}

void enqueue(StreamRef stream, const detail::GemmOperands& operands, const Epilogue& epilogue,
             const KernelChoice& choice)
{
    detail::enqueue_gemm(stream, operands, epilogue, detail::problem_of(operands, epilogue), device(), choice,
                         "captured_hopper_test", std::source_location::current());
}

void check_result(const GemmCase& gemm, const GemmData& data, const HostArray& result)
{
    const auto wrong = find_wrong_element(gemm, data, result, hopper_summation(gemm.input, gemm.fp8_accumulation));
    if (wrong) {
        report_failure(gemm.size(), gemm.describe(), *wrong);
    }
}

}  // namespace

TEST_CASE("captured launches that share tiles are right at each replay")
{
    if (!is_hopper_here()) {
        return;
    }
    const Stream stream;
    const GemmCase gemm = shared_case();
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    DeviceOperands operands(stream, gemm, data);
    for (const KernelChoice& choice : sharing_choices(operands.problem())) {
        for (const int replays : {1, 2}) {
            check_result(gemm, data, operands.launch([&](const auto& given, const Epilogue& epilogue) {
                const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
                    enqueue(captured, given, epilogue, choice);
                    // Reuses what the first launch leaves in the workspace.
                    enqueue(captured, given, epilogue, choice);
                });
                CHECK(graph.node_count() == 2);
                for (int i = 0; i < replays; ++i) {
                    graph.launch(stream);
                }
                stream.synchronize();
            }));
        }
    }
}

TEST_CASE("launches that share tiles can be captured on a raw stream")
{
    if (!is_hopper_here()) {
        return;
    }
    const Stream stream;
    const cudaStream_t raw = StreamRef(stream).get();
    const GemmCase gemm = shared_case();
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    DeviceOperands operands(stream, gemm, data);
    for (const KernelChoice& choice : sharing_choices(operands.problem())) {
        check_result(gemm, data, operands.launch([&](const auto& given, const Epilogue& epilogue) {
            cudaGraph_t graph = nullptr;
            cudaGraphExec_t executable = nullptr;
            REQUIRE(cudaStreamBeginCapture(raw, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
            enqueue(StreamRef(raw), given, epilogue, choice);
            REQUIRE(cudaStreamEndCapture(raw, &graph) == cudaSuccess);
            REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
            CHECK(cudaGraphDestroy(graph) == cudaSuccess);
            CHECK(cudaGraphLaunch(executable, raw) == cudaSuccess);
            stream.synchronize();
            CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
        }));
    }
    GemmPlan::release_workspaces();
}

TEST_CASE("concurrent branches of a capture do not disturb each other's shared tiles")
{
    if (!is_hopper_here()) {
        return;
    }
    const Stream stream;
    const GemmCase gemm = shared_case();
    const GemmData first_data = GemmData::make(gemm, Guards::both_sides, seed());
    const GemmData second_data = GemmData::make(gemm, Guards::both_sides, seed() + 1);
    DeviceOperands first(stream, gemm, first_data);
    DeviceOperands second(stream, gemm, second_data);
    for (const KernelChoice& choice : sharing_choices(first.problem())) {
        std::optional<HostArray> second_result;
        const HostArray first_result = first.launch([&](const auto& first_given, const Epilogue& first_epilogue) {
            second_result = second.launch([&](const auto& second_given, const Epilogue& second_epilogue) {
                const Event fork(EventKind::ordering);
                // Raw streams: the second often has the same handle as the first.
                const auto branch = [&](StreamRef captured, const auto& given, const Epilogue& epilogue) {
                    cudaStream_t side = nullptr;
                    REQUIRE(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking) == cudaSuccess);
                    const StreamRef side_ref(side);
                    side_ref.wait(fork);
                    enqueue(side_ref, given, epilogue, choice);
                    captured.wait(side_ref);
                    CHECK(cudaStreamDestroy(side) == cudaSuccess);
                };
                const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
                    fork.record(captured);
                    branch(captured, first_given, first_epilogue);
                    branch(captured, second_given, second_epilogue);
                });
                graph.launch(stream);
                stream.synchronize();
            });
        });
        check_result(gemm, first_data, first_result);
        check_result(gemm, second_data, *second_result);
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
