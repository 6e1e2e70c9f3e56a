#pragma once

/// Finishes the accumulators of a consumer in place: one operation of the epilogue after the other, each on all of them.
///
/// An operation is straight-line code behind one uniform branch. A loop over parts of the tile (hopper_part.cuh) has a
/// third of the code, but spends more time on its branches and addresses than on the arithmetic: only one warp per
/// scheduler is in the epilogue, so nothing hides them.

#include <cstdint>

#include "hopper_arguments.hpp"
#include "hopper_part.cuh"
#include "hopper_shared.cuh"
#include "kernels/gemm/epilogue_operations.cuh"
#include "kernels/gemm/ptx.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

/// Value 4 * j + 2 * i + e of a block of 64 rows is in row 16 * warp + lane / 4 + 8 * i and column
/// 8 * j + 2 * (lane % 4) + e. Every function is executed by the 128 threads of a consumer.
template <class Config>
class HopperFinish {
    static constexpr HopperConfig config = Config::config;
    static constexpr int tile_n = config.tile_n;
    static constexpr int blocks = config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    static constexpr int count = blocks * registers;
    static constexpr int boxes_per_row_16_bit = config.c_boxes_per_row(2);
    static constexpr int boxes_per_row_f32 = config.c_boxes_per_row(4);

public:
    using Accumulators = float[blocks][registers];

    /// sum -> alpha * sum.
    __device__ __forceinline__ static void scale(Accumulators& values, float alpha)
    {
        for_each(values, [&](float& value) { value = detail::scaled(value, alpha); });
    }

