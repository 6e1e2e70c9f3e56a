#include "tiles_bench.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "method/statistics.hpp"
#include "method/timer.hpp"
#include "problem/random.hpp"
#include "tessera/tessera.hpp"
#include "tiles/tile_programs.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t heads = 16;

class Tiles {
public:
    Tiles(const Device& device, const TilesOptions& options) : options_(&options), stream_(device), timer_(device) {}

    void products(const Shape& shape)
    {
        const auto elements = static_cast<std::size_t>(shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
        const std::size_t sets = std::clamp<std::size_t>(rotated_bytes / (elements * sizeof(bf16)), 1, 64);
        std::vector<DeviceBuffer<bf16>> a, b, d;
        for (std::size_t set = 0; set < sets; ++set) {
            a.push_back(normal(shape.m * shape.k));
            b.push_back(normal(shape.k * shape.n));
            d.emplace_back(stream_, static_cast<std::size_t>(shape.m * shape.n));
        }
        const auto view_a = [&](std::size_t set) { return a[set].matrix(shape.m, shape.k); };
        const auto view_b = [&](std::size_t set) { return b[set].matrix(shape.k, shape.n); };
        const auto view_d = [&](std::size_t set) { return d[set].matrix(shape.m, shape.n); };
        std::vector<Contender> contenders{{"Gemm::launch", [&](StreamRef stream, std::size_t set) {
                                               Gemm::launch(stream, view_a(set), view_b(set), view_d(set));
                                           }}};
        contenders[0].launch(stream_, 0);
        const std::vector<bf16> expected = d[0].to_vector();
        for (const TileGemmConfig& config : tile_programs().products) {
            contenders.push_back(
                {std::string(config.name), [&, launch = config.launch](StreamRef stream, std::size_t set) {
                     launch(stream, view_a(set), view_b(set), view_d(set));
                 }});
            contenders.back().launch(stream_, 0);
            require_close(d[0].to_vector(), expected, bf16_tolerance, contenders.back().name);
        }
        const double flops =
            2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
        const std::vector<double> seconds = measure(contenders, sets);
        std::string line = fmt::format("| {}x{}x{} | {:.0f}", shape.m, shape.n, shape.k, flops / seconds[0] * 1e-12);
        for (std::size_t i = 1; i < seconds.size(); ++i) {
            line += fmt::format(" | {:.0f} ({:.2f})", flops / seconds[i] * 1e-12, seconds[0] / seconds[i]);
        }
        const double best = *std::min_element(seconds.begin() + 1, seconds.end());
        print(fmt::format("{} | {:.2f} |", line, seconds[0] / best));
    }

    void rows()
    {
        const std::int64_t columns = most_row_elements;
        const auto count = options_->rows * columns;
        const auto x = normal(count);
        DeviceBuffer<bf16> y(stream_, static_cast<std::size_t>(count));
        const auto from = x.matrix(options_->rows, columns);
        const auto to = y.matrix(options_->rows, columns);
        const auto bytes = static_cast<std::size_t>(count) * sizeof(bf16);
        const std::vector<Contender> contenders{
            {"copy",
             [&](StreamRef stream, std::size_t) {
                 if (cudaMemcpyAsync(y.data(), x.data(), bytes, cudaMemcpyDeviceToDevice, stream.get()) !=
                     cudaSuccess) {
                     throw std::runtime_error("cudaMemcpyAsync failed");
                 }
             }},
            {"softmax", [&](StreamRef stream, std::size_t) { tile_programs().softmax(stream, from, to); }},
            {"layer norm", [&](StreamRef stream, std::size_t) { tile_programs().layer_norm(stream, from, to); }}};
        const std::vector<double> seconds = measure(contenders, 1);
        for (std::size_t i = 0; i < seconds.size(); ++i) {
            print(fmt::format("| {} | {:.2f} | {:.2f} |", contenders[i].name,
                              2.0 * static_cast<double>(bytes) / seconds[i] * 1e-12, seconds[0] / seconds[i]));
        }
    }

    void attention(std::int64_t length)
    {
        const BatchLayout layout{.rows = length, .columns = attention_depth, .count = heads};
        const auto count = heads * length * attention_depth;
        const auto q = normal(count);
        const auto k = normal(count);
        const auto v = normal(count);
        DeviceBuffer<bf16> z(stream_, static_cast<std::size_t>(count));
        std::vector<Contender> contenders;
        for (const bool causal : {false, true}) {
            contenders.push_back({causal ? "causal" : "all", [&, causal](StreamRef stream, std::size_t) {
                                      tile_programs().attention(stream, q.matrices(layout), k.matrices(layout),
                                                                v.matrices(layout), z.matrices(layout), causal);
                                  }});
        }
        const double flops = 4.0 * static_cast<double>(count) * static_cast<double>(length);
        const std::vector<double> seconds = measure(contenders, 1);
        print(fmt::format("| {} | {:.0f} | {:.0f} |", length, flops / seconds[0] * 1e-12,
                          flops / 2 / seconds[1] * 1e-12));
    }

    /// Compares programs with bounds checks and without: the best product of each, rows, and attention.
    void compare_products(const Shape& shape)
    {
        const auto a = normal(shape.m * shape.k);
        const auto b = normal(shape.k * shape.n);
        DeviceBuffer<bf16> d(stream_, static_cast<std::size_t>(shape.m * shape.n));
        std::vector<Contender> contenders;
        std::vector<std::vector<bf16>> results;
        for (const TilePrograms* const programs : {&tile_programs(), &whole_tile_programs()}) {
            for (std::size_t i = 0; i < whole_tile_programs().products.size(); ++i) {
                contenders.push_back({std::string(programs->products[i].name),
                                      [&, launch = programs->products[i].launch](StreamRef stream, std::size_t) {
                                          launch(stream, a.matrix(shape.m, shape.k), b.matrix(shape.k, shape.n),
                                                 d.matrix(shape.m, shape.n));
                                      }});
                contenders.back().launch(stream_, 0);
                results.push_back(d.to_vector());
                require_close(results.back(), results.front(), bf16_tolerance, contenders.back().name);
            }
        }
        const double flops =
            2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
        const std::vector<double> seconds = measure(contenders, 1);
        const auto half = static_cast<std::ptrdiff_t>(seconds.size() / 2);
        const double safe = *std::min_element(seconds.begin(), seconds.begin() + half);
        const double unchecked = *std::min_element(seconds.begin() + half, seconds.end());
        print_comparison(fmt::format("product, {}x{}x{}", shape.m, shape.n, shape.k), "TFLOP/s", flops * 1e-12, safe,
                         unchecked);
    }
    void compare_rows()
    {
        const std::int64_t columns = most_row_elements;
        const auto x = normal(options_->rows * columns);
        DeviceBuffer<bf16> y(stream_, x.size());
        const auto from = x.matrix(options_->rows, columns);
        const auto to = y.matrix(options_->rows, columns);
        std::vector<Contender> contenders;
        for (const auto program : {&TilePrograms::softmax, &TilePrograms::layer_norm}) {
            for (const TilePrograms* const programs : {&tile_programs(), &whole_tile_programs()}) {
                contenders.push_back(
                    {"rows", [&, run = programs->*program](StreamRef stream, std::size_t) { run(stream, from, to); }});
            }
        }
        const std::vector<double> seconds = measure(contenders, 1);
        const double terabytes = 2.0 * static_cast<double>(x.size() * sizeof(bf16)) * 1e-12;
        print_comparison("softmax", "TB/s", terabytes, seconds[0], seconds[1]);
        print_comparison("layer norm", "TB/s", terabytes, seconds[2], seconds[3]);
    }
    void compare_attention(std::int64_t length)
    {
        const BatchLayout layout{.rows = length, .columns = attention_depth, .count = heads};
        const auto count = heads * length * attention_depth;
        const auto q = normal(count);
        const auto k = normal(count);
        const auto v = normal(count);
        DeviceBuffer<bf16> z(stream_, static_cast<std::size_t>(count));
        std::vector<Contender> contenders;
        for (const bool causal : {false, true}) {
            for (const TilePrograms* const programs : {&tile_programs(), &whole_tile_programs()}) {
                contenders.push_back({"attention", [&, causal, programs](StreamRef stream, std::size_t) {
                                          programs->attention(stream, q.matrices(layout), k.matrices(layout),
                                                              v.matrices(layout), z.matrices(layout), causal);
                                      }});
            }
        }
        const double teraflops = 4.0 * static_cast<double>(count) * static_cast<double>(length) * 1e-12;
        const std::vector<double> seconds = measure(contenders, 1);
        print_comparison(fmt::format("attention, {} tokens", length), "TFLOP/s", teraflops, seconds[0], seconds[1]);
        print_comparison(fmt::format("causal attention, {} tokens", length), "TFLOP/s", teraflops / 2, seconds[2],
                         seconds[3]);
    }

    static void print_comparison(const std::string& name, std::string_view unit, double work, double safe,
                                 double unchecked)
    {
        print(fmt::format("| {} | {:.4g} {} | {:.4g} | {:+.1f} % |", name, work / safe, unit, work / unchecked,
                          100 * (safe / unchecked - 1)));
    }
    static void print(const std::string& text)
    {
        fmt::print("{}\n", text);
        std::fflush(stdout);
    }

private:
    DeviceBuffer<bf16> normal(std::int64_t count)
    {
        std::vector<bf16> values(static_cast<std::size_t>(count));
        fill_normal<bf16>(values, options_->seed, ++sequence_);
        return DeviceBuffer<bf16>::from_host(stream_, values);
    }

    std::vector<double> measure(const std::vector<Contender>& contenders, std::size_t sets) const
    {
        return median_seconds(timer_, stream_, *options_, contenders, sets);
    }

    const TilesOptions* options_;
    Stream stream_;
    DeviceTimer timer_;
    std::uint64_t sequence_ = 0;
};

}  // namespace

