/// Scenario 8: a product of numbers whose rows and columns differ in size, in bf16 and in 8 bits, and how much precision each loses.

#include <algorithm>
#include <numeric>

#include "common/error_bound.hpp"
#include "scenarios/operands.hpp"
#include "tessera/gemm.hpp"

namespace tessera::scenarios {
namespace {

constexpr float largest_e4m3 = 448;

/// A matrix of 8-bit numbers: value(i, k) * scale(i) is what it stands for. Lines are A's rows, or B's columns.
struct Quantized {
    std::vector<f8e4m3> values;
    std::vector<float> scales;
};

/// Quantizes `lines` lines of `length` elements, with a scale for each line, or one for all.
Quantized quantize(const std::vector<float>& values, std::int64_t lines, bool per_line)
{
    const auto length = static_cast<std::ptrdiff_t>(values.size()) / lines;
    const auto largest = [](auto first, auto last) {
        return std::accumulate(first, last, 0.0F,
                               [](float left, float right) { return std::max(left, std::fabs(right)); });
    };
    Quantized result;
    for (std::ptrdiff_t line = 0; line < lines; ++line) {
        const auto begin = values.begin() + line * length;
        if (per_line || line == 0) {
            result.scales.push_back(
                (per_line ? largest(begin, begin + length) : largest(values.begin(), values.end())) / largest_e4m3);
        }
        const float scale = result.scales.back();
        std::transform(begin, begin + length, std::back_inserter(result.values),
                       [&](float value) { return f8e4m3(value / scale); });
    }
    return result;
}

/// The float64 product at sampled elements, and how far a result in reduced precision may be.
class Sampled {
public:
    Sampled(const std::vector<float>& a, const std::vector<float>& b, std::int64_t k)
        : a_(a), b_(b), k_(static_cast<std::size_t>(k))
    {}

    struct Errors {
        double mean = 0;        // root mean square, of the sum of magnitudes |a| * |b|
        double largest = 0;     // of the same
        double over_bound = 0;  // of the bound
    };

