#pragma once

namespace tessera {

/// The release of the headers.
struct Version {
    int major;  ///< first number
    int minor;  ///< second number; before 1.0 a change of it may need changes of programs
    int patch;  ///< third number; fixes only
};

/// This release.
inline constexpr Version version{0, 1, 0};

}  // namespace tessera
