#pragma once

// The parts of the conformance program, and how they print their answers.

#include <cuda_runtime.h>

#include <cstdio>

inline void say(const char* what, cudaError_t status)
{
    const cudaError_t peeked = cudaPeekAtLastError();
    const cudaError_t last = cudaGetLastError();
    std::printf("%-58s %s", what, cudaGetErrorName(status));
    if (last != status || peeked != status) {
        std::printf(" (last error %s)", cudaGetErrorName(last));
    }
    std::printf("\n");
}

inline void say(const char* what, long long value) { std::printf("%-58s %lld\n", what, value); }

void captures();
void graphs();
