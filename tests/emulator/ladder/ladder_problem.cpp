#include "ladder_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace tessera::ladder {
namespace {

struct Format {
    unsigned significand_bits;
    unsigned exponent_bits;

    std::uint32_t infinity() const { return ((1U << exponent_bits) - 1) << significand_bits; }
    std::uint32_t sign() const { return 1U << (significand_bits + exponent_bits); }
};

constexpr Format format_of(ElementType type)
{
    switch (type) {
        case ElementType::f16: return {10, 5};
        case ElementType::bf16: return {7, 8};
        default: break;
    }
    return {23, 8};
}

enum class Operand : std::uint8_t { a, b, addend };

/// Biased exponents, first and last.
struct Range {
    std::uint32_t first;
    std::uint32_t last;
};

constexpr Range exponents(Data data, ElementType type, Operand operand)
{
    const bool small = type == ElementType::f16;
    switch (data) {
        case Data::near_one: return small ? Range{11, 16} : Range{123, 128};
        case Data::cancelling: return small ? Range{8, 20} : Range{117, 137};
        case Data::tiny:
            if (operand == Operand::b) {
                return small ? Range{5, 15} : Range{100, 140};
            }
            return small ? Range{0, 3} : Range{0, 40};
        case Data::wide:
        case Data::special: break;
    }
    return small ? Range{0, 30} : Range{67, 187};
}

constexpr std::array types{ElementType::f32, ElementType::f16, ElementType::bf16};
constexpr std::array all_data{Data::near_one, Data::wide, Data::tiny, Data::cancelling, Data::special};
constexpr std::array activations{Activation::none, Activation::relu};

std::string_view name(Data data)
{
    switch (data) {
        case Data::near_one: return "near-one";
        case Data::wide: return "wide";
        case Data::tiny: return "tiny";
        case Data::cancelling: return "cancelling";
        case Data::special: return "special";
    }
    return "unknown";
}

std::string_view name(Addend addend)
{
    switch (addend) {
        case Addend::none: return "none";
        case Addend::separate: return "separate";
        case Addend::in_place: return "in-place";
    }
    return "unknown";
}

std::string_view name(BiasAxis axis)
{
    switch (axis) {
        case BiasAxis::none: return "none";
        case BiasAxis::per_row: return "per-row";
        case BiasAxis::per_column: return "per-column";
    }
    return "unknown";
}

/// Around the edges of every rung's tile, with all other parameters drawn at random.
Problem random_problem(Random& random)
{
    constexpr std::array<std::int64_t, 9> extents{1, 7, 16, 31, 32, 33, 64, 65, 128};
    constexpr std::array<std::int64_t, 8> depths{1, 8, 16, 31, 32, 33, 64, 100};
    constexpr std::array<std::int64_t, 4> paddings{0, 0, 4, 3};
    constexpr std::array<float, 4> scales{1, 0.5F, -1.375F, 0};
    Problem problem;
    problem.m = random.pick(extents);
    problem.n = random.pick(extents);
    problem.k = random.pick(depths);
    problem.batches = random.below(4) == 0 ? 3 : 1;
    problem.inputs_shared = random.below(2) == 0;
    problem.input = random.pick(types);
    problem.output = random.pick(types);
    for (bool& row_major : problem.row_major) {
        row_major = random.below(2) == 0;
    }
    problem.padding = random.pick(paddings);
    problem.alpha = scales[random.below(8) == 0 ? 3 : random.below(3)];
    problem.addend = static_cast<Addend>(random.below(3));
    problem.beta = problem.addend == Addend::none ? 0 : random.pick(scales);
    problem.bias = std::array{BiasAxis::none, BiasAxis::per_row, BiasAxis::per_column}[random.below(3)];
    problem.bias_type = random.pick(types);
    problem.activation = random.pick(activations);
    problem.data = random.pick(all_data);
    problem.seed = random();
    return problem;
}

/// All NaN.
HostBatch empty_batch(const Problem& problem, std::int64_t rows, std::int64_t columns, std::int64_t count,
                      bool row_major, ElementType type)
{
    HostBatch batch;
    batch.rows = rows;
    batch.columns = columns;
    batch.count = count;
    batch.row_major = row_major;
    batch.type = type;
    const std::int64_t vectors = row_major ? rows : columns;
    batch.leading_dimension = std::max<std::int64_t>(1, (row_major ? columns : rows) + problem.padding);
    const std::int64_t elements = vectors * batch.leading_dimension;
    batch.batch_stride = count == 1 ? 0 : elements;
    batch.bytes.assign(static_cast<std::size_t>(elements * count) * size_of(type), std::byte{0xFF});
    return batch;
}

std::uint32_t random_element(Random& random, Data data, ElementType type, Operand operand)
{
    const Format format = format_of(type);
    const Range range = exponents(data, type, operand);
    const std::uint64_t bits = random();
    const auto exponent = static_cast<std::uint32_t>(range.first + (bits >> 32) % (range.last - range.first + 1));
    const auto significand = static_cast<std::uint32_t>(bits) & ((1U << format.significand_bits) - 1);
    const std::uint32_t sign = bits >> 63 != 0 ? format.sign() : 0;
    if (data == Data::special && (bits >> 24 & 0x3FU) == 0) {
        const std::array<std::uint32_t, 4> values{0, format.infinity(), format.infinity() - 1,
                                                  format.infinity() | 1U << (format.significand_bits - 1)};
        return sign | values[bits >> 60 & 3U];
    }
    return sign | exponent << format.significand_bits | significand;
}

void fill(Random& random, HostBatch& batch, Data data, Operand operand)
{
    const auto at = [&](std::int64_t matrix, std::int64_t row, std::int64_t column) {
        const std::int64_t index =
            batch.row_major ? row * batch.leading_dimension + column : column * batch.leading_dimension + row;
        return batch.bytes.data() + static_cast<std::size_t>(matrix * batch.batch_stride + index) * size_of(batch.type);
    };
    const std::uint32_t negation = format_of(batch.type).sign();
    for (std::int64_t matrix = 0; matrix < batch.count; ++matrix) {
        for (std::int64_t row = 0; row < batch.rows; ++row) {
            for (std::int64_t column = 0; column < batch.columns; ++column) {
                std::uint32_t bits = random_element(random, data, batch.type, operand);
                const std::int64_t k = operand == Operand::a ? column : row;
                if (data == Data::cancelling && operand != Operand::addend && k % 2 == 1) {
                    const bool is_a = operand == Operand::a;
                    std::uint32_t before = 0;
                    std::memcpy(&before, is_a ? at(matrix, row, k - 1) : at(matrix, k - 1, column),
                                size_of(batch.type));
                    bits = is_a ? (before ^ negation) ^ 1U : before;
                }
                std::memcpy(at(matrix, row, column), &bits, size_of(batch.type));
            }
        }
    }
}

}  // namespace

