#include "scenarios/scenario.hpp"

#include <algorithm>
#include <array>

namespace tessera::scenarios {
namespace {

constexpr std::array scenarios{
    Scenario{1, "transfers", "Memory and transfers", "pageable memory, and copies that the host waits for",
             "pinned memory; uploads, products and downloads on three streams, double-buffered", run_transfers},
    Scenario{2, "clusters", "Clusters and multicast", "every CTA loads its own operands",
             "the CTAs of a cluster share what they load", run_clusters},
    Scenario{3, "npy-streaming", "File to GPU", "read the whole .npy file, copy it, then compute",
             "read chunks into pinned buffers, and copy and compute meanwhile", run_npy_streaming},
    Scenario{4, "ladder", "Kernel optimization", "the naive SIMT kernel", "tensor cores, or else the best SIMT kernel",
             run_ladder},
    Scenario{5, "graphs", "Streams and graphs", "many small products, launched one by one on one stream",
             "a captured graph of four streams", run_graphs},
    Scenario{6, "compilation", "Compilation at run time", "a tile program compiled by NVRTC, with an empty cache",
             "the same program from the cache on disk", run_compilation},
    Scenario{7, "transformer", "Inference: a transformer block",
             "products, and a kernel for each bias, activation, residual and softmax",
             "fused epilogues, and attention as one tile program", run_transformer},
    Scenario{8, "low-precision", "Low precision", "a product in bf16",
             "the same in f8e4m3, with a scale for each row of A and column of B", run_low_precision},
    Scenario{9, "training", "End to end: training on all GPUs", "one GPU, a kernel for each step, launched one by one",
             "all GPUs, each with a part of the batch; fused epilogues, captured in graphs", run_training},
};

}  // namespace

gsl::span<const Scenario> all_scenarios() { return scenarios; }

Check equal_bits(std::string what, gsl::span<const std::byte> left, gsl::span<const std::byte> right)
{
    const bool equal = left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin());
    return {std::move(what), "the same bits", equal ? 0.0 : std::numeric_limits<double>::infinity()};
}

bool Report::agrees() const noexcept
{
    return std::all_of(outcome.checks.begin(), outcome.checks.end(), [](const Check& check) { return check.passed(); });
}

double Report::speedup() const { return median_of(outcome.baseline) / median_of(outcome.optimized); }

void measure(const Context& context, Outcome& outcome, const std::function<void(Recorder&)>& baseline,
             const std::function<void(Recorder&)>& optimized)
{
    struct Entry {
        const std::function<void(Recorder&)>& run;
        EntryTimes& times;
        Recorder recorder;
        std::vector<std::vector<Phase>> phases{};
    };
    std::array<Entry, 2> entries{Entry{baseline, outcome.baseline, Recorder(false)},
                                 Entry{optimized, outcome.optimized, Recorder(true)}};
    const std::size_t warm_ups = context.warm_up ? 1 : 0;
    for (std::size_t run = 0; run < warm_ups + context.repetitions; ++run) {
        for (Entry& entry : entries) {
            for (int device = 0; device < Device::count(); ++device) {
                Device(device).synchronize();
            }
            const auto start = std::chrono::steady_clock::now();
            entry.run(entry.recorder);
            const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
            std::vector<Phase> phases = entry.recorder.take();
            if (run >= warm_ups) {
                entry.times.seconds.push_back(seconds.count());
                entry.phases.push_back(std::move(phases));
            }
        }
    }
    for (Entry& entry : entries) {
        entry.times.phases = medians_of(entry.phases);
    }
}

}  // namespace tessera::scenarios
