/// DeviceBuffer and DeviceSpan: copies, fills and ranges.

#include <fmt/format.h>

#include "clean_runtime.hpp"
#include "memory_texts.hpp"

using namespace tessera;
using tessera::test::ascending;
using tessera::test::CleanRuntime;
using tessera::test::mismatch;

TEST_CASE_FIXTURE(CleanRuntime, "blocking copies move elements to and from any offset")
{
    const Stream stream;
    DeviceBuffer<int> buffer = DeviceBuffer<int>::from_host(stream, ascending(6));
    const std::vector<int> replacement{70, 80};
    buffer.copy_from(replacement, 3);
    CHECK(buffer.to_vector() == std::vector<int>{1, 2, 3, 70, 80, 6});
    std::vector<int> part(2);
    buffer.copy_to(part, 2);
    CHECK(part == std::vector<int>{3, 70});
}

TEST_CASE_FIXTURE(CleanRuntime, "asynchronous copies accept pinned and device memory, also of another device")
{
    const Stream stream;
    const Stream there{Device(fake::t4)};
    PinnedBuffer<int> pinned(4);
    const std::vector<int> elements = ascending(4);
    std::copy(elements.begin(), elements.end(), pinned.begin());
    DeviceBuffer<int> first(stream, 4);
    first.copy_from_async(stream, pinned);
    DeviceBuffer<int> second(stream, 6);
    second.copy_from_async(stream, first.span(), 1);
    stream.synchronize();
    CHECK(second.subspan(1, 4).size() == 4);
    DeviceBuffer<int> remote(there, 4);
    remote.copy_from_async(there, first.span());
    PinnedBuffer<int> result(4);
    remote.copy_to_async(there, result);
    result.synchronize();
    CHECK(std::vector<int>(result.begin(), result.end()) == elements);
    first.used_on(there);
}

TEST_CASE_FIXTURE(CleanRuntime, "a copy outside of a buffer's bounds is refused and enqueues nothing")
{
    const Stream stream;
    DeviceBuffer<int> buffer(stream, 10);
    PinnedBuffer<int> pinned(4);
    std::vector<int> host(4);
    fake::clear_calls();
    const auto leaves = [](const std::string& operation, const std::string& text,
                           const std::string& cure = "at most 3 elements from element 7 on") {
        return "tessera: out_of_range in DeviceBuffer::" + operation + "\n  " + text +
               " do not fit into the buffer, which has 10 elements\n  try: " + cure;
    };
    CHECK_ERROR(leaves("copy_from_async", "4 elements from element 7 on"), buffer.copy_from_async(stream, pinned, 7));
    CHECK_ERROR(leaves("copy_from_async", "4 elements from element 18446744073709551615 on",
                       "was it -1, converted to an unsigned type?"),
                buffer.copy_from_async(stream, pinned, SIZE_MAX));
    CHECK_ERROR(leaves("copy_to_async", "4 elements from element 7 on"), buffer.copy_to_async(stream, pinned, 7));
    CHECK_ERROR(leaves("copy_from_async", "10 elements from element 1 on", "at most 9 elements from element 1 on"),
                buffer.copy_from_async(stream, buffer.span(), 1));
    CHECK_ERROR(leaves("copy_from", "4 elements from element 11 on", "an offset of at most 10"),
                buffer.copy_from(host, 11));
    CHECK_ERROR(leaves("copy_to", "4 elements from element 7 on"), buffer.copy_to(host, 7));
    CHECK(fake::count("cudaMemcpyAsync") == 0);
}

TEST_CASE_FIXTURE(CleanRuntime, "a stream of another device is refused and nothing is enqueued")
{
    const Stream stream;
    const Stream there{Device(fake::t4)};
    DeviceBuffer<int> buffer(stream, 4);
    PinnedBuffer<int> pinned(4);
    fake::clear_calls();
    CHECK_ERROR(mismatch("DeviceBuffer::copy_from_async", "the buffer"), buffer.copy_from_async(there, pinned));
    CHECK_ERROR(mismatch("DeviceBuffer::copy_from_async", "the buffer"), buffer.copy_from_async(there, buffer.span()));
    CHECK_ERROR(mismatch("DeviceBuffer::copy_to_async", "the buffer"), buffer.copy_to_async(there, pinned));
    CHECK_ERROR(mismatch("DeviceBuffer::fill", "the buffer"), buffer.fill(there, 1));
    CHECK(fake::calls().empty());
}

