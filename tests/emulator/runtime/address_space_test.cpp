/// Memory: two mappings of the same bytes, bounds, and written bytes.

#include "base/address_space.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "machine/launch.hpp"

using namespace tessera::emulator;

namespace {

/// The signal that ends a process which reads `address`; 0 if it can.
int signal_of_read(std::uint64_t address)
{
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGSEGV, SIG_DFL);
        const volatile char* bytes = reinterpret_cast<const char*>(address);
        static_cast<void>(*bytes);
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("a host that reads device memory is stopped; the emulator's own mapping works")
{
    AddressSpace memory;
    const std::uint64_t address = memory.allocate(1000, MemoryKind::device, 0);
    REQUIRE(address != 0);
    CHECK(address % 256 == 0);
    CHECK(signal_of_read(address) == SIGSEGV);
    const Allocation* allocation = memory.find(address);
    REQUIRE(allocation != nullptr);
    CHECK(signal_of_read(reinterpret_cast<std::uint64_t>(allocation->bytes)) == 0);
    std::memset(allocation->bytes, 1, 1000);
    CHECK(memory.is_device_address(address));
    CHECK(signal_of_read(memory.allocate(16, MemoryKind::managed, 0)) == 0);
    CHECK(signal_of_read(memory.allocate(16, MemoryKind::pinned, 0)) == 0);
}

TEST_CASE("bounds are those requested, with a gap between allocations")
{
    AddressSpace memory;
    const std::uint64_t first = memory.allocate(100, MemoryKind::device, 0);
    const std::uint64_t second = memory.allocate(100, MemoryKind::device, 0);
    CHECK(memory.find(first + 99)->address == first);
    CHECK(memory.find(first + 100) == nullptr);
    CHECK(memory.find(first - 1) == nullptr);
    CHECK(second - first >= 100 + 256);
    CHECK(memory.find(second)->address == second);
}

TEST_CASE("written bytes are tracked byte by byte")
{
    AddressSpace memory;
    Allocation& allocation = *memory.find(memory.allocate(1000, MemoryKind::device, 0));
    CHECK_FALSE(allocation.is_initialized(0, 1));
    allocation.mark_initialized(3, 130);
    CHECK(allocation.is_initialized(3, 130));
    CHECK_FALSE(allocation.is_initialized(2, 2));
    CHECK_FALSE(allocation.is_initialized(132, 2));
    CHECK(allocation.is_initialized(64, 64));
    allocation.mark_uninitialized(64, 1);
    CHECK_FALSE(allocation.is_initialized(64, 64));
    CHECK(allocation.is_initialized(65, 68));
    CHECK(memory.find(memory.allocate(16, MemoryKind::managed, 0))->is_initialized(0, 16));
}

TEST_CASE("fresh memory has a pattern and counts as unwritten, also at a reused address")
{
    AddressSpace memory;
    std::set<std::uint64_t> addresses;
    for (int i = 0; i < 100; ++i) {
        const std::uint64_t address = memory.allocate(4096, MemoryKind::device, 0);
        Allocation& allocation = *memory.find(address);
        CHECK(allocation.bytes[17] == std::byte{0xFF});
        CHECK_FALSE(allocation.is_initialized(0, 1));
        std::memset(allocation.bytes, 0, 4096);
        allocation.mark_initialized(0, 4096);
        addresses.insert(address);
        CHECK(memory.free(address));
    }
    CHECK(addresses.size() == 100);  // addresses are not reused soon, so a stale pointer hits nothing
}

TEST_CASE("a large allocation costs nothing until it is touched")
{
    AddressSpace memory;
    constexpr std::uint64_t size = std::uint64_t{100} << 30U;
    const std::uint64_t address = memory.allocate(size, MemoryKind::device, 0);
    REQUIRE(address != 0);
    Allocation& allocation = *memory.find(address);
    allocation.bytes[size - 1] = std::byte{5};
    allocation.mark_initialized(size - 1, 1);
    CHECK(allocation.is_initialized(size - 1, 1));
    CHECK_FALSE(allocation.is_initialized(size - 2, 1));
    CHECK(memory.used(0) == size);
    CHECK(memory.free(address));
    CHECK(memory.used(0) == 0);
}

TEST_CASE("only the start of a living allocation can be freed")
{
    AddressSpace memory;
    const std::uint64_t address = memory.allocate(64, MemoryKind::device, 1);
    const std::uint64_t generation = memory.generation();
    CHECK_FALSE(memory.free(address + 1));
    CHECK_FALSE(memory.free(0));
    CHECK(memory.generation() == generation);
    CHECK(memory.free(address));
    CHECK(memory.generation() != generation);
    CHECK_FALSE(memory.free(address));
    CHECK(memory.find(address) == nullptr);
}

TEST_CASE("addresses are described by their neighbours")
{
    AddressSpace memory;
    const std::uint64_t address = memory.allocate(1024, MemoryKind::device, 0);
    CHECK(memory.describe(address + 1040).find("16 bytes after the end of the device allocation of 1024 bytes") !=
          std::string::npos);
    CHECK(memory.describe(address - 8).find("8 bytes before the device allocation") != std::string::npos);
    CHECK(memory.describe(address + 8).find("byte 8 of the device allocation") != std::string::npos);
    CHECK(memory.describe(0).find("null") != std::string::npos);
    CHECK(memory.describe(0x1230).find("only if it is pinned") != std::string::npos);
    memory.free(address);
    CHECK(memory.describe(address + 8).find("was freed") != std::string::npos);
    const std::uint64_t variable = memory.allocate(4, MemoryKind::module, 0, "table");
    CHECK(memory.describe(variable).find("(table)") != std::string::npos);
}

TEST_CASE("host memory can be added and stays when it is removed")
{
    AddressSpace memory;
    std::vector<int> host(100, 7);
    memory.add_host(host.data(), 400);
    const auto address = reinterpret_cast<std::uint64_t>(host.data());
    REQUIRE(memory.find(address + 399) != nullptr);
    CHECK(memory.find(address)->bytes == reinterpret_cast<std::byte*>(host.data()));
    CHECK_FALSE(memory.is_device_address(address));
    CHECK(memory.free(address));
    CHECK(host[99] == 7);
}

TEST_CASE("several threads can allocate, mark and free at once")
{
    AddressSpace memory;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&memory, t] {
            for (int i = 0; i < 500; ++i) {
                const std::uint64_t size = 100 + static_cast<std::uint64_t>(i) * 37;
                const std::uint64_t address = memory.allocate(size, MemoryKind::device, t);
                Allocation* allocation = memory.find(address);
                if (allocation == nullptr || allocation->is_initialized(0, 1)) {
                    std::abort();
                }
                allocation->mark_initialized(0, size);
                memory.free(address);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(memory.allocations().empty());
}

TEST_CASE("a module that cannot be loaded leaves no variables in memory, and one that is unloaded neither")
{
    AddressSpace memory;
    const std::string head = ".version 9.0\n.target sm_80\n.address_size 64\n.global .b8 large[1048576];\n";
    const DeviceModel& device = *find_device_model("b200");
    const std::string unresolved = head + ".extern .global .u64 elsewhere;\n.global .u64 pointer = elsewhere;\n";
    CHECK_THROWS_WITH_AS(LoadedModule(unresolved, device, 0, memory), doctest::Contains("elsewhere"),
                         std::runtime_error);
    CHECK(memory.used(0) == 0);
    {
        const LoadedModule module(head, device, 0, memory);
        CHECK(memory.used(0) >= 1048576);
    }
    CHECK(memory.used(0) == 0);
}
