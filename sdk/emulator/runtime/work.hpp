#pragma once

// Does what streams and graphs hold.

#include "runtime/objects.hpp"

namespace tessera::emulator {

/// Does `work` on the calling thread and returns when it is done. Nothing is done once the device has failed (but for
/// what others wait for); errors make it fail.
void perform(Device& device, const Work& work);

/// Checks that `bytes` bytes from `address` can be copied from or to: cudaErrorInvalidValue and a finding if they reach
/// out of an allocation, or lie in freed memory. Memory that is not the device's is the host's own and counts as right.
/// `what` names the range in messages ("destination of cudaMemcpy").
[[nodiscard]] cudaError_t check_range(const void* address, std::uint64_t bytes, const char* what);

/// Bytes from the first to the last byte of a copy, on one side.
[[nodiscard]] std::uint64_t span_of(std::uint64_t width, std::uint64_t height, std::uint64_t depth, std::uint64_t pitch,
                                    std::uint64_t slice);

}  // namespace tessera::emulator
