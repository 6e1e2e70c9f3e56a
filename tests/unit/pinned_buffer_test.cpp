/// PinnedBuffer: ownership, and that its memory stays until the last copy is done.

#include <fmt/format.h>

#include <algorithm>

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

TEST_CASE_FIXTURE(CleanRuntime, "pinned memory is zero, indexed with bounds, and freed once")
{
    {
        PinnedBuffer<int> buffer(3);
        CHECK(buffer.size() == 3);
        CHECK(buffer.size_bytes() == 12);
        CHECK(std::vector<int>(buffer.begin(), buffer.end()) == std::vector<int>{0, 0, 0});
        buffer.span()[1] = 5;
        CHECK(std::as_const(buffer).span()[1] == 5);
        CHECK(std::as_const(buffer).end() - std::as_const(buffer).begin() == 3);
        const PinnedBuffer<int> none(0);
        CHECK(none.empty());
    }
    CHECK(fake::count("cudaHostAlloc") == 1);
    CHECK(fake::count("cudaFreeHost") == 1);
}

TEST_CASE_FIXTURE(CleanRuntime, "a moved pinned buffer has one owner, and its uses move with it")
{
    const Stream stream;
    DeviceBuffer<int> device(stream, 3);
    PinnedBuffer<int> first(3);
    device.copy_from_async(stream, first);
    int* const data = first.data();
    PinnedBuffer<int> second = std::move(first);
    CHECK(first.data() == nullptr);
    CHECK(first.empty());
    PinnedBuffer<int>& same = second;
    second = std::move(same);
    CHECK(second.data() == data);
    PinnedBuffer<int> third(1);
    third = std::move(second);
    CHECK(third.data() == data);
    CHECK(fake::live().pinned_allocations == 1);
    CHECK(fake::live().events == 1);
}

TEST_CASE_FIXTURE(CleanRuntime, "the memory is given back only after the last copy on every stream is done")
{
    const Stream first;
    const Stream second;
    const Stream there{Device(fake::t4)};
    DeviceBuffer<int> a(first, 3);
    DeviceBuffer<int> b(second, 3);
    DeviceBuffer<int> c(there, 3);
    {
        PinnedBuffer<int> pinned(3);
        for (cudaStream_t const stream : {first.get(), second.get(), there.get()}) {
            fake::hold(stream);  // otherwise a use is soon over, and forgotten
        }
        for (int i = 0; i < 2; ++i) {
            a.copy_from_async(first, pinned);
            b.copy_from_async(second, pinned);
            c.copy_to_async(there, pinned);
        }
        CHECK(fake::live().events == 3);  // one for each stream, not one for each copy
        fake::clear_calls();
    }
    const auto calls = fake::calls();
    REQUIRE(fake::count("cudaEventSynchronize") == 3);
    const auto position = [&](const std::string& name) {
        return std::find_if(calls.rbegin(), calls.rend(), [&](const fake::Call& call) { return call.name == name; });
    };
    CHECK(position("cudaFreeHost") < position("cudaEventSynchronize"));  // from the end: the free came later
}

TEST_CASE_FIXTURE(CleanRuntime, "uses that are over are forgotten when a further stream comes")
{
    PinnedBuffer<int> pinned(3);
    for (int i = 0; i < 10; ++i) {
        const Stream stream;
        DeviceBuffer<int> buffer(stream, 3);
        buffer.copy_from_async(stream, pinned);
    }
    CHECK(fake::live().events == 1);
}

TEST_CASE_FIXTURE(CleanRuntime, "copies inside of a capture are not remembered: their events would never happen")
{
    const Stream stream;
    PinnedBuffer<int> pinned(3);
    DeviceBuffer<int> buffer(stream, 3);
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) { buffer.copy_from_async(captured, pinned); });
    CHECK(graph.node_count() == 1);
    CHECK(fake::live().events == 0);
    pinned.synchronize();
}

TEST_CASE_FIXTURE(CleanRuntime, "a copy whose use cannot be remembered is waited for, on its own device, and reported")
{
    const Device t4(fake::t4);
    DeviceBuffer<int> buffer(t4.default_stream(), 3);
    PinnedBuffer<int> pinned(3);
    fake::clear_calls();
    fake::fail_call("cudaEventCreateWithFlags", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in Event\n  cudaEventCreateWithFlags returned cudaErrorUnknown (999): unknown "
        "error",
        buffer.copy_from_async(t4.default_stream(), pinned));
    REQUIRE(fake::count("cudaStreamSynchronize") == 1);
    for (const fake::Call& call : fake::calls()) {
        if (call.name == "cudaStreamSynchronize") {
            CHECK(call.device == fake::t4);
        }
    }
    fake::fail_call("cudaEventRecord", 1, cudaErrorUnknown);
    fake::fail_call("cudaStreamSynchronize", 1, cudaErrorInvalidValue);
    CHECK_ERROR(
        "tessera: cuda_failure in Event::record\n  cudaEventRecord returned cudaErrorUnknown (999): unknown error",
        buffer.copy_from_async(t4.default_stream(), pinned));
    CHECK(dropped_errors() ==
          std::vector<std::string>{"cudaStreamSynchronize returned cudaErrorInvalidValue (1): invalid argument"});
}

