/// Instantiates the SIMT kernels for f32 inputs.

#include "simt_table.cuh"

template tessera::kernels::SimtKernel tessera::kernels::detail::typed_simt_kernel<tessera::f32>(SimtRung, SimtOrders,
                                                                                                SimtTile);
