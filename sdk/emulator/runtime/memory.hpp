#pragma once

// Allocation and copies, for callers with several variants.

#include "runtime/state.hpp"

namespace tessera::emulator {

/// Allocates as described by `record`, for the current device or the record's pool; zero bytes give a null pointer.
[[nodiscard]] cudaError_t allocate(void** pointer, std::size_t size, HeapRecord record);

/// Checks a copy like the runtime and performs it on the stream, or makes a graph node of it. The copy is complete on
/// return if `is_synchronous`, or if it writes pageable host memory.
[[nodiscard]] cudaError_t copy(const char* name, CopyWork work, cudaStream_t stream, bool is_synchronous);
/// Only the checks, for graph nodes.
[[nodiscard]] cudaError_t check_copy(const char* name, const CopyWork& work);
/// The same for a fill.
[[nodiscard]] cudaError_t fill(const char* name, FillWork work, cudaStream_t stream, bool is_synchronous);
[[nodiscard]] cudaError_t check_fill(const char* name, const FillWork& work);

/// The copy described by `parameters`; cudaErrorNotSupported for arrays.
[[nodiscard]] cudaError_t make_copy(const cudaMemcpy3DParms& parameters, CopyWork& work);
/// A one-dimensional copy.
[[nodiscard]] CopyWork make_copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind);

}  // namespace tessera::emulator
