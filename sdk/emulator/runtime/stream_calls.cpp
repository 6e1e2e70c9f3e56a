// Streams and events.

#include <cuda_runtime_api.h>

#include <chrono>

#include "runtime/call.hpp"
#include "runtime/stream_work.hpp"

using namespace tessera::emulator;

namespace {

constexpr int greatest_priority = -5;

/// Runs `body(stream)` with the stream of `handle`.
template <class Body>
cudaError_t with_stream(const char* name, cudaStream_t handle, Body&& body, CallKind kind = context_call)
{
    return call(name, kind, [&]() -> cudaError_t {
        Stream* stream = find_stream(handle);
        return stream == nullptr ? cudaErrorInvalidResourceHandle : body(*stream);
    });
}

std::shared_ptr<Event> find_event(cudaEvent_t handle)
{
    Runtime& runtime = Runtime::get();
    const std::scoped_lock lock(runtime.mutex);
    const auto found = runtime.events.find(handle);
    return found == runtime.events.end() ? nullptr : found->second;
}

/// The host cannot query or wait for captured work.
cudaError_t forbid_on_captured(const Event& event)
{
    const std::scoped_lock lock(Runtime::get().mutex);
    if (const auto capture = event.capture.lock()) {
        invalidate(*capture);
        return cudaErrorCapturedEvent;
    }
    return cudaSuccess;
}

template <class Body>
cudaError_t with_event(const char* name, cudaEvent_t handle, CallKind kind, Body&& body)
{
    return call(name, kind, [&]() -> cudaError_t {
        const std::shared_ptr<Event> event = find_event(handle);
        return event == nullptr ? cudaErrorInvalidResourceHandle : body(event);
    });
}

cudaError_t create_stream(const char* name, cudaStream_t* handle, unsigned flags, int priority)
{
    return call(name, [&]() -> cudaError_t {
        if (handle == nullptr || (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) {
            return cudaErrorInvalidValue;
        }
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        *handle = reinterpret_cast<cudaStream_t>(
            add_stream(current_device(), Stream::Kind::created, flags, std::clamp(priority, greatest_priority, 0)));
        return cudaSuccess;
    });
}

cudaError_t create_event(const char* name, cudaEvent_t* handle, unsigned flags)
{
    return call(name, [&]() -> cudaError_t {
        constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
        if (handle == nullptr || (flags & ~known) != 0 ||
            ((flags & cudaEventInterprocess) != 0 && (flags & cudaEventDisableTiming) == 0)) {
            return cudaErrorInvalidValue;
        }
        auto event = std::make_shared<Event>();
        event->flags = flags;
        event->device = current_device().index;
        *handle = reinterpret_cast<cudaEvent_t>(event.get());
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        runtime.events[*handle] = std::move(event);
        return cudaSuccess;
    });
}

cudaError_t failure_of(int device) { return static_cast<cudaError_t>(find_device(device)->failure.load()); }

/// A stream is destroyed while it is being captured. Its captured work stays in the graph and must be joined by the end
/// of the capture, as if the stream still existed. Without its origin stream a capture cannot end.
void leave_capture(Stream& stream)
{
    const std::shared_ptr<Capture> capture = stream.capture;
    capture->members.erase(&stream);
    if (capture->origin != &stream) {
        capture->left_behind.insert(capture->left_behind.end(), stream.frontier.begin(), stream.frontier.end());
        return;
    }
    invalidate(*capture);
    for (Stream* member : capture->members) {
        member->capture.reset();
        member->frontier.clear();
    }
    Runtime::get().captures.erase(capture);
}

cudaError_t destroy_stream(cudaStream_t handle)
{
    return call("cudaStreamDestroy", release_call, [&]() -> cudaError_t {
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        auto* stream = reinterpret_cast<Stream*>(handle);
        const auto found = runtime.streams.find(stream);
        if (found == runtime.streams.end() || stream->kind != Stream::Kind::created) {
            return cudaErrorInvalidResourceHandle;
        }
        if (stream->capture != nullptr) {
            leave_capture(*stream);
        }
        // Its work continues; the device's synchronization waits for it.
        if (!stream->queue->is_idle()) {
            stream->device->orphans.push_back(stream->queue->last());
        }
        runtime.streams.erase(found);
        delete stream;
        return cudaSuccess;
    });
}

cudaError_t synchronize_stream(cudaStream_t handle)
{
    return with_stream(
        "cudaStreamSynchronize", handle,
        [](Stream& stream) -> cudaError_t {
            if (const cudaError_t forbidden = forbid_on_captured(stream); forbidden != cudaSuccess) {
                return forbidden;
            }
            Device& device = *stream.device;
            std::vector<Position> positions{stream.queue->last()};
            if (stream.kind == Stream::Kind::legacy) {
                positions = all_positions(device);
            }
            for (const Position& position : positions) {
                wait_for(device, position);
            }
            return static_cast<cudaError_t>(device.failure.load());
        },
        release_call);
}

cudaError_t query_stream(cudaStream_t handle)
{
    return with_stream("cudaStreamQuery", handle, [](Stream& stream) -> cudaError_t {
        if (const cudaError_t forbidden = forbid_on_captured(stream); forbidden != cudaSuccess) {
            return forbidden;
        }
        if (!stream.queue->is_idle()) {
            return cudaErrorNotReady;
        }
        Runtime::get().host_watches.settle();
        return static_cast<cudaError_t>(stream.device->failure.load());
    });
}

struct CallbackArgument {
    cudaStreamCallback_t callback;
    cudaStream_t stream;
    void* user_data;
    Device* device;
};

void CUDART_CB run_callback(void* argument)
{
    const std::unique_ptr<CallbackArgument> owned(static_cast<CallbackArgument*>(argument));
    owned->callback(owned->stream, static_cast<cudaError_t>(owned->device->failure.load()), owned->user_data);
}

cudaError_t add_callback(cudaStream_t handle, cudaStreamCallback_t callback, void* user_data, unsigned flags)
{
    return with_stream("cudaStreamAddCallback", handle, [&](Stream& stream) -> cudaError_t {
        if (callback == nullptr || flags != 0) {
            return cudaErrorInvalidValue;
        }
        if (stream.capture != nullptr) {
            return forbid_on_captured(stream);
        }
        auto argument =
            std::make_unique<CallbackArgument>(CallbackArgument{callback, handle, user_data, stream.device});
        const cudaError_t status = submit(stream, HostWork{run_callback, argument.get()});
        if (status == cudaSuccess) {
            [[maybe_unused]] const auto* freed_by_the_work = argument.release();
        }
        return status;
    });
}

cudaError_t get_attribute(cudaStream_t handle, cudaLaunchAttributeID attribute, cudaLaunchAttributeValue* value)
{
    return with_stream("cudaStreamGetAttribute", handle, [&](Stream& stream) -> cudaError_t {
        if (value == nullptr) {
            return cudaErrorInvalidValue;
        }
        const auto found = stream.attributes.find(attribute);
        *value = found == stream.attributes.end() ? cudaLaunchAttributeValue{} : found->second;
        if (attribute == cudaLaunchAttributePriority) {
            value->priority = stream.priority;
        }
        return cudaSuccess;
    });
}

cudaError_t set_attribute(cudaStream_t handle, cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue* value)
{
    return with_stream("cudaStreamSetAttribute", handle, [&](Stream& stream) -> cudaError_t {
        if (value == nullptr) {
            return cudaErrorInvalidValue;
        }
        stream.attributes[attribute] = *value;
        return cudaSuccess;
    });
}

cudaError_t copy_attributes(cudaStream_t to, cudaStream_t from)
{
    return with_stream("cudaStreamCopyAttributes", to, [&](Stream& target) -> cudaError_t {
        const Stream* source = find_stream(from);
        if (source == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        target.attributes = source->attributes;
        return cudaSuccess;
    });
}

template <class Value, class Get>
cudaError_t get_fact(const char* name, cudaStream_t handle, Value* value, Get&& get)
{
    return with_stream(name, handle, [&](Stream& stream) -> cudaError_t {
        if (value == nullptr) {
            return cudaErrorInvalidValue;
        }
        *value = get(stream);
        return cudaSuccess;
    });
}

/// A property that the driver does not return while the stream is being captured. The error for cudaStreamGetId is an
/// H200's (driver 580). That the capture then becomes invalid, and everything about cudaStreamGetDevice, follows
/// NVIDIA's own CUDA libraries, which avoid these calls (CCCL, cudax stream_pool.cuh).
template <class Value, class Get>
cudaError_t get_uncaptured_fact(const char* name, cudaStream_t handle, Value* value, Get&& get)
{
    return with_stream(name, handle, [&](Stream& stream) -> cudaError_t {
        if (value == nullptr) {
            return cudaErrorInvalidValue;
        }
        const std::scoped_lock lock(Runtime::get().mutex);
        if (stream.capture != nullptr) {
            invalidate(*stream.capture);
            return cudaErrorStreamCaptureUnsupported;
        }
        *value = get(stream);
        return cudaSuccess;
    });
}

cudaError_t record(const char* name, cudaEvent_t event, cudaStream_t handle, unsigned flags)
{
    return with_stream(name, handle, [&](Stream& stream) -> cudaError_t {
        return (flags & ~static_cast<unsigned>(cudaEventRecordExternal)) != 0
                   ? cudaErrorInvalidValue
                   : record_event(stream, event, flags == cudaEventRecordExternal);
    });
}

cudaError_t wait_for_event(cudaStream_t handle, cudaEvent_t event, unsigned flags)
{
    return with_stream("cudaStreamWaitEvent", handle, [&](Stream& stream) -> cudaError_t {
        return (flags & ~static_cast<unsigned>(cudaEventWaitExternal)) != 0
                   ? cudaErrorInvalidValue
                   : wait_event(stream, event, flags == cudaEventWaitExternal);
    });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream)
{
    return create_stream("cudaStreamCreate", stream, cudaStreamDefault, 0);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags)
{
    return create_stream("cudaStreamCreateWithFlags", stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority)
{
    return create_stream("cudaStreamCreateWithPriority", stream, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return destroy_stream(stream); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return synchronize_stream(stream); }
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) { return synchronize_stream(per_thread(stream)); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return query_stream(stream); }
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) { return query_stream(per_thread(stream)); }

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags)
{
    return add_callback(stream, callback, data, flags);
}
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags)
{
    return add_callback(per_thread(stream), callback, data, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority)
{
    return get_fact("cudaStreamGetPriority", stream, priority, [](Stream& s) { return s.priority; });
}
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority)
{
    return cudaStreamGetPriority(per_thread(stream), priority);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags)
{
    return get_fact("cudaStreamGetFlags", stream, flags, [](Stream& s) { return s.flags; });
}
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* flags)
{
    return cudaStreamGetFlags(per_thread(stream), flags);
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id)
{
    return get_uncaptured_fact("cudaStreamGetId", stream, id, [](Stream& s) { return s.id; });
}
cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id)
{
    return cudaStreamGetId(per_thread(stream), id);
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device)
{
    return get_uncaptured_fact("cudaStreamGetDevice", stream, device, [](Stream& s) { return s.device->index; });
}
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device)
{
    return cudaStreamGetDevice(per_thread(stream), device);
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID id, cudaLaunchAttributeValue* value)
{
    return get_attribute(stream, id, value);
}
cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaLaunchAttributeID id, cudaLaunchAttributeValue* value)
{
    return get_attribute(per_thread(stream), id, value);
}
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID id, const cudaLaunchAttributeValue* value)
{
    return set_attribute(stream, id, value);
}
cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaLaunchAttributeID id,
                                        const cudaLaunchAttributeValue* value)
{
    return set_attribute(per_thread(stream), id, value);
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) { return copy_attributes(to, from); }
cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from)
{
    return copy_attributes(per_thread(to), per_thread(from));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    return wait_for_event(stream, event, flags);
}
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    return wait_for_event(per_thread(stream), event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return create_event("cudaEventCreate", event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags)
{
    return create_event("cudaEventCreateWithFlags", event, flags);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return record("cudaEventRecord", event, stream, cudaEventRecordDefault);
}
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream)
{
    return record("cudaEventRecord", event, per_thread(stream), cudaEventRecordDefault);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    return record("cudaEventRecordWithFlags", event, stream, flags);
}
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    return record("cudaEventRecordWithFlags", event, per_thread(stream), flags);
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    return with_event("cudaEventQuery", handle, context_call, [](const std::shared_ptr<Event>& event) -> cudaError_t {
        if (const cudaError_t captured = forbid_on_captured(*event); captured != cudaSuccess) {
            return captured;
        }
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        if (event->is_recorded && !event->position.is_reached()) {
            return cudaErrorNotReady;
        }
        Runtime::get().host_watches.settle();
        return failure_of(event->device);
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    return with_event("cudaEventSynchronize", handle, release_call,
                      [](const std::shared_ptr<Event>& event) -> cudaError_t {
                          if (const cudaError_t captured = forbid_on_captured(*event); captured != cudaSuccess) {
                              return captured;
                          }
                          if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
                              return forbidden;
                          }
                          if (event->is_recorded) {
                              wait_for(*find_device(event->device), event->position);
                          }
                          return failure_of(event->device);
                      });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return with_event("cudaEventElapsedTime", start, context_call, [&](const auto& first) -> cudaError_t {
        const std::shared_ptr<Event> second = find_event(end);
        if (second == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (milliseconds == nullptr) {
            return cudaErrorInvalidValue;
        }
        for (const Event* event : {first.get(), second.get()}) {
            if ((event->flags & cudaEventDisableTiming) != 0 || !event->is_recorded) {
                return cudaErrorInvalidResourceHandle;
            }
        }
        for (const Event* event : {first.get(), second.get()}) {
            if (!event->recording->happened.load(std::memory_order_acquire)) {
                return cudaErrorNotReady;
            }
        }
        *milliseconds =
            std::chrono::duration<float, std::milli>(second->recording->time - first->recording->time).count();
        return cudaSuccess;
    });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    return with_event("cudaEventDestroy", handle, release_call, [&](const std::shared_ptr<Event>&) -> cudaError_t {
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        runtime.events.erase(handle);
        return cudaSuccess;
    });
}

}  // extern "C"
