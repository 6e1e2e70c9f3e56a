#include "runtime/state.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "machine/recording.hpp"
#include "machine/trace.hpp"
#include "runtime/call.hpp"
#include "runtime/error_names.hpp"
#include "runtime/not_emulated.hpp"
#include "runtime/output_file.hpp"
#include "runtime/report_output.hpp"

namespace tessera::emulator {

namespace {

constexpr int strict_exit_status = 86;

std::atomic<Runtime*> used_runtime{nullptr};

std::string counted(std::uint64_t count, const char* what)
{
    return fmt::format("{} {}{}", count, what, count == 1 ? " was" : "s were");
}

/// Nothing of the program runs: ends the process.
[[noreturn]] void refuse_to_run(const std::vector<std::string>& reasons)
{
    for (const std::string& reason : reasons) {
        say(reason);
    }
    std::fflush(nullptr);
    ::_exit(refused_exit_status);
}

/// The process's virtual addresses, in words.
std::string address_limit()
{
    rlimit limit{};
    return ::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
               ? "all that there are"
               : fmt::format("{:.2f} GiB", static_cast<double>(limit.rlim_cur) / (1U << 30U));
}

void report_leaks(Runtime& runtime)
{
    struct Leak {
        std::uint64_t count = 0, bytes = 0;
        const HostStack* first = nullptr;
    };
    std::map<Origin, Leak> leaks;
    const auto living = runtime.heap.living();
    for (const auto& [address, record] : living) {
        if (record.origin != Origin::graph && !record.free_is_pending) {
            Leak& leak = leaks[record.origin];
            ++leak.count;
            leak.bytes += record.size;
            leak.first = leak.first == nullptr ? record.host.get() : leak.first;
        }
    }
    for (const auto& [origin, leak] : leaks) {
        const auto [what, cure] = origin == Origin::plain     ? std::pair{"device allocation", "cudaFree"}
                                  : origin == Origin::pool    ? std::pair{"pool allocation", "cudaFreeAsync"}
                                  : origin == Origin::managed ? std::pair{"managed allocation", "cudaFree"}
                                  : origin == Origin::registered
                                      ? std::pair{"registered host range", "cudaHostUnregister"}
                                      : std::pair{"pinned host allocation", "cudaFreeHost"};
        Finding finding;
        finding.kind = FindingKind::resource_leak;
        finding.message =
            fmt::format("{} not freed ({} bytes in total): call {}", counted(leak.count, what), leak.bytes, cure);
        if (leak.first != nullptr) {
            finding.host = leak.first->frames({});
        }
        runtime.report.add(std::move(finding));
    }
    const auto streams = std::ranges::count_if(
        runtime.streams, [](const Stream* stream) { return stream->kind == Stream::Kind::created; });
    for (const auto& [count, what, cure] :
         {std::tuple{static_cast<std::size_t>(streams), "stream", "cudaStreamDestroy"},
          {runtime.events.size(), "event", "cudaEventDestroy"},
          {runtime.graphs.size(), "graph", "cudaGraphDestroy"},
          {runtime.graph_execs.size(), "executable graph", "cudaGraphExecDestroy"}}) {
        if (count != 0) {
            report_host(FindingKind::resource_leak,
                        fmt::format("{} not destroyed: call {}", counted(count, what), cure));
        }
    }
}

/// Runs last: the destructors of the program's static objects run before those of the libraries that it needs.
struct AtExit {
    ~AtExit()
    {
        Runtime* const runtime = Runtime::if_used();
        const int status = runtime == nullptr ? 0 : finish(*runtime);
        if (status != 0) {
            std::fflush(nullptr);
            ::_exit(status);
        }
    }
} at_exit;

}  // namespace

Runtime::Runtime() : settings(read_settings([](const char* name) { return std::getenv(name); }))
{
    report.on_new = [this](const Finding& finding) { publish(settings, report, finding); };
    std::ranges::move(misnamed_variables(environ), std::back_inserter(settings.errors));
    if (!settings.errors.empty()) {
        refuse_to_run(settings.errors);
    }
    faults.plan(settings.faults);
    if (!settings.record_path.empty()) {
        const auto file = std::make_shared<OutputFile>(settings.record_path, "the schedule", output_failed);
        settings.options.recorder = std::make_shared<Recorder>([file](std::string_view text) { file->write(text); });
    }
    if (!settings.trace_path.empty()) {
        const auto file = std::make_shared<OutputFile>(settings.trace_path, "the trace", output_failed);
        settings.options.monitor = trace =
            std::make_shared<Trace>([file, begins = true](std::string_view events) mutable {
                constexpr std::string_view head = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
                file->write(std::string(std::exchange(begins, false) ? head : ",\n") + std::string(events), "\n]}\n");
            });
    }
    for (std::size_t i = 0; i < settings.devices.size(); ++i) {
        auto device = std::make_unique<Device>();
        device->model = settings.devices[i];
        device->index = static_cast<int>(i);
        device->default_pool.device = device->index;
        device->default_pool.is_default = true;
        device->current_pool = &device->default_pool;
        device->legacy.kind = Stream::Kind::legacy;
        device->legacy.device = device.get();
        device->legacy.id = next_id++;
        pools.insert(&device->default_pool);
        streams.insert(&device->legacy);
        devices.push_back(std::move(device));
    }
}

Runtime& Runtime::get()
{
    static auto* const runtime = []() -> Runtime* {
        try {
            auto* const made = new Runtime;
            used_runtime = made;
            return made;
        } catch (const std::bad_alloc& error) {
            // Tests of a program without a device would be skipped.
            refuse_to_run(
                {fmt::format("the emulated device cannot start: {}, and the process may have {}. Raise the "
                             "limit (ulimit -v)",
                             error.what(), address_limit())});
        }
    }();
    return *runtime;
}

Runtime* Runtime::if_used() noexcept { return used_runtime; }

ThreadState& ThreadState::get()
{
    thread_local ThreadState state;
    return state;
}

void say(std::string_view text)
{
    constexpr std::size_t continued_indent = 6;
    const std::size_t width = terminal_style().width;
    const std::string whole = fmt::format("tessera-emu: {}", text);
    std::string lines;
    for (std::size_t start = 0; start <= whole.size();) {
        const std::size_t end = std::min(whole.find('\n', start), whole.size());
        lines += wrapped(std::string_view(whole).substr(start, end - start), width, continued_indent) + '\n';
        start = end + 1;
    }
    std::fwrite(lines.data(), 1, lines.size(), stderr);
}

void report_host(FindingKind kind, std::string message, bool error)
{
    Finding finding;
    finding.kind = kind;
    finding.error = error;
    finding.message = std::move(message);
    const HostStack caller = HostStack::here();
    Runtime::get().report.add(std::move(finding), [&](Finding& first) {
        if (first.kind != FindingKind::resource_leak) {  // found at exit, when no program code is calling
            first.host = caller.frames({});
        }
    });
}

Device& current_device() { return *Runtime::get().devices.at(static_cast<std::size_t>(ThreadState::get().device)); }

Device* find_device(int index)
{
    const auto& devices = Runtime::get().devices;
    return index >= 0 && static_cast<std::size_t>(index) < devices.size()
               ? devices[static_cast<std::size_t>(index)].get()
               : nullptr;
}

void fail(Device& device, int code, const std::string& message)
{
    int alive = 0;
    if (device.failure.compare_exchange_strong(alive, code)) {
        const char* name = error_name(code);
        say(fmt::format("{} ({}): {}", name == nullptr ? "error" : name, code, message));
    }
}

void flush_printed(Device& device)
{
    std::string text;
    {
        const std::scoped_lock lock(device.print_mutex);
        text.swap(device.printed);
    }
    if (!text.empty()) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
    }
}

