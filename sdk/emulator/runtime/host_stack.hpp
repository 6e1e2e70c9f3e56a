#pragma once

// Where in the host program a launch or a call was made.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "checks/source_place.hpp"

namespace tessera::emulator {

/// Return addresses of a thread, innermost first. Cheap to take; what they mean is looked up when a finding is printed.
class HostStack {
public:
    /// Of the calling thread.
    [[nodiscard]] static HostStack here();

    /// The frames of the program, innermost first. What belongs to the runtime, to a library's headers or to the stub
    /// of the kernel called `kernel` is left out; if nothing else is there, libraries are left in. Without debug
    /// information a frame's `file` is empty, and its `function` reads "main+0x1f (program)".
    [[nodiscard]] std::vector<SourceFrame> frames(std::string_view kernel) const;

private:
    static constexpr std::size_t deepest = 32;
    std::array<std::uintptr_t, deepest> addresses_{};
    std::size_t count_ = 0;
};

}  // namespace tessera::emulator
