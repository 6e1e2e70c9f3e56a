/// The fake runtime's stream capture and graphs.

#include <algorithm>
#include <utility>

#include "runtime_state.hpp"

using namespace tessera::fake;

namespace {

/// Returns an existing executable or graph; otherwise null, and records a misuse.
GraphRecord* find_graph(std::map<std::uint64_t, GraphRecord>& graphs, std::uint64_t id, const char* call)
{
    const auto found = graphs.find(id);
    if (found == graphs.end() || !found->second.alive) {
        runtime().misuse(std::string(call) + " of a graph that " +
                         (found == graphs.end() ? "never was" : "was destroyed"));
        return nullptr;
    }
    return &found->second;
}

/// Drops one reference to each object. Dropping the last one destroys it.
void release(const std::vector<std::uint64_t>& user_objects)
{
    for (const std::uint64_t id : user_objects) {
        UserObjectRecord& object = runtime().user_objects.at(id);
        if (--object.references == 0) {
            const UserObjectRecord ended = object;
            runtime().user_objects.erase(id);
            const std::size_t calls = runtime().calls.size();
            ended.destroy(ended.data);
            if (runtime().calls.size() != calls) {
                runtime().misuse("a CUDA call from a user object's destructor");
            }
        }
    }
}

cudaError_t destroy(std::map<std::uint64_t, GraphRecord>& graphs, std::uint64_t id, const char* call)
{
    GraphRecord* graph = find_graph(graphs, id, call);
    if (graph == nullptr) {
        return cudaErrorInvalidValue;
    }
    graph->alive = false;
    release(std::exchange(graph->user_objects, {}));
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    return call("cudaStreamBeginCapture", [&] {
        StreamRecord* record = find_stream(stream, "cudaStreamBeginCapture");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (mode != cudaStreamCaptureModeThreadLocal) {
            runtime().misuse("cudaStreamBeginCapture in a mode that disturbs other threads");
        }
        if (stream == nullptr || stream == cudaStreamLegacy) {
            return cudaErrorStreamCaptureUnsupported;
        }
        if (record->capture != 0) {
            return cudaErrorIllegalState;
        }
        record->capture = next_id();
        record->frontier.clear();
        runtime().captures[record->capture] = {
            .origin = record->id, .thread = std::this_thread::get_id(), .graph = next_id()};
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph)
{
    *graph = nullptr;
    const auto body = [&](bool make_graph) {
        StreamRecord* record = find_stream(stream, "cudaStreamEndCapture");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (record->capture == 0) {
            return cudaErrorIllegalState;
        }
        const std::uint64_t id = record->capture;
        const CaptureRecord capture = runtime().captures.at(id);
        runtime().captures.erase(id);
        for (auto& [other_id, other] : runtime().streams) {
            other.capture = other.capture == id ? 0 : other.capture;
        }
        if (make_graph && !capture.invalid && capture.unjoined.empty()) {
            runtime().graphs[capture.graph] = {
                .nodes = capture.nodes, .user_objects = capture.user_objects, .launches = capture.launches};
            *graph = handle_of<cudaGraph_t>(capture.graph);
            return cudaSuccess;
        }
        release(capture.user_objects);
        return capture.invalid ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined;
    };
    // The capture ends even if the call fails.
    const Entry entry("cudaStreamEndCapture");
    cudaError_t status = entry.forced();
    if (status == cudaSuccess) {
        status = body(true);
    } else {
        static_cast<void>(body(false));
    }
    if (status != cudaSuccess) {
        this_thread().last_error = status;
    }
    return status;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status)
{
    return call("cudaStreamIsCapturing", [&] {
        const StreamRecord* record = find_stream(stream, "cudaStreamIsCapturing");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        *status = record->capture == 0                             ? cudaStreamCaptureStatusNone
                  : runtime().captures.at(record->capture).invalid ? cudaStreamCaptureStatusInvalidated
                                                                   : cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count)
{
    return call("cudaStreamGetCaptureInfo", [&] {
        const StreamRecord* record = find_stream(stream, "cudaStreamGetCaptureInfo");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        *status = cudaStreamCaptureStatusNone;
        if (record->capture != 0) {
            const CaptureRecord& capture = runtime().captures.at(record->capture);
            *status = capture.invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
            *id = record->capture;
            *graph = capture.invalid ? nullptr : handle_of<cudaGraph_t>(capture.graph);
            if (dependencies != nullptr && edges == nullptr) {
                return cudaErrorLossyQuery;  // as if one of the edges were a special one
            }
            if (dependencies != nullptr) {
                *dependencies = record->frontier.data();
                *edges = nullptr;
                *count = record->frontier.size();
            }
        }
        return cudaSuccess;
    });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                         std::size_t* count)
{
    return call("cudaGraphNodeGetDependencies", [&] {
        for (const auto& [id, capture] : runtime().captures) {
            if (const auto found = capture.predecessors.find(node); found != capture.predecessors.end()) {
                if (edges == nullptr) {
                    return cudaErrorLossyQuery;
                }
                *count = std::min(*count, found->second.size());
                std::copy_n(found->second.begin(), *count, nodes);
                return cudaSuccess;
            }
        }
        runtime().misuse("cudaGraphNodeGetDependencies of a node that no capture has");
        return cudaErrorInvalidValue;
    });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode)
{
    return call("cudaThreadExchangeStreamCaptureMode", [&] {
        std::swap(*mode, this_thread().capture_mode);
        return cudaSuccess;
    });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags)
{
    return call("cudaUserObjectCreate", [&] {
        if (data == nullptr || destroy == nullptr || references == 0 || flags != cudaUserObjectNoDestructorSync) {
            return cudaErrorInvalidValue;
        }
        const std::uint64_t id = next_id();
        runtime().user_objects[id] = {data, destroy, static_cast<int>(references)};
        *object = handle_of<cudaUserObject_t>(id);
        return cudaSuccess;
    });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
    return call("cudaUserObjectRelease", OnFault::perform, [&] {
        if (count != 1 || !runtime().user_objects.contains(id_of(object))) {
            runtime().misuse("cudaUserObjectRelease of an object that is gone");
            return cudaErrorInvalidValue;
        }
        release({id_of(object)});
        return cudaSuccess;
    });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags)
{
    return call("cudaGraphRetainUserObject", [&] {
        if (count != 1 || !runtime().user_objects.contains(id_of(object))) {
            return cudaErrorInvalidValue;
        }
        if (flags != cudaGraphUserObjectMove) {
            ++runtime().user_objects.at(id_of(object)).references;
        }
        for (auto& [id, capture] : runtime().captures) {
            if (capture.graph == id_of(graph)) {
                capture.user_objects.push_back(id_of(object));
                return cudaSuccess;
            }
        }
        GraphRecord* record = find_graph(runtime().graphs, id_of(graph), "cudaGraphRetainUserObject");
        if (record == nullptr) {
            return cudaErrorInvalidValue;
        }
        record->user_objects.push_back(id_of(object));
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long /*flags*/)
{
    return call("cudaGraphInstantiate", [&] {
        const GraphRecord* record = find_graph(runtime().graphs, id_of(graph), "cudaGraphInstantiate");
        if (record == nullptr) {
            return cudaErrorInvalidValue;
        }
        const std::uint64_t id = next_id();
        runtime().executables[id] = {
            .nodes = record->nodes, .user_objects = record->user_objects, .launches = record->launches};
        for (const std::uint64_t object : record->user_objects) {
            ++runtime().user_objects.at(object).references;
        }
        *executable = handle_of<cudaGraphExec_t>(id);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    return call("cudaGraphLaunch", [&] {
        StreamRecord* record = find_stream(stream, "cudaGraphLaunch");
        const GraphRecord* graph = find_graph(runtime().executables, id_of(executable), "cudaGraphLaunch");
        if (record == nullptr || graph == nullptr) {
            return cudaErrorInvalidValue;
        }
        enqueue(*record);
        if (runtime().on_launch) {
            for (const Launch& launch : graph->launches) {
                runtime().on_launch(launch);
            }
        }
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count)
{
    return call("cudaGraphGetNodes", [&] {
        const GraphRecord* record = find_graph(runtime().graphs, id_of(graph), "cudaGraphGetNodes");
        if (record == nullptr || nodes != nullptr) {
            return cudaErrorInvalidValue;
        }
        *count = record->nodes;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return call("cudaGraphDestroy", OnFault::perform,
                [&] { return destroy(runtime().graphs, id_of(graph), "cudaGraphDestroy"); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    return call("cudaGraphExecDestroy", OnFault::perform,
                [&] { return destroy(runtime().executables, id_of(executable), "cudaGraphExecDestroy"); });
}