int finish(Runtime& runtime)
{
    {
        const std::scoped_lock lock(runtime.mutex);
        if (runtime.is_unloading) {
            return 0;
        }
        runtime.is_unloading = true;
        if (runtime.settings.options.check) {
            for (auto& [thread, launches] : runtime.ignored_launches) {
                for (Finding& launch : launches) {
                    runtime.report.add(std::move(launch));
                }
            }
            report_leaks(runtime);
        }
    }
    if (const std::uint64_t cut = runtime.trace == nullptr ? 0 : runtime.trace->clusters_cut(); cut != 0) {
        say(fmt::format(
            "the trace has its most events, and leaves out {} clusters or a part of them: trace a smaller grid", cut));
    }
    const Settings& settings = runtime.settings;
    const bool is_written = publish_all(settings, runtime.report);
    if (settings.options.strict && runtime.report.total() != 0) {
        return strict_exit_status;
    }
    return is_written && !runtime.output_failed ? 0 : refused_exit_status;
}

cudaError_t forbid_in_host_function(const char* name)
{
    if (!ThreadState::get().is_in_host_function) {
        return cudaSuccess;
    }
    report_host(
        FindingKind::invalid_operand,
        fmt::format("{} is called in a host function (cudaLaunchHostFunc, cudaStreamAddCallback), where CUDA calls "
                    "are not permitted. Let the host function wake a thread of your own, and call it there",
                    name));
    return cudaErrorNotPermitted;
}

