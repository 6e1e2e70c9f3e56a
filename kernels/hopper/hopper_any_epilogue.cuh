#pragma once

/// Any epilogue, with one copy of all operations.

#include <cstddef>

#include "hopper_arguments.hpp"
#include "hopper_gate.cuh"
#include "hopper_multiply.cuh"
#include "hopper_part.cuh"
#include "hopper_shared.cuh"
#include "hopper_staging.cuh"
#include "kernels/gemm/epilogue.cuh"

namespace tessera::kernels {

/// Every function is executed by the consumer's 128 threads.
template <class Config>
class HopperAnyEpilogue {
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    using Accumulators = float[blocks][registers];
    using SlotsOfC = ReadSlots<HopperRing<Config>>;
    using Part = HopperPart<Config, Config::config.epilogue_columns()>;

public:
    /// @param alpha  times the scales of A and B
    __device__ HopperAnyEpilogue(const HopperArguments& arguments, HopperShared<Config>& shared,
                                 HopperStaging<Config>& staging, int consumer, float alpha)
        : arguments_(arguments), shared_(shared), staging_(staging), consumer_(consumer), alpha_(alpha)
    {}

    /// Writes D with any epilogue, by TMA or straight from the registers.
    __device__ __forceinline__ void write_parts(Accumulators& accumulators, const SlotsOfC& c, const HopperTile& tile)
    {
        const GemmArguments& gemm = arguments_.gemm;
        Part::for_each(accumulators, gemm, [&](typename Part::Values& values, unsigned block, unsigned index) {
            const Part part(arguments_, block, index, tile.row, column_of_d<Config>(arguments_.gemm, tile.column),
                            tile.batch);
#pragma unroll
            for (float& value : values) {
                value = detail::scaled(value, alpha_);
            }
            detail::prepare_activation(
                values, gemm, [&](auto&& use) { part.load_scales(use); },
                [&](auto&& use) {
                    if (c.count() > 0) {
                        part.read_c(shared_, c, tile.first_row, use);
                    } else {
                        part.load_c(use);
                    }
                },
                [&](auto&& use) { part.read_bias(shared_.bias[consumer_], use); });
            // One copy of the stores: first of the pre-activation, if there is one, then of D.
#pragma unroll 1
            for (bool to_d = gemm.pre_activation.data == nullptr;; to_d = true) {
                if (to_d) {
                    finish(part, values);
                }
                store(part, values, to_d);
                if (to_d) {
                    break;
                }
            }
        });
    }

    /// Writes any D: through shared memory in fp32, and from there row by row (kernels/gemm).
    __device__ __forceinline__ void write_rows(Accumulators& accumulators, const HopperTile& tile)
    {
        const Epilogue epilogue(arguments_.gemm, tile.batch);
        constexpr int at_once = Part::columns < 32 ? Part::columns : 32;  // of fp32 in a buffer
        std::byte* const buffer = staging_.first();
        Part::for_each(
            accumulators, arguments_.gemm, [&](typename Part::Values& values, unsigned block, unsigned index) {
                const Part part(arguments_, block, index, tile.row, tile.column, tile.batch);
#pragma unroll 1
                for (int first = 0; first < Part::columns; first += at_once) {
                    synchronize_consumer(consumer_);  // the previous columns have been read
                    part.template put_f32<0, at_once>(values, buffer);
                    synchronize_consumer(consumer_);
                    const int in_tile = static_cast<int>(part.tile_column()) + first;
                    for_each_quad<at_once>(min(at_once, tile_n - in_tile), [&](int quad_row, int quad_column) {
                        const float4 quad =
                            *reinterpret_cast<const float4*>(buffer + hopper_swizzled(quad_row, quad_column / 4));
                        const float four[4] = {quad.x, quad.y, quad.z, quad.w};
                        epilogue.store<4>(part.row() + quad_row, part.column() + first + quad_column, four);
                    });
#pragma unroll
                    for (int i = at_once / 2; i < Part::values; ++i) {
                        values[i - at_once / 2] = values[i];
                    }
                }
            });
    }

private:
    /// Replaces what the activation is applied to by elements of D, not rounded yet. Those of gated pairs are in the left
    /// half of the part.
    __device__ __forceinline__ void finish(const Part& part, typename Part::Values& values) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        constexpr int pairs = Part::values / 2;
        const bool gated = is_gated<Config>(gemm);
        detail::activate(values, gemm.activation, gated ? pairs : Part::values);
        if (gated) {
            ptx::stay_a_branch();
#pragma unroll
            for (int i = 0; i < pairs; ++i) {
                values[i] = __fmul_rn(values[i], values[pairs + i]);
            }
        }
        if (is_float8(gemm.d_type)) {
            part.finish_8_bit(values);
        }
    }

