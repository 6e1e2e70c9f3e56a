#pragma once

/// The element-wise epilogue: each thread finishes its fp32 accumulators and stores them to D in global memory.
///
/// The SIMT kernels use it for everything; the tensor-core kernels for shared tiles, and where TMA cannot store D.

#include <cstdint>

#include "epilogue_operations.cuh"
#include "gemm_arguments.hpp"
#include "tessera/element.hpp"

namespace tessera::kernels {

/// Stores values[j] to the pre-activation's element (row, column + j) for each j below `columns`, rounded once.
template <int Columns>
__device__ void store_pre_activation(const GemmArguments& arguments, std::uint32_t batch, std::int64_t row,
                                     std::int64_t column, int columns, const float (&values)[Columns])
{
    const Destination& to = arguments.pre_activation;
    const std::int64_t index = batch * to.batch_stride + row * to.row_stride + column * to.column_stride;
    if constexpr (Columns % 4 == 0) {
        const std::uint64_t bytes = to.type == ElementType::f32 ? 4 : 2;
        const bool is_aligned = (reinterpret_cast<std::uint64_t>(to.data) + index * bytes) % (4 * bytes) == 0;
        if (to.column_stride == 1 && columns == Columns && is_aligned) {
#pragma unroll
            for (int j = 0; j < Columns; j += 4) {
                const float four[4] = {values[j], values[j + 1], values[j + 2], values[j + 3]};
                detail::store_vector(to.data, index + j, to.type, four);
            }
            return;
        }
    }
#pragma unroll
    for (int j = 0; j < Columns; ++j) {
        if (j < columns) {
            detail::store_element(to.data, index + j * to.column_stride, to.type, values[j]);
        }
    }
}

/// Writes accumulators to one matrix of the batch D. A thread's own object; no thread synchronizes with another.
class Epilogue {
public:
    __device__ Epilogue(const GemmArguments& arguments, std::int64_t batch)
        : arguments_(arguments),
          c_offset_(batch * arguments.c.batch_stride),
          d_offset_(batch * arguments.d_batch_stride),
          batch_(static_cast<std::uint32_t>(batch)),
          alpha_(scaled_alpha(arguments)),
          vectors_(vectors_of(arguments, c_offset_, d_offset_))
    {}

    /// alpha times the scales of A and B.
    __device__ float alpha() const { return alpha_; }

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
        float values[Columns], before[Columns];
        copy(accumulator, values);
        finish(row, column, columns, values, before);
        put(row, column, columns, values);
    }

    /// As store(), for a D of gated pairs, too. Accumulators of pairs are gates and ups in turn, and `column` is twice D's.
    /// @tparam AnyPairs  true if B may have the pairs side by side; otherwise they are interleaved
    template <bool AnyPairs = false, int Columns>
    __device__ __forceinline__ void store_or_pair(std::int64_t row, std::int64_t column,
                                                  const float (&accumulator)[Columns]) const
    {
        static_assert(Columns % 2 == 0);
        if (row >= arguments_.m || column >= arguments_.n) {
            return;
        }
        auto columns = static_cast<int>(min(static_cast<std::int64_t>(Columns), arguments_.n - column));
        float values[Columns], before[Columns];
        copy(accumulator, values);
        finish<AnyPairs>(row, column, columns, values, before);
        if (arguments_.gating != Gating::none) {
#pragma unroll
            for (int j = 0; j < Columns / 2; ++j) {
                values[j] = __fmul_rn(values[2 * j], before[2 * j + 1]);
            }
            column /= 2;
            columns /= 2;
        }
        put(row, column, columns, values);
    }

