#pragma once

/// @file
/// @ingroup tile_programs
/// @brief Tile programs: kernels without threads, barriers or swizzles. Includes all of tessera/tile.

#include "tessera/detail/language.hpp"

#include "tessera/tile/activations.cuh"
#include "tessera/tile/atomic.cuh"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/gather.cuh"
#include "tessera/tile/held.cuh"
#include "tessera/tile/math.cuh"
#include "tessera/tile/mma.cuh"
#include "tessera/tile/numbers.cuh"
#include "tessera/tile/stream.cuh"
#include "tessera/tile/tile.cuh"
#include "tessera/tile/view.cuh"
#ifndef __CUDACC_RTC__
#include "tessera/tile/launch.cuh"
#endif
