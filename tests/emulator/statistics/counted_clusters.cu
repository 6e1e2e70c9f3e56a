/// What tile GEMMs in clusters read on an H200 or B200, counted by the emulated device, against what their tiles must read on paper:
///
///     tessera-emu --device h200 --numerics fast --statistics json:FILE -- counted_clusters run
///     counted_clusters check 9 FILE          for B200: 10
///
/// On a B200, clusters are of pairs of CTAs. `run` launches D = A * B of ones. `check` prints a table, and fails if a launch read a byte of A and B more or less often than one
/// of each cluster's rows and columns needs, brought other bytes to shared memory, or had other CTAs.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/tile_clusters.cuh"
#include "figures.hpp"
#include "tessera/tessera.hpp"

using namespace tessera;

namespace {

constexpr std::int64_t tile_m = 128;
constexpr std::int64_t tile_n = 128;
constexpr std::int64_t tile_k = 64;
constexpr std::int64_t element_bytes = 2;  // bf16

struct Cluster {
    int rows, columns;
    bool b_is_column_major = false;
};
constexpr std::array clusters{Cluster{1, 1}, Cluster{2, 1}, Cluster{1, 2},       Cluster{2, 2},
                              Cluster{4, 1}, Cluster{1, 4}, Cluster{2, 2, true}, Cluster{4, 2, true}};

/// Returns true if a cluster is counted on a GPU of this major compute capability.
constexpr bool is_counted(const Cluster& cluster, int major) { return major == 9 || cluster.rows >= 2; }

struct Shape {
    std::int64_t m, n, k;
};
constexpr std::array shapes{Shape{1024, 1024, 512}, Shape{640, 896, 128},  // clusters with places outside
                            Shape{1000, 1000, 1000},                       // tiles that are not full
                            Shape{2048, 2560, 128}};                       // more tiles than SMs

template <std::size_t Index>
bool run_in(const Stream& stream, const Shape& shape)
{
    constexpr Cluster cluster = clusters[Index];
    const int major = Device::current().properties().compute_capability_major;
    if (!is_counted(cluster, major)) {
        return true;
    }
    using OrderB = std::conditional_t<cluster.b_is_column_major, ColumnMajor, RowMajor>;
    using Program = test::ClusterGemm<tile_m, tile_n, cluster.rows, cluster.columns, false, OrderB>;
    const auto ones = [&](std::int64_t elements) {
        return DeviceBuffer<bf16>::from_host(stream, std::vector<bf16>(static_cast<std::size_t>(elements), bf16(1.0F)));
    };
    const auto a = ones(shape.m * shape.k);
    const auto b = ones(shape.k * shape.n);
    DeviceBuffer<bf16> d(stream, static_cast<std::size_t>(shape.m * shape.n));
    const auto report = tile::launch(
        stream, Program{a.matrix(shape.m, shape.k), b.matrix(shape.k, shape.n, OrderB{}), d.matrix(shape.m, shape.n)});
    bool right = report.cluster == cluster.rows * cluster.columns && report.cluster_reason.empty() &&
                 report.pairs == (major == 10);
    for (const bf16 element : d.to_vector()) {
        right = right && static_cast<float>(element) == static_cast<float>(bf16(static_cast<float>(shape.k)));
    }
    return right;
}

template <std::size_t... Indices>
bool run_all(const Stream& stream, const Shape& shape, std::index_sequence<Indices...>)
{
    return (run_in<Indices>(stream, shape) & ...);
}

int run()
{
    const Stream stream;
    bool right = true;
    for (const Shape& shape : shapes) {
        right = run_all(stream, shape, std::make_index_sequence<clusters.size()>()) && right;
    }
    if (!right) {
        std::fprintf(stderr,
                     "counted_clusters: a result is wrong, or was not computed in the cluster that it should be\n");
    }
    return right ? 0 : 1;
}

/// What a launch must do: a row of a cluster reads its rows of A once, a column its columns of B.
struct Paper {
    std::int64_t read;    // bytes of A and B
    std::int64_t loaded;  // the same in shared memory, in whole tiles: of each CTA; a pair has B once
    std::int64_t ctas;
};

Paper on_paper(const Cluster& cluster, const Shape& shape, int major)
{
    const std::int64_t sms = DeviceProperties::of_compute_capability(major, 0).sm_count;
    const std::int64_t ctas = cluster.rows * cluster.columns;
    const std::int64_t down = divide_up(divide_up(shape.m, tile_m), cluster.rows);
    const std::int64_t across = divide_up(divide_up(shape.n, tile_n), cluster.columns);
    const std::int64_t steps = divide_up(shape.k, tile_k);
    return {.read = (shape.m * across + shape.n * down) * shape.k * element_bytes,
            .loaded = down * across * ctas * steps * (tile_m + tile_n / (major == 10 ? 2 : 1)) * tile_k * element_bytes,
            .ctas = ctas * std::min(down * across, sms / ctas)};
}

int check(int major, const char* path)
{
    std::ifstream file(path);
    std::printf(
        "| MxNxK | cluster | bytes read (least) | bytes in shared memory (least) | CTAs |\n|---|---|---|---|---|\n");
    bool right = true;
    for (const Shape& shape : shapes) {
        for (const Cluster& cluster : clusters) {
            if (!is_counted(cluster, major)) {
                continue;
            }
            std::string line;
            std::getline(file, line);
            const Paper paper = on_paper(cluster, shape, major);
            const Paper counted{figure(line, "tma_global_read_bytes"), figure(line, "tma_load_bytes"),
                                figure(line, "ctas")};
            const auto number = [](std::int64_t value) { return static_cast<long long>(value); };
            std::printf("| %lldx%lldx%lld | %dx%d%s | %lld (%lld) | %lld (%lld) | %lld |\n", number(shape.m),
                        number(shape.n), number(shape.k), cluster.rows, cluster.columns,
                        cluster.b_is_column_major ? ", B column-major" : "", number(counted.read), number(paper.read),
                        number(counted.loaded), number(paper.loaded), number(counted.ctas));
            if (counted.read != paper.read || counted.loaded != paper.loaded || counted.ctas != paper.ctas) {
                std::fprintf(stderr, "counted_clusters: this one does not do what it needs on paper\n");
                right = false;
            }
        }
    }
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "run" && argc == 2) {
        return run();
    }
    if (mode == "check" && argc == 4) {
        return check(std::string_view(argv[2]) == "10" ? 10 : 9, argv[3]);
    }
    std::fprintf(stderr, "usage: counted_clusters run | check 9|10 FILE\n");
    return 2;
}
