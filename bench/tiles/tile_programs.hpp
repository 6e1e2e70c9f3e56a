#pragma once

/// The tile programs that `tessera-bench tiles` measures.

#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/element.hpp"
#include "tessera/matrix_view.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// A GEMM as a tile program: all matrices row-major.
struct TileGemmConfig {
    std::string_view name;  ///< rows x columns of a tile of D x steps along K
    void (*launch)(StreamRef stream, const MatrixView<const bf16>& a, const MatrixView<const bf16>& b,
                   const MatrixView<bf16>& d);
};

/// The longest row of `softmax` and `layer_norm`.
inline constexpr std::int64_t most_row_elements = 8192;
inline constexpr std::int64_t attention_depth = 128;  ///< columns of q, k and v

/// All programs.
struct TilePrograms {
    using Rows = void (*)(StreamRef stream, const MatrixView<const bf16>& x, const MatrixView<bf16>& y);

    std::vector<TileGemmConfig> products;
    Rows softmax;     ///< y = softmax of each row of x
    Rows layer_norm;  ///< y = each row of x, less its mean, divided by its standard deviation
    /// z = softmax(q * k^T / sqrt(128)) * v for each head.
    void (*attention)(StreamRef stream, const BatchView<const bf16>& q, const BatchView<const bf16>& k,
                      const BatchView<const bf16>& v, const BatchView<bf16>& z, bool causal);
};

/// For any matrices.
const TilePrograms& tile_programs();
/// For matrices that are whole tiles: compiled without bounds checks, with the first four products.
const TilePrograms& whole_tile_programs();

}  // namespace tessera::bench
