#include "nccl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tessera/error.hpp"

namespace tessera::distributed::detail {
namespace {

namespace fs = std::filesystem;
using tessera::detail::raise;

constexpr const char* library_name = "libnccl.so.2";

std::string environment(const char* variable)
{
    const char* const value = std::getenv(variable);
    return value == nullptr ? std::string() : std::string(value);
}

/// Folders into which pip installs NVIDIA's packages: of an active virtual environment.
std::vector<fs::path> package_folders()
{
    std::vector<fs::path> folders;
    for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
        const std::string root = environment(variable);
        std::error_code ignored;
        if (root.empty()) {
            continue;
        }
        for (const auto& entry : fs::directory_iterator(fs::path(root) / "lib", ignored)) {
            if (entry.path().filename().string().starts_with("python")) {
                folders.push_back(entry.path() / "site-packages" / "nvidia" / "nccl" / "lib");
            }
        }
    }
    return folders;
}

void* load(std::string_view operation, const std::source_location& caller)
{
    std::string tried;
    const auto open = [&](const std::string& path) -> void* {
        if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
            return library;
        }
        const char* const reason = dlerror();
        tried += fmt::format("\n{}", reason == nullptr ? path : reason);
        return nullptr;
    };
    if (const std::string given = environment("TESSERA_NCCL"); !given.empty()) {
        std::error_code ignored;
        const fs::path path = fs::is_directory(given, ignored) ? fs::path(given) / library_name : fs::path(given);
        if (void* const library = open(path.string())) {
            return library;
        }
        raise(ErrorCode::communication_failed, operation, caller,
              fmt::format("TESSERA_NCCL is {}, but NCCL cannot be loaded from there:{}", given, tried),
              fmt::format("set TESSERA_NCCL to {} or to the folder that it is in", library_name));
    }
    if (void* const library = open(library_name)) {
        return library;
    }
    for (const fs::path& folder : package_folders()) {
        if (void* const library = open((folder / library_name).string())) {
            return library;
        }
    }
    raise(ErrorCode::communication_failed, operation, caller,
          fmt::format("NCCL, over which GPUs exchange data, was not found:{}", tried),
          "install NCCL 2.18.5 or later (libnccl2, or the Python package nvidia-nccl-cu13), and set TESSERA_NCCL or "
          "LD_LIBRARY_PATH to the folder of libnccl.so.2");
}

template <class Function>
bool find(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

Nccl load_functions(std::string_view operation, const std::source_location& caller)
{
    void* const library = load(operation, caller);
    Nccl nccl{};
    Dl_info info{};
    if (!find(library, "ncclGetVersion", nccl.get_version)) {
        raise(ErrorCode::communication_failed, operation, caller,
              "the NCCL that was found has no function ncclGetVersion", "set TESSERA_NCCL to another one");
    }
    if (dladdr(reinterpret_cast<const void*>(nccl.get_version), &info) != 0 && info.dli_fname != nullptr) {
        nccl.library = info.dli_fname;
    }
    nccl.get_version(&nccl.version);
    if (nccl.version < oldest_nccl) {
        raise(ErrorCode::communication_failed, operation, caller,
              fmt::format("{} is NCCL {}, which is too old: 2.18.5 is needed", nccl.library, nccl.version_text()),
              "install a later one, or set TESSERA_NCCL to it");
    }
    const auto require = [&](const char* name, auto& function) {
        if (!find(library, name, function)) {
            raise(ErrorCode::communication_failed, operation, caller,
                  fmt::format("{} (NCCL {}) has no function {}", nccl.library, nccl.version_text(), name),
                  "set TESSERA_NCCL to another one");
        }
    };
    require("ncclGetUniqueId", nccl.get_unique_id);
    require("ncclCommInitRankConfig", nccl.comm_init_rank_config);
    require("ncclCommSplit", nccl.comm_split);
    require("ncclCommFinalize", nccl.comm_finalize);
    require("ncclCommDestroy", nccl.comm_destroy);
    require("ncclCommAbort", nccl.comm_abort);
    require("ncclGetErrorString", nccl.get_error_string);
    require("ncclGetLastError", nccl.get_last_error);
    require("ncclCommGetAsyncError", nccl.comm_get_async_error);
    require("ncclCommCount", nccl.comm_count);
    require("ncclCommCuDevice", nccl.comm_cu_device);
    require("ncclCommUserRank", nccl.comm_user_rank);
    require("ncclAllReduce", nccl.all_reduce);
    require("ncclReduceScatter", nccl.reduce_scatter);
    require("ncclAllGather", nccl.all_gather);
    require("ncclSend", nccl.send);
    require("ncclRecv", nccl.receive);
    require("ncclGroupStart", nccl.group_start);
    require("ncclGroupEnd", nccl.group_end);
    nccl.has_copies = nccl.version >= oldest_nccl_with_copies && find(library, "ncclMemAlloc", nccl.mem_alloc) &&
                      find(library, "ncclMemFree", nccl.mem_free) &&
                      find(library, "ncclCommWindowRegister", nccl.window_register) &&
                      find(library, "ncclCommWindowDeregister", nccl.window_deregister);
    return nccl;
}

}  // namespace

std::string nccl_version_text(int version)
{
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string Nccl::version_text() const { return nccl_version_text(version); }

const Nccl& Nccl::get(std::string_view operation, const std::source_location& caller)
{
    static const Nccl functions = load_functions(operation, caller);
    return functions;
}

}  // namespace tessera::distributed::detail
