#pragma once

/// The network of the scenario `training`, and its float64 reference.

#include <array>
#include <cstdint>
#include <vector>

#include "scenarios/operands.hpp"

namespace tessera::scenarios {

inline constexpr std::size_t layers = 3;

/// Layers with a weight (inputs, outputs) and a bias each, and ReLU between. All parameters are one array, layer by layer.
struct Network {
    std::array<std::int64_t, layers + 1> widths;

    std::size_t weight_offset(std::size_t layer) const
    {
        std::size_t offset = 0;
        for (std::size_t i = 0; i < layer; ++i) {
            offset += static_cast<std::size_t>((widths[i] + 1) * widths[i + 1]);
        }
        return offset;
    }
    std::size_t bias_offset(std::size_t layer) const
    {
        return weight_offset(layer) + static_cast<std::size_t>(widths[layer] * widths[layer + 1]);
    }
    std::size_t size() const { return weight_offset(layers); }
};

struct Samples {
    std::vector<float> images;  // (labels, pixels)
    std::vector<std::int32_t> labels;
};

/// Normal weights whose squares sum to 2 for each output, and biases of 0.
std::vector<float> initial_parameters(const Context& context, const Network& network);

/// Gradient descent on the whole batch: parameters -= rate * gradient of the mean cross entropy, `steps` times.
struct Training {
    const Network& network;
    const Samples& samples;
    const std::vector<float>& start;
    int steps;
    float rate;
};

/// Returns the parameters after the training, computed in float64.
std::vector<double> train_in_float64(const Training& training);

/// Checks the Frobenius norm of the difference of two results of a training.
Check check_parameters(std::string what, const Training& training, const std::vector<float>& found,
                       const std::vector<double>& expected);

}  // namespace tessera::scenarios
