/// Buffers, copies and fills with the real runtime. Needs a device.

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "device_fixture.hpp"
#include "kernels.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

struct Triple {
    std::uint32_t x;
    std::uint32_t y;
    std::uint32_t z;
    friend bool operator==(const Triple&, const Triple&) = default;
};

template <class T>
void check_fill(const Stream& stream, const T& value)
{
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1} << 21U}) {
        DeviceBuffer<T> buffer(stream, size);
        buffer.fill(stream, value);
        const std::vector<T> elements = buffer.to_vector();
        CHECK(elements.size() == size);
        CHECK(std::all_of(elements.begin(), elements.end(), [&](const T& element) { return element == value; }));
    }
}

}  // namespace

TEST_CASE("data copied to a buffer can be copied back, whole and in part")
{
    const Stream stream;
    const std::vector<int> numbers = counted(1000);
    for (const Allocation allocation : {Allocation::automatic, Allocation::pool, Allocation::plain}) {
        DeviceBuffer<int> buffer(stream, 1000, allocation);
        buffer.copy_from(numbers);
        CHECK(buffer.to_vector() == numbers);
        buffer.copy_from(std::vector<int>{-1, -2, -3}, 997);
        std::vector<int> tail(4);
        buffer.copy_to(tail, 996);
        CHECK(tail == std::vector<int>{996, -1, -2, -3});
        CHECK(code_of([&] { buffer.copy_from(std::vector<int>(4), 997); }) == ErrorCode::out_of_range);
    }
}

TEST_CASE("asynchronous copies work between pinned and device memory, and between devices")
{
    const Stream stream;
    PinnedBuffer<int> source(500);
    PinnedBuffer<int> target(500);
    std::iota(source.begin(), source.end(), 1);
    DeviceBuffer<int> first(stream, 600);
    DeviceBuffer<int> second(stream, 500);
    first.copy_from_async(stream, source, 100);
    second.copy_from_async(stream, first.subspan(100, 500));
    second.copy_to_async(stream, target);
    target.synchronize();
    CHECK(std::equal(source.begin(), source.end(), target.begin()));
}

TEST_CASE("the memory of a destroyed pinned buffer stays until its pending copy is done")
{
    if (!Gate::can_be_used()) {
        return;
    }
    const Stream stream;
    Gate gate;
    DeviceBuffer<int> buffer(stream, 1 << 20U);
    std::thread opener;
    {
        PinnedBuffer<int> source(1 << 20U);
        std::fill(source.begin(), source.end(), 77);
        gate.close(stream);
        buffer.copy_from_async(stream, source);
        CHECK_FALSE(stream.done());
        opener = std::thread([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            gate.open();
        });
    }  // waits for the copy, and therefore for the gate
    CHECK(gate.was_opened());
    opener.join();
    const std::vector<int> elements = buffer.to_vector();
    CHECK(std::all_of(elements.begin(), elements.end(), [](int element) { return element == 77; }));
    CHECK_FALSE(gate.timed_out());
}

TEST_CASE("fill repeats values of 1, 2, 4, 8 and 12 bytes, with equal and different bytes")
{
    const Stream stream;
    check_fill<std::uint8_t>(stream, 0xA7);
    check_fill<std::uint16_t>(stream, 0x1234);
    check_fill<std::uint32_t>(stream, 0x12345678);
    check_fill<std::uint32_t>(stream, 0);
    check_fill<std::uint64_t>(stream, 0x123456789ABCDEF0);
    check_fill<Triple>(stream, {1, 2, 3});
    check_fill<std::array<std::uint8_t, 3>>(stream, {1, 2, 3});
    check_fill<std::array<std::uint16_t, 5>>(stream, {1, 2, 3, 4, 5});
}

TEST_CASE("a buffer destroyed while a kernel on its home stream uses it is freed after the kernel")
{
    if (!Gate::can_be_used()) {
        return;
    }
    const Stream stream;
    Gate gate;
    auto result = DeviceBuffer<float>::from_host(stream, std::vector<float>(1000, 0.0F));
    gate.close(stream);
    {
        DeviceBuffer<float> input(stream, 1000);
        input.fill(stream, 5.0F);
        launch(add_kernel(), LaunchConfig::covering(stream, 1000), DisjointSpan(result), input.span(), 1.0F);
    }
    DeviceBuffer<float> taker(stream, 1000);  // may reuse the memory, but is written after the kernel
    taker.fill(stream, -1.0F);
    gate.open();
    CHECK(result.to_vector() == std::vector<float>(1000, 6.0F));
    CHECK_FALSE(gate.timed_out());
}

