#include <algorithm>
#include <cmath>
#include <numeric>

#include "problem/parallel.hpp"
#include "scenarios/training.hpp"

namespace tessera::scenarios {
namespace {

using Values = std::vector<double>;

/// y = x * w + bias, with w (inputs, outputs) and bias in `parameters`; x has a row for each sample.
Values layer_result(const Network& network, std::size_t layer, const Values& x, const Values& parameters)
{
    const auto inputs = static_cast<std::size_t>(network.widths[layer]),
               outputs = static_cast<std::size_t>(network.widths[layer + 1]);
    const double* const w = parameters.data() + network.weight_offset(layer);
    const double* const bias = parameters.data() + network.bias_offset(layer);
    Values y(x.size() / inputs * outputs);
    bench::for_each_in_parallel(x.size() / inputs, [&](std::size_t row) {
        double* const to = y.data() + row * outputs;
        std::copy(bias, bias + outputs, to);
        for (std::size_t l = 0; l < inputs; ++l) {
            for (std::size_t j = 0; j < outputs; ++j) {
                to[j] += x[row * inputs + l] * w[l * outputs + j];
            }
        }
        if (layer + 1 < layers) {
            std::transform(to, to + outputs, to, [](double value) { return std::max(value, 0.0); });
        }
    });
    return y;
}

/// gradients = x' * delta, and the sums of delta's columns. Some rows of the gradient at a time fit a cache.
void layer_gradients(const Network& network, std::size_t layer, const Values& x, const Values& delta, Values& gradients)
{
    constexpr std::size_t block = 16;
    const auto inputs = static_cast<std::size_t>(network.widths[layer]),
               outputs = static_cast<std::size_t>(network.widths[layer + 1]);
    const std::size_t rows = x.size() / inputs;
    double* const of_weights = gradients.data() + network.weight_offset(layer);
    double* const of_bias = gradients.data() + network.bias_offset(layer);
    bench::for_each_in_parallel((inputs + block - 1) / block, [&](std::size_t task) {
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t i = task * block; i < std::min(inputs, (task + 1) * block); ++i) {
                const double factor = x[row * inputs + i];
                for (std::size_t j = 0; factor != 0 && j < outputs; ++j) {
                    of_weights[i * outputs + j] += factor * delta[row * outputs + j];
                }
            }
        }
    });
    for (std::size_t i = 0; i < delta.size(); ++i) {
        of_bias[i % outputs] += delta[i];
    }
}

/// The gradient with respect to the layer's input x, which is a ReLU's result.
Values input_gradient(const Network& network, std::size_t layer, const Values& x, const Values& delta,
                      const Values& parameters)
{
    const auto inputs = static_cast<std::size_t>(network.widths[layer]),
               outputs = static_cast<std::size_t>(network.widths[layer + 1]);
    const double* const w = parameters.data() + network.weight_offset(layer);
    Values result(x.size());
    bench::for_each_in_parallel(x.size() / inputs, [&](std::size_t row) {
        for (std::size_t i = 0; i < inputs; ++i) {
            if (x[row * inputs + i] > 0) {
                result[row * inputs + i] =
                    std::inner_product(w + i * outputs, w + (i + 1) * outputs, delta.data() + row * outputs, 0.0);
            }
        }
    });
    return result;
}

/// (softmax - target) / samples, row by row.
Values logit_gradient(const Values& logits, const std::vector<std::int32_t>& labels)
{
    const std::size_t classes = logits.size() / labels.size();
    Values delta(logits.size());
    for (std::size_t row = 0; row < labels.size(); ++row) {
        const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * classes);
        const double highest = *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(classes));
        double sum = 0;
        for (std::size_t j = 0; j < classes; ++j) {
            sum += std::exp(logits[row * classes + j] - highest);
        }
        for (std::size_t j = 0; j < classes; ++j) {
            const double target = j == static_cast<std::size_t>(labels[row]) ? 1 : 0;
            delta[row * classes + j] =
                (std::exp(logits[row * classes + j] - highest) / sum - target) / static_cast<double>(labels.size());
        }
    }
    return delta;
}

double norm(const Values& values)
{
    return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

}  // namespace

std::vector<float> initial_parameters(const Context& context, const Network& network)
{
    std::vector<float> parameters(network.size(), 0.0F);
    for (std::size_t layer = 0; layer < layers; ++layer) {
        const std::int64_t inputs = network.widths[layer];
        const auto weights = normal_values<float>(context, inputs * network.widths[layer + 1], layer + 1,
                                                  std::sqrt(2 / static_cast<float>(inputs)));
        std::copy(weights.begin(), weights.end(),
                  parameters.begin() + static_cast<std::ptrdiff_t>(network.weight_offset(layer)));
    }
    return parameters;
}

std::vector<double> train_in_float64(const Training& training)
{
    const Network& network = training.network;
    Values parameters(training.start.begin(), training.start.end());
    for (int step = 0; step < training.steps; ++step) {
        std::vector<Values> results{Values(training.samples.images.begin(), training.samples.images.end())};
        for (std::size_t layer = 0; layer < layers; ++layer) {
            results.push_back(layer_result(network, layer, results.back(), parameters));
        }
        Values delta = logit_gradient(results.back(), training.samples.labels);
        Values gradients(network.size());
        for (std::size_t layer = layers; layer-- > 0;) {
            layer_gradients(network, layer, results[layer], delta, gradients);
            if (layer > 0) {
                delta = input_gradient(network, layer, results[layer], delta, parameters);
            }
        }
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            parameters[i] -= double{training.rate} * gradients[i];
        }
    }
    return parameters;
}

Check check_parameters(std::string what, const Training& training, const std::vector<float>& found,
                       const std::vector<double>& expected)
{
    Values difference(expected), change(expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        difference[i] -= double{found[i]};
        change[i] -= double{training.start[i]};
    }
    constexpr double roundoff = element_traits<float>::unit_roundoff;
    const double bound = training.steps * roundoff *
                         (static_cast<double>(training.samples.labels.size()) * norm(change) + norm(expected));
    const double ratio = norm(difference) / bound;
    return {std::move(what), "the norm of what each step rounds: sums over all samples, and the parameters, in f32",
            std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio};
}

}  // namespace tessera::scenarios
