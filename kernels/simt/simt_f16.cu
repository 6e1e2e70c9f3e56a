/// The SIMT ladder for inputs of f16.

#include "simt_table.cuh"

template tessera::kernels::SimtKernel tessera::kernels::detail::typed_simt_kernel<tessera::f16>(SimtRung, SimtOrders,
                                                                                                SimtTile);
