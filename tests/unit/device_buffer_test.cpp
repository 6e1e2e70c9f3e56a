/// DeviceBuffer: ownership, devices, the order of allocations and frees.

#include <fmt/format.h>

#include "clean_runtime.hpp"
#include "memory_texts.hpp"

using namespace tessera;
using tessera::test::ascending;
using tessera::test::CleanRuntime;
using tessera::test::mismatch;

namespace {

std::string moved_buffer(const std::string& operation)
{
    return "tessera: empty_handle in " + operation +
           "\n  the buffer was moved from, released or never given memory\n  try: use the object that it was moved to";
}

int index_of(const std::string& name, int from = 0)
{
    const auto calls = fake::calls();
    for (std::size_t i = static_cast<std::size_t>(from); i < calls.size(); ++i) {
        if (calls[i].name == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

}  // namespace

TEST_CASE_FIXTURE(CleanRuntime, "memory comes from the pool if the device has one, and is freed on the home stream")
{
    const Stream stream;
    {
        const DeviceBuffer<float> buffer(stream, 100);
        CHECK(buffer.size() == 100);
        CHECK(buffer.size_bytes() == 400);
        CHECK_FALSE(buffer.empty());
        CHECK(buffer.device() == fake::h200);
        CHECK(buffer.stream() == StreamRef(stream));
        CHECK(fake::count("cudaMallocAsync") == 1);
    }
    CHECK(fake::count("cudaFreeAsync") == 1);
    CHECK(fake::count("cudaStreamSynchronize") == 0);
}

TEST_CASE_FIXTURE(CleanRuntime, "plain memory waits for its stream before it is freed")
{
    const Stream stream;
    DeviceBuffer<float>(stream, 100, Allocation::plain).fill(stream, 0.0F);
    CHECK(fake::count("cudaMalloc") == 1);
    CHECK(index_of("cudaStreamSynchronize") < index_of("cudaFree"));
    CHECK(index_of("cudaStreamSynchronize") >= 0);
}

TEST_CASE_FIXTURE(CleanRuntime, "on a device without pools, memory is allocated and freed with that device current")
{
    const Stream stream{Device(fake::t4)};
    fake::clear_calls();
    {
        const DeviceBuffer<float> buffer(stream, 100);
        CHECK(buffer.device() == fake::t4);
    }
    for (const fake::Call& call : fake::calls()) {
        CAPTURE(call.name);
        if (call.name == "cudaMalloc" || call.name == "cudaFree" || call.name == "cudaStreamSynchronize") {
            CHECK(call.device == fake::t4);
        }
    }
    CHECK(fake::count("cudaMalloc") == 1);
    CHECK(fake::count("cudaFree") == 1);
    CHECK(Device::current().ordinal() == fake::h200);
    CHECK_ERROR(
        "tessera: unsupported_device in DeviceBuffer\n  T4 has no memory pools\n  try: Allocation::plain or "
        "Allocation::automatic",
        DeviceBuffer<float>(stream, 100, Allocation::pool));
}

TEST_CASE_FIXTURE(CleanRuntime, "pool memory of another device is freed with that device current")
{
    const Device b200(fake::b200);
    {
        const DeviceBuffer<float> on_default_stream(b200.default_stream(), 10);
        const Stream stream(b200);
        const DeviceBuffer<float> on_stream(stream, 10);
    }
    for (const fake::Call& call : fake::calls()) {
        if (call.name == "cudaMallocAsync" || call.name == "cudaFreeAsync") {
            CHECK(call.device == fake::b200);
        }
    }
    CHECK(fake::count("cudaFreeAsync") == 2);
    CHECK(Device::current().ordinal() == fake::h200);
}

TEST_CASE_FIXTURE(CleanRuntime, "a buffer outlives its Stream: the native stream is destroyed after the memory")
{
    {
        DeviceBuffer<int> buffer;
        {
            const Stream stream;
            buffer = DeviceBuffer<int>::from_host(stream, ascending(4));
        }
        CHECK(fake::live().streams == 1);
        CHECK(buffer.to_vector() == ascending(4));
    }
    CHECK(index_of("cudaFreeAsync") < index_of("cudaStreamDestroy"));
    CHECK(index_of("cudaFreeAsync") >= 0);
}

TEST_CASE_FIXTURE(CleanRuntime, "a buffer of size 0 allocates nothing and copies nothing")
{
    const Stream stream;
    DeviceBuffer<int> buffer(stream, 0);
    fake::clear_calls();
    CHECK(buffer.empty());
    CHECK(buffer.to_vector().empty());
    buffer.copy_from({});
    buffer.fill(stream, 1);
    PinnedBuffer<int> none(0);
    buffer.copy_from_async(stream, none);
    CHECK(fake::count("cudaMemcpyAsync") == 0);
    CHECK(fake::count("cudaMemsetAsync") == 0);
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(CleanRuntime, "a moved buffer has one owner, even if it is moved onto itself or another buffer")
{
    const Stream stream;
    DeviceBuffer<int> first = DeviceBuffer<int>::from_host(stream, ascending(8));
    int* const data = first.data();
    DeviceBuffer<int> second = std::move(first);
    CHECK(first.data() == nullptr);
    CHECK(first.size() == 0);
    CHECK(first.device() == -1);
    DeviceBuffer<int>& same = second;
    second = std::move(same);
    CHECK(second.data() == data);
    DeviceBuffer<int> third(stream, 3);
    third = std::move(second);
    CHECK(third.data() == data);
    CHECK(third.to_vector() == ascending(8));
    CHECK(fake::live().device_allocations == 1);
}

TEST_CASE_FIXTURE(CleanRuntime, "a moved-from buffer refuses every use that needs memory")
{
    const Stream stream;
    DeviceBuffer<int> moved(stream, 4);
    const DeviceBuffer<int> owner = std::move(moved);
    DeviceBuffer<int> released(stream, 4, Allocation::plain);
    REQUIRE(cudaFree(std::move(released).release().data) == cudaSuccess);
    DeviceBuffer<int> never;
    std::vector<int> host(4);
    PinnedBuffer<int> pinned(4);
    DeviceBuffer<float> floats;
    fake::clear_calls();
    for (DeviceBuffer<int>* const buffer : {&moved, &released, &never}) {
        CHECK_ERROR(moved_buffer("DeviceBuffer::stream"), buffer->stream());
        CHECK_ERROR(moved_buffer("DeviceBuffer::copy_from"), buffer->copy_from(host));
        CHECK_ERROR(moved_buffer("DeviceBuffer::copy_from"), buffer->copy_from({}));
        CHECK_ERROR(moved_buffer("DeviceBuffer::copy_to"), buffer->copy_to(host));
        CHECK_ERROR(moved_buffer("DeviceBuffer::to_vector"), buffer->to_vector());
        CHECK_ERROR(moved_buffer("DeviceBuffer::fill"), buffer->fill(stream, 1));
        CHECK_ERROR(moved_buffer("DeviceBuffer::copy_from_async"), buffer->copy_from_async(stream, pinned));
        CHECK_ERROR(moved_buffer("DeviceBuffer::copy_from_async"), buffer->copy_from_async(stream, owner.span()));
        CHECK_ERROR(moved_buffer("DeviceBuffer::copy_to_async"), buffer->copy_to_async(stream, pinned));
        CHECK_ERROR(moved_buffer("DeviceBuffer::subspan"), buffer->subspan(0, 0));
        CHECK_ERROR(moved_buffer("DeviceBuffer::subspan"), std::as_const(*buffer).subspan(0, 0));
        CHECK_ERROR(moved_buffer("DeviceBuffer::used_on"), buffer->used_on(stream));
        CHECK_ERROR(moved_buffer("DeviceBuffer::set_home"), buffer->set_home(stream));
        CHECK(buffer->data() == nullptr);
        CHECK(buffer->span().empty());
        CHECK(buffer->span().device() == -1);
    }
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::matrix\n  a 2x2 row-major matrix with leading dimension 2 needs 4 "
        "elements "
        "and the memory has 0\n  try: was its buffer moved from? Use the object that it was moved to, or a longer "
        "buffer",
        floats.span().matrix(2, 2));
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::matrices\n  3 of a 2x2 row-major matrix with leading dimension 2 at a "
        "batch "
        "stride of 4 need 12 elements and the memory has 0\n  try: was its buffer moved from? Use the object that it "
        "was "
        "moved to, or a longer buffer",
        floats.span().matrices({.rows = 2, .columns = 2, .count = 3}));
    CHECK_ERROR(moved_buffer("DeviceBuffer::matrix"), floats.matrix(0, 0));
    CHECK_ERROR(moved_buffer("DeviceBuffer::matrix"), floats.matrix(2, 2));
    CHECK_ERROR(moved_buffer("DeviceBuffer::matrix"), std::as_const(floats).matrix(2, 2, ColumnMajor{}));
    CHECK_ERROR(moved_buffer("DeviceBuffer::matrix"), floats.matrix(2, 2, 4));
    CHECK_ERROR(moved_buffer("DeviceBuffer::matrix"), std::as_const(floats).matrix(2, 2, 4));
    CHECK(fake::calls().empty());
}

TEST_CASE_FIXTURE(CleanRuntime, "a moved-from pinned buffer refuses to copy")
{
    const Stream stream;
    DeviceBuffer<int> buffer(stream, 4);
    PinnedBuffer<int> pinned(4);
    const PinnedBuffer<int> owner = std::move(pinned);
    const auto moved = [](const std::string& operation) {
        return "tessera: empty_handle in " + operation +
               "\n  the pinned buffer was moved from, released or never given memory\n  try: use the object that it "
               "was "
               "moved to";
    };
    CHECK_ERROR(moved("DeviceBuffer::copy_from_async"), buffer.copy_from_async(stream, pinned));
    CHECK_ERROR(moved("DeviceBuffer::copy_to_async"), buffer.copy_to_async(stream, pinned));
    CHECK(fake::count("cudaMemcpyAsync") == 0);
}

TEST_CASE_FIXTURE(CleanRuntime, "a buffer of size 0 has a stream and does not count as moved-from")
{
    const Stream stream;
    DeviceBuffer<float> none(stream, 0);
    CHECK(none.device() == fake::h200);
    CHECK(none.stream() == StreamRef(stream));
    CHECK(none.to_vector().empty());
    CHECK(none.matrix(0, 5).empty());
    CHECK(none.subspan(0, 0).empty());
    none.fill(stream, 1.0F);
    none.used_on(stream);
}

TEST_CASE_FIXTURE(CleanRuntime, "sizes may have any integer type, and a negative one is refused with its value")
{
    const Stream stream;
    CHECK(DeviceBuffer<int>(stream, 3).size() == 3);
    CHECK(DeviceBuffer<int>(stream, std::int64_t{3}).size() == 3);
    CHECK(DeviceBuffer<int>(stream, 3U).size() == 3);
    CHECK(DeviceBuffer<int>(stream, std::size_t{3}).size() == 3);
    CHECK(DeviceBuffer<int>(stream, std::int8_t{3}).size() == 3);
    CHECK(DeviceBuffer<int>(stream, std::integral_constant<int, 3>{}).size() == 3);
    CHECK(PinnedBuffer<int>(std::int16_t{3}).size() == 3);
    fake::clear_calls();
    const std::string cure = "\n  try: 0 or more. A product of two ints may have overflowed: multiply as std::int64_t";
    CHECK_ERROR("tessera: invalid_argument in DeviceBuffer\n  a buffer cannot have -5 elements" + cure,
                DeviceBuffer<float>(stream, -5));
    CHECK_ERROR("tessera: invalid_argument in DeviceBuffer\n  a buffer cannot have -2147479552 elements" + cure,
                DeviceBuffer<float>(stream, std::int64_t{-2147479552}));
    CHECK_ERROR("tessera: invalid_argument in PinnedBuffer\n  a buffer cannot have -1 elements" + cure,
                PinnedBuffer<float>(-1));
    CHECK_ERROR("tessera: invalid_argument in PinnedBuffer::adopt\n  a buffer cannot have -1 elements" + cure,
                PinnedBuffer<float>::adopt(nullptr, -1));
    CHECK_ERROR(
        "tessera: size_overflow in DeviceBuffer\n  the size of 18446744073709551611 elements of 4 bytes does not fit "
        "into 63 bits\n  try: was it -5, converted to an unsigned type?",
        DeviceBuffer<float>(stream, static_cast<std::size_t>(-5)));
    CHECK(fake::calls().empty());
}

TEST_CASE_FIXTURE(CleanRuntime, "release gives up the memory and adopt takes it back, for either kind")
{
    const Stream stream;
    for (const Allocation kind : {Allocation::pool, Allocation::plain}) {
        DeviceBuffer<int> buffer(stream, 5, kind);
        const RawAllocation<int> raw = std::move(buffer).release();
        CHECK(buffer.data() == nullptr);
        CHECK(raw.size == 5);
        CHECK(raw.allocation == kind);
        CHECK(fake::live().device_allocations == 1);
        const DeviceBuffer<int> again = DeviceBuffer<int>::adopt(stream, raw);
        CHECK(again.data() == raw.data);
        CHECK(again.size() == 5);
    }
}

TEST_CASE_FIXTURE(CleanRuntime, "only memory of the stream's device can be adopted, and its kind must be given")
{
    const Stream stream;
    const Stream there{Device(fake::t4)};
    DeviceBuffer<int> buffer(stream, 5, Allocation::plain);
    int host = 0;
    PinnedBuffer<int> pinned(1);
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceBuffer::adopt\n  Allocation::automatic does not say how to free the "
        "memory\n"
        "  try: Allocation::pool for memory from cudaMallocAsync, Allocation::plain for memory from cudaMalloc",
        DeviceBuffer<int>::adopt(stream, {buffer.data(), 5, Allocation::automatic}));
    const std::string cure = "\n  try: copy the data to a DeviceBuffer first: DeviceBuffer<T>::from_host(stream, data)";
    CHECK_ERROR(fmt::format("tessera: wrong_memory in DeviceBuffer::adopt\n  {} is ordinary host memory, not device "
                            "memory{}",
                            fmt::ptr(&host), cure),
                DeviceBuffer<int>::adopt(stream, {&host, 1, Allocation::plain}));
    CHECK_ERROR("tessera: wrong_memory in DeviceBuffer::adopt\n  0x0 is null, not device memory" + cure,
                DeviceBuffer<int>::adopt(stream, {nullptr, 1, Allocation::plain}));
    CHECK_ERROR(fmt::format("tessera: wrong_memory in DeviceBuffer::adopt\n  {} is page-locked host memory, not device "
                            "memory\n  try: PinnedBuffer<T>::adopt",
                            fmt::ptr(pinned.data())),
                DeviceBuffer<int>::adopt(stream, {pinned.data(), 1, Allocation::plain}));
    CHECK_ERROR(mismatch("DeviceBuffer::adopt", "the memory"),
                DeviceBuffer<int>::adopt(there, {buffer.data(), 5, Allocation::plain}));
    CHECK_ERROR(
        "tessera: size_overflow in DeviceBuffer::adopt\n  the size of 18446744073709551615 elements of 4 bytes does "
        "not fit into 63 bits\n  try: was it -1, converted to an unsigned type?",
        DeviceBuffer<int>::adopt(stream, {buffer.data(), SIZE_MAX, Allocation::plain}));
    fake::fail_call("cudaPointerGetAttributes", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in DeviceBuffer::adopt\n  cudaPointerGetAttributes returned cudaErrorUnknown "
        "(999): unknown error",
        DeviceBuffer<int>::adopt(stream, {buffer.data(), 5, Allocation::plain}));
}

TEST_CASE_FIXTURE(CleanRuntime, "memory of the wrong kind cannot be adopted if CUDA can tell")
{
    const Stream stream;
    DeviceBuffer<int> pool(stream, 5, Allocation::pool);
    DeviceBuffer<int> plain(stream, 5, Allocation::plain);
    CHECK_ERROR(fmt::format("tessera: wrong_memory in DeviceBuffer::adopt\n  {} is not from a memory pool, but "
                            "Allocation::pool was passed\n  try: Allocation::plain for memory from cudaMalloc",
                            fmt::ptr(plain.data())),
                DeviceBuffer<int>::adopt(stream, {plain.data(), 5, Allocation::pool}));
    CHECK_ERROR(fmt::format("tessera: wrong_memory in DeviceBuffer::adopt\n  {} is from a memory pool, but "
                            "Allocation::plain was passed\n  try: Allocation::pool for memory from cudaMallocAsync",
                            fmt::ptr(pool.data())),
                DeviceBuffer<int>::adopt(stream, {pool.data(), 5, Allocation::plain}));
    // If the driver cannot tell, adoption is allowed.
    fake::set_pointer_attributes_missing(true);
    const RawAllocation<int> raw = std::move(pool).release();
    const DeviceBuffer<int> again = DeviceBuffer<int>::adopt(stream, raw);
    fake::fail_call("cudaGetDriverEntryPointByVersion", 1, cudaErrorUnknown);
    const DeviceBuffer<int> other = DeviceBuffer<int>::adopt(stream, std::move(plain).release());
    CHECK(other.size() == 5);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE_FIXTURE(CleanRuntime, "a new home stream waits for the old one and is kept alive by the buffer")
{
    DeviceBuffer<int> buffer;
    {
        const Stream old;
        const Stream next;
        buffer = DeviceBuffer<int>(old, 4);
        buffer.fill(old, 1);
        fake::clear_calls();
        buffer.set_home(next);
        CHECK(buffer.stream() == StreamRef(next));
        CHECK(fake::count("cudaStreamWaitEvent") == 1);
        CHECK(fake::count("cudaStreamSynchronize") == 0);
        buffer.set_home(next);  // nothing to do
        CHECK(fake::count("cudaStreamWaitEvent") == 1);
    }
    CHECK(fake::live().streams == 1);
    buffer = DeviceBuffer<int>();
    CHECK(fake::count("cudaFreeAsync") == 1);
    CHECK(fake::live().streams == 0);
}

TEST_CASE_FIXTURE(CleanRuntime, "a home stream on another device or in a capture is refused, and the old one stays")
{
    const Stream home;
    const Stream there{Device(fake::t4)};
    const Stream other;
    DeviceBuffer<int> buffer(home, 4);
    CHECK_ERROR(mismatch("DeviceBuffer::set_home", "the buffer"), buffer.set_home(there));
    const std::string captured =
        "tessera: capture_violation in DeviceBuffer::set_home\n  the stream is being captured into a graph, and "
        "changing a buffer's home stream cannot be captured\n  try: do it before the capture begins";
    static_cast<void>(Graph::capture(other, [&](StreamRef into) { CHECK_ERROR(captured, buffer.set_home(into)); }));
    static_cast<void>(Graph::capture(home, [&](StreamRef) { CHECK_ERROR(captured, buffer.set_home(other)); }));
    fake::fail_call("cudaStreamWaitEvent", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in DeviceBuffer::set_home\n  cudaStreamWaitEvent returned cudaErrorUnknown (999): "
        "unknown "
        "error",
        buffer.set_home(other));
    CHECK(buffer.stream() == StreamRef(home));
}

TEST_CASE_FIXTURE(CleanRuntime, "an impossible size is refused before any CUDA call")
{
    const Stream stream;
    fake::clear_calls();
    CHECK_ERROR(
        "tessera: size_overflow in DeviceBuffer\n  the size of 2305843009213693952 elements of 4 bytes does not fit "
        "into 63 bits\n  try: compute the count in std::size_t or std::int64_t from the start",
        DeviceBuffer<float>(stream, std::size_t{1} << 61U));
    CHECK(fake::calls().empty());
}

TEST_CASE_FIXTURE(CleanRuntime, "out of memory: the error names the requested and the free bytes")
{
    const Stream stream;
    const DeviceBuffer<std::byte> half(stream, std::size_t{1} << 29U);
    const std::string tail =
        " returned cudaErrorMemoryAllocation (2): out of memory\n  while allocating 2147483648 bytes on device 0\n"
        "  try: the device has 536870912 of 1073741824 bytes free: free memory or use a smaller problem";
    CHECK_ERROR("tessera: out_of_memory in DeviceBuffer\n  cudaMallocAsync" + tail,
                DeviceBuffer<float>(stream, std::size_t{1} << 29U));
    CHECK_ERROR("tessera: out_of_memory in DeviceBuffer\n  cudaMalloc" + tail,
                DeviceBuffer<float>(stream, std::size_t{1} << 29U, Allocation::plain));
}

TEST_CASE_FIXTURE(CleanRuntime, "a buffer destroyed during a capture of its stream is freed after it, pool or not")
{
    for (const int ordinal : {fake::h200, fake::t4}) {
        CAPTURE(ordinal);
        const Stream stream{Device(ordinal)};
        DeviceBuffer<int> doomed(stream, 100);
        const Graph graph = Graph::capture(stream, [&](StreamRef) { const auto gone = std::move(doomed); });
        CHECK(graph.node_count() == 0);
        CHECK(fake::live().device_allocations == 0);
    }
}

TEST_CASE_FIXTURE(CleanRuntime, "blocking copies and plain allocations are refused during a capture, which continues")
{
    const Stream stream;
    DeviceBuffer<int> buffer(stream, 4);
    std::vector<int> host(4);
    const std::string middle = "\n  the stream is being captured into a graph, and ";
    const std::string end = " cannot be captured\n  try: do it before the capture begins";
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        CHECK_ERROR("tessera: capture_violation in DeviceBuffer::copy_from" + middle + "a blocking copy" + end,
                    buffer.copy_from(host));
        CHECK_ERROR("tessera: capture_violation in DeviceBuffer::copy_to" + middle + "a blocking copy" + end,
                    buffer.copy_to(host));
        CHECK_ERROR("tessera: capture_violation in DeviceBuffer::to_vector" + middle + "a blocking copy" + end,
                    buffer.to_vector());
        CHECK_ERROR("tessera: capture_violation in DeviceBuffer" + middle + "cudaMalloc" + end,
                    DeviceBuffer<int>(captured, 4, Allocation::plain));
        buffer.fill(captured, 7);
    });
    CHECK(graph.node_count() == 1);
}

