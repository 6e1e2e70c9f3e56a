#pragma once

/// The rungs of the SIMT ladder as constants: a `SimtConfig` makes the one staged kernel into a rung.
///
/// A rung is a type that holds its config, since nvcc 13.0 cannot name a kernel's template argument of class type: its
/// host code for such a kernel does not compile.
///
/// Words: a CTA computes a *block* of D, (block_m, block_n), and walks K in steps of block_k. A warp is an array of
/// (lanes_m, lanes_n) lanes, each with a *thread tile* of (thread_m, thread_n) outputs in registers. A *chunk* is what
/// a thread loads at once: neighbours in the operand's contiguous direction.

namespace tessera::kernels {

/// How a tile lies in shared memory; x is m for A and n for B.
enum class SharedOrder : unsigned char {
    x_contiguous,  // [k][x]: a thread reads the neighbours of its thread tile at one k, for an outer product
    k_contiguous,  // [x][k]: a thread reads neighbours in k, for an inner product
};

/// How many steps along K have room in shared memory: with two, one loads while the other is computed on.
enum class Buffers : unsigned char { one, two };

struct SimtConfig {
    int block_m;
    int block_n;
    int block_k;
    int thread_m;
    int thread_n;
    int lanes_m;
    int lanes_n;
    int chunk;
    SharedOrder shared_order;
    Buffers buffers;
    int min_ctas;                          // per multiprocessor, which bounds the registers
    bool transposes_in_registers = false;  // operands of whole chunks, and not with 4-byte copies

    constexpr int warps_m() const { return block_m / (lanes_m * thread_m); }
    constexpr int warps_n() const { return block_n / (lanes_n * thread_n); }
    constexpr int threads() const { return 32 * warps_m() * warps_n(); }
};

constexpr bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

/// Whether the kernel is right for `config`; the rungs below assert it.
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

/// One output per thread, both operands from global memory: the threads of a CTA only share what L1 happens to keep.
inline constexpr int naive_block = 16;

/// Shared memory removes the repeated global loads: 32 threads use each element that a CTA loads.
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

/// Vectors of four elements in global and shared memory remove instructions: 2 shared loads serve four products, not
/// one.
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

/// Eight outputs per thread remove shared-memory traffic: an element of B is read once for all eight.
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

/// A two-dimensional thread tile removes shared memory as the bottleneck: 6 vector loads serve 128 products. The second
/// buffer removes the wait for global memory.
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

/// The same for problems whose large tiles would not fill the chip: half the tile, twice the threads on it.
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

/// The same for problems whose medium tiles would not fill the chip.
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
