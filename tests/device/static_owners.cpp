/// Returns from main with owners alive: function-local ones, destroyed before the CUDA runtime, and namespace-scope
/// ones, which may be destroyed after it. The program must exit with code 0 and without a recorded failure.

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/tessera.hpp"

using namespace tessera;

namespace {

constexpr int exit_no_device = 77;

/// Created first, so it is destroyed last.
struct LastWord {
    ~LastWord()
    {
        for (const std::string& error : dropped_errors()) {
            std::printf("FAILED: an owner could not free what it owns: %s\n", error.c_str());
            std::fflush(stdout);
            std::_Exit(1);
        }
    }
};
const LastWord last_word;

struct Owners {
    Stream stream;
    DeviceBuffer<float> pool{stream, 1000, Allocation::automatic};
    DeviceBuffer<float> plain{stream, 1000, Allocation::plain};
    PinnedBuffer<float> pinned{1000};
    Event event{EventKind::timing};
    Graph graph = Graph::capture(stream, [this](StreamRef s) { pool.fill(s, 1.0F); });

    Owners()
    {
        graph.launch(stream);
        plain.copy_from_async(stream, pool.span());
        plain.copy_to_async(stream, pinned);  // still pending in the pinned buffer when main ends
        event.record(stream);
    }
};

std::optional<Owners> early;  // its destructor is registered before main

}  // namespace

/// `--before-runtime` leaves out the owner that may be destroyed after the runtime. It cannot free its memory any more,
/// so a leak checker would count what the driver frees with the process.
int main(int argc, char** argv)
{
    const bool before_runtime = argc > 1 && std::string_view(argv[1]) == "--before-runtime";
    if (Device::count() == 0) {
        std::printf("skipped: this test needs a CUDA device\n");
        return exit_no_device;
    }
    if (!before_runtime) {
        early.emplace();
    }
    static Owners late;
    late.pinned.synchronize();
    if (late.pinned.span()[999] != 1.0F) {
        std::printf("FAILED: the copy did not arrive\n");
        return 1;
    }
    return 0;
}
