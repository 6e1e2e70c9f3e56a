#pragma once

/// Layers of public neural networks, as products.

#include <cstdint>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace tessera::bench {

/// A linear layer: D (tokens, n) = A (tokens, k) * B (k, n).
struct ModelLayer {
    std::string_view family;  ///< "Llama 3 8B"
    std::string_view layer;   ///< "gate+up"
    std::int64_t n;
    std::int64_t k;
};

/// All layers, each (n, k) once: where families share a layer, it has the first one's name.
const std::vector<ModelLayer>& model_layers();

/// One problem per layer and count of tokens, named by family and layer. Without `tokens`, each layer has one count
/// from 1 to 16384, in turn, or the largest whose D has at most 2^28 elements.
std::vector<Problem> model_problems(const Types& types, const Orders& orders, const std::vector<std::int64_t>& tokens);

}  // namespace tessera::bench
