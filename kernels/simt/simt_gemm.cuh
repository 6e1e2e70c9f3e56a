#pragma once

/// The SIMT GEMM kernels: `naive_gemm`, and `staged_gemm` with the rungs of simt_config.hpp as template argument.
///
/// Each output is one chain of fmaf in ascending k from +0, in all of them: every rung gives the same bits.

#include <type_traits>

#include "../common/epilogue.cuh"
#include "../common/tile_raster.cuh"
#include "simt_config.hpp"
#include "tile_loader.cuh"

namespace tessera::kernels {

namespace detail {

inline constexpr int raster_band = 16;  // tile rows; a wave of 132 to 264 CTAs is then about square

template <int Stages>
__device__ constexpr int next_stage(int stage)
{
    return stage + 1 == Stages ? 0 : stage + 1;
}

/// What one instance of the staged kernel is made of.
template <SimtConfig Config, class Element>
struct StagedTraits {
    /// `cp.async` copies bits, so only floats can take it, and sm_75 does not have it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    static constexpr bool async_copy = std::is_same_v<Element, float> && Config.stages > 1;
#else
    static constexpr bool async_copy = false;
#endif

    static constexpr int threads = Config.threads();
    static constexpr int stages = async_copy || Config.stages == 1 ? Config.stages : 2;
    using TileA = SharedTile<Config.block_m, Config.block_k, Config.shared_order>;
    using TileB = SharedTile<Config.block_n, Config.block_k, Config.shared_order>;
    template <class Tile>
    using Loader = std::conditional_t<async_copy, AsyncLoader<Tile, threads>,
                                      RegisterStagedLoader<Tile, Element, threads, Config.chunk>>;

    struct Stage {
        TileA a;  // (block_m, block_k)
        TileB b;  // (block_n, block_k)
    };
};

/// Fills the stages, one step along K after the other.
template <class Traits, class Element>
class StageLoader {
public:
    using Stage = typename Traits::Stage;

    __device__ StageLoader(const OperandStrip<Element>& a, const OperandStrip<Element>& b, std::int64_t k)
        : a_(a), b_(b), k_left_(k)
    {}

    /// Starts to load the next step into `stage`, if there is a next step.
    __device__ void begin(Stage& stage)
    {
        if (k_left_ > 0) {
            const auto k_left = static_cast<int>(min(k_left_, static_cast<std::int64_t>(Traits::TileA::block_k)));
            a_.begin(stage.a, k_left);
            b_.begin(stage.b, k_left);
            k_left_ -= Traits::TileA::block_k;
        }
        if constexpr (Traits::async_copy) {
            __pipeline_commit();
        }
    }

    /// Completes the oldest step that was begun. Other threads' parts are visible after a barrier.
    __device__ void finish(Stage& stage)
    {
        if constexpr (Traits::async_copy) {
            __pipeline_wait_prior(Traits::stages - 2);
        } else {
            a_.finish(stage.a);
            b_.finish(stage.b);
        }
    }

private:
    typename Traits::template Loader<typename Traits::TileA> a_;
    typename Traits::template Loader<typename Traits::TileB> b_;
    std::int64_t k_left_;
};

/// The place of a thread in its CTA's block. The first row of its thread tile is `m`; further rows follow in groups of
/// four, `step_m` apart, so that the lanes of a warp read neighbouring vectors. Columns likewise.
template <SimtConfig Config>
struct ThreadTile {
    static constexpr int group_m = Config.thread_m == 1 ? 1 : 4;
    static constexpr int group_n = Config.thread_n == 1 ? 1 : 4;
    static constexpr int step_m = Config.lanes_m * group_m;
    static constexpr int step_n = Config.lanes_n * group_n;

    static constexpr int warps_n = Config.warps_n();

    int m;
    int n;

    __device__ ThreadTile()
    {
        const int lane = threadIdx.x % 32;
        const int warp = threadIdx.x / 32;
        int lane_m = 0;
        int lane_n = lane;
        if constexpr (Config.lanes_m == 4) {
            // m takes bits 1 and 3 of the lane, n bits 0, 2 and 4: in each half of the warp, pairs of lanes read the
            // same vector of A and other pairs the same vector of B, so that a vector load costs 2 passes and not 4.
            lane_m = (lane >> 1 & 1) | (lane >> 2 & 2);
            lane_n = (lane & 1) | (lane >> 1 & 2) | (lane >> 2 & 4);
        }
        m = warp / warps_n * (Config.lanes_m * Config.thread_m) + lane_m * group_m;
        n = warp % warps_n * (Config.lanes_n * Config.thread_n) + lane_n * group_n;
    }

