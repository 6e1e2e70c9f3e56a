#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gemm/gemm_operands.hpp"
#include "method/timer.hpp"
#include "problem/random.hpp"
#include "report/html.hpp"
#include "report/svg.hpp"
#include "report/tile_chart.hpp"
#include "tessera/error.hpp"
#include "tessera/tessera.hpp"
#include "tessera/tile/program.hpp"
#include "tiles/simt_tiles.hpp"
#include "tiles_bench.hpp"

namespace tessera::bench {
namespace {

constexpr const char* program_source = R"(
using namespace tessera;
template <int BM, int BN, int BK, int Warpgroups>
struct Gemm {
    tile::Input<bf16, BM, BK> a;
    tile::Input<bf16, BK, BN> b;
    tile::Output<bf16, BM, BN> d;
    static constexpr tile::Hints hints{.warpgroups = Warpgroups};
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, BM, BN>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<bf16>(sum));
        }
    }
};
)";

constexpr int sums_of_thread = 128;  // in registers, of 255

struct Tile {
    int m, n, k;
};

/// All tiles in steps of 64, and some in others: a compilation takes seconds.
std::vector<Tile> swept_tiles()
{
    std::vector<Tile> tiles;
    for (const int m : {128, 64, 256}) {
        for (const int n : {32, 64, 128, 192, 256}) {
            tiles.push_back({m, n, 64});
        }
    }
    for (const int k : {32, 128}) {
        for (const int n : {64, 128, 256}) {
            tiles.push_back({128, n, k});
        }
    }
    return tiles;
}

class Sweep {
public:
    Sweep(const Device& device, const TilesOptions& options)
        : options_(&options), shape_(options.shapes.front()), stream_(device), timer_(device)
    {}

    /// The tile program, in bf16.
    void programs()
    {
        const auto a = normal<bf16>(shape_.m * shape_.k);
        const auto b = normal<bf16>(shape_.k * shape_.n);
        DeviceBuffer<bf16> d(stream_, elements_of_d());
        const auto view_a = a.matrix(shape_.m, shape_.k);
        const auto view_b = b.matrix(shape_.k, shape_.n);
        const auto view_d = d.matrix(shape_.m, shape_.n);
        Gemm::launch(stream_, view_a, view_b, view_d);
        const std::vector<bf16> expected = d.to_vector();
        const auto program = tile::Program::from_source(program_source, {.name = "sweep.cu"});
        for (const Tile& tile : swept_tiles()) {
            const auto [m, n, k] = tile;
            TileRate rate{m, n, k, 0, {}};
            const int warpgroups = m == 64 ? 1 : 2;
            const std::string type = fmt::format("Gemm<{}, {}, {}, {}>", m, n, k, warpgroups);
            if (m * n > 128 * warpgroups * sums_of_thread) {
                rate.note = "its sums do not fit into registers";
            } else {
                try {
                    const tile::Kernel kernel = program.kernel(type);
                    const Contender contender{
                        type, [&](StreamRef stream, std::size_t) { kernel.launch(stream, view_a, view_b, view_d); }};
                    contender.launch(stream_, 0);
                    require_close(d.to_vector(), expected, 0.01F, type);
                    rate.flops_per_second = measured(contender);
                } catch (const Error& error) {
                    rate.note = reason_of(error);
                }
            }
            programs_.push_back(rate);
            show(rate);
        }
    }

    /// The SIMT kernels, in fp32.
    void simt()
    {
        const auto a = normal<float>(shape_.m * shape_.k);
        const auto b = normal<float>(shape_.k * shape_.n);
        DeviceBuffer<float> d(stream_, elements_of_d());
        Gemm::launch(stream_, a.matrix(shape_.m, shape_.k), b.matrix(shape_.k, shape_.n), d.matrix(shape_.m, shape_.n),
                     {}, Variant::simt_register_blocked);
        const std::vector<float> expected = d.to_vector();
        kernels::GemmArguments arguments =
            detail::arguments_of({operand(a.data(), shape_.m, shape_.k), operand(b.data(), shape_.k, shape_.n),
                                  operand(d.data(), shape_.m, shape_.n)},
                                 {});
        for (const SimtTileKernel& kernel : simt_tile_kernels()) {
            constexpr std::uint32_t raster_band = 16;
            arguments.raster = detail::raster_of(arguments, kernel.m, kernel.n, raster_band);
            const Contender contender{
                fmt::format("SIMT {}x{}", kernel.m, kernel.n),
                [arguments, kernel](StreamRef stream, std::size_t) mutable {
                    void* parameters[] = {&arguments};
                    const dim3 grid(arguments.raster.tiles());
                    const dim3 block(static_cast<unsigned>(kernel.threads));
                    if (cudaLaunchKernel(kernel.function, grid, block, parameters, 0, stream.get()) != cudaSuccess) {
                        throw std::runtime_error("cudaLaunchKernel failed");
                    }
                }};
            contender.launch(stream_, 0);
            require_close(d.to_vector(), expected, 0.0F, contender.name);  // all add up in the same order
            simt_.push_back({kernel.m, kernel.n, kernel.k, measured(contender), {}});
            show(simt_.back());
        }
    }

