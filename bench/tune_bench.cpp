#include "tune_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace tessera::bench {
namespace {

void print_row(const Problem& problem, const TuningResult& result, const TuningTrial& trial)
{
    const bool timed = trial.seconds > 0;
    fmt::print("  {:>10} {:>9} {:>7} {:>9}  {}{}{}\n", timed ? fmt::format("{:.2f}", trial.seconds * 1e6) : "-",
               timed ? fmt::format("{:.1f}", problem.flops() / trial.seconds * 1e-12) : "-",
               timed ? fmt::format("{:.3f}", result.untuned.seconds / trial.seconds) : "-", to_string(trial.outcome),
               to_string(trial.variant), trial.configuration.empty() ? "" : ": ", trial.configuration);
}

}  // namespace

void run_tune(const Device& device, const TuneOptions& options)
{
    for (const Problem& problem : options.problems) {
        const TuningResult result = Gemm::tune(device, problem.gemm_problem(), options.tuning);
        if (!options.cache_file.empty()) {
            GemmTuningCache::save(options.cache_file);
        }
        fmt::print("{}: {} candidates\n  {:>10} {:>9} {:>7} {:>9}\n", result.problem.describe(), result.trials.size(),
                   "us", "TFLOP/s", "speedup", "");
        for (std::size_t i = 0; i < std::min(options.listed, result.trials.size()); ++i) {
            print_row(problem, result, result.trials[i]);
        }
        fmt::print("  untuned:\n");
        print_row(problem, result, result.untuned);
        fmt::print("  chosen:\n");
        print_row(problem, result, result.best);
        std::fflush(stdout);
    }
}

}  // namespace tessera::bench
