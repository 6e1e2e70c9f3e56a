#pragma once

/// State of the fake runtime. Only its own sources include this.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fake_runtime/fake_runtime.hpp"

namespace tessera::fake {

/// A vector clock: the progress of each stream, by its id. What a clock covers happened before.
using Clock = std::map<std::uint64_t, std::uint64_t>;

void merge(Clock& into, const Clock& from);
bool covers(const Clock& clock, std::uint64_t stream, std::uint64_t operation);

struct StreamRecord {
    std::uint64_t id = 0;
    int device = 0;
    bool alive = true;
    bool held = false;
    int priority = 0;
    std::uint64_t enqueued = 0;
    Clock clock = {};                            // the stream's next operation comes after this
    std::uint64_t capture = 0;                   // id, or 0
    std::vector<cudaGraphNode_t> frontier = {};  // the next captured node comes after these
};

struct EventRecord {
    int device = 0;
    bool alive = true;
    bool timing = false;
    bool recorded = false;
    Clock clock = {};
    std::uint64_t order = 0;  // of the recording; replaces a time stamp
    double passed_milliseconds = 0;
    std::uint64_t capture = 0;
    std::uint64_t stream = 0;  // the stream it was recorded on
    std::vector<cudaGraphNode_t> frontier = {};
};

enum class MemoryKind { plain, pool, pinned };

/// Freed memory is still found by its address, so that a second free can be reported.
struct Allocation {
    MemoryKind kind = MemoryKind::plain;
    int device = 0;
    std::size_t bytes = 0;
    std::uintptr_t address = 0;
    std::unique_ptr<void, decltype(&std::free)> contents{nullptr, &std::free};
    bool alive = true;
    std::uint64_t capture = 0;                                       // the capture it was allocated in
    std::vector<std::pair<std::uint64_t, std::uint64_t>> uses = {};  // stream, operation
};

struct GraphRecord {
    bool alive = true;
    std::size_t nodes = 0;
    std::vector<std::uint64_t> user_objects = {};
    std::vector<Launch> launches = {};
};

struct UserObjectRecord {
    void* data = nullptr;
    cudaHostFn_t destroy = nullptr;
    int references = 0;
};

struct CaptureRecord {
    std::uint64_t origin = 0;
    std::thread::id thread = {};
    bool invalid = false;
    std::size_t nodes = 0;
    std::uint64_t graph = 0;  // the graph it creates
    std::vector<std::uint64_t> user_objects = {};
    std::vector<Launch> launches = {};
    std::set<std::uint64_t> unjoined = {};  // streams whose work the origin does not wait for yet
    std::map<cudaGraphNode_t, std::vector<cudaGraphNode_t>> predecessors = {};  // of each node
};

struct Fault {
    std::string name;  // empty: any
    int countdown;
    cudaError_t status;
    bool sticky;
};

struct Kernel {
    std::string name;
    cudaFuncAttributes attributes;
};

struct Runtime {
    int device_count = 3;
    cudaError_t device_count_status = cudaSuccess;
    bool unloading = false;
    int calls_while_unloading = 0;
    cudaError_t sticky = cudaSuccess;
    std::vector<Fault> faults;
    bool fault_occurred = false;

    std::vector<Call> calls;
    std::vector<Launch> launches;
    std::size_t kept_argument_bytes = 0;
    std::vector<std::string> misuses;

    std::map<std::uint64_t, StreamRecord> streams;
    std::map<std::uint64_t, EventRecord> events;
    std::map<std::uintptr_t, Allocation> memory;  // by address
    std::map<std::uint64_t, GraphRecord> graphs;
    std::map<std::uint64_t, GraphRecord> executables;
    std::map<std::uint64_t, CaptureRecord> captures;
    std::map<std::uint64_t, UserObjectRecord> user_objects;
    Clock completed;
    std::uint64_t event_order = 0;
    std::function<void(const Launch&)> on_launch;
    double passed_milliseconds = 0;

    bool encoder_missing = false;
    int encoder_status = 0;
    bool pointer_attributes_missing = false;

    void misuse(const std::string& what) { misuses.push_back(what); }
};

Runtime& runtime();
std::recursive_mutex& runtime_mutex();
/// Ids are never reused in a process, so that an old handle is never mistaken for a new one.
std::uint64_t next_id();
/// Kernels survive `reset`: nvcc's objects register them once.
std::map<const void*, Kernel>& kernels();

/// State of the calling thread.
struct ThreadState {
    int device = 0;
    cudaError_t last_error = cudaSuccess;
    int depth = 0;
    cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
    std::uint64_t generation = 0;  // of the latest reset() it has seen
};
ThreadState& this_thread();

/// Handles are ids, cast to pointers.
template <class Handle>
std::uint64_t id_of(Handle handle)
{
    return reinterpret_cast<std::uintptr_t>(handle);
}
template <class Handle>
Handle handle_of(std::uint64_t id)
{
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(id));
}

/// Finds a stream, including the default streams of the current device. Returns null, and records a misuse, if it is
/// gone.
StreamRecord* find_stream(cudaStream_t stream, const char* call);
EventRecord* find_event(cudaEvent_t event, const char* call);

/// How a call reacts to a fault: `refuse` does nothing else; `perform` still does its work (for functions that destroy
/// or wait) and reports the fault.
enum class OnFault { refuse, perform };

/// Decides whether a call may run: nothing, or the status that it must return at once.
class Entry {
public:
    explicit Entry(const char* name);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    /// The status that the call must return because of an earlier or injected failure.
    cudaError_t forced() const { return forced_; }
    bool unloading() const { return unloading_; }

private:
    std::unique_lock<std::recursive_mutex> lock_;
    cudaError_t forced_ = cudaSuccess;
    bool unloading_ = false;
};

template <class Body>
cudaError_t call(const char* name, OnFault on_fault, Body&& body)
{
    const Entry entry(name);
    cudaError_t status = entry.forced();
    if (status == cudaSuccess) {
        status = body();
    } else if (on_fault == OnFault::perform && !entry.unloading()) {
        static_cast<void>(body());
    }
    if (status != cudaSuccess) {
        this_thread().last_error = status;
    }
    return status;
}
template <class Body>
cudaError_t call(const char* name, Body&& body)
{
    return call(name, OnFault::refuse, std::forward<Body>(body));
}

/// Calls that CUDA forbids while the thread captures (in thread-local mode) break the capture, unless the thread has
/// switched to relaxed mode.
cudaError_t forbid_in_capture();
std::size_t total_memory(int device);
std::size_t free_memory(int device);
/// The driver's cuPointerGetAttribute, for the pool of an address.
int pool_of(void* value, int attribute, unsigned long long address);
/// Adds an operation to the stream, or a node to the graph that it is being captured into.
void enqueue(StreamRecord& stream);
/// Records that the host has waited for all of `clock`.
void complete(const Clock& clock);

}  // namespace tessera::fake
