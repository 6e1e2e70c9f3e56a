/// Every CUDA call fails once. Whatever existed by then is freed exactly once, and the error says what happened.

#include <array>

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

/// Uses everything: streams, both kinds of memory, events, copies of each kind, fills, a graph with a product, a plan.
void use_everything()
{
    const Device device(fake::h200);
    const Stream stream(device);
    const Stream side;
    const Event start(EventKind::timing);
    const Event end(EventKind::timing);
    start.record(stream);

    const std::vector<float> ones(64, 1.0F);
    const DeviceBuffer<float> a = DeviceBuffer<float>::from_host(stream, ones);
    DeviceBuffer<float> b(stream, 64, Allocation::plain);
    DeviceBuffer<float> d(stream, 64);
    PinnedBuffer<float> pinned(64);
    b.copy_from_async(stream, pinned);
    b.fill(stream, 2.5F);
    d.fill(stream, 0.0F);

    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        Gemm::launch(captured, a.matrix(8, 8), b.matrix(8, 8), d.matrix(8, 8));
        const DeviceBuffer<float> temporary(captured, 16);
    });
    graph.launch(stream);
    static_cast<void>(graph.node_count());

    side.wait(stream);
    GemmPlan::prepare(device, {.m = 8, .n = 8, .k = 8}).launch(side, a.matrix(8, 8), b.matrix(8, 8), d.matrix(8, 8));
    d.copy_to_async(side, pinned);
    d.used_on(side);
    DeviceBuffer<float> moved = std::move(d);
    static_cast<void>(moved.to_vector());
    const RawAllocation<float> raw = std::move(moved).release();
    DeviceBuffer<float> again;
    try {
        again = DeviceBuffer<float>::adopt(stream, raw);
    } catch (const Error&) {
        static_cast<void>(cudaFreeAsync(raw.data, stream.get()));  // the adoption failed: the caller still owns it
        static_cast<void>(cudaGetLastError());
        throw;
    }
    again.set_home(side);
    const Stream urgent(device, StreamPriority::most_urgent(device));
    static_cast<void>(urgent.priority());
    static_cast<void>(pinned[0]);

    const Stream there{Device(fake::t4)};
    DeviceBuffer<float> copy(there, 64);
    copy.copy_from_async(there, a.span());
    there.synchronize();

    end.record(stream);
    end.synchronize();
    static_cast<void>(end.done());
    static_cast<void>(end.seconds_since(start));
    static_cast<void>(stream.done());
    static_cast<void>(device.free_memory_bytes());
    device.synchronize();
}

struct Injected {
    cudaError_t status;
    bool sticky;
    ErrorCode code;
};

constexpr std::array injections{
    Injected{cudaErrorMemoryAllocation, false, ErrorCode::out_of_memory},
    Injected{cudaErrorUnknown, false, ErrorCode::cuda_failure},
    Injected{cudaErrorStreamCaptureInvalidated, false, ErrorCode::capture_violation},
    Injected{cudaErrorInvalidResourceHandle, false, ErrorCode::cuda_failure},
    Injected{cudaErrorIllegalAddress, true, ErrorCode::context_lost},
};

}  // namespace

TEST_CASE_FIXTURE(CleanRuntime, "without a fault, the scenario succeeds and leaks nothing")
{
    use_everything();
    CHECK(fake::calls().size() > 100);
}

TEST_CASE_FIXTURE(CleanRuntime,
                  "whichever call fails, nothing leaks, nothing is freed twice, and the error is the fault's")
{
    for (const Injected& injected : injections) {
        int errors = 0;
        int nth = 1;
        for (;; ++nth) {
            fake::reset();
            fake::fail_call(nth, injected.status, injected.sticky);
            const auto error = test::error_of([] { use_everything(); });
            const auto dropped = dropped_errors();
            if (!fake::fault_occurred()) {
                CHECK_FALSE(error.has_value());
                break;
            }
            CAPTURE(nth);
            CAPTURE(std::string(cudaGetErrorName(injected.status)));
            CAPTURE(fake::calls()[static_cast<std::size_t>(nth) - 1].name);
            if (error.has_value()) {
                ++errors;
                CAPTURE(error->what());
                // The elapsed time of events that were never recorded is the caller's error.
                const bool expected = error->code() == injected.code || error->code() == ErrorCode::invalid_argument;
                CHECK(expected);
            } else {
                // Only destructors, and queries whose failure has an answer, continue without an exception.
                const std::string call = fake::calls()[static_cast<std::size_t>(nth) - 1].name;
                const bool silent = !dropped.empty() || call == "cudaStreamIsCapturing" ||
                                    call == "cudaEventElapsedTime" || call == "cudaGetDriverEntryPointByVersion";
                CHECK(silent);
            }
            CHECK(fake::live() == fake::Live{});
            CHECK(fake::misuses() == std::vector<std::string>{});
            if (!injected.sticky) {
                CHECK(cudaPeekAtLastError() == cudaSuccess);
            }
        }
        CHECK(nth > 100);    // every call of the scenario failed once
        CHECK(errors > 60);  // most of the failures are not in destructors
    }
    fake::reset();
}
