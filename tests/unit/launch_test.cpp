/// launch and LaunchConfig: what reaches CUDA, and each limit.

#include <cstring>

#include "clean_runtime.hpp"
#include "tessera/device/disjoint_span.cuh"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

// Kernels are never run here, so any function will do once it is registered.
void scale(DisjointSpan<float> /*out*/, DeviceSpan<const float> /*in*/, float /*factor*/) {}
void nothing() {}

const std::string scale_name = "kernel scale(float*)";

struct KernelRuntime : CleanRuntime {
    KernelRuntime()
    {
        fake::register_kernel(reinterpret_cast<const void*>(&scale), "_Z5scalePf", fake::default_attributes());
        fake::register_kernel(reinterpret_cast<const void*>(&nothing), "nothing", fake::default_attributes());
    }

    Stream stream;
    DeviceBuffer<float> in{stream, 1000};
    DeviceBuffer<float> out{stream, 1000};

    void launch_with(const LaunchConfig& config) { launch(scale, config, DisjointSpan(out), in.span(), 2.0F); }
};

std::string refused(const std::string& text)
{
    return "tessera: launch_refused in launch\n  " + scale_name + ": " + text;
}

}  // namespace

TEST_CASE_FIXTURE(KernelRuntime, "a launch is one call with the requested grid, block, stream and arguments")
{
    fake::keep_argument_bytes(sizeof(DisjointSpan<float>));
    fake::clear_calls();
    launch(scale, LaunchConfig::covering(stream, out.size()), DisjointSpan(out), in.span(), 2.0F);
    REQUIRE(fake::launches().size() == 1);
    const fake::Launch made = fake::launches()[0];
    CHECK(made.function == reinterpret_cast<const void*>(&scale));
    CHECK(made.grid.x == 4);
    CHECK(made.block.x == 256);
    CHECK(made.shared_bytes == 0);
    CHECK_FALSE(made.has_cluster);
    CHECK(made.stream == stream.get());
    float* first_argument = nullptr;
    std::memcpy(&first_argument, made.argument.data(), sizeof first_argument);
    CHECK(first_argument == out.data());
    CHECK(fake::count("cudaStreamSynchronize") + fake::count("cudaDeviceSynchronize") == 0);
}