template <class T>
void require_close(const std::vector<T>& found, const std::vector<T>& expected, float tolerance,
                   const std::string& name)
{
    for (std::size_t i = 0; i < found.size(); ++i) {
        const float one = found[i];
        const float other = expected[i];
        if (!(std::fabs(one - other) <= tolerance * std::fabs(other) + tolerance)) {
            throw std::runtime_error(fmt::format("{}: element {} is {}, and {} by Gemm::launch", name, i, one, other));
        }
    }
}
template void require_close<bf16>(const std::vector<bf16>&, const std::vector<bf16>&, float, const std::string&);
template void require_close<float>(const std::vector<float>&, const std::vector<float>&, float, const std::string&);

std::vector<double> median_seconds(const DeviceTimer& timer, StreamRef stream, const TilesOptions& options,
                                   const std::vector<Contender>& contenders, std::size_t sets)
{
    double fastest = 1e9;
    for (const Contender& contender : contenders) {
        const Batch once(stream, contender, {.sets = sets});
        fastest = std::min(fastest, timer.seconds_per_product(stream, once));
    }
    const double sample = std::chrono::duration<double>(options.sample).count();
    const BatchShape shape = BatchShape::for_product_time(sets, fastest, sample);
    std::vector<Batch> batches;
    batches.reserve(contenders.size());
    for (const Contender& contender : contenders) {
        batches.emplace_back(stream, contender, shape);
    }
    const auto samples = time_in_rounds(timer, stream, batches, {.count = options.rounds}, [](std::size_t) {});
    std::vector<double> medians;
    medians.reserve(samples.size());
    for (const std::vector<double>& of_one : samples) {
        medians.push_back(summarize(of_one).median);
    }
    return medians;
}

