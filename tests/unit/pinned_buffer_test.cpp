/// PinnedBuffer: ownership, and that its memory stays until the last copy is done.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

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

TEST_CASE_FIXTURE(CleanRuntime, "a moved pinned buffer has one owner, and its pending uses move with it")
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

TEST_CASE_FIXTURE(CleanRuntime, "the memory is freed only after the last copy on every stream is done")
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
            fake::hold(stream);  // otherwise a use would soon be finished and dropped
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
    CHECK(position("cudaFreeHost") < position("cudaEventSynchronize"));  // searched from the end: the free came later
}

TEST_CASE_FIXTURE(CleanRuntime, "finished uses are forgotten when another stream is added")
{
    PinnedBuffer<int> pinned(3);
    for (int i = 0; i < 10; ++i) {
        const Stream stream;
        DeviceBuffer<int> buffer(stream, 3);
        buffer.copy_from_async(stream, pinned);
    }
    CHECK(fake::live().events == 1);
}

TEST_CASE_FIXTURE(CleanRuntime,
                  "copies inside of a capture are not recorded, because their events would never complete")
{
    const Stream stream;
    PinnedBuffer<int> pinned(3);
    DeviceBuffer<int> buffer(stream, 3);
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) { buffer.copy_from_async(captured, pinned); });
    CHECK(graph.node_count() == 1);
    CHECK(fake::live().events == 0);
    pinned.synchronize();
}

TEST_CASE_FIXTURE(CleanRuntime, "a copy whose use cannot be recorded is waited for, on its own device, and reported")
{
    const Device t4(fake::t4);
    DeviceBuffer<int> buffer(t4.default_stream(), 3);
    PinnedBuffer<int> pinned(3);
    fake::clear_calls();
    fake::fail_call("cudaEventCreateWithFlags", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in DeviceBuffer::copy_from_async\n  cudaEventCreateWithFlags returned cudaErrorUnknown "
        "(999): unknown "
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
        "tessera: cuda_failure in DeviceBuffer::copy_from_async\n  cudaEventRecord returned cudaErrorUnknown (999): "
        "unknown error",
        buffer.copy_from_async(t4.default_stream(), pinned));
    CHECK(dropped_errors() ==
          std::vector<std::string>{"cudaStreamSynchronize returned cudaErrorInvalidValue (1): invalid argument"});
}

TEST_CASE_FIXTURE(CleanRuntime, "a raw use is recorded by used_on")
{
    const Stream stream;
    PinnedBuffer<int> pinned(3);
    DeviceBuffer<int> buffer(stream, 3);
    REQUIRE(cudaMemcpyAsync(buffer.data(), pinned.data(), 12, cudaMemcpyDefault, stream.get()) == cudaSuccess);
    pinned.used_on(stream);
    CHECK(fake::live().events == 1);
}

TEST_CASE_FIXTURE(CleanRuntime, "an index outside of a pinned buffer is an error with the values, at the caller's line")
{
    PinnedBuffer<int> buffer(64);
    const auto refusal = [](const std::string& operation, const std::string& index) {
        return "tessera: out_of_range in " + operation + "\n  index " + index +
               " is out of range for 64 elements\n  try: an index from 0 to 63";
    };
    buffer[63] = 5;
    CHECK(std::as_const(buffer)[63] == 5);
    CHECK(buffer.at(63) == 5);
    CHECK(std::as_const(buffer).at(std::size_t{63}) == 5);
    CHECK(buffer.span()[63] == 5);
    CHECK_ERROR(refusal("PinnedBuffer::operator[]", "64"), buffer[64]);
    CHECK_ERROR(refusal("PinnedBuffer::operator[]", "-1"), std::as_const(buffer)[-1]);
    CHECK_ERROR(refusal("PinnedBuffer::at", "64"), buffer.at(64));
    CHECK_ERROR(refusal("PinnedBuffer::at", "18446744073709551615"), std::as_const(buffer).at(SIZE_MAX));
    CHECK_ERROR(refusal("HostSpan::operator[]", "64"), buffer.span()[64]);
    CHECK_ERROR(refusal("HostSpan::operator[]", "-3"), std::as_const(buffer).span()[-3]);
    CHECK_ERROR(
        "tessera: out_of_range in PinnedBuffer::operator[]\n  index 0 is out of range for 0 elements\n  try: check "
        "first that there are elements",
        PinnedBuffer<int>(0)[0]);
}

