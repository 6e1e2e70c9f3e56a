#pragma once

/// The SDK's headers, as far as programs need them that are compiled at run time. Generated at build time by embed_headers.

#include <cstddef>

namespace tessera::tile::detail {

/// How many there are.
extern const std::size_t embedded_header_count;
/// The names by which they are included: "tessera/tile.cuh".
extern const char* const embedded_header_names[];
/// Their texts.
extern const char* const embedded_header_texts[];

}  // namespace tessera::tile::detail
