#pragma once

/// @file
/// @ingroup host_version
/// @brief The release of the headers: macros for the preprocessor, and `version` for programs.

#include "tessera/detail/language.hpp"

/// The first number of the release. The build reads the three numbers from here.
#define TESSERA_VERSION_MAJOR 0
/// The second number of the release.
#define TESSERA_VERSION_MINOR 1
/// The third number of the release.
#define TESSERA_VERSION_PATCH 0
/// The release as one number that grows with each release: major * 10000 + minor * 100 + patch.
///
/// @code{.cpp}
/// #if TESSERA_VERSION >= 200  // 0.2.0 and later
/// #endif
/// @endcode
#define TESSERA_VERSION (TESSERA_VERSION_MAJOR * 10000 + TESSERA_VERSION_MINOR * 100 + TESSERA_VERSION_PATCH)
/// The release as text.
#define TESSERA_VERSION_STRING "0.1.0"

namespace tessera {

/// A release.
struct Version {
    int major;  ///< first number
    int minor;  ///< second number; before 1.0, a change of it may require changes to programs
    int patch;  ///< third number; fixes only
};

/// The release of the headers.
inline constexpr Version version{TESSERA_VERSION_MAJOR, TESSERA_VERSION_MINOR, TESSERA_VERSION_PATCH};

}  // namespace tessera
