#pragma once

/// The SIMT GEMM kernels, for every GPU: `naive_gemm`, and `staged_gemm` with a rung of simt_config.hpp as template
/// argument.
///
/// Reads A and B (and C) from global memory, stages tiles in shared memory, writes D. All warps do the same: load, then
/// compute. Each output is one chain of fmaf in ascending k from +0, so every rung gives the same bits.

#include <type_traits>

#include "../gemm/epilogue.cuh"
#include "simt_config.hpp"
#include "tile_loader.cuh"

namespace tessera::kernels {

namespace detail {

/// Types and constants of one instance of the staged kernel.
template <SimtConfig Config, class Element, bool AKContiguous, bool BKContiguous, bool WholeChunks>
struct StagedTraits {
    /// `cp.async` copies bits without conversion, so it serves floats only; sm_75 does not have it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    static constexpr bool async_copy = std::is_same_v<Element, float> && Config.buffers == Buffers::two;
#else
    static constexpr bool async_copy = false;
#endif

    static constexpr int threads = Config.threads();
    static constexpr int stages = Config.buffers == Buffers::two ? 2 : 1;
    using TileA = SharedTile<Config.block_m, Config.block_k, Config.shared_order>;
    using TileB = SharedTile<Config.block_n, Config.block_k, Config.shared_order>;
    static constexpr bool whole_chunks = WholeChunks;
    template <class Tile, bool KContiguous>
    using WholeChunkLoader = std::conditional_t<
        !KContiguous, WholeChunkAsyncLoader<Tile, threads>,
        std::conditional_t<Config.transposes_in_registers, WholeChunkTransposingLoader<Tile, threads>,
                           AsyncLoader<Tile, true, threads>>>;
    template <class Tile, bool KContiguous>
    using Loader = std::conditional_t<
        !async_copy, RegisterStagedLoader<Tile, KContiguous, Element, threads, Config.chunk>,
        std::conditional_t<WholeChunks, WholeChunkLoader<Tile, KContiguous>, AsyncLoader<Tile, KContiguous, threads>>>;
    using LoaderA = Loader<TileA, AKContiguous>;
    using LoaderB = Loader<TileB, BKContiguous>;

    struct Stage {
        TileA a;  // (block_m, block_k)
        TileB b;  // (block_n, block_k)
    };
};

/// Fills stages, one step along K after the other.
template <class Traits, class Element>
class StageLoader {
public:
    using Stage = typename Traits::Stage;

    __device__ StageLoader(const OperandStrip<Element>& a, const OperandStrip<Element>& b, std::int64_t k)
        : a_(a), b_(b), k_left_(k)
    {}

    /// Returns true if there are steps left to begin.
    __device__ bool has_next() const { return k_left_ > 0; }

    /// Starts to load the next step into `stage`. A step after the last one is all zeros.
    __device__ void begin(Stage& stage)
    {
        const auto k_left = static_cast<int>(min(k_left_, static_cast<std::int64_t>(Traits::TileA::block_k)));
        a_.begin(stage.a, k_left);
        b_.begin(stage.b, k_left);
        k_left_ -= Traits::TileA::block_k;
    }

    /// Stores to the same stage what `begin` left in registers.
    __device__ void store(Stage& stage)
    {
        a_.store(stage.a);
        b_.store(stage.b);
    }

    /// Completes the step that was begun and stored. Other threads see it after a barrier.
    __device__ void finish()
    {
        if constexpr (Traits::async_copy) {
            __pipeline_commit();
            __pipeline_wait_prior(0);
        }
    }

private:
    typename Traits::LoaderA a_;
    typename Traits::LoaderB b_;
    std::int64_t k_left_;
};

/// A thread's position in its CTA's block. The first row of its thread tile is `m`; further rows follow in groups of
/// four, `step_m` apart, so that the lanes of a warp read neighbouring vectors. The same holds for columns.
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
            // m is bits 1 and 3 of the lane, n is bits 0, 2 and 4. In each half of the warp, pairs of lanes then read
            // the same vector of A and other pairs the same vector of B, so that a vector load needs 2 passes instead
            // of 4.
            lane_m = (lane >> 1 & 1) | (lane >> 2 & 2);
            lane_n = (lane & 1) | (lane >> 1 & 2) | (lane >> 2 & 4);
        }
        m = warp / warps_n * (Config.lanes_m * Config.thread_m) + lane_m * group_m;
        n = warp % warps_n * (Config.lanes_n * Config.thread_n) + lane_n * group_n;
    }

    /// Offset of row `i` of the thread tile from its first row.
    __device__ static constexpr int row(int i) { return i / group_m * step_m + i % group_m; }
};

/// Loads `Count` values of x at one k: groups of four, `Step` apart.
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
        for (int step = 0; step < Columns; ++step) {
            // Serpentine order: at the turn, b[j] is still in the reuse cache.
            const int j = i % 2 == 0 ? step : Columns - 1 - step;
            accumulator[i][j] = fmaf(a[i], b[j], accumulator[i][j]);
        }
    }
}

