/// tessera-emulator-bench: compares the time of emulated kernels with the same work on the CPU. Needs no GPU.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/simt/simt_config.hpp"
#include "method/statistics.hpp"
#include "peers/cpu.hpp"
#include "tests/emulator/programs/blackwell_gemm.cuh"
#include "tests/emulator/support/run_ptx.hpp"

namespace tessera::bench {
namespace {

using emulator::test::PtxRun;

enum ExitCode : int { success = 0, failure = 1, bad_usage = 2 };

struct Row {
    std::string name;
    Summary seconds = {};
    double limit = 0;  ///< on the ratio to the first row; 0: no limit
};

std::string text_of(const std::string& path)
{
    std::ifstream file(path);
    std::stringstream text;
    if (!(text << file.rdbuf())) {
        throw std::runtime_error(fmt::format("cannot read {}", path));
    }
    return text.str();
}

double seconds_of(const std::function<void()>& work)
{
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<float> random_floats(std::size_t count, unsigned seed)
{
    std::mt19937 generator(seed);
    std::uniform_int_distribution<int> numbers(-127, 127);  // exact in bf16
    std::vector<float> values(count);
    std::generate(values.begin(), values.end(), [&] { return static_cast<float>(numbers(generator)) / 64; });
    return values;
}

/// @throws std::runtime_error if a launch failed or reported something, or if results differ
void require_right(const PtxRun& run, const emulator::LaunchResult& result, const std::vector<float>& got,
                   const std::vector<float>& expected, double tolerance)
{
    if (result.code != 0 || run.report.total() != 0) {
        throw std::runtime_error(result.message + "\n" + run.report.text());
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (!(std::abs(got[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])))) {
            throw std::runtime_error(fmt::format("element {} is {}, but {} on the CPU", i, got[i], expected[i]));
        }
    }
}

/// Takes samples of all contenders in turn, so that other load on the machine affects all alike.
std::vector<Row> measure(std::size_t rounds, std::vector<std::pair<Row, std::function<double()>>> contenders)
{
    std::vector<std::vector<double>> samples(contenders.size());
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            samples[i].push_back(contenders[i].second());
        }
    }
    std::vector<Row> rows;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        rows.push_back(contenders[i].first);
        rows.back().seconds = summarize(samples[i]);
    }
    return rows;
}

/// Returns true if all ratios are within their limits.
bool print_table(const std::string& title, const std::vector<Row>& rows)
{
    fmt::print("{}\n  {:<44}{:>10}{:>10}{:>10}{:>9}{:>8}\n", title, "", "median s", "min", "max", "ratio", "limit");
    bool within = true;
    for (const Row& row : rows) {
        const double ratio = row.seconds.median / rows.front().seconds.median;
        const bool good = row.limit == 0 || ratio <= row.limit;
        within = within && good;
        fmt::print("  {:<44}{:>10.4f}{:>10.4f}{:>10.4f}{:>9.2f}{:>8}{}\n", row.name, row.seconds.median,
                   row.seconds.minimum, row.seconds.maximum, ratio,
                   row.limit == 0 ? "" : fmt::format("{:.0f}", row.limit), good ? "" : "  too slow");
    }
    return within;
}

std::vector<Row> tiled_against_plain_loop(std::size_t rounds, int size)
{
    const auto elements = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
    const std::vector<float> a = random_floats(elements, 1);
    const std::vector<float> b = random_floats(elements, 2);
    std::vector<float> expected(elements);
    const Problem problem{.shape = {size, size, size}, .orders = {}};

    PtxRun run(text_of(TESSERA_EMULATOR_BENCH_PTX "/tiled.ptx"));
    run.options.threads = 0;
    const std::uint64_t a_address = run.buffer(a);
    const std::uint64_t b_address = run.buffer(b);
    const std::uint64_t d_address = run.uninitialized(elements * sizeof(float));
    const auto tiles =
        static_cast<std::uint32_t>((size + kernels::Tiled::config.block_m - 1) / kernels::Tiled::config.block_m);
    const auto operand = [&](std::uint64_t address) {
        return kernels::Operand{std::bit_cast<const void*>(address), size, 1, 0};
    };
    kernels::GemmArguments arguments{};
    arguments.a = operand(a_address);
    arguments.b = operand(b_address);
    arguments.d = std::bit_cast<void*>(d_address);
    arguments.d_row_stride = size;
    arguments.d_column_stride = 1;
    arguments.m = arguments.n = arguments.k = size;
    arguments.alpha = 1;
    arguments.raster = TileRaster(tiles, tiles, 16);
    arguments.a_type = arguments.b_type = arguments.d_type = arguments.bias_type = ElementType::f32;
    const std::string kernel = run.module().kernel_names().front();
    const auto emulate = [&](bool check) {
        run.options.check = check;
        emulator::LaunchResult result;
        const double seconds = seconds_of([&] {
            result = run.launch(
                kernel, {.grid = {tiles * tiles, 1, 1}, .block = {kernels::Tiled::config.threads(), 1, 1}}, arguments);
        });
        require_right(run, result, run.read<float>(d_address, elements), expected, 1e-4);
        return seconds;
    };
    return measure(rounds, {{{.name = "plain loop, -O2, one core"},
                             [&] { return seconds_of([&] { multiply_plain_loop(problem, a, b, expected); }); }},
                            {{.name = "tiled, emulated, all checks", .limit = 60}, [&] { return emulate(true); }},
                            {{.name = "tiled, emulated, no checks", .limit = 60}, [&] { return emulate(false); }}});
}

