#include <fmt/format.h>

#include <cstring>

#include "runtime/memory.hpp"
#include "runtime/stream_work.hpp"
#include "runtime/work.hpp"

namespace tessera::emulator {

namespace {

enum class Place { pageable, pinned, managed, device };

Place place_of(const void* address)
{
    const AddressSpace& memory = Runtime::get().memory;
    const auto number = reinterpret_cast<std::uint64_t>(address);
    const Allocation* allocation = memory.find(number);
    if (allocation == nullptr) {
        return memory.is_device_address(number) ? Place::device : Place::pageable;
    }
    switch (allocation->kind) {
        case MemoryKind::pinned: return Place::pinned;
        case MemoryKind::managed: return Place::managed;
        default: return Place::device;
    }
}

bool fits(Place place, bool is_host)
{
    // Pinned memory belongs to both the host and the device.
    return place == Place::managed || place == Place::pinned || (place == Place::pageable) == is_host;
}

std::string_view name_of(cudaMemcpyKind kind)
{
    switch (kind) {
        case cudaMemcpyHostToHost: return "cudaMemcpyHostToHost";
        case cudaMemcpyHostToDevice: return "cudaMemcpyHostToDevice";
        case cudaMemcpyDeviceToHost: return "cudaMemcpyDeviceToHost";
        case cudaMemcpyDeviceToDevice: return "cudaMemcpyDeviceToDevice";
        default: return "cudaMemcpyDefault";
    }
}

std::uint64_t to_span(const CopyWork& work)
{
    return span_of(work.width, work.height, work.depth, work.to_pitch, work.to_slice);
}

std::uint64_t from_span(const CopyWork& work)
{
    return span_of(work.width, work.height, work.depth, work.from_pitch, work.from_slice);
}

/// Pageable sources are read before the call returns: the program may change them immediately after.
void stage(CopyWork& work)
{
    auto bytes = std::make_shared<std::vector<std::byte>>(work.width * work.height * work.depth);
    std::byte* to = bytes->data();
    for (std::uint64_t z = 0; z < work.depth; ++z) {
        for (std::uint64_t y = 0; y < work.height; ++y) {
            std::memcpy(to, work.from + z * work.from_slice + y * work.from_pitch, work.width);
            to += work.width;
        }
    }
    work.from = bytes->data();
    work.from_pitch = work.width;
    work.from_slice = work.width * work.height;
    work.staged = std::move(bytes);
}

cudaError_t submit_and_wait(Stream& stream, Work work, bool waits)
{
    if (waits) {
        if (const cudaError_t forbidden = forbid_on_captured(stream); forbidden != cudaSuccess) {
            return forbidden;
        }
    }
    if (const cudaError_t status = submit(stream, std::move(work)); status != cudaSuccess) {
        return status;
    }
    if (waits) {
        wait_for(*stream.device, stream.queue->last());
        return static_cast<cudaError_t>(stream.device->failure.load());
    }
    return cudaSuccess;
}

}  // namespace

CopyWork make_copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind)
{
    CopyWork work;
    work.to = static_cast<std::byte*>(to);
    work.from = static_cast<const std::byte*>(from);
    work.width = work.to_pitch = work.from_pitch = size;
    work.kind = kind;
    work.parameters.dstPtr = {to, size, size, 1};
    work.parameters.srcPtr = {const_cast<void*>(from), size, size, 1};
    work.parameters.extent = {size, 1, 1};
    work.parameters.kind = kind;
    return work;
}

cudaError_t make_copy(const cudaMemcpy3DParms& parameters, CopyWork& work)
{
    if (parameters.srcArray != nullptr || parameters.dstArray != nullptr) {
        return cudaErrorNotSupported;
    }
    const auto offset = [](const cudaPitchedPtr& pitched, const cudaPos& position) {
        return position.x + pitched.pitch * (position.y + pitched.ysize * position.z);
    };
    const cudaPitchedPtr& to = parameters.dstPtr;
    const cudaPitchedPtr& from = parameters.srcPtr;
    if (to.ptr == nullptr || from.ptr == nullptr || parameters.extent.width > to.pitch ||
        parameters.extent.width > from.pitch) {
        return cudaErrorInvalidValue;
    }
    work.to = static_cast<std::byte*>(to.ptr) + offset(to, parameters.dstPos);
    work.from = static_cast<const std::byte*>(from.ptr) + offset(from, parameters.srcPos);
    work.width = parameters.extent.width;
    work.height = parameters.extent.height;
    work.depth = parameters.extent.depth;
    work.to_pitch = to.pitch;
    work.from_pitch = from.pitch;
    work.to_slice = to.pitch * to.ysize;
    work.from_slice = from.pitch * from.ysize;
    work.kind = parameters.kind;
    work.parameters = parameters;
    return cudaSuccess;
}

