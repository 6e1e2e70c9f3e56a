#pragma once

// Runs PTX text on the emulated device and looks at memory and the report: what the tests of instructions stand on.

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
};

/// "  .version ... .target ... .address_size 64" for a device, before the rest of a test's module.
[[nodiscard]] inline std::string module_text(std::string_view target, std::string_view body)
{
    return ".version 9.0\n.target " + std::string(target) + "\n.address_size 64\n" + std::string(body);
}

/// One module on one emulated device with memory of its own.
class PtxRun {
public:
    explicit PtxRun(std::string_view ptx, std::string_view device = "b200")
    {
        const DeviceModel* model = find_device_model(device);
        if (model == nullptr) {
            throw std::runtime_error("no such device: " + std::string(device));
        }
        module_ = std::make_unique<LoadedModule>(ptx, *model, 0, memory);
        options.threads = 2;
    }

    /// New device memory with these values; its address.
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
    std::uint64_t uninitialized(std::size_t bytes)
    {
        const std::uint64_t address = memory.allocate(bytes, MemoryKind::device, 0);
        if (address == 0) {
            throw std::runtime_error("no memory");
        }
        return address;
    }
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
        const KernelInfo* info = module_->find_kernel(kernel);
        if (info == nullptr) {
            throw std::runtime_error("no kernel " + std::string(kernel));
        }
        if (info->parameters.size() != sizeof...(Arguments)) {
            throw std::runtime_error("wrong number of arguments");
        }
        LaunchRequest request;
        request.grid = shape.grid;
        request.block = shape.block;
        request.cluster = shape.cluster;
        request.explicit_cluster = shape.cluster.count() > 1;
        request.dynamic_shared = shape.dynamic_shared;
        request.cooperative = shape.cooperative;
        request.parameters.resize(info->parameter_bytes);
        std::size_t next = 0;
        [[maybe_unused]] const auto put = [&](const auto& argument) {
            const ParameterLayout& place = info->parameters[next++];
            if (place.size != sizeof argument) {
                throw std::runtime_error("argument " + std::to_string(next) + " has the wrong size");
            }
            std::memcpy(request.parameters.data() + place.offset, &argument, sizeof argument);
        };
        (put(arguments), ...);
        request.print = [this](std::string_view text) { printed += text; };
        return emulator::launch(*module_, *info, request, options, memory, report);
    }

    /// Number of findings of `kind`.
    [[nodiscard]] std::uint64_t count(FindingKind kind) const
    {
        std::uint64_t sum = 0;
        for (const Finding& finding : report.findings()) {
            sum += finding.kind == kind ? finding.count : 0;
        }
        return sum;
    }

    AddressSpace memory;
    Report report;
    Options options;
    std::string printed;
    [[nodiscard]] const LoadedModule& module() const noexcept { return *module_; }

private:
    std::unique_ptr<LoadedModule> module_;
};

}  // namespace tessera::emulator::test