TEST_CASE_FIXTURE(CleanRuntime, "a raw use is remembered when it is told")
{
    const Stream stream;
    PinnedBuffer<int> pinned(3);
    DeviceBuffer<int> buffer(stream, 3);
    REQUIRE(cudaMemcpyAsync(buffer.data(), pinned.data(), 12, cudaMemcpyDefault, stream.get()) == cudaSuccess);
    pinned.used_on(stream);
    CHECK(fake::live().events == 1);
}

TEST_CASE_FIXTURE(CleanRuntime, "release waits and gives the memory away, adopt takes it back")
{
    const Stream stream;
    PinnedBuffer<int> pinned(3);
    DeviceBuffer<int> buffer(stream, 3);
    buffer.copy_from_async(stream, pinned);
    int* const data = std::move(pinned).release();
    CHECK(pinned.data() == nullptr);
    CHECK(pinned.empty());
    CHECK(fake::count("cudaEventSynchronize") == 1);
    CHECK(fake::live().pinned_allocations == 1);
    const PinnedBuffer<int> again = PinnedBuffer<int>::adopt(data, 3);
    CHECK(again.data() == data);
    CHECK(PinnedBuffer<int>::adopt(nullptr, 0).empty());
}

TEST_CASE_FIXTURE(CleanRuntime, "memory that is not page-locked cannot be adopted")
{
    const Stream stream;
    const DeviceBuffer<int> buffer(stream, 3);
    int host = 0;
    for (int* const pointer : {&host, const_cast<int*>(buffer.data()), static_cast<int*>(nullptr)}) {
        CHECK_ERROR(fmt::format("tessera: wrong_memory in PinnedBuffer::adopt\n  {} is not page-locked host memory\n"
                                "  try: memory from cudaMallocHost or cudaHostAlloc",
                                fmt::ptr(pointer)),
                    PinnedBuffer<int>::adopt(pointer, 1));
    }
    fake::fail_call("cudaPointerGetAttributes", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in PinnedBuffer::adopt\n  cudaPointerGetAttributes returned cudaErrorUnknown "
        "(999): unknown error",
        PinnedBuffer<int>::adopt(&host, 1));
}

TEST_CASE_FIXTURE(CleanRuntime, "a pinned buffer that cannot be says why")
{
    CHECK_ERROR(
        "tessera: size_overflow in PinnedBuffer\n  4611686018427387904 elements of 4 bytes are more bytes than 63 "
        "bits can count",
        PinnedBuffer<float>(std::size_t{1} << 62U));
    fake::fail_call("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
    CHECK_ERROR(
        "tessera: out_of_memory in PinnedBuffer\n  cudaHostAlloc returned cudaErrorMemoryAllocation (2): out of "
        "memory\n  while allocating 400 pinned bytes\n  try: free pinned memory or use less: the host can "
        "page-lock no more",
        PinnedBuffer<float>(100));
    const Stream stream;
    CHECK_ERROR(
        "tessera: capture_violation in PinnedBuffer\n  cudaHostAlloc returned cudaErrorStreamCaptureUnsupported "
        "(900): operation not permitted when stream is capturing\n  while allocating 400 pinned bytes\n  try: the "
        "stream is being captured: move this call out of the captured work, and fork and join every other stream "
        "with events",
        Graph::capture(stream, [](StreamRef) { PinnedBuffer<float>(100); }));
}

TEST_CASE_FIXTURE(CleanRuntime, "waiting for copies that failed is an error, and in the destructor a dropped one")
{
    const Stream stream;
    DeviceBuffer<int> buffer(stream, 3);
    {
        PinnedBuffer<int> pinned(3);
        buffer.copy_from_async(stream, pinned);
        fake::fail_call("cudaEventSynchronize", 1, cudaErrorUnknown);
        CHECK_ERROR(
            "tessera: cuda_failure in Event::synchronize\n  cudaEventSynchronize returned cudaErrorUnknown (999): "
            "unknown error",
            pinned.synchronize());
        fake::fail_call("cudaEventSynchronize", 1, cudaErrorUnknown);
        fake::fail_call("cudaFreeHost", 1, cudaErrorUnknown);
    }
    CHECK(dropped_errors() ==
          std::vector<std::string>{"cudaEventSynchronize returned cudaErrorUnknown (999): unknown error",
                                   "cudaFreeHost returned cudaErrorUnknown (999): unknown error"});
}
