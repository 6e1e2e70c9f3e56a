// Driver calls for streams and events, on top of the runtime's public functions. Compiled twice, as driver_calls.cpp.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "runtime/driver_call.hpp"

using namespace tessera::emulator;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags)
{
    return on_runtime([&] { return cudaStreamCreateWithFlags(stream, flags); });
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    return on_runtime([&] { return cudaStreamDestroy(stream); });
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return on_runtime([&] { return cudaStreamSynchronize(stream); });
}

CUresult cuStreamQuery(CUstream stream)
{
    return on_runtime([&] { return cudaStreamQuery(stream); });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status)
{
    static_assert(sizeof(CUstreamCaptureStatus) == sizeof(cudaStreamCaptureStatus));
    return on_runtime(
        [&] { return cudaStreamIsCapturing(stream_of(stream), reinterpret_cast<cudaStreamCaptureStatus*>(status)); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    return on_runtime([&] { return cudaStreamWaitEvent(stream, event, flags); });
}

CUresult cuEventCreate(CUevent* event, unsigned flags)
{
    return on_runtime([&] { return cudaEventCreateWithFlags(event, flags); });
}

CUresult cuEventDestroy_v2(CUevent event)
{
    return on_runtime([&] { return cudaEventDestroy(event); });
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return on_runtime([&] { return cudaEventRecord(event, stream); });
}

CUresult cuEventSynchronize(CUevent event)
{
    return on_runtime([&] { return cudaEventSynchronize(event); });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end)
{
    return on_runtime([&] { return cudaEventElapsedTime(milliseconds, start, end); });
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority)
{
    return on_runtime([&] { return cudaStreamCreateWithPriority(stream, flags, priority); });
}

CUresult cuStreamGetPriority(CUstream stream, int* priority)
{
    return on_runtime([&] { return cudaStreamGetPriority(stream_of(stream), priority); });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags)
{
    return on_runtime([&] { return cudaStreamGetFlags(stream_of(stream), flags); });
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id)
{
    return on_runtime([&] { return cudaStreamGetId(stream_of(stream), id); });
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device)
{
    return on_runtime([&] { return cudaStreamGetDevice(stream_of(stream), device); });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context)
{
    CUdevice device = 0;
    const CUresult status = context == nullptr ? CUDA_ERROR_INVALID_VALUE : cuStreamGetDevice(stream, &device);
    if (status == CUDA_SUCCESS) {
        *context = context_of(device);
    }
    return status;
}

/// No stream belongs to a green context.
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green)
{
    const CUresult status = cuStreamGetCtx(stream, context);
    if (status == CUDA_SUCCESS && green != nullptr) {
        *green = nullptr;
    }
    return status;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
    return on_runtime([&] { return cudaStreamCopyAttributes(stream_of(to), stream_of(from)); });
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue* value)
{
    static_assert(sizeof(CUstreamAttrValue) == sizeof(cudaStreamAttrValue));
    return on_runtime([&] {
        return cudaStreamGetAttribute(stream_of(stream), static_cast<cudaStreamAttrID>(attribute),
                                      reinterpret_cast<cudaStreamAttrValue*>(value));
    });
}

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue* value)
{
    return on_runtime([&] {
        return cudaStreamSetAttribute(stream_of(stream), static_cast<cudaStreamAttrID>(attribute),
                                      reinterpret_cast<const cudaStreamAttrValue*>(value));
    });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument)
{
    return on_runtime([&] { return cudaLaunchHostFunc(stream_of(stream), function, argument); });
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* argument, unsigned flags)
{
    return on_runtime([&] {
        return cudaStreamAddCallback(stream_of(stream), reinterpret_cast<cudaStreamCallback_t>(callback), argument,
                                     flags);
    });
}

CUresult cuEventQuery(CUevent event)
{
    return on_runtime([&] { return cudaEventQuery(event); });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    return on_runtime([&] { return cudaEventRecordWithFlags(event, stream, flags); });
}

}  // extern "C"
