#pragma once

/// The operations of the epilogue, each of them once for all kernels, and their chain.
///
/// Output type, bias and activation are run-time values. Their branches are uniform and run once per group of values,
/// whereas one kernel per combination would need 18 times the code. Each operation is a rounding intrinsic, which the
/// compiler does not contract, so all kernels give the same bits for the same accumulator.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "gemm_arguments.hpp"
#include "ptx.cuh"
#include "tessera/device/activations.cuh"
#include "tessera/element.hpp"

namespace tessera::kernels::detail {

/// Calls `visit(T{})` with the element type T that `type`, one of the types of C, names.
template <class Visit>
__device__ __forceinline__ void with_addend_type(ElementType type, Visit&& visit)
{
    switch (type) {
        case ElementType::f16: visit(f16{}); return;
        case ElementType::bf16: visit(bf16{}); return;
        default: break;
    }
    visit(0.0F);
}

/// Element `index` of a matrix or vector of `type`, one of the types of C.
__device__ inline float load_element(const void* data, std::int64_t index, ElementType type)
{
    switch (type) {
        case ElementType::f16: return static_cast<const f16*>(data)[index];
        case ElementType::bf16: return static_cast<const bf16*>(data)[index];
        default: break;
    }
    return static_cast<const float*>(data)[index];
}

/// Rounds to `type`, of 8 bits, with saturation.
__device__ __forceinline__ std::uint8_t narrow_to_8_bits(float value, ElementType type)
{
    return type == ElementType::f8e4m3 ? f8e4m3(value).bits : f8e5m2(value).bits;
}

/// Rounds two neighbours to 8 bits and packs them, the first in the low byte: one instruction from sm_89 on.
__device__ __forceinline__ std::uint32_t pack_8_bits(float first, float second, ElementType type)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    return __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE,
                                    type == ElementType::f8e4m3 ? __NV_E4M3 : __NV_E5M2);
#else
    return narrow_to_8_bits(first, type) | static_cast<std::uint32_t>(narrow_to_8_bits(second, type)) << 8;
#endif
}

/// Stores `value` to element `index` of a matrix of `type`, one of the types of D.
__device__ inline void store_element(void* data, std::int64_t index, ElementType type, float value)
{
    switch (type) {
        case ElementType::f16: static_cast<f16*>(data)[index] = f16(value); return;
        case ElementType::bf16: static_cast<bf16*>(data)[index] = bf16(value); return;
        case ElementType::f8e4m3:
        case ElementType::f8e5m2: static_cast<std::uint8_t*>(data)[index] = narrow_to_8_bits(value, type); return;
        default: break;
    }
    static_cast<float*>(data)[index] = value;
}

/// Rounds two neighbours to f16 or bf16 and packs them, the first in the low half: one instruction.
__device__ __forceinline__ std::uint32_t pack(float first, float second, bool as_f16)
{
    if (as_f16) {
        const __half2 pair = __floats2half2_rn(first, second);
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
}

/// The inverse.
__device__ __forceinline__ void unpack(std::uint32_t word, bool from_f16, float& first, float& second)
{
    if (from_f16) {
        first = f16::from_bits(static_cast<std::uint16_t>(word));
        second = f16::from_bits(static_cast<std::uint16_t>(word >> 16));
    } else {
        first = __uint_as_float(word << 16);
        second = __uint_as_float(word & 0xFFFF0000U);
    }
}

/// Loads four neighbouring elements with one instruction. Their address must be aligned to their total size.
__device__ inline void load_vector(const void* data, std::int64_t index, ElementType type, float (&values)[4])
{
    if (type == ElementType::f32) {
        const float4 four = *reinterpret_cast<const float4*>(static_cast<const float*>(data) + index);
        values[0] = four.x;
        values[1] = four.y;
        values[2] = four.z;
        values[3] = four.w;
        return;
    }
    const uint2 words = *reinterpret_cast<const uint2*>(static_cast<const std::uint16_t*>(data) + index);
    unpack(words.x, type == ElementType::f16, values[0], values[1]);
    unpack(words.y, type == ElementType::f16, values[2], values[3]);
}

/// Stores four neighbouring elements with one instruction. Their address must be aligned to their total size.
__device__ inline void store_vector(void* data, std::int64_t index, ElementType type, const float (&values)[4])
{
    if (type == ElementType::f32) {
        *reinterpret_cast<float4*>(static_cast<float*>(data) + index) =
            make_float4(values[0], values[1], values[2], values[3]);
        return;
    }
    if (is_float8(type)) {
        *reinterpret_cast<std::uint32_t*>(static_cast<std::uint8_t*>(data) + index) =
            pack_8_bits(values[0], values[1], type) | pack_8_bits(values[2], values[3], type) << 16;
        return;
    }
    const bool as_f16 = type == ElementType::f16;
    *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(data) + index) =
        make_uint2(pack(values[0], values[1], as_f16), pack(values[2], values[3], as_f16));
}

