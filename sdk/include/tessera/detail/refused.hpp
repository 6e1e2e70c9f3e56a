#pragma once

/// @file
/// @brief For functions that exist only to refuse: a static_assert in the body of a template gives the caller a
/// sentence, where a deleted function gives only its name.

#include "tessera/detail/language.hpp"

namespace tessera::detail {

/// False, but only once the template is instantiated.
template <class...>
inline constexpr bool always_false = false;

}  // namespace tessera::detail
