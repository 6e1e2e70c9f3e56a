/// The mma.sync kernel's bits: one line with a checksum of D for each pair of types, order, configuration and split of K, for
/// comparing devices.
///
///     mma_checksums                              prints them
///     mma_checksums --check h200_checksums.txt   compares with a file that it printed, and prints what differs
///     mma_checksums --f16-sums                   prints those of f16 with sums in f16; with --check as well
///
/// The elements have all signs and mantissas and a range of exponents, so that sums are cut off and rounded in the tensor
/// core, and a device that does so differently has other bits.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "gemm/gemm_operands.hpp"
#include "gemm/mma/mma_launch.hpp"
#include "kernels/mma/mma_kernels.hpp"
#include "support/checksums.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

using namespace test;
using detail::KernelChoice;

constexpr std::int64_t m = 70;
constexpr std::int64_t n = 72;
constexpr std::int64_t shorter_k = 280;
constexpr std::int64_t longer_k = 600;  // sums in f16 are split, too

struct Format {
    ElementType type;
    int mantissa_bits;  // stored
    int exponent_bits;
    int first_exponent;  // biased, of those that are used
    int exponents;
};

Format format_of(ElementType type, F16Accumulation sums)
{
    if (sums == F16Accumulation::in_f16) {
        return {type, 10, 5, 6, 10};  // no sum of 64 products overflows
    }
    switch (type) {
        case ElementType::f16: return {type, 10, 5, 10, 10};
        case ElementType::bf16: return {type, 7, 8, 120, 14};
        case ElementType::f8e4m3: return {type, 3, 4, 1, 12};
        case ElementType::f8e5m2: return {type, 2, 5, 8, 14};
        default: break;
    }
    return {ElementType::tf32, 10, 8, 120, 14};
}

/// An operand in device memory, its elements without gaps, lines of a multiple of 16 bytes.
DeviceBuffer<std::byte> random_operand(StreamRef stream, const Format& format, std::int64_t elements,
                                       std::mt19937_64& engine)
{
    const ElementType type = format.type;
    const std::size_t size = size_of(type);
    std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * size);
    for (std::size_t at = 0; at < bytes.size(); at += size) {
        const std::uint64_t random = engine();
        const auto mantissa = random & ((1U << static_cast<unsigned>(format.mantissa_bits)) - 1);
        const auto exponent = static_cast<std::uint64_t>(format.first_exponent) +
                              (random >> 16U) % static_cast<std::uint64_t>(format.exponents);
        const auto sign = random >> 63U;
        std::uint64_t bits = ((sign << static_cast<unsigned>(format.exponent_bits)) | exponent)
                                 << static_cast<unsigned>(format.mantissa_bits) |
                             mantissa;
        bits <<= type == ElementType::tf32 ? 13U : 0U;
        for (std::size_t byte = 0; byte < size; ++byte) {
            bytes[at + byte] = static_cast<std::byte>(bits >> 8U * byte);
        }
    }
    return DeviceBuffer<std::byte>::from_host(stream, bytes);
}

MatrixOperand operand_of(DeviceBuffer<std::byte>& buffer, ElementType type, std::int64_t rows, std::int64_t columns,
                         const MatrixLayout& layout)
{
    MatrixOperand operand;
    operand.data = buffer.data();
    operand.type = type;
    operand.rows = rows;
    operand.columns = columns;
    operand.leading_dimension = layout.leading_dimension;
    operand.row_major = layout.row_major;
    operand.present = true;
    operand.device = buffer.device();
    return operand;
}

void require(const detail::CallStatus& ended)
{
    if (ended.status != cudaSuccess) {
        throw std::runtime_error(fmt::format("{}: {}", ended.call, cudaGetErrorString(ended.status)));
    }
}

