// A grouped GEMM, as in a mixture of experts: each row of x is multiplied by the weights of its expert. The rows are
// sorted by expert, and each expert's are filled up with zeros to whole tiles. An array says which expert a row of
// tiles has.
#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

#include <vector>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

constexpr int tile_rows = 128;

struct GroupedGemm {
    tile::Input<bf16, tile_rows, 64> x;
    tile::Input<bf16, 64, 128> w;  // a matrix for each expert
    tile::Output<bf16, tile_rows, 128> d;
    tile::Numbers<int> experts;  // of each row of tiles

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            const auto weights = w.column(at.tile_column(), experts[at.tile_row()]);
            auto sum = tile::zeros<float, tile_rows, 128>(cta);
            for (auto [left, right] : tile::stream(cta, x.row(at), weights)) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<bf16>(sum));
        }
    }
};

int run(std::int64_t count, std::int64_t n, std::int64_t k)
{
    // Expert e has rows for 3 * e % 4 tiles, the last one not full: some experts have none.
    std::vector<int> experts;
    std::vector<std::int64_t> rows;  // of each row of tiles that are not filled up
    for (std::int64_t e = 0; e < count; ++e) {
        for (std::int64_t part = 0; part < 3 * (e + 1) % 4; ++part) {
            experts.push_back(static_cast<int>(e));
            rows.push_back(part + 1 == 3 * (e + 1) % 4 ? 1 + (50 * e) % tile_rows : tile_rows);
        }
    }
    const auto m = static_cast<std::int64_t>(experts.size()) * tile_rows;
    auto x = examples::random_values<bf16>(static_cast<std::size_t>(m * k), 1);
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t l = 0; i % tile_rows >= rows[static_cast<std::size_t>(i / tile_rows)] && l < k; ++l) {
            x[static_cast<std::size_t>(i * k + l)] = bf16(0.0F);
        }
    }
    const auto w = examples::random_values<bf16>(static_cast<std::size_t>(count * k * n), 2);
    const Stream stream;
    const auto device_x = DeviceBuffer<bf16>::from_host(stream, x);
    const auto device_w = DeviceBuffer<bf16>::from_host(stream, w);
    const auto device_experts = DeviceBuffer<int>::from_host(stream, experts);
    DeviceBuffer<bf16> device_d(stream, static_cast<std::size_t>(m * n));
    tile::launch(stream,
                 GroupedGemm{device_x.matrix(m, k), device_w.matrices({.rows = k, .columns = n, .count = count}),
                             device_d.matrix(m, n), device_experts.span()});

    const auto d = device_d.to_vector();
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < m * n; ++i) {
        const std::int64_t row = i / n, column = i % n;
        const std::int64_t expert = experts[static_cast<std::size_t>(row / tile_rows)];
        examples::ExactSum sum;
        for (std::int64_t l = 0; l < k; ++l) {
            sum.add(double{float(x[static_cast<std::size_t>(row * k + l)])} *
                    double{float(w[static_cast<std::size_t>((expert * k + l) * n + column)])});
        }
        wrong += sum.allows(double{float(d[static_cast<std::size_t>(i)])}, ElementType::bf16) ? 0 : 1;
    }
    return examples::verdict("tile_grouped_gemm: rows of several experts", wrong, d.size());
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<3>("tile_grouped_gemm", "experts n k", argc, argv, {4, 136, 136}, run);
}