/// One buffer: load, wait, compute, wait.
template <SimtConfig Config, class Traits, class Loader>
__device__ void multiply_with_one_buffer(Loader& loader, typename Traits::Stage& stage, const ThreadTile<Config>& place,
                                         float (&accumulator)[Config.thread_m][Config.thread_n])
{
    using TileA = typename Traits::TileA;
    using TileB = typename Traits::TileB;
    while (loader.has_next()) {
        loader.begin(stage);
        __syncthreads();  // all threads have read the stage's previous contents
        loader.store(stage);
        loader.finish();
        __syncthreads();
        if constexpr (Config.shared_order == SharedOrder::k_contiguous) {
#pragma unroll 2  // not fully unrolled: 1024 threads have 64 registers each
            for (int k = 0; k < Config.block_k; k += 4) {
                float a[4];
                float b[4];
                load_fragment<4, 0>(stage.a.elements + TileA::index(place.m, k), a);
                load_fragment<4, 0>(stage.b.elements + TileB::index(place.n, k), b);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    accumulator[0][0] = fmaf(a[i], b[i], accumulator[0][0]);
                }
            }
        } else {
#pragma unroll
            for (int k = 0; k < Config.block_k; ++k) {
                float a[Config.thread_m];
                float b[Config.thread_n];
                load_fragment<Config.thread_m, ThreadTile<Config>::step_m>(stage.a.elements + TileA::index(place.m, k),
                                                                           a);
                load_fragment<Config.thread_n, ThreadTile<Config>::step_n>(stage.b.elements + TileB::index(place.n, k),
                                                                           b);
                add_outer_product(a, b, accumulator);
            }
        }
    }
}

/// Two buffers: computes on one stage while the other loads, and on one pair of fragments while the next pair loads.
/// One barrier per step.
template <SimtConfig Config, class Traits, class Loader>
__device__ void multiply_with_two_buffers(Loader& loader, typename Traits::Stage (&stages)[2],
                                          const ThreadTile<Config>& place, std::int64_t k,
                                          float (&accumulator)[Config.thread_m][Config.thread_n])
{
    static_assert(Config.block_k % 2 == 0, "the fragment buffers alternate with the parity of k");
    float a[2][Config.thread_m] = {};  // zeros: the first products do not change the sums
    float b[2][Config.thread_n] = {};
    const auto load_fragments = [&](const typename Traits::Stage& stage, int k) {
        load_fragment<Config.thread_m, ThreadTile<Config>::step_m>(stage.a.elements + Traits::TileA::index(place.m, k),
                                                                   a[k % 2]);
        load_fragment<Config.thread_n, ThreadTile<Config>::step_n>(stage.b.elements + Traits::TileB::index(place.n, k),
                                                                   b[k % 2]);
    };

    constexpr int last = Config.block_k - 1;
    // Stored before the last two products of a step. One product earlier or later costs up to 7 % for one pair of
    // orders.
    constexpr int store_step = Traits::whole_chunks ? last - 2 : last;
    int stage = 0;
    loader.begin(stages[0]);
    loader.store(stages[0]);
    loader.finish();
    __syncthreads();
#pragma unroll 1
    for (std::int64_t k_left = k; k_left > 0; k_left -= Config.block_k) {
        load_fragments(stages[stage], 0);
        // The products of the previous step hide the latency of these loads.
        add_outer_product(a[last % 2], b[last % 2], accumulator);
#pragma unroll
        for (int i = 0; i < last; ++i) {
            load_fragments(stages[stage], i + 1);
            // With whole chunks, loading zeros past the end of K is cheaper than a branch, which would keep the
            // compiler from scheduling the loads between the multiplications.
            if (i == 0 && (Traits::whole_chunks || loader.has_next())) {
                loader.begin(stages[stage ^ 1]);  // its readers have passed the last barrier
            }
            if (i == store_step) {
                loader.store(stages[stage ^ 1]);
            }
            add_outer_product(a[i % 2], b[i % 2], accumulator);
        }
        stage ^= 1;
        if (store_step == last) {
            loader.store(stages[stage]);
        }
        loader.finish();
        __syncthreads();
    }
    add_outer_product(a[last % 2], b[last % 2], accumulator);
}

/// The main loop.
template <SimtConfig Config, class Traits, class Element>
__device__ __forceinline__ void multiply(const OperandStrip<Element>& a, const OperandStrip<Element>& b, std::int64_t k,
                                         typename Traits::Stage (&stages)[Traits::stages],
                                         const ThreadTile<Config>& place,
                                         float (&accumulator)[Config.thread_m][Config.thread_n])
{
    StageLoader<Traits, Element> loader(a, b, k);
    if constexpr (Config.buffers == Buffers::two) {
        multiply_with_two_buffers<Config, Traits>(loader, stages, place, k, accumulator);
    } else {
        multiply_with_one_buffer<Config, Traits>(loader, stages[0], place, accumulator);
    }
}

