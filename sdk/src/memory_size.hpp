#pragma once

/// Sizes of allocations, shared by the owners of memory.

#include <cstddef>
#include <source_location>
#include <string>
#include <string_view>

namespace tessera::detail {

/// count * element_bytes. @throws Error `size_overflow` if that does not fit into a signed 64-bit byte offset
std::size_t require_byte_count(std::string_view operation, std::size_t count, std::size_t element_bytes,
                               const std::source_location& caller);

/// What to ask about a number that is too large for any memory: it may have been negative. Empty for others.
std::string negative_hint(std::size_t number);

}  // namespace tessera::detail
