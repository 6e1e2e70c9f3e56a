#include <cstdio>

/// Reverses the 256 elements of each CTA.
__global__ void reverse(float* data)
{
    __shared__ float block[256];
    const unsigned i = threadIdx.x;
    // A __syncthreads() is missing between the two lines.
    block[i] = data[blockIdx.x * 256 + i];
    data[blockIdx.x * 256 + i] = block[255 - i];
}

int main()
{
    constexpr unsigned count = 1024;
    float* data = nullptr;
    cudaMalloc(&data, count * sizeof(float));
    cudaMemset(data, 0, count * sizeof(float));
    reverse<<<count / 256, 256>>>(data);
    const cudaError_t status = cudaDeviceSynchronize();
    cudaFree(data);
    return status == cudaSuccess ? 0 : 1;
}
