// Attention from one fused buffer: scores = Q*K' / sqrt(d), probabilities = softmax(scores), output = probabilities*V.
//
// Queries, keys and values are where a projection left them, as [batch][token][q, k, v][head][feature]. A view with two
// levels (batches, heads) describes each of them in place. Each step is one call; nothing is copied or permuted.
#include <tessera/tessera.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

#include "common/error_bound.hpp"
#include "common/exact_sum.hpp"
#include "common/run_example.hpp"

using namespace tessera;

namespace {

constexpr std::int64_t batches = 2;
constexpr std::int64_t tokens = 40;
constexpr std::int64_t heads = 3;
constexpr std::int64_t features = 32;
constexpr std::int64_t token_stride = 3 * heads * features;  // of the fused buffer

/// One thread for each row.
__global__ void softmax(BatchView<const float> scores, BatchView<f16> probabilities)
{
    const std::int64_t row = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (row >= scores.first().rows() * scores.total_count()) {
        return;
    }
    const std::int64_t matrix = row / scores.first().rows();
    const std::int64_t i = row % scores.first().rows();
    const auto in = scores.at(matrix);
    const auto out = probabilities.at(matrix);
    float largest = in(i, 0);
    for (std::int64_t j = 1; j < in.columns(); ++j) {
        largest = fmaxf(largest, in(i, j));
    }
    float sum = 0.0F;
    for (std::int64_t j = 0; j < in.columns(); ++j) {
        sum += expf(in(i, j) - largest);
    }
    for (std::int64_t j = 0; j < in.columns(); ++j) {
        out(i, j) = f16(expf(in(i, j) - largest) / sum);
    }
}

// ---- the check in float64: each step starts from what the step before it left on the device

std::size_t wrong_scores(const std::vector<f16>& qkv, const std::vector<float>& scores, float scale)
{
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < batches * heads * tokens * tokens; ++i) {
        const auto batch = i / (heads * tokens * tokens), head = i / (tokens * tokens) % heads;
        const auto query = (batch * tokens + i / tokens % tokens) * token_stride + head * features;
        const auto key = (batch * tokens + i % tokens) * token_stride + (heads + head) * features;
        examples::ExactSum sum;
        for (std::int64_t f = 0; f < features; ++f) {
            sum.add(double{scale} * double{float(qkv[query + f])} * double{float(qkv[key + f])});
        }
        wrong += sum.allows(double{scores[i]}, ElementType::f32) ? 0 : 1;
    }
    return wrong;
}

std::size_t wrong_probabilities(const std::vector<float>& scores, const std::vector<f16>& probabilities)
{
    std::size_t wrong = 0;
    for (std::int64_t row = 0; row < batches * heads * tokens; ++row) {
        const float* in = scores.data() + row * tokens;
        double sum = 0.0;
        for (std::int64_t j = 0; j < tokens; ++j) {
            sum += std::exp(double{in[j]});
        }
        for (std::int64_t j = 0; j < tokens; ++j) {
            const double expected = std::exp(double{in[j]}) / sum;
            // expf has an error of 2 ulp, twice; the rounding of its argument counts |score - largest| < 16 times,
            // twice; then the additions of the sum, and the quotient.
            const double error =
                expected * examples::gamma(double{tokens} + 4 + 4 + 2 * 16 + 1, examples::f32_roundoff);
            const double bound = error + examples::rounding_error(expected + error, ElementType::f16);
            wrong += std::fabs(double{float(probabilities[row * tokens + j])} - expected) <= bound ? 0 : 1;
        }
    }
    return wrong;
}

std::size_t wrong_outputs(const std::vector<f16>& qkv, const std::vector<f16>& probabilities,
                          const std::vector<f16>& output)
{
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < batches * tokens * heads * features; ++i) {
        const auto batch = i / (tokens * heads * features), head = i / features % heads;
        const auto token = i / (heads * features) % tokens, feature = i % features;
        examples::ExactSum sum;
        for (std::int64_t j = 0; j < tokens; ++j) {
            const auto value = (batch * tokens + j) * token_stride + (2 * heads + head) * features + feature;
            sum.add(double{float(probabilities[((batch * heads + head) * tokens + token) * tokens + j])} *
                    double{float(qkv[value])});
        }
        wrong += sum.allows(double{float(output[i])}, ElementType::f16) ? 0 : 1;
    }
    return wrong;
}

int run()
{
    const auto qkv = examples::random_values<f16>(batches * tokens * token_stride, 1);
    const Stream stream;
    const auto device_qkv = DeviceBuffer<f16>::from_host(stream, qkv);
    DeviceBuffer<float> device_scores(stream, batches * heads * tokens * tokens);
    DeviceBuffer<f16> device_probabilities(stream, batches * heads * tokens * tokens);
    DeviceBuffer<f16> device_output(stream, batches * tokens * heads * features);

    // Every head's (tokens, features) in the fused buffer; `part` is 0 for queries, 1 for keys, 2 for values.
    const auto part_of_qkv = [&](std::int64_t part) {
        const auto offset = static_cast<std::size_t>(part * heads * features);
        return device_qkv.span().subspan(offset).matrices({.rows = tokens,
                                                           .columns = features,
                                                           .leading_dimension = token_stride,
                                                           .count = heads,
                                                           .stride = features,
                                                           .outer_count = batches,
                                                           .outer_stride = tokens * token_stride});
    };
    const BatchLayout token_pairs{.rows = tokens, .columns = tokens, .count = heads, .outer_count = batches};
    const auto scores = device_scores.matrices(token_pairs);
    const auto probabilities = device_probabilities.matrices(token_pairs);
    const auto output = device_output.matrices({.rows = tokens,
                                                .columns = features,
                                                .leading_dimension = heads * features,
                                                .count = heads,
                                                .stride = features,
                                                .outer_count = batches,
                                                .outer_stride = tokens * heads * features});
    const float scale = 1.0F / std::sqrt(static_cast<float>(features));

    Gemm::launch(stream, part_of_qkv(0), part_of_qkv(1).transposed(), scores, {.alpha = scale});
    launch(softmax, LaunchConfig::covering(stream, batches * heads * tokens), scores, probabilities);
    Gemm::launch(stream, probabilities, part_of_qkv(2), output);

    const auto host_scores = device_scores.to_vector();
    const auto host_probabilities = device_probabilities.to_vector();
    const std::size_t wrong = wrong_scores(qkv, host_scores, scale) +
                              wrong_probabilities(host_scores, host_probabilities) +
                              wrong_outputs(qkv, host_probabilities, device_output.to_vector());
    std::printf("attention: %lld batches, %lld heads, %zu elements are wrong\n", static_cast<long long>(batches),
                static_cast<long long>(heads), wrong);
    return wrong == 0 ? examples::exit_success : examples::exit_failure;
}

}  // namespace

int main() { return examples::run_example("attention", run); }
