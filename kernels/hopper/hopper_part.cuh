#pragma once

/// A part of a consumer's tile in registers: what the epilogue finishes at a time, where its operands come from and where
/// it goes.

#include <cstdint>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_gate.cuh"
#include "hopper_shared.cuh"
#include "hopper_staging.cuh"
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

    /// The same from the first column of a buffer of 8-bit elements.
    template <int Columns, class Visit>
    __device__ __forceinline__ void for_each_pair_of_bytes(Visit&& visit) const
    {
#pragma unroll
        for (int j = 0; j < Columns / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const unsigned line = thread_ / 32 * 16 + thread_ % 32 / 4 + i * 8;
                visit(4 * j + 2 * i, hopper_swizzled(line, j / 2) + j % 2 * 8 + thread_ % 4 * 2);
            }
        }
    }

private:
    unsigned thread_;
};

/// The box of C with a block of 64 rows and 128 bytes of columns. @param block, box  its position in the tile
template <class Config, int ElementBytes, class Slots>
__device__ __forceinline__ const std::byte* box_of_c(const HopperShared<Config>& shared, const Slots& slots,
                                                     unsigned block, unsigned box)
{
    constexpr unsigned per_slot = Config::config.c_boxes_per_stage();
    const unsigned index = block * Config::config.c_boxes_per_row(ElementBytes) + box;
    return shared.stages[slots.index(index / per_slot)].a + index % per_slot * HopperConfig::hopper_store_bytes;
}

/// Where a consumer's rows of a tile are.
struct HopperTile {
    int first_row;  // the first of them in the tile
    int row;        // of the consumer's first accumulator in D
    int column;     // the same; in A * B, if D is of gated pairs
    int batch;
};

/// A part: 64 rows of the columns that one TMA store writes, or two of fp32 (`HopperConfig::epilogue_columns`). Value
/// 4 * j + 2 * i + e of a thread is in row 16 * warp + lane / 4 + 8 * i and column 8 * j + 2 * (lane % 4) + e.
///
/// Of gated pairs, the left half of a part has the gates of half as many columns of D, and the right half their ups.
template <class Config, int Columns>
class HopperPart {
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    using Accumulators = float[blocks][registers];

public:
    static constexpr int columns = Columns;
    static constexpr int values = columns / 2;                         // of a thread
    static constexpr int in_block = (tile_n + columns - 1) / columns;  // parts of 64 rows
    using Values = float[values];

    /// @param block, index  of the part: of the 64 rows in the consumer's tile, and of the part in them
    /// @param row, column   of the tile's first element in D, or of the consumer's
    __device__ HopperPart(const HopperArguments& arguments, unsigned block, unsigned index, int row, int column,
                          int batch)
        : arguments_(arguments),
          tile_row_(block * 64),
          tile_column_(index * columns / (gated() ? 2 : 1)),
          row_(row + static_cast<int>(tile_row_)),
          column_(column + static_cast<int>(tile_column_)),
          batch_(batch)
    {}

    /// Calls `visit(values, block, index)` for each part of a tile, with zeros beyond the tile. Destroys the accumulators.
    ///
    /// The loop is not unrolled: one copy of the code. A part is always in the first registers, and those behind it move up
    /// after it, because registers have no run-time index. That needs fewer registers than a copy of the part.
    template <class Visit>
    __device__ __forceinline__ static void for_each(Accumulators& accumulators, const GemmArguments& gemm,
                                                    Visit&& visit)
    {
        float(&current)[registers] = accumulators[0];
#pragma unroll 1
        for (unsigned block = 0; block < blocks; ++block) {
            if constexpr (Config::config.gates() && in_block > 1) {
                if (is_gated<Config>(gemm)) {
                    ptx::stay_a_branch();
                    pair_up(current);
                }
            }
#pragma unroll 1
            for (unsigned index = 0; index < in_block; ++index) {
                Values taken;
#pragma unroll
                for (int i = 0; i < values; ++i) {
                    taken[i] = i < registers ? current[i] : 0.0F;
                    ptx::pin(taken[i]);  // the compiler serializes wgmma if a divergent path reads its sums first
                }
                visit(taken, block, index);
                if (in_block <= 4 && index + 1 == in_block) {
                    break;  // saves the moves, but they are few where there are many parts
                }
#pragma unroll
                for (int i = 0; i < registers; ++i) {
                    current[i] = i + values < registers ? current[i + values] : 0.0F;
                }
            }
            if (block + 1 == blocks) {
                break;
            }
#pragma unroll
            for (int i = 0; i < blocks - 1; ++i) {
#pragma unroll
                for (int j = 0; j < registers; ++j) {
                    accumulators[i][j] = accumulators[i + 1][j];
                }
            }
        }
    }

