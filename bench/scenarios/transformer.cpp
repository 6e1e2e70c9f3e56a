/// Scenario 7: one block of a transformer: x1 = x + attention(normalize(x)), y = x1 + mlp(normalize(x1)), all in bf16.

#include <algorithm>

#include "problem/parallel.hpp"
#include "scenarios/kernels.hpp"
#include "scenarios/operands.hpp"
#include "tessera/gemm.hpp"
#include "tiles/tile_programs.hpp"

namespace tessera::scenarios {
namespace {

constexpr std::int64_t depth = bench::attention_depth;  // features of a head

struct Sizes {
    std::int64_t tokens;
    std::int64_t heads;

    std::int64_t width() const { return heads * depth; }
    std::int64_t hidden() const { return 4 * width(); }
};

/// A layer's weights (inputs, outputs) and bias, on both sides.
struct Layer {
    std::int64_t inputs;
    std::int64_t outputs;
    std::vector<bf16> host_w;
    std::vector<float> host_bias;
    DeviceBuffer<bf16> w;
    DeviceBuffer<float> bias;
};

struct Block {
    Layer qkv;  // queries, keys and values side by side
    Layer out;  // after attention
    Layer up;   // of the MLP
    Layer down;
};

/// What a block writes on its way.
struct Activations {
    Activations(StreamRef stream, const Sizes& sizes)
        : normal(stream, count(sizes.tokens, sizes.width())),
          qkv(stream, count(sizes.tokens, 3 * sizes.width())),
          attended(stream, count(sizes.tokens, sizes.width())),
          x1(stream, count(sizes.tokens, sizes.width())),
          hidden(stream, count(sizes.tokens, sizes.hidden())),
          y(stream, count(sizes.tokens, sizes.width()))
    {
        y.fill(stream, poison<bf16>());
    }
    static std::size_t count(std::int64_t rows, std::int64_t columns)
    {
        return static_cast<std::size_t>(rows * columns);
    }

