/// `tessera-bench launch`.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common.hpp"
#include "launch_bench.hpp"

namespace tessera::bench {
namespace {

struct LaunchLine {
    CommonOptions common;
    std::string size = "32x32x32";
    std::size_t launches = LaunchOptions{}.launches_per_sample;
    double max_ratio = 1.25;
};

LaunchOptions options_of(const LaunchLine& line)
{
    LaunchOptions options;
    options.shape = parse_shape(line.size);
    options.launches_per_sample = line.launches;
    options.rounds = line.common.rounds_of(options.rounds);
    options.seed = line.common.seed;
    return options;
}

int run_command(const LaunchLine& line, const LaunchOptions& options)
{
    const Device device = require_device(line.common.device);
    OutputFile csv(line.common.csv);
    OutputFile json(line.common.json);
    Environment environment = environment_of(device);
    environment.emplace_back("seed", fmt::format("{}", options.seed));
    print(table_of(environment));
    print(describe_launch_method(options));

    std::vector<LaunchReport> reports;
    run_launch(device, options, [&](const LaunchReport& report) {
        print(table_of(report));
        reports.push_back(report);
    });
    csv.write(csv_of(environment, reports));
    json.write(json_of(environment, reports));
    int code = success;
    for (const LaunchReport& report : reports) {
        for (const LaunchMeasurement& measurement : report.measurements) {
            if (line.max_ratio > 0 && measurement.is_limited && time_ratio(report, measurement) > line.max_ratio) {
                fmt::print(stderr, "tessera-bench: {} of {} costs {:.3f} times the raw launch; the limit is {}\n",
                           measurement.name, report.kernel, time_ratio(report, measurement), line.max_ratio);
                code = failure;
            }
            if (measurement.heap_allocations > 0) {
                fmt::print(stderr, "tessera-bench: {} of {} allocates on the heap\n", measurement.name, report.kernel);
                code = failure;
            }
        }
    }
    return code;
}

}  // namespace

Command add_launch_command(CLI::App& app)
{
    const auto line = std::make_shared<LaunchLine>();
    CLI::App* launch = app.add_subcommand("launch", "compare the CPU time of Gemm::launch with cudaLaunchKernelExC");
    add_common_options(*launch, line->common);
    launch->add_option("--size", line->size, "MxNxK")->capture_default_str();
    launch->add_option("--launches", line->launches, "launches per sample")
        ->check(CLI::Range(std::size_t{1}, max_outstanding_launches))
        ->capture_default_str();
    launch->add_option("--max-ratio", line->max_ratio, "exit with 1 if the ratio is higher; 0: no limit")
        ->check(CLI::Range(0.0, 1000.0))
        ->capture_default_str();
    return {launch, [line] { return [line, options = options_of(*line)] { return run_command(*line, options); }; }};
}

}  // namespace tessera::bench