void add_products(StreamRef stream, InputTypes input, F16Accumulation sums, bool a_row_major, bool b_row_major,
                  Results& results)
{
    const DeviceProperties& device = Device::current().properties();
    const std::int64_t k = sums == F16Accumulation::in_f16 ? longer_k : shorter_k;
    std::mt19937_64 engine(7);
    // Lines of whole 16 bytes, so that every configuration takes them.
    constexpr std::int64_t chunk = 16;
    const auto whole = [](std::int64_t run) { return (run + chunk - 1) / chunk * chunk; };
    GemmProblem problem{.m = m, .n = n, .k = k, .input = input, .output = ElementType::f32};
    problem.f16_accumulation = sums;
    problem.a.row_major = a_row_major;
    problem.a.leading_dimension = whole(a_row_major ? k : m);
    problem.b.row_major = b_row_major;
    problem.b.leading_dimension = whole(b_row_major ? n : k);
    problem = detail::resolved(problem);
    auto a =
        random_operand(stream, format_of(input.a, sums), problem.a.leading_dimension * (a_row_major ? m : k), engine);
    auto b =
        random_operand(stream, format_of(input.b, sums), problem.b.leading_dimension * (b_row_major ? k : n), engine);
    DeviceBuffer<std::byte> d(stream, static_cast<std::size_t>(m * n) * sizeof(float));

    std::vector<KernelChoice> choices;
    detail::for_each_mma_candidate(problem, device, [&](const KernelChoice& choice) {
        if (sums == F16Accumulation::in_f32 || kernels::mma_kernels(input)[choice.config].config->f16_sums) {
            choices.push_back(choice);
        }
    });
    for (const KernelChoice& choice : choices) {
        const detail::WorkspaceNeed need = detail::mma_workspace(problem, choice);
        DeviceBuffer<std::byte> partials(stream, need.partial_bytes);
        auto counters = DeviceBuffer<std::uint32_t>::from_host(stream, std::vector<std::uint32_t>(need.counters));
        const detail::GemmOperands operands{operand_of(a, input.a, m, k, problem.a),
                                            operand_of(b, input.b, k, n, problem.b),
                                            operand_of(d, problem.output, m, n, problem.d)};
        detail::EncodedLaunch launch;
        require(
            detail::encode_mma(launch, problem, device, choice, detail::arguments_of(operands, {}),
                               {.partials = reinterpret_cast<float*>(partials.data()), .arrivals = counters.data()}));
        require(detail::enqueue(launch, stream));
        std::vector<std::byte> bytes(d.size());
        d.copy_to(bytes);
        const std::string name =
            fmt::format("{} x {}, A {}, B {}, {}", to_string(input.a), to_string(input.b),
                        a_row_major ? "row-major" : "column-major", b_row_major ? "row-major" : "column-major",
                        detail::describe_mma(problem, choice));
        if (!results.emplace(name, fmt::format("{:016x}", checksum(bytes))).second) {
            throw std::logic_error("two products have one description: " + name);
        }
    }
}

Results compute(StreamRef stream, F16Accumulation sums)
{
    Results results;
    if (sums == F16Accumulation::in_f16) {
        for (const bool a_row_major : {true, false}) {
            for (const bool b_row_major : {true, false}) {
                add_products(stream, ElementType::f16, sums, a_row_major, b_row_major, results);
            }
        }
        return results;
    }
    constexpr ElementType types[]{ElementType::f16, ElementType::bf16, ElementType::tf32};
    std::vector<InputTypes> inputs(std::begin(types), std::end(types));
    for (const ElementType a : {ElementType::f8e4m3, ElementType::f8e5m2}) {
        for (const ElementType b : {ElementType::f8e4m3, ElementType::f8e5m2}) {
            inputs.emplace_back(a, b);
        }
    }
    for (const InputTypes input : inputs) {
        for (const bool a_row_major : {true, false}) {
            for (const bool b_row_major : {true, false}) {
                add_products(stream, input, sums, a_row_major, b_row_major, results);
            }
        }
    }
    return results;
}

int run(int argc, char** argv)
{
    CLI::App app("Checksums of what the mma.sync kernel computes, to compare devices by");
    std::string stored;
    app.add_option("--check", stored, "compare with the lines of this file, which this program printed");
    bool f16_sums = false;
    app.add_flag("--f16-sums", f16_sums, "products of f16 with sums in f16, instead of all with sums in f32");
    CLI11_PARSE(app, argc, argv);
    if (Device::count() == 0) {
        fmt::print(stderr, "mma_checksums: skipped, because this machine has no CUDA device\n");
        return 77;
    }
    Stream stream;
    const Results computed = compute(stream, f16_sums ? F16Accumulation::in_f16 : F16Accumulation::in_f32);
    if (stored.empty()) {
        for (const auto& [name, result] : computed) {
            fmt::print("{}  {}\n", result, name);
        }
        return 0;
    }
    return compare_checksums(read_results(stored), computed) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv)
try {
    return tessera::run(argc, argv);
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
