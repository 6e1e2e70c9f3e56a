// Driver calls for captures and graphs, on top of the runtime's public functions. Compiled twice, as driver_calls.cpp.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "runtime/driver_call.hpp"

using namespace tessera::emulator;

namespace {

cudaKernelNodeParams runtime_parameters_of(const CUDA_KERNEL_NODE_PARAMS& parameters)
{
    cudaKernelNodeParams result{};
    result.func = parameters.func != nullptr ? cast<void*>(parameters.func) : cast<void*>(parameters.kern);
    result.gridDim = dim3(parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ);
    result.blockDim = dim3(parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ);
    result.sharedMemBytes = parameters.sharedMemBytes;
    result.kernelParams = parameters.kernelParams;
    result.extra = parameters.extra;
    return result;
}

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return on_runtime(
        [&] { return cudaStreamBeginCapture(stream_of(stream), static_cast<cudaStreamCaptureMode>(mode)); });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph)
{
    return on_runtime([&] { return cudaStreamEndCapture(stream_of(stream), graph); });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count)
{
    static_assert(sizeof(CUgraphEdgeData) == sizeof(cudaGraphEdgeData));
    return on_runtime([&] {
        return cudaStreamGetCaptureInfo(stream_of(stream), reinterpret_cast<cudaStreamCaptureStatus*>(status),
                                        reinterpret_cast<unsigned long long*>(id), graph, dependencies,
                                        reinterpret_cast<const cudaGraphEdgeData**>(edges), count);
    });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode)
{
    static_assert(sizeof(CUstreamCaptureMode) == sizeof(cudaStreamCaptureMode));
    return on_runtime(
        [&] { return cudaThreadExchangeStreamCaptureMode(reinterpret_cast<cudaStreamCaptureMode*>(mode)); });
}

CUresult cuGraphCreate(CUgraph* graph, unsigned flags)
{
    return on_runtime([&] { return cudaGraphCreate(graph, flags); });
}

CUresult cuGraphDestroy(CUgraph graph)
{
    return on_runtime([&] { return cudaGraphDestroy(graph); });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count)
{
    return on_runtime([&] { return cudaGraphGetNodes(graph, nodes, count); });
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type)
{
    static_assert(CU_GRAPH_NODE_TYPE_KERNEL == static_cast<int>(cudaGraphNodeTypeKernel) &&
                  CU_GRAPH_NODE_TYPE_CONDITIONAL == static_cast<int>(cudaGraphNodeTypeConditional));
    return on_runtime([&] { return cudaGraphNodeGetType(node, reinterpret_cast<cudaGraphNodeType*>(type)); });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count)
{
    return on_runtime([&] { return cudaGraphAddEmptyNode(node, graph, dependencies, count); });
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters)
{
    if (parameters == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const cudaKernelNodeParams runtime_parameters = runtime_parameters_of(*parameters);
    return on_runtime([&] { return cudaGraphAddKernelNode(node, graph, dependencies, count, &runtime_parameters); });
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue* value)
{
    static_assert(sizeof(CUkernelNodeAttrValue) == sizeof(cudaKernelNodeAttrValue));
    return on_runtime([&] {
        return cudaGraphKernelNodeGetAttribute(node, static_cast<cudaKernelNodeAttrID>(attribute),
                                               reinterpret_cast<cudaKernelNodeAttrValue*>(value));
    });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value)
{
    return on_runtime([&] {
        return cudaGraphKernelNodeSetAttribute(node, static_cast<cudaKernelNodeAttrID>(attribute),
                                               reinterpret_cast<const cudaKernelNodeAttrValue*>(value));
    });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags)
{
    return on_runtime([&] { return cudaGraphInstantiate(executable, graph, flags); });
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream stream)
{
    return on_runtime([&] { return cudaGraphUpload(executable, stream_of(stream)); });
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    return on_runtime([&] { return cudaGraphLaunch(executable, stream_of(stream)); });
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    return on_runtime([&] { return cudaGraphExecDestroy(executable); });
}

}  // extern "C"
