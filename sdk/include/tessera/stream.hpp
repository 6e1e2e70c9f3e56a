#pragma once

/// Streams: `Stream` owns one, `StreamRef` names one. All work of the SDK is enqueued on a stream and asynchronous
/// unless a function says that it blocks.
///
/// A stream lives as long as its `Stream` or any `DeviceBuffer` that will be freed on it: destroying the `Stream` first
/// is safe.

#include <cuda_runtime_api.h>

#include <concepts>
#include <cstddef>
#include <source_location>
#include <type_traits>
#include <utility>

#include "tessera/device.hpp"

namespace tessera {

class Event;
class Stream;

namespace detail {

struct StreamState;  // a counted reference to a native stream; see stream.cpp
void retain(StreamState* state) noexcept;
void release(StreamState* state) noexcept;

/// Gives memory back in the order of the stream. What is not from a pool is freed after a wait: cudaFree need not wait
/// for kernels that still use the memory.
void free_on(cudaStream_t stream, void* data, bool from_pool) noexcept;
/// Keeps memory whose owner died while the stream was being captured: a capture takes frees of its own memory only.
void defer_free(StreamState& state, void* data, bool from_pool);
/// Frees on the stream, after its capture, what was deferred.
void free_deferred(StreamState* state) noexcept;

struct KnownDevice {};
inline constexpr KnownDevice known_device{};

/// True while `stream` is being captured into a graph. That is one of the few questions that CUDA answers then: what
/// asks for the stream's id or device gets cudaErrorStreamCaptureUnsupported and breaks the capture.
bool is_capturing(cudaStream_t stream) noexcept;

}  // namespace detail

/// A stream that somebody else owns. A small value, valid while that owner is.
///
/// Converts from `Stream`, from a raw `cudaStream_t` and from any type with a `get()` that returns one
/// (`cuda::stream_ref`). A raw stream's device is asked for once, here. While it is being captured, CUDA does not tell:
/// the current device is taken for it.
class StreamRef {
public:
    /// @throws Error  if CUDA does not know the stream
    StreamRef(cudaStream_t stream, std::source_location caller = std::source_location::current());

    /// @throws Error `empty_handle` if the stream was moved from or released
    StreamRef(const Stream& stream, std::source_location caller = std::source_location::current());
    StreamRef(const Stream&& stream,
              std::source_location caller = std::source_location::current()) = delete;  // dies first

    /// From any type whose `get()` gives a raw stream.
    template <class Other>
        requires(!std::is_same_v<Other, StreamRef> && !std::is_same_v<Other, Stream> &&
                 requires(const Other& other) {
                     { other.get() } -> std::same_as<cudaStream_t>;
                 })
    StreamRef(const Other& other, std::source_location caller = std::source_location::current())
        : StreamRef(other.get(), caller)
    {}

    StreamRef(int) = delete;             // 0 would be the default stream: say Device::default_stream()
    StreamRef(std::nullptr_t) = delete;  // likewise

    /// For the SDK: a stream whose device is known.
    StreamRef(detail::KnownDevice, cudaStream_t stream, int device, detail::StreamState* state) noexcept
        : stream_(stream), device_(device), state_(state)
    {}

    /// The raw stream.
    cudaStream_t get() const noexcept { return stream_; }
    /// The ordinal of the stream's device.
    int device() const noexcept { return device_; }

    /// Blocks the calling thread until all work enqueued so far is done.
    /// @throws Error `context_lost` if some of that work failed
    void synchronize(std::source_location caller = std::source_location::current()) const;

    /// True if all work enqueued so far is done. Does not block.
    bool done(std::source_location caller = std::source_location::current()) const;

    /// Work enqueued from now on starts only after `event` has happened. Does not block. The event may be of another
    /// device.
    void wait(const Event& event, std::source_location caller = std::source_location::current()) const;

    /// Work enqueued on this stream from now on starts only after everything enqueued on `other` so far. Does not
    /// block.
    void wait(StreamRef other, std::source_location caller = std::source_location::current()) const;

    /// True while the stream is being captured into a graph.
    bool is_capturing() const noexcept { return detail::is_capturing(stream_); }

    /// For the SDK: what keeps the stream alive, or null for a raw stream.
    detail::StreamState* state() const noexcept { return state_; }

    /// True for the same stream of the same device.
    friend bool operator==(const StreamRef& left, const StreamRef& right) noexcept
    {
        return left.stream_ == right.stream_ && left.device_ == right.device_;
    }

private:
    cudaStream_t stream_;
    int device_;
    detail::StreamState* state_ = nullptr;
};

/// Owns a stream. Move-only. Destruction does not wait: enqueued work is completed, then the stream goes.
class Stream {
public:
    /// A new non-blocking stream (it does not synchronize with the legacy default stream) on the current device.
    explicit Stream(std::source_location caller = std::source_location::current());
    /// The same on `device`.
    explicit Stream(const Device& device, std::source_location caller = std::source_location::current());

    /// Takes over a stream that came from cudaStreamCreate*. The caller must not destroy it any more.
    static Stream adopt(cudaStream_t stream, std::source_location caller = std::source_location::current());

    /// Gives the stream away; the caller destroys it with cudaStreamDestroy, after every buffer made on it is gone.
    cudaStream_t release(std::source_location caller = std::source_location::current()) &&;

    /// The other one is empty afterwards.
    Stream(Stream&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)),
          stream_(std::exchange(other.stream_, nullptr)),
          device_(std::exchange(other.device_, -1))
    {}
    /// The other one is empty afterwards.
    Stream& operator=(Stream&& other) noexcept
    {
        if (this != &other) {
            detail::release(state_);
            state_ = std::exchange(other.state_, nullptr);
            stream_ = std::exchange(other.stream_, nullptr);
            device_ = std::exchange(other.device_, -1);
        }
        return *this;
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { detail::release(state_); }

    /// The raw stream, or null after a move.
    cudaStream_t get() const noexcept { return stream_; }
    /// The ordinal of the stream's device, -1 after a move.
    int device() const noexcept { return device_; }

    /// The same as on StreamRef.
    void synchronize(std::source_location caller = std::source_location::current()) const;
    /// The same as on StreamRef.
    bool done(std::source_location caller = std::source_location::current()) const;
    /// The same as on StreamRef.
    void wait(const Event& event, std::source_location caller = std::source_location::current()) const;
    /// The same as on StreamRef.
    void wait(StreamRef other, std::source_location caller = std::source_location::current()) const;

private:
    friend class StreamRef;

    Stream(detail::StreamState* state, cudaStream_t stream, int device) noexcept
        : state_(state), stream_(stream), device_(device)
    {}

    detail::StreamState* state_ = nullptr;
    cudaStream_t stream_ = nullptr;
    int device_ = -1;
};

}  // namespace tessera
