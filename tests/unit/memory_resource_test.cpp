/// Buffers with memory resources: every supported shape of a resource, who frees what on which stream, and that nothing
/// leaks after a failure.

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

constexpr std::size_t alignment = 256;

/// Records the requests to a resource. The memory comes from the fake's pool.
struct Ledger {
    int allocations = 0;
    int frees = 0;
    std::size_t last_bytes = 0;
    std::size_t last_alignment = 0;
    cudaStream_t last_stream = nullptr;
    cudaStream_t last_free_stream = nullptr;
    bool null = false;
    bool throws = false;
    bool throws_at_free = false;
    std::size_t shift = 0;

    void* allocate(std::size_t bytes, std::size_t aligned, cudaStream_t stream)
    {
        last_bytes = bytes;
        last_alignment = aligned;
        last_stream = stream;
        if (throws) {
            throw std::runtime_error("the arena is full");
        }
        if (null) {
            return nullptr;
        }
        void* memory = nullptr;
        if (cudaMallocAsync(&memory, bytes + shift, stream) != cudaSuccess) {
            static_cast<void>(cudaGetLastError());
            throw std::bad_alloc();
        }
        ++allocations;
        return static_cast<std::byte*>(memory) + shift;
    }
    void free(void* memory, std::size_t bytes, cudaStream_t stream)
    {
        static_cast<void>(bytes);
        ++frees;
        last_free_stream = stream;
        static_cast<void>(cudaFreeAsync(static_cast<std::byte*>(memory) - shift, stream));
        static_cast<void>(cudaGetLastError());
        if (throws_at_free) {
            throw std::runtime_error("the arena is on fire");
        }
    }
};

/// Like cuda::stream_ref and rmm::cuda_stream_view: implicitly constructed from a raw stream.
struct ForeignStream {
    cudaStream_t stream;
    ForeignStream(cudaStream_t raw) : stream(raw) {}
};

struct WithLedger {
    std::unique_ptr<Ledger> ledger = std::make_unique<Ledger>();
};

/// CCCL before 3.1, and RMM: an asynchronous resource also has the synchronous functions.
struct CudaAsync : WithLedger {
    void* allocate(std::size_t, std::size_t) { throw std::logic_error("synchronous"); }
    void deallocate(void*, std::size_t, std::size_t) { throw std::logic_error("synchronous"); }
    void* allocate_async(std::size_t bytes, std::size_t aligned, ForeignStream stream)
    {
        return ledger->allocate(bytes, aligned, stream.stream);
    }
    void deallocate_async(void* memory, std::size_t bytes, std::size_t, ForeignStream stream)
    {
        ledger->free(memory, bytes, stream.stream);
    }
};

/// CCCL since 3.1.
struct CudaStreamFirst : WithLedger {
    void* allocate_sync(std::size_t, std::size_t) { throw std::logic_error("synchronous"); }
    void deallocate_sync(void*, std::size_t, std::size_t) { throw std::logic_error("synchronous"); }
    void* allocate(ForeignStream stream, std::size_t bytes, std::size_t aligned)
    {
        return ledger->allocate(bytes, aligned, stream.stream);
    }
    void deallocate(ForeignStream stream, void* memory, std::size_t bytes, std::size_t) noexcept
    {
        ledger->free(memory, bytes, stream.stream);
    }
};

/// rmm::mr::device_memory_resource: the stream comes last and has a default.
struct Rmm : WithLedger {
    virtual ~Rmm() = default;
    virtual void* do_allocate(std::size_t bytes, ForeignStream stream)
    {
        return ledger->allocate(bytes, alignment, stream.stream);
    }
    void* allocate(std::size_t bytes, ForeignStream stream = ForeignStream(nullptr))
    {
        return do_allocate(bytes, stream);
    }
    void deallocate(void* memory, std::size_t bytes, ForeignStream stream = ForeignStream(nullptr)) noexcept
    {
        ledger->free(memory, bytes, stream.stream);
    }
};
struct RmmPool final : Rmm {};

