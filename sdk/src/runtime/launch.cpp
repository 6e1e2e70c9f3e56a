#include "tessera/launch.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace tessera {
namespace {

constexpr std::uint64_t max_grid_x = 0x7FFFFFFF;
constexpr unsigned max_grid_yz = 65535;
constexpr std::size_t default_shared_bytes = std::size_t{48} << 10U;  // bytes, static and dynamic together

std::string text(Dim3 extents) { return fmt::format("({}, {}, {})", extents.x, extents.y, extents.z); }

std::string name_of(const void* kernel)
{
    const char* mangled = nullptr;
    if (cudaFuncGetName(&mangled, kernel) != cudaSuccess || mangled == nullptr) {
        cudaGetLastError();
        return "the kernel (its name is unknown: is it a __global__ function?)";
    }
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> demangled(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                                &std::free);
    return "kernel " + std::string(status == 0 ? demangled.get() : mangled);
}

[[noreturn]] void refuse(const void* kernel, const LaunchConfig& config, const std::string& message,
                         const std::string& cure = {})
{
    detail::raise(ErrorCode::launch_refused, "launch", config.caller(), name_of(kernel) + ": " + message, cure);
}

/// Makes all checks that need no CUDA call about the kernel.
void require_valid(const void* kernel, const LaunchConfig& config, const DeviceProperties& device)
{
    const Dim3 grid = config.grid();
    const Dim3 block = config.block();
    const Dim3 cluster = config.cluster();
    if (grid.count() == 0 || block.count() == 0 || cluster.count() == 0) {
        refuse(
            kernel, config,
            fmt::format("grid {}, block {} and cluster {} must not be empty", text(grid), text(block), text(cluster)),
            "LaunchConfig::covering(stream, count) for a count that may be 0");
    }
    if (grid.x > max_grid_x || grid.y > max_grid_yz || grid.z > max_grid_yz) {
        refuse(kernel, config, fmt::format("grid {} is too large", text(grid)),
               "at most (2147483647, 65535, 65535) CTAs");
    }
    if (block.count() > static_cast<std::uint64_t>(device.max_threads_per_block) || block.z > 64) {
        refuse(kernel, config, fmt::format("block {} has {} threads", text(block), block.count()),
               fmt::format("at most {} threads per CTA on {}, and at most 64 in z", device.max_threads_per_block,
                           device.name));
    }
    if (config.is_programmatic_dependent_launch() && !device.has_clusters) {
        detail::raise(
            ErrorCode::unsupported_device, "launch", config.caller(),
            fmt::format("{}: a programmatic dependent launch was requested, and {} (compute capability {}.{}) "
                        "does not support it",
                        name_of(kernel), device.name, device.compute_capability_major, device.compute_capability_minor),
            "a device of compute capability 9.0 or later");
    }
    if (cluster != Dim3{}) {
        if (!device.has_clusters) {
            detail::raise(
                ErrorCode::unsupported_device, "launch", config.caller(),
                fmt::format("{}: a cluster of {} was requested, and {} (compute capability {}.{}) has no clusters",
                            name_of(kernel), text(cluster), device.name, device.compute_capability_major,
                            device.compute_capability_minor),
                "a device of compute capability 9.0 or later");
        }
        if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
            const auto whole = [](unsigned extent, unsigned by) { return (extent + by - 1) / by * by; };
            const Dim3 next{whole(grid.x, cluster.x), whole(grid.y, cluster.y), whole(grid.z, cluster.z)};
            refuse(kernel, config, fmt::format("grid {} is not a multiple of cluster {}", text(grid), text(cluster)),
                   fmt::format("a grid of {}, or a cluster whose extents divide the grid's", text(next)));
        }
    }
}

/// After CUDA refused a launch: finds the limit that was exceeded, or falls back to CUDA's own text.
[[noreturn]] void diagnose(const void* kernel, const LaunchConfig& config, const DeviceProperties& device,
                           cudaError_t status)
{
    cudaFuncAttributes attributes{};
    if (!is_sticky(status) && cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess) {
        cudaGetLastError();
        if (config.block().count() > static_cast<std::uint64_t>(attributes.maxThreadsPerBlock)) {
            refuse(kernel, config,
                   fmt::format("{} threads per CTA were requested, but the kernel, with {} registers per thread, runs "
                               "with at most {}",
                               config.block().count(), attributes.numRegs, attributes.maxThreadsPerBlock),
                   "a smaller block, or __launch_bounds__ on the kernel");
        }
        const std::size_t shared = config.shared_memory_bytes() + attributes.sharedSizeBytes;
        if (shared > device.shared_memory_per_block_bytes) {
            refuse(kernel, config,
                   fmt::format("{} bytes of dynamic and {} bytes of static shared memory were requested",  //
                               config.shared_memory_bytes(), attributes.sharedSizeBytes),
                   fmt::format("at most {} bytes together per CTA on {}", device.shared_memory_per_block_bytes,
                               device.name));
        }
        if (status == cudaErrorCooperativeLaunchTooLarge) {
            refuse(kernel, config,
                   fmt::format("a cooperative launch must run all {} CTAs of grid {} at once", config.grid().count(),
                               text(config.grid())),
                   fmt::format("no more CTAs than fit on the {} SMs of {} at once (see "
                               "cudaOccupancyMaxActiveBlocksPerMultiprocessor)",
                               device.sm_count, device.name));
        }
        if (config.cluster().count() > 8) {
            refuse(kernel, config, fmt::format("a cluster of {} CTAs was refused", config.cluster().count()),
                   "at most 8 CTAs per cluster, or up to 16 after allowing non-portable cluster sizes for the kernel");
        }
    }
    detail::raise_cuda(
        status, "cudaLaunchKernelExC", "launch", config.caller(),
        fmt::format("while launching {} with grid {}, block {}, cluster {} and {} bytes of dynamic shared "
                    "memory",
                    name_of(kernel), text(config.grid()), text(config.block()), text(config.cluster()),
                    config.shared_memory_bytes()));
}

