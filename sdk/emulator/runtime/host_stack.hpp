#pragma once

// Where the host program made a launch or a call.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/source_place.hpp"

namespace tessera::emulator {

/// Return addresses of a thread, innermost first. Cheap to record; resolved when a finding is printed.
class HostStack {
public:
    /// The stack of the calling thread.
    [[nodiscard]] static HostStack here();

    /// The frames of the program, innermost first. Frames of the runtime, of a library's headers and of the stub of the
    /// kernel `kernel` are left out; if nothing else remains, libraries are kept. Without debug information a frame's
    /// `file` is empty, and its `function` reads "main+0x1f (program)".
    [[nodiscard]] std::vector<SourceFrame> frames(std::string_view kernel) const;

private:
    static constexpr std::size_t deepest = 32;
    std::array<std::uintptr_t, deepest> addresses_{};
    std::size_t count_ = 0;
};

}  // namespace tessera::emulator
