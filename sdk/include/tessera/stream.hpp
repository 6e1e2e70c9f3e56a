#pragma once

/// @file
/// @ingroup host_streams
/// @brief Streams: `Stream` owns one, `StreamRef` refers to one. All work of the SDK is enqueued on a stream.
///
/// Work is asynchronous unless a function says that it blocks.

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

// The implementation of StreamRef, for callers that name their own operation in an error.
void synchronize_stream(StreamRef stream, std::string_view operation, const std::source_location& caller);
void wait_for_stream(StreamRef waiting, StreamRef other, std::string_view operation,
                     const std::source_location& caller);
bool is_stream_done(StreamRef stream, std::string_view operation, const std::source_location& caller);

struct KnownDevice {};
inline constexpr KnownDevice known_device{};

/// Returns true while `stream` is being captured into a graph. This is one of the few questions that CUDA answers then:
/// asking for the stream's id or device gives cudaErrorStreamCaptureUnsupported and breaks the capture.
bool is_capturing(cudaStream_t stream) noexcept;
/// Returns a number that no other stream of the process has, also after this one is destroyed. Not during a capture.
unsigned long long id_of_stream(StreamRef stream, std::string_view operation, const std::source_location& caller);

}  // namespace detail

/// A stream that somebody else owns. A small value, valid as long as the owner.
///
/// Converts from `Stream`, from a raw `cudaStream_t` and from any type with a `get()` that returns one
/// (`cuda::stream_ref`). The constructor asks CUDA for a raw stream's device. CUDA does not tell the device of a stream
/// that is being captured; the current device is used then.
///
/// @par Thread safety
/// A value. Every function may be called from several threads at the same time, also on one stream. Work that several
/// threads enqueue on one stream runs in the order of the calls.
class StreamRef {
public:
    /// Refers to a raw stream.
    /// @throws Error  `cuda_failure` or another code if CUDA does not know the stream
    StreamRef(cudaStream_t stream, std::source_location caller = std::source_location::current());

    /// Refers to a stream that a `Stream` owns.
    /// @throws Error  `empty_handle` if the stream was moved from or released
    StreamRef(const Stream& stream, std::source_location caller = std::source_location::current());
    /// Refuses to compile for a temporary stream.
    template <class Temporary>
        requires std::same_as<std::remove_const_t<Temporary>, Stream>
    StreamRef(Temporary&& /*stream*/)
    {
        static_assert(detail::always_false<Temporary>,
                      "tessera: a temporary Stream would be gone before it is used: give the Stream a name");
    }

    /// Refers to the stream of any type whose `get()` returns a raw stream.
    template <class Other>
        requires(!std::is_same_v<Other, StreamRef> && !std::is_same_v<Other, Stream> &&
                 requires(const Other& other) {
                     { other.get() } -> std::same_as<cudaStream_t>;
                 })
    StreamRef(const Other& other, std::source_location caller = std::source_location::current())
        : StreamRef(other.get(), caller)
    {}

    /// Refuses to compile for 0 and nullptr.
    template <class Zero>
        requires(std::same_as<Zero, int> || std::same_as<Zero, long> || std::same_as<Zero, std::nullptr_t>)
    StreamRef(Zero /*zero*/)
    {
        static_assert(detail::always_false<Zero>,
                      "tessera: 0 or nullptr would be the legacy default stream, which all blocking streams wait for. "
                      "If that is what you want, write device.default_stream()");
    }

    /// For the SDK: refers to a stream whose device is known.
    StreamRef(detail::KnownDevice, cudaStream_t stream, int device, detail::StreamState* state) noexcept
        : stream_(stream), device_(device), state_(state)
    {}

    /// Returns the raw stream.
    cudaStream_t get() const noexcept { return stream_; }
    /// Returns the ordinal of the stream's device.
    int device() const noexcept { return device_; }

    /// Blocks the calling thread until all work enqueued so far is done.
    /// @throws Error  `context_lost` if some of that work failed, `capture_violation` while the stream is being
    ///                captured
    void synchronize(std::source_location caller = std::source_location::current()) const;

    /// Returns true if all work enqueued so far is done. Does not block.
    /// @throws Error  `context_lost` if some of that work failed, `capture_violation` while the stream is being
    ///                captured
    bool done(std::source_location caller = std::source_location::current()) const;

    /// Makes work that is enqueued on this stream from now on start only after `event` has happened. Does not block the
    /// host. The event may be of another device.
    /// @throws Error  `empty_handle` if the event was moved from
    void wait(const Event& event, std::source_location caller = std::source_location::current()) const;

