/// Error: its text and parts, and how CUDA's failures are translated.

#include <limits>

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;
using tessera::test::error_of;

TEST_CASE("an error's text names code, function and place, then what is wrong, then what to try")
{
    const auto here = std::source_location::current();
    const Error error(ErrorCode::shape_mismatch, "Gemm::launch", here, "first line\nsecond line", "this\nor that");
    const std::string place = std::string(here.file_name()) + ":" + std::to_string(here.line());
    CHECK(error.what() == "tessera: shape_mismatch in Gemm::launch, called at " + place +
                              "\n  first line\n  second line\n  try: this\n  or that");
    CHECK(error.code() == ErrorCode::shape_mismatch);
    CHECK(error.message() == "first line\n  second line");
    CHECK(error.cure() == "this\n  or that");
    CHECK(error.cuda_status() == cudaSuccess);
    CHECK(error.caller().line() == here.line());
    CHECK(error.caller().file_name() == std::string(here.file_name()));
    const Error copy = error;  // what() moves with the copy, message() and cure() must, too
    CHECK(copy.message() == error.message());
    CHECK(copy.cure() == error.cure());
}

TEST_CASE("an error without a cure has an empty one and no 'try:'")
{
    const Error error(ErrorCode::out_of_range, "f", std::source_location::current(), "message");
    CHECK(error.cure().empty());
    CHECK(error.message() == "message");
    CHECK(std::string(error.what()).find("try:") == std::string::npos);
}

TEST_CASE("every error code has a stable number and its own name")
{
    const std::vector<std::string> names{
        "shape_mismatch",     "out_of_range",    "size_overflow",      "invalid_argument",   "misaligned",
        "aliasing",           "device_mismatch", "empty_handle",       "wrong_memory",       "variant_refused",
        "unsupported_device", "out_of_memory",   "no_device",          "capture_violation",  "launch_refused",
        "cuda_failure",       "context_lost",    "tensor_map_refused", "compilation_failed", "communication_failed"};
    const std::vector<ErrorCode> codes = all_error_codes();
    REQUIRE(codes.size() == names.size());
    for (std::size_t i = 0; i < codes.size(); ++i) {
        CHECK(static_cast<std::size_t>(codes[i]) == i + 1);
        CHECK(to_string(codes[i]) == names[i]);
    }
    CHECK(to_string(static_cast<ErrorCode>(0)) == "unknown");
}

namespace {

struct Translation {
    cudaError_t status;
    ErrorCode code;
    std::string cure;
};

const std::string no_device_cure = "check with nvidia-smi that a GPU and a driver for CUDA 13 or later are installed";
const std::string capture_cure =
    "the stream is being captured: move this call out of the captured work, and fork and join every other stream with "
    "events";
const std::string context_cure =
    "an earlier kernel or copy on this device failed while it ran, and this call only reports it. Run the program "
    "under compute-sanitizer to find it, then restart the process";

const std::vector<Translation> translations{
    {cudaErrorNoDevice, ErrorCode::no_device, no_device_cure},
    {cudaErrorInsufficientDriver, ErrorCode::no_device, no_device_cure},
    {cudaErrorStubLibrary, ErrorCode::no_device, no_device_cure},
    {cudaErrorDevicesUnavailable, ErrorCode::no_device, no_device_cure},
    {cudaErrorSystemDriverMismatch, ErrorCode::no_device, no_device_cure},
    {cudaErrorSystemNotReady, ErrorCode::no_device, no_device_cure},
    {cudaErrorCompatNotSupportedOnDevice, ErrorCode::no_device, no_device_cure},
    {cudaErrorStreamCaptureUnsupported, ErrorCode::capture_violation, capture_cure},
    {cudaErrorStreamCaptureInvalidated, ErrorCode::capture_violation, capture_cure},
    {cudaErrorStreamCaptureMerge, ErrorCode::capture_violation, capture_cure},
    {cudaErrorStreamCaptureUnmatched, ErrorCode::capture_violation, capture_cure},
    {cudaErrorStreamCaptureUnjoined, ErrorCode::capture_violation, capture_cure},
    {cudaErrorStreamCaptureIsolation, ErrorCode::capture_violation, capture_cure},
    {cudaErrorStreamCaptureImplicit, ErrorCode::capture_violation, capture_cure},
    {cudaErrorStreamCaptureWrongThread, ErrorCode::capture_violation, capture_cure},
    {cudaErrorNoKernelImageForDevice, ErrorCode::unsupported_device,
     "the program has no code for this device: add its architecture to CMAKE_CUDA_ARCHITECTURES"},
    {cudaErrorLaunchOutOfResources, ErrorCode::launch_refused, ""},
    {cudaErrorInvalidConfiguration, ErrorCode::launch_refused, ""},
    {cudaErrorInvalidClusterSize, ErrorCode::launch_refused, ""},
    {cudaErrorInvalidDeviceFunction, ErrorCode::launch_refused, ""},
    {cudaErrorCooperativeLaunchTooLarge, ErrorCode::launch_refused, ""},
    {cudaErrorInvalidValue, ErrorCode::cuda_failure, ""},
    {cudaErrorUnknown, ErrorCode::cuda_failure, ""},
};

// CUDA's documentation calls these fatal: "the process must be terminated and relaunched".
const std::vector<cudaError_t> sticky_statuses{
    cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,      cudaErrorAssert,
    cudaErrorHardwareStackError,  cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
    cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,          cudaErrorLaunchFailure,
    cudaErrorTensorMemoryLeak,    cudaErrorECCUncorrectable,   cudaErrorNvlinkUncorrectable,
    cudaErrorContained,           cudaErrorExternalDevice};

}  // namespace

