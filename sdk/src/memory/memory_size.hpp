#pragma once

/// Sizes of allocations, shared by everything that owns memory.

#include <cstddef>
#include <source_location>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Returns count * element_bytes. @throws Error `size_overflow` if that does not fit in a signed 64-bit byte offset
std::size_t require_byte_count(std::string_view operation, std::size_t count, std::size_t element_bytes,
                               const std::source_location& caller);

/// Returns a hint for a number that is too large for any memory, because it may have been negative. Otherwise empty.
std::string negative_hint(std::size_t number);

}  // namespace tessera::detail
