// A tensor map without dimensions describes nothing.
// expect: "a tensor map has 1 to 5 dimensions"
#include "tessera/tensor_map.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Map = TensorMap<f16, Box<>>;
#else
using Map = TensorMap<f16, Box<8>>;
#endif

std::size_t bytes() { return Map::box_bytes; }