TEST_CASE("used_on keeps memory until the other stream is done with it")
{
    if (!Gate::can_be_used()) {
        return;
    }
    const Stream home;
    const Stream user;
    Gate gate;
    DeviceBuffer<float> result(user, 1000);
    {
        DeviceBuffer<float> input(home, 1000);
        input.fill(home, 2.0F);
        user.wait(home);
        gate.close(user);
        launch(add_kernel(), LaunchConfig::covering(user, 1000), DisjointSpan(result), input.span(), 1.0F);
        input.used_on(user);
    }
    DeviceBuffer<float> taker(home, 1000);  // after the free, which is after the kernel behind the gate
    taker.fill(home, -1.0F);
    CHECK_FALSE(home.done());
    gate.open();
    home.synchronize();
    CHECK(result.to_vector() == std::vector<float>(1000, 3.0F));
    CHECK_FALSE(gate.timed_out());
}

TEST_CASE("released memory of either kind can be adopted again")
{
    const Stream stream;
    for (const Allocation allocation : {Allocation::pool, Allocation::plain}) {
        DeviceBuffer<int> buffer(stream, 10, allocation);
        buffer.fill(stream, 4);
        const RawAllocation<int> raw = std::move(buffer).release();
        CHECK(raw.allocation == allocation);
        const auto adopted = DeviceBuffer<int>::adopt(stream, raw);
        CHECK(adopted.to_vector() == std::vector<int>(10, 4));
    }
    int on_host = 0;
    CHECK(code_of([&] { DeviceBuffer<int>::adopt(stream, {&on_host, 1, Allocation::plain}); }) ==
          ErrorCode::wrong_memory);
}

TEST_CASE("memory of the wrong kind cannot be adopted: the driver distinguishes pools from cudaMalloc")
{
    const Stream stream;
    const auto refused = [&](Allocation made, Allocation said) {
        DeviceBuffer<int> buffer(stream, 10, made);
        return code_of([&] { DeviceBuffer<int>::adopt(stream, {buffer.data(), 10, said}); });
    };
    CHECK(refused(Allocation::plain, Allocation::pool) == ErrorCode::wrong_memory);
    CHECK(refused(Allocation::pool, Allocation::plain) == ErrorCode::wrong_memory);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("pinned elements are correct after and during copies, without an explicit wait")
{
    const Stream stream;
    constexpr std::size_t size = std::size_t{1} << 23U;  // long enough for the host to be first
    DeviceBuffer<int> buffer(stream, size);
    PinnedBuffer<int> target(size);
    PinnedBuffer<int> source(size);
    for (int round = 1; round <= 3; ++round) {
        buffer.fill(stream, round);
        buffer.copy_to_async(stream, target);
        CHECK(std::as_const(target)[size - 1] == round);
        source[size - 1] = 100 + round;
        buffer.copy_from_async(stream, source);
        source[size - 1] = -1;  // waits until the copy has read it
        buffer.copy_to_async(stream, target);
        CHECK(target.span()[size - 1] == 100 + round);
    }
}

TEST_CASE("a buffer from a memory resource works, can change its home stream, and is freed on it")
{
    struct Resource {
        int living = 0;
        void* allocate_async(std::size_t bytes, std::size_t, cudaStream_t stream)
        {
            void* memory = nullptr;
            CHECK(cudaMallocAsync(&memory, bytes, stream) == cudaSuccess);
            ++living;
            return memory;
        }
        void deallocate_async(void* memory, std::size_t, std::size_t, cudaStream_t stream)
        {
            CHECK(cudaFreeAsync(memory, stream) == cudaSuccess);
            --living;
        }
    };
    Resource resource;
    const Stream stream;
    const Device device = Device::current();
    const Stream urgent(device, StreamPriority::most_urgent(device));
    CHECK(urgent.priority() <= stream.priority());
    {
        DeviceBuffer<int> buffer(stream, 1000, resource);
        buffer.fill(stream, 7);
        buffer.set_home(urgent);
        CHECK(buffer.to_vector() == std::vector<int>(1000, 7));
        CHECK(resource.living == 1);
    }
    CHECK(resource.living == 0);
    urgent.synchronize();
    CHECK(dropped_errors().empty());
}

TEST_CASE("allocating too much gives out_of_memory with the figures, and the device still works")
{
    const Stream stream;
    const std::size_t too_much = 2 * Device::current().properties().memory_bytes;
    try {
        const DeviceBuffer<std::byte> buffer(stream, too_much);
        FAIL("twice the device's memory was allocated");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::out_of_memory);
        CHECK(error.cure().find("bytes free") != std::string_view::npos);
    }
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    check_fill<int>(stream, 3);
}

