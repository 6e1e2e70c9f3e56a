// The hardware addresses up to five dimensions.
// expect: "a tensor map has 1 to 5 dimensions"
#include "tessera/tensor_map.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Map = TensorMap<f16, Box<8, 1, 1, 1, 1, 1>>;
#else
using Map = TensorMap<f16, Box<8, 1, 1, 1, 1>>;
#endif

std::size_t bytes() { return Map::box_bytes; }
