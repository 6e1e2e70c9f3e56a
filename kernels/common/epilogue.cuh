#pragma once

/// The element-wise epilogue: each thread scales its fp32 accumulators, adds C and bias, activates, rounds and stores
/// them to D in global memory.
///
/// The SIMT kernels use it for everything; the tensor-core kernels where TMA cannot store D. Output type, bias and
/// activation are run-time values here. Their branches are uniform and run once per output row, whereas one kernel per
/// combination would need 18 times the code. Each operation is a rounding intrinsic, which the compiler does not
/// contract, so all kernels give the same bits for the same accumulator.

#include <cstdint>

#include "gemm_arguments.hpp"
#include "tessera/element.hpp"

namespace tessera::kernels {

namespace detail {

/// Element `index` of a matrix or vector of `type`, one of the output types.
__device__ inline float load_element(const void* data, std::int64_t index, ElementType type)
{
    switch (type) {
        case ElementType::f16: return static_cast<const f16*>(data)[index];
        case ElementType::bf16: return static_cast<const bf16*>(data)[index];
        default: break;
    }
    return static_cast<const float*>(data)[index];
}

__device__ inline void store_element(void* data, std::int64_t index, ElementType type, float value)
{
    switch (type) {
        case ElementType::f16: static_cast<f16*>(data)[index] = f16(value); return;
        case ElementType::bf16: static_cast<bf16*>(data)[index] = bf16(value); return;
        default: break;
    }
    static_cast<float*>(data)[index] = value;
}

template <class Element>
__device__ inline uint2 pack4(const float (&values)[4])
{
    const auto pair = [&](int i) {
        return Element(values[i]).bits | static_cast<std::uint32_t>(Element(values[i + 1]).bits) << 16;
    };
    return make_uint2(pair(0), pair(2));
}

/// Stores four neighbouring elements with one instruction. Their address must be aligned to their total size.
__device__ inline void store_vector(void* data, std::int64_t index, ElementType type, const float (&values)[4])
{
    switch (type) {
        case ElementType::f16: *reinterpret_cast<uint2*>(static_cast<f16*>(data) + index) = pack4<f16>(values); return;
        case ElementType::bf16:
            *reinterpret_cast<uint2*>(static_cast<bf16*>(data) + index) = pack4<bf16>(values);
            return;
        default: break;
    }
    *reinterpret_cast<float4*>(static_cast<float*>(data) + index) =
        make_float4(values[0], values[1], values[2], values[3]);
}

/// x * Phi(x) with the exact normal distribution function Phi(x) = (1 + erf(x / sqrt 2)) / 2.
__device__ inline float gelu(float value)
{
    constexpr float inverse_sqrt_2 = 0.70710678118654752F;
    const float twice_phi = __fadd_rn(1.0F, erff(__fmul_rn(value, inverse_sqrt_2)));
    return __fmul_rn(__fmul_rn(0.5F, value), twice_phi);
}

/// x / (1 + exp(-x)).
__device__ inline float silu(float value) { return __fdiv_rn(value, __fadd_rn(1.0F, expf(-value))); }

template <int Columns>
__device__ inline void activate(float (&values)[Columns], ActivationKind kind)
{
    if (kind == ActivationKind::none) {
        return;
    }
#pragma unroll
    for (float& value : values) {
        switch (kind) {
            case ActivationKind::relu: value = value < 0.0F ? 0.0F : value; break;  // keeps NaN, unlike fmaxf
            case ActivationKind::gelu: value = gelu(value); break;
            case ActivationKind::silu: value = silu(value); break;
            case ActivationKind::none: break;
        }
    }
}

}  // namespace detail

/// Writes accumulators to one matrix of the batch D. A thread's own object; no thread synchronizes with another.
class Epilogue {
public:
    __device__ Epilogue(const GemmArguments& arguments, std::int64_t batch)
        : arguments_(arguments),
          c_offset_(batch * arguments.c.batch_stride),
          d_offset_(batch * arguments.d_batch_stride),
          alpha_(scaled_alpha(arguments)),
          vector_stores_(can_store_vectors(arguments, d_offset_))
    {}

