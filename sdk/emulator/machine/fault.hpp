#pragma once

// What stops a launch.

#include <stdexcept>
#include <string>

namespace tessera::emulator {

// Numbers of cudaError_t that a kernel can end with.
inline constexpr int error_assert = 710;
inline constexpr int error_illegal_address = 700;
inline constexpr int error_launch_timeout = 702;
inline constexpr int error_hardware_stack = 714;
inline constexpr int error_illegal_instruction = 715;
inline constexpr int error_misaligned_address = 716;
inline constexpr int error_invalid_address_space = 717;
inline constexpr int error_invalid_pc = 718;
inline constexpr int error_launch_failure = 719;
inline constexpr int error_tensor_memory_leak = 721;

/// Ends the launch with `code`. Thrown after the finding that says why was reported.
class Fault : public std::runtime_error {
public:
    Fault(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

}  // namespace tessera::emulator
