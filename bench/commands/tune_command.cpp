/// `tessera-bench tune`.

#include <memory>

#include "common.hpp"
#include "gemm_bench.hpp"
#include "problem_options.hpp"
#include "tune_bench.hpp"

namespace tessera::bench {
namespace {

struct TuneLine {
    CommonOptions common;
    ProblemOptions problems;
    int sample = static_cast<int>(GemmOptions{}.sample.count());
    std::size_t listed = TuneOptions{}.listed;
    std::string cache_file;
};

TuneOptions options_of(const TuneLine& line)
{
    TuneOptions options;
    options.problems = problems_of(line.problems, line.common.seed);
    options.tuning.rounds = line.common.rounds != 0 ? line.common.rounds : options.tuning.rounds;
    options.tuning.sample_seconds = 1e-3 * line.sample;
    options.tuning.seed = line.common.seed;
    options.listed = line.listed;
    options.cache_file = line.cache_file;
    return options;
}

}  // namespace

Command add_tune_command(CLI::App& app)
{
    const auto line = std::make_shared<TuneLine>();
    CLI::App* tune = app.add_subcommand("tune", "run Gemm::tune; print the candidates' times and the choice");
    add_problem_options(*tune, line->problems);
    add_device_option(*tune, line->common);
    tune->add_option("--repetitions", line->common.rounds, "samples per finalist")->check(CLI::Range(1, 1000000));
    add_sample_option(*tune, line->sample, "shortest sample of a finalist, in milliseconds");
    tune->add_option("--seed", line->common.seed, "seed of the random operands, and of the list random")
        ->capture_default_str();
    tune->add_option("--list", line->listed, "candidates to list")->capture_default_str();
    tune->add_option("--tuning-cache", line->cache_file, "save the choices to this file");
    return {tune, [line] {
                return [line, options = options_of(*line)] {
                    run_tune(require_device(line->common.device), options);
                    return static_cast<int>(success);
                };
            }};
}

}  // namespace tessera::bench