    /// Stores a part to D, or to the pre-activation.
    __device__ __forceinline__ void store(const Part& part, typename Part::Values& values, bool to_d)
    {
        const GemmArguments& gemm = arguments_.gemm;
        if (!(to_d ? arguments_.stores_by_tma : arguments_.stores_pre_activation_by_tma)) {
            const Destination& x = gemm.pre_activation;
            part.store(values, {.data = to_d ? gemm.d : x.data,
                                .row_stride = to_d ? gemm.d_row_stride : x.row_stride,
                                .column_stride = to_d ? gemm.d_column_stride : x.column_stride,
                                .batch_stride = to_d ? gemm.d_batch_stride : x.batch_stride,
                                .type = to_d ? gemm.d_type : x.type});
            return;
        }
        // The pre-activation that TMA stores has D's type.
        if (is_float8(gemm.d_type)) {
            ptx::stay_a_branch();
            part.template store_columns<0>(staging_, part_width<1>(), to_d,
                                           [&](std::byte* buffer) { part.put_8_bit(values, buffer); });
            return;
        }
        if (gemm.d_type != ElementType::f32) {
            part.store_16_bit(staging_, part_width<2>(), values, to_d);
            return;
        }
        constexpr int width = Config::config.part_width(4, false);
        part.template store_columns<0>(staging_, part_width<4>(), to_d,
                                       [&](std::byte* buffer) { part.template put_f32<0, width>(values, buffer); });
        if constexpr (width < Part::columns) {
            if (!is_gated<Config>(gemm) && static_cast<int>(part.tile_column()) + width < tile_n) {
                part.template store_columns<width>(staging_, width, to_d, [&](std::byte* buffer) {
                    part.template put_f32<width, width>(values, buffer);
                });
            }
        }
    }

    /// Columns of D that one store of a part writes.
    template <int ElementBytes>
    __device__ int part_width() const
    {
        return is_gated<Config>(arguments_.gemm) ? Config::config.part_width(ElementBytes, true)
                                                 : Config::config.part_width(ElementBytes, false);
    }

    /// Calls `visit(row, column)` for each four neighbours of a part of 64 rows. They are distributed over the threads
    /// so that a warp's accesses to D are adjacent.
    /// @param columns  that belong to the tile, of `Columns`
    template <int Columns, class Visit>
    __device__ __forceinline__ void for_each_quad(int columns, Visit&& visit) const
    {
        const bool along_rows = arguments_.gemm.d_column_stride == 1;
#pragma unroll 1
        for (int quad = thread(); quad < 64 * Columns / 4; quad += 128) {
            const int row = along_rows ? quad / (Columns / 4) : quad % 64;
            const int column = along_rows ? quad % (Columns / 4) * 4 : quad / 64 * 4;
            if (column < columns) {
                visit(row, column);
            }
        }
    }

    // A special register, read at each use: that is cheaper than keeping it beside the accumulators.
    __device__ static int thread() { return static_cast<int>(threadIdx.x) % 128; }

    const HopperArguments& arguments_;
    HopperShared<Config>& shared_;
    HopperStaging<Config>& staging_;
    int consumer_;
    float alpha_;
};

}  // namespace tessera::kernels
