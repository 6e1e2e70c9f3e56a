#include "tessera/tile.cuh"
#include "tile_programs.hpp"

namespace tessera::test {
namespace {

constexpr int k_of_tile = 64;

template <int M, int N, SumsProgram What>
struct OfSums {
    tile::Input<f16, M, k_of_tile> a;
    tile::Input<f16, k_of_tile, N> b;
    tile::Input<float, M, N> c;
    tile::Output<float, M, N> d;
    static constexpr tile::Hints hints{.cluster = What == SumsProgram::without_pairs ? 4 : 0,
                                       .pairs = What != SumsProgram::without_pairs};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            d.store(at, computed(cta, at));
        }
    }

private:
    TESSERA_TILE auto computed(auto cta, auto at) const
    {
        auto sum = tile::zeros<float, M, N>(cta);
        if constexpr (What == SumsProgram::held) {
            const auto left = tile::hold(cta, a.row(at));
            for (auto [right] : tile::stream(cta, b.column(at))) {
                sum = mma(left, right, sum);
            }
            return tile::convert<float>(sum);
        } else if constexpr (What == SumsProgram::from_c) {
            sum = c.load(at);
            return tile::convert<float>(added(cta, at, sum));
        } else if constexpr (What == SumsProgram::read_between_steps) {
            auto total = tile::full<float, M, N>(cta, 0.0F);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
                total = total + sum;
            }
            return total;
        } else if constexpr (What == SumsProgram::replaced_between_steps) {
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                const auto next = mma(left, right, sum);
                sum = next * -1;
            }
            return tile::convert<float>(sum);
        } else if constexpr (What == SumsProgram::not_read) {
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                [[maybe_unused]] const auto unused = mma(left, right, tile::zeros<float, M, N>(cta));
                sum = mma(left, right, sum);
            }
            return tile::convert<float>(sum);
        } else if constexpr (What == SumsProgram::copied) {
            sum = added(cta, at, sum);
            const auto once = sum * 1;
            auto other = sum;  // their values were read: both go on
            other = added(cta, at, other);
            sum = added(cta, at, sum);
            return sum + other - once;
        } else if constexpr (What == SumsProgram::used_after_passed_on) {
            auto total = tile::full<float, M, N>(cta, 0.0F);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                const auto next = mma(left, right, sum);
                sum = mma(left, right, sum);
                total = total + next;
            }
            return total;
        } else if constexpr (What == SumsProgram::with_rows) {
            const auto row = tile::iota_rows(sum) + static_cast<int>(at.first_row());
            return added(cta, at, sum) + tile::convert<float>(row);
        } else {
            return tile::convert<float>(added(cta, at, sum));
        }
    }
    template <class Sums>
    TESSERA_TILE Sums added(auto cta, auto at, Sums sum) const
    {
        for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
            sum = mma(left, right, sum);
        }
        return sum;
    }
};

}  // namespace

template <int M, int N>
tile::LaunchReport tile_sums(StreamRef stream, SumsProgram program, const MatrixView<const f16>& a,
                             const MatrixView<const f16>& b, const MatrixView<const float>& c,
                             const MatrixView<float>& d)
{
    const auto run = [&]<SumsProgram What>() { return tile::launch(stream, OfSums<M, N, What>{a, b, c, d}); };
    switch (program) {
        case SumsProgram::product: return run.template operator()<SumsProgram::product>();
        case SumsProgram::without_pairs: return run.template operator()<SumsProgram::without_pairs>();
        case SumsProgram::with_rows: return run.template operator()<SumsProgram::with_rows>();
        case SumsProgram::held: return run.template operator()<SumsProgram::held>();
        case SumsProgram::from_c: return run.template operator()<SumsProgram::from_c>();
        case SumsProgram::read_between_steps: return run.template operator()<SumsProgram::read_between_steps>();
        case SumsProgram::replaced_between_steps: return run.template operator()<SumsProgram::replaced_between_steps>();
        case SumsProgram::not_read: return run.template operator()<SumsProgram::not_read>();
        case SumsProgram::copied: return run.template operator()<SumsProgram::copied>();
        case SumsProgram::used_after_passed_on: return run.template operator()<SumsProgram::used_after_passed_on>();
    }
    return {};
}

template tile::LaunchReport tile_sums<128, 128>(StreamRef, SumsProgram, const MatrixView<const f16>&,
                                                const MatrixView<const f16>&, const MatrixView<const float>&,
                                                const MatrixView<float>&);
template tile::LaunchReport tile_sums<256, 64>(StreamRef, SumsProgram, const MatrixView<const f16>&,
                                               const MatrixView<const f16>&, const MatrixView<const float>&,
                                               const MatrixView<float>&);

}  // namespace tessera::test