std::uint64_t Random::operator()()
{
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t value = state_;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
    return value ^ (value >> 31);
}

std::string Problem::describe() const
{
    std::string orders;
    for (const bool row : row_major) {
        orders += row ? 'r' : 'c';
    }
    return fmt::format(
        "{}x{}x{} batches={}{} {}->{} orders={} padding={} alpha={} beta={} c={} bias={}:{} act={} data={}", m, n, k,
        batches, inputs_shared ? "(shared)" : "", to_string(input), to_string(output), orders, padding, alpha, beta,
        name(addend), name(bias), to_string(bias_type), to_string(activation), name(data));
}

std::vector<Problem> problems()
{
    std::vector<Problem> all;
    Random random(2026);

    // Whole tiles of every rung, in all orders and types: these run the entry points without edge checks.
    for (const ElementType type : types) {
        for (unsigned orders = 0; orders < 4; ++orders) {
            Problem problem;
            problem.m = problem.n = 64;
            problem.k = 64;
            problem.input = problem.output = type;
            problem.row_major = {(orders & 1U) == 0, (orders & 2U) == 0, true, true};
            problem.data = all_data[(orders + static_cast<unsigned>(type)) % all_data.size()];
            problem.seed = random();
            all.push_back(problem);
        }
    }

    // Enough CTAs that the library chooses the large and the medium tile on a device with 132 SMs.
    for (const std::int64_t batches : {132, 66}) {
        for (unsigned orders = 0; orders < 4; ++orders) {
            for (const bool whole : {true, false}) {
                Problem problem;
                problem.m = whole ? 128 : 125;
                problem.n = whole ? 128 : 122;
                problem.k = whole ? 24 : 19;
                problem.batches = batches;
                problem.inputs_shared = true;
                problem.row_major = {(orders & 1U) == 0, (orders & 2U) == 0, true, true};
                if (!whole) {  // f32 has entry points of its own: the two other types share the rest
                    problem.input = types[orders % 3];
                    problem.row_major[3] = false;
                }
                problem.data = orders == 0 ? Data::cancelling : Data::wide;
                problem.seed = random();
                problem.only_register_blocked = true;
                all.push_back(problem);
            }
        }
    }

    for (int i = 0; i < 200; ++i) {
        all.push_back(random_problem(random));
    }

    for (const ElementType type : types) {  // k = 0 leaves the epilogue
        Problem problem = random_problem(random);
        problem.k = 0;
        problem.input = problem.output = type;
        all.push_back(problem);
    }
    return all;
}

