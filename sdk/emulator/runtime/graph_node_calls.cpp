// Nodes of graphs: each kind can be added to a graph, and changed in a graph or in an executable graph.

#include <cuda_runtime_api.h>

#include "runtime/call.hpp"
#include "runtime/graph.hpp"
#include "runtime/memory.hpp"
#include "runtime/node_work.hpp"

using namespace tessera::emulator;

namespace {

// Operations on work.

template <class Parameters>
cudaError_t add(const char* name, cudaGraphNode_t* node, cudaGraph_t handle, const cudaGraphNode_t* dependencies,
                std::size_t count, const Parameters& parameters)
{
    return call(name, query_call, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        const std::shared_ptr<Graph> graph = find_graph(handle);
        if (node == nullptr || graph == nullptr || (count != 0 && dependencies == nullptr)) {
            return cudaErrorInvalidValue;
        }
        std::vector<GraphNode*> after;
        for (std::size_t i = 0; i < count; ++i) {
            after.push_back(find_node(dependencies[i]));
            if (after.back() == nullptr || after.back()->graph != graph.get()) {
                return cudaErrorInvalidValue;
            }
        }
        Work work;
        if (const cudaError_t status = make(parameters, work); status != cudaSuccess) {
            return status;
        }
        *node = handle_of(add_node(*graph, std::move(work), std::move(after)));
        return cudaSuccess;
    });
}

template <class Parameters>
cudaError_t set(const char* name, cudaGraphNode_t handle, const Parameters& parameters)
{
    return call(name, query_call, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        GraphNode* node = find_node(handle);
        Work work;
        if (node == nullptr) {
            return cudaErrorInvalidValue;
        }
        if (const cudaError_t status = make(parameters, work); status != cudaSuccess) {
            return status;
        }
        if (work.index() != node->work.index()) {
            return cudaErrorInvalidValue;
        }
        node->work = std::move(work);
        repair_pointers(node->work);
        return cudaSuccess;
    });
}

template <class Parameters>
cudaError_t set_in(const char* name, cudaGraphExec_t exec_handle, cudaGraphNode_t node, const Parameters& parameters)
{
    return call(name, query_call, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        const auto exec = find_graph_exec(exec_handle);
        PlannedNode* planned = nullptr;
        const auto plan = exec == nullptr ? nullptr : change_plan(*exec, node, planned);
        Work work;
        if (plan == nullptr) {
            return cudaErrorInvalidValue;
        }
        if (const cudaError_t status = make(parameters, work); status != cudaSuccess) {
            return status;
        }
        if (work.index() != planned->work.index()) {
            return cudaErrorInvalidValue;
        }
        planned->work = std::move(work);
        repair_pointers(planned->work);
        exec->plan = plan;
        return cudaSuccess;
    });
}

/// Runs `body(work)` if the node is of this kind.
template <class Kind, class Body>
cudaError_t get(const char* name, cudaGraphNode_t handle, Body&& body)
{
    return call(name, query_call, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        GraphNode* node = find_node(handle);
        Kind* work = node == nullptr ? nullptr : std::get_if<Kind>(&node->work);
        if (work == nullptr) {
            return cudaErrorInvalidValue;
        }
        body(*work);
        return cudaSuccess;
    });
}

cudaMemsetParams parameters_of(const FillWork& fill)
{
    return {.dst = fill.to,
            .pitch = fill.pitch,
            .value = fill.value,
            .elementSize = fill.element_size,
            .width = fill.width,
            .height = fill.height};
}

