/// tessera-bench-distributed: measures products sharded over the GPUs of this host, in one process, a thread for each GPU.
///
/// Each shape is measured as the product alone, NCCL's communication alone, one after the other, and ours.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <numeric>
#include <thread>

#include "rank_bench.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {
namespace {

enum ExitCode : int { success = 0, failure = 1, bad_usage = 2, no_device = 77 };

struct Line {
    int ranks = 2;
    std::vector<std::string> shapes{"16384x8192x8192", "8192x8192x8192", "4096x14336x4096",
                                    "8192x4096x4096",  "512x8192x8192",  "64x8192x8192"};
    std::vector<std::string> collectives{"all-gather", "reduce-scatter"};
    std::string csv;
    double timeout = 60;
    DistributedOptions options;
};

DistributedShape shape_of(const std::string& text)
{
    DistributedShape shape{};
    int end = 0;
    if (std::sscanf(text.c_str(), "%ldx%ldx%ld%n", &shape.m, &shape.n, &shape.k, &end) != 3 ||
        static_cast<std::size_t>(end) != text.size() || shape.m < 1 || shape.n < 1 || shape.k < 1) {
        throw std::invalid_argument(fmt::format("\"{}\" is no shape: write MxNxK", text));
    }
    return shape;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

/// Prints the reports. Returns false if a result was wrong.
bool print_reports(const std::vector<ShapeReport>& reports, const Line& line)
{
    bool all_right = true;
    std::ofstream csv;
    if (!line.csv.empty()) {
        csv.open(line.csv);
        csv << "collective,m,n,k,contender,median_us,least_us,to_product,to_in_turn,difference\n";
    }
    for (const ShapeReport& report : reports) {
        const auto& [m, n, k] = report.shape;
        fmt::print("\n{} {}x{}x{}, bf16, {} ranks\n", to_string(report.collective), m, n, k, line.ranks);
        for (const std::string& text : report.explained) {
            if (line.options.explains) {
                fmt::print("{}", text);
            }
        }
        const double product = median(report.contenders[0].seconds);
        const double in_turn = median(report.contenders[2].seconds);
        for (const ContenderTimes& contender : report.contenders) {
            const double seconds = median(contender.seconds);
            const double least = *std::min_element(contender.seconds.begin(), contender.seconds.end());
            const bool is_right = contender.largest_difference <= 1;
            all_right = all_right && is_right;
            fmt::print("  {:<28} {:>9.1f} us  (least {:>9.1f})  {:>6.3f} of the product  {:>6.3f} of in turn{}\n",
                       contender.name, seconds * 1e6, least * 1e6, seconds / product, seconds / in_turn,
                       is_right ? "" : "  WRONG RESULT");
            if (csv) {
                csv << fmt::format("{},{},{},{},\"{}\",{:.2f},{:.2f},{:.4f},{:.4f},{:.3g}\n",
                                   to_string(report.collective), m, n, k, contender.name, seconds * 1e6, least * 1e6,
                                   seconds / product, seconds / in_turn, contender.largest_difference);
            }
        }
    }
    return all_right;
}

int measure(Line& line)
{
    if (Device::count() < line.ranks) {
        fmt::print(stderr, "tessera-bench-distributed: {} GPUs are needed, and there are {}\n", line.ranks,
                   Device::count());
        return no_device;
    }
    std::vector<int> devices(static_cast<std::size_t>(line.ranks));
    std::iota(devices.begin(), devices.end(), 0);
    distributed::CommunicatorOptions plain{.timeout = std::chrono::milliseconds(static_cast<int>(line.timeout * 1000)),
                                           .max_ctas = 0,
                                           .copy_engines = false};
    const auto plain_ranks = distributed::Communicator::of_devices(devices, plain);
    std::map<std::string, std::vector<distributed::Communicator>> ours;
    for (const std::string& moved : line.options.moved) {
        distributed::CommunicatorOptions own = plain;
        own.max_ctas = line.options.max_ctas;
        own.copy_engines = moved == "copies";
        ours[moved] = distributed::Communicator::of_devices(devices, own);
        fmt::print("{}: {}\n", moved, ours[moved].front().describe());
    }
    Meeting meeting(line.ranks);
    std::vector<std::thread> threads;
    std::vector<std::string> errors(devices.size());
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        threads.emplace_back([&, rank] {
            RankCommunicators mine{.plain = const_cast<distributed::Communicator*>(&plain_ranks[rank]), .ours = {}};
            for (auto& [moved, ranks] : ours) {
                mine.ours[moved] = &ranks[rank];
            }
            try {
                run_rank(mine, line.options, meeting);
            } catch (const std::exception& error) {
                fmt::print(stderr, "tessera-bench-distributed: rank {}: {}\n", rank, error.what());
                std::fflush(nullptr);
                std::_Exit(failure);  // the other threads may wait for this one
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return print_reports(meeting.reports, line) ? success : failure;
}

int run(int argc, char** argv)
{
    Line line;
    line.options.moved = {"copies", "kernels"};
    CLI::App app("Measures products sharded over the GPUs of this host.", "tessera-bench-distributed");
    app.add_option("--ranks", line.ranks, "GPUs")->check(CLI::Range(2, 64))->capture_default_str();
    app.add_option("--shapes", line.shapes, "MxNxK of the whole product, ...")->delimiter(',');
    app.add_option("--collectives", line.collectives, "all-gather, reduce-scatter, all-reduce")->delimiter(',');
    app.add_option("--chunks", line.options.chunks, "numbers of chunks to measure besides the library's choice")
        ->delimiter(',');
    app.add_option("--moved", line.options.moved, "copies, kernels: what moves data")
        ->delimiter(',')
        ->check(CLI::IsMember({"copies", "kernels"}));
    app.add_option("--max-ctas", line.options.max_ctas, "most CTAs of NCCL's kernels; 0: NCCL's choice")
        ->capture_default_str();
    app.add_option("--rounds", line.options.rounds, "samples of each contender")->capture_default_str();
    app.add_option("--launches", line.options.launches, "launches of a sample")->capture_default_str();
    app.add_option("--timeout", line.timeout, "seconds until a wait fails")->capture_default_str();
    app.add_option("--csv", line.csv, "file to write");
    app.add_flag("--eager{false}", line.options.in_graph, "launch from the host instead of a graph");
    app.add_flag("--explain", line.options.explains, "print the schedules");
    app.add_flag("--no-check{false}", line.options.verifies, "do not compare results");
    try {
        std::vector<std::string> arguments(argv + 1, argv + argc);
        std::reverse(arguments.begin(), arguments.end());  // CLI11 expects the vector in reverse
        app.parse(arguments);
        for (const std::string& text : line.shapes) {
            line.options.shapes.push_back(shape_of(text));
        }
        for (const std::string& name : line.collectives) {
            if (name != "all-gather" && name != "reduce-scatter" && name != "all-reduce") {
                throw std::invalid_argument(fmt::format("\"{}\" is no collective", name));
            }
            line.options.collectives.push_back(name == "all-gather"       ? Collective::all_gather
                                               : name == "reduce-scatter" ? Collective::reduce_scatter
                                                                          : Collective::all_reduce);
        }
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? success : bad_usage;
    } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "tessera-bench-distributed: {}\n", error.what());
        return bad_usage;
    }
    return measure(line);
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv)  // NOLINT(bugprone-exception-escape): only if stderr is broken
{
    try {
        return tessera::bench::run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "tessera-bench-distributed: {}\n", error.what());
        return 1;
    }
}
