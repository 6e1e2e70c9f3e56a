#pragma once

/// The SIMT ladder as the host sees it: which rungs there are, what each needs, and the entry point of each.

#include <cstddef>
#include <cstdint>

#include "tessera/element.hpp"

namespace tessera::kernels {

/// Each rung removes one bottleneck of the rung before it; simt_config.hpp says which. All give the same bits.
enum class SimtRung : std::uint8_t { naive, tiled, vectorized, coarsened, register_blocked };

/// The output tile of `register_blocked`: the large one is the fastest where it gives each multiprocessor enough to do.
/// The other rungs have one tile.
enum class SimtTile : std::uint8_t { large, medium, small };

/// A compiled kernel and the facts its launch needs. Entry points take one `GemmArguments` by value.
struct SimtKernel {
    const void* function;  // for cudaLaunchKernelExC
    int block_m;           // output tile of one CTA
    int block_n;
    int block_k;
    int threads;                     // per CTA, one-dimensional
    std::size_t shared_bytes;        // dynamic shared memory
    std::size_t required_alignment;  // bytes that A's and B's base, run stride and batch stride must be multiples of
};

/// Elements that a thread loads at once where the operand allows it.
inline constexpr int simt_chunk = 4;

/// Which way the operands lie, as the kernel sees them: contiguous in k, or in m (A) and n (B). Both row-major unless
/// said otherwise.
struct SimtOrders {
    bool a_k_contiguous = true;
    bool b_k_contiguous = false;
    /// Promises for A and B that the address is a multiple of `simt_chunk` elements, and that the contiguous extent,
    /// the run stride and the batch stride are multiples of `simt_chunk`: kernels then need not check.
    bool whole_chunks = false;
};

/// Whether there is a kernel of `rung` for operands of these types.
bool simt_takes(SimtRung rung, InputTypes input);

/// The kernel of `rung` for operands of types that it takes. One entry point serves all architectures: where the
/// kernel was compiled for sm_80 or above, it has `cp.async`.
SimtKernel simt_kernel(SimtRung rung, InputTypes input, SimtTile tile = SimtTile::large, SimtOrders orders = {});

/// The faster tile of `register_blocked` for `batches` products of (m, n) on a device with so many multiprocessors.
SimtTile choose_simt_tile(std::int64_t m, std::int64_t n, std::int64_t batches, int multiprocessors);

}  // namespace tessera::kernels
