/// `tessera-bench tiles`.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common.hpp"
#include "gemm_bench.hpp"
#include "tiles_bench.hpp"

namespace tessera::bench {
namespace {

struct TilesLine {
    CommonOptions common;
    std::vector<std::string> shapes{
        "2048",           "4096",          "8192", "4096x11008x4096", "2048x5120x5120", "4096x4096x11008",
        "8192x2048x2048", "1024x6144x4096"};
    std::vector<std::string> lengths{"1024", "2048", "4096", "8192", "16384"};
    std::int64_t rows = TilesOptions{}.rows;
    bool compare_whole_tiles = false;
    bool epilogues = false;
    std::string sweep;
    int sample = static_cast<int>(GemmOptions{}.sample.count());
};

TilesOptions options_of(const TilesLine& line)
{
    TilesOptions options;
    for (const std::string& shape : line.shapes) {
        if (shape != "none") {
            options.shapes.push_back(parse_shape(shape));
        }
    }
    for (const std::string& length : line.lengths) {
        if (length != "none") {
            options.lengths.push_back(parse_shape(length).m);
        }
    }
    options.rows = line.rows;
    options.rounds = line.common.rounds != 0 ? line.common.rounds : options.rounds;
    options.sample = std::chrono::milliseconds(line.sample);
    options.seed = line.common.seed;
    options.compare_whole_tiles = line.compare_whole_tiles;
    options.epilogues = line.epilogues;
    options.sweep = line.sweep;
    return options;
}

}  // namespace

Command add_tiles_command(CLI::App& app)
{
    const auto line = std::make_shared<TilesLine>();
    CLI::App* tiles =
        app.add_subcommand("tiles", "measure tile programs: GEMM beside Gemm::launch, rows beside a copy, attention");
    add_device_option(*tiles, line->common);
    tiles->add_option("--shapes", line->shapes, "products: MxNxK, or N for a cube; separated by commas, or none")
        ->delimiter(',')
        ->capture_default_str();
    tiles->add_option("--rows", line->rows, "rows of 8192 elements, for softmax and layer norm; 0: neither")
        ->check(CLI::Range(0, 1 << 20))
        ->capture_default_str();
    tiles->add_option("--lengths", line->lengths, "tokens of attention with 16 heads; separated by commas, or none")
        ->delimiter(',')
        ->capture_default_str();
    tiles->add_flag(
        "--whole-tiles", line->compare_whole_tiles,
        "instead: programs with bounds checks and without, for shapes, rows and lengths that are whole tiles");
    tiles->add_flag("--epilogues", line->epilogues,
                    "instead: products with an epilogue of one's own beside the library's, for the shapes");
    tiles
        ->add_option("--sweep", line->sweep,
                     "instead: sweep the tiles of a tile GEMM, compiled at run time, and of the SIMT kernels, for the "
                     "first shape; a file for the charts")
        ->type_name("FILE.html");
    tiles->add_option("--repetitions", line->common.rounds, "samples of each")->check(CLI::Range(1, 1000000));
    add_sample_option(*tiles, line->sample, "shortest sample, in milliseconds");
    tiles->add_option("--seed", line->common.seed, "seed of the random operands")->capture_default_str();
    return {tiles, [line] {
                return [line, options = options_of(*line)] {
                    const Device device = require_device(line->common.device);
                    if (!options.sweep.empty()) {
                        run_tile_sweep(device, options);
                    } else if (options.epilogues) {
                        run_own_epilogues(device, options);
                    } else {
                        run_tiles(device, options);
                    }
                    return static_cast<int>(success);
                };
            }};
}

}  // namespace tessera::bench
