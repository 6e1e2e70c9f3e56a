/// Instantiates the SIMT kernels for f16 inputs.

#include "simt_table.cuh"

template tessera::kernels::SimtKernel tessera::kernels::detail::typed_simt_kernel<tessera::f16>(SimtRung, SimtOrders,
                                                                                                SimtTile);