struct RmmAsync : WithLedger {
    void* allocate_async(std::size_t bytes, ForeignStream stream)
    {
        return ledger->allocate(bytes, alignment, stream.stream);
    }
    void deallocate_async(void* memory, std::size_t bytes, ForeignStream stream)
    {
        ledger->free(memory, bytes, stream.stream);
    }
};

/// c10::cuda::CUDACachingAllocator::CUDAAllocator: a free goes to the stream of the allocation.
struct Torch : WithLedger {
    void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream)
    {
        return ledger->allocate(bytes, alignment, stream);
    }
    void raw_delete(void* memory) { ledger->free(memory, ledger->last_bytes, ledger->last_stream); }
};

template <class Resource>
void use(Resource& resource)
{
    const Stream stream{Device(fake::b200)};
    Ledger& ledger = *resource.ledger;
    fake::clear_calls();
    {
        DeviceBuffer<float> buffer(stream, 100, resource);
        CHECK(ledger.allocations == 1);
        CHECK(ledger.last_bytes == 400);
        CHECK(ledger.last_alignment == alignment);
        CHECK(ledger.last_stream == stream.get());
        CHECK(buffer.device() == fake::b200);
        buffer.fill(stream, 0.0F);
        CHECK(buffer.to_vector().size() == 100);
        const DeviceBuffer<float> moved = std::move(buffer);
        CHECK(ledger.frees == 0);
        CHECK(DeviceBuffer<float>(stream, 0, resource).empty());  // neither allocates nor frees
        ledger.last_bytes = 400;
    }
    CHECK(ledger.allocations == 1);
    CHECK(ledger.frees == 1);
    CHECK(ledger.last_free_stream == stream.get());
    for (const fake::Call& call : fake::calls()) {
        if (call.name == "cudaMallocAsync" || call.name == "cudaFreeAsync") {
            CHECK(call.device == fake::b200);
        }
    }
    CHECK(Device::current().ordinal() == fake::h200);
}

}  // namespace

TEST_CASE_FIXTURE(CleanRuntime, "a buffer allocates and frees through a resource of any supported shape")
{
    CudaAsync cuda_async;
    use(cuda_async);
    CudaStreamFirst cuda_stream_first;
    use(cuda_stream_first);
    Rmm rmm;
    use(rmm);
    RmmPool derived;
    use(derived);
    RmmAsync rmm_async;
    use(rmm_async);
    Torch torch;
    use(torch);
    static_assert(!std::is_constructible_v<MemoryResourceRef, Ledger&>, "this shape is nobody's");
    static_assert(!std::is_constructible_v<MemoryResourceRef, int&>);
}

TEST_CASE_FIXTURE(CleanRuntime, "a pair of functions is a resource, and a reference to a resource is a value")
{
    Ledger ledger;
    const MemoryResourceRef resource(
        &ledger,
        [](void* context, std::size_t bytes, std::size_t aligned, cudaStream_t stream) {
            return static_cast<Ledger*>(context)->allocate(bytes, aligned, stream);
        },
        [](void* context, void* memory, std::size_t bytes, std::size_t, cudaStream_t stream) {
            static_cast<Ledger*>(context)->free(memory, bytes, stream);
        });
    const Stream stream;
    {
        const MemoryResourceRef copy = resource;
        CHECK(copy == resource);
        const DeviceBuffer<int> buffer(stream, 7, copy);
        CHECK(ledger.last_bytes == 28);
    }
    CHECK(ledger.frees == 1);
    CHECK(resource);
    CHECK_FALSE(MemoryResourceRef());
    CudaAsync other;
    CHECK_FALSE(MemoryResourceRef(other) == resource);
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceBuffer\n  the MemoryResourceRef is empty\n  try: a MemoryResourceRef to "
        "your resource, or Allocation::automatic",
        DeviceBuffer<int>(stream, 7, MemoryResourceRef()));
}