    /// Offset of row `i` of the thread tile from its first row.
    __device__ static constexpr int row(int i) { return i / group_m * step_m + i % group_m; }
};

/// `Count` values of x at one k: groups of four, `Step` apart.
template <int Count, int Step>
__device__ __forceinline__ void load_fragment(const float* source, float (&fragment)[Count])
{
    if constexpr (Count == 1) {
        fragment[0] = *source;
    } else {
#pragma unroll
        for (int i = 0; i < Count; i += 4) {
            const float4 group = *reinterpret_cast<const float4*>(source + i / 4 * Step);
            fragment[i] = group.x;
            fragment[i + 1] = group.y;
            fragment[i + 2] = group.z;
            fragment[i + 3] = group.w;
        }
    }
}

template <int Rows, int Columns>
__device__ __forceinline__ void add_outer_product(const float (&a)[Rows], const float (&b)[Columns],
                                                  float (&accumulator)[Rows][Columns])
{
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
            accumulator[i][j] = fmaf(a[i], b[j], accumulator[i][j]);
        }
    }
}

/// Load, wait, compute, wait.
template <SimtConfig Config, class Traits, class Loader>
__device__ void multiply_single_buffered(Loader& loader, typename Traits::Stage& stage, const ThreadTile<Config>& place,
                                         std::int64_t k, float (&accumulator)[Config.thread_m][Config.thread_n])
{
    for (std::int64_t k_left = k; k_left > 0; k_left -= Config.block_k) {
        loader.begin(stage);
        __syncthreads();  // everybody has read the stage's last contents
        loader.finish(stage);
        __syncthreads();
        if constexpr (Config.shared_order == SharedOrder::k_contiguous) {
#pragma unroll
            for (int i = 0; i < Config.block_k; i += 4) {
                float a[4];
                float b[4];
                load_fragment<4, 0>(stage.a.elements + Traits::TileA::index(place.m, i), a);
                load_fragment<4, 0>(stage.b.elements + Traits::TileB::index(place.n, i), b);
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    accumulator[0][0] = fmaf(a[j], b[j], accumulator[0][0]);
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < Config.block_k; ++i) {
                float a[Config.thread_m];
                float b[Config.thread_n];
                load_fragment<Config.thread_m, ThreadTile<Config>::step_m>(
                    stage.a.elements + Traits::TileA::index(place.m, i), a);
                load_fragment<Config.thread_n, ThreadTile<Config>::step_n>(
                    stage.b.elements + Traits::TileB::index(place.n, i), b);
                add_outer_product(a, b, accumulator);
            }
        }
    }
}

/// Computes on one stage while the next ones load, and on one fragment while the next one loads: one barrier per step.
template <SimtConfig Config, class Traits, class Loader>
__device__ void multiply_pipelined(Loader& loader, typename Traits::Stage* stages, const ThreadTile<Config>& place,
                                   std::int64_t k, float (&accumulator)[Config.thread_m][Config.thread_n])
{
    static_assert(Config.block_k % 2 == 0, "the fragment buffers alternate with the parity of k");
    if (k == 0) {
        return;
    }
    float a[2][Config.thread_m];
    float b[2][Config.thread_n];
    const auto load_fragments = [&](int buffer, const typename Traits::Stage& stage, int i) {
        load_fragment<Config.thread_m, ThreadTile<Config>::step_m>(stage.a.elements + Traits::TileA::index(place.m, i),
                                                                   a[buffer]);
        load_fragment<Config.thread_n, ThreadTile<Config>::step_n>(stage.b.elements + Traits::TileB::index(place.n, i),
                                                                   b[buffer]);
    };

#pragma unroll
    for (int stage = 0; stage < Traits::stages - 1; ++stage) {
        loader.begin(stages[stage]);
    }
    loader.finish(stages[0]);
    __syncthreads();
    load_fragments(0, stages[0], 0);

    int read_stage = 0;
    int write_stage = Traits::stages - 1;
#pragma unroll 1
    for (std::int64_t k_left = k; k_left > 0; k_left -= Config.block_k) {
#pragma unroll
        for (int i = 0; i < Config.block_k; ++i) {
            if (i == Config.block_k - 1 && k_left > Config.block_k) {
                // After the last step the fragments that nobody needs come from the stage just read, not from beyond
                // it.
                read_stage = next_stage<Traits::stages>(read_stage);
                loader.finish(stages[read_stage]);
                __syncthreads();
            }
            load_fragments((i + 1) % 2, stages[read_stage], (i + 1) % Config.block_k);
            if (i == 0) {
                loader.begin(stages[write_stage]);  // its readers passed the last barrier
                write_stage = next_stage<Traits::stages>(write_stage);
            }
            add_outer_product(a[i % 2], b[i % 2], accumulator);
        }
    }
}

