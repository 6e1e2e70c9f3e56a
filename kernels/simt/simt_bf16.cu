/// The SIMT ladder for inputs of bf16.

#include "simt_table.cuh"

template tessera::kernels::SimtKernel tessera::kernels::detail::typed_simt_kernel<tessera::bf16>(SimtRung, SimtOrders,
                                                                                                 SimtTile);
