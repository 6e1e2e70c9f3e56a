#include "tessera/event.hpp"

namespace tessera {

namespace detail {

void record_event(cudaEvent_t event, StreamRef stream, std::string_view operation, const std::source_location& caller)
{
    const CurrentDevice current(stream.device(), operation, caller);
    check(cudaEventRecord(event, stream.get()), "cudaEventRecord", operation, caller);
}

bool is_event_done(cudaEvent_t event, std::string_view operation, const std::source_location& caller)
{
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady) {
        forget(status);
        return false;
    }
    check(status, "cudaEventQuery", operation, caller);
    return true;
}

}  // namespace detail

Event::Event(EventKind kind, std::source_location caller)
    : Event(detail::current_device("Event", caller).ordinal(), kind, "Event", caller)
{}

Event::Event(const Device& device, EventKind kind, std::source_location caller)
    : Event(device.ordinal(), kind, "Event", caller)
{}

Event::Event(int device, EventKind kind, std::string_view operation, const std::source_location& caller)
    : device_(device), kind_(kind)
{
    const detail::CurrentDevice current(device_, operation, caller);
    const unsigned flags = kind == EventKind::timing ? cudaEventDefault : cudaEventDisableTiming;
    detail::check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreateWithFlags", operation, caller);
}

void Event::destroy() noexcept
{
    if (event_ != nullptr) {
        detail::drop(cudaEventDestroy(event_), "cudaEventDestroy");
    }
}

void Event::require_handle(const char* operation, const std::source_location& caller) const
{
    if (event_ == nullptr) {
        detail::raise(ErrorCode::empty_handle, operation, caller, "the event was moved from",
                      "use the object that it was moved to");
    }
}

void Event::record(StreamRef stream, std::source_location caller) const
{
    require_handle("Event::record", caller);
    detail::require_same_device("Event::record", caller, "the event", device_, "the stream", stream.device());
    detail::record_event(event_, stream, "Event::record", caller);
}

void Event::synchronize(std::source_location caller) const
{
    require_handle("Event::synchronize", caller);
    detail::check(cudaEventSynchronize(event_), "cudaEventSynchronize", "Event::synchronize", caller);
}

bool Event::done(std::source_location caller) const
{
    require_handle("Event::done", caller);
    return detail::is_event_done(event_, "Event::done", caller);
}

double Event::seconds_since(const Event& start, std::source_location caller) const
{
    constexpr const char* operation = "Event::seconds_since";
    require_handle(operation, caller);
    start.require_handle(operation, caller);
    if (kind_ != EventKind::timing || start.kind_ != EventKind::timing) {
        detail::raise(ErrorCode::invalid_argument, operation, caller,
                      "an event of EventKind::ordering has no timestamp", "create both events with EventKind::timing");
    }
    detail::require_same_device(operation, caller, "the start event", start.device_, "the end event", device_);
    float milliseconds = 0;
    const cudaError_t status = cudaEventElapsedTime(&milliseconds, start.event_, event_);
    if (status == cudaErrorNotReady || status == cudaErrorInvalidResourceHandle) {
        cudaGetLastError();
        detail::raise(ErrorCode::invalid_argument, operation, caller,
                      status == cudaErrorNotReady ? "one of the events has not happened yet"
                                                  : "one of the events was never recorded",
                      "record both events and call synchronize() on the later one first");
    }
    detail::check(status, "cudaEventElapsedTime", operation, caller);
    return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace tessera