/// Raises the kernel's limit of dynamic shared memory to `bytes`. Never lowers it: another thread may be about to
/// launch with more.
cudaError_t raise_shared_memory_limit(const void* kernel, std::size_t bytes)
{
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    cudaFuncAttributes attributes{};
    if (const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel); status != cudaSuccess) {
        return status;
    }
    const auto limit = static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes);
    const bool fits_default = bytes + attributes.sharedSizeBytes <= default_shared_bytes;
    if (fits_default || (bytes <= limit && limit != default_shared_bytes)) {
        return cudaSuccess;
    }
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

}  // namespace

LaunchConfig LaunchConfig::covering(StreamRef stream, std::size_t count, unsigned threads_per_block,
                                    std::source_location caller)
{
    if (threads_per_block == 0) {
        detail::raise(ErrorCode::launch_refused, "LaunchConfig::covering", caller, "a CTA cannot have 0 threads",
                      "a multiple of 32, such as the default of 256");
    }
    const std::size_t blocks = count / threads_per_block + (count % threads_per_block != 0 ? 1 : 0);
    if (blocks > max_grid_x) {
        detail::raise(ErrorCode::launch_refused, "LaunchConfig::covering", caller,
                      fmt::format("{} elements need {} CTAs of {} threads", count, blocks, threads_per_block),
                      "at most 2147483647 CTAs: more threads per CTA, or a kernel with a grid-stride loop");
    }
    LaunchConfig config(stream, {static_cast<unsigned>(blocks)}, {threads_per_block}, caller);
    config.empty_ = count == 0;
    return config;
}

LaunchConfig LaunchConfig::covering_matrix(StreamRef stream, std::int64_t rows, std::int64_t columns, Dim3 block,
                                           const std::source_location& caller)
{
    constexpr const char* operation = "LaunchConfig::covering";
    if (block.count() == 0) {
        detail::raise(ErrorCode::launch_refused, operation, caller, "a CTA cannot have 0 threads",
                      "a multiple of 32 threads");
    }
    const auto ctas = [](std::int64_t extent, unsigned threads) {
        return static_cast<std::uint64_t>(extent) / threads +
               (static_cast<std::uint64_t>(extent) % threads != 0 ? 1 : 0);
    };
    const std::uint64_t across = ctas(columns, block.x);
    const std::uint64_t down = ctas(rows, block.y);
    const std::uint64_t layers = std::max<std::uint64_t>((down + max_grid_yz - 1) / max_grid_yz, 1);
    if (across > max_grid_x || layers > max_grid_yz) {
        detail::raise(ErrorCode::launch_refused, operation, caller,
                      fmt::format("a {}x{} matrix needs {} by {} CTAs of {} rows and {} columns", rows, columns, down,
                                  across, block.y, block.x),
                      "at most 4294836225 by 2147483647 CTAs: a kernel with a grid-stride loop");
    }
    const auto height = static_cast<unsigned>((down + layers - 1) / layers);
    LaunchConfig config(stream, {static_cast<unsigned>(across), height, static_cast<unsigned>(layers)}, block, caller);
    config.empty_ = rows == 0 || columns == 0;
    return config;
}

namespace detail {

void launch_kernel(const void* kernel, const LaunchConfig& config, void** arguments)
{
    if (kernel == nullptr) {
        raise(ErrorCode::empty_handle, "launch", config.caller(), "the kernel is a null pointer",
              "the address of a __global__ function");
    }
    if (config.empty()) {
        return;
    }
    const StreamRef stream = config.stream();
    const Device owner(stream.device(), config.caller());
    const DeviceProperties& device = owner.properties();
    require_valid(kernel, config, device);

    const CurrentDevice current(stream.device(), "launch", config.caller());
    if (config.shared_memory_bytes() > 0) {
        const cudaError_t status = raise_shared_memory_limit(kernel, config.shared_memory_bytes());
        if (status != cudaSuccess) {
            diagnose(kernel, config, device, status);
        }
    }
    std::array<cudaLaunchAttribute, 3> attributes{};
    unsigned count = 0;
    if (config.cluster() != Dim3{}) {
        cudaLaunchAttribute& cluster = attributes[count++];
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = config.cluster().x;
        cluster.val.clusterDim.y = config.cluster().y;
        cluster.val.clusterDim.z = config.cluster().z;
    }
    if (config.is_cooperative()) {
        cudaLaunchAttribute& cooperative = attributes[count++];
        cooperative.id = cudaLaunchAttributeCooperative;
        cooperative.val.cooperative = 1;
    }
    if (config.is_programmatic_dependent_launch()) {
        cudaLaunchAttribute& dependent = attributes[count++];
        dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        dependent.val.programmaticStreamSerializationAllowed = 1;
    }
    cudaLaunchConfig_t native{};
    native.gridDim = dim3(config.grid().x, config.grid().y, config.grid().z);
    native.blockDim = dim3(config.block().x, config.block().y, config.block().z);
    native.dynamicSmemBytes = config.shared_memory_bytes();
    native.stream = stream.get();
    native.attrs = attributes.data();
    native.numAttrs = count;
    const cudaError_t status = cudaLaunchKernelExC(&native, kernel, arguments);
    if (status != cudaSuccess) [[unlikely]] {
        diagnose(kernel, config, device, status);
    }
}

}  // namespace detail
}  // namespace tessera
