#pragma once

/// Host side of the SIMT kernels: the list of rungs, what each needs, and its entry point.

#include <cstddef>
#include <cstdint>

#include "tessera/element.hpp"

namespace tessera::kernels {

/// Each rung removes one bottleneck of the rung before it (see simt_config.hpp). All give the same bits.
enum class SimtRung : std::uint8_t { naive, tiled, vectorized, coarsened, register_blocked };

/// The output tile of `register_blocked`. The large tile is the fastest if it gives each SM enough work. The other
/// rungs have one tile.
enum class SimtTile : std::uint8_t { large, medium, small };

/// A compiled kernel and what its launch needs. Its only parameter is a `GemmArguments` by value.
struct SimtKernel {
    const void* function;            // for cudaLaunchKernelExC
    int block_m;                     // rows of the output tile of one CTA
    int block_n;                     // columns
    int block_k;                     // K per step, in elements
    int threads;                     // per CTA, one-dimensional
    std::size_t shared_bytes;        // dynamic shared memory per CTA
    std::size_t required_alignment;  // of A's and B's base, row stride and batch stride, in bytes
};

/// Elements that a thread loads at once if the operand is aligned.
inline constexpr int simt_chunk = 4;

/// Orders of the operands as the kernel sees them: contiguous in k, or in m (A) and n (B). By default both are
/// row-major.
struct SimtOrders {
    bool a_k_contiguous = true;
    bool b_k_contiguous = false;
    /// Promises for A and B that the address is aligned to `simt_chunk` elements, and that the contiguous extent, the
    /// row stride and the batch stride are multiples of `simt_chunk`. The kernel then need not check.
    bool whole_chunks = false;
};

/// Returns true if `rung` supports inputs of these types.
bool simt_takes(SimtRung rung, InputTypes input);

/// Returns the kernel of `rung` for inputs that it supports. One entry point serves all architectures; code for sm_80
/// and above uses `cp.async`.
SimtKernel simt_kernel(SimtRung rung, InputTypes input, SimtTile tile = SimtTile::large, SimtOrders orders = {});

/// Returns the fastest tile of `register_blocked` for `batches` products of (m, n) on a device with so many SMs.
SimtTile choose_simt_tile(std::int64_t m, std::int64_t n, std::int64_t batches, int multiprocessors);

}  // namespace tessera::kernels
