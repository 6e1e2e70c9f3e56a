#include "runtime/node_work.hpp"

#include "runtime/graph.hpp"
#include "runtime/kernels.hpp"
#include "runtime/memory.hpp"

namespace tessera::emulator {

namespace {

template <class EventWork>
cudaError_t make_event(const EventWork& event, Work& work)
{
    if (!Runtime::get().events.contains(event.event)) {
        return cudaErrorInvalidValue;
    }
    work = event;
    return cudaSuccess;
}

}  // namespace

cudaError_t make(const cudaKernelNodeParams* parameters, Work& work)
{
    if (parameters == nullptr || (parameters->kernelParams == nullptr && parameters->extra != nullptr)) {
        return cudaErrorInvalidValue;  // `extra`, a packed buffer, is not emulated
    }
    KernelWork kernel;
    const cudaError_t status = make_kernel_work(
        parameters->func,
        {.grid = parameters->gridDim, .block = parameters->blockDim, .shared = parameters->sharedMemBytes},
        parameters->kernelParams, current_device(), kernel);
    work = std::move(kernel);
    return status;
}

cudaError_t make(const cudaMemcpy3DParms* parameters, Work& work)
{
    if (parameters == nullptr) {
        return cudaErrorInvalidValue;
    }
    CopyWork copy;
    if (const cudaError_t status = make_copy(*parameters, copy); status != cudaSuccess) {
        return status;
    }
    work = copy;
    return check_copy("a memcpy node", copy);
}

cudaError_t make(const Copy1D& parameters, Work& work)
{
    const CopyWork copy = make_copy(parameters.to, parameters.from, parameters.count, parameters.kind);
    work = copy;
    return check_copy("a memcpy node", copy);
}

cudaError_t make(const SymbolCopy& parameters, Work& work)
{
    VariableInfo variable;
    if (const cudaError_t status = find_symbol(parameters.symbol, current_device(), variable); status != cudaSuccess) {
        return status;
    }
    if (parameters.offset > variable.size || parameters.count > variable.size - parameters.offset) {
        return cudaErrorInvalidValue;
    }
    void* const address = reinterpret_cast<void*>(variable.address + parameters.offset);
    return make(Copy1D{parameters.to == nullptr ? address : parameters.to,
                       parameters.from == nullptr ? address : parameters.from, parameters.count, parameters.kind},
                work);
}

cudaError_t make(const cudaMemsetParams* parameters, Work& work)
{
    if (parameters == nullptr) {
        return cudaErrorInvalidValue;
    }
    const FillWork fill{.to = static_cast<std::byte*>(parameters->dst),
                        .value = parameters->value,
                        .element_size = parameters->elementSize,
                        .width = parameters->width,
                        .height = parameters->height,
                        .pitch = parameters->pitch};
    work = fill;
    return check_fill("a memset node", fill);
}

cudaError_t make(const cudaHostNodeParams* parameters, Work& work)
{
    if (parameters == nullptr || parameters->fn == nullptr) {
        return cudaErrorInvalidValue;
    }
    work = HostWork{parameters->fn, parameters->userData};
    return cudaSuccess;
}

cudaError_t make(const EmptyWork& empty, Work& work)
{
    work = empty;
    return cudaSuccess;
}

cudaError_t make(const EventRecordWork& event, Work& work) { return make_event(event, work); }
cudaError_t make(const EventWaitWork& event, Work& work) { return make_event(event, work); }

cudaError_t make(cudaGraph_t child, Work& work)
{
    const std::shared_ptr<Graph> graph = find_graph(child);
    if (graph == nullptr) {
        return cudaErrorInvalidValue;
    }
    work = ChildWork{clone(*graph)};
    return cudaSuccess;
}

cudaError_t make(const Allocation1D& allocation, Work& work)
{
    cudaMemAllocNodeParams* parameters = allocation.parameters;
    if (parameters == nullptr || parameters->bytesize == 0 ||
        parameters->poolProps.location.type != cudaMemLocationTypeDevice) {
        return cudaErrorInvalidValue;
    }
    if (const cudaError_t status = allocate(&parameters->dptr, parameters->bytesize, {.origin = Origin::graph});
        status != cudaSuccess) {
        return status;
    }
    allocation.graph->memory.push_back(
        std::make_shared<GraphMemory>(Runtime::get().heap, reinterpret_cast<std::uint64_t>(parameters->dptr)));
    AllocateWork result;
    result.parameters = *parameters;
    result.parameters.accessDescs = nullptr;
    result.parameters.accessDescCount = 0;
    work = result;
    return cudaSuccess;
}

cudaError_t make(const FreeWork& free, Work& work)
{
    const auto record = Runtime::get().heap.find(reinterpret_cast<std::uint64_t>(free.address));
    if (!record || record->origin != Origin::graph) {
        return cudaErrorInvalidValue;
    }
    work = free;
    return cudaSuccess;
}

cudaError_t make(const Conditional& conditional, Work& work)
{
    cudaConditionalNodeParams& parameters = *conditional.parameters;
    const bool size_fits = parameters.type == cudaGraphCondTypeIf      ? parameters.size == 1 || parameters.size == 2
                           : parameters.type == cudaGraphCondTypeWhile ? parameters.size == 1
                                                                       : parameters.size >= 1;
    if (!conditional.graph->conditions.contains(parameters.handle) || !size_fits ||
        parameters.type > cudaGraphCondTypeSwitch) {
        return cudaErrorInvalidValue;
    }
    for (const auto& node : conditional.graph->nodes) {
        const auto* other = std::get_if<ConditionalWork>(&node->work);
        if (other != nullptr && other->handle == parameters.handle) {
            return cudaErrorInvalidValue;
        }
    }
    ConditionalWork result{.handle = parameters.handle,
                           .type = parameters.type,
                           .bodies = {},
                           .body_handles = std::make_shared<std::vector<cudaGraph_t>>()};
    for (unsigned i = 0; i < parameters.size; ++i) {
        auto body = std::make_shared<Graph>();
        body->self = body;
        result.body_handles->push_back(handle_of(body.get()));
        result.bodies.push_back(std::move(body));
    }
    parameters.phGraph_out = result.body_handles->data();
    work = std::move(result);
    return cudaSuccess;
}

}  // namespace tessera::emulator