TEST_CASE_FIXTURE(CleanRuntime, "a HostSpan can be narrowed within its range and converts to other libraries' spans")
{
    PinnedBuffer<int> buffer(4);
    const HostSpan<int> all = buffer.span();
    for (int i = 0; int& element : all) {
        element = i++;
    }
    const HostSpan<const int> part = all.subspan(1, 2);
    CHECK(part.size_bytes() == 8);
    CHECK(part[0] == 1);
    CHECK(all.subspan(4, 0).empty());
    CHECK(HostSpan<int>().data() == nullptr);
    CHECK_ERROR(
        "tessera: out_of_range in HostSpan::subspan\n  2 elements from element 3 on do not fit into memory of 4 "
        "elements",
        all.subspan(3, 2));
    const gsl::span<int> gsl_span = all;
    const gsl::span<const int> gsl_const = buffer.span();
    const std::span<int> std_span = all;
    const std::span<const int> std_const = buffer.span();
    CHECK(gsl_span.size() + gsl_const.size() + std_span.size() + std_const.size() == 16);
    CHECK(std::ranges::max(buffer.span()) == 3);
    const Stream stream;
    CHECK(DeviceBuffer<int>::from_host(stream, all).to_vector() == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE_FIXTURE(CleanRuntime, "a moved-from pinned buffer refuses every use that needs memory")
{
    const Stream stream;
    PinnedBuffer<int> moved(3);
    const PinnedBuffer<int> owner = std::move(moved);
    PinnedBuffer<int> never;
    const auto refusal = [](const std::string& operation) {
        return "tessera: empty_handle in " + operation +
               "\n  the pinned buffer was moved from, released or never given memory\n  try: use the object that it "
               "was "
               "moved to";
    };
    for (PinnedBuffer<int>* const buffer : {&moved, &never}) {
        CHECK_ERROR(refusal("PinnedBuffer::operator[]"), (*buffer)[0]);
        CHECK_ERROR(refusal("PinnedBuffer::operator[]"), std::as_const(*buffer)[0]);
        CHECK_ERROR(refusal("PinnedBuffer::at"), buffer->at(0));
        CHECK_ERROR(refusal("PinnedBuffer::synchronize"), buffer->synchronize());
        CHECK_ERROR(refusal("PinnedBuffer::used_on"), buffer->used_on(stream));
        CHECK(buffer->span().empty());
        CHECK(buffer->begin() == buffer->end());
        CHECK(std::move(*buffer).release() == nullptr);
    }
    PinnedBuffer<int>(0).synchronize();
}

TEST_CASE_FIXTURE(CleanRuntime, "reading elements waits once for the copy that writes them, whatever the accessor")
{
    const Stream stream;
    const DeviceBuffer<int> device = DeviceBuffer<int>::from_host(stream, std::vector<int>{7, 8, 9});
    const std::vector<std::function<void(PinnedBuffer<int>&)>> reads{
        [](PinnedBuffer<int>& buffer) { CHECK(std::as_const(buffer)[0] == 7); },
        [](PinnedBuffer<int>& buffer) { CHECK(std::as_const(buffer).at(1) == 8); },
        [](PinnedBuffer<int>& buffer) { CHECK(std::as_const(buffer).span()[2] == 9); },
        [](PinnedBuffer<int>& buffer) { CHECK(*std::as_const(buffer).begin() == 7); },
        [](PinnedBuffer<int>& buffer) { CHECK(buffer[0] == 7); },
        [](PinnedBuffer<int>& buffer) { CHECK(buffer.at(1) == 8); },
        [](PinnedBuffer<int>& buffer) { CHECK(buffer.span()[2] == 9); },
        [](PinnedBuffer<int>& buffer) { CHECK(*buffer.begin() == 7); },
    };
    for (const auto& read : reads) {
        PinnedBuffer<int> buffer(3);
        device.copy_to_async(stream, buffer);
        fake::clear_calls();
        static_cast<void>(buffer.data());
        static_cast<void>(buffer.size());
        CHECK(fake::calls().empty());
        read(buffer);
        CHECK(fake::count("cudaEventSynchronize") == 1);
        read(buffer);
        CHECK(fake::calls().size() == 1);  // no second wait
        device.copy_to_async(stream, buffer);
        read(buffer);
        CHECK(fake::count("cudaEventSynchronize") == 2);
    }
}

TEST_CASE_FIXTURE(CleanRuntime, "elements that a copy still reads can be read, and writing them waits")
{
    const Stream stream;
    DeviceBuffer<int> device(stream, 3);
    PinnedBuffer<int> buffer(3);
    device.copy_from_async(stream, buffer);
    fake::clear_calls();
    CHECK(std::as_const(buffer)[0] == 0);
    CHECK(std::as_const(buffer).span()[0] == 0);
    CHECK(fake::calls().empty());
    buffer[0] = 1;
    CHECK(fake::count("cudaEventSynchronize") == 1);
    buffer.used_on(stream);  // the buffer does not know what a raw use does
    CHECK(std::as_const(buffer)[0] == 1);
    CHECK(fake::count("cudaEventSynchronize") == 2);
}

TEST_CASE_FIXTURE(CleanRuntime,
                  "a pending copy moves with its buffer, and a failed one is an error when an element is read")
{
    const Stream stream;
    const DeviceBuffer<int> device(stream, 3);
    PinnedBuffer<int> first(3);
    device.copy_to_async(stream, first);
    PinnedBuffer<int> second = std::move(first);
    fake::clear_calls();
    fake::fail_call("cudaEventSynchronize", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in PinnedBuffer::operator[]\n  cudaEventSynchronize returned cudaErrorUnknown (999): "
        "unknown error",
        second[0]);
    static_cast<void>(second[0]);  // still pending, so it waits again
    CHECK(fake::count("cudaEventSynchronize") == 2);
}

TEST_CASE_FIXTURE(CleanRuntime, "release waits and gives up the memory, and adopt takes it back")
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

TEST_CASE_FIXTURE(CleanRuntime, "an impossible pinned buffer is refused with the reason")
{
    CHECK_ERROR(
        "tessera: size_overflow in PinnedBuffer\n  the size of 4611686018427387904 elements of 4 bytes does not fit "
        "into 63 bits\n  try: compute the count in std::size_t or std::int64_t from the start",
        PinnedBuffer<float>(std::size_t{1} << 62U));
    fake::fail_call("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
    CHECK_ERROR(
        "tessera: out_of_memory in PinnedBuffer\n  cudaHostAlloc returned cudaErrorMemoryAllocation (2): out of "
        "memory\n  while allocating 400 pinned bytes\n  try: free pinned memory or use less: the host cannot page-lock "
        "any more",
        PinnedBuffer<float>(100));
    const Stream stream;
    CHECK_ERROR(
        "tessera: capture_violation in PinnedBuffer\n  cudaHostAlloc returned cudaErrorStreamCaptureUnsupported "
        "(900): operation not permitted when stream is capturing\n  while allocating 400 pinned bytes\n  try: the "
        "stream is being captured: move this call out of the captured work, and fork and join every other stream "
        "with events",
        Graph::capture(stream, [](StreamRef) { PinnedBuffer<float>(100); }));
}

TEST_CASE_FIXTURE(CleanRuntime, "waiting for a failed copy is an error, which the destructor drops")
{
    const Stream stream;
    DeviceBuffer<int> buffer(stream, 3);
    {
        PinnedBuffer<int> pinned(3);
        buffer.copy_from_async(stream, pinned);
        fake::fail_call("cudaEventSynchronize", 1, cudaErrorUnknown);
        CHECK_ERROR(
            "tessera: cuda_failure in PinnedBuffer::synchronize\n  cudaEventSynchronize returned cudaErrorUnknown "
            "(999): "
            "unknown error",
            pinned.synchronize());
        fake::fail_call("cudaEventSynchronize", 1, cudaErrorUnknown);
        fake::fail_call("cudaFreeHost", 1, cudaErrorUnknown);
    }
    CHECK(dropped_errors() ==
          std::vector<std::string>{"cudaEventSynchronize returned cudaErrorUnknown (999): unknown error",
                                   "cudaFreeHost returned cudaErrorUnknown (999): unknown error"});
}
