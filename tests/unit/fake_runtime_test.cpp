/// The fake runtime detects what it promises to detect; otherwise the other tests could not fail.

#include "clean_runtime.hpp"

using tessera::test::CleanRuntime;
namespace fake = tessera::fake;

namespace {

/// Ends a test that misused the runtime on purpose.
void expect_misuses(const std::vector<std::string>& expected)
{
    CHECK(fake::misuses() == expected);
    fake::reset();
    static_cast<void>(cudaGetLastError());
}

cudaStream_t new_stream()
{
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    return stream;
}

}  // namespace

TEST_CASE_FIXTURE(CleanRuntime, "a double free and a free with the wrong function are detected")
{
    cudaStream_t const stream = new_stream();
    void* pooled = nullptr;
    void* plain = nullptr;
    void* pinned = nullptr;
    REQUIRE(cudaMallocAsync(&pooled, 8, stream) == cudaSuccess);
    REQUIRE(cudaMalloc(&plain, 8) == cudaSuccess);
    REQUIRE(cudaHostAlloc(&pinned, 8, cudaHostAllocPortable) == cudaSuccess);
    CHECK(fake::live() == fake::Live{.device_allocations = 2, .pinned_allocations = 1, .streams = 1});
    CHECK(cudaFree(pooled) == cudaErrorInvalidValue);
    CHECK(cudaFreeAsync(plain, stream) == cudaErrorInvalidValue);
    CHECK(cudaFree(pinned) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(plain) == cudaErrorInvalidValue);
    CHECK(cudaFree(plain) == cudaSuccess);
    CHECK(cudaFree(plain) == cudaErrorInvalidValue);
    CHECK(cudaFree(&plain) == cudaErrorInvalidValue);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    CHECK(cudaFreeAsync(pooled, stream) == cudaErrorInvalidResourceHandle);
    CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
    CHECK(cudaFreeHost(pinned) == cudaSuccess);
    CHECK(fake::live() == fake::Live{.device_allocations = 1});
    expect_misuses({"cudaFree of memory from cudaMallocAsync", "cudaFreeAsync of memory from cudaMalloc",
                    "cudaFree of memory from cudaHostAlloc", "cudaFreeHost of memory from cudaMalloc",
                    "cudaFree of memory that was freed before", "cudaFree of what was never allocated",
                    "cudaFreeAsync on a stream that was destroyed",
                    "cudaStreamDestroy on a stream that was destroyed"});
}

TEST_CASE_FIXTURE(CleanRuntime, "copies outside of live memory are detected")
{
    cudaStream_t const stream = new_stream();
    void* memory = nullptr;
    std::byte host[16] = {};
    REQUIRE(cudaMalloc(&memory, 8) == cudaSuccess);
    CHECK(cudaMemcpyAsync(memory, host, 9, cudaMemcpyDefault, stream) == cudaErrorInvalidValue);
    CHECK(cudaFree(memory) == cudaSuccess);
    CHECK(cudaMemcpyAsync(host, memory, 8, cudaMemcpyDefault, stream) == cudaErrorInvalidValue);
    CHECK(cudaMemsetAsync(static_cast<std::byte*>(memory) + (1 << 30), 0, 8, stream) == cudaErrorInvalidValue);
    expect_misuses({"cudaMemcpyAsync beyond the end of an allocation", "cudaMemcpyAsync of freed memory",
                    "cudaMemsetAsync of device memory that was never allocated"});
}

TEST_CASE_FIXTURE(CleanRuntime, "handles used after their end or on another device are detected")
{
    cudaStream_t const stream = new_stream();
    REQUIRE(cudaSetDevice(fake::t4) == cudaSuccess);
    cudaEvent_t event = nullptr;
    REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventDestroy(event) == cudaSuccess);
    CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
    CHECK(cudaGraphDestroy(reinterpret_cast<cudaGraph_t>(8)) == cudaErrorInvalidValue);
    expect_misuses({"cudaEventRecord of an event on a stream of another device",
                    "cudaEventDestroy of an event that was destroyed", "cudaGraphDestroy of a graph that never was"});
}

TEST_CASE_FIXTURE(CleanRuntime, "freeing host memory that a copy still uses is detected, and waiting prevents it")
{
    for (const bool waits : {false, true}) {
        fake::reset();
        cudaStream_t const stream = new_stream();
        void* device = nullptr;
        void* pinned = nullptr;
        REQUIRE(cudaMalloc(&device, 8) == cudaSuccess);
        REQUIRE(cudaHostAlloc(&pinned, 8, cudaHostAllocPortable) == cudaSuccess);
        REQUIRE(cudaMemcpyAsync(device, pinned, 8, cudaMemcpyDefault, stream) == cudaSuccess);
        if (waits) {
            REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
        }
        CHECK(cudaFreeHost(pinned) == cudaSuccess);
        CHECK(fake::misuses().size() == (waits ? 0 : 1));
    }
    fake::reset();
}

TEST_CASE_FIXTURE(CleanRuntime, "a fault hits its call once, and a sticky fault all later calls")
{
    fake::fail_call(2, cudaErrorUnknown);
    fake::fail_call("cudaSetDevice", 2, cudaErrorInvalidValue);
    int device = 0;
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    CHECK_FALSE(fake::fault_occurred());
    CHECK(cudaGetDevice(&device) == cudaErrorUnknown);
    CHECK(fake::fault_occurred());
    CHECK(cudaSetDevice(0) == cudaSuccess);
    CHECK(cudaSetDevice(0) == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    fake::fail_call(1, cudaErrorAssert, true);
    CHECK(cudaSetDevice(0) == cudaErrorAssert);
    CHECK(cudaSetDevice(0) == cudaErrorAssert);
    CHECK(cudaGetLastError() == cudaErrorAssert);
    CHECK(cudaGetLastError() == cudaErrorAssert);
    fake::reset();
}