    /// @param of_a, of_b  what the rounded operands stand for: value(line, k)
    /// @param loss        of the sum of the rounded products' magnitudes, that the adding may cost
    template <class OfA, class OfB>
    Errors judge(const std::vector<bf16>& d, const OfA& of_a, const OfB& of_b, double loss) const
    {
        const std::size_t rows = a_.size() / k_, columns = b_.size() / k_;
        const std::size_t step_m = std::max<std::size_t>(rows / samples, 1),
                          step_n = std::max<std::size_t>(columns / samples, 1);
        Errors errors;
        double squares = 0, count = 0;
        for (std::size_t i = step_m - 1; i < rows; i += step_m) {
            for (std::size_t j = step_n - 1; j < columns; j += step_n) {
                double sum = 0, magnitude = 0, quantization = 0, rounded_magnitude = 0;
                for (std::size_t l = 0; l < k_; ++l) {
                    const double left{a_[i * k_ + l]}, right{b_[j * k_ + l]};
                    const double rounded = of_a(i, l) * of_b(j, l);
                    sum += left * right;
                    magnitude += std::fabs(left * right);
                    rounded_magnitude += std::fabs(rounded);
                    quantization += std::fabs(rounded - left * right);
                }
                const double error = std::fabs(double{float(d[i * columns + j])} - sum);
                const double before = quantization + loss * rounded_magnitude;
                const double bound = before + examples::rounding_error(std::fabs(sum) + before, ElementType::bf16);
                const double ratio = std::isnan(error) ? std::numeric_limits<double>::infinity() : error / bound;
                errors.over_bound = std::max(errors.over_bound, ratio);
                errors.largest = std::max(errors.largest, error / magnitude);
                squares += error / magnitude * (error / magnitude);
                ++count;
            }
        }
        errors.mean = std::sqrt(squares / count);
        return errors;
    }

private:
    static constexpr std::size_t samples = 48;  // rows, and columns
    const std::vector<float>& a_;               // (m, k)
    const std::vector<float>& b_;               // (n, k): B's columns
    std::size_t k_;
};

/// Normal numbers; each line is multiplied by a power of two from 2^-8 to 2^8, as tokens and channels differ in a trained network.
std::vector<float> uneven_lines(const Context& context, std::int64_t lines, std::int64_t length, std::uint64_t sequence)
{
    auto values = normal_values<float>(context, lines * length, sequence);
    bench::RandomNumbers random(context.seed, sequence + 100);
    for (std::int64_t line = 0; line < lines; ++line) {
        const int exponent = static_cast<int>(random.below(17)) - 8;
        for (std::int64_t i = 0; i < length; ++i) {
            float& value = values[static_cast<std::size_t>(line * length + i)];
            value = std::ldexp(value, exponent);
        }
    }
    return values;
}

}  // namespace

Outcome run_low_precision(const Context& context)
{
    const std::int64_t m = context.full ? 8192 : 128, n = context.full ? 8192 : 128, k = context.full ? 8192 : 256;
    const DeviceProperties& device = context.device.properties();
    const GemmProblem in_8_bits{.m = m,
                                .n = n,
                                .k = k,
                                .input = ElementType::f8e4m3,
                                .output = ElementType::bf16,
                                .b = {.row_major = false},
                                .row_scales = true,
                                .column_scales = true};
    if (device.compute_capability() < 89) {
        throw Skip(
            fmt::format("it needs tensor cores for 8-bit numbers, compute capability 8.9 or later, and {} has {}.{}",
                        device.name, device.compute_capability_major, device.compute_capability_minor));
    }
    Outcome outcome;
    outcome.work = fmt::format("{}x{}x{}; rows of A and columns of B differ in size by up to 2^16", m, n, k);

    const Stream stream(context.device);
    const auto host_a = uneven_lines(context, m, k, 1);
    const auto host_b = uneven_lines(context, n, k, 2);  // B's columns
    const auto rounded = [](const std::vector<float>& values) {
        std::vector<bf16> result;
        std::transform(values.begin(), values.end(), std::back_inserter(result),
                       [](float value) { return bf16(value); });
        return result;
    };
    const auto a16 = rounded(host_a), b16 = rounded(host_b);
    const auto device_a16 = DeviceBuffer<bf16>::from_host(stream, a16);
    const auto device_b16 = DeviceBuffer<bf16>::from_host(stream, b16);
    DeviceBuffer<bf16> d(stream, static_cast<std::size_t>(m * n));

    struct Operands {
        Quantized a, b;
        DeviceBuffer<f8e4m3> device_a, device_b;
        DeviceBuffer<float> scales_a, scales_b;
    };
    const auto operands = [&](bool per_line) {
        Quantized a = quantize(host_a, m, per_line), b = quantize(host_b, n, per_line);
        auto device_a = DeviceBuffer<f8e4m3>::from_host(stream, a.values);
        auto device_b = DeviceBuffer<f8e4m3>::from_host(stream, b.values);
        auto scales_a = DeviceBuffer<float>::from_host(stream, a.scales);
        auto scales_b = DeviceBuffer<float>::from_host(stream, b.scales);
        return Operands{std::move(a),        std::move(b),        std::move(device_a),
                        std::move(device_b), std::move(scales_a), std::move(scales_b)};
    };
    const Operands by_line = operands(true), by_matrix = operands(false);
    const auto multiply_16 = [&] {
        Gemm::launch(stream, device_a16.matrix(m, k), device_b16.matrix(k, n, ColumnMajor{}), d.matrix(m, n));
    };
    const auto multiply_8 = [&](const Operands& of, Fp8Accumulation accumulation) {
        Gemm::launch(stream, of.device_a.matrix(m, k), of.device_b.matrix(k, n, ColumnMajor{}), d.matrix(m, n),
                     {.scale_a = of.scales_a.span(), .scale_b = of.scales_b.span(), .fp8_accumulation = accumulation});
    };
    const auto entry = [&](const auto& multiply) {
        return [&](Recorder& recorder) {
            recorder.on_stream("product", stream, multiply);
            stream.synchronize();
        };
    };
    const auto multiply_by_line = [&] { multiply_8(by_line, Fp8Accumulation::two_level); };
    measure(context, outcome, entry(multiply_16), entry(multiply_by_line));

    const Sampled reference(host_a, host_b, k);
    const auto of_16 = [&](const std::vector<bf16>& values) {
        return [&](std::size_t line, std::size_t l) {
            return double{float(values[line * static_cast<std::size_t>(k) + l])};
        };
    };
    const auto of_8 = [&](const Quantized& matrix) {
        return [&](std::size_t line, std::size_t l) {
            const float scale = matrix.scales.size() == 1 ? matrix.scales[0] : matrix.scales[line];
            return double{float(matrix.values[line * static_cast<std::size_t>(k) + l])} * double{scale};
        };
    };
    const auto result_of = [&](const auto& multiply) {
        d.fill(stream, poison<bf16>());
        multiply();
        return d.to_vector();
    };
    const auto add_figures = [&](const char* name, const Sampled::Errors& errors) {
        outcome.figures.push_back({fmt::format("{}: root mean square error", name), errors.mean, ""});
        outcome.figures.push_back({fmt::format("{}: largest error", name), errors.largest, ""});
    };
    const double of_sums = examples::gamma(static_cast<double>(k) + 4, 2 * examples::f32_roundoff);
    const double of_8_bit_sums = of_sums + examples::float8_tensor_core_loss(k);
    const char* const bound = "the operands' rounding, element by element, that of the sums, and that of D";
    for (const auto& [name, times] :
         {std::pair("bf16", &outcome.baseline), std::pair("f8e4m3, scales per row and column", &outcome.optimized)}) {
        outcome.figures.push_back({name,
                                   2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) /
                                       times->phases[0].device_seconds * 1e-12,
                                   "TFLOP/s"});
    }
    const auto errors_16 = reference.judge(result_of(multiply_16), of_16(a16), of_16(b16), of_sums);
    add_figures("bf16", errors_16);
    outcome.checks.push_back({"bf16 against float64", bound, errors_16.over_bound});
    const auto errors_8 = reference.judge(result_of(multiply_by_line), of_8(by_line.a), of_8(by_line.b), of_8_bit_sums);
    add_figures("f8e4m3, scales per row and column", errors_8);
    outcome.checks.push_back({"f8e4m3 with scales per row and column against float64", bound, errors_8.over_bound});
    const auto errors_of_one = reference.judge(result_of([&] { multiply_8(by_matrix, Fp8Accumulation::two_level); }),
                                               of_8(by_matrix.a), of_8(by_matrix.b), of_8_bit_sums);
    add_figures("f8e4m3, one scale for a matrix", errors_of_one);
    outcome.checks.push_back({"f8e4m3 with one scale for a matrix against float64", bound, errors_of_one.over_bound});
    // Sums in the tensor core alone: their loss grows with K, and has no check.
    add_figures("f8e4m3, scales per row and column, fast sums",
                reference.judge(result_of([&] { multiply_8(by_line, Fp8Accumulation::fast); }), of_8(by_line.a),
                                of_8(by_line.b), of_8_bit_sums));
    outcome.notes.push_back("an element's error is relative to the sum of |a * b| of its row and column");
    const std::string text = GemmPlan::explain(in_8_bits, device);
    const std::size_t runs = text.find("runs: ");
    outcome.notes.push_back("in 8 bits " + text.substr(runs, text.find('\n', runs) - runs));
    return outcome;
}

}  // namespace tessera::scenarios
