// A box without elements moves nothing, and a barrier that waits for it never completes.
// expect: "each extent of a tensor map's box is 1 to 256 elements"
#include "tessera/tensor_map.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Map = TensorMap<f16, Box<64, 0>>;
#else
using Map = TensorMap<f16, Box<64, 1>>;
#endif

std::size_t bytes() { return Map::box_bytes; }
