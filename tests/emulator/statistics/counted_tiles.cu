/// What a tile GEMM does on a B200, counted by the emulated device, against what its tiles must do on paper:
///
///     tessera-emu --device b200 --numerics fast --statistics json:FILE -- counted_tiles run
///     counted_tiles check FILE
///
/// Three of the tiles are compiled at run time, too, from the same source. `run` launches D = A * B of ones, so that each element of D is K. `check` prints a table, and fails if a launch was not on
/// tcgen05, in pairs of CTAs where it can be, or read a byte of A and B, brought one to shared memory or issued an MMA more or less
/// often than its tiles need, or ran on fewer CTAs.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "figures.hpp"
#include "tessera/tessera.hpp"
#include "tessera/tile.cuh"
#include "tessera/tile/program.hpp"
#include "tile_gemm.cuh"

using namespace tessera;

namespace {

constexpr std::int64_t k_of_tile = 64;
constexpr std::int64_t k_of_mma = 16;
constexpr std::int64_t rows_of_mma = 128;  // of one CTA
constexpr std::int64_t element_bytes = 2;  // bf16

struct TileShape {
    int m, n;
    bool b_is_column_major;
    bool pairs;             // of CTAs multiply: 128 rows
    bool run_time = false;  // compiled at run time
};
constexpr std::array tiles{TileShape{128, 128, false, true}, TileShape{128, 256, false, true},
                           TileShape{128, 256, true, true}, TileShape{256, 128, false, true},
                           // Halves of B in other boxes than whole tiles:
                           TileShape{128, 192, false, true}, TileShape{128, 192, true, true},
                           TileShape{128, 64, false, true}, TileShape{128, 64, true, true},
                           TileShape{64, 128, false, false}, TileShape{128, 256, false, true, true},
                           TileShape{128, 192, false, true, true}, TileShape{128, 64, true, true, true}};

struct Shape {
    std::int64_t m, n, k;
};
constexpr std::array shapes{Shape{1024, 1024, 512}, Shape{2048, 512, 256},
                            Shape{640, 768, 128},     // an odd number of tile rows
                            Shape{1000, 1000, 1000},  // tiles that are not full
                            Shape{4096, 2560, 64}};   // more tiles than SMs

/// Compiles a tile GEMM.
tile::Kernel compiled(const TileShape& tile)
{
    static const tile::Program program =
        tile::Program::from_file(TESSERA_STATISTICS_SOURCES "/tile_gemm.cuh", {.cache_folder = "none"});
    return program.kernel("TileGemm<" + std::to_string(tile.m) + ", " + std::to_string(tile.n) +
                          ", tessera::" + (tile.b_is_column_major ? "ColumnMajor>" : "RowMajor>"));
}

template <std::size_t Tile>
bool run_tile(const Stream& stream, const Shape& shape)
{
    constexpr TileShape tile = tiles[Tile];
    using OrderB = std::conditional_t<tile.b_is_column_major, ColumnMajor, RowMajor>;
    const auto ones = [&](std::int64_t elements) {
        return DeviceBuffer<bf16>::from_host(stream, std::vector<bf16>(static_cast<std::size_t>(elements), bf16(1.0F)));
    };
    const auto a = ones(shape.m * shape.k);
    const auto b = ones(shape.k * shape.n);
    DeviceBuffer<bf16> d(stream, static_cast<std::size_t>(shape.m * shape.n));
    const auto launch = [&](const auto& b_matrix) {
        if constexpr (tiles[Tile].run_time) {
            return compiled(tile).launch(stream, a.matrix(shape.m, shape.k), b_matrix, d.matrix(shape.m, shape.n));
        } else {
            return tile::launch(stream, TileGemm<tiles[Tile].m, tiles[Tile].n, OrderB>{
                                            a.matrix(shape.m, shape.k), b_matrix, d.matrix(shape.m, shape.n)});
        }
    };
    tile::LaunchReport report;
    if constexpr (tile.b_is_column_major) {
        report = launch(b.matrix(shape.n, shape.k).transposed());
    } else {
        report = launch(b.matrix(shape.k, shape.n));
    }
    bool right = report.instructions == tile::Instructions::tcgen05 && report.pairs == tile.pairs;
    for (const bf16 element : d.to_vector()) {
        right = right && static_cast<float>(element) == static_cast<float>(bf16(static_cast<float>(shape.k)));
    }
    return right;
}

template <std::size_t... Tiles>
bool run_tiles(const Stream& stream, const Shape& shape, std::index_sequence<Tiles...>)
{
    return (run_tile<Tiles>(stream, shape) & ...);
}

int run()
{
    const Stream stream;
    bool right = true;
    for (const Shape& shape : shapes) {
        right = run_tiles(stream, shape, std::make_index_sequence<tiles.size()>()) && right;
    }
    if (!right) {
        std::fprintf(stderr, "counted_tiles: a result is wrong, or was not computed as it should be\n");
    }
    return right ? 0 : 1;
}

/// What a launch must do: there is no way with less and these tiles.
struct Paper {
    std::int64_t read;    // bytes of A and B: each CTA or pair its rows of A and columns of B, once
    std::int64_t loaded;  // the same in shared memory, in whole tiles
    std::int64_t mmas;
    std::int64_t ctas;
};

Paper on_paper(const TileShape& tile, const Shape& shape, std::int64_t sms)
{
    const std::int64_t ctas = tile.pairs ? 2 : 1;
    const std::int64_t down = divide_up(divide_up(shape.m, tile.m), ctas);
    const std::int64_t across = divide_up(shape.n, tile.n);
    const std::int64_t steps = divide_up(shape.k, k_of_tile);
    return {.read = (shape.m * across + shape.n * down) * shape.k * element_bytes,
            .loaded = down * across * steps * (ctas * tile.m + tile.n) * k_of_tile * element_bytes,
            .mmas = down * across * steps * (k_of_tile / k_of_mma) * divide_up(tile.m, rows_of_mma),
            .ctas = ctas * std::min(down * across, sms / ctas)};
}

int check(const char* path)
{
    std::ifstream file(path);
    const std::int64_t sms = DeviceProperties::of_compute_capability(10, 0).sm_count;
    std::printf(
        "| MxNxK | tile | CTAs multiply | bytes read (least) | bytes in shared memory (least) | MMAs (least) | CTAs |\n"
        "|---|---|---|---|---|---|---|\n");
    bool right = true;
    for (const Shape& shape : shapes) {
        for (const TileShape& tile : tiles) {
            std::string line;
            std::getline(file, line);
            const Paper paper = on_paper(tile, shape, sms);
            const Paper counted{figure(line, "tma_global_read_bytes"), figure(line, "tma_load_bytes"),
                                figure(line, "mma_issued"), figure(line, "ctas")};
            const auto number = [](std::int64_t value) { return static_cast<long long>(value); };
            std::printf("| %lldx%lldx%lld | %dx%d%s%s | %s | %lld (%lld) | %lld (%lld) | %lld (%lld) | %lld |\n",
                        number(shape.m), number(shape.n), number(shape.k), tile.m, tile.n,
                        tile.b_is_column_major ? ", B column-major" : "", tile.run_time ? ", at run time" : "",
                        tile.pairs ? "in pairs" : "alone", number(counted.read), number(paper.read),
                        number(counted.loaded), number(paper.loaded), number(counted.mmas), number(paper.mmas),
                        number(counted.ctas));
            const bool as_on_paper = counted.read == paper.read && counted.loaded == paper.loaded &&
                                     counted.mmas == paper.mmas && counted.ctas == paper.ctas;
            if (!as_on_paper) {
                std::fprintf(stderr, "counted_tiles: this one does not do what it needs on paper\n");
            }
            right = right && as_on_paper;
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
    if (mode == "check" && argc == 3) {
        return check(argv[2]);
    }
    std::fprintf(stderr, "usage: counted_tiles run | check FILE\n");
    return 2;
}
