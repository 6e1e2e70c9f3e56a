// What the compiler's start-up code calls to register a program's device code.

#include <cuda_runtime_api.h>

#include "runtime/call.hpp"
#include "runtime/kernels.hpp"

using namespace tessera::emulator;

namespace {

/// Runs a body that must not throw into start-up code. Registers nothing if the settings are wrong: this was already
/// printed, and no call will succeed.
template <class Body>
void guarded(const char* name, Body&& body) noexcept
{
    try {
        if (!Runtime::get().settings.errors.empty()) {
            return;
        }
        const std::scoped_lock lock(Runtime::get().mutex);
        body(Runtime::get());
    } catch (...) {
        static_cast<void>(status_of_exception(name));
    }
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper)
{
    auto image = std::make_shared<CodeImage>();
    image->wrapper = wrapper;
    guarded("__cudaRegisterFatBinary", [&](Runtime& runtime) {
        runtime.images[image.get()] = image;
        image->entries = read_fatbin(wrapper);
    });
    return reinterpret_cast<void**>(image.get());
}

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void __cudaUnregisterFatBinary(void** handle)
{
    guarded("__cudaUnregisterFatBinary", [&](Runtime& runtime) {
        const auto image = runtime.images.find(handle);
        if (image == runtime.images.end()) {
            return;
        }
        // Launches in flight and graph nodes hold their module.
        for (auto entry = runtime.kernels_by_symbol.begin(); entry != runtime.kernels_by_symbol.end();) {
            if (entry->second->image == image->second) {
                runtime.kernels.erase(entry->second.get());
                entry = runtime.kernels_by_symbol.erase(entry);
            } else {
                ++entry;
            }
        }
        std::erase_if(runtime.variables, [&](const auto& entry) { return entry.second.image == image->second; });
        runtime.images.erase(image);
    });
}

void __cudaRegisterFunction(void** handle, const char* host_function, char* /*device_function*/, const char* name,
                            int /*thread_limit*/, uint3* /*tid*/, uint3* /*bid*/, dim3* /*block*/, dim3* /*grid*/,
                            int* /*warp_size*/)
{
    guarded("__cudaRegisterFunction", [&](Runtime& runtime) {
        auto kernel = std::make_unique<Kernel>();
        kernel->image = runtime.images.at(handle);
        kernel->name = name;
        kernel->symbol = host_function;
        runtime.kernels.insert(kernel.get());
        runtime.kernels_by_symbol[host_function] = std::move(kernel);
    });
}

void __cudaRegisterVar(void** handle, char* host_variable, char* /*device_address*/, const char* name, int /*external*/,
                       size_t size, int /*constant*/, int /*global*/)
{
    guarded("__cudaRegisterVar", [&](Runtime& runtime) {
        runtime.variables[host_variable] = {.image = runtime.images.at(handle), .name = name, .size = size};
    });
}

void __cudaRegisterManagedVar(void** handle, void** host_variable, char* /*device_address*/, const char* name,
                              int /*external*/, size_t size, int /*constant*/, int /*global*/)
{
    guarded("__cudaRegisterManagedVar", [&](Runtime& runtime) {
        runtime.variables[host_variable] = {.image = runtime.images.at(handle), .name = name, .size = size};
        runtime.managed_variables.push_back(host_variable);
    });
}

void __cudaRegisterHostVar(void** /*handle*/, const char* /*name*/, char* /*host_variable*/, size_t /*size*/)
{
    say("__cudaRegisterHostVar (a host variable that device code reads) is not emulated");
}

/// Called before a managed variable is used on the host for the first time.
char __cudaInitModule(void** handle)
{
    guarded("__cudaInitModule", [&](Runtime& runtime) {
        for (void** host_variable : runtime.managed_variables) {
            if (runtime.variables.at(host_variable).image.get() != reinterpret_cast<CodeImage*>(handle)) {
                continue;
            }
            VariableInfo info;
            if (find_symbol(host_variable, current_device(), info) == cudaSuccess) {
                *host_variable = reinterpret_cast<void*>(info.address);
            }
        }
    });
    return 1;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st* stream)
{
    ThreadState::get().configurations.push_back({grid, block, shared, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream)
{
    auto& configurations = ThreadState::get().configurations;
    if (configurations.empty()) {
        return remember(cudaErrorMissingConfiguration);
    }
    const auto& top = configurations.back();
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared;
    *static_cast<cudaStream_t*>(stream) = top.stream;
    configurations.pop_back();
    ThreadState::get().launches_by_syntax = true;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function)
{
    cudaError_t status = cudaErrorInvalidDeviceFunction;
    guarded("__cudaGetKernel", [&](Runtime&) {
        if (Kernel* found = find_kernel(host_function)) {
            *kernel = reinterpret_cast<cudaKernel_t>(found);
            status = cudaSuccess;
        }
    });
    return status;
}

}  // extern "C"
