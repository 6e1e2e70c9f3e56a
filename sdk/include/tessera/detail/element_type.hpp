#pragma once

/// `ElementType`, before the types that its values are named for: g++ warns of the names otherwise (-Wshadow).

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// An element type as a value. Numbers are stable: they appear in plans and caches.
enum class ElementType : std::uint8_t { f32 = 0, f16 = 1, bf16 = 2, tf32 = 3, f8e4m3 = 4, f8e5m2 = 5 };

}  // namespace tessera
