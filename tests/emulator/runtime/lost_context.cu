/// The effect of a kernel's fault on the calls after it, and leaks and the report at the end.
/// Argument: "fault", "overrun", "assert", "trap", "printf", "wait", "leak", "clean".

#include <cuda_runtime.h>

#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

__global__ void fault(int* memory, int index) { memory[index] = 1; }
__global__ void failing_assert(int value) { assert(value == 2); }
__global__ void trap() { __trap(); }
__global__ void print(int value) { printf("value %d from thread %d\n", value, static_cast<int>(threadIdx.x)); }
__global__ void wait_for_host(const volatile int* flag)
{
    while (*flag == 0) {
    }
}

namespace {

/// The host answers after the 10 seconds for which a kernel may wait without being taken for a hang.
constexpr std::chrono::seconds slow_answer{12};

int expect(const char* what, cudaError_t got, cudaError_t wanted)
{
    if (got != wanted) {
        std::printf("FAILED: %s gave %s instead of %s\n", what, cudaGetErrorName(got), cudaGetErrorName(wanted));
    }
    return got == wanted ? 0 : 1;
}

int lost(cudaError_t error)
{
    int failures = expect("synchronize", cudaDeviceSynchronize(), error);
    void* memory = nullptr;
    failures += expect("malloc", cudaMalloc(&memory, 16), error);
    failures += expect("peek", cudaPeekAtLastError(), error);
    failures += expect("last error", cudaGetLastError(), error);
    failures += expect("synchronize again", cudaDeviceSynchronize(), error);
    int count = 0;
    failures += expect("device count", cudaGetDeviceCount(&count), cudaSuccess);
    return failures;
}

}  // namespace

int main(int argc, char** argv)
{
    const char* what = argc > 1 ? argv[1] : "clean";
    int* memory = nullptr;
    cudaMalloc(&memory, 1024);
    if (std::strcmp(what, "fault") == 0) {
        fault<<<1, 1>>>(memory, 1 << 28);
        return lost(cudaErrorIllegalAddress);
    }
    if (std::strcmp(what, "overrun") == 0) {  // in the padding after 1000 bytes
        int* part = nullptr;
        cudaMalloc(&part, 1000);
        fault<<<1, 1>>>(part, 250);
        const cudaError_t status = cudaDeviceSynchronize();
        cudaFree(part);
        cudaFree(memory);
        return status == cudaSuccess ? 0 : 1;
    }
    if (std::strcmp(what, "assert") == 0) {
        failing_assert<<<1, 1>>>(argc);
        failing_assert<<<1, 1>>>(3);
        return lost(cudaErrorAssert);
    }
    if (std::strcmp(what, "trap") == 0) {
        trap<<<1, 1>>>();
        return lost(cudaErrorLaunchFailure);
    }
    if (std::strcmp(what, "printf") == 0) {
        print<<<1, 2>>>(42);
        cudaDeviceSynchronize();
        std::printf("after\n");
    }
    if (std::strcmp(what, "wait") == 0) {
        int* flag = nullptr;
        cudaMallocHost(&flag, sizeof *flag);
        *flag = 0;
        wait_for_host<<<1, 1>>>(flag);
        std::this_thread::sleep_for(slow_answer);
        *static_cast<volatile int*>(flag) = 1;
        const cudaError_t status = cudaDeviceSynchronize();
        cudaFreeHost(flag);
        cudaFree(memory);
        return status == cudaSuccess ? 0 : 1;
    }
    if (std::strcmp(what, "leak") != 0) {
        cudaFree(memory);
    }
    return 0;
}
