#pragma once

// Runs PTX text on the emulated device and gives access to memory and the report: the basis of the instruction tests.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "machine/launch.hpp"
#include "machine/tensor_map.hpp"

namespace tessera::emulator::test {

struct Shape {
    Dim3 grid{1, 1, 1}, block{32, 1, 1}, cluster{1, 1, 1};
    std::uint32_t dynamic_shared = 0;
    bool cooperative = false;
    std::uint64_t stack_limit = LaunchRequest{}.stack_limit;
    std::uint64_t heap_limit = LaunchRequest{}.heap_limit;
};

/// "  .version ... .target ... .address_size 64" for a device, before the rest of a test's module.
[[nodiscard]] std::string module_text(std::string_view target, std::string_view body);

/// One module on one emulated device with its own memory.
class PtxRun {
public:
    explicit PtxRun(std::string_view ptx, std::string_view device = "b200");

    /// Allocates device memory with these values; returns its address.
    template <typename T>
    std::uint64_t buffer(const std::vector<T>& values)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        const std::uint64_t address = uninitialized(std::max<std::size_t>(values.size(), 1) * sizeof(T));
        Allocation* allocation = memory.find(address);
        std::memcpy(allocation->bytes, values.data(), values.size() * sizeof(T));
        allocation->mark_initialized(0, values.size() * sizeof(T));
        return address;
    }
    std::uint64_t uninitialized(std::size_t bytes);
    template <typename T>
    [[nodiscard]] std::vector<T> read(std::uint64_t address, std::size_t count) const
    {
        const Allocation* allocation = memory.find(address);
        std::vector<T> values(count);
        std::memcpy(values.data(), allocation->bytes + (address - allocation->address), count * sizeof(T));
        return values;
    }

    /// Launches `kernel` with these arguments, each of exactly the size of its parameter.
    template <typename... Arguments>
    LaunchResult launch(std::string_view kernel, const Shape& shape, const Arguments&... arguments)
    {
        return launch_with(kernel, shape, {{&arguments, sizeof arguments}...});
    }
    struct Argument {
        const void* value;
        std::size_t size;
    };
    LaunchResult launch_with(std::string_view kernel, const Shape& shape, const std::vector<Argument>& arguments);

    /// Number of findings of `kind`.
    [[nodiscard]] std::uint64_t count(FindingKind kind) const;

    AddressSpace memory;
    Report report;
    Options options;
    std::string printed;
    [[nodiscard]] const LoadedModule& module() const noexcept { return *module_; }

private:
    std::unique_ptr<LoadedModule> module_;
};

}  // namespace tessera::emulator::test
