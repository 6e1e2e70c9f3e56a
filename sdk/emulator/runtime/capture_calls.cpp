// Stream capture: begin, end, and queries.

#include <cuda_runtime_api.h>

#include <algorithm>

#include "runtime/call.hpp"
#include "runtime/graph.hpp"
#include "runtime/stream_work.hpp"

using namespace tessera::emulator;

namespace {

void leave(Stream& stream)
{
    stream.capture.reset();
    stream.frontier.clear();
}

/// Every node of a forked stream must lead to the origin stream's latest nodes.
bool is_joined(const Capture& capture)
{
    const auto leads_to_end = [&](const GraphNode* node) {
        return std::ranges::any_of(capture.origin->frontier,
                                   [&](const GraphNode* last) { return comes_after(last, node); });
    };
    return std::ranges::all_of(capture.left_behind, leads_to_end) &&
           std::ranges::all_of(capture.members, [&](const Stream* member) {
               return std::ranges::all_of(member->frontier, leads_to_end);
           });
}

cudaError_t begin(cudaStream_t handle, cudaStreamCaptureMode mode, std::shared_ptr<Graph> into,
                  std::vector<GraphNode*> after)
{
    Runtime& runtime = Runtime::get();
    const std::scoped_lock lock(runtime.mutex);
    Stream* stream = find_stream(handle);
    if (stream == nullptr) {
        return cudaErrorInvalidResourceHandle;
    }
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
        return cudaErrorInvalidValue;
    }
    if (stream->kind == Stream::Kind::legacy) {
        return cudaErrorStreamCaptureUnsupported;
    }
    if (stream->capture != nullptr) {
        return cudaErrorIllegalState;
    }
    auto capture = std::make_shared<Capture>();
    capture->id = runtime.next_id++;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream;
    capture->into_given_graph = into != nullptr;
    if (into == nullptr) {
        into = std::make_shared<Graph>();
        into->self = into;
    }
    capture->graph = std::move(into);
    capture->members = {stream};
    stream->capture = capture;
    stream->frontier = std::move(after);
    runtime.captures.insert(std::move(capture));
    return cudaSuccess;
}

cudaError_t begin_capture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    return call("cudaStreamBeginCapture", [&] { return begin(handle, mode, nullptr, {}); });
}

cudaError_t begin_into(cudaStream_t handle, cudaGraph_t graph_handle, const cudaGraphNode_t* dependencies,
                       std::size_t count, cudaStreamCaptureMode mode)
{
    return call("cudaStreamBeginCaptureToGraph", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        const auto graph = find_graph(graph_handle);
        if (graph == nullptr || (count != 0 && dependencies == nullptr)) {
            return cudaErrorInvalidValue;
        }
        std::vector<GraphNode*> after;
        for (std::size_t i = 0; i < count; ++i) {
            after.push_back(find_node(dependencies[i]));
            if (after.back() == nullptr || after.back()->graph != graph.get()) {
                return cudaErrorInvalidValue;
            }
        }
        return begin(handle, mode, graph, std::move(after));
    });
}

/// The capture ends in every case except a call on the wrong stream.
cudaError_t end_capture(cudaStream_t handle, cudaGraph_t* graph)
{
    return call("cudaStreamEndCapture", release_call, [&]() -> cudaError_t {
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        Stream* stream = find_stream(handle);
        if (graph == nullptr) {  // a graph that the program provided is not returned
            const bool is_known = stream != nullptr && stream->capture != nullptr && stream->capture->into_given_graph;
            if (!is_known) {
                return cudaErrorInvalidValue;
            }
        } else {
            *graph = nullptr;
        }
        if (stream == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        const std::shared_ptr<Capture> capture = stream->capture;
        if (capture == nullptr) {
            return cudaErrorIllegalState;
        }
        if (capture->origin != stream) {
            invalidate(*capture);
            return cudaErrorStreamCaptureUnmatched;
        }
        const bool is_wrong_thread =
            capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id();
        const cudaError_t status = is_wrong_thread        ? cudaErrorStreamCaptureWrongThread
                                   : capture->is_invalid  ? cudaErrorStreamCaptureInvalidated
                                   : !is_joined(*capture) ? cudaErrorStreamCaptureUnjoined
                                                          : cudaSuccess;
        for (Stream* member : capture->members) {
            leave(*member);
        }
        runtime.captures.erase(capture);
        if (status == cudaSuccess) {
            const cudaGraph_t made = handle_of(capture->graph.get());
            if (!capture->into_given_graph) {
                runtime.graphs[made] = capture->graph;
            }
            if (graph != nullptr) {
                *graph = made;
            }
        }
        return status;
    });
}

cudaStreamCaptureStatus status_of(const Stream& stream)
{
    return stream.capture == nullptr    ? cudaStreamCaptureStatusNone
           : stream.capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
}

/// The legacy stream cannot be queried while a blocking stream is being captured.
cudaError_t find_askable(cudaStream_t handle, Stream*& stream)
{
    stream = find_stream(handle);
    if (stream == nullptr) {
        return cudaErrorInvalidResourceHandle;
    }
    if (stream->kind == Stream::Kind::legacy) {
        for (const Stream* other : Runtime::get().streams) {
            if (other->device == stream->device && other->is_blocking() && other->capture != nullptr) {
                return cudaErrorStreamCaptureImplicit;
            }
        }
    }
    return cudaSuccess;
}

cudaError_t is_capturing(cudaStream_t handle, cudaStreamCaptureStatus* status)
{
    return call("cudaStreamIsCapturing", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        if (status == nullptr) {
            return cudaErrorInvalidValue;
        }
        Stream* stream = nullptr;
        if (const cudaError_t error = find_askable(handle, stream); error != cudaSuccess) {
            return error;
        }
        *status = status_of(*stream);
        return cudaSuccess;
    });
}

