/// `tessera-bench simt`.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "common.hpp"
#include "simt_bench.hpp"

namespace tessera::bench {
namespace {

struct SimtLine {
    CommonOptions common;
    std::vector<std::string> sizes;
    std::vector<std::string> types{"f32"};
    std::vector<std::string> orders{"rr"};
};

SimtOptions options_of(const SimtLine& line)
{
    SimtOptions options;
    std::vector<std::string> sizes = line.sizes;
    if (sizes.empty()) {
        sizes = {"256", "1000", "1024", "4096x4096x64"};
        if (!line.common.quick) {
            sizes.insert(sizes.end(), {"4096", "64x4096x4096", "16x14336x4096", "1536x6144x2048", "8192x1024x1024"});
        }
    }
    for (const std::string& type : line.types) {
        for (const std::string& orders : line.orders) {
            for (const std::string& size : sizes) {
                options.problems.push_back({parse_shape(size), parse_type(type), parse_orders(orders)});
            }
        }
    }
    options.rounds = line.common.rounds_of(options.rounds);
    options.seed = line.common.seed;
    return options;
}

int run_command(const CommonOptions& common, SimtOptions options)
{
    const Device device = require_device(common.device);
    OutputFile csv(common.csv);
    OutputFile json(common.json);
    Environment environment = environment_of(device);
    const Environment peers = environment_of_peers(device);
    environment.insert(environment.end(), peers.begin(), peers.end());
    environment.emplace_back("seed", fmt::format("{}", options.seed));
    print(table_of(environment));
    print(describe_simt_method(options));

    Monitor monitor(device);
    options.clocks = monitor.sampler();
    const std::vector<ProblemReport> reports =
        run_simt(device, options, [](const ProblemReport& report) { print(table_of(report)); });
    monitor.finish(environment, reports);
    csv.write(csv_of(environment, reports));
    json.write(json_of(environment, reports));
    return exit_code_of(reports);
}

}  // namespace

Command add_simt_command(CLI::App& app)
{
    const auto line = std::make_shared<SimtLine>();
    CLI::App* simt = app.add_subcommand("simt", "compare the SIMT ladder with cuBLAS in true fp32 and with the CPU");
    add_common_options(*simt, line->common);
    simt->add_option("--sizes", line->sizes, "MxNxK, or N for a cube; separated by commas")->delimiter(',');
    simt->add_option("--types", line->types, "types of A and B: f32, f16, bf16")->delimiter(',')->capture_default_str();
    simt->add_option("--orders", line->orders, "orders of A and B: rr, rc, cr, cc (r: row-major)")
        ->delimiter(',')
        ->capture_default_str();
    return {simt,
            [line] { return [line, options = options_of(*line)] { return run_command(line->common, options); }; }};
}

}  // namespace tessera::bench
