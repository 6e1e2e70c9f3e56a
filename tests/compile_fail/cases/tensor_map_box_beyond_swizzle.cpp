// The swizzle permutes inside of its span; a wider row would fold onto itself.
// expect: "must fit into the swizzle's span (32, 64 or 128 bytes)"
#include "tessera/tensor_map.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Map = TensorMap<f16, Box<128, 8>, Swizzle::b128>;
#else
using Map = TensorMap<f16, Box<64, 8>, Swizzle::b128>;
#endif

std::size_t bytes() { return Map::box_bytes; }
