// The hardware writes shared memory in units of 16 bytes.
// expect: "the innermost extent of a tensor map's box must be a multiple of 16 bytes"
#include "tessera/tensor_map.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Map = TensorMap<f16, Box<12, 8>>;
#else
using Map = TensorMap<f16, Box<16, 8>>;
#endif

std::size_t bytes() { return Map::box_bytes; }
