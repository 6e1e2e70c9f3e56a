/// Devices: their properties, and what happens when there are none.

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

TEST_CASE_FIXTURE(CleanRuntime, "a device's properties are those that the runtime reports, and what follows from them")
{
    const DeviceProperties h200 = Device(fake::h200).properties();
    CHECK(h200.name == "H200");
    CHECK(h200.compute_capability() == 90);
    CHECK(h200.sm_count == 132);
    CHECK(h200.memory_bytes == std::size_t{1} << 30U);
    CHECK(h200.shared_memory_per_block_bytes == 227 * 1024);
    CHECK(h200.max_threads_per_block == 1024);
    CHECK(h200.has_clusters);
    CHECK(h200.has_tensor_maps);
    CHECK_FALSE(h200.has_tensor_memory);
    CHECK(h200.has_memory_pools);

    const DeviceProperties t4 = Device(fake::t4).properties();
    CHECK(t4.compute_capability() == 75);
    CHECK_FALSE(t4.has_clusters);
    CHECK_FALSE(t4.has_tensor_maps);
    CHECK_FALSE(t4.has_memory_pools);

    CHECK(Device(fake::b200).properties().has_tensor_memory);
}

TEST_CASE_FIXTURE(CleanRuntime, "properties are read once per process, and references to them stay valid")
{
    const DeviceProperties* const first = &Device(fake::h200).properties();
    fake::clear_calls();
    CHECK(&Device(fake::h200).properties() == first);
    CHECK(fake::calls().empty());
}

TEST_CASE_FIXTURE(CleanRuntime, "the current device is per thread, and only make_current changes it")
{
    CHECK(Device::current().ordinal() == fake::h200);
    Device(fake::t4).make_current();
    CHECK(Device::current() == Device(fake::t4));
    const Stream stream{Device(fake::h200)};
    const Event event{Device(fake::b200)};
    const DeviceBuffer<float> buffer(stream, 16);
    Device(fake::h200).synchronize();
    CHECK(Device::current() == Device(fake::t4));
    CHECK(Device::count() == 3);
}

TEST_CASE_FIXTURE(CleanRuntime, "free memory is that of the device itself")
{
    const Device t4(fake::t4);
    const std::size_t before = t4.free_memory_bytes();
    const Stream stream(t4);
    const DeviceBuffer<std::byte> buffer(stream, 1000);
    CHECK(t4.free_memory_bytes() == before - 1000);
    CHECK(Device::current().ordinal() == fake::h200);
}

TEST_CASE_FIXTURE(CleanRuntime, "an invalid ordinal is refused with the valid range")
{
    CHECK_ERROR(
        "tessera: out_of_range in Device\n  device 3 does not exist: there are 3 devices\n  try: an ordinal from 0 to "
        "2",
        Device(3));
    CHECK_ERROR(
        "tessera: out_of_range in Device\n  device -1 does not exist: there are 3 devices\n  try: an ordinal from 0 to "
        "2",
        Device(-1));
    fake::set_device_count(1);
    CHECK_ERROR(
        "tessera: out_of_range in Device\n  device 7 does not exist: there is 1 device\n  try: an ordinal from 0 to 0",
        Device(7));
}

TEST_CASE_FIXTURE(CleanRuntime, "without a device, every constructor says so, and counting is not an error")
{
    fake::set_device_count(0, cudaErrorNoDevice);
    const std::string cure =
        "\n  try: check with nvidia-smi that a GPU and a driver for CUDA 13 or later are installed";
    CHECK(Device::count() == 0);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK_ERROR(
        "tessera: no_device in Device\n  cudaGetDeviceCount returned cudaErrorNoDevice (100): no CUDA-capable "
        "device is detected" +
            cure,
        Device(9));
    CHECK_ERROR(
        "tessera: no_device in Device::current\n  cudaGetDevice returned cudaErrorNoDevice (100): no "
        "CUDA-capable device is detected" +
            cure,
        Device::current());
    CHECK_ERROR(
        "tessera: no_device in Stream\n  cudaGetDevice returned cudaErrorNoDevice (100): no CUDA-capable device is "
        "detected" +
            cure,
        Stream());
    CHECK_ERROR(
        "tessera: no_device in Event\n  cudaGetDevice returned cudaErrorNoDevice (100): no CUDA-capable device is "
        "detected" +
            cure,
        Event());

    fake::set_device_count(0);  // a driver that reports no device
    CHECK(Device::count() == 0);
    CHECK_ERROR("tessera: no_device in Device\n  this machine has no CUDA device" + cure, Device(9));
}

TEST_CASE_FIXTURE(CleanRuntime, "errors of device calls name the call")
{
    const Device device(fake::h200);
    fake::fail_call("cudaMemGetInfo", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in Device::free_memory_bytes\n  cudaMemGetInfo returned cudaErrorUnknown (999): "
        "unknown error",
        device.free_memory_bytes());
    fake::fail_call("cudaSetDevice", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in Device::make_current\n  cudaSetDevice returned cudaErrorUnknown (999): "
        "unknown error",
        device.make_current());
    fake::fail_call("cudaSetDevice", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in Stream\n  cudaSetDevice returned cudaErrorUnknown (999): unknown error",
                Stream(Device(fake::t4)));
}

TEST_CASE("properties of a typical device need no runtime")
{
    const DeviceProperties b200 = DeviceProperties::of_compute_capability(10, 0);
    CHECK(b200.name == "B200");
    CHECK(b200.compute_capability() == 100);
    CHECK(b200.has_tensor_memory);
    CHECK(b200.has_clusters);
    const DeviceProperties t4 = DeviceProperties::of_compute_capability(7, 5);
    CHECK(t4.name == "T4");
    CHECK_FALSE(t4.has_clusters);
    CHECK_FALSE(DeviceProperties::of_compute_capability(12, 0).has_tensor_memory);
    CHECK(DeviceProperties::of_compute_capability(11, 0).has_tensor_memory);
    CHECK_ERROR(
        "tessera: unsupported_device in DeviceProperties::of_compute_capability\n"
        "  no device of compute capability 7.0 is known\n"
        "  try: one of 7.5 (T4), 8.0 (A100), 8.6 (A40), 8.7 (Orin), 8.9 (L40S), 9.0 (H200), 10.0 (B200), "
        "10.3 (B300), 11.0 (Thor), 12.0 (RTX PRO 6000), 12.1 (GB10)",
        DeviceProperties::of_compute_capability(7, 0));
}