    /// Replaces sums of products by elements of D that are not rounded yet. `column` is one of A * B.
    /// @tparam AnyPairs  as for store_or_pair(), whose `column` it is then
    /// @param columns  how many of them are inside A * B
    /// @param before   receives what the activation was applied to
    template <bool AnyPairs = false, int Columns>
    __device__ __forceinline__ void finish(std::int64_t row, std::int64_t column, int columns, float (&values)[Columns],
                                           float (&before)[Columns]) const
    {
#pragma unroll
        for (float& value : values) {
            value = detail::scaled(value, alpha_);
        }
        detail::apply_epilogue(
            values, arguments_,
            [&](float(&scales)[Columns]) {
                if constexpr (AnyPairs) {
                    load_scales(arguments_, row, PairColumns(arguments_, column), columns, scales);
                } else {
                    load_scales(arguments_, row, column, columns, scales);
                }
            },
            [&](float(&c)[Columns]) { load_c(row, column, columns, c); },
            [&](float(&bias)[Columns]) {
                if constexpr (AnyPairs) {
                    load_bias(row, PairColumns(arguments_, column), columns, bias);
                } else {
                    load_bias(arguments_, row, column, columns, (vectors_ & bias_vectors) != 0, bias);
                }
            },
            [&](const float(&x)[Columns]) {
                copy(x, before);
                if (arguments_.pre_activation.data != nullptr) {
                    store_pre_activation(arguments_, batch_, row, column, columns, x);
                }
            });
    }

    /// Rounds finished values and writes the first `columns` of them to D from (row, column) on.
    template <int Columns>
    __device__ __forceinline__ void put(std::int64_t row, std::int64_t column, int columns,
                                        float (&values)[Columns]) const
    {
        finish_8_bit(values, columns);
        const std::int64_t index = d_offset_ + row * arguments_.d_row_stride + column * arguments_.d_column_stride;
        if constexpr (Columns == 4) {
            if ((vectors_ & d_vectors) != 0 && columns == Columns) {
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
            values[j] = detail::scaled(accumulator[j], alpha_);
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

    /// Loads the products of the row's scale and each column's, for each j below `columns`. The row must be inside D.
    template <int Columns>
    __device__ static void load_scales(const GemmArguments& arguments, std::int64_t row, std::int64_t column,
                                       int columns, float (&values)[Columns])
    {
        load_scales(arguments, row, Neighbours{column}, columns, values);
    }
    /// Loads the bias of (row, column + j) for each j below `columns`. The row must be inside D.
    /// @param vectors  true if four neighbours can be loaded as one vector
    template <int Columns>
    __device__ static void load_bias(const GemmArguments& arguments, std::int64_t row, std::int64_t column, int columns,
                                     bool vectors, float (&values)[Columns])
    {
        const bool per_row = arguments.bias_axis == BiasAxis::per_row;
        load(arguments.bias, per_row ? row : column, per_row ? 0 : 1, arguments.bias_type, vectors, columns, values);
    }

private:
    /// Columns of A * B.
    struct Neighbours {
        std::int64_t first;

        __device__ std::int64_t operator[](int j) const { return first + j; }
    };

    /// Columns of A * B that are gates and ups in turn, wherever B has them; neighbours without gating.
    struct PairColumns {
        std::int64_t first;
        std::int64_t to_up;
        std::int64_t to_next;  // pair
        bool are_neighbours;

        /// @param column  twice the first pair
        __device__ PairColumns(const GemmArguments& arguments, std::int64_t column)
            : first(column), to_up(1), to_next(2), are_neighbours(arguments.gating != Gating::side_by_side)
        {
            if (!are_neighbours) {
                first = column / 2;
                to_up = arguments.n / 2;
                to_next = 1;
            }
        }
        __device__ std::int64_t operator[](int j) const { return first + j / 2 * to_next + j % 2 * to_up; }
    };

    template <int Columns, class Where>
    __device__ __forceinline__ static void load_scales(const GemmArguments& arguments, std::int64_t row,
                                                       const Where& where, int columns, float (&values)[Columns])
    {
        const float of_row = arguments.row_scales == nullptr ? 1.0F : arguments.row_scales[row];
        const float* const of_columns = arguments.column_scales;
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
            values[j] = of_columns == nullptr || j >= columns ? of_row : __fmul_rn(of_row, of_columns[where[j]]);
        }
    }

    template <int Columns>
    __device__ __forceinline__ void load_bias(std::int64_t row, PairColumns where, int columns,
                                              float (&values)[Columns]) const
    {
        if (arguments_.bias_axis == BiasAxis::per_row) {
            where.first = row;
            where.to_up = 0;
            where.to_next = 0;
        }
        const void* const bias = arguments_.bias;
        if ((vectors_ & bias_vectors) != 0 && where.are_neighbours && columns == Columns) {
            detail::load_vector(bias, where.first, arguments_.bias_type, values);
            return;
        }
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
            values[j] = j < columns ? detail::load_element(bias, where[j], arguments_.bias_type) : 0.0F;
        }
    }

    template <int Columns>
    __device__ __forceinline__ static void copy(const float (&from)[Columns], float (&to)[Columns])
    {
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
            to[j] = from[j];
        }
    }

