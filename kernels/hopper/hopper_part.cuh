#pragma once

/// A part of a consumer's tile in registers: what the epilogue finishes at a time, where its operands come from and where
/// it goes.

#include <cstdint>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_shared.cuh"
#include "kernels/gemm/epilogue_operations.cuh"
#include "kernels/gemm/ptx.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

/// A thread's place in 64 rows of accumulators or of a buffer, as wgmma distributes them. A loop makes it anew each time,
/// so that the compiler keeps nothing that depends on it in registers beside the accumulators.
class HopperPlace {
public:
    // Unsigned, so that divisions are shifts.
    __device__ HopperPlace() : thread_(static_cast<unsigned>(ptx::read_thread_index()) % 128) {}

    /// Row and column of the thread's first value.
    __device__ int row() const { return static_cast<int>(thread_ / 32 * 16 + thread_ % 32 / 4); }
    __device__ int column() const { return static_cast<int>(thread_ % 4 * 2); }
    /// Byte offset in a buffer of the row whose address the lane passes for matrices: columns 16 * q and beyond.
    __device__ unsigned matrix(unsigned q) const
    {
        return hopper_swizzled(thread_ / 32 * 16 + thread_ % 16, q * 2 + thread_ % 32 / 16);
    }
    /// Calls `visit(value, byte offset)` for each pair of neighbours in Columns columns from `first`, in a buffer of
    /// fp32.
    template <int Columns, class Visit>
    __device__ __forceinline__ void for_each_pair(unsigned first, Visit&& visit) const
    {
#pragma unroll
        for (int j = 0; j < Columns / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const unsigned line = thread_ / 32 * 16 + thread_ % 32 / 4 + i * 8;
                const unsigned chunk = first / 4 + 2 * j + thread_ % 4 / 2;
                visit(4 * j + 2 * i, hopper_swizzled(line, chunk) + thread_ % 2 * 8);
            }
        }
    }

    /// The same in a buffer of 8-bit elements.
    template <int Columns, class Visit>
    __device__ __forceinline__ void for_each_pair_of_bytes(unsigned first, Visit&& visit) const
    {
#pragma unroll
        for (int j = 0; j < Columns / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const unsigned line = thread_ / 32 * 16 + thread_ % 32 / 4 + i * 8;
                const unsigned column = first + 8 * j;
                visit(4 * j + 2 * i, hopper_swizzled(line, column / 16) + column % 16 + thread_ % 4 * 2);
            }
        }
    }

private:
    unsigned thread_;
};

/// A part: 64 rows of 32 or 16 columns. Value 4 * j + 2 * i + e of a thread is in row 16 * warp + lane / 4 + 8 * i and
/// column 8 * j + 2 * (lane % 4) + e.
template <class Config>
class HopperPart {
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    using Accumulators = float[blocks][registers];

public:
    static constexpr int columns = Config::config.epilogue_columns();
    static constexpr int values = columns / 2;                         // of a thread
    static constexpr int in_block = (tile_n + columns - 1) / columns;  // parts of 64 rows
    static constexpr int count = blocks * in_block;
    using Values = float[values];

    /// @param number       of the part in the consumer's tile
    /// @param row, column  of the consumer's first accumulator in D
    __device__ HopperPart(const HopperArguments& arguments, unsigned number, int row, int column, int batch)
        : arguments_(arguments),
          tile_row_(number / in_block * 64),
          tile_column_(number % in_block * columns),
          row_(row + static_cast<int>(tile_row_)),
          column_(column + static_cast<int>(tile_column_)),
          batch_(batch)
    {}

    /// First row and column in the consumer's tile.
    __device__ unsigned tile_row() const { return tile_row_; }
    __device__ unsigned tile_column() const { return tile_column_; }
    /// First row and column in D.
    __device__ int row() const { return row_; }
    __device__ int column() const { return column_; }
    /// Returns true if no part to the right of it belongs to the tile.
    __device__ bool is_last_of_rows() const { return tile_column_ == (in_block - 1) * columns; }

    /// Copies part `number` of the accumulators through `function`, with zeros beyond the tile. No run-time index, because
    /// they are registers.
    template <class Function>
    __device__ __forceinline__ static void take(const Accumulators& accumulators, unsigned number, Values& taken,
                                                Function&& function)
    {
        const auto takes = [&]<unsigned Number>() {
            if (number != Number) {
                return false;
            }
            ptx::stay_a_branch();
#pragma unroll
            for (unsigned r = 0; r < HopperPart::values; ++r) {
                constexpr unsigned block = Number / in_block;
                const unsigned from = Number % in_block * HopperPart::values + r;
                taken[r] = from < registers ? function(accumulators[block][from]) : 0.0F;
            }
            return true;
        };
        [&]<unsigned... Number>(std::integer_sequence<unsigned, Number...>) {
            static_cast<void>((takes.template operator()<Number>() || ...));
        }(std::make_integer_sequence<unsigned, count>());
    }

