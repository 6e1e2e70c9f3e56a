#include "program/nvrtc.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "program/embedded_headers.hpp"
#include "tessera/error.hpp"

namespace tessera::tile::detail {
namespace {

namespace fs = std::filesystem;
using tessera::detail::raise;
constexpr std::string_view operation = "tile::Program";

/// NVRTC's functions.
struct Functions {
    decltype(&nvrtcVersion) version;
    decltype(&nvrtcGetNumSupportedArchs) count_architectures;
    decltype(&nvrtcGetSupportedArchs) architectures;
    decltype(&nvrtcCreateProgram) create;
    decltype(&nvrtcDestroyProgram) destroy;
    decltype(&nvrtcCompileProgram) compile;
    decltype(&nvrtcGetProgramLogSize) log_size;
    decltype(&nvrtcGetProgramLog) log;
    decltype(&nvrtcGetPTXSize) ptx_size;
    decltype(&nvrtcGetPTX) ptx;
    decltype(&nvrtcGetCUBINSize) machine_code_size;
    decltype(&nvrtcGetCUBIN) machine_code;
    decltype(&nvrtcGetErrorString) text;
};
Functions nvrtc;  // of the library, once it is loaded

/// Folders in which somebody may have installed CUDA.
std::vector<fs::path> toolkits()
{
    std::vector<fs::path> folders;
    for (const char* const variable : {"CUDA_PATH", "CUDA_HOME"}) {
        if (const char* const value = std::getenv(variable); value != nullptr && *value != '\0') {
            folders.emplace_back(value);
        }
    }
    folders.emplace_back("/usr/local/cuda");
    folders.emplace_back(fmt::format("/usr/local/cuda-{}", CUDART_VERSION / 1000));
    return folders;
}

void* load_library(const std::source_location& caller)
{
    const std::string name = fmt::format("libnvrtc.so.{}", CUDART_VERSION / 1000);
    if (void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        return library;
    }
    std::string reason = dlerror();
    for (const fs::path& toolkit : toolkits()) {
        for (const char* const folder : {"lib64", "lib", "targets/x86_64-linux/lib"}) {
            if (void* const library = dlopen((toolkit / folder / name).c_str(), RTLD_NOW | RTLD_LOCAL)) {
                return library;
            }
        }
    }
    raise(ErrorCode::compilation_failed, operation, caller,
          fmt::format("{}, which compiles programs at run time, was not found: {}", name, reason),
          "install NVRTC with the CUDA Toolkit, or the Python package nvidia-cuda-nvrtc, and set CUDA_PATH or "
          "LD_LIBRARY_PATH to where it is");
}

template <class Function>
void find(void* library, const char* name, Function& function, const std::source_location& caller)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) {
        raise(ErrorCode::compilation_failed, operation, caller, fmt::format("NVRTC has no function {}", name),
              fmt::format("use that of CUDA {}", CUDART_VERSION / 1000));
    }
}

/// Returns the folder with NVRTC.
fs::path folder_of_library()
{
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(nvrtc.version), &info) == 0 || info.dli_fname == nullptr) {
        return {};
    }
    std::error_code ignored;
    return fs::weakly_canonical(info.dli_fname, ignored).parent_path();
}

