/// tessera-bench: measures this library and its peers on the machine that it runs on. See README.md.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gemm/presets.hpp"
#include "gemm_bench.hpp"
#include "launch_bench.hpp"
#include "method/bandwidth.hpp"
#include "method/clock_sampler.hpp"
#include "method/nvml.hpp"
#include "problem/fusion.hpp"
#include "report/environment.hpp"
#include "report/gemm_summary.hpp"
#include "report/html.hpp"
#include "report/report.hpp"
#include "simt_bench.hpp"
#include "tiles_bench.hpp"
#include "tune_bench.hpp"

namespace tessera::bench {
namespace {

enum ExitCode : int { success = 0, failure = 1, bad_usage = 2, no_device = 77 };

struct CommandLine {
    // all commands
    int device = 0;
    std::string csv;
    std::string json;
    bool quick = false;
    std::size_t rounds = 0;  // 0: the command's default
    std::uint64_t seed = 1;
    // gemm
    std::vector<std::string> presets;
    std::vector<std::string> epilogues{"none"};
    std::vector<std::string> accumulations{"fast"};
    std::vector<std::string> sums{"f32"};
    std::vector<std::string> shapes;
    std::vector<std::string> gemm_types{"bf16"};
    std::vector<std::string> gemm_orders{"rc"};
    std::vector<std::int64_t> tokens;
    std::size_t count = PresetOptions{}.count;
    std::optional<std::string> split;
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
    bool remarks = false;
    bool reader = false;
    Tuning tuning;
    // tune
    std::size_t listed = TuneOptions{}.listed;
    int pause = static_cast<int>(GemmOptions{}.pause.count());
    // simt
    std::vector<std::string> sizes;
    std::vector<std::string> types{"f32"};
    std::vector<std::string> orders{"rr"};
    // launch
    std::string size = "32x32x32";
    std::vector<std::string> tile_shapes{
        "2048",           "4096",          "8192", "4096x11008x4096", "2048x5120x5120", "4096x4096x11008",
        "8192x2048x2048", "1024x6144x4096"};
    std::vector<std::string> tile_lengths{"1024", "2048", "4096", "8192", "16384"};
    std::int64_t tile_rows = TilesOptions{}.rows;
    std::size_t launches = LaunchOptions{}.launches_per_sample;
    double max_ratio = 1.25;
};

void add_problem_options(CLI::App& command, CommandLine& line)
{
    command.add_option(
        "presets", line.presets,
        fmt::format("lists of problems: {}; default without --shapes: hopper", fmt::join(preset_names(), ", ")));
    command.add_option("--shapes", line.shapes, "MxNxK, or N for a cube; separated by commas")->delimiter(',');
    command
        .add_option("--types", line.gemm_types,
                    "types for --shapes and models: input:output, or one for both; bf16, f16:f32, ...")
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--orders", line.gemm_orders,
                    "orders of A and B for --shapes and models: rr, rc, cr, cc (r: row-major)")
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--epilogue", line.epilogues,
                    fmt::format("epilogues, fused by both sides: {}", fmt::join(fusion_names(), ", ")))
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--accumulation", line.accumulations,
                    "how 8-bit products are added, by both sides: fast, two-level (the default of both libraries)")
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--sums", line.sums, "in what our mma_sync may add f16 products: f32, f16; peers add them in f32")
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--tokens", line.tokens, "models: M of every layer; default: one of 1 to 16384 per layer, in turn")
        ->delimiter(',')
        ->check(CLI::Range(std::int64_t{1}, max_extent));
    command.add_option("--count", line.count, "random: number of problems")
        ->check(CLI::Range(std::size_t{1}, std::size_t{100000}))
        ->capture_default_str();
    command.add_option("--split", line.split, "only these problems: fit (three in four) or held-out (the others)");
}

void add_common_options(CLI::App& command, CommandLine& line)
{
    command.add_option("--device", line.device, "CUDA device number")->check(CLI::Range(0, 1023));
    command.add_option("--csv", line.csv, "write all results to this file as CSV");
    command.add_option("--json", line.json, "write all results to this file as JSON");
    command.add_option("--repetitions", line.rounds, "samples per contender")->check(CLI::Range(1, 1000000));
    command.add_option("--seed", line.seed, "seed of the random inputs, and of the list random")->capture_default_str();
    command.add_flag("--quick", line.quick, "a quarter of the repetitions; simt without --sizes: small sizes only");
}

