/// Instantiates the SIMT kernels for bf16 inputs.

#include "simt_table.cuh"

template tessera::kernels::SimtKernel tessera::kernels::detail::typed_simt_kernel<tessera::bf16>(SimtRung, SimtOrders,
                                                                                                 SimtTile);