    DeviceBuffer<bf16> normal;
    DeviceBuffer<bf16> qkv;
    DeviceBuffer<bf16> attended;
    DeviceBuffer<bf16> x1;
    DeviceBuffer<bf16> hidden;
    DeviceBuffer<bf16> y;
};

/// Views of each head's (tokens, depth) in a buffer whose rows have `parts` parts of all heads.
template <class Buffer>
auto heads_of(Buffer& buffer, const Sizes& sizes, std::int64_t part, std::int64_t parts)
{
    return buffer.span()
        .subspan(static_cast<std::size_t>(part * sizes.width()))
        .matrices({.rows = sizes.tokens,
                   .columns = depth,
                   .leading_dimension = parts * sizes.width(),
                   .count = sizes.heads,
                   .stride = depth});
}

// ---- the float64 reference

using Matrix = std::vector<double>;

Matrix normalized(const Matrix& x, std::int64_t columns)
{
    Matrix y(x.size());
    const auto width = static_cast<std::size_t>(columns);
    for (std::size_t first = 0; first < x.size(); first += width) {
        double mean = 0, variance = 0;
        for (std::size_t j = 0; j < width; ++j) {
            mean += x[first + j] / static_cast<double>(width);
        }
        for (std::size_t j = 0; j < width; ++j) {
            variance += (x[first + j] - mean) * (x[first + j] - mean) / static_cast<double>(width);
        }
        for (std::size_t j = 0; j < width; ++j) {
            y[first + j] = (x[first + j] - mean) / std::sqrt(variance + 1e-5);
        }
    }
    return y;
}

/// x * w + bias for the layer's columns from `first_column` on.
Matrix product(const Matrix& x, const Layer& layer, std::int64_t first_column = 0)
{
    const auto inputs = static_cast<std::size_t>(layer.inputs), outputs = static_cast<std::size_t>(layer.outputs);
    const auto first = static_cast<std::size_t>(first_column);
    const std::size_t columns = outputs - first;
    const Matrix w(layer.host_w.begin(), layer.host_w.end());
    Matrix y(x.size() / inputs * columns);
    bench::for_each_in_parallel(x.size() / inputs, [&](std::size_t row) {
        double* const to = y.data() + row * columns;
        for (std::size_t j = 0; j < columns; ++j) {
            to[j] = double{layer.host_bias[first + j]};
        }
        for (std::size_t l = 0; l < inputs; ++l) {
            const double factor = x[row * inputs + l];
            const double* const from = w.data() + l * outputs + first;
            for (std::size_t j = 0; j < columns; ++j) {
                to[j] += factor * from[j];
            }
        }
    });
    return y;
}

/// Returns the block's result for some tokens. Their queries meet the keys of all tokens.
Matrix reference(const Block& block, const Sizes& sizes, const std::vector<bf16>& host_x,
                 const std::vector<std::size_t>& tokens)
{
    const auto width = static_cast<std::size_t>(sizes.width()), head_depth = static_cast<std::size_t>(depth);
    const auto rows_of = [&](const Matrix& matrix) {
        Matrix rows;
        for (const std::size_t token : tokens) {
            rows.insert(rows.end(), matrix.begin() + static_cast<std::ptrdiff_t>(token * width),
                        matrix.begin() + static_cast<std::ptrdiff_t>((token + 1) * width));
        }
        return rows;
    };
    const Matrix x(host_x.begin(), host_x.end());
    const Matrix normal = normalized(x, sizes.width());
    const Matrix queries = product(rows_of(normal), block.qkv);            // the first part of each row
    const Matrix keys_values = product(normal, block.qkv, sizes.width());  // of all tokens
    const auto all = static_cast<std::size_t>(sizes.tokens);
    Matrix attended(tokens.size() * width);
    bench::for_each_in_parallel(tokens.size() * static_cast<std::size_t>(sizes.heads), [&](std::size_t task) {
        const std::size_t row = task / static_cast<std::size_t>(sizes.heads),
                          offset = task % static_cast<std::size_t>(sizes.heads) * head_depth;
        Matrix weights(all);
        double highest = -std::numeric_limits<double>::infinity();
        for (std::size_t j = 0; j < all; ++j) {
            double score = 0;
            for (std::size_t f = 0; f < head_depth; ++f) {
                score += queries[row * 3 * width + offset + f] * keys_values[j * 2 * width + offset + f];
            }
            weights[j] = score / std::sqrt(static_cast<double>(depth));
            highest = std::max(highest, weights[j]);
        }
        double total = 0;
        for (double& weight : weights) {
            weight = std::exp(weight - highest);
            total += weight;
        }
        for (std::size_t j = 0; j < all; ++j) {
            for (std::size_t f = 0; f < head_depth; ++f) {
                attended[row * width + offset + f] +=
                    weights[j] / total * keys_values[j * 2 * width + width + offset + f];
            }
        }
    });
    const auto plus = [](Matrix left, const Matrix& right) {
        std::transform(left.begin(), left.end(), right.begin(), left.begin(), std::plus<>());
        return left;
    };
    const Matrix x1 = plus(product(attended, block.out), rows_of(x));
    Matrix hidden = product(normalized(x1, sizes.width()), block.up);
    for (double& value : hidden) {
        value = bench::activate(bench::Fusion::bias_gelu, bench::GeluForm::erf, value);
    }
    return plus(product(hidden, block.down), x1);
}

/// The baseline rounds to bf16 sixteen times from x to y. Each rounding moves a row by at most 2^-8 of its length, in directions that do not
/// depend on each other, and no step of the block makes an error grow more than its row: so they add up like the square root of their number.
constexpr double most_relative_error = 4 * 0x1p-8;

/// Returns the Frobenius norm of the difference, of that of `expected`, of the bound.
Check check_rows(std::string what, const std::vector<bf16>& y, const Matrix& expected,
                 const std::vector<std::size_t>& tokens, std::size_t width)
{
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double error = double{float(y[tokens[i / width] * width + i % width])} - expected[i];
        difference += error * error;
        norm += expected[i] * expected[i];
    }
    return {std::move(what), "16 independent roundings to bf16 on the way: sqrt(16) * 2^-8 of the norm",
            std::sqrt(difference / norm) / most_relative_error};
}

}  // namespace

