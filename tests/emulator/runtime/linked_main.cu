/// Calls a function and reads a variable of another translation unit (nvcc -rdc=true); both units have a static
/// function and a string of the same name.

#include <cstdio>

#include "linked_units.hpp"

static __device__ int hidden(int value)
{
    printf("one %d\n", value);
    return value + 1;
}

__global__ void combine(int* result) { *result = twice(table[1]) + hidden(3); }

int main()
{
    int* device = nullptr;
    int result = 0;
    cudaMalloc(&device, sizeof(int));
    combine<<<1, 1>>>(device);
    cudaMemcpy(&result, device, sizeof result, cudaMemcpyDeviceToHost);
    cudaFree(device);
    std::printf("result %d\n", result);
    return result == 16 ? 0 : 1;
}
