/// Scenario 4: one product by every rung of the SIMT ladder, and by tensor cores. All operands are tf32 numbers, so that f32 and tf32
/// multiply the same values.

#include "method/statistics.hpp"
#include "scenarios/operands.hpp"
#include "tessera/gemm.hpp"

namespace tessera::scenarios {
namespace {

constexpr std::array rungs{Variant::simt_naive, Variant::simt_tiled, Variant::simt_vectorized, Variant::simt_coarsened,
                           Variant::simt_register_blocked};

/// Returns the variant of the best tensor-core kernel for tf32, or `automatic` if there is none.
Variant tensor_cores_of(const GemmProblem& problem, const DeviceProperties& device)
{
    for (const Variant variant : {Variant::blackwell, Variant::hopper, Variant::mma_sync}) {
        if (GemmPlan::refusal(problem, device, variant).empty()) {
            return variant;
        }
    }
    return Variant::automatic;
}

}  // namespace

Outcome run_ladder(const Context& context)
{
    const std::int64_t extent = context.full ? 4096 : 96;
    const auto elements = static_cast<std::size_t>(extent * extent);
    Outcome outcome;
    outcome.work = fmt::format("{}x{}x{} in f32, and in tf32 on tensor cores", extent, extent, extent);

    const Stream stream(context.device);
    const auto tf32_a = normal_values<tf32>(context, extent * extent, 1);
    const auto tf32_b = normal_values<tf32>(context, extent * extent, 2);
    const auto a = DeviceBuffer<float>::from_host(stream, std::vector<float>(tf32_a.begin(), tf32_a.end()));
    const auto b = DeviceBuffer<float>::from_host(stream, std::vector<float>(tf32_b.begin(), tf32_b.end()));
    DeviceBuffer<float> d(stream, elements), d_of_optimized(stream, elements);
    d.fill(stream, poison<float>());
    d_of_optimized.fill(stream, poison<float>());
    const auto by_rung = [&](Variant variant, DeviceBuffer<float>& to) {
        Gemm::launch(stream, a.matrix(extent, extent), b.matrix(extent, extent), to.matrix(extent, extent), {},
                     variant);
    };
    const Variant tensor_cores = tensor_cores_of({.m = extent, .n = extent, .k = extent, .input = ElementType::tf32},
                                                 context.device.properties());
    const auto best = [&](DeviceBuffer<float>& to) {
        if (tensor_cores == Variant::automatic) {
            by_rung(rungs.back(), to);
        } else {
            Gemm::launch(stream, as_tf32(a.matrix(extent, extent)), as_tf32(b.matrix(extent, extent)),
                         to.matrix(extent, extent), {}, tensor_cores);
        }
    };
    if (tensor_cores == Variant::automatic) {
        outcome.notes.push_back("no tensor cores for tf32 on this device: the optimized entry is the best SIMT kernel");
    }
    stream.synchronize();

    const auto timed = [&](Recorder& recorder, std::string_view phase, const auto& launch) {
        recorder.on_stream(phase, stream, launch);
        stream.synchronize();
    };
    const std::string best_name(to_string(tensor_cores == Variant::automatic ? rungs.back() : tensor_cores));
    measure(
        context, outcome,
        [&](Recorder& recorder) { timed(recorder, to_string(rungs[0]), [&] { by_rung(rungs[0], d); }); },
        [&](Recorder& recorder) { timed(recorder, best_name, [&] { best(d_of_optimized); }); });

    const bench::Problem problem = product_of(extent, extent, extent, ElementType::tf32, ElementType::f32);
    const auto expected = d.to_vector();
    const auto judge = [&](std::string_view name, const std::vector<float>& found, bench::Accumulation accumulation) {
        outcome.checks.push_back(check_product<tf32, float>(context, fmt::format("{} against float64", name), problem,
                                                            tf32_a, tf32_b, found, accumulation));
    };
    judge(to_string(rungs[0]), expected, bench::Accumulation::fp32);
    judge(best_name, d_of_optimized.to_vector(),
          tensor_cores == Variant::automatic ? bench::Accumulation::fp32 : bench::Accumulation::tensor_core);

    // The rungs between, in one run each: the figures are the device's time.
    const double flops = problem.flops();
    outcome.figures.push_back(
        {std::string(to_string(rungs[0])), flops / outcome.baseline.phases[0].device_seconds * 1e-12, "TFLOP/s"});
    for (std::size_t i = 1; i < rungs.size(); ++i) {
        Recorder recorder(false);
        std::vector<double> seconds;
        for (std::size_t run = 0; run < context.repetitions + (context.warm_up ? 1 : 0); ++run) {
            d.fill(stream, poison<float>());
            timed(recorder, "rung", [&] { by_rung(rungs[i], d); });
            seconds.push_back(recorder.take().front().device_seconds);
        }
        if (context.warm_up) {
            seconds.erase(seconds.begin());
        }
        const auto found = d.to_vector();
        outcome.checks.push_back(equal_bits(fmt::format("{} against {}", to_string(rungs[i]), to_string(rungs[0])),
                                            bytes_of(found), bytes_of(expected)));
        outcome.figures.push_back(
            {std::string(to_string(rungs[i])), flops / bench::summarize(std::move(seconds)).median * 1e-12, "TFLOP/s"});
    }
    if (tensor_cores != Variant::automatic) {
        outcome.figures.push_back(
            {best_name + ", tf32", flops / outcome.optimized.phases[0].device_seconds * 1e-12, "TFLOP/s"});
    }
    return outcome;
}

}  // namespace tessera::scenarios
