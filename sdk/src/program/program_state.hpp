#pragma once

/// What `Program` and `Kernel` share between their copies.

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "program/program_notes.hpp"
#include "tessera/tile/program.hpp"

namespace tessera::tile::detail {

/// Code for one compute capability, and what it needs.
struct NotedProgram {
    CompiledProgram code;
    ProgramNotes notes;
};

/// Code on a device.
struct LoadedProgram {
    LoadedProgram() = default;
    ~LoadedProgram();
    LoadedProgram(const LoadedProgram&) = delete;
    LoadedProgram& operator=(const LoadedProgram&) = delete;

    std::string type;
    std::shared_ptr<const NotedProgram> program;
    int device = -1;
    cudaLibrary_t library = nullptr;
    cudaKernel_t mma_sync = nullptr;
    cudaKernel_t by_tma = nullptr;             // null if there is none
    cudaKernel_t wgmma = nullptr;              // null if there is none
    cudaKernel_t clusters = nullptr;           // null if there is none; empty if the hints want no clusters
    cudaKernel_t tcgen05 = nullptr;            // null if there is none
    cudaKernel_t pairs = nullptr;              // null if there is none
    cudaKernel_t clusters_of_pairs = nullptr;  // the same; empty if the hints want none
};

/// For callers of which only the run knows the arguments.
struct KernelAccess {
    static LaunchReport launch(const Kernel& kernel, const LaunchOn& on, const ProgramArgument* arguments,
                               std::size_t count)
    {
        return kernel.launch_with(on, arguments, count);
    }
    static int device(const Kernel& kernel) { return kernel.program_->device; }
    static const ProgramMembers& members(const Kernel& kernel) { return kernel.program_->program->notes.members; }
};

struct ProgramState {
    std::string source;
    ProgramOptions options;

    std::mutex mutex;  // of what follows; NVRTC compiles one source at a time anyway
    std::map<std::pair<std::string, int>, std::shared_ptr<const NotedProgram>> compiled;  // by type and capability
    std::map<std::pair<std::string, int>, std::shared_ptr<const LoadedProgram>> loaded;   // by type and device
};

}  // namespace tessera::tile::detail