TEST_CASE("a buffer outlives its Stream object")
{
    DeviceBuffer<int> buffer;
    {
        const Stream stream;
        buffer = DeviceBuffer<int>::from_host(stream, counted(100));
    }
    CHECK(buffer.to_vector() == counted(100));
    buffer = {};
    CHECK(dropped_errors().empty());
}

TEST_CASE("conversions on the device and on the host give the same bits, for all 65536 values")
{
    const Stream stream;
    constexpr std::size_t count = 65536;
    DeviceBuffer<std::uint32_t> wide(stream, count);
    const auto widened_on_device = [&](auto kernel) {
        launch(kernel, LaunchConfig::covering(stream, count), DisjointSpan(wide));
        return wide.to_vector();
    };
    const auto is_nan = [](std::uint32_t bits) { return (bits & 0x7FFFFFFFU) > 0x7F800000U; };
    const auto check = [&](const std::vector<std::uint32_t>& device, auto&& on_host) {
        int different = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            const auto host = std::bit_cast<std::uint32_t>(on_host(static_cast<std::uint16_t>(i)));
            // A NaN stays NaN, but its payload may change.
            different += host != device[i] && !(is_nan(host) && is_nan(device[i]));
        }
        CHECK(different == 0);
    };
    check(widened_on_device(widen_f16_kernel()), detail::widen_from_f16);
    check(widened_on_device(widen_bf16_kernel()), detail::widen_from_bf16);
}

TEST_CASE("narrowing rounds the same on the device and on the host: values, neighbours, midpoints")
{
    const Stream stream;
    const auto check = [&](auto widen, auto narrow, auto kernel, std::uint16_t infinity) {
        std::vector<std::uint32_t> inputs;
        for (std::uint32_t i = 0; i < 65536; ++i) {
            const auto bits = std::bit_cast<std::uint32_t>(widen(static_cast<std::uint16_t>(i)));
            inputs.insert(inputs.end(), {bits, bits + 1, bits - 1});
            if ((i & 0x7FFFU) < infinity) {
                const double here = widen(static_cast<std::uint16_t>(i));
                // After the largest finite value, the next one would be a power of two, not infinity.
                const double next = (i & 0x7FFFU) + 1 < infinity
                                        ? static_cast<double>(widen(static_cast<std::uint16_t>(i + 1)))
                                        : 2 * here - static_cast<double>(widen(static_cast<std::uint16_t>(i - 1)));
                const auto middle = std::bit_cast<std::uint32_t>(static_cast<float>((here + next) / 2));
                inputs.insert(inputs.end(), {middle, middle + 1, middle - 1});
            }
        }
        const auto in = DeviceBuffer<std::uint32_t>::from_host(stream, inputs);
        DeviceBuffer<std::uint16_t> out(stream, inputs.size());
        launch(kernel, LaunchConfig::covering(stream, inputs.size()), DisjointSpan(out), in.span());
        const std::vector<std::uint16_t> device = out.to_vector();
        int different = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const std::uint16_t host = narrow(std::bit_cast<float>(inputs[i]));
            const auto is_nan = [&](std::uint16_t bits) { return (bits & 0x7FFFU) > infinity; };
            different += host != device[i] && !(is_nan(host) && is_nan(device[i]));
        }
        CHECK(different == 0);
    };
    check(detail::widen_from_f16, detail::narrow_to_f16, narrow_f16_kernel(), 0x7C00);
    check(detail::widen_from_bf16, detail::narrow_to_bf16, narrow_bf16_kernel(), 0x7F80);
}