void run_tiles(const Device& device, const TilesOptions& options)
{
    Tiles tiles(device, options);
    Tiles::print(fmt::format("{}; bf16, row-major; medians of {} rounds; the ratio to Gemm::launch in parentheses",
                             device.properties().name, options.rounds));
    if (options.compare_whole_tiles) {
        Tiles::print(
            "\n| Whole tiles | with bounds checks | without (whole_tiles) | what checks cost |\n|---|---|---|---|");
        for (const Shape& shape : options.shapes) {
            tiles.compare_products(shape);
        }
        if (options.rows > 0) {
            tiles.compare_rows();
        }
        for (const std::int64_t length : options.lengths) {
            tiles.compare_attention(length);
        }
        return;
    }
    if (!options.shapes.empty()) {
        std::string head = "\n| MxNxK | Gemm::launch, TFLOP/s";
        std::string line = "|---|---";
        for (const TileGemmConfig& config : tile_programs().products) {
            head += fmt::format(" | {}", config.name);
            line += "|---";
        }
        Tiles::print(head + " | best |\n" + line + "|---|");
        for (const Shape& shape : options.shapes) {
            tiles.products(shape);
        }
    }
    if (options.rows > 0) {
        Tiles::print(
            fmt::format("\n| {} rows of {} | TB/s | of the copy |\n|---|---|---|", options.rows, most_row_elements));
        tiles.rows();
    }
    if (!options.lengths.empty()) {
        Tiles::print(fmt::format("\n| Attention, {} heads of {}: tokens | TFLOP/s | causal |\n|---|---|---|", heads,
                                 attention_depth));
        for (const std::int64_t length : options.lengths) {
            tiles.attention(length);
        }
    }
}

}  // namespace tessera::bench