TEST_CASE_FIXTURE(KernelRuntime, "clusters and shared memory reach CUDA, and the limit is raised if necessary")
{
    LaunchConfig config(stream, {4, 2}, {32});
    config.cluster({2, 2}).shared_memory_bytes(48 * 1024);
    launch_with(config);
    CHECK(fake::count("cudaFuncSetAttribute") == 0);
    config.shared_memory_bytes(100'000);
    launch_with(config);
    CHECK(fake::count("cudaFuncSetAttribute") == 1);
    const fake::Launch made = fake::launches().at(1);
    CHECK(made.has_cluster);
    CHECK(made.cluster.x == 2);
    CHECK(made.cluster.y == 2);
    CHECK(made.cluster.z == 1);
    CHECK(made.shared_bytes == 100'000);
    CHECK(config.cluster() == Dim3{2, 2});
    config.shared_memory_bytes(60'000);  // another thread may still launch with more, so the limit stays
    launch_with(config);
    CHECK(fake::count("cudaFuncSetAttribute") == 1);
}

TEST_CASE_FIXTURE(KernelRuntime, "a launch may be cooperative, and may start before the previous kernel ends")
{
    launch_with(LaunchConfig(stream, {100}, {32}));
    launch_with(LaunchConfig(stream, {100}, {32}).cooperative());
    launch_with(LaunchConfig(stream, {100}, {32}).programmatic_dependent_launch());
    launch_with(LaunchConfig(stream, {100}, {32}).cooperative().programmatic_dependent_launch().cluster({2}));
    const std::vector<fake::Launch> made = fake::launches();
    CHECK(!made.at(0).cooperative);
    CHECK(!made.at(0).programmatic);
    CHECK(made.at(1).cooperative);
    CHECK(!made.at(1).programmatic);
    CHECK(!made.at(2).cooperative);
    CHECK(made.at(2).programmatic);
    CHECK(made.at(3).cooperative);
    CHECK(made.at(3).programmatic);
    CHECK(made.at(3).cluster.x == 2);
    CHECK_ERROR(
        refused("a cooperative launch must run all 101 CTAs of grid (101, 1, 1) at once\n  try: no more CTAs than fit "
                "on the " +
                std::to_string(Device::current().properties().sm_count) + " SMs of " +
                Device::current().properties().name + " at once (see cudaOccupancyMaxActiveBlocksPerMultiprocessor)"),
        launch_with(LaunchConfig(stream, {101}, {32}).cooperative()));
    const Stream t4{Device(fake::t4)};
    CHECK_ERROR(
        "tessera: unsupported_device in launch\n  kernel nothing: a programmatic dependent launch was requested, and "
        "T4 (compute capability 7.5) does not support it\n  try: a device of compute capability 9.0 or later",
        launch(nothing, LaunchConfig(t4, {1}, {32}).programmatic_dependent_launch()));
}

TEST_CASE_FIXTURE(KernelRuntime, "static shared memory counts towards the limit that needs no opt-in")
{
    cudaFuncAttributes attributes = fake::default_attributes();
    attributes.sharedSizeBytes = 1024;
    fake::register_kernel(reinterpret_cast<const void*>(&nothing), "nothing", attributes);
    LaunchConfig config(stream, {1}, {1});
    launch(nothing, config.shared_memory_bytes(47 * 1024));
    CHECK(fake::count("cudaFuncSetAttribute") == 0);
    launch(nothing, config.shared_memory_bytes(48 * 1024 - 512));
    CHECK(fake::count("cudaFuncSetAttribute") == 1);
    CHECK(fake::launches().size() == 2);
}

TEST_CASE_FIXTURE(KernelRuntime, "nothing is launched for no elements, and a kernel may have no parameters")
{
    launch_with(LaunchConfig::covering(stream, 0));
    CHECK(fake::launches().empty());
    launch(nothing, LaunchConfig(stream, {1}, {1}));
    CHECK(fake::launches().size() == 1);
}

TEST_CASE_FIXTURE(KernelRuntime, "a launch runs with the stream's device current, and can be captured")
{
    const Stream there{Device(fake::t4)};
    launch(nothing, LaunchConfig(there, {1}, {1}));
    CHECK(fake::launches().at(0).device == fake::t4);
    CHECK(Device::current().ordinal() == fake::h200);
    const Graph graph = Graph::capture(stream, [&](StreamRef s) { launch(nothing, LaunchConfig(s, {1}, {1})); });
    CHECK(graph.node_count() == 1);
}

TEST_CASE_FIXTURE(KernelRuntime, "covering a matrix continues in z if a grid would have too many rows of CTAs")
{
    struct Extents {
        std::int64_t height;
        std::int64_t width;
        std::int64_t rows() const { return height; }
        std::int64_t columns() const { return width; }
    };
    const LaunchConfig config = LaunchConfig::covering(stream, out.matrix(17, 33));
    CHECK(config.grid() == Dim3{2, 3, 1});
    CHECK(config.block() == Dim3{32, 8, 1});
    CHECK(LaunchConfig::covering(stream, Extents{1, 1}, {1}).grid() == Dim3{1, 1, 1});
    CHECK(LaunchConfig::covering(stream, Extents{65535, 1}, {1}).grid() == Dim3{1, 65535, 1});
    CHECK(LaunchConfig::covering(stream, Extents{65536, 1}, {1}).grid() == Dim3{1, 32768, 2});
    CHECK(LaunchConfig::covering(stream, Extents{4294836225, 1}, {1}).grid() == Dim3{1, 65535, 65535});
    CHECK(LaunchConfig::covering(stream, Extents{0, 5}).empty());
    CHECK(LaunchConfig::covering(stream, Extents{5, 0}).empty());
    CHECK_ERROR(
        "tessera: launch_refused in LaunchConfig::covering\n  a 4294836226x1 matrix needs 4294836226 by 1 CTAs of 1 "
        "rows "
        "and 1 columns\n  try: at most 4294836225 by 2147483647 CTAs: a kernel with a grid-stride loop",
        LaunchConfig::covering(stream, Extents{4294836226, 1}, {1}));
    CHECK_ERROR(
        "tessera: launch_refused in LaunchConfig::covering\n  a CTA cannot have 0 threads\n  try: a multiple of 32 "
        "threads",
        LaunchConfig::covering(stream, Extents{1, 1}, {0}));
}

TEST_CASE_FIXTURE(KernelRuntime, "covering uses as many CTAs as needed, and refuses more than a grid can have")
{
    CHECK(LaunchConfig::covering(stream, 1).grid() == Dim3{1});
    CHECK(LaunchConfig::covering(stream, 256).grid() == Dim3{1});
    CHECK(LaunchConfig::covering(stream, 257).grid() == Dim3{2});
    CHECK(LaunchConfig::covering(stream, 0x7FFFFFFF, 1).grid() == Dim3{0x7FFFFFFF});
    CHECK_ERROR(
        "tessera: launch_refused in LaunchConfig::covering\n  2147483648 elements need 2147483648 CTAs of 1 "
        "threads\n  try: at most 2147483647 CTAs: more threads per CTA, or a kernel with a grid-stride loop",
        LaunchConfig::covering(stream, 0x80000000, 1));
    CHECK_ERROR(
        "tessera: launch_refused in LaunchConfig::covering\n  a CTA cannot have 0 threads\n  try: a multiple of 32, "
        "such as the default of 256",
        LaunchConfig::covering(stream, 5, 0));
}

TEST_CASE_FIXTURE(KernelRuntime, "each exceeded limit of a launch is named, with the line of the config")
{
    const std::string not_empty =
        "must not be empty\n  try: LaunchConfig::covering(stream, count) for a count that may "
        "be 0";
    CHECK_ERROR(refused("grid (0, 1, 1), block (1, 1, 1) and cluster (1, 1, 1) " + not_empty),
                launch_with(LaunchConfig(stream, {0}, {1})));
    CHECK_ERROR(refused("grid (1, 1, 1), block (1, 0, 1) and cluster (1, 1, 1) " + not_empty),
                launch_with(LaunchConfig(stream, {1}, {1, 0})));
    CHECK_ERROR(refused("grid (1, 1, 1), block (1, 1, 1) and cluster (1, 1, 0) " + not_empty),
                launch_with(LaunchConfig(stream, {1}, {1}).cluster({1, 1, 0})));
    const std::string grid_limit = " is too large\n  try: at most (2147483647, 65535, 65535) CTAs";
    CHECK_ERROR(refused("grid (2147483648, 1, 1)" + grid_limit), launch_with(LaunchConfig(stream, {0x80000000}, {1})));
    CHECK_ERROR(refused("grid (1, 65536, 1)" + grid_limit), launch_with(LaunchConfig(stream, {1, 65536}, {1})));
    CHECK_ERROR(refused("grid (1, 1, 65536)" + grid_limit), launch_with(LaunchConfig(stream, {1, 1, 65536}, {1})));
    const std::string block_limit = "\n  try: at most 1024 threads per CTA on H200, and at most 64 in z";
    CHECK_ERROR(refused("block (32, 33, 1) has 1056 threads" + block_limit),
                launch_with(LaunchConfig(stream, {1}, {32, 33})));
    CHECK_ERROR(refused("block (1, 1, 65) has 65 threads" + block_limit),
                launch_with(LaunchConfig(stream, {1}, {1, 1, 65})));
    CHECK_ERROR(
        refused("grid (3, 1, 1) is not a multiple of cluster (2, 1, 1)\n  try: a grid of (4, 1, 1), or a cluster whose "
                "extents divide the grid's"),
        launch_with(LaunchConfig(stream, {3}, {1}).cluster({2})));
    CHECK_ERROR(
        refused("a cluster of 16 CTAs was refused\n  try: at most 8 CTAs per cluster, or up to 16 after allowing "
                "non-portable cluster sizes for the kernel"),
        launch_with(LaunchConfig(stream, {16}, {1}).cluster({16})));
    CHECK_ERROR(
        refused("240000 bytes of dynamic and 0 bytes of static shared memory were requested\n  try: at most 232448 "
                "bytes together per CTA on H200"),
        launch_with(LaunchConfig(stream, {1}, {1}).shared_memory_bytes(240'000)));
    CHECK(fake::launches().empty());
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE_FIXTURE(KernelRuntime, "a kernel's own limits are reported after CUDA has refused")
{
    cudaFuncAttributes attributes = fake::default_attributes();
    attributes.maxThreadsPerBlock = 256;
    attributes.numRegs = 255;
    attributes.sharedSizeBytes = 200'000;
    fake::register_kernel(reinterpret_cast<const void*>(&scale), "_Z5scalePf", attributes);
    CHECK_ERROR(
        refused("512 threads per CTA were requested, but the kernel, with 255 registers per thread, runs with at "
                "most 256\n  try: a smaller block, or __launch_bounds__ on the kernel"),
        launch_with(LaunchConfig(stream, {1}, {512})));
    CHECK_ERROR(
        refused("50000 bytes of dynamic and 200000 bytes of static shared memory were requested\n  try: at most "
                "232448 bytes together per CTA on H200"),
        launch_with(LaunchConfig(stream, {1}, {1}).shared_memory_bytes(50'000)));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE_FIXTURE(KernelRuntime, "a failure that the SDK cannot explain keeps CUDA's text")
{
    const std::string while_launching =
        "\n  while launching " + scale_name +
        " with grid (1, 1, 1), block (1, 1, 1), cluster (1, 1, 1) and 0 bytes of dynamic "
        "shared memory";
    fake::fail_call("cudaLaunchKernelExC", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in launch\n  cudaLaunchKernelExC returned cudaErrorUnknown (999): unknown error" +
            while_launching,
        launch_with(LaunchConfig(stream, {1}, {1})));
    fake::fail_call("cudaLaunchKernelExC", 1, cudaErrorNoKernelImageForDevice);
    CHECK_ERROR(
        "tessera: unsupported_device in launch\n  cudaLaunchKernelExC returned cudaErrorNoKernelImageForDevice "
        "(209): no kernel image is available for execution on the device" +
            while_launching +
            "\n  try: the program has no code for this device: add its architecture to CMAKE_CUDA_ARCHITECTURES",
        launch_with(LaunchConfig(stream, {1}, {1})));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE_FIXTURE(KernelRuntime, "a null pointer and a function that is not a kernel are refused")
{
    void (*no_kernel)(int) = [](int) {};
    CHECK_ERROR(
        "tessera: launch_refused in launch\n  cudaLaunchKernelExC returned cudaErrorInvalidDeviceFunction (98): "
        "invalid device function\n  while launching the kernel (its name is unknown: is it a __global__ "
        "function?) with grid (1, 1, 1), block (1, 1, 1), cluster (1, 1, 1) and 0 bytes of dynamic shared memory",
        launch(no_kernel, LaunchConfig(stream, {1}, {1}), 5));
    void (*null)() = nullptr;
    CHECK_ERROR(
        "tessera: empty_handle in launch\n  the kernel is a null pointer\n  try: the address of a __global__ function",
        launch(null, LaunchConfig(stream, {1}, {1})));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE_FIXTURE(KernelRuntime, "memory and stream must be on one device, and clusters need a device with clusters")
{
    const Stream there{Device(fake::t4)};
    CHECK_ERROR(
        "tessera: device_mismatch in launch\n  the stream belongs to device 1, but an argument belongs to device 0\n  "
        "try: use a "
        "stream and memory of one device, or copy the data to device 1 first",
        launch_with(LaunchConfig(there, {1}, {1})));
    CHECK_ERROR(
        "tessera: unsupported_device in launch\n  kernel nothing: a cluster of (2, 1, 1) was requested, and T4 "
        "(compute capability 7.5) has no clusters\n  try: a device of compute capability 9.0 or later",
        launch(nothing, LaunchConfig(there, {2}, {1}).cluster({2})));
}
