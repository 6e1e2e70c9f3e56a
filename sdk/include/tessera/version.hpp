#pragma once

namespace tessera {

/// The release of the headers.
struct Version {
    int major;
    int minor;
    int patch;
};

inline constexpr Version version{0, 1, 0};

}  // namespace tessera