cudaError_t capture_info(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                         std::size_t* count)
{
    return call("cudaStreamGetCaptureInfo", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        if (status == nullptr) {
            return cudaErrorInvalidValue;
        }
        Stream* stream = nullptr;
        if (const cudaError_t error = find_askable(handle, stream); error != cudaSuccess) {
            return error;
        }
        *status = status_of(*stream);
        if (*status != cudaStreamCaptureStatusActive) {
            return cudaSuccess;
        }
        stream->frontier_handles.clear();
        for (const GraphNode* node : stream->frontier) {
            stream->frontier_handles.push_back(handle_of(node));
        }
        if (id != nullptr) {
            *id = stream->capture->id;
        }
        if (graph != nullptr) {
            *graph = handle_of(stream->capture->graph.get());
        }
        if (dependencies != nullptr) {
            *dependencies = stream->frontier_handles.data();
        }
        if (edges != nullptr) {
            *edges = nullptr;
        }
        if (count != nullptr) {
            *count = stream->frontier_handles.size();
        }
        return cudaSuccess;
    });
}

cudaError_t update_dependencies(cudaStream_t handle, const cudaGraphNode_t* dependencies, std::size_t count,
                                unsigned flags)
{
    return call("cudaStreamUpdateCaptureDependencies", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        Stream* stream = find_stream(handle);
        if (stream == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (stream->capture == nullptr) {
            return cudaErrorIllegalState;
        }
        if (stream->capture->is_invalid) {
            return cudaErrorStreamCaptureInvalidated;
        }
        if (flags > cudaStreamSetCaptureDependencies || (count != 0 && dependencies == nullptr)) {
            return cudaErrorInvalidValue;
        }
        std::vector<GraphNode*> frontier;
        if (flags == cudaStreamAddCaptureDependencies) {
            frontier = stream->frontier;
        }
        for (std::size_t i = 0; i < count; ++i) {
            GraphNode* node = find_node(dependencies[i]);
            if (node == nullptr || node->graph != stream->capture->graph.get()) {
                return cudaErrorInvalidValue;
            }
            frontier.push_back(node);
        }
        stream->frontier = std::move(frontier);
        return cudaSuccess;
    });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    return begin_capture(stream, mode);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    return begin_capture(per_thread(stream), mode);
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* /*edges*/, size_t count, cudaStreamCaptureMode mode)
{
    return begin_into(stream, graph, dependencies, count, mode);
}
cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
                                               const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* /*edges*/,
                                               size_t count, cudaStreamCaptureMode mode)
{
    return begin_into(per_thread(stream), graph, dependencies, count, mode);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) { return end_capture(stream, graph); }
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph)
{
    return end_capture(per_thread(stream), graph);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status)
{
    return is_capturing(stream, status);
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status)
{
    return is_capturing(per_thread(stream), status);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count)
{
    return capture_info(stream, status, id, graph, dependencies, edges, count);
}
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                          cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                          const cudaGraphEdgeData** edges, size_t* count)
{
    return capture_info(per_thread(stream), status, id, graph, dependencies, edges, count);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* /*edges*/, size_t count, unsigned flags)
{
    return update_dependencies(stream, dependencies, count, flags);
}
cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                     const cudaGraphEdgeData* /*edges*/, size_t count, unsigned flags)
{
    return update_dependencies(per_thread(stream), dependencies, count, flags);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode)
{
    return call("cudaThreadExchangeStreamCaptureMode", query_call, [&]() -> cudaError_t {
        if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed) {
            return cudaErrorInvalidValue;
        }
        std::swap(*mode, ThreadState::get().capture_mode);
        return cudaSuccess;
    });
}

}  // extern "C"
