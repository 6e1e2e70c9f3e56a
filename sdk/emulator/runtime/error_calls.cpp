// The last error, and calls with trivial answers: versions, profiling.

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <thread>

#include "runtime/call.hpp"
#include "runtime/error_names.hpp"

using namespace tessera::emulator;

namespace {

constexpr int cuda_version = 13000;

/// A lost context shows in every thread, whatever the thread called.
cudaError_t last_error() noexcept
{
    Runtime& runtime = Runtime::get();
    const ThreadState& thread = ThreadState::get();
    if (runtime.devices.empty() || runtime.is_unloading) {
        return thread.last_error;
    }
    const auto failure = static_cast<cudaError_t>(current_device().failure.load());
    // It is unknown until a call has returned it.
    return thread.last_error != cudaSuccess && failure != cudaSuccess ? failure : thread.last_error;
}

/// The program asks for the thread's last error: launches that failed are not ignored.
void forgive_launches() noexcept
{
    Runtime& runtime = Runtime::get();
    const std::scoped_lock lock(runtime.mutex);
    runtime.ignored_launches.erase(std::this_thread::get_id());
}

cudaError_t write_version(int* version)
{
    if (version == nullptr) {
        return cudaErrorInvalidValue;
    }
    *version = cuda_version;
    return cudaSuccess;
}

}  // namespace

extern "C" {

// Planned faults do not apply to these: they only report.

cudaError_t cudaPeekAtLastError()
{
    const cudaError_t error = last_error();
    if (error != cudaSuccess) {
        forgive_launches();
    }
    return error;
}

cudaError_t cudaGetLastError()
{
    const cudaError_t error = last_error();
    if (error != cudaSuccess) {
        forgive_launches();
    }
    if (!Runtime::get().devices.empty() && current_device().failure.load() == 0) {
        ThreadState::get().last_error = cudaSuccess;
    }
    return error;
}

const char* cudaGetErrorName(cudaError_t error)
{
    const char* name = error_name(error);
    return name == nullptr ? "unrecognized error code" : name;
}

const char* cudaGetErrorString(cudaError_t error)
{
    const char* text = error_text(error);
    return text == nullptr ? "unrecognized error code" : text;
}

cudaError_t cudaDriverGetVersion(int* version)
{
    return call("cudaDriverGetVersion", query_call, [&] { return write_version(version); });
}

cudaError_t cudaRuntimeGetVersion(int* version)
{
    return call("cudaRuntimeGetVersion", query_call, [&] { return write_version(version); });
}

cudaError_t cudaProfilerStart()
{
    return call("cudaProfilerStart", [] { return cudaSuccess; });
}

cudaError_t cudaProfilerStop()
{
    return call("cudaProfilerStop", [] { return cudaSuccess; });
}

/// Tables of private functions: their contents are undocumented, and programs can work without them.
cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t* /*id*/)
{
    return call("cudaGetExportTable", query_call, [&]() -> cudaError_t {
        if (table != nullptr) {
            *table = nullptr;
        }
        return cudaErrorInvalidValue;  // as for an unknown table
    });
}

}  // extern "C"
