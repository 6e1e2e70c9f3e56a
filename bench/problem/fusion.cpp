#include "problem/fusion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace tessera::bench {
namespace {

constexpr std::array fusions{Fusion::none,      Fusion::bias,           Fusion::bias_relu,
                             Fusion::bias_gelu, Fusion::bias_gelu_tanh, Fusion::bias_silu,
                             Fusion::swiglu,    Fusion::residual,       Fusion::scaled};

double gelu_tanh(double x)
{
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

}  // namespace

double activate(Fusion fusion, GeluForm form, double x)
{
    switch (fusion) {
        case Fusion::bias_relu: return std::max(x, 0.0);
        case Fusion::bias_gelu:
            return form == GeluForm::erf ? 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)) : gelu_tanh(x);
        case Fusion::bias_gelu_tanh: return gelu_tanh(x);
        case Fusion::bias_silu:
        case Fusion::swiglu: return x / (1 + std::exp(-x));
        case Fusion::none:
        case Fusion::bias:
        case Fusion::residual:
        case Fusion::scaled: break;
    }
    return x;
}

double activation_slope(Fusion fusion) noexcept
{
    switch (fusion) {
        case Fusion::bias_gelu:
        case Fusion::bias_gelu_tanh: return 1.13;  // GELU's largest derivative, both forms: 1.129
        case Fusion::bias_silu:
        case Fusion::swiglu: return 1.10;  // 1.0999
        default: return 1;
    }
}

double activation_error(Fusion fusion, GeluForm form) noexcept
{
    if (fusion == Fusion::bias_silu || fusion == Fusion::swiglu) {
        return 0x1p-20;
    }
    if (fusion != Fusion::bias_gelu && fusion != Fusion::bias_gelu_tanh) {
        return 0;
    }
    return form == GeluForm::tanh ? 0x1p-11 : 0x1p-20;
}

std::string_view to_string(Fusion fusion) noexcept
{
    switch (fusion) {
        case Fusion::none: return "none";
        case Fusion::bias: return "bias";
        case Fusion::bias_relu: return "bias+relu";
        case Fusion::bias_gelu: return "bias+gelu";
        case Fusion::bias_gelu_tanh: return "bias+gelu_tanh";
        case Fusion::bias_silu: return "bias+silu";
        case Fusion::swiglu: return "swiglu";
        case Fusion::residual: return "residual";
        case Fusion::scaled: return "scaled";
    }
    return "unknown";
}

std::vector<std::string_view> fusion_names()
{
    std::vector<std::string_view> names;
    for (const Fusion fusion : fusions) {
        names.push_back(to_string(fusion));
    }
    return names;
}

Fusion parse_fusion(std::string_view text)
{
    for (const Fusion fusion : fusions) {
        if (text == to_string(fusion)) {
            return fusion;
        }
    }
    throw std::invalid_argument(
        fmt::format("'{}' is not an epilogue: write one of {}", text, fmt::join(fusion_names(), ", ")));
}

}  // namespace tessera::bench
