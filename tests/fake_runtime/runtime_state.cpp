#include "runtime_state.hpp"

#include <atomic>
#include <utility>

namespace tessera::fake {
namespace {

std::atomic<std::uint64_t> generation{1};

std::uint64_t id_counter = 0x1000;  // above the handles that mean a default stream

int alive(const auto& records)
{
    int number = 0;
    for (const auto& [id, record] : records) {
        number += record.alive ? 1 : 0;
    }
    return number;
}

}  // namespace

void merge(Clock& into, const Clock& from)
{
    for (const auto& [stream, operation] : from) {
        std::uint64_t& mine = into[stream];
        mine = std::max(mine, operation);
    }
}

bool covers(const Clock& clock, std::uint64_t stream, std::uint64_t operation)
{
    const auto found = clock.find(stream);
    return found != clock.end() && found->second >= operation;
}

// Never destroyed: static owners of the tested program make calls until the very end.
Runtime& runtime()
{
    static auto* const instance = new Runtime;
    return *instance;
}

std::recursive_mutex& runtime_mutex()
{
    static auto* const instance = new std::recursive_mutex;
    return *instance;
}

std::map<const void*, Kernel>& kernels()
{
    static auto* const instance = new std::map<const void*, Kernel>;
    return *instance;
}

std::uint64_t next_id() { return id_counter += 0x10; }

ThreadState& this_thread()
{
    thread_local ThreadState state;
    if (state.generation != generation) {
        state = {.depth = state.depth, .generation = generation};
    }
    return state;
}

Entry::Entry(const char* name) : lock_(runtime_mutex(), std::defer_lock)
{
    ThreadState& thread = this_thread();
    ++thread.depth;
    lock_.lock();
    Runtime& state = runtime();
    if (state.unloading) {
        ++state.calls_while_unloading;
        unloading_ = true;
        forced_ = cudaErrorCudartUnloading;
        return;
    }
    state.calls.push_back({name, thread.device});
    forced_ = state.sticky;
    for (Fault& fault : state.faults) {
        if ((fault.name.empty() || fault.name == name) && --fault.countdown == 0) {
            state.fault_occurred = true;
            forced_ = fault.status;
            if (fault.sticky) {
                state.sticky = fault.status;
            }
        }
    }
}

Entry::~Entry() { --this_thread().depth; }

StreamRecord* find_stream(cudaStream_t stream, const char* call)
{
    Runtime& state = runtime();
    std::uint64_t id = id_of(stream);
    if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
        id = 8 + static_cast<std::uint64_t>(this_thread().device);  // default streams are created at their first use
        state.streams.try_emplace(id, StreamRecord{.id = id, .device = this_thread().device});
    }
    const auto found = state.streams.find(id);
    if (found == state.streams.end() || !found->second.alive) {
        state.misuse(std::string(call) + " on a stream that " +
                     (found == state.streams.end() ? "never was" : "was destroyed"));
        return nullptr;
    }
    return &found->second;
}

EventRecord* find_event(cudaEvent_t event, const char* call)
{
    Runtime& state = runtime();
    const auto found = state.events.find(id_of(event));
    if (found == state.events.end() || !found->second.alive) {
        state.misuse(std::string(call) + " of an event that " +
                     (found == state.events.end() ? "never was" : "was destroyed"));
        return nullptr;
    }
    return &found->second;
}

cudaError_t forbid_in_capture()
{
    cudaError_t status = cudaSuccess;
    if (this_thread().capture_mode == cudaStreamCaptureModeRelaxed) {
        return status;
    }
    for (auto& [id, capture] : runtime().captures) {
        if (capture.thread == std::this_thread::get_id()) {
            capture.invalid = true;
            status = cudaErrorStreamCaptureUnsupported;
        }
    }
    return status;
}

