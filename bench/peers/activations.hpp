#pragma once

/// Kernels that follow a product of cuBLASLt where it has no such epilogue: memory is their only limit, as with those of
/// frameworks.

#include <cstdint>

#include "tessera/element.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// d = silu(d), in fp32 arithmetic. `d` is rows x columns without gaps, of f32, f16 or bf16.
void enqueue_silu(StreamRef stream, ElementType type, void* d, std::int64_t rows, std::int64_t columns);

/// d(row, column) = silu(pairs(row, column)) * pairs(row, columns + column). `pairs` is rows x 2 * columns.
void enqueue_swiglu(StreamRef stream, ElementType type, const void* pairs, void* d, std::int64_t rows,
                    std::int64_t columns);

}  // namespace tessera::bench
