#include "gemm/encoded_launch.hpp"

#include <atomic>
#include <span>

namespace tessera::detail {
namespace {

constexpr std::uint32_t usual_shared_bytes = 48 << 10;  // a kernel with more must ask for it

/// The devices on which a kernel's limit of dynamic shared memory has been raised.
struct RaisedLimit {
    std::atomic<const void*> function{nullptr};
    std::atomic<std::uint64_t> devices{0};  // one bit each
};

/// A hash table with room for several times the kernels of the library. Nothing leaves it.
constinit std::array<RaisedLimit, 1024> raised_limits{};

/// Returns the entry of `function`, or null if the table is full.
RaisedLimit* limit_of(const void* function)
{
    constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15U;  // 2^64 divided by it
    const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(function) * golden_ratio;
    for (std::size_t i = 0; i < raised_limits.size(); ++i) {
        RaisedLimit& limit = raised_limits[((hash >> 32U) + i) % raised_limits.size()];
        const void* found = limit.function.load(std::memory_order_acquire);
        if (found == nullptr && limit.function.compare_exchange_strong(found, function, std::memory_order_acq_rel)) {
            return &limit;
        }
        if (found == function) {
            return &limit;
        }
    }
    return nullptr;
}

/// Raises the kernel's limit, once per device. Threads that come at the same time may all do it, with the same effect.
cudaError_t allow_shared_memory(const EncodedLaunch& launch, int device)
{
    if (launch.shared_bytes <= usual_shared_bytes) {
        return cudaSuccess;
    }
    // A device without a bit makes the call each time.
    const std::uint64_t bit = device < 64 ? std::uint64_t{1} << static_cast<unsigned>(device) : 0;
    RaisedLimit* const limit = limit_of(launch.function);
    if (limit != nullptr && (limit->devices.load(std::memory_order_acquire) & bit) != 0) {
        return cudaSuccess;
    }
    const cudaError_t status = cudaFuncSetAttribute(launch.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                    static_cast<int>(launch.shared_bytes));
    if (status == cudaSuccess && limit != nullptr) {
        limit->devices.fetch_or(bit, std::memory_order_release);
    }
    return status;
}

}  // namespace

CallStatus enqueue(const EncodedLaunch& launch, StreamRef stream)
{
    if (const cudaError_t status = allow_shared_memory(launch, stream.device()); status != cudaSuccess) {
        return {status, "cudaFuncSetAttribute"};
    }
    if (launch.copy_count > 0) {
        const cudaError_t status = kernels::repack(std::span(launch.copies).first(launch.copy_count),
                                                   launch.copied_element_bytes, stream.get());
        if (status != cudaSuccess) {
            return {status, "cudaLaunchKernelExC of the kernel that repacks operands"};
        }
    }
    std::array<cudaLaunchAttribute, 2> attributes;
    unsigned count = 0;
    if (launch.programmatic) {
        attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (launch.cluster > 1) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count++].val.clusterDim = {launch.cluster, 1, 1};
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(launch.ctas);
    config.blockDim = dim3(launch.threads);
    config.dynamicSmemBytes = launch.shared_bytes;
    config.stream = stream.get();
    config.attrs = attributes.data();
    config.numAttrs = count;
    void* parameters[] = {const_cast<std::byte*>(launch.argument.data())};  // CUDA only reads it
    return {cudaLaunchKernelExC(&config, launch.function, parameters), "cudaLaunchKernelExC"};
}

}  // namespace tessera::detail