Verdict judge_call(const char* name, CallKind kind) noexcept
{
    constexpr auto refused = [](cudaError_t status) { return Verdict{status, false}; };
    try {
        Runtime& runtime = Runtime::get();
        if (runtime.is_unloading) {
            return refused(cudaErrorCudartUnloading);
        }
        if (const int planned = runtime.faults.next(name); planned != 0) {
            const char* error = error_name(planned);
            say(fmt::format("{} fails on purpose with {}", name, error == nullptr ? "an error" : error));
            return refused(static_cast<cudaError_t>(planned));
        }
        if (!kind.needs_context) {
            return {};
        }
        if (const cudaError_t forbidden = forbid_in_host_function(name); forbidden != cudaSuccess) {
            return refused(forbidden);
        }
        const auto lost = static_cast<cudaError_t>(current_device().failure.load());
        return {lost, lost == cudaSuccess || kind.performs_anyway};
    } catch (...) {
        return refused(cudaErrorInitializationError);
    }
}

cudaError_t remember(cudaError_t status) noexcept
{
    if (status != cudaSuccess && status != cudaErrorNotReady) {
        ThreadState::get().last_error = status;
    }
    return status;
}

namespace {

/// With Options::failed_calls all errors are findings. A launch with <<<>>> returns its error to nobody: it becomes one
/// at the end of the program, unless the thread asks for the last error before.
void report_failed_call(const char* name, cudaError_t status, bool by_syntax)
{
    Runtime& runtime = Runtime::get();
    const bool all = runtime.settings.options.failed_calls;
    if (runtime.is_unloading || !runtime.settings.options.check || (!all && !by_syntax)) {
        return;
    }
    const char* const error = error_name(status);
    const char* const text = error_text(status);
    Finding finding;
    finding.kind = FindingKind::failed_call;
    finding.message = fmt::format("{} returned {} ({})", by_syntax ? "a launch with <<<>>>" : name,
                                  error == nullptr ? "an unknown error" : error, text == nullptr ? "" : text);
    finding.host = HostStack::here().frames({});
    if (by_syntax && finding.host.size() > 1) {
        finding.host.erase(finding.host.begin());  // the kernel's stub, which has the line of the kernel
    }
    if (!finding.host.empty()) {
        finding.cause = fmt::format("{}|{}:{}", finding.message, finding.host.front().file, finding.host.front().line);
    }
    if (all) {
        runtime.report.add(std::move(finding));
        return;
    }
    finding.message += ", and the program never asked for the error: call cudaGetLastError after a launch";
    const std::scoped_lock lock(runtime.mutex);
    runtime.ignored_launches[std::this_thread::get_id()].push_back(std::move(finding));
}

}  // namespace

cudaError_t end_call(const char* name, cudaError_t status) noexcept
{
    const bool by_syntax = std::exchange(ThreadState::get().launches_by_syntax, false);
    if (status != cudaSuccess && status != cudaErrorNotReady) {
        try {
            report_failed_call(name, status, by_syntax);
        } catch (...) {  // no memory for a report: the call has failed all the same
        }
    }
    return remember(status);
}

cudaError_t status_of_exception(const char* name) noexcept
{
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return cudaErrorMemoryAllocation;
    } catch (const std::exception& error) {
        const auto* const system = dynamic_cast<const std::system_error*>(&error);
        if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
            std::fprintf(stderr,
                         "tessera-emu: %s: the process cannot start a thread for the stream's work. Raise its limits "
                         "(ulimit -u, ulimit -v), or use fewer streams\n",
                         name);
            return cudaErrorMemoryAllocation;
        }
        std::fprintf(stderr, "tessera-emu: %s: %s\n", name, error.what());
    } catch (...) {
        std::fprintf(stderr, "tessera-emu: %s: unknown exception\n", name);
    }
    return cudaErrorUnknown;
}

int not_emulated(const char* name) noexcept
{
    return remember(static_cast<cudaError_t>(tessera_emulator_not_emulated(name)));
}

}  // namespace tessera::emulator

extern "C" int tessera_emulator_not_emulated(const char* name)
{
    try {
        using namespace tessera::emulator;
        report_host(FindingKind::not_emulated, fmt::format("{} is not emulated", name));
    } catch (...) {
        return cudaErrorMemoryAllocation;
    }
    return cudaErrorNotSupported;
}
