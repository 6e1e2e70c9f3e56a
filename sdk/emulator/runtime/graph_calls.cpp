// Whole graphs: creation, structure, instantiation, launch.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>

#include "runtime/call.hpp"
#include "runtime/graph.hpp"
#include "runtime/stream_work.hpp"

using namespace tessera::emulator;

namespace {

/// Runs `body(graph)` with the mutex held.
template <class Body>
cudaError_t with_graph(const char* name, cudaGraph_t handle, Body&& body, CallKind kind = query_call)
{
    return call(name, kind, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        const std::shared_ptr<Graph> graph = find_graph(handle);
        return graph == nullptr ? cudaErrorInvalidValue : body(*graph);
    });
}

template <class Body>
cudaError_t with_node(const char* name, cudaGraphNode_t handle, Body&& body)
{
    return call(name, query_call, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        GraphNode* node = find_node(handle);
        return node == nullptr ? cudaErrorInvalidValue : body(*node);
    });
}

/// Returns a list as the API does: null queries the size, a smaller array gets the first items, and unused places are
/// set to null.
template <class Handle>
cudaError_t write_list(const std::vector<Handle>& list, Handle* out, std::size_t* count)
{
    if (count == nullptr) {
        return cudaErrorInvalidValue;
    }
    if (out == nullptr) {
        *count = list.size();
        return cudaSuccess;
    }
    for (std::size_t i = 0; i < *count; ++i) {
        out[i] = i < list.size() ? list[i] : Handle{};
    }
    *count = std::min(*count, list.size());
    return cudaSuccess;
}

std::vector<cudaGraphNode_t> handles_of(const std::vector<GraphNode*>& nodes)
{
    std::vector<cudaGraphNode_t> handles;
    for (const GraphNode* node : nodes) {
        handles.push_back(handle_of(node));
    }
    return handles;
}

void clear_edges(cudaGraphEdgeData* edges, const std::size_t* count)
{
    if (edges != nullptr && count != nullptr) {
        std::fill_n(edges, *count, cudaGraphEdgeData{});
    }
}

cudaError_t change_dependencies(Graph& graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, std::size_t count,
                                bool adds)
{
    for (std::size_t i = 0; i < count; ++i) {
        GraphNode* earlier = find_node(from[i]);
        GraphNode* later = find_node(to[i]);
        if (earlier == nullptr || later == nullptr || earlier->graph != &graph || later->graph != &graph) {
            return cudaErrorInvalidValue;
        }
        const auto found = std::ranges::find(later->dependencies, earlier);
        if ((found != later->dependencies.end()) == adds) {
            return cudaErrorInvalidValue;
        }
        if (adds) {
            later->dependencies.push_back(earlier);
        } else {
            later->dependencies.erase(found);
        }
    }
    return cudaSuccess;
}

cudaError_t instantiate_as(const char* name, cudaGraphExec_t* exec, cudaGraph_t handle, unsigned long long flags)
{
    return with_graph(
        name, handle,
        [&](Graph& graph) -> cudaError_t {
            return exec == nullptr ? cudaErrorInvalidValue : instantiate(exec, graph, flags);
        },
        context_call);
}

cudaError_t instantiate_with(cudaGraphExec_t* exec, cudaGraph_t handle, cudaGraphInstantiateParams* parameters)
{
    return with_graph(
        "cudaGraphInstantiateWithParams", handle,
        [&](Graph& graph) -> cudaError_t {
            if (exec == nullptr || parameters == nullptr) {
                return cudaErrorInvalidValue;
            }
            parameters->errNode_out = nullptr;
            const cudaError_t status = instantiate(exec, graph, parameters->flags);
            parameters->result_out =
                status == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateInvalidStructure;
            return status;
        },
        context_call);
}

cudaError_t launch_exec(cudaGraphExec_t handle, cudaStream_t stream_handle)
{
    return call("cudaGraphLaunch", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        const auto exec = find_graph_exec(handle);
        Stream* stream = find_stream(stream_handle);
        if (exec == nullptr) {
            return cudaErrorInvalidValue;
        }
        return stream == nullptr ? cudaErrorInvalidResourceHandle : launch_graph(*exec, *stream);
    });
}