/// The older structures have the same members as the structures of cudaGraphAddNode.
template <class Body>
cudaError_t with_parameters(cudaGraphNodeParams* parameters, Body&& body)
{
    if (parameters == nullptr) {
        return call("cudaGraphAddNode", query_call, [] { return cudaErrorInvalidValue; });
    }
    switch (parameters->type) {
        case cudaGraphNodeTypeKernel: {
            const cudaKernelNodeParamsV2& v2 = parameters->kernel;
            const cudaKernelNodeParams kernel{v2.func,           v2.gridDim,      v2.blockDim,
                                              v2.sharedMemBytes, v2.kernelParams, v2.extra};
            return body(&kernel);
        }
        case cudaGraphNodeTypeMemcpy:
            return body(static_cast<const cudaMemcpy3DParms*>(&parameters->memcpy.copyParams));
        case cudaGraphNodeTypeMemset: {
            const cudaMemsetParamsV2& v2 = parameters->memset;
            const cudaMemsetParams fill{v2.dst, v2.pitch, v2.value, v2.elementSize, v2.width, v2.height};
            return body(&fill);
        }
        case cudaGraphNodeTypeHost: {
            const cudaHostNodeParams host{parameters->host.fn, parameters->host.userData};
            return body(&host);
        }
        case cudaGraphNodeTypeGraph: return body(parameters->graph.graph);
        case cudaGraphNodeTypeEmpty: return body(EmptyWork{});
        case cudaGraphNodeTypeWaitEvent: return body(EventWaitWork{parameters->eventWait.event});
        case cudaGraphNodeTypeEventRecord: return body(EventRecordWork{parameters->eventRecord.event});
        case cudaGraphNodeTypeMemFree: return body(FreeWork{parameters->free.dptr});
        default: return call("cudaGraphAddNode", query_call, [] { return cudaErrorNotSupported; });
    }
}

}  // namespace

#define TESSERA_NODE cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count
#define TESSERA_PLACE node, graph, after, count

