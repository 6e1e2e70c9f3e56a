#pragma once

// The parameters of graph nodes: each make() returns the node's work, or the error of invalid parameters. Requires the
// runtime's mutex.

#include <cuda_runtime_api.h>

#include "runtime/state.hpp"

namespace tessera::emulator {

struct Copy1D {
    void* to;
    const void* from;
    std::size_t count;
    cudaMemcpyKind kind;
};

struct SymbolCopy {
    const void* symbol;
    void* to;          // null: the symbol
    const void* from;  // null: the symbol
    std::size_t count, offset;
    cudaMemcpyKind kind;
};

struct Allocation1D {
    cudaMemAllocNodeParams* parameters;
    Graph* graph;
};

struct Conditional {
    cudaConditionalNodeParams* parameters;
    Graph* graph;
};

[[nodiscard]] cudaError_t make(const cudaKernelNodeParams* parameters, Work& work);
[[nodiscard]] cudaError_t make(const cudaMemcpy3DParms* parameters, Work& work);
[[nodiscard]] cudaError_t make(const Copy1D& parameters, Work& work);
[[nodiscard]] cudaError_t make(const SymbolCopy& parameters, Work& work);
[[nodiscard]] cudaError_t make(const cudaMemsetParams* parameters, Work& work);
[[nodiscard]] cudaError_t make(const cudaHostNodeParams* parameters, Work& work);
[[nodiscard]] cudaError_t make(const EmptyWork& empty, Work& work);
[[nodiscard]] cudaError_t make(const EventRecordWork& event, Work& work);
[[nodiscard]] cudaError_t make(const EventWaitWork& event, Work& work);
[[nodiscard]] cudaError_t make(cudaGraph_t child, Work& work);
[[nodiscard]] cudaError_t make(const Allocation1D& allocation, Work& work);
[[nodiscard]] cudaError_t make(const FreeWork& free, Work& work);
/// A handle belongs to the graph that it was created with, and to one node of it.
[[nodiscard]] cudaError_t make(const Conditional& conditional, Work& work);

}  // namespace tessera::emulator
