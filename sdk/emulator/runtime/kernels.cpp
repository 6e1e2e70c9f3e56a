#include "runtime/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "runtime/ptx_link.hpp"

namespace tessera::emulator {

namespace {

/// "sm_90a" for ".target sm_90a, debug"; empty if there is none.
std::string_view target_of(std::string_view text)
{
    const std::size_t directive = text.find(".target");
    const std::size_t name = directive == std::string_view::npos ? directive : text.find("sm_", directive);
    if (name == std::string_view::npos) {
        return {};
    }
    constexpr std::string_view word = "abcdefghijklmnopqrstuvwxyz_0123456789";
    return text.substr(name, text.find_first_not_of(word, name) - name);
}

/// The PTX of `image` for `device`.
std::string select_ptx(const CodeImage& image, const DeviceModel& device, LoadedOn& result)
{
    if (image.entries.empty() && !image.text.empty()) {
        if (const std::string_view target = target_of(image.text); !target.empty() && !runs_target(device, target)) {
            say(fmt::format(
                "PTX cannot be loaded: it is for {}, which {} (compute capability {}.{}) cannot run. Compile "
                "it for sm_{}{}",
                target, device.name, device.major, device.minor, device.capability(),
                device.capability() >= 90 ? "a" : ""));
            result.status = cudaErrorInvalidPtx;
        }
        return image.text;
    }
    if (const FatbinEntry* entry = choose_ptx(image.entries, device)) {
        return ptx_text(*entry);
    }
    if (image.wrapper != nullptr) {
        // Relocatable device code: the link step left only machine code, and the units' images beside it.
        std::vector<std::string> units;
        for (const std::vector<FatbinEntry>& unit : read_prelinked(image.wrapper)) {
            if (const FatbinEntry* entry = choose_ptx(unit, device)) {
                units.push_back(ptx_text(*entry));
            } else {
                say("a translation unit of the program's relocatable device code (nvcc -rdc=true) has no PTX: " +
                    explain_no_ptx(unit, device));
                result.status = cudaErrorNoKernelImageForDevice;
                return {};
            }
        }
        if (!units.empty()) {
            return units.size() == 1 ? units.front() : link_ptx(units);
        }
    }
    result.status = cudaErrorNoKernelImageForDevice;
    say(explain_no_ptx(image.entries, device));
    return {};
}

/// 80 for ".target sm_80"; 0 if there is none.
int ptx_version_of(std::string_view text)
{
    const std::string_view target = target_of(text);
    int version = 0;
    if (!target.empty()) {
        std::from_chars(target.data() + 3, target.data() + target.size(), version);
    }
    return version;
}

cudaError_t check_block(const dim3& block, const KernelInfo& info)
{
    if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > 1024 || block.y > 1024 || block.z > 64) {
        return cudaErrorInvalidValue;
    }
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    return threads > std::min(1024U, info.max_threads) ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t check_grid(const dim3& grid)
{
    constexpr unsigned limit_x = 0x7FFFFFFF;
    constexpr unsigned limit_yz = 65535;
    const bool fits =
        grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= limit_x && grid.y <= limit_yz && grid.z <= limit_yz;
    return fits ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t check_cluster(const LaunchRequest& request, const ReadyKernel& ready, const DeviceModel& model)
{
    const std::uint64_t size = request.cluster.count();
    if (!request.explicit_cluster) {
        return ready.info->explicit_cluster ? cudaErrorInvalidClusterSize : cudaSuccess;
    }
    if (model.max_cluster == 0) {
        return cudaErrorInvalidClusterSize;
    }
    const unsigned limit = ready.state->non_portable_cluster ? model.max_cluster : model.portable_cluster;
    if (size == 0 || size > limit) {
        return cudaErrorInvalidClusterSize;
    }
    if (request.grid.x % request.cluster.x != 0 || request.grid.y % request.cluster.y != 0 ||
        request.grid.z % request.cluster.z != 0) {
        return cudaErrorInvalidClusterSize;
    }
    const Dim3& required = ready.info->required_cluster;
    return required.x == 0 || required == request.cluster ? cudaSuccess : cudaErrorInvalidClusterSize;
}

cudaError_t check_resources(const LaunchRequest& request, const ReadyKernel& ready, const DeviceModel& model)
{
    const auto threads = static_cast<unsigned>(request.block.count());
    const unsigned resident = resident_ctas(model, *ready.info, threads, request.dynamic_shared);
    if (resident == 0) {
        return cudaErrorLaunchOutOfResources;
    }
    if (request.cooperative && request.grid.count() > std::uint64_t{resident} * model.multiprocessors) {
        return cudaErrorCooperativeLaunchTooLarge;
    }
    return cudaSuccess;
}

void apply(const cudaLaunchAttribute& attribute, LaunchRequest& request)
{
    switch (attribute.id) {
        case cudaLaunchAttributeClusterDimension:
            request.cluster = {attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z};
            request.explicit_cluster = true;
            break;
        case cudaLaunchAttributeProgrammaticStreamSerialization:
            request.programmatic_serialization = attribute.val.programmaticStreamSerializationAllowed != 0;
            break;
        case cudaLaunchAttributeCooperative: request.cooperative = attribute.val.cooperative != 0; break;
        default: break;  // hints, or handled by the caller
    }
}

}  // namespace

Kernel* find_kernel(const void* function)
{
    Runtime& runtime = Runtime::get();
    if (const auto found = runtime.kernels_by_symbol.find(function); found != runtime.kernels_by_symbol.end()) {
        return found->second.get();
    }
    const auto found = runtime.kernels.find(static_cast<const Kernel*>(function));
    return found == runtime.kernels.end() ? nullptr : const_cast<Kernel*>(*found);
}

LoadedOn load(CodeImage& image, Device& device)
{
    const auto [entry, is_new] = image.loaded.try_emplace(device.index);
    LoadedOn& result = entry->second;
    if (!is_new) {
        return result;
    }
    try {
        const std::string text = select_ptx(image, *device.model, result);
        if (result.status == cudaSuccess) {
            result.ptx_version = ptx_version_of(text);
            result.module = std::make_shared<LoadedModule>(text, *device.model, device.index, Runtime::get().memory);
        }
    } catch (const std::bad_alloc&) {
        result.status = cudaErrorMemoryAllocation;
    } catch (const std::exception& error) {
        say(fmt::format("PTX cannot be loaded: {}", error.what()));
        result.status = cudaErrorInvalidPtx;
    }
    return result;
}

cudaError_t prepare(const void* function, Device& device, ReadyKernel& ready)
{
    ready.kernel = find_kernel(function);
    if (ready.kernel == nullptr) {
        // Anything but a registered function may be a handle, and is an invalid one here.
        return function == nullptr ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidResourceHandle;
    }
    const LoadedOn loaded = load(*ready.kernel->image, device);
    if (loaded.status != cudaSuccess) {
        return loaded.status;
    }
    ready.module = loaded.module;
    ready.ptx_version = loaded.ptx_version;
    ready.info = ready.module->find_kernel(ready.kernel->name);
    ready.state = &ready.kernel->states[device.index];
    if (ready.info == nullptr) {
        return cudaErrorInvalidDeviceFunction;
    }
    // As with lazy loading: a kernel that cannot run is refused at its first use, and others of the module can run.
    if (!ready.info->load_error.empty()) {
        if (!ready.state->refused) {
            ready.state->refused = true;
            say(fmt::format("kernel {} cannot be loaded: {}", shown_kernel(ready.info->name), ready.info->load_error));
        }
        return cudaErrorNotSupported;
    }
    return cudaSuccess;
}

cudaError_t find_symbol(const void* symbol, Device& device, VariableInfo& variable)
{
    const Runtime& runtime = Runtime::get();
    auto found = runtime.variables.find(symbol);
    if (found == runtime.variables.end()) {
        // The name of a managed variable stands for its memory, on the host, too.
        const auto managed =
            std::ranges::find_if(runtime.managed_variables, [&](void* const* pointer) { return *pointer == symbol; });
        if (symbol == nullptr || managed == runtime.managed_variables.end()) {
            return cudaErrorInvalidSymbol;
        }
        found = runtime.variables.find(*managed);
    }
    const LoadedOn loaded = load(*found->second.image, device);
    if (loaded.status != cudaSuccess) {
        return loaded.status;
    }
    const VariableInfo* info = loaded.module->find_variable(found->second.name);
    if (info == nullptr) {
        return cudaErrorInvalidSymbol;
    }
    variable = *info;
    return cudaSuccess;
}

int max_dynamic_shared(const ReadyKernel& ready, const DeviceModel& model)
{
    if (ready.state->max_dynamic_shared >= 0) {
        return ready.state->max_dynamic_shared;
    }
    return static_cast<int>(model.shared_per_cta) - static_cast<int>(ready.info->static_shared);
}

cudaError_t make_kernel_work(const void* function, const LaunchOptions& options, void* const* arguments, Device& device,
                             KernelWork& work)
{
    const DeviceModel& model = *device.model;
    ReadyKernel ready;
    if (const cudaError_t status = prepare(function, device, ready); status != cudaSuccess) {
        return status;
    }
    if (const cudaError_t status = check_grid(options.grid); status != cudaSuccess) {
        return status;
    }
    if (const cudaError_t status = check_block(options.block, *ready.info); status != cudaSuccess) {
        return status;
    }
    LaunchRequest& request = work.request;
    request.grid = {options.grid.x, options.grid.y, options.grid.z};
    request.block = {options.block.x, options.block.y, options.block.z};
    request.cluster = {1, 1, 1};
    request.cooperative = options.cooperative;
    request.stack_limit = limit_of(device, cudaLimitStackSize);
    request.device = device.index;
    request.heap_limit = limit_of(device, cudaLimitMallocHeapSize);
    if (ready.info->required_cluster.x != 0) {
        request.cluster = ready.info->required_cluster;
        request.explicit_cluster = true;
    }
    for (const cudaLaunchAttribute& attribute : options.attributes) {
        apply(attribute, request);
        work.attributes[attribute.id] = attribute.val;
    }
    if (options.shared > static_cast<std::size_t>(std::max(0, max_dynamic_shared(ready, model)))) {
        return cudaErrorInvalidValue;
    }
    request.dynamic_shared = static_cast<std::uint32_t>(options.shared);
    if (const cudaError_t status = check_cluster(request, ready, model); status != cudaSuccess) {
        return status;
    }
    if (const cudaError_t status = check_resources(request, ready, model); status != cudaSuccess) {
        return status;
    }
    request.parameters.resize(ready.info->parameter_bytes);
    if (arguments == nullptr && !ready.info->parameters.empty()) {
        return cudaErrorInvalidValue;
    }
    for (std::size_t i = 0; i < ready.info->parameters.size(); ++i) {
        const ParameterLayout& parameter = ready.info->parameters[i];
        std::memcpy(request.parameters.data() + parameter.offset, arguments[i], parameter.size);
    }
    if (Runtime::get().settings.options.check) {
        work.host = std::make_shared<const HostStack>(HostStack::here());
    }
    work.module = ready.module;
    work.info = ready.info;
    work.parameters.func = const_cast<void*>(function);
    work.parameters.gridDim = options.grid;
    work.parameters.blockDim = options.block;
    work.parameters.sharedMemBytes = static_cast<unsigned>(options.shared);
    return cudaSuccess;
}

}  // namespace tessera::emulator