/// Writes the thread tile. Rolled, because the code of an output row is long: the row to write is always the first, and
/// the others move up (registers have no index).
template <SimtConfig Config>
__device__ void store_thread_tile(const GemmArguments& arguments, const TileIndex& tile,
                                  const ThreadTile<Config>& place,
                                  float (&accumulator)[Config.thread_m][Config.thread_n])
{
    constexpr int group = ThreadTile<Config>::group_n;
    const Epilogue epilogue(arguments, tile.batch);
    const std::int64_t first_row = static_cast<std::int64_t>(tile.m) * Config.block_m + place.m;
    const std::int64_t first_column = static_cast<std::int64_t>(tile.n) * Config.block_n + place.n;
#pragma unroll 1
    for (int i = 0; i < Config.thread_m; ++i) {
#pragma unroll
        for (int j = 0; j < Config.thread_n; j += group) {
            float values[group];
#pragma unroll
            for (int l = 0; l < group; ++l) {
                values[l] = accumulator[0][j + l];
            }
            epilogue.store(first_row + place.row(i), first_column + j / group * place.step_n, values);
        }
#pragma unroll
        for (int r = 1; r < Config.thread_m; ++r) {
#pragma unroll
            for (int j = 0; j < Config.thread_n; ++j) {
                accumulator[r - 1][j] = accumulator[r][j];
            }
        }
    }
}

}  // namespace detail

/// One thread per output, both operands from global memory, in any order.
template <class Element>
__global__ void __launch_bounds__(naive_block* naive_block) naive_gemm(const __grid_constant__ GemmArguments arguments)
{
    const TileIndex tile = grouped_tile(blockIdx.x, arguments.tiles_m, arguments.tiles_n, detail::raster_band);
    const std::int64_t row = static_cast<std::int64_t>(tile.m) * naive_block + threadIdx.x / naive_block;
    const std::int64_t column = static_cast<std::int64_t>(tile.n) * naive_block + threadIdx.x % naive_block;
    if (row >= arguments.m || column >= arguments.n) {
        return;
    }
    const Operand& a = arguments.a;
    const Operand& b = arguments.b;
    const Element* a_row = static_cast<const Element*>(a.data) + tile.batch * a.batch_stride + row * a.row_stride;
    const Element* b_column =
        static_cast<const Element*>(b.data) + tile.batch * b.batch_stride + column * b.column_stride;
    float accumulator[1] = {};
    for (std::int64_t k = 0; k < arguments.k; ++k) {
        accumulator[0] = fmaf(a_row[k * a.column_stride], b_column[k * b.row_stride], accumulator[0]);
    }
    Epilogue(arguments, tile.batch).store(row, column, accumulator);
}

/// Tiles of A and B are staged in shared memory, as the rung's config says.
template <class Rung, class Element>
__global__ void __launch_bounds__(Rung::config.threads(), Rung::config.min_ctas)
    staged_gemm(const __grid_constant__ GemmArguments arguments)
{
    constexpr SimtConfig config = Rung::config;
    using Traits = detail::StagedTraits<config, Element>;
    __shared__ typename Traits::Stage stages[Traits::stages];

    const TileIndex tile = grouped_tile(blockIdx.x, arguments.tiles_m, arguments.tiles_n, detail::raster_band);
    const Operand& a = arguments.a;
    const Operand& b = arguments.b;
    const detail::OperandStrip<Element> strip_a(a, a.row_stride, a.column_stride, tile.batch,
                                                static_cast<std::int64_t>(tile.m) * config.block_m, arguments.m,
                                                config.block_m);
    const detail::OperandStrip<Element> strip_b(b, b.column_stride, b.row_stride, tile.batch,
                                                static_cast<std::int64_t>(tile.n) * config.block_n, arguments.n,
                                                config.block_n);
    detail::StageLoader<Traits, Element> loader(strip_a, strip_b, arguments.k);
    const detail::ThreadTile<config> place;
    float accumulator[config.thread_m][config.thread_n] = {};
    if constexpr (Traits::stages == 1) {
        detail::multiply_single_buffered<config, Traits>(loader, stages[0], place, arguments.k, accumulator);
    } else {
        detail::multiply_pipelined<config, Traits>(loader, stages, place, arguments.k, accumulator);
    }
    detail::store_thread_tile<config>(arguments, tile, place, accumulator);
}

}  // namespace tessera::kernels