TEST_CASE_FIXTURE(CleanRuntime, "a failed CUDA call becomes an error with a matching code, CUDA's name and CUDA's text")
{
    const Device device(fake::h200);
    for (const Translation& translation : translations) {
        fake::fail_call("cudaDeviceSynchronize", 1, translation.status);
        const std::string text =
            std::string("tessera: ") + std::string(to_string(translation.code)) +
            " in Device::synchronize\n  cudaDeviceSynchronize returned " + cudaGetErrorName(translation.status) + " (" +
            std::to_string(static_cast<int>(translation.status)) + "): " + cudaGetErrorString(translation.status) +
            (translation.cure.empty() ? "" : "\n  try: " + translation.cure);
        CHECK_ERROR(text, device.synchronize());
        CHECK(cudaPeekAtLastError() == cudaSuccess);  // later code does not find this error

        fake::fail_call("cudaDeviceSynchronize", 1, translation.status);
        const auto error = error_of([&] { device.synchronize(); });
        REQUIRE(error.has_value());
        CHECK(error->code() == translation.code);
        CHECK(error->cuda_status() == translation.status);
        CHECK_FALSE(is_sticky(translation.status));
    }
}

TEST_CASE_FIXTURE(CleanRuntime, "a sticky status is context_lost in the call that finds it and in all later calls")
{
    for (const cudaError_t status : sticky_statuses) {
        CAPTURE(cudaGetErrorName(status));
        CHECK(is_sticky(status));
        fake::reset();
        const Device device(fake::h200);
        fake::fail_call("cudaDeviceSynchronize", 1, status, true);
        const std::string name = cudaGetErrorName(status);
        const std::string number = std::to_string(static_cast<int>(status));
        const std::string text = cudaGetErrorString(status);
        const std::string returned = " returned " + name + " (" + number + "): " + text + "\n  try: " + context_cure;
        CHECK_ERROR("tessera: context_lost in Device::synchronize\n  cudaDeviceSynchronize" + returned,
                    device.synchronize());
        CHECK_ERROR("tessera: context_lost in Device::current\n  cudaGetDevice" + returned, Device::current());
        fake::reset();
    }
    CHECK_FALSE(is_sticky(cudaSuccess));
    CHECK_FALSE(is_sticky(cudaErrorNotReady));
    CHECK_FALSE(is_sticky(cudaErrorMemoryAllocation));
}

TEST_CASE_FIXTURE(CleanRuntime, "a pending error of other code is neither blamed on the SDK nor lost")
{
    CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);  // other code that ignores the error
    REQUIRE(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    {
        const Stream stream;
        DeviceBuffer<float> buffer(stream, 64);
        PinnedBuffer<float> pinned(64);
        buffer.copy_from_async(stream, pinned);
        buffer.fill(stream, 2.5F);
        const auto matrix = buffer.matrix(4, 4);
        const auto output = buffer.span().subspan(32, 16).matrix(4, 4);
        Gemm::launch(stream, matrix, matrix, output);
        const Graph graph = Graph::capture(stream, [&](StreamRef s) { Gemm::launch(s, matrix, matrix, output); });
        graph.launch(stream);
        CHECK(stream.done());
        stream.synchronize();
    }
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
}

TEST_CASE_FIXTURE(CleanRuntime,
                  "the SDK clears its own failures from the last-error slot, even if their diagnosis fails")
{
    const Stream stream;
    fake::fail_call("cudaMemGetInfo", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: out_of_memory in DeviceBuffer\n  cudaMallocAsync returned cudaErrorMemoryAllocation (2): out "
        "of memory\n  while allocating 1073741825 bytes on device 0\n  try: free memory or use a smaller problem",
        DeviceBuffer<std::byte>(stream, (std::size_t{1} << 30U) + 1));
    CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE_FIXTURE(CleanRuntime, "errors in destructors are kept, up to the latest 64, until they are read")
{
    for (int i = 0; i < 70; ++i) {
        const Event event;
        fake::fail_call("cudaEventDestroy", 1, i < 6 ? cudaErrorUnknown : cudaErrorInvalidValue);
    }
    const std::vector<std::string> dropped = dropped_errors();
    CHECK(dropped.size() == 64);
    CHECK(dropped ==
          std::vector<std::string>(64, "cudaEventDestroy returned cudaErrorInvalidValue (1): invalid argument"));
    CHECK(dropped_errors().empty());
    CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE_FIXTURE(CleanRuntime, "a destructor does not count the runtime's unloading as a failure")
{
    {
        const Stream stream;
        const DeviceBuffer<float> pooled(stream, 10);
        const DeviceBuffer<float> plain(stream, 10, Allocation::plain);
        PinnedBuffer<float> pinned(10);
        DeviceBuffer<float> target(stream, 10);
        target.copy_from_async(stream, pinned);
        const Event event;
        const Graph graph = Graph::capture(stream, [](StreamRef) {});
        fake::begin_unloading();
    }
    CHECK(fake::calls_while_unloading() >= 8);
    CHECK(dropped_errors().empty());
    fake::reset();
}
