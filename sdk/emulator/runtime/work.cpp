#include "runtime/work.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "checks/report_json.hpp"
#include "runtime/error_names.hpp"
#include "runtime/report_output.hpp"
#include "runtime/state.hpp"

namespace tessera::emulator {

namespace {

/// One side of a copy.
struct Side {
    Allocation* allocation = nullptr;  // null: the host's own memory
    std::byte* bytes = nullptr;
    std::uint64_t offset = 0;  // in the allocation
};

/// Removes `const`: both sides of a copy are looked up in the same way.
bool look_up(const void* address, std::uint64_t size, Side& side)
{
    const AddressSpace& memory = Runtime::get().memory;
    const auto number = reinterpret_cast<std::uint64_t>(address);
    side.allocation = memory.find(number);
    if (side.allocation == nullptr) {
        side.bytes = reinterpret_cast<std::byte*>(number);
        return !memory.is_device_address(number);
    }
    side.offset = number - side.allocation->address;
    side.bytes = side.allocation->bytes + side.offset;
    return side.allocation->kind == MemoryKind::pinned || size <= side.allocation->size - side.offset;
}

/// Destination bytes become initialized where the source's are.
void copy_initialized(const Side& to, const Side& from, std::uint64_t to_offset, std::uint64_t from_offset,
                      std::uint64_t count)
{
    if (to.allocation == nullptr || to.allocation->initialized == nullptr) {
        return;
    }
    Allocation& target = *to.allocation;
    const std::uint64_t first = to.offset + to_offset;
    if (from.allocation == nullptr || from.allocation->is_initialized(from.offset + from_offset, count)) {
        target.mark_initialized(first, count);
        return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        if (from.allocation->is_initialized(from.offset + from_offset + i, 1)) {
            target.mark_initialized(first + i, 1);
        } else {
            target.mark_uninitialized(first + i, 1);
        }
    }
}

template <class Row>
void for_each_row(std::uint64_t height, std::uint64_t depth, Row&& row)
{
    for (std::uint64_t z = 0; z < depth; ++z) {
        for (std::uint64_t y = 0; y < height; ++y) {
            row(y, z);
        }
    }
}

void lose(Device& device, const char* what, const void* address)
{
    const std::string where = Runtime::get().memory.describe(reinterpret_cast<std::uint64_t>(address));
    report_host(FindingKind::out_of_bounds,
                fmt::format("{} was freed before the work that uses it ran: {}", what, where), true);
    fail(device, cudaErrorIllegalAddress, fmt::format("{}: {}", what, where));
}

void perform(Device& device, const CopyWork& copy)
{
    if (copy.width == 0 || copy.height == 0 || copy.depth == 0) {
        return;
    }
    Side to;
    Side from;
    if (!look_up(copy.to, span_of(copy.width, copy.height, copy.depth, copy.to_pitch, copy.to_slice), to)) {
        lose(device, "the destination of a copy", copy.to);
        return;
    }
    if (!look_up(copy.from, span_of(copy.width, copy.height, copy.depth, copy.from_pitch, copy.from_slice), from)) {
        lose(device, "the source of a copy", copy.from);
        return;
    }
    if (to.allocation == nullptr || to.allocation->kind == MemoryKind::pinned) {
        Runtime::get().host_watches.close(copy.to,
                                          span_of(copy.width, copy.height, copy.depth, copy.to_pitch, copy.to_slice));
    }
    for_each_row(copy.height, copy.depth, [&](std::uint64_t y, std::uint64_t z) {
        const std::uint64_t to_offset = z * copy.to_slice + y * copy.to_pitch;
        const std::uint64_t from_offset = z * copy.from_slice + y * copy.from_pitch;
        std::memmove(to.bytes + to_offset, from.bytes + from_offset, copy.width);
        copy_initialized(to, from, to_offset, from_offset, copy.width);
    });
}

void perform(Device& device, const FillWork& fill)
{
    const std::uint64_t row_bytes = fill.width * fill.element_size;
    if (row_bytes == 0 || fill.height == 0 || fill.depth == 0) {
        return;
    }
    Side to;
    if (!look_up(fill.to, span_of(row_bytes, fill.height, fill.depth, fill.pitch, fill.slice), to)) {
        lose(device, "a memset", fill.to);
        return;
    }
    if (to.allocation == nullptr || to.allocation->kind == MemoryKind::pinned) {
        Runtime::get().host_watches.close(fill.to, span_of(row_bytes, fill.height, fill.depth, fill.pitch, fill.slice));
    }
    for_each_row(fill.height, fill.depth, [&](std::uint64_t y, std::uint64_t z) {
        const std::uint64_t offset = z * fill.slice + y * fill.pitch;
        if (fill.element_size == 1) {
            std::memset(to.bytes + offset, static_cast<int>(fill.value), row_bytes);
        } else {
            for (std::uint64_t x = 0; x < fill.width; ++x) {
                std::memcpy(to.bytes + offset + x * fill.element_size, &fill.value, fill.element_size);
            }
        }
        if (to.allocation != nullptr) {
            to.allocation->mark_initialized(to.offset + offset, row_bytes);
        }
    });
}

void write_statistics(const KernelWork& work, const Statistics& statistics)
{
    const Settings& settings = Runtime::get().settings;
    const LaunchRequest& request = work.request;
    const bool is_json = settings.statistics_format == OutputFormat::json;
    const std::string head =
        fmt::format("{} <<<({}, {}, {}), ({}, {}, {})>>>", is_json ? work.info->name : shown_kernel(work.info->name),
                    request.grid.x, request.grid.y, request.grid.z, request.block.x, request.block.y, request.block.z);
    const std::string record = is_json
                                   ? fmt::format("{{\"launch\": \"{}\", \"kernel_name\": {}, \"statistics\": {}}}\n",
                                                 head, json_string(shown_kernel(work.info->name)), to_json(statistics))
                                   : fmt::format("{}\n{}", head, to_text(statistics));
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    static std::FILE* const file =
        settings.statistics_path.empty() ? stderr : std::fopen(settings.statistics_path.c_str(), "w");
    const bool is_written = file != nullptr && std::fwrite(record.data(), 1, record.size(), file) == record.size() &&
                            std::fflush(file) == 0;
    if (!is_written && !Runtime::get().output_failed.exchange(true)) {
        say(fmt::format("the statistics cannot be written to {}: {}",
                        settings.statistics_path.empty() ? "stderr" : settings.statistics_path, std::strerror(errno)));
    }
}

void perform(Device& device, const KernelWork& work)
{
    Runtime& runtime = Runtime::get();
    LaunchRequest request = work.request;
    request.print = [&device](std::string_view text) {
        // A GPU forgets the oldest output when its buffer (cudaLimitPrintfFifoSize) is full. Here it appears early.
        constexpr std::size_t most_kept = 8 << 20;
        bool is_full = false;
        {
            const std::scoped_lock lock(device.print_mutex);
            device.printed += text;
            is_full = device.printed.size() > most_kept;
        }
        if (is_full) {
            flush_printed(device);
        }
    };
    if (work.host != nullptr) {
        request.launched_by = [&work] { return work.host->frames(work.info->name); };
    }
    const LaunchResult result =
        launch(*work.module, *work.info, request, runtime.settings.options, runtime.memory, runtime.report);
    if (runtime.settings.statistics) {
        write_statistics(work, result.statistics);
    }
    if (runtime.settings.report_format == OutputFormat::html) {
        count_launch(work.info->name, result.statistics);
    }
    if (!result.schedule_fits) {
        runtime.output_failed = true;
    }
    if (result.code != 0) {
        fail(device, result.code, fmt::format("kernel {}: {}", shown_kernel(work.info->name), result.message));
    }
}

void perform(Device&, const HostWork& work)
{
    // Also ends if the function throws.
    struct Inside {
        bool& flag = ThreadState::get().is_in_host_function;
        Inside() { flag = true; }
        ~Inside() { flag = false; }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;
    } inside;
    Runtime::get().host_watches.settle();  // the function may change what is behind it in the stream
    work.function(work.argument);
}

void perform(Device&, const EmptyWork&) {}

// Only graphs have these, and they execute them themselves.
void perform(Device&, const EventRecordWork&) {}
void perform(Device&, const EventWaitWork&) {}
void perform(Device&, const ChildWork&) {}
void perform(Device&, const ConditionalWork&) {}

void perform(Device&, const AllocateWork& work)
{
    if (Allocation* allocation = Runtime::get().memory.find(reinterpret_cast<std::uint64_t>(work.parameters.dptr))) {
        allocation->mark_uninitialized(0, allocation->size);
    }
}

void perform(Device&, const FreeWork& work)
{
    if (Allocation* allocation = Runtime::get().memory.find(reinterpret_cast<std::uint64_t>(work.address))) {
        allocation->mark_uninitialized(0, allocation->size);
    }
}

}  // namespace

std::uint64_t span_of(std::uint64_t width, std::uint64_t height, std::uint64_t depth, std::uint64_t pitch,
                      std::uint64_t slice)
{
    if (width == 0 || height == 0 || depth == 0) {
        return 0;
    }
    return (depth - 1) * slice + (height - 1) * pitch + width;
}

cudaError_t check_range(const void* address, std::uint64_t bytes, const char* what)
{
    Side side;
    if (bytes == 0 || look_up(address, bytes, side)) {
        return cudaSuccess;
    }
    const AddressSpace& memory = Runtime::get().memory;
    const auto start = reinterpret_cast<std::uint64_t>(address);
    const std::uint64_t wrong = side.allocation == nullptr ? start : side.allocation->address + side.allocation->size;
    report_host(FindingKind::out_of_bounds,
                fmt::format("the {} needs {} bytes from {:#x}, but {}", what, bytes, start, memory.describe(wrong)));
    return cudaErrorInvalidValue;
}

void perform(Device& device, const Work& work)
{
    if (device.failure.load() != 0 && !std::holds_alternative<HostWork>(work)) {
        return;
    }
    try {
        std::visit([&](const auto& which) { perform(device, which); }, work);
    } catch (const std::exception& error) {
        fail(device, cudaErrorUnknown, error.what());
    }
}

}  // namespace tessera::emulator
