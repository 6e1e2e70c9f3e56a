/// The SIMT ladder for inputs of f32.

#include "simt_table.cuh"

template tessera::kernels::SimtKernel tessera::kernels::detail::typed_simt_kernel<tessera::f32>(SimtRung, SimtOrders,
                                                                                                SimtTile);