/// Loads NVRTC's built-in functions from its folder. When it compiles, NVRTC asks the dynamic linker for them by their name
/// alone, which finds only what is loaded already or in the linker's own folders. Without them, NVRTC says what it lacks.
void load_builtins(int major, int minor)
{
    const fs::path builtins = folder_of_library() / fmt::format("libnvrtc-builtins.so.{}.{}", major, minor);
    dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// Returns the folder of CUDA's headers: beside NVRTC, or where toolkits are.
fs::path find_headers(const std::source_location& caller)
{
    std::vector<fs::path> folders;
    if (const fs::path library = folder_of_library(); !library.empty()) {
        folders.push_back(library.parent_path() / "include");
        folders.push_back(library.parent_path().parent_path() / "include");
        // Python's packages have a folder for each part of the toolkit.
        folders.push_back(library.parent_path().parent_path() / "cuda_runtime" / "include");
    }
    for (const fs::path& toolkit : toolkits()) {
        folders.push_back(toolkit / "include");
    }
    for (const fs::path& folder : folders) {
        std::error_code ignored;
        // A package of CUDA's runtime alone lacks the C++ core libraries.
        if (fs::exists(folder / "cuda_fp16.h", ignored) &&
            (fs::exists(folder / "cccl" / "cuda" / "ptx", ignored) || fs::exists(folder / "cuda" / "ptx", ignored))) {
            return folder;
        }
    }
    raise(ErrorCode::compilation_failed, operation, caller,
          "the headers of CUDA (cuda_fp16.h, cuda/ptx and others), which programs include, were not found",
          "install the CUDA Toolkit, and set CUDA_PATH to where it is");
}

/// A program of NVRTC's.
class NvrtcProgram {
public:
    NvrtcProgram(const Source& source, const std::source_location& caller)
    {
        const nvrtcResult result =
            nvrtc.create(&program_, source.text.c_str(), source.name.c_str(), static_cast<int>(embedded_header_count),
                         embedded_header_texts, embedded_header_names);
        if (result != NVRTC_SUCCESS) {
            raise(ErrorCode::compilation_failed, operation, caller,
                  fmt::format("NVRTC took no source: {}", nvrtc.text(result)));
        }
    }
    ~NvrtcProgram() { nvrtc.destroy(&program_); }
    NvrtcProgram(const NvrtcProgram&) = delete;
    NvrtcProgram& operator=(const NvrtcProgram&) = delete;

    nvrtcProgram get() const { return program_; }

    /// Returns a text of the program by the two functions that give its size and its characters.
    template <class Size, class Text>
    std::string text(Size size_of, Text text_of, bool is_text) const
    {
        std::size_t size = 0;
        if (size_of(program_, &size) != NVRTC_SUCCESS || size == 0) {
            return {};
        }
        std::string result(size, '\0');
        if (text_of(program_, result.data()) != NVRTC_SUCCESS) {
            return {};
        }
        if (is_text) {
            result.resize(size - 1);  // the terminating zero
        }
        return result;
    }

private:
    nvrtcProgram program_ = nullptr;
};

}  // namespace

Nvrtc::Nvrtc(const std::source_location& caller)
{
    void* const library = load_library(caller);
    find(library, "nvrtcVersion", nvrtc.version, caller);
    find(library, "nvrtcGetNumSupportedArchs", nvrtc.count_architectures, caller);
    find(library, "nvrtcGetSupportedArchs", nvrtc.architectures, caller);
    find(library, "nvrtcCreateProgram", nvrtc.create, caller);
    find(library, "nvrtcDestroyProgram", nvrtc.destroy, caller);
    find(library, "nvrtcCompileProgram", nvrtc.compile, caller);
    find(library, "nvrtcGetProgramLogSize", nvrtc.log_size, caller);
    find(library, "nvrtcGetProgramLog", nvrtc.log, caller);
    find(library, "nvrtcGetPTXSize", nvrtc.ptx_size, caller);
    find(library, "nvrtcGetPTX", nvrtc.ptx, caller);
    find(library, "nvrtcGetCUBINSize", nvrtc.machine_code_size, caller);
    find(library, "nvrtcGetCUBIN", nvrtc.machine_code, caller);
    find(library, "nvrtcGetErrorString", nvrtc.text, caller);
    int major = 0;
    int minor = 0;
    int count = 0;
    nvrtc.version(&major, &minor);
    load_builtins(major, minor);
    version_ = fmt::format("{}.{}", major, minor);
    nvrtc.count_architectures(&count);
    capabilities_.resize(static_cast<std::size_t>(std::max(count, 0)));
    nvrtc.architectures(capabilities_.data());
    const fs::path headers = find_headers(caller);
    include_options_ = {"-I" + headers.string(), "-I" + (headers / "cccl").string()};
}

const Nvrtc& Nvrtc::get(const std::source_location& caller)
{
    static const Nvrtc instance(caller);
    return instance;
}

bool Nvrtc::knows(int capability) const noexcept
{
    return std::find(capabilities_.begin(), capabilities_.end(), capability) != capabilities_.end();
}

Compiled Nvrtc::compile(const Source& source, const std::source_location& caller) const
{
    const NvrtcProgram program(source, caller);
    std::vector<const char*> options;
    for (const auto* const list : {&source.options, &include_options_}) {
        for (const std::string& option : *list) {
            options.push_back(option.c_str());
        }
    }
    Compiled compiled;
    compiled.succeeded =
        nvrtc.compile(program.get(), static_cast<int>(options.size()), options.data()) == NVRTC_SUCCESS;
    compiled.log = program.text(nvrtc.log_size, nvrtc.log, true);
    if (compiled.succeeded) {
        compiled.ptx = program.text(nvrtc.ptx_size, nvrtc.ptx, true);
        compiled.machine_code = program.text(nvrtc.machine_code_size, nvrtc.machine_code, false);
    }
    return compiled;
}

}  // namespace tessera::tile::detail
