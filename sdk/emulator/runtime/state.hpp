#pragma once

// The one runtime of a process.

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "checks/report.hpp"
#include "runtime/fault_injection.hpp"
#include "runtime/host_watch.hpp"
#include "runtime/objects.hpp"
#include "runtime/settings.hpp"

namespace tessera::emulator {

class Trace;

/// The state behind the API. `mutex` guards all of it except objects with their own lock (memory, heap, report, faults,
/// queues). It is not held while the host waits or calls back.
struct Runtime {
    Settings settings;
    std::recursive_mutex mutex;
    AddressSpace memory;
    Heap heap{memory};
    Report report;
    FaultInjection faults;
    HostWatches host_watches;
    std::shared_ptr<Trace> trace;  ///< null without --trace
    std::vector<std::unique_ptr<Device>> devices;

    std::set<Stream*> streams;  ///< living, default streams included
    std::map<cudaEvent_t, std::shared_ptr<Event>> events;
    std::map<cudaGraph_t, std::shared_ptr<Graph>> graphs;
    std::map<cudaGraphExec_t, std::shared_ptr<GraphExec>> graph_execs;
    std::set<std::shared_ptr<Capture>> captures;
    std::set<Pool*> pools;

    std::map<const void*, std::shared_ptr<CodeImage>> images;          ///< by registration handle
    std::map<const void*, std::unique_ptr<Kernel>> kernels_by_symbol;  ///< host function
    std::map<const void*, Variable> variables;                         ///< by host variable
    std::vector<void**> managed_variables;                             ///< host pointers to managed variables
    std::set<const Kernel*> kernels;                                   ///< living, for handles
    std::set<Library*> libraries;

    unsigned long long next_id = 1;
    bool is_unloading = false;
    /// Launches with <<<>>> that failed, and whose error nobody has asked for; by thread.
    std::map<std::thread::id, std::vector<Finding>> ignored_launches;
    std::atomic<bool> output_failed{false};  ///< statistics or a schedule could not be written, or does not fit

    /// The runtime, made at the first use and never destroyed: threads of the program may call it until the very end.
    /// If the settings are wrong, it prints this and ends the process with refused_exit_status.
    static Runtime& get();
    /// Null if the runtime was not used yet.
    static Runtime* if_used() noexcept;

private:
    Runtime();
};

/// The state of one thread of the program.
struct ThreadState {
    int device = 0;
    bool has_context = true;          ///< false once the driver call pops the last one, until a device is set
    std::vector<int> outer_contexts;  ///< devices of the contexts below the current one, the driver's stack
    cudaError_t last_error = cudaSuccess;
    cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
    std::map<int, Stream*> default_streams;  ///< the per-thread ones, by device
    bool is_in_host_function = false;        ///< of a stream or a graph: most CUDA calls are not permitted
    struct Configuration {
        dim3 grid, block;
        std::size_t shared = 0;
        cudaStream_t stream = nullptr;
    };
    std::vector<Configuration> configurations;  ///< of <<<>>>, between push and pop
    bool launches_by_syntax = false;            ///< the next launch is that of a <<<>>>

    static ThreadState& get();
};

/// Prints "tessera-emu: " and `text` to stderr.
void say(std::string_view text);

/// Adds a finding about the host program.
void report_host(FindingKind kind, std::string message, bool error = false);

[[nodiscard]] Device& current_device();
/// Null if there is no such device.
[[nodiscard]] Device* find_device(int index);

/// The value that cudaDeviceSetLimit set, or the default. Requires the runtime's mutex.
[[nodiscard]] std::size_t limit_of(const Device& device, cudaLimit limit);

/// The context is lost: every later call returns `code` until cudaDeviceReset.
void fail(Device& device, int code, const std::string& message);

/// Writes what the kernels of `device` printed.
void flush_printed(Device& device);

/// Writes the report, including what was not freed, at the end of the process. Returns the exit status that --strict
/// requires, or 0.
int finish(Runtime& runtime);

}  // namespace tessera::emulator
