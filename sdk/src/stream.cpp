#include "tessera/stream.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tessera/event.hpp"
#include "workspace.hpp"

namespace tessera {
namespace detail {

struct DeferredFree {
    void* data;
    bool from_pool;
};

/// The native stream is destroyed with the last owner: the `Stream`, or a buffer that is freed on it.
struct StreamState {
    cudaStream_t stream = nullptr;
    int device = 0;
    std::atomic<int> owners{1};
    bool destroy_with_last_owner = true;
    std::mutex mutex;                    // guards deferred
    std::vector<DeferredFree> deferred;  // to free once the stream is not being captured any more
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

void free_on(cudaStream_t stream, void* data, bool from_pool) noexcept
{
    if (from_pool) {
        drop(cudaFreeAsync(data, stream), "cudaFreeAsync");
    } else {
        drop(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        drop(cudaFree(data), "cudaFree");
    }
}

void defer_free(StreamState& state, void* data, bool from_pool)
{
    const std::scoped_lock lock(state.mutex);
    state.deferred.push_back({data, from_pool});
}

void free_deferred(StreamState* state) noexcept
{
    if (state == nullptr) {
        return;
    }
    const std::scoped_lock lock(state->mutex);
    for (const DeferredFree& deferred : state->deferred) {
        free_on(state->stream, deferred.data, deferred.from_pool);
    }
    state->deferred.clear();
}

bool is_capturing(cudaStream_t stream) noexcept
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) {
        // The legacy default stream answers with an error while another stream is captured in global mode.
        cudaGetLastError();
        return false;
    }
    return status != cudaStreamCaptureStatusNone;
}

}  // namespace detail

namespace {

/// The three handles that mean a default stream belong to whatever device is current.
bool is_default_handle(cudaStream_t stream) noexcept
{
    return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

int device_of(cudaStream_t stream, const std::source_location& caller)
{
    int device = 0;
    // CUDA does not tell the device of a stream that is being captured. Its launches need it to be current anyway.
    if (is_default_handle(stream) || detail::is_capturing(stream)) {
        detail::check(cudaGetDevice(&device), "cudaGetDevice", "StreamRef", caller);
    } else {
        detail::check(cudaStreamGetDevice(stream, &device), "cudaStreamGetDevice", "StreamRef", caller);
    }
    return device;
}

}  // namespace

StreamRef::StreamRef(cudaStream_t stream, std::source_location caller)
    : stream_(stream), device_(device_of(stream, caller))
{}

StreamRef::StreamRef(const Stream& stream, std::source_location caller)
    : stream_(stream.stream_), device_(stream.device_), state_(stream.state_)
{
    if (state_ == nullptr) [[unlikely]] {
        detail::raise(ErrorCode::empty_handle, "Stream", caller, "the stream was moved from or released",
                      "use the object that it was moved to");
    }
}

void StreamRef::synchronize(std::source_location caller) const
{
    const detail::CurrentDevice current(device_, "StreamRef::synchronize", caller);
    detail::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", "StreamRef::synchronize", caller);
}

bool StreamRef::done(std::source_location caller) const
{
    const detail::CurrentDevice current(device_, "StreamRef::done", caller);
    const cudaError_t status = cudaStreamQuery(stream_);
    if (status == cudaErrorNotReady) {
        detail::forget(status);
        return false;
    }
    detail::check(status, "cudaStreamQuery", "StreamRef::done", caller);
    return true;
}

void StreamRef::wait(const Event& event, std::source_location caller) const
{
    if (event.get() == nullptr) {
        detail::raise(ErrorCode::empty_handle, "StreamRef::wait", caller, "the event was moved from or released");
    }
    const detail::CurrentDevice current(device_, "StreamRef::wait", caller);
    detail::check(cudaStreamWaitEvent(stream_, event.get(), 0), "cudaStreamWaitEvent", "StreamRef::wait", caller);
}

void StreamRef::wait(StreamRef other, std::source_location caller) const
{
    const Event event(Device(other.device(), caller), EventKind::ordering, caller);
    event.record(other, caller);
    wait(event, caller);
}

Stream::Stream(std::source_location caller) : Stream(Device::current(caller), caller) {}

Stream::Stream(const Device& device, std::source_location caller) : device_(device.ordinal())
{
    const detail::CurrentDevice current(device_, "Stream", caller);
    auto state = std::make_unique<detail::StreamState>();
    detail::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", "Stream",
                  caller);
    state->stream = stream_;
    state->device = device_;
    state_ = state.release();
}

Stream Stream::adopt(cudaStream_t stream, std::source_location caller)
{
    if (is_default_handle(stream)) {
        detail::raise(ErrorCode::invalid_argument, "Stream::adopt", caller,
                      "a default stream has no owner and cannot be adopted", "use Device::default_stream()");
    }
    const int device = device_of(stream, caller);
    auto state = std::make_unique<detail::StreamState>();
    state->stream = stream;
    state->device = device;
    return {state.release(), stream, device};
}

cudaStream_t Stream::release(std::source_location caller) &&
{
    static_cast<void>(StreamRef(*this, caller));
    state_->destroy_with_last_owner = false;
    detail::release(std::exchange(state_, nullptr));
    device_ = -1;
    return std::exchange(stream_, nullptr);
}

void Stream::synchronize(std::source_location caller) const { StreamRef(*this, caller).synchronize(caller); }

bool Stream::done(std::source_location caller) const { return StreamRef(*this, caller).done(caller); }

void Stream::wait(const Event& event, std::source_location caller) const
{
    StreamRef(*this, caller).wait(event, caller);
}

void Stream::wait(StreamRef other, std::source_location caller) const { StreamRef(*this, caller).wait(other, caller); }

}  // namespace tessera
