#pragma once

/// The epilogue of a product: the `--epilogue` axis of `tessera-bench gemm`.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::bench {

/// D = act(A*B + C + bias). The names are those of the command line and of the reports.
enum class Fusion : std::uint8_t {
    none,            ///< D = A*B
    bias,            ///< one number per column of D
    bias_relu,       ///< a bias, then max(x, 0)
    bias_gelu,       ///< a bias, then GELU
    bias_gelu_tanh,  ///< a bias, then GELU in its tanh form, on both sides
    bias_silu,       ///< a bias, then SiLU; cuBLASLt has none, so a kernel of its own follows its product
    swiglu,          ///< silu(x) * y of the two halves x, y of A*B; of cuBLASLt a kernel follows, too
    residual,        ///< beta = 1: C has D's type and layout, and is another matrix
    scaled,          ///< D = scale_a * scale_b * A*B, both on the device: for 8-bit inputs
};

constexpr bool has_bias(Fusion fusion) noexcept
{
    return fusion == Fusion::bias || fusion == Fusion::bias_relu || fusion == Fusion::bias_gelu ||
           fusion == Fusion::bias_gelu_tanh || fusion == Fusion::bias_silu;
}
constexpr bool has_scales(Fusion fusion) noexcept { return fusion == Fusion::scaled; }
/// D has half as many columns as B.
constexpr bool is_gated(Fusion fusion) noexcept { return fusion == Fusion::swiglu; }
constexpr bool has_c(Fusion fusion) noexcept { return fusion == Fusion::residual; }

/// What `scaled` multiplies A and B with: powers of two, which round nothing.
inline constexpr float scale_of_a = 0.5F;
inline constexpr float scale_of_b = 0.25F;

/// Two functions are called GELU. Tessera computes the first, cuBLASLt the second.
enum class GeluForm : std::uint8_t {
    erf,   ///< x/2 * (1 + erf(x / sqrt 2))
    tanh,  ///< x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) (Hendrycks and Gimpel, arXiv 1606.08415)
};

/// How a contender computes an epilogue.
struct EpilogueArithmetic {
    GeluForm gelu = GeluForm::erf;
    /// The product may be rounded to D's type before the bias or C is added. cuBLASLt does so for some small products.
    bool may_round_product = false;
    /// The activation's arguments are rounded to D's type: a kernel of its own reads them from memory.
    bool rounds_arguments = false;
};

/// Returns the activation of `fusion` at x, in float64.
double activate(Fusion fusion, GeluForm form, double x);

/// Returns the largest factor by which `activate` multiplies an error of its argument.
double activation_slope(Fusion fusion) noexcept;

/// Returns the error that a kernel's arithmetic of the activation may add, as a fraction of |x|: tensor-core kernels
/// use approximate instructions for special functions (tanh.approx.f32: 2^-11, PTX ISA).
double activation_error(Fusion fusion, GeluForm form) noexcept;

std::string_view to_string(Fusion fusion) noexcept;
std::vector<std::string_view> fusion_names();
/// The inverse. @throws std::invalid_argument listing all names
Fusion parse_fusion(std::string_view text);

}  // namespace tessera::bench
