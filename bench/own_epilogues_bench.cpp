#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "method/timer.hpp"
#include "problem/random.hpp"
#include "tessera/tessera.hpp"
#include "tiles/own_epilogues.hpp"
#include "tiles_bench.hpp"

namespace tessera::bench {
namespace {

/// The operands of a product, several times.
class Operands {
public:
    Operands(StreamRef stream, const Shape& shape, std::uint64_t seed) : shape_(shape)
    {
        const auto elements = static_cast<std::size_t>(shape.m * shape.k + shape.k * shape.n + 2 * shape.m * shape.n);
        sets = std::clamp<std::size_t>(rotated_bytes / (elements * sizeof(bf16)), 1, 64);
        std::uint64_t sequence = 0;
        const auto normal = [&]<class T>(T, std::int64_t count) {
            std::vector<T> values(static_cast<std::size_t>(count));
            fill_normal<T>(values, seed, ++sequence);
            return DeviceBuffer<T>::from_host(stream, values);
        };
        for (std::size_t set = 0; set < sets; ++set) {
            a_.push_back(normal(bf16{}, shape.m * shape.k));
            b_.push_back(normal(bf16{}, shape.k * shape.n));
            c_.push_back(normal(bf16{}, shape.m * shape.n));
            d_.emplace_back(stream, static_cast<std::size_t>(shape.m * shape.n));
        }
        bias_ = normal(float{}, shape.n);
    }

    EpilogueOperands of(std::size_t set)
    {
        return {a_[set].matrix(shape_.m, shape_.k), b_[set].matrix(shape_.k, shape_.n, ColumnMajor{}),
                c_[set].matrix(shape_.m, shape_.n), bias_.span(), d_[set].matrix(shape_.m, shape_.n)};
    }
    std::vector<bf16> result() const { return d_[0].to_vector(); }

    std::size_t sets = 0;

private:
    Shape shape_;
    std::vector<DeviceBuffer<bf16>> a_, b_, c_, d_;
    DeviceBuffer<float> bias_;
};

}  // namespace

void run_own_epilogues(const Device& device, const TilesOptions& options)
{
    const Stream stream(device);
    const DeviceTimer timer(device);
    fmt::print(
        "{}; bf16, B column-major; medians of {} rounds; us; own: the same epilogue as a function of one's own\n\n"
        "| Shape | plain | bias, ReLU | own | bias, GELU with tanh | own | residual | own "
        "|\n|---|---|---|---|---|---|---|---|\n",
        device.properties().name, options.rounds);
    for (const Shape& shape : options.shapes) {
        Operands operands(stream, shape, options.seed);
        const auto with = [&](const Epilogue& epilogue) {
            return [&operands, epilogue](StreamRef on, std::size_t set) {
                const EpilogueOperands of = operands.of(set);
                Epilogue used = epilogue;
                if (used.beta) {
                    used.c = of.c;
                }
                Gemm::launch(on, of.a, of.b, of.d, used);
            };
        };
        const auto own = [&](void (*launch)(StreamRef, const EpilogueOperands&)) {
            return [&operands, launch](StreamRef on, std::size_t set) { launch(on, operands.of(set)); };
        };
        const Bias bias = Bias::per_column(operands.of(0).bias);
        const std::vector<Contender> contenders{
            {"plain", with({})},
            {"bias, ReLU", with({.bias = bias, .activation = Activation::relu})},
            {"own bias, ReLU", own(own_bias_relu)},
            {"bias, GELU", with({.bias = bias, .activation = Activation::gelu_tanh})},
            {"own bias, GELU", own(own_bias_gelu_tanh)},
            {"residual", with({.beta = 1.0F})},
            {"own residual", own(own_residual)},
        };
        for (std::size_t i = 1; i < contenders.size(); i += 2) {
            contenders[i].launch(stream, 0);
            const std::vector<bf16> expected = operands.result();
            contenders[i + 1].launch(stream, 0);
            require_close(operands.result(), expected, bf16_tolerance, std::string(contenders[i + 1].name));
        }
        const std::vector<double> seconds = median_seconds(timer, stream, options, contenders, operands.sets);
        std::string line = fmt::format("| {}x{}x{} | {:.1f}", shape.m, shape.n, shape.k, seconds[0] * 1e6);
        for (std::size_t i = 1; i < seconds.size(); i += 2) {
            line += fmt::format(" | {:.1f} | {:.1f} ({:.2f})", seconds[i] * 1e6, seconds[i + 1] * 1e6,
                                seconds[i] / seconds[i + 1]);
        }
        fmt::print("{} |\n", line);
        std::fflush(stdout);
    }
}

}  // namespace tessera::bench