/// Opened before anything is measured, so that a path that cannot be written fails at once.
class OutputFile {
public:
    explicit OutputFile(const std::string& path) : path_(path)
    {
        if (!path.empty()) {
            file_.open(path);
            if (!file_) {
                throw std::invalid_argument(fmt::format("cannot write {}", path));
            }
        }
    }
    void write(const std::string& text)
    {
        if (!path_.empty() && !(file_ << text << std::flush)) {
            throw std::runtime_error(fmt::format("writing {} failed", path_));
        }
    }

private:
    std::string path_;
    std::ofstream file_;
};

Device require_device(int ordinal)
{
    if (ordinal >= Device::count()) {
        throw std::invalid_argument(
            fmt::format("--device {}: this machine has {} CUDA device(s), numbered from 0", ordinal, Device::count()));
    }
    return Device(ordinal);
}

SimtOptions simt_options_of(const CommandLine& line)
{
    SimtOptions options;
    std::vector<std::string> sizes = line.sizes;
    if (sizes.empty()) {
        sizes = {"256", "1000", "1024", "4096x4096x64"};
        if (!line.quick) {
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
    options.rounds = line.rounds != 0 ? line.rounds : line.quick ? options.rounds / 4 : options.rounds;
    options.seed = line.seed;
    return options;
}

GemmOptions gemm_options_of(const CommandLine& line)
{
    GemmOptions options;
    for (const std::string& type : line.gemm_types) {
        for (const std::string& orders : line.gemm_orders) {
            for (const std::string& shape : line.shapes) {
                const Types types = parse_types(type);
                options.problems.push_back({parse_shape(shape), types.input, parse_orders(orders), types.output});
            }
        }
    }
    std::vector<std::string> presets = line.presets;
    if (presets.empty() && line.shapes.empty()) {
        presets.emplace_back("hopper");
    }
    PresetOptions wanted{{}, {}, line.tokens, line.seed, line.count};
    std::transform(line.gemm_types.begin(), line.gemm_types.end(), std::back_inserter(wanted.types), parse_types);
    std::transform(line.gemm_orders.begin(), line.gemm_orders.end(), std::back_inserter(wanted.orders), parse_orders);
    for (const std::string& name : presets) {
        const std::vector<Problem> problems = preset(name, wanted);
        options.problems.insert(options.problems.end(), problems.begin(), problems.end());
    }
    if (line.split) {
        const Split split = parse_split(*line.split);
        std::erase_if(options.problems, [&](const Problem& problem) { return split_of(problem) != split; });
        if (options.problems.empty()) {
            throw std::invalid_argument(fmt::format("--split {}: none of the problems is in this half", *line.split));
        }
    }
    const std::vector<Problem> plain = std::exchange(options.problems, {});
    for (const Problem& problem : plain) {
        for (const std::string& epilogue : line.epilogues) {
            const Fusion fusion = parse_fusion(epilogue);
            if (has_scales(fusion) && !is_float8(problem.input)) {
                throw std::invalid_argument(
                    fmt::format("--epilogue {} is for 8-bit inputs, and A and B are {}: choose "
                                "--types f8e4m3 or another epilogue",
                                epilogue, tessera::to_string(problem.input)));
            }
            if (is_gated(fusion) && problem.shape.n % 2 != 0) {
                throw std::invalid_argument(fmt::format(
                    "--epilogue {} needs two halves of N, which is {}: choose an even N", epilogue, problem.shape.n));
            }
            // Inputs of 8 bits and of f16 have two ways to accumulate each, others have one.
            Problem fused = problem;
            fused.fusion = fusion;
            for (const std::string& accumulation : line.accumulations) {
                fused.accumulation = parse_accumulation(accumulation);
                for (const std::string& sums : line.sums) {
                    fused.sums = parse_sums(sums);
                    if ((is_float8(problem.input) || &accumulation == &line.accumulations.front()) &&
                        (problem.input == ElementType::f16 || &sums == &line.sums.front())) {
                        options.problems.push_back(fused);
                    }
                }
            }
        }
    }
    options.variants = line.variants;
    options.peers = line.peers != "none";
    options.rounds = line.rounds != 0 ? line.rounds : line.quick ? options.rounds / 4 : options.rounds;
    options.pause = std::chrono::milliseconds(line.pause);
    options.config = line.config;
    options.shortlist = line.shortlist;
    options.candidates_file = line.candidates;
    if (!line.candidates.empty() && !line.config) {
        throw std::invalid_argument("--candidates needs --config: with --config \"\", it has every configuration");
    }
    options.remarks = line.remarks;
    options.reader = line.reader;
    options.tuning = line.tuning;
    options.most_sets = line.most_sets;
    options.sample = std::chrono::milliseconds(line.sample);
    options.time_limit_seconds = line.time_limit;
    options.seed = line.seed;
    return options;
}

TuneOptions tune_options_of(const CommandLine& line)
{
    TuneOptions options;
    options.problems = gemm_options_of(line).problems;
    options.tuning.rounds = line.rounds != 0 ? line.rounds : options.tuning.rounds;
    options.tuning.sample_seconds = 1e-3 * line.sample;
    options.tuning.seed = line.seed;
    options.listed = line.listed;
    options.cache_file = line.tuning.cache_file;
    return options;
}

TilesOptions tiles_options_of(const CommandLine& line)
{
    TilesOptions options;
    for (const std::string& shape : line.tile_shapes) {
        if (shape != "none") {
            options.shapes.push_back(parse_shape(shape));
        }
    }
    for (const std::string& length : line.tile_lengths) {
        if (length != "none") {
            options.lengths.push_back(parse_shape(length).m);
        }
    }
    options.rows = line.tile_rows;
    options.rounds = line.rounds != 0 ? line.rounds : options.rounds;
    options.sample = std::chrono::milliseconds(line.sample);
    options.seed = line.seed;
    return options;
}

LaunchOptions launch_options_of(const CommandLine& line)
{
    LaunchOptions options;
    options.shape = parse_shape(line.size);
    options.launches_per_sample = line.launches;
    options.rounds = line.rounds != 0 ? line.rounds : line.quick ? options.rounds / 4 : options.rounds;
    options.seed = line.seed;
    return options;
}

void print(const std::string& text)
{
    fmt::print("{}\n", text);
    std::fflush(stdout);
}

int exit_code_of(const std::vector<ProblemReport>& reports)
{
    for (const ProblemReport& report : reports) {
        for (const Measurement& measurement : report.measurements) {
            if (measurement.outcome == Outcome::wrong) {
                fmt::print(stderr, "tessera-bench: wrong results; see WRONG above\n");
                return failure;
            }
        }
    }
    return success;
}

/// Clock and power of a device during a run, and what the environment says about them.
class Monitor {
public:
    explicit Monitor(const Device& device)
    {
        try {
            nvml_.emplace(pci_bus_id_of(device));
            sampler_.emplace([this] { return nvml_->read(); });
        } catch (const std::runtime_error& error) {
            refusal_ = fmt::format("not read: {}", error.what());
        }
    }

    /// Null if they cannot be read.
    ClockSampler* sampler() { return sampler_ ? &*sampler_ : nullptr; }

    /// Adds what was read to the environment, and prints it.
    void finish(Environment& environment, const std::vector<ProblemReport>& reports) const
    {
        const std::string found = describe_clocks(reports);
        const std::string text = !refusal_.empty() ? refusal_
                                 : found.empty()   ? "not read: every sample was too short"
                                                   : found;
        environment.emplace_back("while measuring", text);
        print(fmt::format("While measuring: {}", text));
    }

private:
    std::string refusal_;
    std::optional<NvmlDevice> nvml_;
    std::optional<ClockSampler> sampler_;  // after what it reads
};

int run_simt_command(const CommandLine& line, SimtOptions options)
{
    const Device device = require_device(line.device);
    OutputFile csv(line.csv);
    OutputFile json(line.json);
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

/// The device's ceilings as given on the command line.
Ceilings ceilings_of(const CommandLine& line)
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

int run_gemm_command(const CommandLine& line, GemmOptions options)
{
    const Device device = require_device(line.device);
    OutputFile csv(line.csv);
    OutputFile json(line.json);
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
    return exit_code_of(reports);
}

int run_launch_command(const CommandLine& line, const LaunchOptions& options)
{
    const Device device = require_device(line.device);
    OutputFile csv(line.csv);
    OutputFile json(line.json);
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

int run(int argc, char** argv)
{
    CommandLine line;
    CLI::App app("Compares Tessera with cuBLASLt, cuBLAS, OpenBLAS and raw launches on this machine.", "tessera-bench");
    app.require_subcommand(0, 1);
    app.footer(
        "The default command is simt.\n"
        "Exit codes: 0 success, 1 wrong result or failure, 2 invalid command line, 77 no CUDA device.");

    CLI::App* gemm =
        app.add_subcommand("gemm", "compare Gemm::launch with cuBLASLt: its heuristic's choice and its best of 16");
    add_common_options(*gemm, line);
    add_problem_options(*gemm, line);
    gemm->add_option("--variant", line.variants, "Tessera's variants, separated by commas, or none")
        ->delimiter(',')
        ->capture_default_str();
    gemm->add_option("--peers", line.peers, "peers: cublaslt or none")
        ->check(CLI::IsMember({"cublaslt", "none"}))
        ->capture_default_str();
    gemm->add_flag("--reader", line.reader, "also measure a kernel that only reads A and B, as a lower bound on time");
    gemm->add_option("--time-limit", line.time_limit,
                     "seconds; reached by fewer rounds, then fewer problems; 0: no limit")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
    gemm->add_option("--sample", line.sample, "shortest sample, in milliseconds")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    gemm->add_option("--html", line.html, "write a report with charts to this file");
    gemm->add_option("--peak", line.peaks,
                     "peak rates for the report's rooflines, in TFLOP/s: bf16=800,f8e4m3=1600; "
                     "default: the fastest product")
        ->delimiter(',');
    gemm->add_option("--bandwidth", line.bandwidth, "memory bandwidth for the rooflines, in TB/s; default: measured")
        ->check(CLI::Range(0.001, 1000.0));
    gemm->add_option("--config", line.config,
                     "also measure the fastest Hopper configuration whose description contains this text");
    gemm->add_option("--shortlist", line.shortlist,
                     "with --config: only what the cost model expects within this factor of its best, with one raster")
        ->check(CLI::Range(1.0, 100.0));
    gemm->add_option("--candidates", line.candidates,
                     "with --config: write the time of each of these configurations, and what the cost model expects");
    gemm->add_flag("--tune", line.tuning.measure, "tune each problem and also measure the tuned choice");
    gemm->add_option("--tuning-cache", line.tuning.cache_file,
                     "with --tune, save the choices to this file; without, measure the choices in it");
    gemm->add_flag("--remarks", line.remarks, "print each contender's choice");
    gemm->add_option("--sets", line.most_sets, "most operand sets; with few, operands stay in the L2 cache")
        ->check(CLI::Range(std::size_t{1}, max_graph_launches))
        ->capture_default_str();
    gemm->add_option("--pause", line.pause, "idle time before each sample, in milliseconds")
        ->check(CLI::Range(0, 10000))
        ->capture_default_str();

    CLI::App* tune = app.add_subcommand("tune", "run Gemm::tune; print the candidates' times and the choice");
    add_problem_options(*tune, line);
    tune->add_option("--device", line.device, "CUDA device number")->check(CLI::Range(0, 1023));
    tune->add_option("--repetitions", line.rounds, "samples per finalist")->check(CLI::Range(1, 1000000));
    tune->add_option("--sample", line.sample, "shortest sample of a finalist, in milliseconds")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    tune->add_option("--seed", line.seed, "seed of the random operands, and of the list random")->capture_default_str();
    tune->add_option("--list", line.listed, "candidates to list")->capture_default_str();
    tune->add_option("--tuning-cache", line.tuning.cache_file, "save the choices to this file");

    CLI::App* tiles =
        app.add_subcommand("tiles", "measure tile programs: GEMM beside Gemm::launch, rows beside a copy, attention");
    tiles->add_option("--device", line.device, "CUDA device number")->check(CLI::Range(0, 1023));
    tiles->add_option("--shapes", line.tile_shapes, "products: MxNxK, or N for a cube; separated by commas, or none")
        ->delimiter(',')
        ->capture_default_str();
    tiles->add_option("--rows", line.tile_rows, "rows of 8192 elements, for softmax and layer norm; 0: neither")
        ->check(CLI::Range(0, 1 << 20))
        ->capture_default_str();
    tiles->add_option("--lengths", line.tile_lengths, "tokens of attention with 16 heads; separated by commas, or none")
        ->delimiter(',')
        ->capture_default_str();
    tiles->add_option("--repetitions", line.rounds, "samples of each")->check(CLI::Range(1, 1000000));
    tiles->add_option("--sample", line.sample, "shortest sample, in milliseconds")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    tiles->add_option("--seed", line.seed, "seed of the random operands")->capture_default_str();

    CLI::App* simt = app.add_subcommand("simt", "compare the SIMT ladder with cuBLAS in true fp32 and with the CPU");
    add_common_options(*simt, line);
    simt->add_option("--sizes", line.sizes, "MxNxK, or N for a cube; separated by commas")->delimiter(',');
    simt->add_option("--types", line.types, "types of A and B: f32, f16, bf16")->delimiter(',')->capture_default_str();
    simt->add_option("--orders", line.orders, "orders of A and B: rr, rc, cr, cc (r: row-major)")
        ->delimiter(',')
        ->capture_default_str();

    CLI::App* launch = app.add_subcommand("launch", "compare the CPU time of Gemm::launch with cudaLaunchKernelExC");
    add_common_options(*launch, line);
    launch->add_option("--size", line.size, "MxNxK")->capture_default_str();
    launch->add_option("--launches", line.launches, "launches per sample")
        ->check(CLI::Range(std::size_t{1}, max_outstanding_launches))
        ->capture_default_str();
    launch->add_option("--max-ratio", line.max_ratio, "exit with 1 if the ratio is higher; 0: no limit")
        ->check(CLI::Range(0.0, 1000.0))
        ->capture_default_str();

    // simt is the default: its options may be given without the command's name.
    std::vector<std::string> arguments(argv + 1, argv + argc);
    const bool asks_for_help = !arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h");
    if (arguments.empty() || (arguments[0].starts_with('-') && !asks_for_help)) {
        arguments.insert(arguments.begin(), "simt");
    }
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects the vector in reverse
    try {
        app.parse(arguments);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? success : bad_usage;
    }

    const GemmOptions gemm_options = gemm_options_of(line);
    const SimtOptions simt_options = simt_options_of(line);
    const LaunchOptions launch_options = launch_options_of(line);
    const TuneOptions tune_options = tune_options_of(line);
    const TilesOptions tiles_options = tiles_options_of(line);
    if (Device::count() == 0) {
        fmt::print(stderr, "tessera-bench: no CUDA device found (or no driver for it); nothing was measured\n");
        return no_device;
    }
    if (gemm->parsed()) {
        return run_gemm_command(line, gemm_options);
    }
    if (tiles->parsed()) {
        run_tiles(require_device(line.device), tiles_options);
        return success;
    }
    if (tune->parsed()) {
        run_tune(require_device(line.device), tune_options);
        return success;
    }
    return launch->parsed() ? run_launch_command(line, launch_options) : run_simt_command(line, simt_options);
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv)  // NOLINT(bugprone-exception-escape): only if stderr is broken
{
    using namespace tessera::bench;
    try {
        return run(argc, argv);
    } catch (const std::invalid_argument& error) {  // the command line asks for something impossible
        fmt::print(stderr, "tessera-bench: {}\n", error.what());
        return bad_usage;
    } catch (const std::exception& error) {
        fmt::print(stderr, "tessera-bench: {}\n", error.what());
        return failure;
    }
}