    /// First column in the consumer's tile.
    __device__ unsigned tile_column() const { return tile_column_; }
    /// First row and column in D.
    __device__ int row() const { return row_; }
    __device__ int column() const { return column_; }

    /// Calls `use(values of C, index of the first)` for each group of C in the slots of the ring that carry the tile.
    /// @param first_row  the consumer's first row in the tile
    template <class Slots, class Use>
    __device__ __forceinline__ void read_c(const HopperShared<Config>& shared, const Slots& slots, int first_row,
                                           Use&& use) const
    {
        const unsigned block = (static_cast<unsigned>(first_row) + tile_row_) / 64;
        if (arguments_.gemm.c_type != ElementType::f32) {
            const bool from_f16 = arguments_.gemm.c_type == ElementType::f16;
            const std::byte* const box = box_of_c<Config, 2>(shared, slots, block, tile_column_ / 64);
            for_each_group([&](Group& c, int first) {
                const unsigned column = tile_column_ + first * 2;
                if (is_beyond(column)) {
                    return;
                }
                const std::byte* const from = box + place_.matrix(tile_column_ % 64 / 16 + first / 8);
                std::uint32_t packed[4] = {};
                if (is_beyond(column + 8)) {
                    std::uint32_t eight_columns[2];
                    load_matrices(from, eight_columns);
                    packed[0] = eight_columns[0];
                    packed[1] = eight_columns[1];
                } else {
                    load_matrices(from, packed);
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    detail::unpack(packed[i], from_f16, c[2 * i], c[2 * i + 1]);
                }
                use(c, first);
            });
            return;
        }
        ptx::stay_a_branch();
        for_each_group([&](Group& c, int first) {
            const unsigned column = tile_column_ + first * 2;
            if (is_beyond(column)) {
                return;
            }
            const std::byte* const box = box_of_c<Config, 4>(shared, slots, block, column / 32);
            place_.template for_each_pair<16>(column % 32, [&](int value, unsigned offset) {
                float2 pair = make_float2(0, 0);
                if (value < 4 || !is_beyond(column + 8)) {
                    pair = *reinterpret_cast<const float2*>(box + offset);
                }
                c[value] = pair.x;
                c[value + 1] = pair.y;
            });
            use(c, first);
        });
    }

    /// The same for C in global memory.
    template <class Use>
    __device__ __forceinline__ void load_c(Use&& use) const
    {
        const Operand& c = arguments_.gemm.c;
        const std::int64_t start = batch_ * c.batch_stride + (row_ + place_.row()) * c.row_stride +
                                   (column_ + place_.column()) * c.column_stride;
        const auto load_as = [&]<class T>(const T* data, auto&& widened) {
            for_each_group([&](Group& group, int first) {
                T loaded[in_group];  // all of them before the first is used
                for_each_value<in_group>(first, [&](int value, int down, int across, bool inside) {
                    loaded[value] = inside ? data[start + down * c.row_stride + across * c.column_stride] : T{};
                });
#pragma unroll
                for (int value = 0; value < in_group; ++value) {
                    group[value] = widened(loaded[value]);
                }
                use(group, first);
            });
        };
        if (arguments_.gemm.c_type == ElementType::f32) {
            ptx::stay_a_branch();
            load_as(static_cast<const float*>(c.data), [](float value) { return value; });
        } else {
            ptx::stay_a_branch();
            const bool from_f16 = arguments_.gemm.c_type == ElementType::f16;
            load_as(static_cast<const std::uint16_t*>(c.data), [&](std::uint16_t bits) {
                float value = 0;
                float none = 0;
                detail::unpack(bits, from_f16, value, none);
                return value;
            });
        }
    }

    /// Calls `use(products of row and column scales, index of the first)` for each group. `HopperEpilogue::prefetch_scales`
    /// has brought them near.
    template <class Use>
    __device__ __forceinline__ void load_scales(Use&& use) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        const int row = row_ + place_.row();
        float of_row[2] = {1.0F, 1.0F};
        if (gemm.row_scales != nullptr) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                of_row[i] = row + i * 8 < gemm.m ? gemm.row_scales[row + i * 8] : 0.0F;
            }
        }
        const HopperColumns<Config> columns_of_tile(gemm, column_ - static_cast<int>(tile_column_));
        for_each_group([&](Group& scales, int first) {
            float of_column[4] = {1.0F, 1.0F, 1.0F, 1.0F};
            if (gemm.column_scales != nullptr) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int index = columns_of_tile[tile_column_of(first / 4 + j / 2) + place_.column() + j % 2];
                    of_column[j] = index >= 0 ? gemm.column_scales[index] : 0.0F;
                }
            }
