#pragma once

#include "tessera/detail/language.hpp"

/// The release of the headers, for the preprocessor: first, second and third number, all three as one number that grows
/// with each release (major * 10000 + minor * 100 + patch), and as text.
///
///     #if TESSERA_VERSION >= 200  // 0.2.0 and later
///
/// The build reads the three numbers from here.
#define TESSERA_VERSION_MAJOR 0
#define TESSERA_VERSION_MINOR 1
#define TESSERA_VERSION_PATCH 0
#define TESSERA_VERSION (TESSERA_VERSION_MAJOR * 10000 + TESSERA_VERSION_MINOR * 100 + TESSERA_VERSION_PATCH)
#define TESSERA_VERSION_STRING "0.1.0"

namespace tessera {

/// A release.
struct Version {
    int major;  ///< first number
    int minor;  ///< second number; before 1.0 a change of it may need changes of programs
    int patch;  ///< third number; fixes only
};

/// This release.
inline constexpr Version version{TESSERA_VERSION_MAJOR, TESSERA_VERSION_MINOR, TESSERA_VERSION_PATCH};

}  // namespace tessera
