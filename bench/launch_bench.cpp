#include "launch_bench.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "allocation_counter.hpp"
#include "kernels/gemm/gemm_arguments.hpp"
#include "launch_ways.hpp"
#include "problem/input_ring.hpp"
#include "problem/reference.hpp"
#include "sdk/src/gemm/gemm_operands.hpp"
#include "sdk/src/gemm/simt/simt_backend.hpp"
#include "tessera/gemm.hpp"
#include "tessera/graph.hpp"

namespace tessera::bench {
namespace {

void check(cudaError_t status, const char* call)
{
    if (status != cudaSuccess) {
        throw std::runtime_error(fmt::format("{} failed: {}", call, cudaGetErrorString(status)));
    }
}

using View = MatrixView<const float>;

/// The launch that Gemm::launch makes for a row-major f32 product, with everything prepared: the least that a launch
/// can cost.
class RawLaunch {
public:
    RawLaunch(const Device& device, StreamRef stream, View a, View b, MatrixView<float> d)
    {
        const std::int64_t m = d.rows();
        const std::int64_t n = d.columns();
        const GemmProblem problem = Problem{{m, n, a.columns()}, ElementType::f32, {}}.gemm_problem();
        const kernels::SimtKernel kernel =
            detail::simt_kernel_of(Variant::simt_register_blocked, problem, device.properties());
        arguments_ =
            detail::arguments_of({detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)}, Epilogue());
        arguments_.raster = detail::raster_of(arguments_, kernel.block_m, kernel.block_n, 16);

        function_ = kernel.function;
        config_.gridDim = dim3(arguments_.raster.tiles());
        config_.blockDim = dim3(static_cast<unsigned>(kernel.threads));
        config_.dynamicSmemBytes = kernel.shared_bytes;
        config_.stream = stream.get();
    }
    RawLaunch(const RawLaunch&) = delete;  // parameters_ points into the object
    RawLaunch& operator=(const RawLaunch&) = delete;

    void operator()() { check(cudaLaunchKernelExC(&config_, function_, parameters_.data()), "cudaLaunchKernelExC"); }

private:
    kernels::GemmArguments arguments_{};
    cudaLaunchConfig_t config_{};
    const void* function_ = nullptr;
    std::array<void*, 1> parameters_{&arguments_};
};

/// Returns the only node of a graph, which must be a kernel with GemmArguments as its parameter.
cudaKernelNodeParams kernel_of(const Graph& graph)
{
    if (graph.node_count() != 1) {
        throw std::runtime_error(
            fmt::format("a launch enqueued {} operations instead of one kernel", graph.node_count()));
    }
    cudaGraphNode_t node = nullptr;
    std::size_t count = 1;
    check(cudaGraphGetNodes(graph.get(), &node, &count), "cudaGraphGetNodes");
    cudaKernelNodeParams parameters{};
    check(cudaGraphKernelNodeGetParams(node, &parameters), "cudaGraphKernelNodeGetParams");
    if (parameters.kernelParams == nullptr) {
        throw std::runtime_error("CUDA does not return the arguments of a captured kernel");
    }
    return parameters;
}

/// Checks that both launches enqueue the same kernel with the same grid and arguments; otherwise the ratio is
/// meaningless.
void require_same_kernel(const Graph& left_graph, const Graph& right_graph)
{
    const cudaKernelNodeParams left = kernel_of(left_graph);
    const cudaKernelNodeParams right = kernel_of(right_graph);
    const auto same = [](dim3 x, dim3 y) { return x.x == y.x && x.y == y.y && x.z == y.z; };
    // Excludes the padding at the end, which has no defined value. There is no other padding.
    constexpr std::size_t bytes = offsetof(kernels::GemmArguments, activation) + sizeof(kernels::ActivationKind);
    const auto* left_arguments = static_cast<const kernels::GemmArguments*>(left.kernelParams[0]);
    const auto* right_arguments = static_cast<const kernels::GemmArguments*>(right.kernelParams[0]);
    kernels::GemmArguments left_copy = *left_arguments;
    kernels::GemmArguments right_copy = *right_arguments;
    left_copy.c = right_copy.c = {};  // not read while beta is 0
    if (left_copy.pre_activation.data == nullptr && right_copy.pre_activation.data == nullptr) {
        std::memset(&left_copy.pre_activation, 0, sizeof left_copy.pre_activation);  // it has padding, too
        std::memset(&right_copy.pre_activation, 0, sizeof right_copy.pre_activation);
    }
    if (left.func != right.func || !same(left.gridDim, right.gridDim) || !same(left.blockDim, right.blockDim) ||
        left.sharedMemBytes != right.sharedMemBytes || std::memcmp(&left_copy, &right_copy, bytes) != 0) {
        throw std::runtime_error(
            "the raw launch differs from the launch in Gemm::launch, so the two cannot be compared");
    }
}

/// Measures a SIMT kernel.
LaunchReport run_simt_launch(const Device& device, const LaunchOptions& options);

}  // namespace

