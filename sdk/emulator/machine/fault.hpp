#pragma once

// What ends a launch with an error.

#include <stdexcept>
#include <string>

namespace tessera::emulator {

// cudaError_t values with which a kernel can end.
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

/// Ends the launch with `code`. Thrown after the finding that gives the reason was reported.
class Fault : public std::runtime_error {
public:
    Fault(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

}  // namespace tessera::emulator
