#pragma once

/// Sizes of allocations, shared by the owners of memory.

#include <cstddef>
#include <source_location>
#include <string_view>

namespace tessera::detail {

/// count * element_bytes. @throws Error `size_overflow` if that does not fit into a signed 64-bit byte offset
std::size_t require_byte_count(std::string_view operation, std::size_t count, std::size_t element_bytes,
                               const std::source_location& caller);

}  // namespace tessera::detail