TEST_CASE_FIXTURE(CleanRuntime, "fill sets every element, with the widest word that address and value allow")
{
    struct Triple {
        std::uint8_t bytes[3];
        bool operator==(const Triple&) const = default;
    };
    const Stream stream;
    DeviceBuffer<std::int32_t> equal_bytes(stream, 5);
    equal_bytes.fill(stream, 0x05050505);
    CHECK(equal_bytes.to_vector() == std::vector<std::int32_t>(5, 0x05050505));  // a memset: the fake runs it
    CHECK(fake::launches().empty());
    DeviceBuffer<float> words(stream, 1'000'000);
    words.fill(stream, 2.5F);
    DeviceBuffer<f16> halves(stream, 3);
    halves.fill(stream, f16(2.5F));
    DeviceBuffer<Triple> bytes(stream, 3);
    bytes.fill(stream, {{1, 2, 3}});
    const auto launches = fake::launches();
    REQUIRE(launches.size() == 3);
    CHECK(launches[0].function != launches[1].function);
    CHECK(launches[1].function != launches[2].function);
    CHECK(launches[0].grid.x == (1'000'000 + 255) / 256);
    CHECK(launches[0].block.x == 256);
    fake::fail_call("cudaLaunchKernelExC", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in DeviceBuffer::fill\n  fill kernel returned cudaErrorUnknown (999): unknown "
        "error",
        words.fill(stream, 2.5F));
}

TEST_CASE_FIXTURE(CleanRuntime, "copies that CUDA refuses name the call")
{
    const Stream stream;
    DeviceBuffer<int> buffer(stream, 4);
    PinnedBuffer<int> pinned(4);
    fake::fail_call("cudaMemcpyAsync", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in DeviceBuffer::copy_from_async\n  cudaMemcpyAsync returned cudaErrorUnknown "
        "(999): unknown error",
        buffer.copy_from_async(stream, pinned));
}

TEST_CASE_FIXTURE(CleanRuntime, "a subspan must be inside of its span")
{
    const Stream stream;
    DeviceBuffer<float> buffer(stream, 10);
    const DeviceSpan<float> part = buffer.subspan(2, 8);
    CHECK(part.data() == buffer.data() + 2);
    CHECK(part.device() == fake::h200);
    CHECK(part.subspan(8, 0).empty());
    CHECK(part.subspan(3).data() == part.data() + 3);
    CHECK(part.subspan(3).size() == 5);
    CHECK(part.subspan(8).empty());
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::subspan\n  0 elements from element 9 on do not fit into memory of 8 "
        "elements",
        part.subspan(9));
    const DeviceSpan<const float> readable = part;
    CHECK(readable.size_bytes() == 32);
    CHECK_ERROR(
        "tessera: out_of_range in DeviceBuffer::subspan\n  2 elements from element 9 on do not fit into memory of 10 "
        "elements",
        buffer.subspan(9, 2));
    CHECK_ERROR(
        "tessera: out_of_range in DeviceBuffer::subspan\n  0 elements from element 11 on do not fit into memory of 10 "
        "elements",
        std::as_const(buffer).subspan(11, 0));
    CHECK_ERROR(
        "tessera: out_of_range in DeviceBuffer::subspan\n  0 elements from element 11 on do not fit into memory of 10 "
        "elements",
        buffer.subspan(11));
    CHECK(buffer.subspan(2).data() == buffer.data() + 2);
    CHECK(buffer.subspan(2).size() == 8);
    CHECK(std::as_const(buffer).subspan(10).empty());
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::subspan\n  18446744073709551615 elements from element 1 on do not fit "
        "into memory of 8 elements\n  try: was it -1, converted to an unsigned type?",
        part.subspan(1, SIZE_MAX));
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::subspan\n  1 elements from element 18446744073709551614 on do not fit "
        "into memory of 8 elements\n  try: was it -2, converted to an unsigned type?",
        part.subspan(SIZE_MAX - 1, 1));
}

TEST_CASE_FIXTURE(CleanRuntime, "a raw pointer becomes a span only if CUDA says that kernels can access it")
{
    const Stream stream{Device(fake::t4)};
    DeviceBuffer<float> buffer(stream, 10);
    PinnedBuffer<float> pinned(10);
    CHECK(DeviceSpan<float>::from_raw_device_pointer(buffer.data() + 1, 9).device() == fake::t4);
    CHECK(DeviceSpan<float>::from_raw_device_pointer(pinned.data(), 10).device() == fake::h200);
    CHECK(DeviceSpan<float>::from_raw_device_pointer(nullptr, 0).device() == -1);
    float host = 0;
    CHECK_ERROR(
        fmt::format("tessera: wrong_memory in DeviceSpan::from_raw_device_pointer\n  {} is ordinary host memory, "
                    "not device memory\n  try: copy the data to a DeviceBuffer first: "
                    "DeviceBuffer<T>::from_host(stream, data)",
                    fmt::ptr(&host)),
        DeviceSpan<float>::from_raw_device_pointer(&host, 1));
    auto* const inside = reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(buffer.data()) + 2);
    CHECK_ERROR(
        fmt::format("tessera: misaligned in DeviceSpan::from_raw_device_pointer\n  {} is not 4-byte aligned, as its "
                    "elements must be\n  try: the address of an element, or a copy of the data at an aligned address",
                    fmt::ptr(inside)),
        DeviceSpan<float>::from_raw_device_pointer(inside, 1));
}