    /// x -> x + beta * c, with C from the slots of the ring that carry the tile.
    template <class Slots>
    __device__ __forceinline__ static void add_c(Accumulators& values, const GemmArguments& gemm,
                                                 const HopperShared<Config>& shared, const Slots& slots)
    {
        const HopperPlace place;
        const float beta = gemm.beta;
        // The thread index is read anew, so that nothing that depends on it is kept in registers during the MMA loop.
        const bool own_rows = config.schedule == HopperSchedule::cooperative;
        const unsigned first_block =
            own_rows ? (static_cast<unsigned>(ptx::read_thread_index()) / 128 - 1) * blocks : 0;
        if (gemm.c_type == ElementType::f32) {
#pragma unroll
            for (int block = 0; block < blocks; ++block) {
#pragma unroll
                for (int box = 0; box < boxes_per_row_f32; ++box) {
                    const std::byte* const from = box_of_c(shared, slots, first_block + block, box, 4);
                    place.template for_each_pair<32>(0, [&](int value, unsigned offset) {
                        if (box * 16 + value < registers) {
                            const float2 c = *reinterpret_cast<const float2*>(from + offset);
                            float* const d = &values[block][box * 16 + value];
                            d[0] = __fmaf_rn(beta, c.x, d[0]);
                            d[1] = __fmaf_rn(beta, c.y, d[1]);
                        }
                    });
                }
            }
            return;
        }
        const bool from_f16 = gemm.c_type == ElementType::f16;
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
#pragma unroll
            for (int box = 0; box < boxes_per_row_16_bit; ++box) {
                const std::byte* const from = box_of_c(shared, slots, first_block + block, box, 2);
#pragma unroll
                for (int q = 0; q < 4 && box * 64 + q * 16 < tile_n; ++q) {
                    std::uint32_t packed[4];
                    load_matrices(from + place.matrix(q), packed);
#pragma unroll
                    for (int i = 0; i < 4 && box * 32 + q * 8 + 2 * i < registers; ++i) {
                        float* const d = &values[block][box * 32 + q * 8 + 2 * i];
                        float first = 0;
                        float second = 0;
                        detail::unpack(packed[i], from_f16, first, second);
                        d[0] = __fmaf_rn(beta, first, d[0]);
                        d[1] = __fmaf_rn(beta, second, d[1]);
                    }
                }
            }
        }
    }

    /// x -> x + bias. @param elements  the bias of the consumer's tile, in shared memory
    __device__ __forceinline__ static void add_bias(Accumulators& values, BiasAxis axis, const float* elements)
    {
        const HopperPlace place;
        if (axis == BiasAxis::per_row) {
            elements += place.row();
#pragma unroll
            for (int block = 0; block < blocks; ++block) {
                const float bias[2] = {elements[block * 64], elements[block * 64 + 8]};
#pragma unroll
                for (int value = 0; value < registers; ++value) {
                    values[block][value] = __fadd_rn(values[block][value], bias[value / 2 % 2]);
                }
            }
            return;
        }
        elements += place.column();
#pragma unroll
        for (int j = 0; j < tile_n / 8; ++j) {
            const float2 bias = *reinterpret_cast<const float2*>(elements + 8 * j);
#pragma unroll
            for (int block = 0; block < blocks; ++block) {
#pragma unroll
                for (int value = 4 * j; value < 4 * j + 4; ++value) {
                    values[block][value] = __fadd_rn(values[block][value], value % 2 == 0 ? bias.x : bias.y);
                }
            }
        }
    }

    /// x -> act(x). A costly activation loops over groups of values, so that its code is short.
    /// @param gates_only  of gated pairs: only the left half of the tile
    __device__ __forceinline__ static void activate(Accumulators& values, ActivationKind kind, bool gates_only)
    {
        if (kind == ActivationKind::none) {
            return;
        }
        constexpr int half = registers / 2;
        if (kind == ActivationKind::relu) {
            ptx::stay_a_branch();
            if (config.gates() && gates_only) {
                ptx::stay_a_branch();
#pragma unroll
                for (auto& block : values) {
#pragma unroll
                    for (int i = 0; i < half; ++i) {
                        block[i] = detail::relu(block[i]);
                    }
                }
                return;
            }
            for_each(values, [&](float& value) { value = detail::relu(value); });
            return;
        }
        // Large groups rotate fewer registers per value, but are copies of which there must be room.
        constexpr int group = count <= 128 && count % 32 == 0 ? 32 : count % 8 == 0 ? 8 : 4;
        static_assert(count % group == 0);
        constexpr bool mixes_halves = half % group != 0;
        static_assert(!config.gates() || !mixes_halves || group == count);
#pragma unroll 1
        for (int done = 0; done < count; done += group) {
            float first[group];
#pragma unroll
            for (int i = 0; i < group; ++i) {
                first[i] = values[i / registers][i % registers];
            }
            if (!config.gates() || mixes_halves || !gates_only || done / half % 2 == 0) {
                detail::activate(first, kind);
            }
            // Rotated, because registers have no run-time index.
#pragma unroll
            for (int i = 0; i < count; ++i) {
                const int from = i + group;
                if (config.gates() && mixes_halves && from - count >= half) {
                    first[from - count] = gates_only ? values[0][from - count] : first[from - count];
                }
                values[i / registers][i % registers] =
                    from < count ? values[from / registers][from % registers] : first[from - count];
            }
        }
    }

private:
    template <class Function>
    __device__ __forceinline__ static void for_each(Accumulators& values, Function&& function)
    {
#pragma unroll
        for (auto& block : values) {
#pragma unroll
            for (float& value : block) {
                function(value);
            }
        }
    }

    /// The box of C: 64 rows of 128 bytes. @param block, box  its position in the tile, in boxes
    template <class Slots>
    __device__ __forceinline__ static const std::byte* box_of_c(const HopperShared<Config>& shared, const Slots& slots,
                                                                unsigned block, int box, int element_bytes)
    {
        constexpr auto per_slot = static_cast<unsigned>(config.c_boxes_per_stage());
        const auto boxes_per_row = static_cast<unsigned>(element_bytes == 4 ? boxes_per_row_f32 : boxes_per_row_16_bit);
        const unsigned index = block * boxes_per_row + static_cast<unsigned>(box);
        return shared.stages[slots.index(index / per_slot)].a + index % per_slot * HopperConfig::hopper_store_bytes;
    }
};

}  // namespace tessera::kernels