TEST_CASE_FIXTURE(CleanRuntime, "an exception of a resource without memory passes through, and nothing leaks")
{
    const Stream stream;
    CudaAsync resource;
    resource.ledger->throws = true;
    CHECK_THROWS_WITH_AS(DeviceBuffer<int>(stream, 7, resource), "the arena is full", std::runtime_error);
    resource.ledger->throws = false;
    resource.ledger->null = true;
    CHECK_ERROR(
        "tessera: out_of_memory in DeviceBuffer\n  the memory resource returned null for 28 bytes on device 0\n  try: "
        "free memory of the resource or use a smaller problem",
        DeviceBuffer<int>(stream, 7, resource));
    resource.ledger->null = false;
    resource.ledger->shift = 128;
    const auto error = test::error_of([&] { DeviceBuffer<int>(stream, 7, resource); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::misaligned);
    CHECK(error->cure() == "a resource that honours the requested alignment");
    CHECK(resource.ledger->allocations == 1);
    CHECK(resource.ledger->frees == 1);
    CHECK_ERROR(
        "tessera: size_overflow in DeviceBuffer\n  the size of 2305843009213693952 elements of 4 bytes does not fit "
        "into 63 bits\n  try: compute the count in std::size_t or std::int64_t from the start",
        DeviceBuffer<int>(stream, std::size_t{1} << 61U, resource));
}

TEST_CASE_FIXTURE(CleanRuntime, "exceptions of a resource's deallocate go to dropped_errors")
{
    const Stream stream;
    CudaAsync resource;
    resource.ledger->throws_at_free = true;
    {
        const DeviceBuffer<int> buffer(stream, 7, resource);
    }
    CHECK(dropped_errors() ==
          std::vector<std::string>{"a memory resource, while it freed memory, threw the arena is on fire"});
}

TEST_CASE_FIXTURE(CleanRuntime, "release gives up a resource's memory with the resource, and adopt takes it back")
{
    const Stream stream;
    CudaAsync resource;
    RawAllocation<int> raw = DeviceBuffer<int>(stream, 5, resource).release();
    CHECK(raw.allocation == Allocation::resource);
    CHECK(raw.resource == MemoryResourceRef(resource));
    CHECK(resource.ledger->frees == 0);
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceBuffer::adopt\n  Allocation::resource was passed without a resource\n  "
        "try: set RawAllocation::resource",
        DeviceBuffer<int>::adopt(stream, {raw.data, raw.size, Allocation::resource}));
    {
        const DeviceBuffer<int> again = DeviceBuffer<int>::adopt(stream, raw);
        CHECK(again.data() == raw.data);
        CHECK(resource.ledger->frees == 0);
    }
    CHECK(resource.ledger->frees == 1);
    raw = DeviceBuffer<int>(stream, 5, resource).release();
    raw.resource.deallocate(raw.data, raw.size * sizeof(int), alignment, stream.get());
    CHECK(resource.ledger->frees == 2);
}

TEST_CASE_FIXTURE(CleanRuntime, "a deleter is called once, with the home stream, and keeps its state until then")
{
    const Stream stream;
    const Stream next;
    const auto alive = std::make_shared<int>(0);
    int* memory = nullptr;
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&memory), 20) == cudaSuccess);
    int calls = 0;
    const auto deleter = [&calls, alive](int* data, cudaStream_t on) {
        ++calls;
        CHECK(cudaStreamSynchronize(on) == cudaSuccess);
        CHECK(cudaFree(data) == cudaSuccess);
    };
    {
        DeviceBuffer<int> buffer = DeviceBuffer<int>::adopt(stream, memory, 5, deleter);
        CHECK(alive.use_count() == 3);
        CHECK(buffer.size() == 5);
        buffer.set_home(next);
        const DeviceBuffer<int> moved = std::move(buffer);
        CHECK(calls == 0);
    }
    CHECK(calls == 1);
    CHECK(alive.use_count() == 2);
    {
        const auto none =
            DeviceBuffer<int>::adopt(stream, nullptr, 0, [&calls, alive](int*, cudaStream_t) { ++calls; });
        CHECK(none.empty());
        CHECK(alive.use_count() == 3);
    }
    CHECK(calls == 2);
    CHECK(alive.use_count() == 2);
}

