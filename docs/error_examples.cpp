// Runs the example of each page in docs/errors and prints the errors, for a test that compares the pages with both: the
// code on a page is a function body of this file, and the text on a page is what that code throws here.
//
// Runs on the tests' double of the CUDA runtime, whose device 0 is an H200 and whose device 1 is a T4, because most
// errors need a device, and some need one that fails.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

#include "fake_runtime/fake_runtime.hpp"
#include "tessera/distributed.hpp"
#include "tessera/tessera.hpp"
#include "tessera/tile/program.hpp"

namespace {

using namespace tessera;

void shape_mismatch(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<float> a(stream, 512 * 640), b(stream, 1024 * 640), d(stream, 512 * 1024);
    Gemm::launch(stream, a.matrix(512, 640), b.matrix(1024, 640), d.matrix(512, 1024));
}

void out_of_range(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<float> buffer(stream, 1000);
    auto view = buffer.matrix(32, 32);
}

void size_overflow(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<double> buffer(stream, std::size_t{1} << 61);
}

void invalid_argument(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<float> buffer(stream, 1000);
    auto view = buffer.matrix(4, 100, 64, RowMajor{});  // 4 rows of 100 elements, 64 elements apart
}

void misaligned(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<std::byte> bytes(stream, 4096);
    auto* pixels = reinterpret_cast<float*>(bytes.data() + 54);  // after a file's header
    auto span = DeviceSpan<float>::from_raw_device_pointer(pixels, 1000);
}

void aliasing(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<float> a(stream, 64 * 64), b(stream, 64 * 64);
    Gemm::launch(stream, a.matrix(64, 64), b.matrix(64, 64), a.matrix(64, 64));
}

void device_mismatch(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<float> buffer(stream, 64);  // on device 0
    Stream other(Device(1));
    buffer.fill(other, 0.0F);
}

void empty_handle(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<float> first(stream, 64);
    DeviceBuffer<float> second = std::move(first);
    first.copy_from(std::vector<float>(64));
}

void wrong_memory(const Stream&)
{
#line 1 "example.cpp"
    std::vector<float> host(64);
    auto view = MatrixView<float>::from_raw_device_pointer(host.data(), 8, 8, 8);
}

void variant_refused(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<float> a(stream, 64 * 63), b(stream, 63 * 64), d(stream, 64 * 64);
    Gemm::launch(stream, a.matrix(64, 63), b.matrix(63, 64), d.matrix(64, 64), {}, Variant::simt_vectorized);
}

void unsupported_device(const Stream&)
{
#line 1 "example.cpp"
    Stream stream(Device(1));  // a T4
    DeviceBuffer<float> buffer(stream, 64 * 64);
    auto map = TensorMap<float, Box<32, 8>>::of(buffer.matrix(64, 64));
}

void out_of_memory(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<float> buffer(stream, std::size_t{1} << 40);
}

void no_device(const Stream&)
{
    fake::set_device_count(0, cudaErrorNoDevice);
#line 1 "example.cpp"
    Device device(3);
}

void capture_violation(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<float> buffer(stream, 64);
    auto graph = Graph::capture(stream, [&](StreamRef captured) {
        buffer.fill(captured, 1.0F);
        std::vector<float> result = buffer.to_vector();  // blocks
    });
}

void scale(DeviceSpan<float>, float) {}  // stands for the kernel

void launch_refused(const Stream& stream)
{
    fake::register_kernel(reinterpret_cast<const void*>(&scale), "_Z5scaleN7tessera10DeviceSpanIfEEf",
                          fake::default_attributes());
#line 1 "example.cpp"
    DeviceBuffer<float> buffer(stream, 4096);
    launch(scale, LaunchConfig(stream, {2}, {2048}), buffer.span(), 2.0F);
}

void cuda_failure(const Stream& stream)
{
    fake::fail_call("cudaMemcpyAsync", 1, cudaErrorInvalidValue);
#line 1 "example.cpp"
    std::vector<float> host(64);
    auto buffer = DeviceBuffer<float>::from_host(stream, host);
}

void context_lost(const Stream& stream)
{
    fake::register_kernel(reinterpret_cast<const void*>(&scale), "_Z5scaleN7tessera10DeviceSpanIfEEf",
                          fake::default_attributes());
    fake::fail_call("cudaStreamSynchronize", 1, cudaErrorIllegalAddress);
#line 1 "example.cpp"
    DeviceBuffer<float> buffer(stream, 4096);
    launch(scale, LaunchConfig(stream, {16}, {256}), buffer.span(), 2.0F);  // writes past the buffer
    stream.synchronize();
}

void tensor_map_refused(const Stream& stream)
{
#line 1 "example.cpp"
    DeviceBuffer<f16> buffer(stream, 100 * 100);
    auto map = TensorMap<f16, Box<64, 8>, Swizzle::b128>::of(buffer.matrix(100, 100));
}

void compilation_failed(const Stream& /*stream*/)
{
#line 1 "example.cpp"
    auto program = tile::Program::from_source(R"(
    struct Ones {
        tessera::tile::Output<float, 16, 64> d;
        TESSERA_TILE void operator()(auto cta) const
        {
            for (auto at : d.tiles(cta)) d.store(at, tessera::tile::full<float, 16, 32>(cta, 1.0F));
        }
    };)",
                                              {.name = "ones.cu"});
    auto code = program.compile("Ones", {9, 0});
}

void communication_failed(const Stream& /*stream*/)
{
#line 1 "example.cpp"
    setenv("TESSERA_NCCL", "/opt/nccl-2.28/lib", 1);
    auto ranks = distributed::Communicator::of_devices({{0, 1}});
}

struct Example {
    ErrorCode code;
    void (*run)(const Stream&);
};

constexpr Example examples[] = {{ErrorCode::shape_mismatch, shape_mismatch},
                                {ErrorCode::out_of_range, out_of_range},
                                {ErrorCode::size_overflow, size_overflow},
                                {ErrorCode::invalid_argument, invalid_argument},
                                {ErrorCode::misaligned, misaligned},
                                {ErrorCode::aliasing, aliasing},
                                {ErrorCode::device_mismatch, device_mismatch},
                                {ErrorCode::empty_handle, empty_handle},
                                {ErrorCode::wrong_memory, wrong_memory},
                                {ErrorCode::variant_refused, variant_refused},
                                {ErrorCode::unsupported_device, unsupported_device},
                                {ErrorCode::out_of_memory, out_of_memory},
                                {ErrorCode::no_device, no_device},
                                {ErrorCode::capture_violation, capture_violation},
                                {ErrorCode::launch_refused, launch_refused},
                                {ErrorCode::cuda_failure, cuda_failure},
                                {ErrorCode::context_lost, context_lost},
                                {ErrorCode::tensor_map_refused, tensor_map_refused},
                                {ErrorCode::compilation_failed, compilation_failed},
                                {ErrorCode::communication_failed, communication_failed}};

/// Prints what the example throws. False if that is not what its page is about.
bool print(const Example& example)
{
    fake::reset();
    const Stream stream;
    try {
        example.run(stream);
    } catch (const Error& error) {
        std::printf("%s\n", error.what());
        return error.code() == example.code;
    }
    return false;
}

}  // namespace

int main()
{
    bool right = std::size(examples) == all_error_codes().size();
    for (const Example& example : examples) {
        if (!print(example)) {
            std::fprintf(stderr, "the example of %s does not throw it\n", to_string(example.code).data());
            right = false;
        }
    }
    return right ? 0 : 1;
}
