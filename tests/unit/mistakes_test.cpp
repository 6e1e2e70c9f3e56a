/// The most likely mistakes in a first week with the SDK, and their error texts. Each text names the values and what to
/// do instead. This file: memory, views, streams and kernel launches. Mistakes that do not compile are in
/// tests/compile_fail; mistakes that need a device to run kernels are in tests/device/context_lost_test.cpp and
/// tests/emulator.

#include "mistakes.hpp"

#include "tessera/device/disjoint_span.cuh"

using namespace tessera;
using test::Mistakes;
using test::without_addresses;

namespace {

// Kernels are never run here, so any function will do once it is registered.
void scale(DisjointSpan<float> /*out*/, DeviceSpan<const float> /*in*/, float /*factor*/) {}

struct KernelMistakes : Mistakes {
    KernelMistakes()
    {
        fake::register_kernel(reinterpret_cast<const void*>(&scale), "_Z5scalePf", fake::default_attributes());
    }
};

}  // namespace

TEST_CASE_FIXTURE(Mistakes, "views that leave their memory")
{
    // A view that is too large.
    CHECK_MISTAKE(
        "tessera: out_of_range in DeviceBuffer::matrix\n"
        "  a 200x200 row-major matrix with leading dimension 200 needs 40000 elements and the memory has 10000\n"
        "  try: a longer buffer, or a smaller matrix",
        a.matrix(200, 200));
    // A leading dimension below a row's length.
    CHECK_MISTAKE(
        "tessera: invalid_argument in DeviceBuffer::matrix\n"
        "  leading dimension 64 is too small for a 4x100 row-major matrix\n"
        "  try: a leading dimension of at least 100 (the columns), in elements",
        a.matrix(4, 100, 64));
    // A leading dimension of 0.
    CHECK_MISTAKE(
        "tessera: invalid_argument in DeviceBuffer::matrix\n"
        "  leading dimension 0 is too small for a 4x100 row-major matrix\n"
        "  try: a leading dimension of at least 100 (the columns), in elements",
        a.matrix(4, 100, 0));
    // A negative extent.
    CHECK_MISTAKE(
        "tessera: invalid_argument in DeviceBuffer::matrix\n"
        "  a matrix cannot have -4 rows and 100 columns\n"
        "  try: extents of 0 or more",
        a.matrix(-4, 100));
    // A block outside of its matrix.
    CHECK_MISTAKE(
        "tessera: out_of_range in MatrixView::block\n"
        "  a block of 4x4 at (8, 0) does not fit into the 10x10 matrix\n"
        "  try: at most 2x10 there",
        a.matrix(10, 10).block(8, 0, 4, 4));
    // A batch that is too large.
    CHECK_MISTAKE(
        "tessera: out_of_range in DeviceSpan::matrices\n"
        "  1000 of a 4x4 row-major matrix with leading dimension 4 at a batch stride of 16 need 16000 elements and the "
        "memory has 10000\n"
        "  try: a longer buffer, or fewer matrices",
        a.span().matrices(1000, 16, 4, 4, 4));
    // A written batch whose matrices overlap.
    CHECK_MISTAKE(
        "tessera: aliasing in Gemm::launch\n"
        "  D's 10 matrices of 4x4 overlap with a batch stride of 8 elements: each product needs its own memory\n"
        "  try: a batch stride of at least 16 for D; only inputs may overlap",
        Gemm::launch(stream, a.span().matrices(10, 16, 4, 4, 4), b.matrix(4, 4), d.span().matrices(10, 8, 4, 4, 4)));
}

