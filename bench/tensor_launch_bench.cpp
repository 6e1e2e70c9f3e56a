#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/hopper/hopper_repack.hpp"
#include "launch_ways.hpp"
#include "problem/input_ring.hpp"
#include "problem/reference.hpp"
#include "sdk/src/gemm/backend.hpp"
#include "sdk/src/gemm/gemm_operands.hpp"
#include "sdk/src/gemm/seen_launches.hpp"
#include "sdk/src/gemm/variant_chooser.hpp"
#include "sdk/src/gemm/workspace.hpp"
#include "tessera/gemm.hpp"
#include "tests/support/forced_choice.hpp"

namespace tessera::bench {
namespace {

// More outputs than a plan or Gemm::launch keeps, used in turn: each launch finds that its operands are not seen.
constexpr std::size_t outputs = 1024;

void check(cudaError_t status, const char* call)
{
    if (status != cudaSuccess) {
        throw std::runtime_error(fmt::format("{} failed: {}", call, cudaGetErrorString(status)));
    }
}

/// The launch that a plan makes, with everything prepared: the least that a launch can cost. If operands are repacked,
/// it is two.
class RawLaunch {
public:
    RawLaunch(const detail::EncodedLaunch& launch, StreamRef stream) : launch_(launch)
    {
        config_.gridDim = dim3(launch.ctas);
        config_.blockDim = dim3(launch.threads);
        config_.dynamicSmemBytes = launch.shared_bytes;
        config_.stream = stream.get();
        attributes_[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes_[0].val.programmaticStreamSerializationAllowed = launch.programmatic ? 1 : 0;
        attributes_[1].id = cudaLaunchAttributeClusterDimension;
        attributes_[1].val.clusterDim = {launch.cluster, 1, 1};
        config_.attrs = attributes_.data();
        config_.numAttrs = launch.cluster > 1 ? 2 : 1;
    }
    RawLaunch(const RawLaunch&) = delete;  // its members point into the object
    RawLaunch& operator=(const RawLaunch&) = delete;

    void operator()()
    {
        if (launch_.copy_count > 0) {
            check(kernels::repack(std::span(launch_.copies).first(launch_.copy_count), launch_.copied_element_bytes,
                                  config_.stream),
                  "cudaLaunchKernelExC of the kernel that repacks operands");
        }
        check(cudaLaunchKernelExC(&config_, launch_.function, parameters_.data()), "cudaLaunchKernelExC");
    }

private:
    detail::EncodedLaunch launch_;
    cudaLaunchConfig_t config_{};
    std::array<cudaLaunchAttribute, 2> attributes_{};
    std::array<void*, 1> parameters_{launch_.argument.data()};
};

LaunchReport run_choice(const Device& device, const LaunchOptions& options, const Problem& problem,
                        const detail::KernelChoice& choice)
{
    const auto [m, n, k] = problem.shape;
    const GemmProblem given = detail::resolved(problem.gemm_problem());
    const detail::Backend& backend = detail::backend_of(choice.variant);
    const detail::GemmRequest request{given, device.properties()};
    const std::string name = fmt::format("{} {}{}", to_string(choice.variant), backend.describe(request, choice),
                                         k % 2 == 0 ? "" : ", A not aligned");
    const Stream stream(device);
    const StreamRef target = stream;
    InputRing<bf16> ring(stream, problem, 1, options.seed);
    DeviceBuffer<float> others(stream, outputs * problem.d_size());
    const SampledReference reference(problem, ring.host_a(), ring.host_b(), options.seed);
    const auto a = ring.a(0).matrix(m, k);
    const auto b = ring.b(0).matrix(k, n);
    const auto d = ring.d(0).matrix(m, n);

    const test::ForcedChoice forced(given, device.properties(), choice);
    const GemmPlan plan = GemmPlan::prepare(device, given);
    if (plan.explain().find(backend.describe(request, choice)) == std::string::npos) {
        throw std::runtime_error(fmt::format("a plan does not take {}: {}", name, plan.explain()));
    }
    const detail::GemmOperands operands{detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)};
    detail::EncodedLaunch encoded;
    {
        const auto lease = detail::lease_workspace(target, backend.workspace(given, choice), Workspace(),
                                                   "tessera-bench launch", std::source_location::current());
        const detail::CallStatus ended =
            backend.encode(encoded, request, choice, detail::arguments_of(operands, {}), lease.memory());
        check(ended.status, ended.call);
    }
    RawLaunch raw(encoded, target);
    const auto planned = [&, a, b, d] { plan.launch(target, a, b, d); };
    const auto gemm = [&, a, b, d] { Gemm::launch(target, a, b, d); };
    planned();  // the first launch of a kernel raises its limit of shared memory, which the raw launch relies on
    std::size_t output = 0;
    const auto next_d = [&, d] {
        output = (output + 1) % outputs;
        return output == 0 ? d : others.subspan(output * problem.d_size(), problem.d_size()).matrix(m, n);
    };
    const auto planned_unseen = [&] { plan.launch(target, a, b, next_d()); };
    const auto gemm_unseen = [&] { Gemm::launch(target, a, b, next_d()); };
    std::vector<Way> ways{
        way(encoded.copy_count > 0 ? "repacking and cudaLaunchKernelExC" : "cudaLaunchKernelExC", raw),
        way("GemmPlan::launch, seen", planned), way("GemmPlan::launch, first", planned_unseen),
        way("Gemm::launch, seen", gemm), way("Gemm::launch, first", gemm_unseen)};
    ways[2].is_limited = false;
    ways[4].is_limited = false;

    LaunchReport report;
    report.problem = problem;
    report.launches_per_sample = options.launches_per_sample;
    report.kernel = name;
    std::vector<float> expected;
    for (const Way& candidate : ways) {
        std::vector<float> result(problem.d_size());
        ring.poison_outputs(target);
        candidate.launch(candidate.is_limited ? 3 : outputs);  // also the warm-up
        ring.copy_first_output_to(result);
        const Verdict verdict = reference.judge(result, Accumulation::tensor_core);
        if (!verdict.fault.empty()) {
            throw std::runtime_error(
                fmt::format("{} of {} computes a wrong product: {}", candidate.name, name, verdict.fault));
        }
        if (!expected.empty() && std::memcmp(expected.data(), result.data(), result.size() * sizeof(float)) != 0) {
            throw std::runtime_error(
                fmt::format("{} of {} does not compute what the raw launch does", candidate.name, name));
        }
        expected = std::move(result);
    }
    report.measurements = measure(ways, options, [&] { stream.synchronize(); });
    return report;
}

}  // namespace

void run_tensor_core_launches(const Device& device, const LaunchOptions& options,
                              const std::function<void(const LaunchReport&)>& take)
{
    // Few tiles and several stages, so that tiles can be shared. TMA cannot address rows of 1023 elements.
    for (const std::int64_t k : {1024, 1023}) {
        const Problem problem{{64, 64, k}, ElementType::bf16, {}};
        for (const detail::KernelChoice& choice :
             test::one_of_each_kind(detail::resolved(problem.gemm_problem()), device.properties())) {
            take(run_choice(device, options, problem, choice));
        }
    }
}

}  // namespace tessera::bench
