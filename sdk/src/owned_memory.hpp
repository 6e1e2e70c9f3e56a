#pragma once

/// Device memory and how it is given back: what buffers, deferred frees and workspaces are made of.

#include <cstddef>
#include <source_location>
#include <string_view>

#include "tessera/memory_resource.hpp"
#include "tessera/stream.hpp"

namespace tessera::detail {

/// What resources are asked for, in bytes: what cudaMalloc gives.
inline constexpr std::size_t allocation_alignment = 256;

/// Allocates `bytes`, which are not 0, as `allocation` says. The stream's device is current. `what` stands before the
/// number of bytes in an error: "", or "a workspace of ".
/// @throws Error `out_of_memory`, `cuda_failure`, `misaligned`, and what the resource throws
OwnedMemory allocate_on(StreamRef stream, std::size_t bytes, Allocation allocation, MemoryResourceRef resource,
                        const char* what, std::string_view operation, const std::source_location& caller);

/// Gives memory back in the order of the stream, whose device is current. What is from cudaMalloc is freed after a
/// wait: cudaFree need not wait for kernels that still use the memory.
void free_on(cudaStream_t stream, const OwnedMemory& memory) noexcept;

/// Keeps memory whose owner died while the stream was being captured: a capture takes frees of its own memory only.
void defer_free(StreamState& state, const OwnedMemory& memory);
/// Frees on the stream, after its capture, what was deferred.
void free_deferred(StreamState* state) noexcept;

/// CurrentDevice for destructors: what fails is dropped.
class DestructorsDevice {
public:
    explicit DestructorsDevice(int ordinal) noexcept;
    ~DestructorsDevice();
    DestructorsDevice(const DestructorsDevice&) = delete;
    DestructorsDevice& operator=(const DestructorsDevice&) = delete;

private:
    int previous_ = -1;  // -1: nothing to bring back
};

/// What CUDA knows of an address's origin.
enum class KnownOrigin { unknown, pool, no_pool };
KnownOrigin origin_of(const void* data) noexcept;

}  // namespace tessera::detail