TEST_CASE_FIXTURE(Mistakes, "memory of the wrong kind")
{
    // D is A.
    CHECK_MISTAKE(
        "tessera: aliasing in Gemm::launch\n"
        "  D at 0x... overlaps A, which the kernel reads while it writes D\n"
        "  try: give D memory of its own",
        Gemm::launch(stream, a.matrix(64, 64), b.matrix(64, 64), a.matrix(64, 64)));
    SUBCASE("a host pointer")
    {
        std::vector<float> host(16);
        CHECK_MISTAKE(
            "tessera: wrong_memory in MatrixView::from_raw_device_pointer\n"
            "  0x... is ordinary host memory, not device memory\n"
            "  try: copy the data to a DeviceBuffer first: DeviceBuffer<T>::from_host(stream, data)",
            MatrixView<float>::from_raw_device_pointer(host.data(), 4, 4, 4));
    }
    // A null pointer.
    CHECK_MISTAKE(
        "tessera: wrong_memory in MatrixView::from_raw_device_pointer\n"
        "  0x... is null, not device memory\n"
        "  try: copy the data to a DeviceBuffer first: DeviceBuffer<T>::from_host(stream, data)",
        MatrixView<float>::from_raw_device_pointer(static_cast<float*>(nullptr), 4, 4, 4));
    SUBCASE("an address inside of an element")
    {
        auto* const odd = reinterpret_cast<float*>(reinterpret_cast<char*>(a.data()) + 2);
        CHECK_MISTAKE(
            "tessera: misaligned in MatrixView::from_raw_device_pointer\n"
            "  0x... is not 4-byte aligned, as its elements must be\n"
            "  try: the address of an element, or a copy of the data at an aligned address",
            MatrixView<float>::from_raw_device_pointer(odd, 4, 4, 4));
    }
    SUBCASE("memory of cudaMalloc adopted as a pool's")
    {
        void* plain = nullptr;
        REQUIRE(cudaMalloc(&plain, 64) == cudaSuccess);
        CHECK_MISTAKE(
            "tessera: wrong_memory in DeviceBuffer::adopt\n"
            "  0x... is not from a memory pool, but Allocation::pool was passed\n"
            "  try: Allocation::plain for memory from cudaMalloc",
            DeviceBuffer<float>::adopt(stream, {static_cast<float*>(plain), 16, Allocation::pool}));
        CHECK(cudaFree(plain) == cudaSuccess);
    }
    SUBCASE("pinned memory adopted as a device's")
    {
        PinnedBuffer<float> host(16);
        CHECK_MISTAKE(
            "tessera: wrong_memory in DeviceBuffer::adopt\n"
            "  0x... is page-locked host memory, not device memory\n"
            "  try: PinnedBuffer<T>::adopt",
            DeviceBuffer<float>::adopt(stream, {host.data(), 16, Allocation::plain}));
    }
}

TEST_CASE_FIXTURE(Mistakes, "owners that were moved from")
{
    SUBCASE("a buffer: matrix")
    {
        const DeviceBuffer<float> kept = std::move(a);
        CHECK_MISTAKE(
            "tessera: empty_handle in DeviceBuffer::matrix\n"
            "  the buffer was moved from, released or never given memory\n"
            "  try: use the object that it was moved to",
            a.matrix(8, 8));
    }
    SUBCASE("a buffer: fill")
    {
        const DeviceBuffer<float> kept = std::move(a);
        CHECK_MISTAKE(
            "tessera: empty_handle in DeviceBuffer::fill\n"
            "  the buffer was moved from, released or never given memory\n"
            "  try: use the object that it was moved to",
            a.fill(stream, 1.0F));
    }
    SUBCASE("a buffer: to_vector")
    {
        const DeviceBuffer<float> kept = std::move(a);
        CHECK_MISTAKE(
            "tessera: empty_handle in DeviceBuffer::to_vector\n"
            "  the buffer was moved from, released or never given memory\n"
            "  try: use the object that it was moved to",
            a.to_vector());
    }
    SUBCASE("a buffer: subspan")
    {
        const DeviceBuffer<float> kept = std::move(a);
        CHECK_MISTAKE(
            "tessera: empty_handle in DeviceBuffer::subspan\n"
            "  the buffer was moved from, released or never given memory\n"
            "  try: use the object that it was moved to",
            a.subspan(0, 1));
    }
    SUBCASE("a stream")
    {
        Stream gone;
        const Stream kept = std::move(gone);
        CHECK_MISTAKE(
            "tessera: empty_handle in Stream\n"
            "  the stream was moved from or released\n"
            "  try: use the object that it was moved to",
            DeviceBuffer<float>(gone, 8));
    }
    SUBCASE("an event")
    {
        Event gone;
        const Event kept = std::move(gone);
        CHECK_MISTAKE(
            "tessera: empty_handle in Event::record\n"
            "  the event was moved from\n"
            "  try: use the object that it was moved to",
            gone.record(stream));
    }
    SUBCASE("a pinned buffer")
    {
        PinnedBuffer<float> gone(4);
        const PinnedBuffer<float> kept = std::move(gone);
        CHECK_MISTAKE(
            "tessera: empty_handle in PinnedBuffer::operator[]\n"
            "  the pinned buffer was moved from, released or never given memory\n"
            "  try: use the object that it was moved to",
            gone[0]);
    }
}