std::string describe_launch_method(const LaunchOptions& options)
{
    return fmt::format(
        "CPU time (steady clock) of {} launches in a row, divided by their number. The device is idle before\n"
        "each sample, so the queue never fills. {} rounds; a round takes one sample of each way to launch, in\n"
        "rotating order. The raw launch has its configuration and arguments prepared; it was checked to be\n"
        "the same kernel with the same grid and arguments. Allocations are calls of operator new per launch.\n"
        "Of tensor-core kernels, the results of all ways are the same. 'seen': the plan's latest launches had these\n"
        "operands; 'first': they did not.\n",
        options.launches_per_sample, options.rounds);
}

namespace {

LaunchReport run_simt_launch(const Device& device, const LaunchOptions& options)
{
    device.make_current();  // the raw launch goes to the current device
    const Stream stream(device);
    const Problem problem{options.shape, ElementType::f32, {}};
    const auto [m, n, k] = options.shape;
    InputRing<f32> ring(stream, problem, 1, options.seed);
    const SampledReference reference(problem, ring.host_a(), ring.host_b(), options.seed);
    const View a = ring.a(0).matrix(m, k);
    const View b = ring.b(0).matrix(k, n);
    const MatrixView<float> d = ring.d(0).matrix(m, n);

    const StreamRef target = stream;
    const GemmPlan plan = GemmPlan::prepare(device, problem.gemm_problem(), Variant::simt_register_blocked);
    RawLaunch raw(device, target, a, b, d);
    const auto gemm = [&] { Gemm::launch(target, a, b, d, {}, Variant::simt_register_blocked); };
    const auto gemm_automatic = [&] { Gemm::launch(target, a, b, d); };
    const auto planned = [&] { plan.launch(target, a, b, d); };
    const std::vector<Way> ways{way("cudaLaunchKernelExC", raw), way("Gemm::launch", gemm_automatic),
                                way("Gemm::launch, named variant", gemm), way("GemmPlan::launch", planned)};

    const auto capture = [&](const Way& captured) {
        return Graph::capture(target, [&](StreamRef) { captured.launch(1); });
    };
    LaunchReport report;
    report.problem = problem;
    report.launches_per_sample = options.launches_per_sample;
    std::vector<float> result(problem.d_size());
    const Graph raw_graph = capture(ways.front());
    for (const Way& candidate : ways) {
        require_same_kernel(raw_graph, capture(candidate));
        ring.poison_outputs(target);
        candidate.launch(options.launches_per_sample);  // also the warm-up
        ring.copy_first_output_to(result);
        const Verdict verdict = reference.judge(result, Accumulation::fp32);
        if (!verdict.fault.empty()) {
            throw std::runtime_error(fmt::format("{} computes a wrong product: {}", candidate.name, verdict.fault));
        }
    }
    report.measurements = measure(ways, options, [&] { stream.synchronize(); });
    report.kernel = to_string(Variant::simt_register_blocked);
    return report;
}

}  // namespace

std::vector<LaunchMeasurement> measure(const std::vector<Way>& ways, const LaunchOptions& options,
                                       const std::function<void()>& wait)
{
    std::vector<LaunchMeasurement> measurements;
    for (const Way& one : ways) {
        measurements.push_back({one.name, {}, 0, one.is_limited});
        measurements.back().seconds.reserve(options.rounds);
    }
    std::vector<std::uint64_t> allocations(ways.size(), 0);
    for (std::size_t round = 0; round < options.rounds; ++round) {
        for (std::size_t position = 0; position < ways.size(); ++position) {
            const std::size_t i = (round + position) % ways.size();
            wait();
            const std::uint64_t allocations_before = heap_allocations();
            const auto start = std::chrono::steady_clock::now();
            ways[i].launch(options.launches_per_sample);
            const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
            allocations[i] += heap_allocations() - allocations_before;
            measurements[i].seconds.push_back(elapsed.count() / static_cast<double>(options.launches_per_sample));
        }
    }
    wait();
    const auto launches = static_cast<double>(options.rounds * options.launches_per_sample);
    for (std::size_t i = 0; i < ways.size(); ++i) {
        measurements[i].heap_allocations = static_cast<double>(allocations[i]) / launches;
    }
    return measurements;
}

void run_launch(const Device& device, const LaunchOptions& options,
                const std::function<void(const LaunchReport&)>& take)
{
    take(run_simt_launch(device, options));
    run_tensor_core_launches(device, options, take);
}

}  // namespace tessera::bench
