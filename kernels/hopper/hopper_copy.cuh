#pragma once

/// The fallback load role, for an operand that TMA cannot address or whose major wgmma cannot read.
///
/// All four warps of the load warpgroup read this operand from global memory and write the stages; thread 0 loads the
/// other operand by TMA.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "hopper_load.cuh"
#include "kernels/gemm/unaligned_copy.cuh"
#include "transposing_copy.cuh"

namespace tessera::kernels {

/// 128 threads copy into the stages of their own CTA. CTAs do not share operands here.
template <class Config, class Element>
class HopperCopier {
    static constexpr int element_bytes = static_cast<int>(sizeof(Element));
    static constexpr int row_bytes = HopperConfig::hopper_row_bytes;
    static constexpr int block_k = row_bytes / element_bytes;

    struct NoTransposer {
        __device__ explicit NoTransposer(std::uint32_t) {}
    };

    /// One operand. A stage consists of lines of 128 bytes: one per row, or, for 16-bit M- or N-major operands, one per
    /// K for each 128 bytes of rows.
    template <int Rows>
    class Side {
        static constexpr bool transposes = element_bytes != 2;
        static constexpr int lines = Rows % block_k == 0 ? block_k : Rows % 64 == 0 ? 64 : 16;

    public:
        /// Strides and rows are along M or N. Strides are in elements.
        __device__ Side(const Operand& operand, bool k_major, std::int64_t row_stride, std::int64_t k_stride,
                        std::int64_t rows, std::int64_t k)
            : operand_(operand),
              k_major_(k_major),
              stride_((k_major ? row_stride : k_stride) * element_bytes),
              rows_(static_cast<int>(rows)),
              k_(static_cast<int>(k)),
              copier_(threadIdx.x),
              transposer_(threadIdx.x),
              target_{.even = offset(copier_.line()),
                      .odd = offset(copier_.line() + 4),
                      .line = row_bytes,
                      .block = lines * row_bytes}
        {}

        __device__ void begin(int row, int k, int batch)
        {
            const CopySource source{
                .data = static_cast<const std::byte*>(operand_.data) + batch * operand_.batch_stride * element_bytes,
                .stride = stride_,
                .lines = k_major_ ? rows_ : k_,
                .run = k_major_ ? k_ : rows_};
            if constexpr (transposes) {
                if (!k_major_) {
                    transposer_.begin(source, row, k);
                    return;
                }
            }
            copier_.begin(source, k_major_ ? row : k, k_major_ ? k : row, !k_major_);
        }
        /// Copies one stage's part and moves on to the next stage.
        __device__ __forceinline__ void copy(std::byte* tile)
        {
            if constexpr (transposes) {
                if (!k_major_) {
                    transposer_.copy(tile);
                    return;
                }
            }
            copier_.copy(tile, target_);
            if (k_major_) {
                copier_.skip_elements(block_k);
            } else {
                copier_.skip_lines(block_k);
            }
        }

    private:
        __device__ std::uint32_t offset(int line) const
        {
            return swizzled(Swizzle::b128,
                            static_cast<std::uint32_t>(line * row_bytes + copier_.element() * element_bytes));
        }

        const Operand& operand_;
        bool k_major_;
        std::int64_t stride_;
        int rows_;
        int k_;
        UnalignedCopier<element_bytes, lines, Rows / lines> copier_;
        std::conditional_t<transposes, TransposingCopier<transposes ? element_bytes : 1, Rows>, NoTransposer>
            transposer_;
        CopyTarget target_;
    };

public:
    /// Warps that arrive at a `full` barrier.
    static constexpr std::uint32_t warps = 4;

    /// The role, executed by the load warpgroup.
    __device__ __forceinline__ static void run(const HopperArguments& arguments, HopperShared<Config>& shared,
                                               HopperQueue queue, const ClusterGrid& cluster,
                                               BarriersPublishedToCluster published)
    {
        using Loader = HopperTmaLoader<Config, Element>;
        using NoPolicy = typename Loader::NoPolicy;
        constexpr int tile_m = Config::config.tile_m;
        constexpr int tile_n = Config::config.tile_n;
        const GemmArguments& gemm = arguments.gemm;
        const typename Loader::template Side<tile_m, NoPolicy> loaded_a(arguments.a, arguments.a_k_major,
                                                                        arguments.a_batched, arguments.a_rows, 1, 0,
                                                                        published.ready(cluster.my_row()), NoPolicy{});
        const typename Loader::template Side<tile_n, NoPolicy> loaded_b(
            arguments.b, arguments.b_k_major, arguments.b_batched, arguments.b_rows, 1, 0,
            published.ready(cluster.my_column()), NoPolicy{});
        Side<tile_m> a(gemm.a, arguments.a_k_major, gemm.a.row_stride, gemm.a.column_stride, gemm.m, gemm.k);
        Side<tile_n> b(gemm.b, arguments.b_k_major, gemm.b.column_stride, gemm.b.row_stride, gemm.n, gemm.k);
        const std::uint32_t loaded_bytes = row_bytes * ((arguments.a_by_threads ? 0 : arguments.a_rows) +
                                                        (arguments.b_by_threads ? 0 : arguments.b_rows));
        RingProducer<HopperRing<Config>> ring(shared.ring, published);
        await_kernel_before();
        HopperUnit unit{};
        while (queue.next(unit)) {
            const TilePosition place = arguments.gemm.raster.position(unit.tile);
            const int row = static_cast<int>(place.row * tile_m);
            const int column = static_cast<int>(place.column * tile_n);
            const int batch = static_cast<int>(place.batch);
            int k = static_cast<int>(arguments.work.skip_k ? 1 : unit.k_begin) * block_k;
            a.begin(row, k, batch);
            b.begin(column, k, batch);
            for (std::uint32_t stage = 0; stage < unit.k_count; ++stage, k += block_k) {
                auto slot = ring.acquire();
                auto& memory = shared.stages[slot.index()];
                if (threadIdx.x == 0) {
                    slot.announce(loaded_bytes);
                    if (!arguments.a_by_threads) {
                        loaded_a.load(memory.a, slot, row, k, loaded_a.batch(batch));
                    }
                    if (!arguments.b_by_threads) {
                        loaded_b.load(memory.b, slot, column, k, loaded_b.batch(batch));
                    }
                }
                __syncwarp();
                if (arguments.a_by_threads) {
                    a.copy(memory.a);
                }
                if (arguments.b_by_threads) {
                    b.copy(memory.b);
                }
                std::move(slot).publish_written();
            }
        }
        std::move(ring).drain();
    }

    /// Prefetches the descriptors of the tensor maps in use.
    __device__ static void prefetch_maps(const HopperArguments& arguments)
    {
        using Loader = HopperTmaLoader<Config, Element>;
        if (!arguments.a_by_threads) {
            prefetch(arguments.a);
        }
        if (!arguments.b_by_threads) {
            prefetch(arguments.b);
        }
        Loader::prefetch_maps_of_epilogue(arguments);
    }
};

}  // namespace tessera::kernels