    std::string description() const
    {
        return fmt::format("{}, {}x{}x{}, medians of {} rounds, one set of operands",
                           Device(stream_.device()).properties().name, shape_.m, shape_.n, shape_.k, options_->rounds);
    }

private:
    std::size_t elements_of_d() const { return static_cast<std::size_t>(shape_.m * shape_.n); }
    /// One contender at a time: slow tiles would else make all batches long.
    double measured(const Contender& contender) const
    {
        const double flops =
            2.0 * static_cast<double>(shape_.m) * static_cast<double>(shape_.n) * static_cast<double>(shape_.k);
        return flops / median_seconds(timer_, stream_, *options_, {contender}, 1).front();
    }
    static std::string reason_of(const Error& error)
    {
        const std::string text = error.what();
        const std::size_t sentence = text.rfind("tessera: ");  // the library's, if it refuses the tile
        const std::size_t begin = sentence == 0 ? std::min(text.find('\n') + 1, text.size()) : sentence;
        return text.substr(begin, text.find('\n', begin) - begin);
    }
    /// Prints a rate, and writes the charts: a sweep that is interrupted leaves what it has.
    void show(const TileRate& rate) const
    {
        fmt::print("{}", tile_row(rate));
        std::fflush(stdout);
        std::string body =
            fmt::format("<h1>Tiles of a product</h1>\n<p class=\"soft\">{}</p>\n", escaped(description()));
        for (const int k : {64, 32, 128}) {
            body += html_section(fmt::format("Tile program, bf16, steps of {} along K", k),
                                 tile_chart(programs_, k, "Rate by tile"),
                                 "Compiled at run time. The shade is the rate relative to the best of all steps.");
        }
        body += html_section("SIMT kernels, fp32, steps of 32 along K", tile_chart(simt_, 32, "Rate by tile"),
                             "The ladder's staged kernel with one buffer.");
        std::ofstream file(options_->sweep);
        file << html_page("Tessera: tiles of a product", body);
        if (!file.flush()) {
            throw std::runtime_error(fmt::format("{} cannot be written", options_->sweep));
        }
    }
    MatrixOperand operand(const void* data, std::int64_t rows, std::int64_t columns) const
    {
        MatrixOperand operand;
        operand.data = data;
        operand.type = ElementType::f32;
        operand.rows = rows;
        operand.columns = columns;
        operand.leading_dimension = columns;
        operand.row_major = true;
        operand.present = true;
        operand.device = stream_.device();
        return operand;
    }
    template <class T>
    DeviceBuffer<T> normal(std::int64_t count)
    {
        std::vector<T> values(static_cast<std::size_t>(count));
        fill_normal<T>(values, options_->seed, ++sequence_);
        return DeviceBuffer<T>::from_host(stream_, values);
    }

    const TilesOptions* options_;
    Shape shape_;
    Stream stream_;
    DeviceTimer timer_;
    std::uint64_t sequence_ = 0;
    std::vector<TileRate> programs_;
    std::vector<TileRate> simt_;
};

}  // namespace

void run_tile_sweep(const Device& device, const TilesOptions& options)
{
    device.make_current();  // programs are compiled for the current device
    Sweep sweep(device, options);
    fmt::print("{}\n\nSIMT kernels, fp32:\n\n{}", sweep.description(), tile_head);
    sweep.simt();
    fmt::print("\nTile program, bf16:\n\n{}", tile_head);
    sweep.programs();
}

}  // namespace tessera::bench
