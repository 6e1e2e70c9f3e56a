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
#include <string_view>
#include <type_traits>
#include <utility>

#include "tessera/detail/refused.hpp"
#include "tessera/device.hpp"

namespace tessera {

class Event;
class Stream;
class StreamRef;

namespace detail {

struct StreamState;  // a counted reference to a native stream; see stream.cpp
void retain(StreamState* state) noexcept;
void release(StreamState* state) noexcept;

// The steps behind StreamRef, for callers that name an operation of their own in an error.
void synchronize_stream(StreamRef stream, std::string_view operation, const std::source_location& caller);
void wait_for_stream(StreamRef waiting, StreamRef other, std::string_view operation,
                     const std::source_location& caller);
bool is_stream_done(StreamRef stream, std::string_view operation, const std::source_location& caller);

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
///
/// Thread safety: a value; every function may be called from several threads at the same time, on one stream too. Work
/// that several threads enqueue on one stream is in the order of the calls.
class StreamRef {
public:
    /// @throws Error  if CUDA does not know the stream
    StreamRef(cudaStream_t stream, std::source_location caller = std::source_location::current());

    /// @throws Error `empty_handle` if the stream was moved from or released
    StreamRef(const Stream& stream, std::source_location caller = std::source_location::current());
    /// Refused: a temporary stream.
    template <class Temporary>
        requires std::same_as<std::remove_const_t<Temporary>, Stream>
    StreamRef(Temporary&& /*stream*/)
    {
        static_assert(detail::always_false<Temporary>,
                      "tessera: a temporary Stream would be gone before it is used: give the Stream a name");
    }

    /// From any type whose `get()` gives a raw stream.
    template <class Other>
        requires(!std::is_same_v<Other, StreamRef> && !std::is_same_v<Other, Stream> &&
                 requires(const Other& other) {
                     { other.get() } -> std::same_as<cudaStream_t>;
                 })
    StreamRef(const Other& other, std::source_location caller = std::source_location::current())
        : StreamRef(other.get(), caller)
    {}

    /// Refused: 0 and nullptr.
    template <class Zero>
        requires(std::same_as<Zero, int> || std::same_as<Zero, long> || std::same_as<Zero, std::nullptr_t>)
    StreamRef(Zero /*zero*/)
    {
        static_assert(detail::always_false<Zero>,
                      "tessera: 0 or nullptr would be the legacy default stream, which all blocking streams wait for. "
                      "If that is what you want, say device.default_stream()");
    }

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

    /// How urgent the stream's work is; see StreamPriority.
    /// @throws Error `capture_violation` while the stream is being captured
    int priority(std::source_location caller = std::source_location::current()) const;

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
    cudaStream_t stream_ = nullptr;
    int device_ = -1;
    detail::StreamState* state_ = nullptr;
};

/// How urgent a stream's work is, next to that of other streams of its device: CTAs of the more urgent one go first
/// where both wait for an SM. A hint to the device, which is no order between streams.
struct StreamPriority {
    /// In CUDA's numbers: 0 is the default and the least urgent, -1 is more urgent, and so on.
    int value = 0;

    /// The most urgent that `device` has.
    static StreamPriority most_urgent(const Device& device,
                                      std::source_location caller = std::source_location::current());
};

/// Owns a stream. Move-only. Destruction does not wait: enqueued work is completed, then the stream goes. After a move,
/// every use but `get()` and `device()` throws `empty_handle`.
///
/// Thread safety: const functions may be called at the same time, and so may functions that take the stream; not while
/// it is being moved, released or destroyed.
class Stream {
public:
    /// A new non-blocking stream (it does not synchronize with the legacy default stream) on the current device.
    explicit Stream(std::source_location caller = std::source_location::current());
    /// The same on `device`.
    explicit Stream(const Device& device, std::source_location caller = std::source_location::current());

    /// The same with a priority.
    /// @throws Error `out_of_range` for a priority that the device does not have
    Stream(const Device& device, StreamPriority priority,
           std::source_location caller = std::source_location::current());

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
    /// The same as on StreamRef.
    int priority(std::source_location caller = std::source_location::current()) const;

private:
    friend class StreamRef;

    Stream(int device, const StreamPriority* priority, std::source_location caller);
    StreamRef ref(std::string_view operation, const std::source_location& caller) const;

    Stream(detail::StreamState* state, cudaStream_t stream, int device) noexcept
        : state_(state), stream_(stream), device_(device)
    {}

    detail::StreamState* state_ = nullptr;
    cudaStream_t stream_ = nullptr;
    int device_ = -1;
};

}  // namespace tessera