    /// Reads C from the slots of the ring that carry the tile. @param first_row  the consumer's first row in the tile
    template <class Slots>
    __device__ __forceinline__ void read_c(const HopperShared<Config>& shared, const Slots& slots, int first_row,
                                           Values& c) const
    {
        constexpr HopperConfig config = Config::config;
        constexpr unsigned per_slot = config.c_boxes_per_stage();
        const bool c_is_f32 = arguments_.gemm.c_type == ElementType::f32;
        const unsigned block = (static_cast<unsigned>(first_row) + tile_row_) / 64;
        const unsigned box = c_is_f32 ? block * config.c_boxes_per_row(4) + tile_column_ / 32
                                      : block * config.c_boxes_per_row(2) + tile_column_ / 64;
        const std::byte* const from =
            shared.stages[slots.index(box / per_slot)].a + box % per_slot * HopperConfig::hopper_store_bytes;
        if (c_is_f32) {
            place_.template for_each_pair<columns>(tile_column_ % 32, [&](int value, unsigned offset) {
                const float2 pair = *reinterpret_cast<const float2*>(from + offset);
                c[value] = pair.x;
                c[value + 1] = pair.y;
            });
            return;
        }
        const bool from_f16 = arguments_.gemm.c_type == ElementType::f16;
#pragma unroll
        for (int q = 0; q < columns / 16; ++q) {
            std::uint32_t packed[4];
            load_matrices(from + place_.matrix(tile_column_ % 64 / 16 + q), packed);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                detail::unpack(packed[i], from_f16, c[q * 8 + 2 * i], c[q * 8 + 2 * i + 1]);
            }
        }
    }

    /// Loads C from global memory.
    __device__ __forceinline__ void load_c(Values& values_of_c) const
    {
        const Operand& c = arguments_.gemm.c;
        const std::int64_t first = batch_ * c.batch_stride + (row_ + place_.row()) * c.row_stride +
                                   (column_ + place_.column()) * c.column_stride;
        detail::with_addend_type(arguments_.gemm.c_type, [&]<class T>(T) {
            for_each_value([&](int value, int down, int across, bool inside) {
                const std::int64_t index = first + down * c.row_stride + across * c.column_stride;
                values_of_c[value] = inside ? static_cast<float>(static_cast<const T*>(c.data)[index]) : 0.0F;
            });
        });
    }

    /// Loads the products of row and column scales from global memory. `HopperEpilogue::prefetch_scales` has brought them
    /// near.
    __device__ __forceinline__ void load_scales(Values& scales) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        const std::int64_t row = row_ + place_.row();
        float of_row[2] = {1.0F, 1.0F};
        if (gemm.row_scales != nullptr) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                of_row[i] = row + i * 8 < gemm.m ? gemm.row_scales[row + i * 8] : 0.0F;
            }
        }
        const std::int64_t column = column_ + place_.column();
        float of_column[columns / 4];
#pragma unroll
        for (int j = 0; j < columns / 4; ++j) {
            of_column[j] = 1.0F;
        }
        if (gemm.column_scales != nullptr) {
#pragma unroll
            for (int j = 0; j < columns / 4; ++j) {
                const std::int64_t index = column + j / 2 * 8 + j % 2;
                of_column[j] = index < gemm.n ? gemm.column_scales[index] : 0.0F;
            }
        }