TEST_CASE_FIXTURE(CleanRuntime,
                  "a buffer destroyed in a capture is freed after it, or inside of it if it was created there")
{
    const Stream stream;
    auto* outside = new DeviceBuffer<int>(stream, 4);
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        delete outside;
        CHECK(fake::count("cudaFreeAsync") == 0);
        {
            const DeviceBuffer<int> inside(captured, 4);
        }
        CHECK(fake::count("cudaFreeAsync") == 1);
    });
    CHECK(fake::count("cudaFreeAsync") == 2);
    CHECK(graph.node_count() == 2);  // the allocation and the free of `inside`
    CHECK(fake::live().device_allocations == 0);
}

TEST_CASE_FIXTURE(CleanRuntime, "used_on orders the free after another stream's work, without blocking")
{
    const Stream home;
    const Stream other;
    {
        DeviceBuffer<int> buffer(home, 4);
        other.wait(home);
        buffer.fill(other, 0);
        buffer.used_on(other);
        buffer.used_on(home);  // nothing to order
    }
    CHECK(fake::count("cudaStreamWaitEvent") == 2);
    CHECK(fake::count("cudaStreamSynchronize") == 0);
}

TEST_CASE_FIXTURE(CleanRuntime, "the fake runtime detects a buffer freed while another stream uses it")
{
    {
        const Stream home;
        const Stream other;
        DeviceBuffer<int> buffer(home, 4);
        other.wait(home);
        buffer.fill(other, 0);
    }
    CHECK(fake::misuses() == std::vector<std::string>{"cudaFreeAsync of memory that a stream may still use"});
    fake::reset();
}