/// alpha * sum. Zeros that pad K turn a sum of -0 into +0; adding +0 always does so, whatever the padding.
__device__ __forceinline__ float scaled(float sum, float alpha) { return __fmul_rn(alpha, __fadd_rn(sum, 0.0F)); }

/// Moves the values to the front, over the first ones, and `last` behind them. A loop that always works on the first values
/// has one copy of its code, although registers have no run-time index.
template <int Count, int Last>
__device__ __forceinline__ void rotate_in(float (&values)[Count], const float (&last)[Last])
{
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        values[i] = i + Last < Count ? values[i + Last] : last[i + Last - Count];
    }
}

/// Replaces each value by `function` of it.
template <int Count, class Function>
__device__ __forceinline__ void for_each(float (&values)[Count], Function&& function)
{
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        values[i] = function(values[i]);
    }
}

/// Whether `activate` has a copy of an activation for each of many values, as it does of those that are frequent and short.
__device__ constexpr bool is_straight_line(ActivationKind kind)
{
    return kind != ActivationKind::sigmoid && kind != ActivationKind::tanh;
}

/// Calls `visit` with the function that `kind` is, of those of First and Rest that are straight-line code for `Count` values, or of
/// those that are not. The last one is not compared with: it is what is left. Returns false if `kind` is none of them.
template <int Count, bool StraightLine, ActivationKind First, ActivationKind... Rest, class Visit>
__device__ __forceinline__ bool visit_activation(ActivationKind kind, Visit&& visit)
{
    constexpr bool is_many = Count >= 24;
    if constexpr ((is_straight_line(First) && (is_many || First == ActivationKind::relu)) == StraightLine) {
        if (sizeof...(Rest) == 0 || kind == First) {
            ptx::stay_a_branch();
            visit([](float x) { return activations::of<First>(x); });
            return true;
        }
    }
    if constexpr (sizeof...(Rest) > 0) {
        return visit_activation<Count, StraightLine, Rest...>(kind, visit);
    }
    return false;
}
/// The same for all activations, in the order in which they are asked for.
template <int Count, bool StraightLine, class Visit>
__device__ __forceinline__ bool visit_any_activation(ActivationKind kind, Visit&& visit)
{
    using enum Activation;
    return visit_activation<Count, StraightLine, relu, gelu, gelu_tanh, silu, sigmoid, tanh>(kind, visit);
}
static_assert(all_activations.size() == 7, "visit_any_activation has all but none");

/// Replaces each value by its activation. Where that is not straight-line code, and for few values (but of relu), a loop does so:
/// then the code is short. It is not in the instruction cache when a product reaches it.
///
/// @param needed  the first `needed` values, all or the first half. The others stay as they are, but the halves may have
///                changed places then.
template <int Count>
__device__ __forceinline__ void activate(float (&values)[Count], ActivationKind kind, int needed = Count)
{
    if (kind == ActivationKind::none) {
        return;
    }
    const bool is_done = visit_any_activation<Count, true>(kind, [&](auto&& function) {
#pragma unroll
        for (int j = 0; j < Count; ++j) {
            if (j == Count / 2 && j >= needed) {
                return;
            }
            values[j] = function(values[j]);
        }
    });
    if (is_done) {
        return;
    }
    constexpr int at_once = Count >= 8 ? 8 : 1;
    static_assert(Count % at_once == 0);
#pragma unroll 1
    for (int done = 0; done < needed; done += at_once) {
        float some[at_once];
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
            some[j] = values[j];
        }
        visit_any_activation<Count, false>(kind, [&](auto&& function) { for_each(some, function); });
        rotate_in(values, some);
    }
}