TEST_CASE_FIXTURE(CleanRuntime, "a refused adoption neither calls nor keeps the deleter")
{
    const Stream stream;
    const auto alive = std::make_shared<int>(0);
    int calls = 0;
    int host = 0;
    CHECK_ERROR(fmt::format("tessera: wrong_memory in DeviceBuffer::adopt\n  {} is ordinary host memory, not device "
                            "memory\n  try: copy the data to a DeviceBuffer first: "
                            "DeviceBuffer<T>::from_host(stream, data)",
                            fmt::ptr(&host)),
                DeviceBuffer<int>::adopt(stream, &host, 1, [&calls, alive](int*, cudaStream_t) { ++calls; }));
    CHECK(calls == 0);
    CHECK(alive.use_count() == 1);
}

TEST_CASE_FIXTURE(CleanRuntime, "memory whose resource frees in the order of its first stream keeps its home stream")
{
    const Stream stream;
    const Stream next;
    Torch torch;
    DeviceBuffer<int> buffer(stream, 5, torch);
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceBuffer::set_home\n  the buffer's memory resource can free only on the "
        "stream that it allocated on\n  try: keep the home stream and call used_on() "
        "for "
        "other streams",
        buffer.set_home(next));
    CudaAsync resource;
    DeviceBuffer<int> other(stream, 5, resource);
    other.set_home(next);
    other = DeviceBuffer<int>();
    CHECK(resource.ledger->last_free_stream == next.get());
}

TEST_CASE_FIXTURE(CleanRuntime, "a resource's memory released during a capture of its stream is freed after it")
{
    const Stream stream{Device(fake::b200)};
    CudaAsync resource;
    DeviceBuffer<int> doomed(stream, 100, resource);
    fake::clear_calls();
    const Graph graph = Graph::capture(stream, [&](StreamRef) {
        const auto gone = std::move(doomed);
        CHECK(resource.ledger->frees == 0);
    });
    CHECK(resource.ledger->frees == 1);
    CHECK(graph.node_count() == 0);
    for (const fake::Call& call : fake::calls()) {
        if (call.name == "cudaFreeAsync") {
            CHECK(call.device == fake::b200);
        }
    }
}

TEST_CASE("whichever call fails around a resource, nothing leaks and nothing is freed twice")
{
    int failures = 0;
    int nth = 1;
    for (;; ++nth) {
        fake::reset();
        fake::fail_call(nth, cudaErrorMemoryAllocation);
        CudaAsync resource;
        try {
            const Stream stream;
            const Stream next;
            DeviceBuffer<int> first(stream, 10, resource);
            DeviceBuffer<int> second(stream, 20, resource);
            resource.ledger->last_bytes = 40;
            second = DeviceBuffer<int>();
            first.fill(stream, 1);
            first.set_home(next);
            const RawAllocation<int> raw = std::move(first).release();
            try {
                const DeviceBuffer<int> again = DeviceBuffer<int>::adopt(next, raw);
            } catch (const Error&) {
                raw.resource.deallocate(raw.data, raw.size * sizeof(int), alignment, next.get());
                throw;
            }
        } catch (const std::exception&) {  // an Error, or the resource's own bad_alloc
            ++failures;
        }
        CAPTURE(nth);
        static_cast<void>(dropped_errors());
        CHECK(resource.ledger->allocations == resource.ledger->frees);
        CHECK(fake::live() == fake::Live{});
        CHECK(fake::misuses() == std::vector<std::string>{});
        CHECK(cudaPeekAtLastError() == cudaSuccess);
        if (!fake::fault_occurred()) {
            break;
        }
    }
    CHECK(nth > 20);
    CHECK(failures > 10);
    fake::reset();
}