    static constexpr unsigned d_vectors = 1;
    static constexpr unsigned c_vectors = 2;
    static constexpr unsigned bias_vectors = 4;

    __device__ static unsigned vectors_of(const GemmArguments& arguments, std::int64_t c_offset, std::int64_t d_offset)
    {
        const Operand& c = arguments.c;
        const bool of_d =
            has_vectors(arguments.d, arguments.d_type, d_offset, arguments.d_row_stride, arguments.d_column_stride);
        const bool of_c =
            arguments.beta != 0.0F && has_vectors(c.data, arguments.c_type, c_offset, c.row_stride, c.column_stride);
        const bool of_bias =
            arguments.bias_axis == BiasAxis::per_column && has_vectors(arguments.bias, arguments.bias_type, 0, 0, 1);
        return (of_d ? d_vectors : 0) | (of_c ? c_vectors : 0) | (of_bias ? bias_vectors : 0);
    }

    /// Returns true if every fourth element of each row is aligned to the size of four.
    __device__ static bool has_vectors(const void* data, ElementType type, std::int64_t offset, std::int64_t row_stride,
                                       std::int64_t column_stride)
    {
        const std::uint64_t size = size_of(type);
        const std::uint64_t first = reinterpret_cast<std::uint64_t>(data) + offset * size;
        const std::uint64_t row = row_stride * size;
        return column_stride == 1 && (first | row) % (4 * size) == 0;
    }

    /// For a D of 8 bits: takes the magnitudes of the first `columns` values into account and scales all.
    template <int Columns>
    __device__ __forceinline__ void finish_8_bit(float (&values)[Columns], int columns) const
    {
        if (!is_float8(arguments_.d_type)) {
            return;
        }
        if (arguments_.amax_d != nullptr) {
            int largest = 0;
#pragma unroll
            for (int j = 0; j < Columns; ++j) {
                largest = j < columns ? max(largest, detail::magnitude_bits(values[j])) : largest;
            }
            detail::raise_amax(arguments_, largest);
        }
        detail::scale_for_d(values, arguments_);
    }

    /// Loads C(row, column + j) for each j below `columns`.
    template <int Columns>
    __device__ void load_c(std::int64_t row, std::int64_t column, int columns, float (&values)[Columns]) const
    {
        const Operand& c = arguments_.c;
        const std::int64_t index = c_offset_ + row * c.row_stride + column * c.column_stride;
        load(c.data, index, c.column_stride, arguments_.c_type, (vectors_ & c_vectors) != 0, columns, values);
    }
    template <int Columns>
    __device__ static void load(const void* data, std::int64_t index, std::int64_t stride, ElementType type,
                                bool vectors, int columns, float (&values)[Columns])
    {
        if constexpr (Columns == 4) {
            if (vectors && columns == Columns) {
                detail::load_vector(data, index, type, values);
                return;
            }
        }
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
            values[j] = j < columns ? detail::load_element(data, index + j * stride, type) : 0.0F;
        }
    }

    const GemmArguments& arguments_;  // the kernel parameter, in constant memory
    std::int64_t c_offset_;
    std::int64_t d_offset_;
    std::uint32_t batch_;
    float alpha_;       // times the scales of A and B
    unsigned vectors_;  // a bit for each matrix or vector of which four neighbours are one access
};

}  // namespace tessera::kernels
