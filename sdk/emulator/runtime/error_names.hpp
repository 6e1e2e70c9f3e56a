#pragma once

// The runtime's error codes by number and by name.

#include <optional>
#include <string_view>

namespace tessera::emulator {

/// "cudaErrorInvalidValue", or null if there is no such code. The text is zero-terminated.
[[nodiscard]] const char* error_name(int code) noexcept;
/// "invalid argument", or null if there is no such code.
[[nodiscard]] const char* error_text(int code) noexcept;
/// The code called `name`.
[[nodiscard]] std::optional<int> find_error(std::string_view name) noexcept;

}  // namespace tessera::emulator
