// The encoder has a fixed list of element types.
// expect: "a tensor map's element is f32, f16, bf16, tf32, f8e4m3, f8e5m2, double, uint8/16/32/64 or int32/64"
#include "tessera/tensor_map.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Map = TensorMap<char, Box<64, 8>>;
#else
using Map = TensorMap<std::uint8_t, Box<64, 8>>;
#endif

std::size_t bytes() { return Map::box_bytes; }
