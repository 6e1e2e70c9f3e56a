#pragma once

/// Fixture of the tests of products: f32 operands, and the kernel parameters of the launches.

#include <cstring>
#include <string>
#include <vector>

#include "clean_runtime.hpp"
#include "kernels/gemm/gemm_arguments.hpp"

namespace tessera::test {

struct GemmRuntime : CleanRuntime {
    GemmRuntime() { fake::keep_argument_bytes(sizeof(kernels::GemmArguments)); }

    Stream stream;
    DeviceBuffer<float> a{stream, 10'000};
    DeviceBuffer<float> b{stream, 10'000};
    DeviceBuffer<float> c{stream, 10'000};
    DeviceBuffer<float> d{stream, 10'000};

    /// The kernel parameters of all launches so far.
    static std::vector<kernels::GemmArguments> arguments()
    {
        std::vector<kernels::GemmArguments> all;
        for (const fake::Launch& launch : fake::launches()) {
            REQUIRE(launch.argument.size() >= sizeof(kernels::GemmArguments));
            std::memcpy(&all.emplace_back(), launch.argument.data(), sizeof(kernels::GemmArguments));
        }
        return all;
    }

    static MatrixOperand operand(DeviceBuffer<float>& buffer, const OperandLayout& shape)
    {
        return MatrixOperand::from_raw_device_pointer(buffer.data(), ElementType::f32, shape);
    }
};

/// The text of a refusal by Gemm::launch.
inline std::string refused(const std::string& code, const std::string& text)
{
    return "tessera: " + code + " in Gemm::launch\n  " + text;
}

}  // namespace tessera::test
