/// Static owners of every kind exist when main returns. The process must end with code 0 and without output: with the
/// fake runtime, and with the real one on a GPU.

#include <cstdio>
#include <optional>

#include "tessera/tessera.hpp"

namespace {

using namespace tessera;

constexpr std::size_t size = 1000;

/// Created in main, so that a machine without a device can be reported; destroyed after main, like every static object.
struct Owners {
    Stream stream;
    DeviceBuffer<float> pooled{stream, size};
    DeviceBuffer<float> plain{stream, size, Allocation::plain};
    PinnedBuffer<float> pinned{size};
    Event event;
    Graph graph = Graph::capture(stream, [&](StreamRef captured) { pooled.fill(captured, 1.5F); });
};

std::optional<Owners> owners;

}  // namespace

int main()
{
    constexpr int no_device = 77;
    if (Device::count() == 0) {
        std::puts("exit_test: no CUDA device");
        return no_device;
    }
    owners.emplace();
    owners->pooled.copy_from_async(owners->stream, owners->pinned);
    owners->plain.copy_from_async(owners->stream, owners->pinned);
    owners->graph.launch(owners->stream);
    owners->event.record(owners->stream);
    std::puts("exit_test: main returns with a stream, buffers, an event and a graph alive and work under way");
    return 0;
}