Outcome run_transformer(const Context& context)
{
    if (context.device.properties().compute_capability() < 80) {
        throw Skip(fmt::format("it needs bf16 on tensor cores, compute capability 8.0 or later, and {} has {}.{}",
                               context.device.properties().name, context.device.properties().compute_capability_major,
                               context.device.properties().compute_capability_minor));
    }
    const Sizes sizes = context.full ? Sizes{4096, 16} : Sizes{64, 1};
    Outcome outcome;
    outcome.work = fmt::format("{} tokens, width {}, {} heads, MLP of {}, bf16", sizes.tokens, sizes.width(),
                               sizes.heads, sizes.hidden());

    const Stream stream(context.device);
    std::uint64_t sequence = 1;
    const auto layer = [&](std::int64_t inputs, std::int64_t outputs) {
        auto w = normal_values<bf16>(context, inputs * outputs, ++sequence, 1 / std::sqrt(static_cast<float>(inputs)));
        auto bias = normal_values<float>(context, outputs, ++sequence, 0.1F);
        auto device_w = DeviceBuffer<bf16>::from_host(stream, w);
        auto device_bias = DeviceBuffer<float>::from_host(stream, bias);
        return Layer{inputs, outputs, std::move(w), std::move(bias), std::move(device_w), std::move(device_bias)};
    };
    const Block block{layer(sizes.width(), 3 * sizes.width()), layer(sizes.width(), sizes.width()),
                      layer(sizes.width(), sizes.hidden()), layer(sizes.hidden(), sizes.width())};
    const auto host_x = normal_values<bf16>(context, sizes.tokens * sizes.width(), 1);
    const auto x = DeviceBuffer<bf16>::from_host(stream, host_x);
    Activations plain(stream, sizes), fused(stream, sizes);
    DeviceBuffer<bf16> scores(stream, static_cast<std::size_t>(sizes.heads * sizes.tokens * sizes.tokens));
    const BatchLayout pairs{.rows = sizes.tokens, .columns = sizes.tokens, .count = sizes.heads};
    const float scale = 1 / std::sqrt(static_cast<float>(depth));

    const auto multiply = [&](const DeviceBuffer<bf16>& from, const Layer& by, DeviceBuffer<bf16>& to,
                              const Epilogue& epilogue) {
        Gemm::launch(stream, from.matrix(sizes.tokens, by.inputs), by.w.matrix(by.inputs, by.outputs),
                     to.matrix(sizes.tokens, by.outputs), epilogue);
    };
    const auto baseline = [&](Recorder& recorder) {
        Activations& to = plain;
        recorder.on_stream("projection", stream, [&] {
            normalize_rows(stream, x.span(), to.normal.span(), sizes.width());
            multiply(to.normal, block.qkv, to.qkv, {});
            add_bias(stream, to.qkv.span(), block.qkv.bias.span());
        });
        recorder.on_stream("attention", stream, [&] {
            Gemm::launch(stream, heads_of(to.qkv, sizes, 0, 3), heads_of(to.qkv, sizes, 1, 3).transposed(),
                         scores.matrices(pairs), {.alpha = scale});
            softmax_rows(stream, scores.span(), sizes.tokens);
            Gemm::launch(stream, scores.matrices(pairs), heads_of(to.qkv, sizes, 2, 3),
                         heads_of(to.attended, sizes, 0, 1));
        });
        recorder.on_stream("output", stream, [&] {
            multiply(to.attended, block.out, to.x1, {});
            add_bias(stream, to.x1.span(), block.out.bias.span());
            add_residual(stream, to.x1.span(), x.span());
        });
        recorder.on_stream("MLP", stream, [&] {
            normalize_rows(stream, to.x1.span(), to.normal.span(), sizes.width());
            multiply(to.normal, block.up, to.hidden, {});
            add_bias(stream, to.hidden.span(), block.up.bias.span());
            apply_gelu(stream, to.hidden.span());
            multiply(to.hidden, block.down, to.y, {});
            add_bias(stream, to.y.span(), block.down.bias.span());
            add_residual(stream, to.y.span(), to.x1.span());
        });
        stream.synchronize();
    };
    const auto optimized = [&](Recorder& recorder) {
        Activations& to = fused;
        recorder.on_stream("projection", stream, [&] {
            normalize_rows(stream, x.span(), to.normal.span(), sizes.width());
            multiply(to.normal, block.qkv, to.qkv, {.bias = Bias::per_column(block.qkv.bias.span())});
        });
        recorder.on_stream("attention", stream, [&] {
            bench::tile_programs().attention(stream, heads_of(to.qkv, sizes, 0, 3), heads_of(to.qkv, sizes, 1, 3),
                                             heads_of(to.qkv, sizes, 2, 3), heads_of(to.attended, sizes, 0, 1), false);
        });
        recorder.on_stream("output", stream, [&] {
            multiply(to.attended, block.out, to.x1,
                     {.c = x.matrix(sizes.tokens, sizes.width()), .bias = Bias::per_column(block.out.bias.span())});
        });
        recorder.on_stream("MLP", stream, [&] {
            normalize_rows(stream, to.x1.span(), to.normal.span(), sizes.width());
            multiply(to.normal, block.up, to.hidden,
                     {.bias = Bias::per_column(block.up.bias.span()), .activation = Activation::gelu});
            multiply(
                to.hidden, block.down, to.y,
                {.c = to.x1.matrix(sizes.tokens, sizes.width()), .bias = Bias::per_column(block.down.bias.span())});
        });
        stream.synchronize();
    };
    stream.synchronize();
    measure(context, outcome, baseline, optimized);

    // Eight tokens, the first and the last among them.
    std::vector<std::size_t> tokens;
    for (std::size_t i = 0; i < 8; ++i) {
        tokens.push_back(i * static_cast<std::size_t>(sizes.tokens - 1) / 7);
    }
    const auto width = static_cast<std::size_t>(sizes.width());
    const auto y_of_baseline = plain.y.to_vector(), y_of_optimized = fused.y.to_vector();
    const Matrix expected = reference(block, sizes, host_x, tokens);
    outcome.checks.push_back(
        check_rows("baseline against float64, eight tokens", y_of_baseline, expected, tokens, width));
    outcome.checks.push_back(
        check_rows("optimized against float64, eight tokens", y_of_optimized, expected, tokens, width));
    std::vector<std::size_t> all(static_cast<std::size_t>(sizes.tokens));
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = i;
    }
    outcome.checks.push_back(check_rows("both entries, all tokens", y_of_optimized,
                                        Matrix(y_of_baseline.begin(), y_of_baseline.end()), all, width));
    return outcome;
}

}  // namespace tessera::scenarios