TEST_CASE_FIXTURE(Mistakes, "sizes")
{
    // A negative size.
    CHECK_MISTAKE(
        "tessera: invalid_argument in DeviceBuffer\n"
        "  a buffer cannot have -1 elements\n"
        "  try: 0 or more. A product of two ints may have overflowed: multiply as std::int64_t",
        DeviceBuffer<float>(stream, -1));
    SUBCASE("an int that has overflowed")
    {
        int n = 50'000;
        n = static_cast<int>(static_cast<unsigned>(n) * static_cast<unsigned>(n));
        CHECK_MISTAKE(
            "tessera: invalid_argument in DeviceBuffer\n"
            "  a buffer cannot have -1794967296 elements\n"
            "  try: 0 or more. A product of two ints may have overflowed: multiply as std::int64_t",
            DeviceBuffer<float>(stream, n));
    }
    // More than 2^63 bytes.
    CHECK_MISTAKE(
        "tessera: size_overflow in DeviceBuffer\n"
        "  the size of 2305843009213693952 elements of 8 bytes does not fit into 63 bits\n"
        "  try: compute the count in std::size_t or std::int64_t from the start",
        DeviceBuffer<double>(stream, std::size_t{1} << 61U));
    // More memory than the device has.
    CHECK_MISTAKE(
        "tessera: out_of_memory in DeviceBuffer\n"
        "  cudaMallocAsync returned cudaErrorMemoryAllocation (2): out of memory\n"
        "  while allocating 4398046511104 bytes on device 0\n"
        "  try: the device has 1073581824 of 1073741824 bytes free: free memory or use a smaller problem",
        DeviceBuffer<std::byte>(stream, std::size_t{4} << 40U));
    SUBCASE("a copy to a buffer that is too short")
    {
        const std::vector<float> host(20'000);
        CHECK_MISTAKE(
            "tessera: out_of_range in DeviceBuffer::copy_from\n"
            "  20000 elements from element 0 on do not fit into the buffer, which has 10000 elements\n"
            "  try: at most 10000 elements from element 0 on",
            a.copy_from(host));
    }
    SUBCASE("a copy from a part that is not there")
    {
        std::vector<float> host(10);
        CHECK_MISTAKE(
            "tessera: out_of_range in DeviceBuffer::copy_to\n"
            "  10 elements from element 9995 on do not fit into the buffer, which has 10000 elements\n"
            "  try: at most 5 elements from element 9995 on",
            a.copy_to(host, 9'995));
    }
}

TEST_CASE_FIXTURE(KernelMistakes, "devices")
{
    // A device that does not exist.
    CHECK_MISTAKE(
        "tessera: out_of_range in Device\n"
        "  device 9 does not exist: there are 3 devices\n"
        "  try: an ordinal from 0 to 2",
        Device(9));
    // Memory of another device.
    CHECK_MISTAKE(
        "tessera: device_mismatch in Gemm::launch\n"
        "  the stream belongs to device 1, but A belongs to device 0\n"
        "  try: use a stream and memory of one device, or copy the data to device 1 first",
        Gemm::launch(stream_t4, a.matrix(4, 4), b.matrix(4, 4), d.matrix(4, 4)));
    // A kernel with memory of another device.
    CHECK_MISTAKE(
        "tessera: device_mismatch in launch\n"
        "  the stream belongs to device 1, but an argument belongs to device 0\n"
        "  try: use a stream and memory of one device, or copy the data to device 1 first",
        launch(scale, LaunchConfig(stream_t4, {1}, {32}), DisjointSpan(d), a.span(), 2.0F));
}

TEST_CASE_FIXTURE(KernelMistakes, "kernel launches")
{
    // A block that is too large.
    CHECK_MISTAKE(
        "tessera: launch_refused in launch\n"
        "  kernel scale(float*): block (2048, 1, 1) has 2048 threads\n"
        "  try: at most 1024 threads per CTA on H200, and at most 64 in z",
        launch(scale, LaunchConfig(stream, {1}, {2048}), DisjointSpan(d), a.span(), 2.0F));
    // Too much shared memory.
    CHECK_MISTAKE(
        "tessera: launch_refused in launch\n"
        "  kernel scale(float*): 300000 bytes of dynamic and 0 bytes of static shared memory were requested\n"
        "  try: at most 232448 bytes together per CTA on H200",
        launch(scale, LaunchConfig(stream, {1}, {32}).shared_memory_bytes(300'000), DisjointSpan(d), a.span(), 2.0F));
    // An empty grid.
    CHECK_MISTAKE(
        "tessera: launch_refused in launch\n"
        "  kernel scale(float*): grid (0, 1, 1), block (32, 1, 1) and cluster (1, 1, 1) must not be empty\n"
        "  try: LaunchConfig::covering(stream, count) for a count that may be 0",
        launch(scale, LaunchConfig(stream, {0}, {32}), DisjointSpan(d), a.span(), 2.0F));
    // A grid that is too high.
    CHECK_MISTAKE(
        "tessera: launch_refused in launch\n"
        "  kernel scale(float*): grid (1, 70000, 1) is too large\n"
        "  try: at most (2147483647, 65535, 65535) CTAs",
        launch(scale, LaunchConfig(stream, {1, 70'000}, {32}), DisjointSpan(d), a.span(), 2.0F));
    // A grid that its clusters do not divide.
    CHECK_MISTAKE(
        "tessera: launch_refused in launch\n"
        "  kernel scale(float*): grid (3, 1, 1) is not a multiple of cluster (2, 1, 1)\n"
        "  try: a grid of (4, 1, 1), or a cluster whose extents divide the grid's",
        launch(scale, LaunchConfig(stream, {3}, {32}).cluster({2}), DisjointSpan(d), a.span(), 2.0F));
    SUBCASE("clusters on a device without")
    {
        DeviceBuffer<float> x(stream_t4, 4);
        DeviceBuffer<float> y(stream_t4, 4);
        CHECK_MISTAKE(
            "tessera: unsupported_device in launch\n"
            "  kernel scale(float*): a cluster of (2, 1, 1) was requested, and T4 (compute capability 7.5) has no "
            "clusters\n"
            "  try: a device of compute capability 9.0 or later",
            launch(scale, LaunchConfig(stream_t4, {2}, {32}).cluster({2}), DisjointSpan(y), x.span(), 2.0F));
    }
    // 0 threads.
    CHECK_MISTAKE(
        "tessera: launch_refused in LaunchConfig::covering\n"
        "  a CTA cannot have 0 threads\n"
        "  try: a multiple of 32, such as the default of 256",
        LaunchConfig::covering(stream, 100, 0));
}

TEST_CASE_FIXTURE(Mistakes, "tensor maps")
{
    SUBCASE("rows that are not aligned")
    {
        DeviceBuffer<bf16> x(stream, 10'000);
        CHECK_MISTAKE(
            "tessera: tensor_map_refused in TensorMap::encode\n"
            "  the stride of dimension 1 is 120 bytes, not a multiple of 16: pad the leading dimension to a multiple "
            "of 8 elements\n"
            "  the request: elements of bf16, rank 2, address 0x...; dimension 0: extent 60, box 8; dimension 1: "
            "extent 64, box 8, stride 120 bytes; swizzle 0 bytes",
            (TensorMap<bf16, Box<8, 8>>::of(x.matrix(64, 60))));
    }
    SUBCASE("a device without tensor maps")
    {
        DeviceBuffer<bf16> x(stream_t4, 10'000);
        CHECK_MISTAKE(
            "tessera: unsupported_device in TensorMap::encode\n"
            "  T4 has compute capability 7.5; tensor maps need 9.0 or later\n"
            "  try: a device of compute capability 9.0 or later; ordinary loads and stores on this one",
            (TensorMap<bf16, Box<8, 8>>::of(x.matrix(64, 64))));
    }
}

TEST_CASE_FIXTURE(Mistakes, "events")
{
    SUBCASE("times of events that have none")
    {
        const Event first;
        const Event second;
        first.record(stream);
        second.record(stream);
        stream.synchronize();
        CHECK_MISTAKE(
            "tessera: invalid_argument in Event::seconds_since\n"
            "  an event of EventKind::ordering has no timestamp\n"
            "  try: create both events with EventKind::timing",
            second.seconds_since(first));
    }
    SUBCASE("times of events that were not recorded")
    {
        const Event first(EventKind::timing);
        const Event second(EventKind::timing);
        CHECK_MISTAKE(
            "tessera: invalid_argument in Event::seconds_since\n"
            "  one of the events was never recorded\n"
            "  try: record both events and call synchronize() on the later one first",
            second.seconds_since(first));
    }
    SUBCASE("an event of another device")
    {
        const Event there{Device(fake::t4)};
        CHECK_MISTAKE(
            "tessera: device_mismatch in Event::record\n"
            "  the event belongs to device 1, but the stream belongs to device 0\n"
            "  try: use a stream and memory of one device, or copy the data to device 1 first",
            there.record(stream));
    }
}

TEST_CASE_FIXTURE(Mistakes, "what a capture cannot take")
{
    const std::vector<float> host(10);
    static_cast<void>(Graph::capture(stream, [&](StreamRef captured) {
        // A blocking copy.
        CHECK_MISTAKE(
            "tessera: capture_violation in DeviceBuffer::to_vector\n"
            "  the stream is being captured into a graph, and a blocking copy cannot be captured\n"
            "  try: do it before the capture begins",
            a.to_vector());
        // A blocking copy to the device.
        CHECK_MISTAKE(
            "tessera: capture_violation in DeviceBuffer::copy_from\n"
            "  the stream is being captured into a graph, and a blocking copy cannot be captured\n"
            "  try: do it before the capture begins",
            a.copy_from(host));
        // cudaMalloc.
        CHECK_MISTAKE(
            "tessera: capture_violation in DeviceBuffer\n"
            "  the stream is being captured into a graph, and cudaMalloc cannot be captured\n"
            "  try: do it before the capture begins",
            DeviceBuffer<float>(captured, 4, Allocation::plain));
        // Another home stream.
        CHECK_MISTAKE(
            "tessera: capture_violation in DeviceBuffer::set_home\n"
            "  the stream is being captured into a graph, and changing a buffer's home stream cannot be captured\n"
            "  try: do it before the capture begins",
            a.set_home(captured));
        // A second capture of the stream.
        CHECK_MISTAKE(
            "tessera: capture_violation in Graph::capture\n"
            "  the stream is already being captured\n"
            "  try: enqueue into the running capture, or capture another stream",
            Graph::capture(captured, [](StreamRef) {}));
        DeviceBuffer<float>(captured, 4).fill(captured, 1.0F);  // the capture goes on
    }));
}

TEST_CASE_FIXTURE(Mistakes, "waiting inside of a capture ends it, and two errors say so")
{
    const auto capture = [&] {
        static_cast<void>(Graph::capture(stream, [&](StreamRef captured) {
            CHECK_MISTAKE(
                "tessera: capture_violation in StreamRef::synchronize\n"
                "  cudaStreamSynchronize returned cudaErrorStreamCaptureUnsupported (900): operation not permitted "
                "when stream is capturing\n"
                "  try: the stream is being captured: move this call out of the captured work, and fork and join every "
                "other stream with events",
                captured.synchronize());
        }));
    };
    CHECK(std::string(test::error_of(capture)->message()) ==
          "cudaStreamEndCapture returned cudaErrorStreamCaptureInvalidated (901): operation failed due to a previous "
          "error during capture");
}

TEST_CASE_FIXTURE(Mistakes, "without a device, the error names the called function")
{
    fake::set_device_count(0, cudaErrorNoDevice);
    const auto error = test::error_of([] { const Stream nowhere; });
    REQUIRE(error.has_value());
    CHECK(without_addresses(error->what()).starts_with("tessera: no_device in Stream, called at "));
    CHECK(error->cure() == "check with nvidia-smi that a GPU and a driver for CUDA 13 or later are installed");
    fake::set_device_count(3);
}

TEST_CASE_FIXTURE(Mistakes, "reading pinned memory waits for the copy, and an index beyond the end is an Error")
{
    PinnedBuffer<float> host(64);
    const auto twos = DeviceBuffer<float>::from_host(stream, std::vector<float>(64, 2.0F));
    twos.copy_to_async(stream, host);
    CHECK(host[0] == 2.0F);
    CHECK_MISTAKE(
        "tessera: out_of_range in PinnedBuffer::operator[]\n"
        "  index 64 is out of range for 64 elements\n"
        "  try: an index from 0 to 63",
        host[64]);
    CHECK_MISTAKE(
        "tessera: out_of_range in HostSpan::operator[]\n"
        "  index 64 is out of range for 64 elements\n"
        "  try: an index from 0 to 63",
        host.span()[64]);
}