cudaError_t check_copy(const char* name, const CopyWork& work)
{
    if (work.kind < cudaMemcpyHostToHost || work.kind > cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    if (work.width == 0 || work.height == 0 || work.depth == 0) {
        return cudaSuccess;
    }
    if (work.to == nullptr || work.from == nullptr) {
        return cudaErrorInvalidValue;
    }
    if (work.height > 1 && (work.width > work.to_pitch || work.width > work.from_pitch)) {
        return cudaErrorInvalidPitchValue;
    }
    const std::string destination = fmt::format("destination of {}", name);
    const std::string source = fmt::format("source of {}", name);
    if (const cudaError_t status = check_range(work.to, to_span(work), destination.c_str()); status != cudaSuccess) {
        return status;
    }
    if (const cudaError_t status = check_range(work.from, from_span(work), source.c_str()); status != cudaSuccess) {
        return status;
    }
    if (work.kind != cudaMemcpyDefault) {
        const bool to_host = work.kind == cudaMemcpyHostToHost || work.kind == cudaMemcpyDeviceToHost;
        const bool from_host = work.kind == cudaMemcpyHostToHost || work.kind == cudaMemcpyHostToDevice;
        for (const auto& [what, address, is_host] :
             {std::tuple{"destination", static_cast<const void*>(work.to), to_host},
              {"source", static_cast<const void*>(work.from), from_host}}) {
            if (!fits(place_of(address), is_host)) {
                report_host(FindingKind::invalid_operand,
                            fmt::format("{} with {}, but its {} {} is in {} memory", name, name_of(work.kind), what,
                                        address, is_host ? "device" : "pageable host"));
                if (!is_host) {
                    return cudaErrorInvalidValue;
                }
                // For the other direction the runtime copies anyway: it knows where device memory is.
            }
        }
    }
    return cudaSuccess;
}

cudaError_t copy(const char* name, CopyWork work, cudaStream_t handle, bool is_synchronous)
{
    if (const cudaError_t status = check_copy(name, work); status != cudaSuccess) {
        return status;
    }
    Stream* stream = find_stream(handle);
    if (stream == nullptr) {
        return cudaErrorInvalidResourceHandle;
    }
    if (work.width == 0 || work.height == 0 || work.depth == 0) {
        return cudaSuccess;
    }
    const Place to = place_of(work.to);
    const Place from = place_of(work.from);
    const bool is_captured = stream->capture != nullptr;
    if (is_captured && !is_synchronous) {
        return submit(*stream, std::move(work));
    }
    const bool is_within_device = to == Place::device && from == Place::device;
    const bool waits = is_synchronous ? !is_within_device : to == Place::pageable;
    if (from == Place::pageable && !waits) {
        stage(work);
    }
    if (is_synchronous && !waits) {
        if (const cudaError_t forbidden = forbid_on_captured(*stream); forbidden != cudaSuccess) {
            return forbidden;
        }
    }
    // Registered memory may be gone when the copy is complete, if the program forgets to unregister it.
    Runtime& runtime = Runtime::get();
    const auto source = runtime.heap.find_containing(reinterpret_cast<std::uint64_t>(work.from));
    const bool watched = runtime.settings.options.check && !waits && from == Place::pinned && to == Place::device &&
                         source && source->origin == Origin::host;
    if (!watched) {
        return submit_and_wait(*stream, std::move(work), waits);
    }
    const std::uint64_t sum = HostWatches::sum_of(work);
    const CopyWork watch = work;
    const cudaError_t status = submit_and_wait(*stream, std::move(work), false);
    if (status == cudaSuccess) {
        runtime.host_watches.open(name, watch, stream->queue->last(), sum);
    }
    return status;
}

cudaError_t check_fill(const char* name, const FillWork& work)
{
    const std::uint64_t row = work.width * work.element_size;
    if (row == 0 || work.height == 0 || work.depth == 0) {
        return cudaSuccess;
    }
    if (work.to == nullptr || (work.height > 1 && row > work.pitch) || work.element_size > 4 ||
        (work.element_size & (work.element_size - 1)) != 0) {
        return cudaErrorInvalidValue;
    }
    if (place_of(work.to) == Place::pageable) {
        report_host(FindingKind::invalid_operand,
                    fmt::format("{} of {}, which is pageable host memory", name, static_cast<const void*>(work.to)));
        return cudaErrorInvalidValue;
    }
    const std::string destination = fmt::format("destination of {}", name);
    return check_range(work.to, span_of(row, work.height, work.depth, work.pitch, work.slice), destination.c_str());
}

cudaError_t fill(const char* name, FillWork work, cudaStream_t handle, bool is_synchronous)
{
    if (const cudaError_t status = check_fill(name, work); status != cudaSuccess) {
        return status;
    }
    Stream* stream = find_stream(handle);
    if (stream == nullptr) {
        return cudaErrorInvalidResourceHandle;
    }
    if (work.width == 0 || work.height == 0 || work.depth == 0) {
        return cudaSuccess;
    }
    if (is_synchronous) {
        if (const cudaError_t forbidden = forbid_on_captured(*stream); forbidden != cudaSuccess) {
            return forbidden;
        }
    }
    // A fill of device memory does not block the host, not even without "Async".
    const bool waits = is_synchronous && place_of(work.to) != Place::device;
    return submit_and_wait(*stream, work, waits);
}

}  // namespace tessera::emulator
