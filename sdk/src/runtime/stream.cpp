#include "tessera/stream.hpp"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "gemm/workspace.hpp"
#include "memory/owned_memory.hpp"
#include "tessera/event.hpp"

namespace tessera {
namespace detail {

/// The native stream is destroyed with its last owner: the `Stream`, or a buffer that is freed on it.
struct StreamState {
    cudaStream_t stream = nullptr;
    int device = 0;
    std::atomic<int> owners{1};
    bool destroy_with_last_owner = true;
    std::atomic<unsigned long long> id{0};  // 0: not asked yet
    std::mutex mutex;                       // guards deferred
    std::vector<OwnedMemory> deferred;      // to free when the stream is no longer being captured
};

void retain(StreamState* state) noexcept
{
    if (state != nullptr) {
        state->owners.fetch_add(1, std::memory_order_relaxed);
    }
}

void release(StreamState* state) noexcept
{
    if (state != nullptr && state->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        free_deferred(state);
        if (state->destroy_with_last_owner) {
            release_workspace(state->stream, state->device);
            drop(cudaStreamDestroy(state->stream), "cudaStreamDestroy");
        }
        delete state;
    }
}

void defer_free(StreamState& state, const OwnedMemory& memory)
{
    const std::scoped_lock lock(state.mutex);
    state.deferred.push_back(memory);
}

void free_deferred(StreamState* state) noexcept
{
    if (state == nullptr) {
        return;
    }
    const std::scoped_lock lock(state->mutex);
    if (state->deferred.empty()) {
        return;
    }
    const DestructorsDevice current(state->device);
    for (const OwnedMemory& deferred : state->deferred) {
        free_on(state->stream, deferred);
    }
    state->deferred.clear();
}

void synchronize_stream(StreamRef stream, std::string_view operation, const std::source_location& caller)
{
    const CurrentDevice current(stream.device(), operation, caller);
    check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize", operation, caller);
}

bool is_stream_done(StreamRef stream, std::string_view operation, const std::source_location& caller)
{
    const CurrentDevice current(stream.device(), operation, caller);
    const cudaError_t status = cudaStreamQuery(stream.get());
    if (status == cudaErrorNotReady) {
        forget(status);
        return false;
    }
    check(status, "cudaStreamQuery", operation, caller);
    return true;
}

void wait_for_event(StreamRef stream, cudaEvent_t event, std::string_view operation, const std::source_location& caller)
{
    const CurrentDevice current(stream.device(), operation, caller);
    check(cudaStreamWaitEvent(stream.get(), event, 0), "cudaStreamWaitEvent", operation, caller);
}

void wait_for_stream(StreamRef waiting, StreamRef other, std::string_view operation, const std::source_location& caller)
{
    const Event event(other.device(), EventKind::ordering, operation, caller);
    record_event(event.get(), other, operation, caller);
    wait_for_event(waiting, event.get(), operation, caller);
}

bool is_capturing(cudaStream_t stream) noexcept
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) {
        // The legacy default stream returns an error while another stream is captured in global mode.
        cudaGetLastError();
        return false;
    }
    return status != cudaStreamCaptureStatusNone;
}

unsigned long long id_of_stream(StreamRef stream, std::string_view operation, const std::source_location& caller)
{
    StreamState* const state = stream.state();
    unsigned long long id = state != nullptr ? state->id.load(std::memory_order_relaxed) : 0;
    if (id == 0) {
        check(cudaStreamGetId(stream.get(), &id), "cudaStreamGetId", operation, caller);
        if (state != nullptr) {
            state->id.store(id, std::memory_order_relaxed);
        }
    }
    return id;
}

}  // namespace detail

