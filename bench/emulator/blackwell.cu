// The bf16 GEMM kernel of the emulated device's tests, for CTA pairs.

#include "tests/emulator/programs/blackwell_gemm.cuh"

namespace tessera_emulator_test {

template __global__ void blackwell_gemm<2, BlackwellFault::none>(const __grid_constant__ CUtensorMap,
                                                                 const __grid_constant__ CUtensorMap, __nv_bfloat16*,
                                                                 int, int);

}  // namespace tessera_emulator_test
