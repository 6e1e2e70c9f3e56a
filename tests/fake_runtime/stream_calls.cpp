/// The fake runtime's streams and events.

#include "runtime_state.hpp"

using namespace tessera::fake;

namespace {

/// Breaks the capture, for a call that waits for or queries captured work or its stream.
bool breaks_capture(std::uint64_t capture)
{
    const auto found = runtime().captures.find(capture);
    if (found == runtime().captures.end()) {
        return false;
    }
    found->second.invalid = true;
    return true;
}

bool is_completed(const Clock& clock)
{
    for (const auto& [stream, operation] : clock) {
        const auto found = runtime().streams.find(stream);
        if (found != runtime().streams.end() && found->second.held && !covers(runtime().completed, stream, operation)) {
            return false;
        }
    }
    complete(clock);  // nothing holds it, so it may be done by now
    return true;
}

}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/)
{
    return call("cudaStreamCreateWithFlags", [&] {
        const std::uint64_t id = next_id();
        runtime().streams[id] = {.id = id, .device = this_thread().device};
        *stream = handle_of<cudaStream_t>(id);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int priority)
{
    return call("cudaStreamCreateWithPriority", [&] {
        const std::uint64_t id = next_id();
        runtime().streams[id] = {.id = id, .device = this_thread().device, .priority = priority};
        *stream = handle_of<cudaStream_t>(id);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest)
{
    return call("cudaDeviceGetStreamPriorityRange", [&] {
        *least = 0;
        *greatest = this_thread().device == t4 ? -1 : -5;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority)
{
    return call("cudaStreamGetPriority", [&] {
        const StreamRecord* record = find_stream(stream, "cudaStreamGetPriority");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        *priority = record->priority;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return call("cudaStreamDestroy", OnFault::perform, [&] {
        StreamRecord* record = find_stream(stream, "cudaStreamDestroy");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        record->alive = false;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device)
{
    return call("cudaStreamGetDevice", [&] {
        const StreamRecord* record = find_stream(stream, "cudaStreamGetDevice");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (breaks_capture(record->capture)) {
            return cudaErrorStreamCaptureUnsupported;
        }
        *device = record->device;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id)
{
    return call("cudaStreamGetId", [&] {
        const StreamRecord* record = find_stream(stream, "cudaStreamGetId");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (breaks_capture(record->capture)) {
            return cudaErrorStreamCaptureUnsupported;
        }
        *id = record->id;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return call("cudaStreamSynchronize", OnFault::perform, [&] {
        const StreamRecord* record = find_stream(stream, "cudaStreamSynchronize");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (breaks_capture(record->capture)) {
            return cudaErrorStreamCaptureUnsupported;
        }
        complete(record->clock);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return call("cudaStreamQuery", [&] {
        const StreamRecord* record = find_stream(stream, "cudaStreamQuery");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (breaks_capture(record->capture)) {
            return cudaErrorStreamCaptureUnsupported;
        }
        return is_completed(record->clock) ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/)
{
    return call("cudaStreamWaitEvent", [&] {
        StreamRecord* waiting = find_stream(stream, "cudaStreamWaitEvent");
        const EventRecord* waited = find_event(event, "cudaStreamWaitEvent");
        if (waiting == nullptr || waited == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (waited->capture != 0 && runtime().captures.contains(waited->capture)) {
            CaptureRecord& capture = runtime().captures.at(waited->capture);
            if (waiting->capture == 0) {
                waiting->capture = waited->capture;  // the stream joins the capture
                waiting->frontier.clear();
                capture.unjoined.insert(waiting->id);
            }
            if (waiting->id == capture.origin) {
                capture.unjoined.erase(waited->stream);
            }
            waiting->frontier.insert(waiting->frontier.end(), waited->frontier.begin(), waited->frontier.end());
            return cudaSuccess;
        }
        if (waiting->capture != 0) {
            breaks_capture(waiting->capture);
            return cudaErrorStreamCaptureIsolation;
        }
        merge(waiting->clock, waited->clock);
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags)
{
    return call("cudaEventCreateWithFlags", [&] {
        const std::uint64_t id = next_id();
        runtime().events[id] = {.device = this_thread().device, .timing = (flags & cudaEventDisableTiming) == 0};
        *event = handle_of<cudaEvent_t>(id);
        return cudaSuccess;
    });
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return call("cudaEventDestroy", OnFault::perform, [&] {
        EventRecord* record = find_event(event, "cudaEventDestroy");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        record->alive = false;
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return call("cudaEventRecord", [&] {
        EventRecord* recorded = find_event(event, "cudaEventRecord");
        StreamRecord* on = find_stream(stream, "cudaEventRecord");
        if (recorded == nullptr || on == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (recorded->device != on->device) {
            runtime().misuse("cudaEventRecord of an event on a stream of another device");
            return cudaErrorInvalidResourceHandle;
        }
        recorded->recorded = true;
        recorded->order = ++runtime().event_order;
        recorded->passed_milliseconds = runtime().passed_milliseconds;
        recorded->capture = on->capture;
        recorded->stream = on->id;
        recorded->clock = on->clock;
        recorded->frontier = on->frontier;
        return cudaSuccess;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return call("cudaEventSynchronize", OnFault::perform, [&] {
        const EventRecord* record = find_event(event, "cudaEventSynchronize");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (breaks_capture(record->capture)) {
            return cudaErrorCapturedEvent;
        }
        complete(record->clock);
        return cudaSuccess;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return call("cudaEventQuery", [&] {
        const EventRecord* record = find_event(event, "cudaEventQuery");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (breaks_capture(record->capture)) {
            return cudaErrorCapturedEvent;
        }
        return is_completed(record->clock) ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return call("cudaEventElapsedTime", [&] {
        const EventRecord* first = find_event(start, "cudaEventElapsedTime");
        const EventRecord* last = find_event(end, "cudaEventElapsedTime");
        if (first == nullptr || last == nullptr || !first->recorded || !last->recorded || !first->timing ||
            !last->timing) {
            return cudaErrorInvalidResourceHandle;
        }
        if (!is_completed(first->clock) || !is_completed(last->clock)) {
            return cudaErrorNotReady;
        }
        // Recordings are one millisecond apart, or as far as the test let time pass.
        *milliseconds = runtime().passed_milliseconds > 0
                            ? static_cast<float>(last->passed_milliseconds - first->passed_milliseconds)
                            : static_cast<float>(last->order) - static_cast<float>(first->order);
        return cudaSuccess;
    });
}
