#include <cuda_runtime.h>

/// Reverses 256 elements, with a mistake: a __syncthreads() is missing.
__global__ void reverse(float* data)
{
    __shared__ float block[256];
    const unsigned i = threadIdx.x;
    block[i] = data[i];
    data[i] = block[255 - i];
}

int main()
{
    constexpr unsigned count = 256;
    float* data = nullptr;
    cudaMalloc(&data, count * sizeof(float));
    cudaMemset(data, 0, count * sizeof(float));
    reverse<<<1, count>>>(data);
    const cudaError_t status = cudaDeviceSynchronize();
    cudaFree(data);
    return status == cudaSuccess ? 0 : 1;
}