    /// Writes D(row, column + j) from accumulator[j], the sum of products, for each j inside D. `column` must be a
    /// multiple of `Columns`.
    template <int Columns>
    __device__ __forceinline__ void store(std::int64_t row, std::int64_t column,
                                          const float (&accumulator)[Columns]) const
    {
        if (row >= arguments_.m || column >= arguments_.n) {
            return;
        }
        const auto columns = static_cast<int>(min(static_cast<std::int64_t>(Columns), arguments_.n - column));
        float values[Columns];
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
            // Zeros that pad K turn a sum of -0 into +0. Adding +0 always does so, whatever the padding.
            values[j] = __fmul_rn(alpha_, __fadd_rn(accumulator[j], 0.0F));
        }
        add_c(row, column, columns, values);
        add_bias(row, column, columns, values);
        detail::activate(values, arguments_.activation);

        const std::int64_t index = d_offset_ + row * arguments_.d_row_stride + column * arguments_.d_column_stride;
        if constexpr (Columns == 4) {
            if (vector_stores_ && columns == Columns) {
                detail::store_vector(arguments_.d, index, arguments_.d_type, values);
                return;
            }
        }
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
            if (j < columns) {
                detail::store_element(arguments_.d, index + j * arguments_.d_column_stride, arguments_.d_type,
                                      values[j]);
            }
        }
    }

    /// As store(), for D = alpha * A * B whose rows begin, end and are spaced at multiples of four elements.
    __device__ __forceinline__ void store_plain(std::int64_t row, std::int64_t column,
                                                const float (&accumulator)[4]) const
    {
        if (row >= arguments_.m || column >= arguments_.n) {
            return;
        }
        float values[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            values[j] = __fmul_rn(alpha_, __fadd_rn(accumulator[j], 0.0F));
        }
        detail::store_vector(arguments_.d, d_offset_ + row * arguments_.d_row_stride + column, arguments_.d_type,
                             values);
    }

    /// alpha times the scales of A and B.
    __device__ static float scaled_alpha(const GemmArguments& arguments)
    {
        float alpha = arguments.alpha;
        if (arguments.scale_a != nullptr) {
            alpha = __fmul_rn(alpha, *arguments.scale_a);
        }
        if (arguments.scale_b != nullptr) {
            alpha = __fmul_rn(alpha, *arguments.scale_b);
        }
        return alpha;
    }

private:
    __device__ static bool can_store_vectors(const GemmArguments& arguments, std::int64_t offset)
    {
        const std::uint64_t size = arguments.d_type == ElementType::f32 ? 4 : 2;
        const std::uint64_t first = reinterpret_cast<std::uint64_t>(arguments.d) + offset * size;
        const std::uint64_t row = arguments.d_row_stride * size;
        return arguments.d_column_stride == 1 && (first | row) % (4 * size) == 0;
    }

    template <int Columns>
    __device__ void add_c(std::int64_t row, std::int64_t column, int columns, float (&values)[Columns]) const
    {
        if (arguments_.beta == 0.0F) {
            return;
        }
        const Operand& c = arguments_.c;
        const std::int64_t index = c_offset_ + row * c.row_stride + column * c.column_stride;
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
            if (j < columns) {
                const float element = detail::load_element(c.data, index + j * c.column_stride, arguments_.d_type);
                values[j] = __fmaf_rn(arguments_.beta, element, values[j]);
            }
        }
    }

    template <int Columns>
    __device__ void add_bias(std::int64_t row, std::int64_t column, int columns, float (&values)[Columns]) const
    {
        if (arguments_.bias_axis == BiasAxis::none) {
            return;
        }
        const bool per_row = arguments_.bias_axis == BiasAxis::per_row;
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
            if (j < columns) {
                const std::int64_t index = per_row ? row : column + j;
                values[j] = __fadd_rn(values[j], detail::load_element(arguments_.bias, index, arguments_.bias_type));
            }
        }
    }

    const GemmArguments& arguments_;  // the kernel parameter, in constant memory
    std::int64_t c_offset_;
    std::int64_t d_offset_;
    float alpha_;  // times the scales of A and B
    bool vector_stores_;
};

}  // namespace tessera::kernels