#pragma unroll
            for (int value = 0; value < in_group; ++value) {
                scales[value] = __fmul_rn(of_row[value / 2 % 2], of_column[value / 4 * 2 + value % 2]);
            }
            use(scales, first);
        });
    }

    /// Calls `use(bias, index of the first)` for each group. @param elements  the bias of the consumer's tile, in shared
    /// memory
    template <class Use>
    __device__ __forceinline__ void read_bias(const float* elements, Use&& use) const
    {
        if (arguments_.gemm.bias_axis == BiasAxis::per_row) {
            ptx::stay_a_branch();
            elements += tile_row_ + place_.row();
            const float of_row[2] = {elements[0], elements[8]};
            for_each_group([&](Group& bias, int first) {
#pragma unroll
                for (int value = 0; value < in_group; ++value) {
                    bias[value] = of_row[value / 2 % 2];
                }
                use(bias, first);
            });
            return;
        }
        read_bias_of_columns(elements, use);
    }

    /// The same for a bias per column.
    template <class Use>
    __device__ __forceinline__ void read_bias_of_columns(const float* elements, Use&& use) const
    {
        for_each_group([&](Group& bias, int first) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float2 pair =
                    *reinterpret_cast<const float2*>(elements + tile_column_of(first / 4 + j) + place_.column());
                bias[4 * j] = bias[4 * j + 2] = pair.x;
                bias[4 * j + 1] = bias[4 * j + 3] = pair.y;
            }
            use(bias, first);
        });
    }

    /// Puts `Count` columns from column `First` into a buffer of fp32.
    template <int First, int Count>
    __device__ __forceinline__ void put_f32(const Values& finished, std::byte* buffer) const
    {
        place_.template for_each_pair<Count>(0, [&](int value, unsigned offset) {
            *reinterpret_cast<float2*>(buffer + offset) =
                make_float2(finished[First / 2 + value], finished[First / 2 + value + 1]);
        });
    }

    /// The values, rounded to f16 or bf16, as matrices of 16 columns.
    struct Packed {
        std::uint32_t matrices[columns / 16][4];
    };
    __device__ __forceinline__ Packed pack_16_bit(const Values& finished) const
    {
        const bool as_f16 = arguments_.gemm.d_type == ElementType::f16;
        Packed packed;
#pragma unroll
        for (int i = 0; i < values / 2; ++i) {
            packed.matrices[i / 4][i % 4] = detail::pack(finished[2 * i], finished[2 * i + 1], as_f16);
        }
        return packed;
    }

    /// Puts them into a buffer of f16 or bf16.
    __device__ __forceinline__ void put(const Packed& packed, std::byte* buffer) const
    {
#pragma unroll
        for (int q = 0; q < columns / 16; ++q) {
            store_matrices(buffer + place_.matrix(q), packed.matrices[q]);
        }
    }

    /// Stores the values to a D of 16 bits by TMA, or to such a pre-activation.
    __device__ __forceinline__ void store_16_bit(HopperStaging<Config>& staging, int width, const Values& finished,
                                                 bool to_d) const
    {
        const auto packed = pack_16_bit(finished);
        store_columns<0>(staging, width, to_d, [&](std::byte* buffer) { put(packed, buffer); });
    }

    /// Puts columns from `First` into a buffer, and stores `width` of them to D or to the pre-activation.
    /// @param put  called with the buffer
    template <int First, class Put>
    __device__ __forceinline__ void store_columns(HopperStaging<Config>& staging, int width, bool to_d, Put&& put) const
    {
        put(staging.next());
        const bool is_rest = static_cast<int>(tile_column_) + First + width > tile_n;  // never of gated pairs
        const AnyTensorMap<3>& map = to_d ? (is_rest ? arguments_.d_rest : arguments_.d)
                                          : (is_rest ? arguments_.pre_activation_rest : arguments_.pre_activation);
        staging.store(map, column_ + First, row_, batch_);
    }

    /// Puts the values into a buffer of 8-bit elements.
    __device__ __forceinline__ void put_8_bit(const Values& finished, std::byte* buffer) const
    {
        place_.template for_each_pair_of_bytes<columns>([&](int value, unsigned offset) {
            *reinterpret_cast<std::uint16_t*>(buffer + offset) = static_cast<std::uint16_t>(
                detail::pack_8_bits(finished[value], finished[value + 1], arguments_.gemm.d_type));
        });
    }

    /// Stores the values in global memory, and leaves them as they were.
    /// @param to  D, or another matrix of its extents
    __device__ __forceinline__ void store(Values& finished, const Destination& to) const
    {
        const std::int64_t first = batch_ * to.batch_stride + (row_ + place_.row()) * to.row_stride +
                                   (column_ + place_.column()) * to.column_stride;
        const auto store_as = [&]<class T>(T* data, auto&& narrowed) {
#pragma unroll 1
            for (int group = 0; group < values; group += in_group) {
                for_each_value<in_group>(group, [&](int value, int down, int across, bool inside) {
                    if (inside) {
                        data[first + down * to.row_stride + across * to.column_stride] = narrowed(finished[value]);
                    }
                });
                float stored[in_group];
#pragma unroll
                for (int value = 0; value < in_group; ++value) {
                    stored[value] = finished[value];
                }
                detail::rotate_in(finished, stored);
            }
        };
        if (to.type == ElementType::f32) {
            ptx::stay_a_branch();
            store_as(static_cast<float*>(to.data), [](float value) { return value; });
        } else if (is_float8(to.type)) {
            ptx::stay_a_branch();
            store_as(static_cast<std::uint8_t*>(to.data),
                     [&](float value) { return detail::narrow_to_8_bits(value, to.type); });
        } else {
            ptx::stay_a_branch();
            store_as(static_cast<std::uint16_t*>(to.data), [&](float value) {
                return static_cast<std::uint16_t>(detail::pack(value, 0.0F, to.type == ElementType::f16));
            });
        }
    }

    /// Takes the values' magnitudes into account and scales them, for a D of 8 bits.
    __device__ __forceinline__ void finish_8_bit(Values& finished) const
    {
        ptx::stay_a_branch();
        if (arguments_.gemm.amax_d != nullptr) {
            int largest = 0;
            for_each_value<values>(0, [&](int value, int /*down*/, int /*across*/, bool inside) {
                largest = inside ? max(largest, detail::magnitude_bits(finished[value])) : largest;
            });
            detail::raise_amax(arguments_.gemm, largest);
        }
        detail::scale_for_d(finished, arguments_.gemm);
    }