namespace {

/// The three default-stream handles belong to whatever device is current.
bool is_default_handle(cudaStream_t stream) noexcept
{
    return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

int device_of(cudaStream_t stream, std::string_view operation, const std::source_location& caller)
{
    int device = 0;
    // CUDA does not tell the device of a stream that is being captured. Launches on it need that device to be current.
    if (is_default_handle(stream) || detail::is_capturing(stream)) {
        detail::check(cudaGetDevice(&device), "cudaGetDevice", operation, caller);
    } else {
        detail::check(cudaStreamGetDevice(stream, &device), "cudaStreamGetDevice", operation, caller);
    }
    return device;
}

cudaEvent_t require_event(const Event& event, std::string_view operation, const std::source_location& caller)
{
    if (event.get() == nullptr) {
        detail::raise(ErrorCode::empty_handle, operation, caller, "the event was moved from",
                      "use the object that it was moved to");
    }
    return event.get();
}

struct Priorities {
    int least = 0;     // least urgent: the largest number
    int greatest = 0;  // most urgent: the smallest number
};

Priorities priorities_of(int device, std::string_view operation, const std::source_location& caller)
{
    const detail::CurrentDevice current(device, operation, caller);
    Priorities priorities;
    detail::check(cudaDeviceGetStreamPriorityRange(&priorities.least, &priorities.greatest),
                  "cudaDeviceGetStreamPriorityRange", operation, caller);
    return priorities;
}

/// Refuses a priority that is out of range; CUDA would silently use the nearest one.
void require_priority(int device, StreamPriority priority, const std::source_location& caller)
{
    const Priorities range = priorities_of(device, "Stream", caller);
    if (priority.value < range.greatest || priority.value > range.least) {
        detail::raise(ErrorCode::out_of_range, "Stream", caller,
                      fmt::format("device {} has no stream priority {}", device, priority.value),
                      fmt::format("{} (the least urgent) to {} (the most urgent)", range.least, range.greatest));
    }
}

int priority_of(StreamRef stream, std::string_view operation, const std::source_location& caller)
{
    const detail::CurrentDevice current(stream.device(), operation, caller);
    int priority = 0;
    detail::check(cudaStreamGetPriority(stream.get(), &priority), "cudaStreamGetPriority", operation, caller);
    return priority;
}

}  // namespace

StreamRef::StreamRef(cudaStream_t stream, std::source_location caller)
    : stream_(stream), device_(device_of(stream, "StreamRef", caller))
{}

StreamRef::StreamRef(const Stream& stream, std::source_location caller) : StreamRef(stream.ref("Stream", caller)) {}

void StreamRef::synchronize(std::source_location caller) const
{
    detail::synchronize_stream(*this, "StreamRef::synchronize", caller);
}

bool StreamRef::done(std::source_location caller) const
{
    return detail::is_stream_done(*this, "StreamRef::done", caller);
}

void StreamRef::wait(const Event& event, std::source_location caller) const
{
    detail::wait_for_event(*this, require_event(event, "StreamRef::wait", caller), "StreamRef::wait", caller);
}

void StreamRef::wait(StreamRef other, std::source_location caller) const
{
    detail::wait_for_stream(*this, other, "StreamRef::wait", caller);
}

int StreamRef::priority(std::source_location caller) const { return priority_of(*this, "StreamRef::priority", caller); }

StreamPriority StreamPriority::most_urgent(const Device& device, std::source_location caller)
{
    return {priorities_of(device.ordinal(), "StreamPriority::most_urgent", caller).greatest};
}

Stream::Stream(std::source_location caller)
    : Stream(detail::current_device("Stream", caller).ordinal(), nullptr, caller)
{}

Stream::Stream(const Device& device, std::source_location caller) : Stream(device.ordinal(), nullptr, caller) {}

Stream::Stream(const Device& device, StreamPriority priority, std::source_location caller)
    : Stream(device.ordinal(), &priority, caller)
{}

Stream::Stream(int device, const StreamPriority* priority, std::source_location caller) : device_(device)
{
    const detail::CurrentDevice current(device_, "Stream", caller);
    auto state = std::make_unique<detail::StreamState>();
    if (priority == nullptr) {
        detail::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", "Stream",
                      caller);
    } else {
        require_priority(device_, *priority, caller);
        detail::check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority->value),
                      "cudaStreamCreateWithPriority", "Stream", caller);
    }
    state->stream = stream_;
    state->device = device_;
    state_ = state.release();
}

StreamRef Stream::ref(std::string_view operation, const std::source_location& caller) const
{
    if (state_ == nullptr) [[unlikely]] {
        detail::raise(ErrorCode::empty_handle, operation, caller, "the stream was moved from or released",
                      "use the object that it was moved to");
    }
    return {detail::known_device, stream_, device_, state_};
}

Stream Stream::adopt(cudaStream_t stream, std::source_location caller)
{
    constexpr std::string_view operation = "Stream::adopt";
    if (is_default_handle(stream)) {
        detail::raise(ErrorCode::invalid_argument, operation, caller,
                      "a default stream has no owner and cannot be adopted", "use Device::default_stream()");
    }
    const int device = device_of(stream, operation, caller);
    auto state = std::make_unique<detail::StreamState>();
    state->stream = stream;
    state->device = device;
    return {state.release(), stream, device};
}

cudaStream_t Stream::release(std::source_location caller) &&
{
    static_cast<void>(ref("Stream::release", caller));
    state_->destroy_with_last_owner = false;
    detail::release(std::exchange(state_, nullptr));
    device_ = -1;
    return std::exchange(stream_, nullptr);
}

void Stream::synchronize(std::source_location caller) const
{
    constexpr std::string_view operation = "Stream::synchronize";
    detail::synchronize_stream(ref(operation, caller), operation, caller);
}

bool Stream::done(std::source_location caller) const
{
    constexpr std::string_view operation = "Stream::done";
    return detail::is_stream_done(ref(operation, caller), operation, caller);
}

void Stream::wait(const Event& event, std::source_location caller) const
{
    constexpr std::string_view operation = "Stream::wait";
    const StreamRef self = ref(operation, caller);
    detail::wait_for_event(self, require_event(event, operation, caller), operation, caller);
}

void Stream::wait(StreamRef other, std::source_location caller) const
{
    constexpr std::string_view operation = "Stream::wait";
    detail::wait_for_stream(ref(operation, caller), other, operation, caller);
}

int Stream::priority(std::source_location caller) const
{
    constexpr std::string_view operation = "Stream::priority";
    return priority_of(ref(operation, caller), operation, caller);
}

}  // namespace tessera