#pragma unroll
        for (int value = 0; value < values; ++value) {
            scales[value] = __fmul_rn(of_row[value / 2 % 2], of_column[value / 4 * 2 + value % 2]);
        }
    }

    /// Reads the bias. @param elements  the bias of the consumer's tile, in shared memory
    __device__ __forceinline__ void read_bias(const float* elements, Values& bias) const
    {
        if (arguments_.gemm.bias_axis == BiasAxis::per_row) {
            elements += tile_row_ + place_.row();
#pragma unroll
            for (int value = 0; value < values; ++value) {
                bias[value] = elements[value / 2 % 2 * 8];
            }
            return;
        }
        elements += tile_column_ + place_.column();
#pragma unroll
        for (int j = 0; j < columns / 8; ++j) {
            const float2 pair = *reinterpret_cast<const float2*>(elements + 8 * j);
            bias[4 * j] = bias[4 * j + 2] = pair.x;
            bias[4 * j + 1] = bias[4 * j + 3] = pair.y;
        }
    }

    /// Puts the values, rounded to D's type, into a buffer, from column `first`.
    __device__ __forceinline__ void put(const Values& finished, std::byte* buffer, unsigned first) const
    {
        if (is_float8(arguments_.gemm.d_type)) {
            put_8_bit(finished, buffer, first);
        } else if (is_f32()) {
            put_f32(finished, buffer, first);
        } else {
            put_16_bit(finished, buffer, first);
        }
    }

    /// Puts the values into a buffer of fp32, from column `first`.
    __device__ __forceinline__ void put_f32(const Values& finished, std::byte* buffer, unsigned first) const
    {
        place_.template for_each_pair<columns>(first, [&](int value, unsigned offset) {
            *reinterpret_cast<float2*>(buffer + offset) = make_float2(finished[value], finished[value + 1]);
        });
    }

    /// Puts the values into a buffer of f16 or bf16, from column `first`.
    __device__ __forceinline__ void put_16_bit(const Values& finished, std::byte* buffer, unsigned first) const
    {
        const bool as_f16 = arguments_.gemm.d_type == ElementType::f16;
#pragma unroll
        for (int q = 0; q < columns / 16; ++q) {
            std::uint32_t packed[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                packed[i] = detail::pack(finished[q * 8 + 2 * i], finished[q * 8 + 2 * i + 1], as_f16);
            }
            store_matrices(buffer + place_.matrix(first / 16 + q), packed);
        }
    }

    /// Puts the values into a buffer of 8-bit elements, from column `first`.
    __device__ __forceinline__ void put_8_bit(const Values& finished, std::byte* buffer, unsigned first) const
    {
        ptx::stay_a_branch();
        place_.template for_each_pair_of_bytes<columns>(first, [&](int value, unsigned offset) {
            *reinterpret_cast<std::uint16_t*>(buffer + offset) = static_cast<std::uint16_t>(
                detail::pack_8_bits(finished[value], finished[value + 1], arguments_.gemm.d_type));
        });
    }

    /// Stores the values to D in global memory.
    __device__ __forceinline__ void store(const Values& finished) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        store(finished, {gemm.d, gemm.d_row_stride, gemm.d_column_stride, gemm.d_batch_stride, gemm.d_type});
    }
    /// Stores the values to another matrix of D's extents.
    __device__ __forceinline__ void store(const Values& finished, const Destination& to) const
    {
        const std::int64_t first = batch_ * to.batch_stride + (row_ + place_.row()) * to.row_stride +
                                   (column_ + place_.column()) * to.column_stride;
        const auto store_as = [&]<class T>(T) {
            for_each_value([&](int value, int down, int across, bool inside) {
                if (inside) {
                    static_cast<T*>(to.data)[first + down * to.row_stride + across * to.column_stride] =
                        T(finished[value]);
                }
            });
        };
        if (!is_float8(to.type)) {
            detail::with_addend_type(to.type, store_as);
            return;
        }
        for_each_value([&](int value, int down, int across, bool inside) {
            if (inside) {
                static_cast<std::uint8_t*>(to.data)[first + down * to.row_stride + across * to.column_stride] =
                    detail::narrow_to_8_bits(finished[value], to.type);
            }
        });
    }

    /// Takes the values' magnitudes into account and scales them, for a D of 8 bits.
    __device__ __forceinline__ void finish_8_bit(Values& finished) const
    {
        ptx::stay_a_branch();
        if (arguments_.gemm.amax_d != nullptr) {
            int largest = 0;
            for_each_value([&](int value, int /*down*/, int /*across*/, bool inside) {
                largest = inside ? max(largest, detail::magnitude_bits(finished[value])) : largest;
            });
            detail::raise_amax(arguments_.gemm, largest);
        }
        detail::scale_for_d(finished, arguments_.gemm);
    }

private:
    __device__ bool is_f32() const { return arguments_.gemm.d_type == ElementType::f32; }

    /// Calls `visit(value, rows down, columns across, is inside of D and of the tile)` for each value, relative to the
    /// first.
    template <class Visit>
    __device__ __forceinline__ void for_each_value(Visit&& visit) const
    {
        const std::int64_t rows_left = arguments_.gemm.m - row_ - place_.row();
        const std::int64_t columns_left =
            min(arguments_.gemm.n - column_, static_cast<std::int64_t>(tile_n) - tile_column_) - place_.column();
#pragma unroll
        for (int value = 0; value < values; ++value) {
            const int down = value / 2 % 2 * 8;
            const int across = value / 4 * 8 + value % 2;
            visit(value, down, across, down < rows_left && across < columns_left);
        }
    }

    const HopperArguments& arguments_;
    HopperPlace place_;
    unsigned tile_row_;
    unsigned tile_column_;
    int row_;
    int column_;
    int batch_;
};

}  // namespace tessera::kernels
