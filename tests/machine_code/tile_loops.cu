/// Attention as a tile program for Hopper, with bounds checks and without.

#include "bench/tiles/tile_programs.cuh"

using namespace tessera;
using bench::detail::Attention;

template __global__ void tile::detail::tile_kernel<tile::Instructions::wgmma, Attention<false, false>>(
    const __grid_constant__ Attention<false, false>, const tile::detail::SharedMemory);
template __global__ void tile::detail::tile_kernel<tile::Instructions::wgmma, Attention<true, false>>(
    const __grid_constant__ Attention<true, false>, const tile::detail::SharedMemory);
