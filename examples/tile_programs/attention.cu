// Flash attention, forward: z = softmax(q * k' / sqrt(features)) * v for each head, with and without a causal mask. The
// scores never leave the registers.
//
// Queries, keys and values are where a projection left them, as [token][q, k, v][head][feature]. Views of a batch with
// one matrix for each head describe them in place.
#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

#include <algorithm>
#include <vector>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

constexpr int queries = 128;  // of a tile
constexpr int keys = 64;      // of a tile
constexpr int features = 64;  // of a head

template <bool Causal>
struct Attention {
    tile::Input<bf16, queries, features> q;
    tile::Input<bf16, features, keys, ColumnMajor> k;  // transposed
    tile::Input<bf16, keys, features> v;
    tile::Output<bf16, queries, features> z;
    int tokens;
    float scale;                                                     // of the scores, times log2(e)
    static constexpr tile::Hints hints{.warps_m = 8, .warps_n = 1};  // warps have whole rows of the weights

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : z.tiles_from_last_row(cta)) {  // with a causal mask the longest come first
            const auto query = tile::hold(cta, q, at);
            auto sum = tile::zeros<float, queries, features>(cta);
            auto highest = tile::full<float, queries, 1>(cta, -INFINITY);
            auto total = tile::full<float, queries, 1>(cta, 0.0F);
            const std::int64_t end = Causal ? at.first_row() + queries : tokens;  // keys that some query sees
            const auto all_keys = k.row(0, at.batch()).until(end);
            const auto all_values = v.column(0, at.batch()).until(end);
            for (auto [key, value] : tile::stream(cta, all_keys, all_values)) {
                auto score = mma(query, key, tile::zeros<float, queries, keys>(cta)) * scale;
                if (key.first_column() + keys > (Causal ? at.first_row() : tokens)) {  // not all queries see all keys
                    const auto column = tile::iota_columns(score) + static_cast<int>(key.first_column());
                    const auto row = tile::iota_rows(score) + static_cast<int>(at.first_row());
                    score = tile::where(column < tokens && (column <= row || !Causal), score, -INFINITY);
                }
                const auto higher = tile::max(highest, tile::row_maxima(score));
                const auto weight = tile::exp2(score - higher);
                const auto factor = tile::exp2(highest - higher);
                total = total * factor + tile::row_sums(weight);
                sum = sum * factor;
                sum = mma(tile::convert<bf16>(weight), value, sum);
                highest = higher;
            }
            z.store(at, tile::convert<bf16>(sum / total));
        }
    }
};

// ---- the check in float64

/// Returns how many elements of one head are wrong.
template <class Element>
std::size_t wrong_outputs(std::int64_t tokens, bool causal, double scale, const Element& qkv, const auto& z)
{
    std::size_t wrong = 0;
    std::vector<double> weights(static_cast<std::size_t>(tokens));
    for (std::int64_t i = 0; i < tokens; ++i) {
        const std::int64_t seen = causal ? i + 1 : tokens;
        double largest = -INFINITY, total = 0.0, magnitude = 0.0;
        for (std::int64_t j = 0; j < seen; ++j) {
            double score = 0.0, terms = 0.0;
            for (std::int64_t f = 0; f < features; ++f) {
                const double term = scale * qkv(0, i, f) * qkv(1, j, f);
                score += term;
                terms += std::fabs(term);
            }
            weights[static_cast<std::size_t>(j)] = score;
            largest = std::max(largest, score);
            magnitude = std::max(magnitude, terms);
        }
        for (std::int64_t j = 0; j < seen; ++j) {
            double& weight = weights[static_cast<std::size_t>(j)];
            weight = std::exp(weight - largest);
            total += weight;
        }
        // A weight is e to the power of a difference of scores that passes through 64 additions on tensor cores and 4
        // roundings each. Each step of the loop multiplies by a power of two with an error of 2 ulp. Then it is rounded
        // to bf16 and added up; so are the weights of the total.
        const double steps = static_cast<double>(seen) / keys + 2;
        const double weight_error = 2 * examples::gamma(features + 4, 2 * examples::f32_roundoff) * magnitude +
                                    examples::gamma(6 * steps + double(seen) + 8, 2 * examples::f32_roundoff);
        for (std::int64_t f = 0; f < features; ++f) {
            double sum = 0.0, terms = 0.0;
            for (std::int64_t j = 0; j < seen; ++j) {
                const double term = weights[static_cast<std::size_t>(j)] / total * qkv(2, j, f);
                sum += term;
                terms += std::fabs(term);
            }
            const double error = (0x1p-8 + 2 * weight_error) * (1 + weight_error) * terms;
            const double bound = error + examples::rounding_error(std::fabs(sum) + error, ElementType::bf16);
            wrong += std::fabs(z(i, f) - sum) <= bound ? 0 : 1;
        }
    }
    return wrong;
}

int run(std::int64_t heads, std::int64_t tokens)
{
    const std::int64_t width = heads * features;
    const auto qkv = examples::random_values<bf16>(static_cast<std::size_t>(tokens * 3 * width), 1);
    const Stream stream;
    const auto device_qkv = DeviceBuffer<bf16>::from_host(stream, qkv);
    DeviceBuffer<bf16> device_z(stream, static_cast<std::size_t>(tokens * width));
    const auto part = [&](std::int64_t number) {  // 0: queries, 1: keys, 2: values
        return device_qkv.span()
            .subspan(static_cast<std::size_t>(number * width))
            .matrices({.rows = tokens,
                       .columns = features,
                       .leading_dimension = 3 * width,
                       .count = heads,
                       .stride = features});
    };
    const auto z = device_z.matrices(
        {.rows = tokens, .columns = features, .leading_dimension = width, .count = heads, .stride = features});
    const double scale = 1 / std::sqrt(double{features});
    const auto scale_of_bits = static_cast<float>(scale * 1.4426950408889634);  // log2(e)

    std::size_t wrong = 0;
    for (const bool causal : {false, true}) {
        if (causal) {
            tile::launch(stream, Attention<true>{part(0), part(1).transposed(), part(2), z, static_cast<int>(tokens),
                                                 scale_of_bits});
        } else {
            tile::launch(stream, Attention<false>{part(0), part(1).transposed(), part(2), z, static_cast<int>(tokens),
                                                  scale_of_bits});
        }
        const auto result = device_z.to_vector();
        for (std::int64_t head = 0; head < heads; ++head) {
            wrong += wrong_outputs(
                tokens, causal, scale,
                [&](std::int64_t number, std::int64_t token, std::int64_t feature) {
                    return double{
                        float(qkv[static_cast<std::size_t>((token * 3 + number) * width + head * features + feature)])};
                },
                [&](std::int64_t token, std::int64_t feature) {
                    return double{float(result[static_cast<std::size_t>(token * width + head * features + feature)])};
                });
        }
    }
    return examples::verdict("tile_attention: causal and not", wrong, 2 * device_z.size());
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<2>("tile_attention", "heads tokens", argc, argv, {2, 150}, run);
}
