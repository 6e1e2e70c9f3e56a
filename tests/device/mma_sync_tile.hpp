#pragma once

/// The tile that the tests of mma.sync's narrow and sparse forms multiply.

namespace tessera::test {

inline constexpr unsigned tile_m = 32;
inline constexpr unsigned tile_n = 24;
inline constexpr unsigned tile_row_bytes = 128;  // of K

}  // namespace tessera::test