cudaError_t upload(cudaGraphExec_t handle, cudaStream_t stream)
{
    return call("cudaGraphUpload", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        if (find_graph_exec(handle) == nullptr) {
            return cudaErrorInvalidValue;
        }
        return find_stream(stream) == nullptr ? cudaErrorInvalidResourceHandle : cudaSuccess;
    });
}

/// The new graph must have the same nodes in the same order; the executable graph then gets its parameters.
cudaError_t update(GraphExec& exec, const Graph& graph, cudaGraphExecUpdateResultInfo& info)
{
    info = {};
    auto plan = plan_of(graph);
    if (plan->size() != exec.plan->size()) {
        info.result = cudaGraphExecUpdateErrorTopologyChanged;
        return cudaErrorGraphExecUpdateFailure;
    }
    for (std::size_t i = 0; i < plan->size(); ++i) {
        PlannedNode& planned = (*plan)[i];
        const PlannedNode& before = (*exec.plan)[i];
        info.errorNode = handle_of(planned.original);
        if (type_of(planned.work) != type_of(before.work)) {
            info.result = cudaGraphExecUpdateErrorNodeTypeChanged;
            return cudaErrorGraphExecUpdateFailure;
        }
        planned.enabled = before.enabled;
    }
    info.errorNode = nullptr;
    info.result = cudaGraphExecUpdateSuccess;
    exec.plan = std::move(plan);
    exec.memory.insert(exec.memory.end(), graph.memory.begin(), graph.memory.end());
    exec.user_objects->retain(graph.user_objects);
    return cudaSuccess;
}

