/// The C ABI's devices, streams and buffers.

#include <cstddef>
#include <memory>

#include "c/guard.hpp"
#include "tessera/device.hpp"
#include "tessera/device_buffer.hpp"
#include "tessera/stream.hpp"
#include "tessera/version.hpp"

struct tessera_buffer {
    tessera::DeviceBuffer<std::byte> memory;
};

namespace {

using tessera::StreamRef;
using tessera::c::guarded;
using tessera::c::require_pointer;

/// A default stream is that of `device`, or of the current device if that is negative. Others must be of `device`.
StreamRef stream_on(int device, tessera_stream stream)
{
    const bool is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
    if (device < 0 || !is_default) {
        const StreamRef known(stream);
        if (device >= 0 && known.device() != device) {
            tessera::c::refuse("the device of the stream, or -1", "the stream is of device {}, not of device {}",
                               known.device(), device);
        }
        return known;
    }
    return {tessera::detail::known_device, stream, tessera::Device(device).ordinal(), nullptr};
}

}  // namespace

int tessera_version() { return TESSERA_VERSION; }
const char* tessera_version_text() { return TESSERA_VERSION_STRING; }

int tessera_device_count() { return tessera::Device::count(); }

tessera_status tessera_compute_capability(int device, int* capability)
{
    return guarded("tessera_compute_capability", [&] {
        require_pointer(capability, "capability");
        *capability = tessera::Device(device).properties().compute_capability();
    });
}

tessera_status tessera_synchronize(tessera_stream stream)
{
    return guarded("tessera_synchronize", [&] { StreamRef(stream).synchronize(); });
}

tessera_status tessera_stream_wait(int device, tessera_stream stream, tessera_stream other)
{
    return guarded("tessera_stream_wait", [&] { stream_on(device, stream).wait(stream_on(device, other)); });
}

tessera_status tessera_is_capturing(tessera_stream stream, int* capturing)
{
    return guarded("tessera_is_capturing", [&] {
        require_pointer(capturing, "capturing");
        *capturing = tessera::detail::is_capturing(stream) ? 1 : 0;
    });
}

tessera_status tessera_buffer_create(int device, tessera_stream stream, size_t bytes, tessera_buffer** buffer)
{
    return guarded("tessera_buffer_create", [&] {
        require_pointer(buffer, "buffer");
        *buffer = new tessera_buffer{tessera::DeviceBuffer<std::byte>(stream_on(device, stream), bytes)};
    });
}

void tessera_buffer_destroy(tessera_buffer* buffer) { delete buffer; }

void* tessera_buffer_data(const tessera_buffer* buffer)
{
    return buffer == nullptr ? nullptr : const_cast<std::byte*>(buffer->memory.data());
}

size_t tessera_buffer_size(const tessera_buffer* buffer) { return buffer == nullptr ? 0 : buffer->memory.size(); }

int tessera_buffer_device(const tessera_buffer* buffer) { return buffer == nullptr ? -1 : buffer->memory.device(); }

tessera_status tessera_buffer_upload(tessera_buffer* buffer, size_t offset, const void* host, size_t bytes)
{
    return guarded("tessera_buffer_upload", [&] {
        require_pointer(buffer, "buffer");
        buffer->memory.copy_from({static_cast<const std::byte*>(host), bytes}, offset);
    });
}

tessera_status tessera_buffer_download(const tessera_buffer* buffer, size_t offset, void* host, size_t bytes)
{
    return guarded("tessera_buffer_download", [&] {
        require_pointer(buffer, "buffer");
        buffer->memory.copy_to({static_cast<std::byte*>(host), bytes}, offset);
    });
}

tessera_status tessera_buffer_copy(tessera_stream stream, tessera_buffer* target, size_t target_offset,
                                   const tessera_buffer* source, size_t source_offset, size_t bytes)
{
    return guarded("tessera_buffer_copy", [&] {
        require_pointer(target, "target");
        require_pointer(source, "source");
        target->memory.copy_from_async(stream_on(target->memory.device(), stream),
                                       source->memory.span().subspan(source_offset, bytes), target_offset);
    });
}

tessera_status tessera_buffer_used_on(const tessera_buffer* buffer, tessera_stream stream)
{
    return guarded("tessera_buffer_used_on", [&] {
        require_pointer(buffer, "buffer");
        buffer->memory.used_on(stream_on(buffer->memory.device(), stream));
    });
}
