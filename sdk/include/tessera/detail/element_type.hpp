#pragma once

/// @file
/// @ingroup host_elements
/// @brief `ElementType`, declared before the types of the same names: g++ warns about them otherwise (-Wshadow).

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// An element type as a value. The numbers are stable: they appear in plans and caches.
/// @ingroup host_elements
enum class ElementType : std::uint8_t {
    f32 = 0,     ///< IEEE binary32, 4 bytes
    f16 = 1,     ///< IEEE binary16, 2 bytes
    bf16 = 2,    ///< bfloat16, 2 bytes
    tf32 = 3,    ///< TensorFloat-32, 4 bytes; A and B only
    f8e4m3 = 4,  ///< OCP E4M3, 1 byte; A, B and D
    f8e5m2 = 5   ///< OCP E5M2, 1 byte; A, B and D
};

}  // namespace tessera
