// tcgen05 transposes 4-byte elements in chunks of 32 bytes.
// expect: "tcgen05 reads M- or N-major tiles of 4-byte elements with Swizzle::b128_atom_32b only"
#include "tessera/device/smem_descriptor.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Layout = SharedLayout<Major::mn, Swizzle::b128, 128, 32, 4>;
#else
using Layout = SharedLayout<Major::mn, Swizzle::b128_atom_32b, 128, 32, 4>;
#endif

std::uint64_t bits() { return tcgen05_descriptor<Layout>(0).bits(); }
