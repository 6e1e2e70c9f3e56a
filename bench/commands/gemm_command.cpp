/// `tessera-bench gemm`.

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <stdexcept>

#include "common.hpp"
#include "gemm_bench.hpp"
#include "method/bandwidth.hpp"
#include "problem_options.hpp"
#include "report/gemm_summary.hpp"
#include "report/html.hpp"

namespace tessera::bench {
namespace {

struct GemmLine {
    CommonOptions common;
    ProblemOptions problems;
    std::vector<std::string> variants = GemmOptions{}.variants;
    int sample = static_cast<int>(GemmOptions{}.sample.count());
    std::string peers = "cublaslt";
    std::size_t most_sets = max_graph_launches;
    double time_limit = 0;
    std::string html;
    std::vector<std::string> peaks;
    double bandwidth = 0;
    std::optional<std::string> config;
    std::string candidates;
    double shortlist = 0;
    std::size_t finalists = 1;
    bool remarks = false;
    bool reader = false;
    Tuning tuning;
    int pause = static_cast<int>(GemmOptions{}.pause.count());
};

GemmOptions options_of(const GemmLine& line)
{
    GemmOptions options;
    options.problems = problems_of(line.problems, line.common.seed);
    options.variants = line.variants;
    options.peers = line.peers != "none";
    options.rounds = line.common.rounds_of(options.rounds);
    options.pause = std::chrono::milliseconds(line.pause);
    options.config = line.config;
    options.shortlist = line.shortlist;
    options.finalists = line.finalists;
    options.candidates_file = line.candidates;
    if (!line.candidates.empty() && !line.config) {
        throw std::invalid_argument("--candidates needs --config: with --config \"\", it has every configuration");
    }
    if (line.finalists > 1 && !line.config) {
        throw std::invalid_argument("--finalists needs --config: with --config \"\", every configuration can be one");
    }
    options.remarks = line.remarks;
    options.reader = line.reader;
    options.tuning = line.tuning;
    options.most_sets = line.most_sets;
    options.sample = std::chrono::milliseconds(line.sample);
    options.time_limit_seconds = line.time_limit;
    options.seed = line.common.seed;
    return options;
}

/// The device's ceilings as given on the command line.
Ceilings ceilings_of(const GemmLine& line)
{
    Ceilings ceilings;
    for (const std::string& peak : line.peaks) {
        const std::size_t equals = peak.find('=');
        const ElementType input = parse_types(peak.substr(0, equals)).input;
        double rate = 0;
        if (equals == std::string::npos || !CLI::detail::lexical_cast(peak.substr(equals + 1), rate) || rate <= 0) {
            throw std::invalid_argument(fmt::format("--peak {}: expected type=TFLOP/s, for example bf16=800", peak));
        }
        ceilings.compute.push_back({input, 1e12 * rate, "given on the command line"});
    }
    ceilings.bytes_per_second = 1e12 * line.bandwidth;
    ceilings.bytes_source = "given on the command line";
    return ceilings;
}

int run_command(const GemmLine& line, GemmOptions options)
{
    const Device device = require_device(line.common.device);
    OutputFile csv(line.common.csv);
    OutputFile json(line.common.json);
    OutputFile html(line.html);
    Environment environment = environment_of(device);
    const Environment peers = environment_of_gemm_peers(device, options);
    environment.insert(environment.end(), peers.begin(), peers.end());
    environment.emplace_back("seed", fmt::format("{}", options.seed));
    print(table_of(environment));
    print(describe_gemm_method(options));

    Ceilings ceilings = ceilings_of(line);
    if (!line.html.empty() && ceilings.bytes_per_second == 0) {
        ceilings.bytes_per_second = measure_read_bandwidth(device);
        ceilings.bytes_source = "measured before this run by a kernel that only reads";
        fmt::print("Memory bandwidth, measured by a kernel that only reads: {:.2f} TB/s.\n\n",
                   ceilings.bytes_per_second / 1e12);
    }
    Monitor monitor(device);
    options.clocks = monitor.sampler();
    const std::vector<ProblemReport> reports = run_gemm(device, options);
    monitor.finish(environment, reports);
    csv.write(csv_of(environment, reports));
    json.write(json_of(environment, reports, "gemm"));
    html.write(html_of({environment, describe_gemm_method(options), reports, completed(ceilings, reports)}));
    return exit_code_of(reports, our_prefix);
}

}  // namespace

Command add_gemm_command(CLI::App& app)
{
    const auto line = std::make_shared<GemmLine>();
    CLI::App* gemm =
        app.add_subcommand("gemm", "compare Gemm::launch with cuBLASLt: its heuristic's choice and its best of 16");
    add_common_options(*gemm, line->common);
    add_problem_options(*gemm, line->problems);
    gemm->add_option("--variant", line->variants, "Tessera's variants, separated by commas, or none")
        ->delimiter(',')
        ->capture_default_str();
    gemm->add_option("--peers", line->peers, "peers: cublaslt or none")
        ->check(CLI::IsMember({"cublaslt", "none"}))
        ->capture_default_str();
    gemm->add_flag("--reader", line->reader, "also measure a kernel that only reads A and B, as a lower bound on time");
    gemm->add_option("--time-limit", line->time_limit,
                     "seconds; reached by fewer rounds, then fewer problems; 0: no limit")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
    add_sample_option(*gemm, line->sample, "shortest sample, in milliseconds");
    gemm->add_option("--html", line->html, "write a report with charts to this file");
    gemm->add_option("--peak", line->peaks,
                     "peak rates for the report's rooflines, in TFLOP/s: bf16=800,f8e4m3=1600; "
                     "default: the fastest product")
        ->delimiter(',');
    gemm->add_option("--bandwidth", line->bandwidth, "memory bandwidth for the rooflines, in TB/s; default: measured")
        ->check(CLI::Range(0.001, 1000.0));
    gemm->add_option("--config", line->config,
                     "also measure the fastest Hopper configuration whose description contains this text");
    gemm->add_option("--shortlist", line->shortlist,
                     "with --config: only what the cost model expects within this factor of its best, with one raster")
        ->check(CLI::Range(1.0, 100.0));
    gemm->add_option("--finalists", line->finalists,
                     "with --config: measure this many of the fastest beside the peers, and the cost model's choice")
        ->check(CLI::Range(1, 64));
    gemm->add_option("--candidates", line->candidates,
                     "with --config: write the time of each of these configurations, and what the cost model expects");
    gemm->add_flag("--tune", line->tuning.measure, "tune each problem and also measure the tuned choice");
    gemm->add_option("--tuning-cache", line->tuning.cache_file,
                     "with --tune, save the choices to this file; without, measure the choices in it");
    gemm->add_flag("--remarks", line->remarks, "print each contender's choice");
    gemm->add_option("--sets", line->most_sets, "most operand sets; with few, operands stay in the L2 cache")
        ->check(CLI::Range(std::size_t{1}, max_graph_launches))
        ->capture_default_str();
    gemm->add_option("--pause", line->pause, "idle time before each sample, in milliseconds")
        ->check(CLI::Range(0, 10000))
        ->capture_default_str();
    return {gemm, [line] { return [line, options = options_of(*line)] { return run_command(*line, options); }; }};
}

}  // namespace tessera::bench