private:
    static constexpr int in_group = 8;  // operands of 16 columns
    using Group = float[in_group];

    /// Moves the gates and ups of a part next to each other: from the left and the right half of the tile.
    __device__ __forceinline__ static void pair_up(float (&block)[registers])
    {
        float paired[registers];
#pragma unroll
        for (int i = 0; i < registers; ++i) {
            const int in_half = i / values * (values / 2) + i % (values / 2);
            paired[i] = block[in_half + (i % values < values / 2 ? 0 : registers / 2)];
        }
#pragma unroll
        for (int i = 0; i < registers; ++i) {
            block[i] = paired[i];
        }
    }

    /// Calls `visit(group, index of its first value)` for each group of the part.
    template <class Visit>
    __device__ __forceinline__ static void for_each_group(Visit&& visit)
    {
#pragma unroll
        for (int first = 0; first < values; first += in_group) {
            Group group;
            visit(group, first);
        }
    }

    __device__ bool gated() const { return is_gated<Config>(arguments_.gemm); }

    /// Returns true if columns from `column` of the tile on are beyond it: nothing has written them, and nobody needs them.
    __device__ static bool is_beyond(unsigned column) { return tile_n % columns != 0 && column >= tile_n; }

    /// Column in the tile of the values' `j`-th eight columns.
    __device__ int tile_column_of(int j) const
    {
        const bool right = Config::config.gates() && j >= columns / 16;
        return static_cast<int>(tile_column_) + 8 * j + (right && gated() ? tile_n / 2 - columns / 2 : 0);
    }

    /// Calls `visit(value, rows down, columns across, is inside of D and of the tile)` for each of `Count` values from
    /// `first`, relative to the first and to its place.
    template <int Count, class Visit>
    __device__ __forceinline__ void for_each_value(int first, Visit&& visit) const
    {
        const std::int64_t rows_left = arguments_.gemm.m - row_ - place_.row();
        const int columns_of_part = gated() ? columns / 2 : min(columns, tile_n - static_cast<int>(tile_column_));
        const std::int64_t columns_left =
            min(arguments_.gemm.d_columns() - column_, static_cast<std::int64_t>(columns_of_part)) - place_.column();
#pragma unroll
        for (int value = 0; value < Count; ++value) {
            const int down = value / 2 % 2 * 8;
            const int across = (first + value) / 4 * 8 + value % 2;
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
