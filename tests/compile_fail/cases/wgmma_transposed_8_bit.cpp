// wgmma transposes 16-bit elements only.
// expect: "wgmma reads M- or N-major tiles of 16-bit elements only"
#include "tessera/device/smem_descriptor.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Layout = SharedLayout<Major::mn, Swizzle::b128, 128, 128, 1>;
#else
using Layout = SharedLayout<Major::mn, Swizzle::b128, 128, 64, 2>;
#endif

std::uint64_t bits() { return wgmma_descriptor<Layout>(0).bits(); }
