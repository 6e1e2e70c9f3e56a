// The hardware stores a box's extent in 8 bits.
// expect: "each extent of a tensor map's box is 1 to 256 elements"
#include "tessera/tensor_map.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Map = TensorMap<f16, Box<64, 257>>;
#else
using Map = TensorMap<f16, Box<64, 256>>;
#endif

std::size_t bytes() { return Map::box_bytes; }
