#pragma once

/// A test double of the CUDA runtime: what tests see of it.
///
/// It is a double of the ABI and not an emulator: every function that the SDK calls is here, keeps the rules that it is
/// documented to have, and is written down; kernels are recorded and not run. Device memory has addresses that no
/// process maps, so that a host access faults; copies and fills really happen (but not those that are captured into a
/// graph).
///
/// Besides, it watches. Whatever a correct program never does (a double free, a free with the wrong function, a free of
/// memory that a copy on an unrelated stream may still use, a handle used after its end) goes to `misuses()`.
///
/// Three devices are there: 0 is an H200, 1 a T4 (no memory pools, clusters or tensor maps), 2 a B200. Their memory is
/// small, so that tests can run out of it.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tessera::fake {

inline constexpr int h200 = 0;
inline constexpr int t4 = 1;
inline constexpr int b200 = 2;

/// Everything as at the start of the process: no objects, an empty log, no faults, device 0 current.
void reset();

// What happened.

struct Call {
    std::string name;
    int device;  ///< the calling thread's current device
};

/// All calls since the last `reset` or `clear_calls`, oldest first, but for the queries of the last error.
std::vector<Call> calls();
void clear_calls();
/// How many of them were called `name`.
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
    bool programmatic = false;        ///< may begin before the kernel in front of it has ended
    std::vector<std::byte> argument;  ///< the first `kept_argument_bytes` bytes of the first parameter
};

/// All kernel launches since the last `reset` or `clear_calls`. Launches that failed are not among them.
std::vector<Launch> launches();
/// How many bytes of each launch's first parameter are kept from now on. 0 after `reset`.
void keep_argument_bytes(std::size_t bytes);

/// Sentences about what a correct program never does.
std::vector<std::string> misuses();

/// Objects that were made and are not yet destroyed.
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

/// True while the calling thread is inside of a function of the fake: what it allocates then is not the SDK's.
bool inside_runtime() noexcept;

// What shall happen.

/// The `nth` call from now on (1 is the next), or the `nth` of a function, returns `status`. A function that destroys
/// or waits does so in spite of it, as CUDA's do when they report an earlier failure. If `sticky`, all later calls
/// fail, too.
void fail_call(int nth, cudaError_t status, bool sticky = false);
void fail_call(const std::string& name, int nth, cudaError_t status, bool sticky = false);
/// True if a fault has come up since the last `reset`.
bool fault_occurred();

/// What the machine has from now on: cudaGetDeviceCount reports `count` and `status`.
void set_device_count(int count, cudaError_t status = cudaSuccess);
/// Work that is enqueued on `stream` does not finish by itself; a host that waits for it makes it finish.
void hold(cudaStream_t stream);
/// From now on every call returns cudaErrorCudartUnloading, as while a process exits.
void begin_unloading();
/// Calls that came after begin_unloading().
int calls_while_unloading();

/// What kernels do from now on: `run` is called within each launch that is not captured, and within each launch of a
/// graph for every launch that was captured into it. Nothing after `reset`.
void on_launch(std::function<void(const Launch&)> run);
/// Device time passes: events that are recorded later are this much later.
void pass_time(double milliseconds);
/// Where the bytes of device memory really are.
void* contents_of(const void* device_memory);

/// Makes a function that no nvcc has seen a kernel. Kernels that nvcc made are known.
void register_kernel(const void* function, const char* mangled_name, const cudaFuncAttributes& attributes);
/// What an unremarkable kernel has: 1024 threads, 32 registers, 48 KiB of dynamic shared memory.
cudaFuncAttributes default_attributes();

/// The driver's tensor map encoder is missing, or returns `status` (a CUresult) from now on.
void set_encoder_missing(bool missing);
void set_encoder_status(int status);
/// The driver's cuPointerGetAttribute is missing from now on.
void set_pointer_attributes_missing(bool missing);

}  // namespace tessera::fake
