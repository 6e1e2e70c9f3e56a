#pragma once

// What driver calls need to call the runtime.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::emulator {

/// Both sets of error codes have the same numbers. Driver calls do not change the runtime's last error.
template <class Body>
CUresult on_runtime(Body&& body)
{
    const cudaError_t before = cudaPeekAtLastError();
    const cudaError_t status = body();
    if (before == cudaSuccess) {
        static_cast<void>(cudaGetLastError());
    }
    return static_cast<CUresult>(status);
}

template <class To, class From>
To cast(From from)
{
    return reinterpret_cast<To>(from);
}

inline cudaStream_t stream_of(CUstream stream) { return stream; }

/// A context is the device's primary one. Its handle is the device's number plus one.
inline CUcontext context_of(int device) { return cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1); }
inline int device_of(CUcontext context) { return static_cast<int>(cast<std::uintptr_t>(context)) - 1; }

/// Runs `body`, which returns a cudaError_t, while `device` is the current device.
template <class Body>
CUresult on_device(CUdevice device, Body&& body)
{
    int before = 0;
    return on_runtime([&] {
        cudaError_t status = cudaGetDevice(&before);
        if (status == cudaSuccess && (status = cudaSetDevice(device)) == cudaSuccess) {
            status = body();
            const cudaError_t restored = cudaSetDevice(before);
            status = status == cudaSuccess ? restored : status;
        }
        return status;
    });
}

}  // namespace tessera::emulator
