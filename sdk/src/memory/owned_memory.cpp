#include "memory/owned_memory.hpp"

#include <cuda.h>
#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <exception>
#include <string>

namespace tessera::detail {
namespace {

OwnedMemory allocate_from_resource(StreamRef stream, const OwnedMemory& wanted, const char* what,
                                   std::string_view operation, const std::source_location& caller)
{
    OwnedMemory memory = wanted;
    memory.data = memory.resource.allocate(memory.bytes, allocation_alignment, stream.get());
    if (memory.data == nullptr) {
        raise(ErrorCode::out_of_memory, operation, caller,
              fmt::format("the memory resource returned null for {}{} bytes on device {}", what, memory.bytes,
                          stream.device()),
              "free memory of the resource or use a smaller problem");
    }
    if (std::bit_cast<std::uintptr_t>(memory.data) % allocation_alignment != 0) {
        const std::string message = fmt::format("the memory resource returned {}, which is not {}-byte aligned",
                                                fmt::ptr(memory.data), allocation_alignment);
        free_on(stream.get(), memory);
        raise(ErrorCode::misaligned, operation, caller, message, "a resource that honours the requested alignment");
    }
    return memory;
}

}  // namespace

OwnedMemory allocate_on(StreamRef stream, std::size_t bytes, Allocation allocation, MemoryResourceRef resource,
                        const char* what, std::string_view operation, const std::source_location& caller)
{
    OwnedMemory memory{nullptr, bytes, allocation, resource};
    if (allocation == Allocation::resource) {
        return allocate_from_resource(stream, memory, what, operation, caller);
    }
    const bool from_pool = allocation == Allocation::pool;
    const cudaError_t status =
        from_pool ? cudaMallocAsync(&memory.data, bytes, stream.get()) : cudaMalloc(&memory.data, bytes);
    if (status != cudaSuccess) {
        raise_cuda(status, from_pool ? "cudaMallocAsync" : "cudaMalloc", operation, caller,
                   fmt::format("while allocating {}{} bytes on device {}", what, bytes, stream.device()));
    }
    return memory;
}

void free_on(cudaStream_t stream, const OwnedMemory& memory) noexcept
{
    switch (memory.allocation) {
        case Allocation::resource:
            try {
                memory.resource.deallocate(memory.data, memory.bytes, allocation_alignment, stream);
            } catch (const std::exception& exception) {
                drop("a memory resource, while it freed memory,", exception.what());
            } catch (...) {
                drop("a memory resource, while it freed memory,", "something that is not a std::exception");
            }
            return;
        case Allocation::plain:
            drop(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
            drop(cudaFree(memory.data), "cudaFree");
            return;
        case Allocation::pool:
        case Allocation::automatic: drop(cudaFreeAsync(memory.data, stream), "cudaFreeAsync"); return;
    }
}

DestructorsDevice::DestructorsDevice(int ordinal) noexcept
{
    int current = -1;
    drop(cudaGetDevice(&current), "cudaGetDevice");
    if (current != ordinal) {
        drop(cudaSetDevice(ordinal), "cudaSetDevice");
        previous_ = current;
    }
}

DestructorsDevice::~DestructorsDevice()
{
    if (previous_ >= 0) {
        drop(cudaSetDevice(previous_), "cudaSetDevice");
    }
}

KnownOrigin origin_of(const void* data) noexcept
{
    // The runtime cannot tell. The driver is called through the runtime, so that the SDK need not link libcuda.
    using GetAttribute = CUresult (*)(void*, CUpointer_attribute, CUdeviceptr);
    constexpr unsigned version = 11020;  // the first version that knows of pools
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", &function, version, cudaEnableDefault, &found);
    if (status != cudaSuccess || found != cudaDriverEntryPointSuccess || function == nullptr) {
        forget(status);
        return KnownOrigin::unknown;
    }
    CUmemoryPool pool = nullptr;
    if (reinterpret_cast<GetAttribute>(function)(reinterpret_cast<void*>(&pool), CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                                 std::bit_cast<CUdeviceptr>(data)) != CUDA_SUCCESS) {
        return KnownOrigin::unknown;
    }
    return pool == nullptr ? KnownOrigin::no_pool : KnownOrigin::pool;
}

}  // namespace tessera::detail
