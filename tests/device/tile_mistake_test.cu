/// Mistakes of tile programs in branches that the host does not see when it plans: each must stop the kernel.
///
///     tile_mistake_test none | row | sums | gather
///
/// `row`: the CTAs of a pair go different ways. `sums`: sums are used after they were passed on, in tensor memory. `none` is the same
/// program without a mistake. `gather`: a vector names a row that the input does not have. Exit codes: 0 the kernel did what it should, 1 it did not, 77 there is no tensor memory.

#include <cstdio>
#include <string_view>
#include <vector>

#include "tessera/tessera.hpp"
#include "tessera/tile.cuh"

using namespace tessera;

namespace {

enum class Mistake { none, row, sums };

template <Mistake What>
struct InABranch {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 128> b;
    tile::Output<float, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            const bool unseen = at.tile_column() == 1;  // the host plans with column 0
            const bool skips = What == Mistake::row && unseen && at.tile_row() == 1;
            auto sum = tile::zeros<float, 128, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                if (What == Mistake::sums && unseen) {
                    [[maybe_unused]] const auto other = mma(left, right, sum);
                }
                if (!skips) {
                    sum = mma(left, right, sum);
                }
            }
            d.store(at, sum);
        }
    }
};

template <Mistake What>
int run()
{
    constexpr std::int64_t size = 256;
    const Stream stream;
    if (!Device::current().properties().has_tensor_memory) {
        std::puts("tile_mistake_test: no tensor memory");
        return 77;
    }
    const auto ones = DeviceBuffer<bf16>::from_host(stream, std::vector<bf16>(size * size, bf16(1.0F)));
    DeviceBuffer<float> d(stream, size * size);
    const auto matrix = ones.matrix(size, size);
    const tile::LaunchReport report = tile::launch(stream, InABranch<What>{matrix, matrix, d.matrix(size, size)});
    if (report.instructions != tile::Instructions::tcgen05 || !report.pairs) {
        std::printf("tile_mistake_test: not in pairs: %.*s\n", static_cast<int>(report.reason.size()),
                    report.reason.data());
        return 1;
    }
    try {
        for (const float element : d.to_vector()) {
            if (element != static_cast<float>(size)) {
                std::puts("tile_mistake_test: a result is wrong");
                return 1;
            }
        }
    } catch (const Error&) {
        std::puts("tile_mistake_test: the kernel was stopped");
        return What == Mistake::none ? 1 : 0;
    }
    return What == Mistake::none ? 0 : 1;
}

struct Gather {
    tile::Input<bf16, 16, 32> x;
    tile::Output<bf16, 16, 32> y;
    tile::Numbers<int> rows;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, tile::gather(x, rows).load(at));
        }
    }
};

/// Returns true if the kernel is stopped when the last number is `last`.
bool stops_at_row(int last)
{
    constexpr std::int64_t rows = 16, columns = 32;
    const Stream stream;
    std::vector<int> numbers(rows, 0);
    numbers.back() = last;
    const auto x = DeviceBuffer<bf16>::from_host(stream, std::vector<bf16>(rows * columns, bf16(1.0F)));
    const auto named = DeviceBuffer<int>::from_host(stream, numbers);
    DeviceBuffer<bf16> y(stream, rows * columns);
    tile::launch(stream, Gather{x.matrix(rows, columns), y.matrix(rows, columns), named.span()});
    try {
        stream.synchronize();
    } catch (const Error&) {
        return true;
    }
    return false;
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string_view mistake = argc == 2 ? argv[1] : "";
    if (Device::count() > 0 && Device::current().properties().compute_capability_major >= 8 && mistake == "gather") {
        return !stops_at_row(15) && stops_at_row(16) ? 0
                                                     : 1;  // the last one: a kernel that is stopped ends the context
    }
    if (Device::count() == 0 || Device::current().properties().compute_capability_major != 10) {
        std::puts("skipped: this test needs compute capability 10");
        return 77;
    }
    if (mistake == "none") {
        return run<Mistake::none>();
    }
    if (mistake == "row") {
        return run<Mistake::row>();
    }
    if (mistake == "sums") {
        return run<Mistake::sums>();
    }
    std::fputs("usage: tile_mistake_test none | row | sums | gather\n", stderr);
    return 2;
}