    /// Makes work that is enqueued on this stream from now on start only after everything enqueued on `other` so far.
    /// Does not block the host. `other` may be of another device.
    void wait(StreamRef other, std::source_location caller = std::source_location::current()) const;

    /// Returns how urgent the stream's work is, in the numbers of StreamPriority.
    /// @throws Error  `capture_violation` while the stream is being captured
    int priority(std::source_location caller = std::source_location::current()) const;

    /// Returns true while the stream is being captured into a graph.
    bool is_capturing() const noexcept { return detail::is_capturing(stream_); }

    /// For the SDK: returns what keeps the stream alive, or null for a raw stream.
    detail::StreamState* state() const noexcept { return state_; }

    /// Returns true for the same stream of the same device.
    friend bool operator==(const StreamRef& left, const StreamRef& right) noexcept
    {
        return left.stream_ == right.stream_ && left.device_ == right.device_;
    }

private:
    cudaStream_t stream_ = nullptr;
    int device_ = -1;
    detail::StreamState* state_ = nullptr;
};

/// How urgent a stream's work is, compared with other streams of its device: where CTAs of two streams wait for an SM,
/// those of the more urgent stream go first. A hint to the device, not an order between streams.
struct StreamPriority {
    /// In CUDA's numbers: 0 is the default and the least urgent, -1 is more urgent, and so on.
    int value = 0;

    /// Returns the most urgent priority of `device`.
    static StreamPriority most_urgent(const Device& device,
                                      std::source_location caller = std::source_location::current());
};

/// Owns a stream. Move-only.
///
/// @code{.cpp}
/// Stream copies(device);
/// Stream urgent(device, StreamPriority::most_urgent(device));
/// urgent.wait(copies);  // later work of `urgent` runs after what is on `copies` now
/// @endcode
///
/// @par Lifetime
/// Destruction does not wait: enqueued work is completed, then CUDA's stream is destroyed. The CUDA stream lives as
/// long as its `Stream` or any `DeviceBuffer` that will be freed on it, so destroying the `Stream` first is safe. After
/// a move, every use but `get()` and `device()` throws `empty_handle`.
///
/// @par Thread safety
/// Const functions may be called at the same time, and so may functions that take the stream. Not while it is being
/// moved, released or destroyed.
class Stream {
public:
    /// Creates a non-blocking stream on the current device. It does not synchronize with the legacy default stream.
    /// @throws Error  `no_device` if there is none
    explicit Stream(std::source_location caller = std::source_location::current());
    /// Creates a non-blocking stream on `device`.
    explicit Stream(const Device& device, std::source_location caller = std::source_location::current());

    /// Creates a non-blocking stream on `device` with a priority.
    /// @throws Error  `out_of_range` for a priority that the device does not have
    Stream(const Device& device, StreamPriority priority,
           std::source_location caller = std::source_location::current());

    /// Takes over a stream that came from cudaStreamCreate*. The caller must no longer destroy it.
    /// @throws Error  `invalid_argument` for a default stream, which has no owner
    static Stream adopt(cudaStream_t stream, std::source_location caller = std::source_location::current());

    /// Gives the stream away. The caller destroys it with cudaStreamDestroy, after every buffer made on it has been
    /// destroyed.
    /// @return the raw stream
    /// @throws Error  `empty_handle` if the stream was moved from or released
    cudaStream_t release(std::source_location caller = std::source_location::current()) &&;

    /// Moves the stream; `other` is empty afterwards.
    Stream(Stream&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)),
          stream_(std::exchange(other.stream_, nullptr)),
          device_(std::exchange(other.device_, -1))
    {}
    /// Gives up this stream, then moves; `other` is empty afterwards.
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
    /// Does not wait. CUDA's stream is destroyed once its work is done and no buffer will be freed on it.
    ~Stream() { detail::release(state_); }

    /// Returns the raw stream, or null after a move.
    cudaStream_t get() const noexcept { return stream_; }
    /// Returns the ordinal of the stream's device, -1 after a move.
    int device() const noexcept { return device_; }

    /// Blocks the calling thread until all work enqueued so far is done. @see StreamRef::synchronize
    void synchronize(std::source_location caller = std::source_location::current()) const;
    /// Returns true if all work enqueued so far is done. Does not block. @see StreamRef::done
    bool done(std::source_location caller = std::source_location::current()) const;
    /// Makes later work of this stream start only after `event` has happened. @see StreamRef::wait
    void wait(const Event& event, std::source_location caller = std::source_location::current()) const;
    /// Makes later work of this stream start only after everything enqueued on `other` so far. @see StreamRef::wait
    void wait(StreamRef other, std::source_location caller = std::source_location::current()) const;
    /// Returns how urgent the stream's work is. @see StreamRef::priority
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