TEST_CASE_FIXTURE(CleanRuntime, "an error in a free goes to dropped_errors only")
{
    const Stream stream;
    const std::string unknown = " returned cudaErrorUnknown (999): unknown error";
    for (const std::string call : {"cudaFreeAsync", "cudaGetDevice"}) {
        DeviceBuffer<int> buffer(stream, 4);
        fake::fail_call(call, 1, cudaErrorUnknown);
        buffer = DeviceBuffer<int>();
        CHECK(dropped_errors() == std::vector<std::string>{call + unknown});
        CHECK(cudaPeekAtLastError() == cudaSuccess);
    }
    const Stream there{Device(fake::t4)};
    for (const std::string call : {"cudaFree", "cudaStreamSynchronize", "cudaSetDevice"}) {
        DeviceBuffer<int> buffer(there, 4);
        fake::fail_call(call, 1, cudaErrorUnknown);
        buffer = DeviceBuffer<int>();
        CHECK(dropped_errors() == std::vector<std::string>{call + unknown});
    }
}

TEST_CASE_FIXTURE(CleanRuntime, "errors in a buffer's functions name the function that was called")
{
    const Stream stream;
    const Stream other;
    DeviceBuffer<int> buffer(stream, 4);
    PinnedBuffer<int> pinned(4);
    const std::vector<int> host(4);
    const std::string unknown = " returned cudaErrorUnknown (999): unknown error";
    fake::fail_call("cudaStreamSynchronize", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in DeviceBuffer::copy_from\n  cudaStreamSynchronize" + unknown,
                buffer.copy_from(host));
    fake::fail_call("cudaStreamSynchronize", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in DeviceBuffer::to_vector\n  cudaStreamSynchronize" + unknown,
                buffer.to_vector());
    fake::fail_call("cudaMallocAsync", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in DeviceBuffer::from_host\n  cudaMallocAsync" + unknown +
                    "\n  while allocating 16 bytes on device 0",
                DeviceBuffer<int>::from_host(stream, host));
    fake::fail_call("cudaEventRecord", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in DeviceBuffer::used_on\n  cudaEventRecord" + unknown, buffer.used_on(other));
}
