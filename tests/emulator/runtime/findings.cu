/// Six faults for the report to show: each is one finding.

#include <cuda_runtime.h>

#include <cstdio>

namespace {

template <class T>
__device__ T positive(const T* data, unsigned i)
{
    return data[i] > T(0) ? data[i] : T(0);
}

// No __syncthreads() between the two lines.
template <class T, int tile>
__global__ void reverse(const T* in, T* out)
{
    __shared__ T block[tile];
    const unsigned i = threadIdx.x;
    block[i] = positive(in, blockIdx.x * tile + i);
    out[blockIdx.x * tile + i] = block[tile - 1 - i];
}

// Sixteen loads in the PTX, of a buffer that was never written.
__global__ void copy(const float* in, float* out)
{
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
        out[threadIdx.x * 16 + k] = in[threadIdx.x * 16 + k];
    }
}

__global__ void scale(float* data, unsigned count)
{
    for (unsigned i = threadIdx.x; i <= count; i += blockDim.x) {
        data[i] *= 2;
    }
}

void run(float* in, float* out, float* unwritten)
{
    reverse<float, 256><<<4, 256>>>(in, out);
    copy<<<2, 32>>>(unwritten, out);
    cudaDeviceSynchronize();
    scale<<<1, 128>>>(out, 1024);
    std::printf("launched\n");
}

}  // namespace

int main()
{
    constexpr std::size_t bytes = 1024 * sizeof(float);
    float* in = nullptr;
    float* out = nullptr;
    float* unwritten = nullptr;
    cudaMalloc(&in, bytes);
    cudaMalloc(&out, bytes);
    cudaMalloc(&unwritten, bytes);  // none of them is freed
    cudaMemset(in, 0, bytes);
    cudaFree(in + 1);
    run(in, out, unwritten);
    const cudaError_t lost = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorName(lost));
    return lost == cudaErrorIllegalAddress ? 3 : 1;
}
