// Code that programs load themselves: PTX text or fat binaries.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "runtime/call.hpp"
#include "runtime/kernels.hpp"

using namespace tessera::emulator;

namespace {

constexpr char elf_magic[] = "\177ELF";

cudaError_t open_library(cudaLibrary_t* handle, std::shared_ptr<CodeImage> image)
{
    const std::scoped_lock lock(Runtime::get().mutex);
    auto* library = new Library;
    library->image = std::move(image);
    Runtime::get().libraries.insert(library);
    *handle = reinterpret_cast<cudaLibrary_t>(library);
    return cudaSuccess;
}

/// Identifies `code` by its first bytes.
cudaError_t read_code(const void* code, CodeImage& image)
{
    if (std::memcmp(code, elf_magic, 4) == 0) {
        say("machine code (a cubin) cannot be loaded on the emulated device: load PTX or a fat binary that has PTX");
        return cudaErrorNoKernelImageForDevice;
    }
    if (is_fatbin(code)) {
        image.entries = read_fatbin(code);
        return cudaSuccess;
    }
    image.text = static_cast<const char*>(code);
    return image.text.find(".version") == std::string::npos ? cudaErrorInvalidKernelImage : cudaSuccess;
}

template <class Body>
cudaError_t with_library(const char* name, cudaLibrary_t handle, Body&& body)
{
    return call(name, [&]() -> cudaError_t {
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        const auto found = runtime.libraries.find(reinterpret_cast<Library*>(handle));
        return found == runtime.libraries.end() ? cudaErrorInvalidResourceHandle : body(**found);
    });
}

/// Runs the body with the library's module on the current device.
template <class Body>
cudaError_t with_module(const char* name, cudaLibrary_t handle, Body&& body)
{
    return with_library(name, handle, [&](Library& library) -> cudaError_t {
        const LoadedOn loaded = load(*library.image, current_device());
        return loaded.status != cudaSuccess ? loaded.status : body(library, *loaded.module);
    });
}

Kernel* kernel_of(Library& library, const std::string& name)
{
    auto& kernel = library.kernels[name];
    if (kernel == nullptr) {
        kernel = std::make_unique<Kernel>();
        kernel->image = library.image;
        kernel->name = name;
        Runtime::get().kernels.insert(kernel.get());
    }
    return kernel.get();
}

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* /*options*/,
                                void** /*option_values*/, unsigned /*option_count*/,
                                cudaLibraryOption* /*library_options*/, void** /*library_option_values*/,
                                unsigned /*library_option_count*/)
{
    return call("cudaLibraryLoadData", [&]() -> cudaError_t {
        if (library == nullptr || code == nullptr) {
            return cudaErrorInvalidValue;
        }
        auto image = std::make_shared<CodeImage>();
        const cudaError_t status = read_code(code, *image);
        return status != cudaSuccess ? status : open_library(library, std::move(image));
    });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* /*options*/,
                                    void** /*option_values*/, unsigned /*option_count*/,
                                    cudaLibraryOption* /*library_options*/, void** /*library_option_values*/,
                                    unsigned /*library_option_count*/)
{
    return call("cudaLibraryLoadFromFile", [&]() -> cudaError_t {
        if (library == nullptr || path == nullptr) {
            return cudaErrorInvalidValue;
        }
        std::ifstream file(path, std::ios::binary);
        if (!file) {
            return cudaErrorFileNotFound;
        }
        auto image = std::make_shared<CodeImage>();
        image->file.assign(std::istreambuf_iterator<char>(file), {});
        if (image->file.size() < 16) {
            return cudaErrorInvalidKernelImage;
        }
        const cudaError_t status = read_code(image->file.c_str(), *image);
        return status != cudaSuccess ? status : open_library(library, std::move(image));
    });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t handle)
{
    return with_library("cudaLibraryUnload", handle, [](Library& library) {
        Runtime& runtime = Runtime::get();
        for (auto& [name, kernel] : library.kernels) {
            runtime.kernels.erase(kernel.get());
            runtime.retired_kernels.push_back(std::move(kernel));
        }
        runtime.libraries.erase(&library);
        delete &library;
        return cudaSuccess;
    });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t handle, const char* name)
{
    return with_module("cudaLibraryGetKernel", handle,
                       [&](Library& library, const LoadedModule& module) -> cudaError_t {
                           if (kernel == nullptr || name == nullptr) {
                               return cudaErrorInvalidValue;
                           }
                           if (module.find_kernel(name) == nullptr) {
                               return cudaErrorSymbolNotFound;
                           }
                           *kernel = reinterpret_cast<cudaKernel_t>(kernel_of(library, name));
                           return cudaSuccess;
                       });
}

cudaError_t cudaLibraryGetGlobal(void** address, size_t* size, cudaLibrary_t handle, const char* name)
{
    return with_module("cudaLibraryGetGlobal", handle, [&](Library&, const LoadedModule& module) -> cudaError_t {
        const VariableInfo* variable = name == nullptr ? nullptr : module.find_variable(name);
        if (variable == nullptr) {
            return cudaErrorSymbolNotFound;
        }
        if (address != nullptr) {
            *address = reinterpret_cast<void*>(variable->address);
        }
        if (size != nullptr) {
            *size = variable->size;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaLibraryGetManaged(void** address, size_t* size, cudaLibrary_t library, const char* name)
{
    return cudaLibraryGetGlobal(address, size, library, name);
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t handle)
{
    return with_module("cudaLibraryGetKernelCount", handle, [&](Library&, const LoadedModule& module) -> cudaError_t {
        if (count == nullptr) {
            return cudaErrorInvalidValue;
        }
        *count = static_cast<unsigned>(module.kernel_names().size());
        return cudaSuccess;
    });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t handle)
{
    return with_module("cudaLibraryEnumerateKernels", handle,
                       [&](Library& library, const LoadedModule& module) -> cudaError_t {
                           const std::vector<std::string> names = module.kernel_names();
                           if (kernels == nullptr || count == 0) {
                               return cudaErrorInvalidValue;
                           }
                           for (std::size_t i = 0; i < std::min<std::size_t>(count, names.size()); ++i) {
                               kernels[i] = reinterpret_cast<cudaKernel_t>(kernel_of(library, names[i]));
                           }
                           return cudaSuccess;
                       });
}

}  // extern "C"