std::vector<Row> blackwell_against_openblas(std::size_t rounds, int size)
{
    using namespace tessera_emulator_test;
    constexpr int group = 2;
    const auto elements = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
    const std::vector<float> a = random_floats(elements, 3);
    const std::vector<float> b = random_floats(elements, 4);  // n x k: its transpose is the right factor
    std::vector<float> expected(elements);
    const Problem problem{.shape = {size, size, size}, .orders = {.a_row_major = true, .b_row_major = false}};

    const auto bf16 = [](const std::vector<float>& values) {
        std::vector<std::uint16_t> bits;
        for (const float value : values) {
            bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
        }
        return bits;
    };
    PtxRun run(text_of(TESSERA_EMULATOR_BENCH_PTX "/blackwell.ptx"));
    run.options.threads = 0;
    run.options.numerics = emulator::Numerics::fast;
    const std::uint64_t a_address = run.buffer(bf16(a));
    const std::uint64_t b_address = run.buffer(bf16(b));
    const std::uint64_t d_address = run.uninitialized(elements * 2);
    const auto map = [&](std::uint64_t address) {
        emulator::TensorMap result;
        result.element = emulator::TensorElement::bf16;
        result.rank = 2;
        result.address = address;
        result.extents = {static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(size), 1, 1, 1};
        result.strides = {static_cast<std::uint64_t>(size) * 2};
        result.box = {block_k, rows_per_cta, 1, 1, 1};
        result.swizzle = emulator::TensorSwizzle::span_128;
        return encode(result);
    };
    const std::string kernel = run.module().kernel_names().front();
    const auto emulate = [&](bool check) {
        run.options.check = check;
        emulator::LaunchResult result;
        const double seconds = seconds_of([&] {
            result = run.launch(
                kernel,
                {.grid = {static_cast<unsigned>(size / rows_per_cta), static_cast<unsigned>(size / tile_n<group>), 1},
                 .block = {threads, 1, 1},
                 .cluster = {group, 1, 1},
                 .dynamic_shared = shared_bytes},
                map(a_address), map(b_address), d_address, size, size);
        });
        std::vector<float> got;
        for (const std::uint16_t bits : run.read<std::uint16_t>(d_address, elements)) {
            got.push_back(std::bit_cast<float>(std::uint32_t{bits} << 16));
        }
        require_right(run, result, got, expected, 0x1p-7);
        return seconds;
    };
    return measure(rounds, {{{.name = "OpenBLAS sgemm"},
                             [&] { return seconds_of([&] { multiply_openblas(problem, a, b, expected); }); }},
                            {{.name = "tcgen05, emulated, no checks", .limit = 15}, [&] { return emulate(false); }},
                            {{.name = "tcgen05, emulated, all checks"}, [&] { return emulate(true); }}});
}

int run(int argc, char** argv)
{
    CLI::App app("Compares the time of emulated kernels with the same work on the CPU.", "tessera-emulator-bench");
    std::size_t rounds = 5;
    int simt_size = 512;
    int tensor_size = 2048;
    app.add_option("--repetitions", rounds, "samples per contender")->check(CLI::Range(1, 1000))->capture_default_str();
    app.add_option("--simt-size", simt_size, "extent of the SIMT product, a cube")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--tensor-size", tensor_size, "extent of the tcgen05 product, a cube; a multiple of 256")
        ->check(CLI::Range(256, 8192))
        ->capture_default_str();
    bool no_limits = false;
    app.add_flag("--no-limits", no_limits, "do not fail if a ratio is above its limit");
    app.footer("Exit codes: 0 success, 1 wrong result, failure or a ratio above its limit, 2 invalid command line.");
    try {
        app.parse(argc, argv);
        if (tensor_size % 256 != 0) {
            throw CLI::ValidationError("--tensor-size", "must be a multiple of 256");
        }
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? success : bad_usage;
    }

    fmt::print("{} hardware threads; {}\n\n", std::thread::hardware_concurrency(), describe_openblas());
    bool within = print_table(fmt::format("tiled SIMT kernel, {0}x{0}x{0}, f32", simt_size),
                              tiled_against_plain_loop(rounds, simt_size));
    fmt::print("\n");
    if (has_openblas()) {
        within = print_table(fmt::format("tcgen05 pair kernel, {0}x{0}x{0}, bf16, fast numerics", tensor_size),
                             blackwell_against_openblas(rounds, tensor_size)) &&
                 within;
    } else {
        fmt::print("This build has no OpenBLAS, so the tcgen05 product is not measured.\n");
    }
    return within || no_limits ? success : failure;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv)  // NOLINT(bugprone-exception-escape): only if stderr is broken
{
    try {
        return tessera::bench::run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "tessera-emulator-bench: {}\n", error.what());
        return tessera::bench::failure;
    }
}
