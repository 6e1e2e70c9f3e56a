#include "runtime/state.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <tuple>

#include "runtime/call.hpp"
#include "runtime/error_names.hpp"
#include "runtime/not_emulated.hpp"

namespace tessera::emulator {

namespace {

constexpr int strict_exit_status = 86;

void write_file(const std::string& path, const std::string& text)
{
    if (std::FILE* file = std::fopen(path.c_str(), "w")) {
        std::fwrite(text.data(), 1, text.size(), file);
        std::fclose(file);
    } else {
        say(fmt::format("the report cannot be written to {}", path));
    }
}

/// Findings are written as they come: a program that aborts has no end at which to write them.
void publish(const Runtime& runtime, const Finding& finding)
{
    const Settings& settings = runtime.settings;
    if (!settings.report_path.empty()) {
        static std::mutex mutex;
        const std::scoped_lock lock(mutex);
        write_file(settings.report_path,
                   settings.report_format == OutputFormat::json ? runtime.report.json() : runtime.report.text());
    } else if (settings.report_format == OutputFormat::text) {
        std::string text = to_text(finding);
        text.pop_back();
        say(text);
    }
}

void report_leaks(Runtime& runtime)
{
    std::map<Origin, std::pair<std::uint64_t, std::uint64_t>> leaks;  // count, bytes
    for (const auto& [address, record] : runtime.heap.living()) {
        if (record.origin != Origin::graph && !record.free_is_pending) {
            auto& [count, bytes] = leaks[record.origin];
            ++count;
            bytes += record.size;
        }
    }
    for (const auto& [origin, leak] : leaks) {
        const auto [what, cure] = origin == Origin::plain     ? std::pair{"device allocations", "cudaFree"}
                                  : origin == Origin::pool    ? std::pair{"pool allocations", "cudaFreeAsync"}
                                  : origin == Origin::managed ? std::pair{"managed allocations", "cudaFree"}
                                  : origin == Origin::registered
                                      ? std::pair{"registered host ranges", "cudaHostUnregister"}
                                      : std::pair{"pinned host allocations", "cudaFreeHost"};
        report_host(FindingKind::resource_leak, fmt::format("{} {} of {} bytes in all were not freed with {}",
                                                            leak.first, what, leak.second, cure));
    }
    const auto streams = std::ranges::count_if(
        runtime.streams, [](const Stream* stream) { return stream->kind == Stream::Kind::created; });
    for (const auto& [count, what, cure] :
         {std::tuple{static_cast<std::size_t>(streams), "streams", "cudaStreamDestroy"},
          {runtime.events.size(), "events", "cudaEventDestroy"},
          {runtime.graphs.size(), "graphs", "cudaGraphDestroy"},
          {runtime.graph_execs.size(), "executable graphs", "cudaGraphExecDestroy"}}) {
        if (count != 0) {
            report_host(FindingKind::resource_leak, fmt::format("{} {} were not destroyed with {}", count, what, cure));
        }
    }
}

/// At the very end: the destructors of the program's static objects come before those of the libraries that it needs.
struct AtExit {
    ~AtExit()
    {
        Runtime& runtime = Runtime::get();
        const int status = finish(runtime);
        if (status != 0) {
            std::fflush(nullptr);
            ::_exit(status);
        }
    }
} at_exit;

}  // namespace

Runtime::Runtime() : settings(read_settings([](const char* name) { return std::getenv(name); }))
{
    report.on_new = [this](const Finding& finding) { publish(*this, finding); };
    try {
        faults.plan(settings.faults);
    } catch (const std::invalid_argument& refused) {
        settings.errors.push_back(fmt::format("TESSERA_EMU_FAIL: {}", refused.what()));
    }
    for (const std::string& error : settings.errors) {
        say(error);
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
    static auto* const runtime = new Runtime;
    return *runtime;
}

ThreadState& ThreadState::get()
{
    thread_local ThreadState state;
    return state;
}

void say(std::string_view text)
{
    const std::string line = fmt::format("tessera-emu: {}\n", text);
    std::fwrite(line.data(), 1, line.size(), stderr);
}

void report_host(FindingKind kind, std::string message, bool error)
{
    Finding finding;
    finding.kind = kind;
    finding.error = error;
    finding.message = std::move(message);
    Runtime::get().report.add(std::move(finding));
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
            report_leaks(runtime);
        }
    }
    const Settings& settings = runtime.settings;
    const std::size_t kinds = runtime.report.findings().size();
    if (settings.report_format == OutputFormat::json) {
        if (settings.report_path.empty()) {
            const std::string text = runtime.report.json();
            std::fwrite(text.data(), 1, text.size(), stderr);
        } else {
            write_file(settings.report_path, runtime.report.json());
        }
    } else {
        if (!settings.report_path.empty()) {
            write_file(settings.report_path, runtime.report.text());
        }
        if (kinds != 0) {
            say(fmt::format("{} finding{}, {} occurrence{}", kinds, kinds == 1 ? "" : "s", runtime.report.total(),
                            runtime.report.total() == 1 ? "" : "s"));
        }
    }
    return settings.options.strict && kinds != 0 ? strict_exit_status : 0;
}

cudaError_t status_before(const char* name, CallKind kind) noexcept
{
    try {
        Runtime& runtime = Runtime::get();
        if (runtime.is_unloading) {
            return cudaErrorCudartUnloading;
        }
        if (!runtime.settings.errors.empty()) {
            return cudaErrorInitializationError;
        }
        if (const int planned = runtime.faults.next(name); planned != 0) {
            const char* error = error_name(planned);
            say(fmt::format("{} fails as planned with {}", name, error == nullptr ? "an error" : error));
            return static_cast<cudaError_t>(planned);
        }
        return kind.needs_context ? static_cast<cudaError_t>(current_device().failure.load()) : cudaSuccess;
    } catch (...) {
        return cudaErrorInitializationError;
    }
}

cudaError_t remember(cudaError_t status) noexcept
{
    if (status != cudaSuccess && status != cudaErrorNotReady) {
        ThreadState::get().last_error = status;
    }
    return status;
}

cudaError_t status_of_exception(const char* name) noexcept
{
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return cudaErrorMemoryAllocation;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "tessera-emu: %s: %s\n", name, error.what());
    } catch (...) {
        std::fprintf(stderr, "tessera-emu: %s: unknown exception\n", name);
    }
    return cudaErrorUnknown;
}

int not_emulated(const char* name) noexcept
{
    try {
        report_host(FindingKind::not_emulated, fmt::format("{} is not emulated", name));
    } catch (...) {
        return cudaErrorMemoryAllocation;
    }
    return remember(cudaErrorNotSupported);
}

}  // namespace tessera::emulator
