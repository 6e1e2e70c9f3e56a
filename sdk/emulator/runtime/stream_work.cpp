#include "runtime/stream_work.hpp"

#include <algorithm>

#include "runtime/graph.hpp"
#include "runtime/work.hpp"

namespace tessera::emulator {

namespace {

/// The positions that a new operation on `stream` waits for by the rules of the legacy default stream.
void add_implicit_waits(Stream& stream, std::vector<Position>& waits)
{
    if (stream.kind == Stream::Kind::legacy) {
        for (Stream* other : Runtime::get().streams) {
            if (other->device == stream.device && other->is_blocking()) {
                waits.push_back(other->queue->last());
            }
        }
    } else if (stream.is_blocking()) {
        waits.push_back(stream.device->legacy.queue->last());
    }
}

/// The legacy stream cannot be ordered against a blocking stream that is being captured.
cudaError_t forbid_implicit_dependency(Stream& stream)
{
    if (stream.kind != Stream::Kind::legacy) {
        return cudaSuccess;
    }
    cudaError_t status = cudaSuccess;
    for (Stream* other : Runtime::get().streams) {
        if (other->device == stream.device && other->is_blocking() && other->capture != nullptr &&
            other->capture->mode != cudaStreamCaptureModeRelaxed) {
            invalidate(*other->capture);
            status = cudaErrorStreamCaptureImplicit;
        }
    }
    return status;
}

void merge_frontier(Stream& stream, const std::vector<GraphNode*>& nodes)
{
    for (GraphNode* node : nodes) {
        if (std::ranges::find(stream.frontier, node) == stream.frontier.end()) {
            stream.frontier.push_back(node);
        }
    }
}

}  // namespace

Stream* add_stream(Device& device, Stream::Kind kind, unsigned flags, int priority)
{
    Runtime& runtime = Runtime::get();
    auto* stream = new Stream;
    stream->kind = kind;
    stream->device = &device;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = runtime.next_id++;
    runtime.streams.insert(stream);
    return stream;
}

Stream* find_stream(cudaStream_t handle)
{
    Runtime& runtime = Runtime::get();
    Device& device = current_device();
    if (handle == nullptr || handle == cudaStreamLegacy) {
        return &device.legacy;
    }
    const std::scoped_lock lock(runtime.mutex);
    if (handle == cudaStreamPerThread) {
        Stream*& own = ThreadState::get().default_streams[device.index];
        if (own == nullptr) {
            own = add_stream(device, Stream::Kind::per_thread, cudaStreamDefault, 0);
        }
        return own;
    }
    const auto found = runtime.streams.find(reinterpret_cast<Stream*>(handle));
    return found == runtime.streams.end() ? nullptr : *found;
}

Position enqueue(Stream& stream, std::function<void()> body, std::vector<Position> waits, bool is_instant)
{
    add_implicit_waits(stream, waits);
    return stream.queue->enqueue(std::move(waits), std::move(body), is_instant);
}

void note_launch(Device& device, const Work& work)
{
    if (const auto* kernel = std::get_if<KernelWork>(&work)) {
        device.launched_printf = device.launched_printf || kernel->info->uses_printf;
        device.launched_malloc = device.launched_malloc || kernel->info->uses_malloc;
    }
}

cudaError_t submit(Stream& stream, Work work, std::vector<Position> waits)
{
    Runtime& runtime = Runtime::get();
    const std::scoped_lock lock(runtime.mutex);
    if (stream.capture != nullptr) {
        if (stream.capture->is_invalid) {
            return cudaErrorStreamCaptureInvalidated;
        }
        GraphNode* node = add_node(*stream.capture->graph, std::move(work), stream.frontier);
        stream.frontier = {node};
        return cudaSuccess;
    }
    if (const cudaError_t forbidden = forbid_implicit_dependency(stream); forbidden != cudaSuccess) {
        return forbidden;
    }
    note_launch(*stream.device, work);
    auto shared = std::make_shared<const Work>(std::move(work));
    enqueue(stream, [&device = *stream.device, shared] { perform(device, *shared); }, std::move(waits));
    return cudaSuccess;
}

std::vector<Position> all_positions(Device& device)
{
    Runtime& runtime = Runtime::get();
    const std::scoped_lock lock(runtime.mutex);
    std::vector<Position> positions;
    for (const Stream* stream : runtime.streams) {
        if (stream->device == &device) {
            positions.push_back(stream->queue->last());
        }
    }
    // Streams that were destroyed with pending work are only held by their events; their work is awaited, too.
    std::erase_if(device.orphans, [](const Position& orphan) { return orphan.is_reached(); });
    positions.insert(positions.end(), device.orphans.begin(), device.orphans.end());
    return positions;
}

void wait_for(Device& device)
{
    for (const Position& position : all_positions(device)) {
        position.wait();
    }
    Runtime& runtime = Runtime::get();
    runtime.host_watches.settle();
    std::vector<Pool*> pools;
    {
        const std::scoped_lock lock(runtime.mutex);
        std::ranges::copy_if(runtime.pools, std::back_inserter(pools),
                             [&](const Pool* pool) { return pool->device == device.index; });
    }
    runtime.heap.trim_all(pools);
    flush_printed(device);
}

void wait_for(Device& device, const Position& position)
{
    position.wait();
    Runtime& runtime = Runtime::get();
    runtime.host_watches.settle();
    {
        const std::scoped_lock lock(runtime.mutex);
        runtime.heap.trim_all({runtime.pools.begin(), runtime.pools.end()});
    }
    flush_printed(device);
}

void invalidate(Capture& capture) { capture.is_invalid = true; }

cudaError_t forbid_in_capture()
{
    Runtime& runtime = Runtime::get();
    const ThreadState& thread = ThreadState::get();
    if (thread.capture_mode == cudaStreamCaptureModeRelaxed) {
        return cudaSuccess;
    }
    const std::scoped_lock lock(runtime.mutex);
    cudaError_t status = cudaSuccess;
    for (const auto& capture : runtime.captures) {
        const bool is_own = capture->thread == std::this_thread::get_id();
        const bool concerns =
            (is_own && capture->mode != cudaStreamCaptureModeRelaxed) ||
            (thread.capture_mode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal);
        if (concerns) {
            invalidate(*capture);
            status = cudaErrorStreamCaptureUnsupported;
        }
    }
    return status;
}

cudaError_t forbid_on_captured(Stream& stream)
{
    const std::scoped_lock lock(Runtime::get().mutex);
    if (stream.capture != nullptr) {
        invalidate(*stream.capture);
        return cudaErrorStreamCaptureUnsupported;
    }
    return forbid_implicit_dependency(stream);
}

cudaError_t record_event(Stream& stream, cudaEvent_t handle, bool as_node)
{
    Runtime& runtime = Runtime::get();
    const std::scoped_lock lock(runtime.mutex);
    const auto found = runtime.events.find(handle);
    if (found == runtime.events.end()) {
        return cudaErrorInvalidResourceHandle;
    }
    Event& event = *found->second;
    if (event.device != stream.device->index) {
        return cudaErrorInvalidResourceHandle;
    }
    if (stream.capture != nullptr) {
        if (stream.capture->is_invalid) {
            return cudaErrorStreamCaptureInvalidated;
        }
        if (as_node) {
            stream.frontier = {add_node(*stream.capture->graph, EventRecordWork{handle}, stream.frontier)};
            return cudaSuccess;
        }
        event.capture = stream.capture;
        event.captured_nodes = stream.frontier;
        return cudaSuccess;
    }
    if (const cudaError_t forbidden = forbid_implicit_dependency(stream); forbidden != cudaSuccess) {
        return forbidden;
    }
    auto recording = std::make_shared<Recording>();
    event.capture.reset();
    event.captured_nodes.clear();
    event.is_recorded = true;
    event.recording = recording;
    event.position = enqueue(
        stream,
        [recording] {
            recording->time = std::chrono::steady_clock::now();
            recording->happened.store(true, std::memory_order_release);
        },
        {}, true);
    return cudaSuccess;
}

cudaError_t wait_event(Stream& stream, cudaEvent_t handle, bool as_node)
{
    Runtime& runtime = Runtime::get();
    const std::scoped_lock lock(runtime.mutex);
    const auto found = runtime.events.find(handle);
    if (found == runtime.events.end()) {
        return cudaErrorInvalidResourceHandle;
    }
    const Event& event = *found->second;
    const std::shared_ptr<Capture> recorded_in = event.capture.lock();
    if (stream.capture != nullptr && stream.capture->is_invalid) {
        return cudaErrorStreamCaptureInvalidated;
    }
    if (recorded_in == nullptr) {
        if (stream.capture != nullptr) {
            if (as_node) {
                stream.frontier = {add_node(*stream.capture->graph, EventWaitWork{handle}, stream.frontier)};
                return cudaSuccess;
            }
            if (!event.is_recorded) {
                return cudaSuccess;  // an event that was never recorded is no dependency
            }
            invalidate(*stream.capture);
            return cudaErrorStreamCaptureIsolation;
        }
        if (!event.is_recorded) {
            return cudaSuccess;
        }
        if (const cudaError_t forbidden = forbid_implicit_dependency(stream); forbidden != cudaSuccess) {
            return forbidden;
        }
        enqueue(stream, [] {}, {event.position});
        return cudaSuccess;
    }
    if (recorded_in->is_invalid) {
        return cudaErrorStreamCaptureInvalidated;
    }
    if (stream.capture == nullptr) {
        if (stream.kind == Stream::Kind::legacy) {
            invalidate(*recorded_in);
            return cudaErrorStreamCaptureImplicit;
        }
        stream.capture = recorded_in;
        stream.frontier = event.captured_nodes;
        recorded_in->members.insert(&stream);
        return cudaSuccess;
    }
    if (stream.capture != recorded_in) {
        invalidate(*stream.capture);
        invalidate(*recorded_in);
        return cudaErrorStreamCaptureMerge;
    }
    merge_frontier(stream, event.captured_nodes);
    return cudaSuccess;
}

}  // namespace tessera::emulator