std::vector<Problem> activation_problems()
{
    std::vector<Problem> all;
    for (const Activation activation : {Activation::gelu, Activation::silu}) {
        for (const ElementType output : types) {
            Problem problem;
            problem.m = static_cast<std::int64_t>(activation_arguments().size());
            problem.output = output;
            problem.activation = activation;
            all.push_back(problem);
        }
    }
    return all;
}

std::vector<std::uint32_t> activation_arguments()
{
    constexpr std::uint32_t sign = 0x80000000U;
    std::vector<std::uint32_t> arguments{0,          sign, 1, sign | 1, 0x007FFFFFU, 0x7F800000U, sign | 0x7F800000U,
                                         0x7FC00000U};
    Random random(7);
    // Magnitudes from 2^-8 to 16, where both functions are curved, and, one in eight, any magnitude up to 2^60.
    while (arguments.size() < 512) {
        const std::uint64_t bits = random();
        const auto significand = static_cast<std::uint32_t>(bits & 0x7FFFFFU);
        const auto exponent =
            static_cast<std::uint32_t>(arguments.size() % 8 == 0 ? random.below(188) : 119 + random.below(12));
        arguments.push_back((bits >> 63 != 0 ? sign : 0U) | exponent << 23 | significand);
    }
    return arguments;
}

HostOperands::HostOperands(const Problem& problem)
{
    Random random(problem.seed);
    const auto& order = problem.row_major;
    const std::int64_t inputs = problem.inputs_shared ? 1 : problem.batches;
    a = empty_batch(problem, problem.m, problem.k, inputs, order[0], problem.input);
    b = empty_batch(problem, problem.k, problem.n, inputs, order[1], problem.input);
    d = empty_batch(problem, problem.m, problem.n, problem.batches, order[3], problem.output);
    if (problem.activation == Activation::gelu || problem.activation == Activation::silu) {
        const std::vector<std::uint32_t> arguments = activation_arguments();
        std::memcpy(a.bytes.data(), arguments.data(), a.bytes.size());
        const float one = 1;
        std::memcpy(b.bytes.data(), &one, sizeof one);
        return;
    }
    fill(random, a, problem.data, Operand::a);
    fill(random, b, problem.data, Operand::b);
    if (problem.addend == Addend::separate) {
        c = empty_batch(problem, problem.m, problem.n, inputs, order[2], problem.output);
        fill(random, c, problem.data, Operand::addend);
    } else if (problem.addend == Addend::in_place) {
        fill(random, d, problem.data, Operand::addend);
    }
    if (problem.bias != BiasAxis::none) {
        HostBatch vector = empty_batch(problem, 1, problem.bias == BiasAxis::per_row ? problem.m : problem.n, 1, true,
                                       problem.bias_type);
        fill(random, vector, problem.data, Operand::addend);
        bias = std::move(vector.bytes);
    }
}

}  // namespace tessera::ladder
