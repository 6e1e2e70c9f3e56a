#include "scenarios/kernels.hpp"

#include "tessera/launch.hpp"

namespace tessera::scenarios {
namespace {

/// What a thread loads and stores at once: 16 bytes.
struct alignas(16) Pack {
    static constexpr unsigned size = 8;
    bf16 values[size];
};

__device__ std::size_t thread_in_grid() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

__device__ Pack& pack_of(DeviceSpan<bf16> span, std::size_t number)
{
    return reinterpret_cast<Pack*>(span.data())[number];
}
__device__ const Pack& pack_of(DeviceSpan<const bf16> span, std::size_t number)
{
    return reinterpret_cast<const Pack*>(span.data())[number];
}

/// Replaces each value of a pack by function(value, place in the matrix).
template <class Function>
__device__ void change_pack(DeviceSpan<bf16> d, Function&& function)
{
    const std::size_t number = thread_in_grid();
    if (number < d.size() / Pack::size) {
        Pack pack = pack_of(d, number);
        for (unsigned i = 0; i < Pack::size; ++i) {
            pack.values[i] = bf16(function(float(pack.values[i]), number * Pack::size + i));
        }
        pack_of(d, number) = pack;
    }
}

__global__ void add_bias_16(DeviceSpan<bf16> d, DeviceSpan<const float> bias)
{
    change_pack(d, [&](float value, std::size_t place) { return value + bias[place % bias.size()]; });
}

__global__ void gelu_16(DeviceSpan<bf16> d)
{
    change_pack(d, [](float value, std::size_t) { return 0.5F * value * (1 + erff(value * 0.70710678F)); });
}

__global__ void add_residual_16(DeviceSpan<bf16> d, DeviceSpan<const bf16> residual)
{
    const std::size_t number = thread_in_grid();
    if (number < d.size() / Pack::size) {
        const Pack other = pack_of(residual, number);
        change_pack(d, [&](float value, std::size_t place) { return value + float(other.values[place % Pack::size]); });
    }
}

constexpr unsigned row_threads = 256;

/// Combines a value of each thread of the CTA.
template <class Combine>
__device__ float over_cta(float value, Combine&& combine)
{
    __shared__ float of_warps[row_threads / 32];
    for (unsigned distance = 16; distance != 0; distance /= 2) {
        value = combine(value, __shfl_xor_sync(0xFFFFFFFF, value, distance));
    }
    __syncthreads();  // the last use's reads have ended
    if (threadIdx.x % 32 == 0) {
        of_warps[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = of_warps[0];
    for (unsigned warp = 1; warp < row_threads / 32; ++warp) {
        value = combine(value, of_warps[warp]);
    }
    return value;
}

__device__ float sum_over_cta(float value)
{
    return over_cta(value, [](float left, float right) { return left + right; });
}

/// Calls function(value) of each element of the CTA's row.
template <class Function>
__device__ void for_row(DeviceSpan<const bf16> x, unsigned packs, Function&& function)
{
    for (unsigned i = threadIdx.x; i < packs; i += row_threads) {
        const Pack pack = pack_of(x, std::size_t{blockIdx.x} * packs + i);
        for (const bf16 value : pack.values) {
            function(float(value));
        }
    }
}

/// Replaces each element of the CTA's row.
template <class Function>
__device__ void write_row(DeviceSpan<const bf16> x, DeviceSpan<bf16> y, unsigned packs, Function&& function)
{
    for (unsigned i = threadIdx.x; i < packs; i += row_threads) {
        const std::size_t number = std::size_t{blockIdx.x} * packs + i;
        Pack pack = pack_of(x, number);
        for (bf16& value : pack.values) {
            value = bf16(function(float(value)));
        }
        pack_of(y, number) = pack;
    }
}

__global__ void __launch_bounds__(row_threads) softmax_16(DeviceSpan<bf16> d, unsigned packs)
{
    float highest = -INFINITY;
    for_row(d, packs, [&](float value) { highest = fmaxf(highest, value); });
    highest = over_cta(highest, [](float left, float right) { return fmaxf(left, right); });
    float sum = 0;
    for_row(d, packs, [&](float value) { sum += __expf(value - highest); });
    sum = sum_over_cta(sum);
    write_row(d, d, packs, [&](float value) { return __expf(value - highest) / sum; });
}

__global__ void __launch_bounds__(row_threads)
    normalize_16(DeviceSpan<const bf16> x, DeviceSpan<bf16> y, unsigned packs)
{
    const float count = static_cast<float>(packs * Pack::size);
    float sum = 0;
    for_row(x, packs, [&](float value) { sum += value; });
    const float mean = sum_over_cta(sum) / count;
    float squares = 0;
    for_row(x, packs, [&](float value) { squares += (value - mean) * (value - mean); });
    const float factor = rsqrtf(sum_over_cta(squares) / count + 1e-5F);
    write_row(x, y, packs, [&](float value) { return (value - mean) * factor; });
}

__global__ void add_bias_32(DeviceSpan<float> d, DeviceSpan<const float> bias)
{
    const std::size_t i = thread_in_grid();
    if (i < d.size()) {
        d[i] += bias[i % bias.size()];
    }
}

__global__ void relu_32(DeviceSpan<float> d)
{
    const std::size_t i = thread_in_grid();
    if (i < d.size()) {
        d[i] = fmaxf(d[i], 0);
    }
}

__global__ void relu_gradient_32(DeviceSpan<float> gradient, DeviceSpan<const float> result)
{
    const std::size_t i = thread_in_grid();
    if (i < gradient.size() && result[i] == 0) {
        gradient[i] = 0;
    }
}

__global__ void add_scaled_32(DeviceSpan<float> to, float factor, DeviceSpan<const float> from)
{
    const std::size_t i = thread_in_grid();
    if (i < to.size()) {
        to[i] += factor * from[i];
    }
}

/// One thread for each sample: a row has a few classes.
__global__ void cross_entropy_32(DeviceSpan<const float> logits, DeviceSpan<const std::int32_t> labels, float factor,
                                 DeviceSpan<float> gradient, DeviceSpan<float> losses)
{
    const std::size_t row = thread_in_grid();
    if (row >= labels.size()) {
        return;
    }
    const std::size_t classes = logits.size() / labels.size();
    const std::size_t first = row * classes;
    float highest = logits[first];
    for (std::size_t j = 1; j < classes; ++j) {
        highest = fmaxf(highest, logits[first + j]);
    }
    float sum = 0;
    for (std::size_t j = 0; j < classes; ++j) {
        sum += expf(logits[first + j] - highest);
    }
    const auto label = static_cast<std::size_t>(labels[row]);
    for (std::size_t j = 0; j < classes; ++j) {
        const float probability = expf(logits[first + j] - highest) / sum;
        gradient[first + j] = factor * (probability - (j == label ? 1 : 0));
    }
    losses[row] = logf(sum) - (logits[first + label] - highest);
}

unsigned packs_of_row(std::int64_t columns) { return static_cast<unsigned>(columns / Pack::size); }

}  // namespace

void add_bias(StreamRef stream, DeviceSpan<bf16> d, DeviceSpan<const float> bias)
{
    launch(add_bias_16, LaunchConfig::covering(stream, d.size() / Pack::size), d, bias);
}

void apply_gelu(StreamRef stream, DeviceSpan<bf16> d)
{
    launch(gelu_16, LaunchConfig::covering(stream, d.size() / Pack::size), d);
}

void add_residual(StreamRef stream, DeviceSpan<bf16> d, DeviceSpan<const bf16> residual)
{
    launch(add_residual_16, LaunchConfig::covering(stream, d.size() / Pack::size), d, residual);
}

void softmax_rows(StreamRef stream, DeviceSpan<bf16> d, std::int64_t columns)
{
    const auto rows = static_cast<unsigned>(d.size() / static_cast<std::size_t>(columns));
    launch(softmax_16, LaunchConfig(stream, {rows}, {row_threads}), d, packs_of_row(columns));
}

void normalize_rows(StreamRef stream, DeviceSpan<const bf16> x, DeviceSpan<bf16> y, std::int64_t columns)
{
    const auto rows = static_cast<unsigned>(x.size() / static_cast<std::size_t>(columns));
    launch(normalize_16, LaunchConfig(stream, {rows}, {row_threads}), x, y, packs_of_row(columns));
}

void add_bias(StreamRef stream, DeviceSpan<float> d, DeviceSpan<const float> bias)
{
    launch(add_bias_32, LaunchConfig::covering(stream, d.size()), d, bias);
}

void apply_relu(StreamRef stream, DeviceSpan<float> d) { launch(relu_32, LaunchConfig::covering(stream, d.size()), d); }

void relu_gradient(StreamRef stream, DeviceSpan<float> gradient, DeviceSpan<const float> result)
{
    launch(relu_gradient_32, LaunchConfig::covering(stream, gradient.size()), gradient, result);
}

void add_scaled(StreamRef stream, DeviceSpan<float> to, float factor, DeviceSpan<const float> from)
{
    launch(add_scaled_32, LaunchConfig::covering(stream, to.size()), to, factor, from);
}

void cross_entropy(StreamRef stream, DeviceSpan<const float> logits, DeviceSpan<const std::int32_t> labels,
                   std::int64_t samples, DeviceSpan<float> gradient, DeviceSpan<float> losses)
{
    launch(cross_entropy_32, LaunchConfig::covering(stream, labels.size()), logits, labels,
           1 / static_cast<float>(samples), gradient, losses);
}

}  // namespace tessera::scenarios