/// The chain of operations before the activation: replaces each value x = alpha * sum, as `scaled` returns it, by
/// x * scale + beta * c + bias.
///
/// Each operand comes in groups, because all of a kind may need too many registers.
/// @param for_each_scale  called if there are scale vectors, with a function to call with each group of products of row
///                        and column scales, and with the index of the first value that it is for
/// @param for_each_c     the same for C, if beta is not zero
/// @param for_each_bias  the same for the bias, if there is one
template <int Count, class ForEachScale, class ForEachC, class ForEachBias>
__device__ __forceinline__ void prepare_activation(float (&values)[Count], const GemmArguments& arguments,
                                                   ForEachScale&& for_each_scale, ForEachC&& for_each_c,
                                                   ForEachBias&& for_each_bias)
{
    const auto combine = [&](auto&& operation) {
        return [&, operation]<int Group>(const float(&operands)[Group], int first) {
#pragma unroll
            for (int j = 0; j < Group; ++j) {
                values[first + j] = operation(values[first + j], operands[j]);
            }
        };
    };
    if (arguments.has_scale_vectors()) {
        for_each_scale(combine([](float x, float scale) { return __fmul_rn(x, scale); }));
    }
    if (arguments.beta != 0.0F) {
        for_each_c(combine([&](float x, float c) { return __fmaf_rn(arguments.beta, c, x); }));
    }
    if (arguments.bias_axis != BiasAxis::none) {
        for_each_bias(combine([](float x, float bias) { return __fadd_rn(x, bias); }));
    }
}

/// The whole chain: act(x * scale + beta * c + bias), with all operands of a kind at once.
/// @param fill_scales, fill_c, fill_bias  called with an array for the operands, if there are any
/// @param see_pre_activation  called with the values before act
template <int Count, class FillScales, class FillC, class FillBias, class SeePreActivation>
__device__ __forceinline__ void apply_epilogue(float (&values)[Count], const GemmArguments& arguments,
                                               FillScales&& fill_scales, FillC&& fill_c, FillBias&& fill_bias,
                                               SeePreActivation&& see_pre_activation)
{
    const auto all_of = [](auto& fill) {
        return [&](auto&& use) {
            float operands[Count];
            fill(operands);
            use(operands, 0);
        };
    };
    prepare_activation(values, arguments, all_of(fill_scales), all_of(fill_c), all_of(fill_bias));
    see_pre_activation(values);
    activate(values, arguments.activation);
}

/// Bits of |value|. As integers they have the order of the magnitudes, and NaN is the largest.
__device__ __forceinline__ int magnitude_bits(float value) { return __float_as_int(value) & 0x7FFFFFFF; }

/// Raises the largest magnitude of D. The threads of a warp that come together make one access. @pre there is an amax_d
__device__ __forceinline__ void raise_amax(const GemmArguments& arguments, int largest)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned together = __activemask();
    largest = __reduce_max_sync(together, largest);
    if (static_cast<int>(threadIdx.x % 32) != __ffs(static_cast<int>(together)) - 1) {
        return;
    }
#endif
    atomicMax(reinterpret_cast<int*>(arguments.amax_d), largest);
}

/// Multiplies finished values by the scale of a D of 8 bits.
template <int Count>
__device__ __forceinline__ void scale_for_d(float (&values)[Count], const GemmArguments& arguments)
{
    if (arguments.scale_d != nullptr) {
        const float scale = *arguments.scale_d;
#pragma unroll
        for (float& value : values) {
            value = __fmul_rn(value, scale);
        }
    }
}

}  // namespace tessera::kernels::detail