void enqueue(StreamRecord& stream)
{
    if (stream.capture == 0) {
        stream.clock[stream.id] = ++stream.enqueued;
        return;
    }
    CaptureRecord& capture = runtime().captures.at(stream.capture);
    ++capture.nodes;
    const auto node = handle_of<cudaGraphNode_t>(next_id());
    capture.predecessors[node] = std::exchange(stream.frontier, {node});
    if (stream.id != capture.origin) {
        capture.unjoined.insert(stream.id);
    }
}

void complete(const Clock& clock) { merge(runtime().completed, clock); }

void reset()
{
    const std::scoped_lock lock(runtime_mutex());
    runtime() = Runtime{};
    ++generation;
}

std::vector<Call> calls()
{
    const std::scoped_lock lock(runtime_mutex());
    return runtime().calls;
}

void clear_calls()
{
    const std::scoped_lock lock(runtime_mutex());
    runtime().calls.clear();
    runtime().launches.clear();
}

int count(const std::string& name)
{
    int number = 0;
    for (const Call& call : calls()) {
        number += call.name == name ? 1 : 0;
    }
    return number;
}

std::vector<Launch> launches()
{
    const std::scoped_lock lock(runtime_mutex());
    return runtime().launches;
}

void keep_argument_bytes(std::size_t bytes) { runtime().kept_argument_bytes = bytes; }

std::vector<std::string> misuses()
{
    const std::scoped_lock lock(runtime_mutex());
    return runtime().misuses;
}

Live live()
{
    const std::scoped_lock lock(runtime_mutex());
    const Runtime& state = runtime();
    Live result;
    for (const auto& [address, allocation] : state.memory) {
        if (allocation.alive) {
            ++(allocation.kind == MemoryKind::pinned ? result.pinned_allocations : result.device_allocations);
        }
    }
    for (const auto& [id, stream] : state.streams) {
        result.streams += stream.alive && id > 0x1000 ? 1 : 0;  // the default streams belong to the devices
    }
    result.user_objects = static_cast<int>(state.user_objects.size());
    result.events = alive(state.events);
    result.graphs = alive(state.graphs);
    result.graph_executables = alive(state.executables);
    return result;
}

bool inside_runtime() noexcept { return this_thread().depth > 0; }

void fail_call(const std::string& name, int nth, cudaError_t status, bool sticky)
{
    runtime().faults.push_back({name, nth, status, sticky});
}

void fail_call(int nth, cudaError_t status, bool sticky) { fail_call("", nth, status, sticky); }

bool fault_occurred() { return runtime().fault_occurred; }

void set_device_count(int count, cudaError_t status)
{
    runtime().device_count = count;
    runtime().device_count_status = status;
}

void hold(cudaStream_t stream)
{
    if (StreamRecord* record = find_stream(stream, "hold")) {
        record->held = true;
    }
}

void begin_unloading()
{
    const std::scoped_lock lock(runtime_mutex());
    runtime().unloading = true;
}

int calls_while_unloading() { return runtime().calls_while_unloading; }

void on_launch(std::function<void(const Launch&)> run)
{
    const std::scoped_lock lock(runtime_mutex());
    runtime().on_launch = std::move(run);
}

void pass_time(double milliseconds)
{
    const std::scoped_lock lock(runtime_mutex());
    runtime().passed_milliseconds += milliseconds;
}

void register_kernel(const void* function, const char* mangled_name, const cudaFuncAttributes& attributes)
{
    const std::scoped_lock lock(runtime_mutex());
    kernels()[function] = {mangled_name, attributes};
}

cudaFuncAttributes default_attributes()
{
    cudaFuncAttributes attributes{};
    attributes.maxThreadsPerBlock = 1024;
    attributes.numRegs = 32;
    attributes.maxDynamicSharedSizeBytes = 48 * 1024;
    return attributes;
}

void set_encoder_missing(bool missing) { runtime().encoder_missing = missing; }

void set_encoder_status(int status) { runtime().encoder_status = status; }

void set_pointer_attributes_missing(bool missing) { runtime().pointer_attributes_missing = missing; }

}  // namespace tessera::fake