extern "C" {

cudaError_t cudaGraphAddKernelNode(TESSERA_NODE, const cudaKernelNodeParams* parameters)
{
    return add("cudaGraphAddKernelNode", TESSERA_PLACE, parameters);
}
cudaError_t cudaGraphAddMemcpyNode(TESSERA_NODE, const cudaMemcpy3DParms* parameters)
{
    return add("cudaGraphAddMemcpyNode", TESSERA_PLACE, parameters);
}
cudaError_t cudaGraphAddMemcpyNode1D(TESSERA_NODE, void* to, const void* from, size_t bytes, cudaMemcpyKind kind)
{
    return add("cudaGraphAddMemcpyNode1D", TESSERA_PLACE, Copy1D{to, from, bytes, kind});
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(TESSERA_NODE, const void* symbol, const void* from, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind)
{
    return add("cudaGraphAddMemcpyNodeToSymbol", TESSERA_PLACE, SymbolCopy{symbol, nullptr, from, bytes, offset, kind});
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(TESSERA_NODE, void* to, const void* symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind)
{
    return add("cudaGraphAddMemcpyNodeFromSymbol", TESSERA_PLACE, SymbolCopy{symbol, to, nullptr, bytes, offset, kind});
}
cudaError_t cudaGraphAddMemsetNode(TESSERA_NODE, const cudaMemsetParams* parameters)
{
    return add("cudaGraphAddMemsetNode", TESSERA_PLACE, parameters);
}
cudaError_t cudaGraphAddHostNode(TESSERA_NODE, const cudaHostNodeParams* parameters)
{
    return add("cudaGraphAddHostNode", TESSERA_PLACE, parameters);
}
cudaError_t cudaGraphAddChildGraphNode(TESSERA_NODE, cudaGraph_t child)
{
    return add("cudaGraphAddChildGraphNode", TESSERA_PLACE, child);
}
cudaError_t cudaGraphAddEmptyNode(TESSERA_NODE) { return add("cudaGraphAddEmptyNode", TESSERA_PLACE, EmptyWork{}); }
cudaError_t cudaGraphAddEventRecordNode(TESSERA_NODE, cudaEvent_t event)
{
    return add("cudaGraphAddEventRecordNode", TESSERA_PLACE, EventRecordWork{event});
}
cudaError_t cudaGraphAddEventWaitNode(TESSERA_NODE, cudaEvent_t event)
{
    return add("cudaGraphAddEventWaitNode", TESSERA_PLACE, EventWaitWork{event});
}
cudaError_t cudaGraphAddMemAllocNode(TESSERA_NODE, cudaMemAllocNodeParams* parameters)
{
    return add("cudaGraphAddMemAllocNode", TESSERA_PLACE, Allocation1D{parameters, reinterpret_cast<Graph*>(graph)});
}
cudaError_t cudaGraphAddMemFreeNode(TESSERA_NODE, void* address)
{
    return add("cudaGraphAddMemFreeNode", TESSERA_PLACE, FreeWork{address});
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData* /*edges*/, size_t count, cudaGraphNodeParams* parameters)
{
    if (parameters != nullptr && parameters->type == cudaGraphNodeTypeMemAlloc) {
        cudaMemAllocNodeParams allocation{};
        allocation.poolProps = parameters->alloc.poolProps;
        allocation.bytesize = parameters->alloc.bytesize;
        const cudaError_t status =
            add("cudaGraphAddNode", TESSERA_PLACE, Allocation1D{&allocation, reinterpret_cast<Graph*>(graph)});
        parameters->alloc.dptr = allocation.dptr;
        return status;
    }
    if (parameters != nullptr && parameters->type == cudaGraphNodeTypeConditional) {
        return add("cudaGraphAddNode", TESSERA_PLACE,
                   Conditional{&parameters->conditional, reinterpret_cast<Graph*>(graph)});
    }
    return with_parameters(parameters,
                           [&](const auto& which) { return add("cudaGraphAddNode", TESSERA_PLACE, which); });
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph_handle,
                                             unsigned initial, unsigned flags)
{
    return call("cudaGraphConditionalHandleCreate", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        const std::shared_ptr<Graph> graph = find_graph(graph_handle);
        if (handle == nullptr || graph == nullptr || flags > cudaGraphCondAssignDefault) {
            return cudaErrorInvalidValue;
        }
        void* value = nullptr;
        if (const cudaError_t status = allocate(&value, sizeof(unsigned), {.origin = Origin::graph});
            status != cudaSuccess) {
            return status;
        }
        *handle = reinterpret_cast<cudaGraphConditionalHandle>(value);
        graph->memory.push_back(std::make_shared<GraphMemory>(Runtime::get().heap, *handle));
        graph->conditions[*handle] =
            flags == cudaGraphCondAssignDefault ? std::optional<unsigned>(initial) : std::nullopt;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters)
{
    return with_parameters(parameters, [&](const auto& which) { return set("cudaGraphNodeSetParams", node, which); });
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* parameters)
{
    return with_parameters(parameters,
                           [&](const auto& which) { return set_in("cudaGraphExecNodeSetParams", exec, node, which); });
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters)
{
    return get<KernelWork>("cudaGraphKernelNodeGetParams", node,
                           [&](const KernelWork& work) { *parameters = work.parameters; });
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters)
{
    return set("cudaGraphKernelNodeSetParams", node, parameters);
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters)
{
    return set_in("cudaGraphExecKernelNodeSetParams", exec, node, parameters);
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            cudaLaunchAttributeValue* value)
{
    return get<KernelWork>("cudaGraphKernelNodeGetAttribute", node, [&](const KernelWork& work) {
        const auto found = work.attributes.find(id);
        *value = found == work.attributes.end() ? cudaLaunchAttributeValue{} : found->second;
    });
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            const cudaLaunchAttributeValue* value)
{
    return get<KernelWork>("cudaGraphKernelNodeSetAttribute", node, [&](KernelWork& work) {
        work.attributes[id] = *value;
        if (id == cudaLaunchAttributeClusterDimension) {
            work.request.cluster = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
            work.request.explicit_cluster = true;
        }
    });
}
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from)
{
    return get<KernelWork>("cudaGraphKernelNodeCopyAttributes", to, [&](KernelWork& target) {
        const GraphNode* source = find_node(from);
        if (const auto* work = source == nullptr ? nullptr : std::get_if<KernelWork>(&source->work)) {
            target.attributes = work->attributes;
            target.request.cluster = work->request.cluster;
            target.request.explicit_cluster = work->request.explicit_cluster;
        }
    });
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* parameters)
{
    return get<CopyWork>("cudaGraphMemcpyNodeGetParams", node,
                         [&](const CopyWork& work) { *parameters = work.parameters; });
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters)
{
    return set("cudaGraphMemcpyNodeSetParams", node, parameters);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t count,
                                           cudaMemcpyKind kind)
{
    return set("cudaGraphMemcpyNodeSetParams1D", node, Copy1D{to, from, count, kind});
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* from,
                                                 size_t count, size_t offset, cudaMemcpyKind kind)
{
    return set("cudaGraphMemcpyNodeSetParamsToSymbol", node, SymbolCopy{symbol, nullptr, from, count, offset, kind});
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to, const void* symbol, size_t count,
                                                   size_t offset, cudaMemcpyKind kind)
{
    return set("cudaGraphMemcpyNodeSetParamsFromSymbol", node, SymbolCopy{symbol, to, nullptr, count, offset, kind});
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* parameters)
{
    return set_in("cudaGraphExecMemcpyNodeSetParams", exec, node, parameters);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to, const void* from,
                                               size_t count, cudaMemcpyKind kind)
{
    return set_in("cudaGraphExecMemcpyNodeSetParams1D", exec, node, Copy1D{to, from, count, kind});
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void* symbol,
                                                     const void* from, size_t count, size_t offset, cudaMemcpyKind kind)
{
    return set_in("cudaGraphExecMemcpyNodeSetParamsToSymbol", exec, node,
                  SymbolCopy{symbol, nullptr, from, count, offset, kind});
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                                       const void* symbol, size_t count, size_t offset,
                                                       cudaMemcpyKind kind)
{
    return set_in("cudaGraphExecMemcpyNodeSetParamsFromSymbol", exec, node,
                  SymbolCopy{symbol, to, nullptr, count, offset, kind});
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* parameters)
{
    return get<FillWork>("cudaGraphMemsetNodeGetParams", node,
                         [&](const FillWork& work) { *parameters = parameters_of(work); });
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters)
{
    return set("cudaGraphMemsetNodeSetParams", node, parameters);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters)
{
    return set_in("cudaGraphExecMemsetNodeSetParams", exec, node, parameters);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* parameters)
{
    return get<HostWork>("cudaGraphHostNodeGetParams", node,
                         [&](const HostWork& work) { *parameters = {.fn = work.function, .userData = work.argument}; });
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters)
{
    return set("cudaGraphHostNodeSetParams", node, parameters);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* parameters)
{
    return set_in("cudaGraphExecHostNodeSetParams", exec, node, parameters);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph)
{
    return get<ChildWork>("cudaGraphChildGraphNodeGetGraph", node,
                          [&](const ChildWork& work) { *graph = handle_of(work.graph.get()); });
}
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child)
{
    return set_in("cudaGraphExecChildGraphNodeSetParams", exec, node, child);
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event)
{
    return get<EventRecordWork>("cudaGraphEventRecordNodeGetEvent", node,
                                [&](const EventRecordWork& work) { *event = work.event; });
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    return set("cudaGraphEventRecordNodeSetEvent", node, EventRecordWork{event});
}
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event)
{
    return set_in("cudaGraphExecEventRecordNodeSetEvent", exec, node, EventRecordWork{event});
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event)
{
    return get<EventWaitWork>("cudaGraphEventWaitNodeGetEvent", node,
                              [&](const EventWaitWork& work) { *event = work.event; });
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    return set("cudaGraphEventWaitNodeSetEvent", node, EventWaitWork{event});
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event)
{
    return set_in("cudaGraphExecEventWaitNodeSetEvent", exec, node, EventWaitWork{event});
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* parameters)
{
    return get<AllocateWork>("cudaGraphMemAllocNodeGetParams", node,
                             [&](const AllocateWork& work) { *parameters = work.parameters; });
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* address)
{
    return get<FreeWork>("cudaGraphMemFreeNodeGetParams", node,
                         [&](const FreeWork& work) { *static_cast<void**>(address) = work.address; });
}

}  // extern "C"

#undef TESSERA_NODE
#undef TESSERA_PLACE
