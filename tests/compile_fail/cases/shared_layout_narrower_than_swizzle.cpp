// The swizzle permutes chunks of a whole span; a narrower row does not have one.
// expect: "the contiguous extent of a shared tile must be a multiple of its swizzle's span"
#include "tessera/device/smem_descriptor.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Layout = SharedLayout<Major::k, Swizzle::b128, 128, 32, 2>;
#else
using Layout = SharedLayout<Major::k, Swizzle::b64, 128, 32, 2>;
#endif

std::uint64_t bits() { return tcgen05_descriptor<Layout>(0).bits(); }
