// Code that programs load themselves: PTX text or fat binaries.

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <stdexcept>

#include "runtime/call.hpp"
#include "runtime/kernels.hpp"
#include "runtime/readable_memory.hpp"

using namespace tessera::emulator;

namespace {

constexpr char elf_magic[] = "\177ELF";
constexpr std::size_t code_header_bytes = 16;  ///< less is no code of any kind
constexpr std::uint64_t largest_file = std::uint64_t{4} << 30U;

cudaError_t open_library(cudaLibrary_t* handle, std::shared_ptr<CodeImage> image)
{
    const std::scoped_lock lock(Runtime::get().mutex);
    auto* library = new Library;
    library->image = std::move(image);
    Runtime::get().libraries.insert(library);
    *handle = reinterpret_cast<cudaLibrary_t>(library);
    return cudaSuccess;
}

cudaError_t refuse_machine_code()
{
    say("machine code (a cubin) cannot be loaded on the emulated device: load PTX or a fat binary that has PTX");
    return cudaErrorNoKernelImageForDevice;
}

cudaError_t set_text(std::string text, CodeImage& image)
{
    image.text = std::move(text);
    return image.text.find(".version") == std::string::npos ? cudaErrorInvalidKernelImage : cudaSuccess;
}

/// The program may free its fat binary after the call: the PTX moves to the image. Only the targets of the rest are kept.
void copy_payloads(CodeImage& image)
{
    std::string& bytes = image.file;
    bytes.clear();
    std::vector<std::size_t> offsets;
    for (FatbinEntry& entry : image.entries) {
        if (entry.kind != FatbinEntry::Kind::ptx) {
            entry.payload = {};
        }
        offsets.push_back(bytes.size());
        bytes.append(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
    }
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        FatbinEntry& entry = image.entries[i];
        entry.payload = std::as_bytes(std::span(bytes)).subspan(offsets[i], entry.payload.size());
    }
}

/// Identifies `code` by its first bytes. Its size is unknown: fat binaries name theirs, and text ends with a zero.
cudaError_t read_code(const void* code, CodeImage& image)
{
    const std::size_t readable = ReadableMemory().bytes_from(code);
    if (readable < code_header_bytes) {
        return cudaErrorInvalidValue;
    }
    if (std::memcmp(code, elf_magic, 4) == 0) {
        return refuse_machine_code();
    }
    if (is_fatbin(code)) {
        image.entries = read_fatbin(code);
        copy_payloads(image);
        return cudaSuccess;
    }
    const auto* const text = static_cast<const char*>(code);
    const std::size_t length = ::strnlen(text, readable);
    return length == readable ? cudaErrorInvalidKernelImage : set_text({text, length}, image);
}

/// Reads an ordinary file. Others (a device, a pipe) may never end, or block before they begin.
cudaError_t read_file(const char* path, std::string& contents)
{
    struct File {
        int descriptor;
        explicit File(const char* name) : descriptor(::open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
        ~File()
        {
            if (descriptor >= 0) {
                ::close(descriptor);
            }
        }
        File(const File&) = delete;
        File& operator=(const File&) = delete;
    } const file(path);
    struct stat status {};
    if (file.descriptor < 0 || ::fstat(file.descriptor, &status) != 0) {
        return cudaErrorFileNotFound;
    }
    if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > largest_file) {
        say(fmt::format("{} cannot be loaded: {}", path,
                        S_ISREG(status.st_mode)
                            ? fmt::format("it has {} bytes, and at most {} can be loaded", status.st_size, largest_file)
                            : std::string("it is not an ordinary file. Copy its contents to one")));
        return cudaErrorInvalidKernelImage;
    }
    // To the end, but not beyond what may be loaded: the size of some files, as in /proc, is not what they contain.
    constexpr std::size_t piece = 1 << 16;
    std::size_t size = 0;
    while (size <= largest_file) {
        contents.resize(size + piece);
        const ssize_t got = ::read(file.descriptor, contents.data() + size, piece);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            contents.resize(size);
            return got == 0 && size >= code_header_bytes ? cudaSuccess : cudaErrorInvalidKernelImage;
        }
        size += static_cast<std::size_t>(got);
    }
    return cudaErrorInvalidKernelImage;
}

/// The same as read_code, of which the size is known.
cudaError_t read_file_code(const char* path, CodeImage& image)
{
    if (const cudaError_t status = read_file(path, image.file); status != cudaSuccess) {
        return status;
    }
    if (image.file.starts_with(elf_magic)) {
        return refuse_machine_code();
    }
    if (is_fatbin(image.file.data())) {
        image.entries = read_fatbin(std::as_bytes(std::span(image.file)));
        return cudaSuccess;
    }
    std::string text = std::move(image.file);
    image.file.clear();
    text.resize(std::strlen(text.c_str()));
    return set_text(std::move(text), image);
}

template <class Read>
cudaError_t unless_damaged(Read&& read)
{
    try {
        return read();
    } catch (const std::runtime_error& error) {
        say(fmt::format("code cannot be loaded: {}", error.what()));
        return cudaErrorInvalidKernelImage;
    }
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

/// The library that `kernel` came from; null for kernels of the program itself. The runtime has no call for this.
cudaLibrary_t tessera_emulator_library_of(cudaKernel_t kernel)
{
    Runtime& runtime = Runtime::get();
    const std::scoped_lock lock(runtime.mutex);
    for (Library* library : runtime.libraries) {
        for (const auto& [name, owned] : library->kernels) {
            if (owned.get() == reinterpret_cast<Kernel*>(kernel)) {
                return reinterpret_cast<cudaLibrary_t>(library);
            }
        }
    }
    return nullptr;
}

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
        const cudaError_t status = unless_damaged([&] { return read_code(code, *image); });
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
        auto image = std::make_shared<CodeImage>();
        const cudaError_t status = unless_damaged([&] { return read_file_code(path, *image); });
        return status != cudaSuccess ? status : open_library(library, std::move(image));
    });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t handle)
{
    return with_library("cudaLibraryUnload", handle, [](Library& library) {
        Runtime& runtime = Runtime::get();
        for (const auto& [name, kernel] : library.kernels) {
            runtime.kernels.erase(kernel.get());
        }
        // Launches in flight and graph nodes hold their module. With the last of them it is freed.
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