/// Writes the thread tile. The loop is not unrolled, because the code of an epilogue is long. It always writes the first
/// group and moves the others up, since registers have no index.
template <SimtConfig Config>
__device__ void store_thread_tile(const GemmArguments& arguments, const TilePosition& tile,
                                  const ThreadTile<Config>& place,
                                  float (&accumulator)[Config.thread_m][Config.thread_n])
{
    constexpr int columns = Config.thread_n;
    constexpr int count = Config.thread_m * columns;
    constexpr int group = ThreadTile<Config>::group_n;
    const Epilogue epilogue(arguments, tile.batch);
    const std::int64_t first_row = static_cast<std::int64_t>(tile.row) * Config.block_m + place.m;
    const std::int64_t first_column = static_cast<std::int64_t>(tile.column) * Config.block_n + place.n;
#pragma unroll 1
    for (int done = 0; done < count; done += group) {
        float values[group];
#pragma unroll
        for (int l = 0; l < group; ++l) {
            values[l] = accumulator[0][l];
        }
        const std::int64_t row = first_row + place.row(done / columns);
        const std::int64_t column = first_column + done % columns / group * place.step_n;
        if constexpr (group == 4) {
            epilogue.store_or_pair(row, column, values);
        } else {
            epilogue.store(row, column, values);
        }
#pragma unroll
        for (int i = 0; i + group < count; ++i) {
            accumulator[i / columns][i % columns] = accumulator[(i + group) / columns][(i + group) % columns];
        }
    }
}

}  // namespace detail

/// One thread per output. Both operands are read from global memory, in any order.
template <class Element>
__global__ void __launch_bounds__(naive_block* naive_block) naive_gemm(const __grid_constant__ GemmArguments arguments)
{
    const TilePosition tile = arguments.raster.position(blockIdx.x);
    const std::int64_t row = static_cast<std::int64_t>(tile.row) * naive_block + threadIdx.x / naive_block;
    const std::int64_t column = static_cast<std::int64_t>(tile.column) * naive_block + threadIdx.x % naive_block;
    if (row >= arguments.m || column >= arguments.d_columns()) {
        return;
    }
    const Operand& a = arguments.a;
    const Operand& b = arguments.b;
    const Element* a_row = static_cast<const Element*>(a.data) + tile.batch * a.batch_stride + row * a.row_stride;
    const Element* b_matrix = static_cast<const Element*>(b.data) + tile.batch * b.batch_stride;
    const detail::Widen<Element> widen_a(arguments.a_type);
    const detail::Widen<Element> widen_b(arguments.b_type);
    const Epilogue epilogue(arguments, tile.batch);
    const bool is_pair = arguments.gating != Gating::none;
    float value[1];
    float before[1] = {};
    float up = 0;
#pragma unroll 1
    for (int part = is_pair ? 0 : 1; part < 2; ++part) {  // the up and then the gate, or the only column
        up = before[0];
        const std::int64_t column_of_b = is_pair ? arguments.column_of_pair(column, part == 0) : column;
        const Element* b_column = b_matrix + column_of_b * b.column_stride;
        value[0] = 0;
        for (std::int64_t k = 0; k < arguments.k; ++k) {
            value[0] = fmaf(widen_a(a_row[k * a.column_stride]), widen_b(b_column[k * b.row_stride]), value[0]);
        }
        epilogue.finish(row, column_of_b, 1, value, before);
    }
    if (is_pair) {
        value[0] = __fmul_rn(value[0], up);
    }
    epilogue.put(row, column, 1, value);
}

/// Stages tiles of A and B in shared memory, as the rung's config says.
///
/// Each pair of orders of A and B has its own entry point. In the configurations of `has_whole_chunk_entries`, operands
/// of whole chunks (`SimtOrders`) have entry points, too; their loop has no other branch.
template <class Rung, class Element, bool AKContiguous, bool BKContiguous, bool WholeChunks>
__global__ void __launch_bounds__(Rung::config.threads(), Rung::config.min_ctas)
    staged_gemm(const __grid_constant__ GemmArguments arguments)
{
    constexpr SimtConfig config = Rung::config;
    using Traits = detail::StagedTraits<config, Element, AKContiguous, BKContiguous, WholeChunks>;
    __shared__ typename Traits::Stage stages[Traits::stages];

    const TilePosition tile = arguments.raster.position(blockIdx.x);
    const detail::OperandStrip<Element> a(arguments.a, arguments.a_type, arguments.a.row_stride,
                                          arguments.a.column_stride, AKContiguous, tile.batch, tile.row, arguments.m,
                                          config.block_m);
    const detail::OperandStrip<Element> b(arguments.b, arguments.b_type, arguments.b.column_stride,
                                          arguments.b.row_stride, BKContiguous, tile.batch, tile.column, arguments.n,
                                          config.block_n);
    const detail::ThreadTile<config> place;
    float accumulator[config.thread_m][config.thread_n] = {};
    detail::multiply<config, Traits>(a, b, arguments.k, stages, place, accumulator);
    detail::store_thread_tile<config>(arguments, tile, place, accumulator);
}

}  // namespace tessera::kernels
