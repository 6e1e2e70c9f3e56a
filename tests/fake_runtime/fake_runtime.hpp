#pragma once

/// A test double of the CUDA runtime: the interface for tests.
///
/// It doubles the ABI; it is not an emulator. Every function that the SDK calls is here, obeys its documented rules,
/// and is recorded; kernels are recorded but not run. Device memory has addresses that no process maps, so an access
/// from the host faults. Copies and fills really happen, except those captured into a graph.
///
/// It also detects misuse. Whatever a correct program never does (a double free, a free with the wrong function, a free
/// of memory that a copy on an unrelated stream may still use, a handle used after its end) is reported by `misuses()`.
///
/// There are three devices: 0 is an H200, 1 a T4 (no memory pools, clusters or tensor maps), 2 a B200. Their memory is
/// small, so that tests can exhaust it.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tessera::fake {

inline constexpr int h200 = 0;
inline constexpr int t4 = 1;
inline constexpr int b200 = 2;

/// Restores the state at the start of the process: no objects, an empty log, no faults, device 0 current.
void reset();

// Records.

struct Call {
    std::string name;
    int device;  ///< the calling thread's current device
};

/// Returns all calls since the last `reset` or `clear_calls`, oldest first, except queries of the last error.
std::vector<Call> calls();
void clear_calls();
/// Returns the number of calls of the function `name`.
int count(const std::string& name);

struct Launch {
    const void* function;
    dim3 grid;
    dim3 block;
    std::size_t shared_bytes;
    bool has_cluster;
    dim3 cluster;
    cudaStream_t stream;
    int device;
    bool cooperative = false;
    bool programmatic = false;        ///< may start before the previous kernel has ended
    std::vector<std::byte> argument;  ///< the first `kept_argument_bytes` bytes of the first parameter
};

/// Returns all successful kernel launches since the last `reset` or `clear_calls`.
std::vector<Launch> launches();
/// Sets how many bytes of each launch's first parameter are kept from now on. 0 after `reset`.
void keep_argument_bytes(std::size_t bytes);

/// Returns one sentence per misuse.
std::vector<std::string> misuses();

/// Objects that were created and not yet destroyed.
struct Live {
    int device_allocations = 0;
    int pinned_allocations = 0;
    int streams = 0;
    int events = 0;
    int graphs = 0;
    int graph_executables = 0;
    int user_objects = 0;

    friend bool operator==(const Live&, const Live&) = default;
};
Live live();

/// Returns true while the calling thread is inside a function of the fake: its allocations are not the SDK's.
bool inside_runtime() noexcept;

// Control.

/// Makes the `nth` call from now on (1 is the next), or the `nth` call of a function, return `status`. A function that
/// destroys or waits still does its work, like CUDA's when they report an earlier failure. If `sticky`, all later calls
/// fail, too.
void fail_call(int nth, cudaError_t status, bool sticky = false);
void fail_call(const std::string& name, int nth, cudaError_t status, bool sticky = false);
/// Returns true if a fault has occurred since the last `reset`.
bool fault_occurred();

/// Makes cudaGetDeviceCount report `count` and `status` from now on.
void set_device_count(int count, cudaError_t status = cudaSuccess);
/// Work enqueued on `stream` does not finish by itself, but only when the host waits for it.
void hold(cudaStream_t stream);
/// Makes every call return cudaErrorCudartUnloading from now on, as while a process exits.
void begin_unloading();
/// Returns the number of calls after begin_unloading().
int calls_while_unloading();

/// Sets what kernels do from now on: `run` is called in each launch that is not captured, and in each launch of a graph
/// once per captured launch. Nothing after `reset`.
void on_launch(std::function<void(const Launch&)> run);
/// Lets device time pass: events recorded later are this much later.
void pass_time(double milliseconds);
/// Returns where the bytes of device memory really are.
void* contents_of(const void* device_memory);

/// Registers a function as a kernel. Kernels compiled by nvcc are registered already.
void register_kernel(const void* function, const char* mangled_name, const cudaFuncAttributes& attributes);
/// Attributes of a typical kernel: 1024 threads, 32 registers, 48 KiB of dynamic shared memory.
cudaFuncAttributes default_attributes();

/// The driver's tensor map encoder is missing, or returns `status` (a CUresult) from now on.
void set_encoder_missing(bool missing);
void set_encoder_status(int status);
/// The driver's cuPointerGetAttribute is missing from now on.
void set_pointer_attributes_missing(bool missing);

}  // namespace tessera::fake
