#pragma once

/// The configurations of the SIMT kernels. There is one staged kernel; a constexpr `SimtConfig` makes it a rung of the
/// ladder (docs/simt-ladder.md).
///
/// A rung is a type that holds its config, because nvcc 13.0 cannot compile the host code of a kernel with a template
/// argument of class type.
///
/// Terminology: a CTA computes a *block* of D, (block_m, block_n), and walks K in steps of block_k. A warp is an array
/// of (lanes_m, lanes_n) lanes, each with a *thread tile* of (thread_m, thread_n) outputs in registers. A *chunk* is
/// what a thread loads at once: neighbours in the operand's contiguous direction.

namespace tessera::kernels {

/// Layout of a tile in shared memory; x is m for A and n for B.
enum class SharedOrder : unsigned char {
    x_contiguous,  // [k][x]: a thread reads its neighbouring x at one k, for an outer product
    k_contiguous,  // [x][k]: a thread reads neighbouring k, for an inner product
};

/// Number of K steps that fit in shared memory. With two, one is loaded while the other is computed on.
enum class Buffers : unsigned char { one, two };

struct SimtConfig {
    int block_m;               // rows of D per CTA
    int block_n;               // columns of D per CTA
    int block_k;               // K per step, in elements
    int thread_m;              // rows of D per thread
    int thread_n;              // columns of D per thread
    int lanes_m;               // lanes of a warp along M: 1 or 4
    int lanes_n;               // lanes of a warp along N: 32 or 8
    int chunk;                 // elements per load of a thread: 1 or 4
    SharedOrder shared_order;  // of both tiles
    Buffers buffers;           // K steps in shared memory
    int min_ctas;              // CTAs per SM; bounds the registers per thread
    // Operands of whole chunks are transposed in registers, not by 4-byte copies.
    bool transposes_in_registers = false;

    constexpr int warps_m() const { return block_m / (lanes_m * thread_m); }
    constexpr int warps_n() const { return block_n / (lanes_n * thread_n); }
    constexpr int threads() const { return 32 * warps_m() * warps_n(); }
};

constexpr bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

/// Returns true if the staged kernel supports `config`. All rungs below assert it.
constexpr bool is_valid(const SimtConfig& config)
{
    const bool lanes = (config.lanes_m == 1 && config.lanes_n == 32) || (config.lanes_m == 4 && config.lanes_n == 8);
    const bool blocks = is_power_of_two(config.block_m) && is_power_of_two(config.block_n) &&
                        is_power_of_two(config.block_k) && config.warps_m() > 0 && config.warps_n() > 0;
    const bool vectors = (config.thread_m == 1 || config.thread_m % 4 == 0) &&
                         (config.thread_n == 1 || config.thread_n % 4 == 0) && (config.chunk == 1 || config.chunk == 4);
    const bool inner_product = config.shared_order == SharedOrder::x_contiguous ||
                               (config.thread_m == 1 && config.thread_n == 1 && config.block_k % 4 == 0);
    return lanes && blocks && vectors && inner_product && config.threads() <= 1024;
}

/// Naive rung: one output per thread, both operands from global memory. Threads of a CTA share only what L1 keeps.
inline constexpr int naive_block = 16;

/// Shared memory saves repeated global loads: 32 threads use each element that a CTA loads.
struct Tiled {
    static constexpr SimtConfig config{.block_m = 32,
                                       .block_n = 32,
                                       .block_k = 32,
                                       .thread_m = 1,
                                       .thread_n = 1,
                                       .lanes_m = 1,
                                       .lanes_n = 32,
                                       .chunk = 1,
                                       .shared_order = SharedOrder::x_contiguous,
                                       .buffers = Buffers::one,
                                       .min_ctas = 1};
};

/// Vectors of four elements in global and shared memory save instructions: 2 shared loads serve four products instead
/// of one.
struct Vectorized {
    static constexpr SimtConfig config{.block_m = 32,
                                       .block_n = 32,
                                       .block_k = 32,
                                       .thread_m = 1,
                                       .thread_n = 1,
                                       .lanes_m = 1,
                                       .lanes_n = 32,
                                       .chunk = 4,
                                       .shared_order = SharedOrder::k_contiguous,
                                       .buffers = Buffers::one,
                                       .min_ctas = 1};
};

/// Eight outputs per thread save shared-memory traffic: an element of B is read once for all eight.
struct Coarsened {
    static constexpr SimtConfig config{.block_m = 64,
                                       .block_n = 64,
                                       .block_k = 32,
                                       .thread_m = 8,
                                       .thread_n = 1,
                                       .lanes_m = 1,
                                       .lanes_n = 32,
                                       .chunk = 4,
                                       .shared_order = SharedOrder::x_contiguous,
                                       .buffers = Buffers::one,
                                       .min_ctas = 1};
};

/// With a two-dimensional thread tile, shared memory is no longer the bottleneck: 6 vector loads serve 128 products.
/// The second buffer hides the latency of global memory.
struct RegisterBlockedLarge {
    static constexpr SimtConfig config{.block_m = 128,
                                       .block_n = 128,
                                       .block_k = 8,
                                       .thread_m = 8,
                                       .thread_n = 16,
                                       .lanes_m = 4,
                                       .lanes_n = 8,
                                       .chunk = 4,
                                       .shared_order = SharedOrder::x_contiguous,
                                       .buffers = Buffers::two,
                                       .min_ctas = 2,
                                       .transposes_in_registers = true};
};

/// For problems whose large tiles would not fill the GPU: half the tile, twice the threads per output.
struct RegisterBlockedMedium {
    static constexpr SimtConfig config{.block_m = 64,
                                       .block_n = 128,
                                       .block_k = 16,
                                       .thread_m = 4,
                                       .thread_n = 8,
                                       .lanes_m = 4,
                                       .lanes_n = 8,
                                       .chunk = 4,
                                       .shared_order = SharedOrder::x_contiguous,
                                       .buffers = Buffers::two,
                                       .min_ctas = 2};
};

/// For problems whose medium tiles would not fill the GPU.
struct RegisterBlockedSmall {
    static constexpr SimtConfig config{.block_m = 32,
                                       .block_n = 64,
                                       .block_k = 32,
                                       .thread_m = 4,
                                       .thread_n = 4,
                                       .lanes_m = 4,
                                       .lanes_n = 8,
                                       .chunk = 4,
                                       .shared_order = SharedOrder::x_contiguous,
                                       .buffers = Buffers::two,
                                       .min_ctas = 4};
};

static_assert(is_valid(Tiled::config) && is_valid(Vectorized::config) && is_valid(Coarsened::config) &&
                  is_valid(RegisterBlockedLarge::config) && is_valid(RegisterBlockedMedium::config) &&
                  is_valid(RegisterBlockedSmall::config),
              "a rung's tile sizes do not divide each other as the staged kernel needs");

}  // namespace tessera::kernels
