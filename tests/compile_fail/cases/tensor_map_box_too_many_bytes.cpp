// A box must fit in shared memory; for a larger one, the driver returns only an error code.
// expect: "a tensor map's box has at most 228 KiB, the shared memory of an SM"
#include "tessera/tensor_map.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Map = TensorMap<f16, Box<64, 256, 8>>;
#else
using Map = TensorMap<f16, Box<64, 256, 7>>;
#endif

std::size_t bytes() { return Map::box_bytes; }
