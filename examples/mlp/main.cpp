// Two layers of a network, as in a transformer: H = gelu(X * W1' + b1), Y = X + H * W2' + b2, in bf16.
//
// Weights are stored as frameworks do, [out, in]. A layer multiplies by their transposed view, which moves nothing.
// Bias, activation and residual are the product's epilogue: each layer is one kernel.
#include <tessera/tessera.hpp>

#include <cstdio>
#include <vector>

#include "common/exact_sum.hpp"
#include "common/run_example.hpp"

using namespace tessera;

namespace {

constexpr std::size_t tokens = 40;
constexpr std::size_t width = 128;
constexpr std::size_t hidden = 192;

/// Returns how many elements of act(in * w' + bias + residual) are wrong. `in` is the layer's real input, so that an
/// earlier layer's rounding does not count again. `residual` is empty if there is none.
std::size_t wrong_elements(const std::vector<bf16>& out, const std::vector<bf16>& in, const std::vector<bf16>& w,
                           const std::vector<float>& bias, const std::vector<bf16>& residual, Activation activation)
{
    const std::size_t outputs = bias.size();
    const std::size_t inputs = w.size() / outputs;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        examples::ExactSum sum;
        for (std::size_t k = 0; k < inputs; ++k) {
            sum.add(double{float(in[i / outputs * inputs + k])} * double{float(w[i % outputs * inputs + k])});
        }
        sum.add(double{bias[i % outputs]});
        sum.add(residual.empty() ? 0.0 : double{float(residual[i])});
        wrong += sum.allows(double{float(out[i])}, ElementType::bf16, activation) ? 0 : 1;
    }
    return wrong;
}

int run()
{
    const auto x = examples::random_values<bf16>(tokens * width, 1);
    const auto w1 = examples::random_values<bf16>(hidden * width, 2);
    const auto w2 = examples::random_values<bf16>(width * hidden, 3);
    const auto b1 = examples::random_values<float>(hidden, 4);
    const auto b2 = examples::random_values<float>(width, 5);

    const Stream stream;
    const auto device_x = DeviceBuffer<bf16>::from_host(stream, x);
    const auto device_w1 = DeviceBuffer<bf16>::from_host(stream, w1);
    const auto device_w2 = DeviceBuffer<bf16>::from_host(stream, w2);
    const auto device_b1 = DeviceBuffer<float>::from_host(stream, b1);
    const auto device_b2 = DeviceBuffer<float>::from_host(stream, b2);
    DeviceBuffer<bf16> device_h(stream, tokens * hidden);
    DeviceBuffer<bf16> device_y(stream, tokens * width);

    Gemm::launch(stream, device_x.matrix(tokens, width), device_w1.matrix(hidden, width).transposed(),
                 device_h.matrix(tokens, hidden),
                 {.bias = Bias::per_column(device_b1.span()), .activation = Activation::gelu});
    // The residual is C; beta is 1.
    Gemm::launch(stream, device_h.matrix(tokens, hidden), device_w2.matrix(width, hidden).transposed(),
                 device_y.matrix(tokens, width),
                 {.c = device_x.matrix(tokens, width), .bias = Bias::per_column(device_b2.span())});

    const auto h = device_h.to_vector();
    const auto y = device_y.to_vector();
    const std::size_t wrong =
        wrong_elements(h, x, w1, b1, {}, Activation::gelu) + wrong_elements(y, h, w2, b2, x, Activation::none);
    std::printf("mlp: %zu of %zu elements are wrong\n", wrong, h.size() + y.size());
    return wrong == 0 ? examples::exit_success : examples::exit_failure;
}

}  // namespace

int main() { return examples::run_example("mlp", run); }
