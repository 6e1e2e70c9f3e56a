#pragma once

// Executes the work of streams and graphs.

#include "runtime/objects.hpp"

namespace tessera::emulator {

/// Executes `work` on the calling thread. Does nothing once the device has failed, except work that others wait for.
/// Errors make the device fail.
void perform(Device& device, const Work& work);

/// Checks that `bytes` bytes from `address` can be copied. Returns cudaErrorInvalidValue and adds a finding if they
/// exceed an allocation, or are in freed memory. Memory that is not the device's is the host's own and accepted. `what`
/// names the range in messages ("destination of cudaMemcpy").
[[nodiscard]] cudaError_t check_range(const void* address, std::uint64_t bytes, const char* what);

/// Distance from the first to the last byte of a copy, on one side.
[[nodiscard]] std::uint64_t span_of(std::uint64_t width, std::uint64_t height, std::uint64_t depth, std::uint64_t pitch,
                                    std::uint64_t slice);

}  // namespace tessera::emulator
