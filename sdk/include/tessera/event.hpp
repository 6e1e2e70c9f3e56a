#pragma once

/// @file
/// @ingroup host_streams
/// @brief Events: points in a stream's work that another stream or the host can wait for, and clocks to time work.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <source_location>
#include <string_view>
#include <utility>

#include "tessera/stream.hpp"

namespace tessera {

/// What an event is for. `ordering` events are cheaper: the device writes no time stamp.
enum class EventKind : std::uint8_t {
    ordering,  ///< can be waited for
    timing     ///< can be waited for, and records the time
};

namespace detail {

class PinnedMemory;

// The implementation of Event and StreamRef, for callers that name their own operation in an error.
void record_event(cudaEvent_t event, StreamRef stream, std::string_view operation, const std::source_location& caller);
bool is_event_done(cudaEvent_t event, std::string_view operation, const std::source_location& caller);

}  // namespace detail

/// Owns an event. Move-only. Destruction does not wait. After a move, every use but `get()` and `device()` throws
/// `empty_handle`.
///
/// @code{.cpp}
/// const Event start(EventKind::timing);
/// const Event end(EventKind::timing);
/// start.record(stream);
/// Gemm::launch(stream, a.matrix(m, k), b.matrix(k, n), d.matrix(m, n));
/// end.record(stream);
/// end.synchronize();
/// std::printf("%.1f us\n", end.seconds_since(start) * 1e6);
/// @endcode
///
/// @par Thread safety
/// Const functions, `record` among them, may be called at the same time; of two recordings, the later one counts. Not
/// while the event is being moved or destroyed.
class Event {
public:
    /// Creates an event of the current device that has not been recorded.
    explicit Event(EventKind kind = EventKind::ordering, std::source_location caller = std::source_location::current());
    /// Creates an event of `device` that has not been recorded.
    explicit Event(const Device& device, EventKind kind = EventKind::ordering,
                   std::source_location caller = std::source_location::current());

    /// Moves the event; `other` is empty afterwards.
    Event(Event&& other) noexcept
        : event_(std::exchange(other.event_, nullptr)), device_(std::exchange(other.device_, -1)), kind_(other.kind_)
    {}
    /// Destroys this event, then moves; `other` is empty afterwards.
    Event& operator=(Event&& other) noexcept
    {
        if (this != &other) {
            destroy();
            event_ = std::exchange(other.event_, nullptr);
            device_ = std::exchange(other.device_, -1);
            kind_ = other.kind_;
        }
        return *this;
    }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    /// Destroys the event. Does not wait.
    ~Event() { destroy(); }

    /// Records the event: it happens when everything enqueued on `stream` so far is done. Does not block. Recording
    /// again moves it.
    /// @throws Error  `device_mismatch` if `stream` is of another device, `empty_handle`
    void record(StreamRef stream, std::source_location caller = std::source_location::current()) const;

    /// Blocks the calling thread until the event has happened. Returns at once if it was never recorded.
    /// @throws Error  `context_lost` if work before it failed, `empty_handle`
    void synchronize(std::source_location caller = std::source_location::current()) const;

    /// Returns true if the event has happened or was never recorded. Does not block.
    /// @throws Error  `context_lost` if work before it failed, `empty_handle`
    bool done(std::source_location caller = std::source_location::current()) const;

    /// Returns the device time in seconds from `start` to this event, with a resolution of about half a microsecond.
    /// Does not block.
    /// @pre Both are `timing` events of one device and have happened.
    /// @throws Error  `invalid_argument` if one of them has no clock, was not recorded or has not happened yet,
    ///                `device_mismatch`, `empty_handle`
    double seconds_since(const Event& start, std::source_location caller = std::source_location::current()) const;

    /// Returns the raw event, or null after a move.
    cudaEvent_t get() const noexcept { return event_; }
    /// Returns the ordinal of the event's device, -1 after a move.
    int device() const noexcept { return device_; }
    /// Returns what the event was made for.
    EventKind kind() const noexcept { return kind_; }

private:
    friend class detail::PinnedMemory;
    friend void detail::wait_for_stream(StreamRef waiting, StreamRef other, std::string_view operation,
                                        const std::source_location& caller);

    Event(int device, EventKind kind, std::string_view operation, const std::source_location& caller);
    void destroy() noexcept;
    void require_handle(const char* operation, const std::source_location& caller) const;

    cudaEvent_t event_ = nullptr;
    int device_ = -1;
    EventKind kind_ = EventKind::ordering;
};

}  // namespace tessera
