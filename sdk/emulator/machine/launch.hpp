#pragma once

// The interface between the runtime (or a test) and the machine: load a module, launch one of its kernels.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/address_space.hpp"
#include "base/device_model.hpp"
#include "base/kernel_info.hpp"
#include "base/lanes.hpp"
#include "base/statistics.hpp"
#include "checks/report.hpp"
#include "machine/options.hpp"

namespace tessera::emulator {

struct Program;  // program/program.hpp

/// A module loaded on one device: code, and its variables in memory. Immutable. Its destructor frees the variables.
class LoadedModule {
public:
    /// @throws ptx::ParseError, or std::runtime_error with a sentence (unresolved symbol, out of memory).
    LoadedModule(std::string_view ptx_text, const DeviceModel& device, int device_index, AddressSpace& memory);
    ~LoadedModule();
    LoadedModule(const LoadedModule&) = delete;
    LoadedModule& operator=(const LoadedModule&) = delete;

    [[nodiscard]] const KernelInfo* find_kernel(std::string_view name) const;
    [[nodiscard]] const VariableInfo* find_variable(std::string_view name) const;
    [[nodiscard]] std::vector<std::string> kernel_names() const;
    [[nodiscard]] const Program& program() const noexcept { return *program_; }
    [[nodiscard]] const DeviceModel& device() const noexcept { return device_; }

private:
    const DeviceModel& device_;
    AddressSpace& memory_;
    std::unique_ptr<Program> program_;
};

struct LaunchRequest {
    Dim3 grid, block, cluster;      ///< cluster: {1,1,1} without clusters
    bool explicit_cluster = false;  ///< the launch requests a cluster, perhaps 1x1x1
    std::uint32_t dynamic_shared = 0;
    std::vector<std::byte> parameters;  ///< KernelInfo::parameter_bytes of them
    bool programmatic_serialization = false;
    bool cooperative = false;
    std::uint64_t stack_limit = 1024;       ///< cudaLimitStackSize: bytes of each thread for recursive calls
    int device = 0;                         ///< whose heap device malloc uses
    std::uint64_t heap_limit = 8ULL << 20;  ///< cudaLimitMallocHeapSize: bytes of the heap in use by all launches
    /// Receives the output of device printf at the end of the launch and when the buffer is full.
    std::function<void(std::string_view)> print;
    /// The host's calls of the launch, innermost first, for findings. Called once for each new finding. May be empty.
    std::function<std::vector<SourceFrame>()> launched_by;
};

/// How a launch ended. `code` is a cudaError_t: 0, 700 illegal address, 702 hang, 710 assert, 715, 716, 719 ...
struct LaunchResult {
    int code = 0;
    std::string message;  ///< empty if code is 0
    Statistics statistics;
    bool schedule_fits = true;  ///< false: the recorded schedule (Options::recording) is not of this launch
};

/// Runs a kernel to its end, on the calling thread and on helpers. Does not check the configuration:
/// the runtime does, because it returns the error codes. Several launches may run at the same time.
[[nodiscard]] LaunchResult launch(const LoadedModule& module, const KernelInfo& kernel, const LaunchRequest& request,
                                  const Options& options, AddressSpace& memory, Report& report);

/// Number of CTAs of this kernel that one SM can hold.
[[nodiscard]] unsigned resident_ctas(const DeviceModel& device, const KernelInfo& kernel, unsigned threads,
                                     std::uint32_t dynamic_shared);

}  // namespace tessera::emulator