void write_dot(std::FILE* file, const Graph& graph)
{
    std::fprintf(file, "digraph {\n");
    for (const auto& node : graph.nodes) {
        std::fprintf(file, "  \"%p\" [label=\"type %d\"];\n", static_cast<const void*>(node.get()),
                     static_cast<int>(type_of(node->work)));
        for (const GraphNode* dependency : node->dependencies) {
            std::fprintf(file, "  \"%p\" -> \"%p\";\n", static_cast<const void*>(dependency),
                         static_cast<const void*>(node.get()));
        }
    }
    std::fprintf(file, "}\n");
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* handle, unsigned flags)
{
    return call("cudaGraphCreate", query_call, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        if (handle == nullptr || flags != 0) {
            return cudaErrorInvalidValue;
        }
        *handle = handle_of(make_graph().get());
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle)
{
    return call("cudaGraphDestroy", release_call, [&]() -> cudaError_t {
        Runtime& runtime = Runtime::get();
        std::shared_ptr<Graph> last;  // its user objects are destroyed outside of the lock
        const std::scoped_lock lock(runtime.mutex);
        const auto found = runtime.graphs.find(handle);
        if (found == runtime.graphs.end()) {
            return cudaErrorInvalidValue;
        }
        last = std::move(found->second);
        runtime.graphs.erase(found);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t original)
{
    return with_graph("cudaGraphClone", original, [&](Graph& graph) -> cudaError_t {
        if (copy == nullptr) {
            return cudaErrorInvalidValue;
        }
        std::shared_ptr<Graph> made = clone(graph);
        *copy = handle_of(made.get());
        Runtime::get().graphs[*copy] = std::move(made);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t cloned)
{
    return with_graph("cudaGraphNodeFindInClone", cloned, [&](Graph& graph) -> cudaError_t {
        const auto found = std::ranges::find_if(
            graph.nodes, [&](const auto& candidate) { return handle_of(candidate->copied_from) == original; });
        if (node == nullptr || found == graph.nodes.end()) {
            return cudaErrorInvalidValue;
        }
        *node = handle_of(found->get());
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count)
{
    return with_graph("cudaGraphGetNodes", handle, [&](Graph& graph) {
        std::vector<cudaGraphNode_t> list;
        for (const auto& node : graph.nodes) {
            list.push_back(handle_of(node.get()));
        }
        return write_list(list, nodes, count);
    });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count)
{
    return with_graph("cudaGraphGetRootNodes", handle, [&](Graph& graph) {
        std::vector<cudaGraphNode_t> list;
        for (const auto& node : graph.nodes) {
            if (node->dependencies.empty()) {
                list.push_back(handle_of(node.get()));
            }
        }
        return write_list(list, nodes, count);
    });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count)
{
    return with_graph("cudaGraphGetEdges", handle, [&](Graph& graph) -> cudaError_t {
        if (count == nullptr || (from == nullptr) != (to == nullptr)) {
            return cudaErrorInvalidValue;
        }
        std::vector<cudaGraphNode_t> starts;
        std::vector<cudaGraphNode_t> ends;
        for (const auto& node : graph.nodes) {
            for (const GraphNode* dependency : node->dependencies) {
                starts.push_back(handle_of(dependency));
                ends.push_back(handle_of(node.get()));
            }
        }
        clear_edges(edges, count);
        std::size_t room = *count;
        static_cast<void>(write_list(starts, from, &room));
        return write_list(ends, to, count);
    });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t handle, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                         size_t* count)
{
    return with_node("cudaGraphNodeGetDependencies", handle, [&](GraphNode& node) {
        clear_edges(edges, count);
        return write_list(handles_of(node.dependencies), nodes, count);
    });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t handle, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                           size_t* count)
{
    return with_node("cudaGraphNodeGetDependentNodes", handle, [&](GraphNode& node) {
        std::vector<cudaGraphNode_t> list;
        for (const auto& other : node.graph->nodes) {
            if (std::ranges::find(other->dependencies, &node) != other->dependencies.end()) {
                list.push_back(handle_of(other.get()));
            }
        }
        clear_edges(edges, count);
        return write_list(list, nodes, count);
    });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t handle, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* /*edges*/, size_t count)
{
    return with_graph("cudaGraphAddDependencies", handle, [&](Graph& graph) -> cudaError_t {
        return count != 0 && (from == nullptr || to == nullptr) ? cudaErrorInvalidValue
                                                                : change_dependencies(graph, from, to, count, true);
    });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t handle, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* /*edges*/, size_t count)
{
    return with_graph("cudaGraphRemoveDependencies", handle, [&](Graph& graph) -> cudaError_t {
        return count != 0 && (from == nullptr || to == nullptr) ? cudaErrorInvalidValue
                                                                : change_dependencies(graph, from, to, count, false);
    });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType* type)
{
    return with_node("cudaGraphNodeGetType", handle, [&](GraphNode& node) -> cudaError_t {
        if (type == nullptr) {
            return cudaErrorInvalidValue;
        }
        *type = type_of(node.work);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t handle)
{
    return with_node("cudaGraphDestroyNode", handle, [](GraphNode& node) {
        Graph& graph = *node.graph;
        for (const auto& other : graph.nodes) {
            std::erase(other->dependencies, &node);
        }
        std::erase_if(graph.nodes, [&](const auto& candidate) { return candidate.get() == &node; });
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags)
{
    return instantiate_as("cudaGraphInstantiate", exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags)
{
    return instantiate_as("cudaGraphInstantiateWithFlags", exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphInstantiateParams* params)
{
    return instantiate_with(exec, graph, params);
}
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* params)
{
    return instantiate_with(exec, graph, params);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t handle, unsigned long long* flags)
{
    return call("cudaGraphExecGetFlags", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        const auto exec = find_graph_exec(handle);
        if (exec == nullptr || flags == nullptr) {
            return cudaErrorInvalidValue;
        }
        *flags = exec->flags;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec_handle, cudaGraph_t handle, cudaGraphExecUpdateResultInfo* info)
{
    return with_graph("cudaGraphExecUpdate", handle, [&](Graph& graph) -> cudaError_t {
        const auto exec = find_graph_exec(exec_handle);
        if (exec == nullptr || info == nullptr) {
            return cudaErrorInvalidValue;
        }
        return update(*exec, graph, *info);
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) { return launch_exec(exec, stream); }
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream)
{
    return launch_exec(exec, per_thread(stream));
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) { return upload(exec, stream); }
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream) { return upload(exec, per_thread(stream)); }

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle)
{
    return call("cudaGraphExecDestroy", release_call, [&]() -> cudaError_t {
        Runtime& runtime = Runtime::get();
        std::shared_ptr<GraphExec> last;  // its user objects are destroyed outside of the lock
        const std::scoped_lock lock(runtime.mutex);
        const auto found = runtime.graph_execs.find(handle);
        if (found == runtime.graph_execs.end()) {
            return cudaErrorInvalidValue;
        }
        last = std::move(found->second);
        runtime.graph_execs.erase(found);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec_handle, cudaGraphNode_t node, unsigned enabled)
{
    return call("cudaGraphNodeSetEnabled", query_call, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        PlannedNode* planned = nullptr;
        const auto exec = find_graph_exec(exec_handle);
        const auto plan = exec == nullptr ? nullptr : change_plan(*exec, node, planned);
        if (plan == nullptr) {
            return cudaErrorInvalidValue;
        }
        planned->enabled = enabled != 0;
        exec->plan = plan;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec_handle, cudaGraphNode_t node, unsigned* enabled)
{
    return call("cudaGraphNodeGetEnabled", query_call, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        PlannedNode* planned = nullptr;
        const auto exec = find_graph_exec(exec_handle);
        const auto plan = exec == nullptr ? nullptr : change_plan(*exec, node, planned);
        if (plan == nullptr || enabled == nullptr) {
            return cudaErrorInvalidValue;
        }
        *enabled = planned->enabled ? 1 : 0;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t handle, const char* path, unsigned /*flags*/)
{
    return with_graph("cudaGraphDebugDotPrint", handle, [&](Graph& graph) -> cudaError_t {
        std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
        if (file == nullptr) {
            return cudaErrorOperatingSystem;
        }
        write_dot(file, graph);
        std::fclose(file);
        return cudaSuccess;
    });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* handle, void* pointer, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags)
{
    return call("cudaUserObjectCreate", query_call, [&]() -> cudaError_t {
        if (handle == nullptr || destroy == nullptr || references == 0 || flags != cudaUserObjectNoDestructorSync) {
            return cudaErrorInvalidValue;
        }
        auto* object = new UserObject;
        object->pointer = pointer;
        object->destroy = destroy;
        object->references = references;
        *handle = reinterpret_cast<cudaUserObject_t>(object);
        return cudaSuccess;
    });
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t handle, unsigned count)
{
    return call("cudaUserObjectRetain", query_call, [&]() -> cudaError_t {
        if (handle == nullptr || count == 0) {
            return cudaErrorInvalidValue;
        }
        reinterpret_cast<UserObject*>(handle)->references += count;
        return cudaSuccess;
    });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t handle, unsigned count)
{
    return call("cudaUserObjectRelease", release_call, [&]() -> cudaError_t {
        auto* object = reinterpret_cast<UserObject*>(handle);
        if (object == nullptr || count == 0 || count > object->references) {
            return cudaErrorInvalidValue;
        }
        release(*object, count);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t handle, cudaUserObject_t object, unsigned count, unsigned flags)
{
    return with_graph("cudaGraphRetainUserObject", handle, [&](Graph& graph) -> cudaError_t {
        if (object == nullptr || count == 0 || flags > cudaGraphUserObjectMove) {
            return cudaErrorInvalidValue;
        }
        auto* user_object = reinterpret_cast<UserObject*>(object);
        graph.user_objects.take(*user_object, count);
        if (flags != cudaGraphUserObjectMove) {
            user_object->references += count;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t handle, cudaUserObject_t object, unsigned count)
{
    return with_graph("cudaGraphReleaseUserObject", handle, [&](Graph& graph) -> cudaError_t {
        return object != nullptr && graph.user_objects.give_up(*reinterpret_cast<UserObject*>(object), count)
                   ? cudaSuccess
                   : cudaErrorInvalidValue;
    });
}

}  // extern "C"
