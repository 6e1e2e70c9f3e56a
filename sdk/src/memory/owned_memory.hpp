#pragma once

/// Device memory and how it is freed. Buffers, deferred frees and workspaces use it.

#include <cstddef>
#include <source_location>
#include <string_view>

#include "tessera/memory_resource.hpp"
#include "tessera/stream.hpp"

namespace tessera::detail {

/// Alignment that is requested from resources, in bytes: that of cudaMalloc.
inline constexpr std::size_t allocation_alignment = 256;

/// Allocates `bytes` (not 0) as `allocation` says. The stream's device must be current. Errors put `what` before the
/// number of bytes: "", or "a workspace of ".
/// @throws Error `out_of_memory`, `cuda_failure`, `misaligned`, and what the resource throws
OwnedMemory allocate_on(StreamRef stream, std::size_t bytes, Allocation allocation, MemoryResourceRef resource,
                        const char* what, std::string_view operation, const std::source_location& caller);

/// Frees memory in the order of the stream, whose device must be current. Memory of cudaMalloc is freed after a wait,
/// because cudaFree need not wait for kernels that still use it.
void free_on(cudaStream_t stream, const OwnedMemory& memory) noexcept;

/// Keeps memory whose owner died while the stream was being captured: a capture can only free memory of its own.
void defer_free(StreamState& state, const OwnedMemory& memory);
/// Frees the deferred memory on the stream, after its capture.
void free_deferred(StreamState* state) noexcept;

/// CurrentDevice for destructors: errors are dropped.
class DestructorsDevice {
public:
    explicit DestructorsDevice(int ordinal) noexcept;
    ~DestructorsDevice();
    DestructorsDevice(const DestructorsDevice&) = delete;
    DestructorsDevice& operator=(const DestructorsDevice&) = delete;

private:
    int previous_ = -1;  // -1: nothing to restore
};

/// What CUDA knows about the origin of an address.
enum class KnownOrigin { unknown, pool, no_pool };
KnownOrigin origin_of(const void* data) noexcept;

}  // namespace tessera::detail
