// Runs every rung of the Blackwell ladder on one product of bf16 matrices, D = A * B^T, and checks each result against
// float64 on sampled rows and columns.
//
//     blackwell_ladder [m n k [rung ...]]          on a B200 or B300
//     tessera-emu --device b200 --statistics text -- blackwell_ladder 1024 1024 512
//                                                  anywhere; prints bytes, MMAs and waits of each rung
//
// Rungs are configurations of the library's own kernel, so this example uses internal headers. A program launches
// `Gemm::launch`, which has better configurations than these.
#include <tessera/tessera.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/error_bound.hpp"
#include "common/run_example.hpp"
#include "gemm/blackwell/blackwell_launch.hpp"
#include "gemm/gemm_operands.hpp"
#include "rungs.hpp"

namespace {

using tessera::bf16;

struct Problem {
    std::size_t m = 1024;
    std::size_t n = 1024;
    std::size_t k = 512;
};

/// Multiples of 1/64 in [-1, 1): exact in bf16, and their products in fp32.
std::vector<bf16> random_matrix(std::size_t elements, std::uint64_t seed)
{
    std::vector<bf16> matrix(elements);
    for (bf16& element : matrix) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;  // Knuth's linear congruential generator
        element = bf16(static_cast<float>(static_cast<int>(seed >> 57) - 64) / 64.0F);
    }
    return matrix;
}

/// One element in float64, and the largest error that a sum in fp32 may have.
///
/// The tensor core adds 16 products and the sum so far at a time. It truncates each of the 17 terms to 2^-25 of the
/// largest and the result to 2^-23: (17 + 4) * 2^-25 of the terms' magnitude for 16 products. That is below the bound
/// of k roundings.
struct Expected {
    double value = 0;
    double bound = 0;
};
Expected expected_element(const Problem& problem, const std::vector<bf16>& a, const std::vector<bf16>& b,
                          std::size_t row, std::size_t column)
{
    Expected expected;
    double magnitude = 0;
    for (std::size_t i = 0; i < problem.k; ++i) {
        const double product = static_cast<double>(a[row * problem.k + i]) * b[column * problem.k + i];
        expected.value += product;
        magnitude += std::fabs(product);
    }
    const auto roundings = static_cast<double>(problem.k < 16 ? 16 : problem.k);
    expected.bound = examples::gamma(roundings, examples::f32_roundoff) * magnitude;
    return expected;
}

/// The largest error of D divided by its bound; D is right if this is at most 1. Checks 4 rows and 4 columns.
double largest_error(const Problem& problem, const std::vector<bf16>& a, const std::vector<bf16>& b,
                     const std::vector<float>& d)
{
    double largest = 0;
    const auto check = [&](std::size_t row, std::size_t column) {
        const Expected expected = expected_element(problem, a, b, row, column);
        const double error = std::fabs(d[row * problem.n + column] - expected.value);
        const double relative = error == 0 ? 0 : error / expected.bound;
        largest = relative > largest || std::isnan(relative) ? relative : largest;
    };
    constexpr std::size_t samples = 4;
    for (std::size_t sample = 0; sample < samples; ++sample) {
        const std::size_t row = sample * (problem.m - 1) / (samples - 1);
        const std::size_t column = sample * (problem.n - 1) / (samples - 1);
        for (std::size_t j = 0; j < problem.n; ++j) {
            check(row, j);
        }
        for (std::size_t i = 0; i < problem.m; ++i) {
            check(i, column);
        }
    }
    return largest;
}

using Rung = tessera::kernels::BlackwellKernel;

/// Launches D = A * B on a rung, as Gemm::launch does on its own configurations.
void launch(tessera::StreamRef stream, const Rung& rung, const tessera::detail::GemmOperands& operands)
{
    namespace detail = tessera::detail;
    const tessera::GemmProblem problem = detail::problem_of(operands, {});
    const auto& device = tessera::Device(stream.device()).properties();
    const detail::CallStatus ended = detail::launch_blackwell(
        stream, problem, rung,
        {.variant = tessera::Variant::blackwell, .band = detail::blackwell_band(*rung.config, device.sm_count)},
        detail::arguments_of(operands, {}), {});
    if (ended.status != cudaSuccess) {
        throw std::runtime_error(std::string(ended.call) + ": " + cudaGetErrorString(ended.status));
    }
}

int run(const Problem& problem, const std::vector<const Rung*>& rungs)
{
    if (tessera::Device::count() == 0) {
        std::fputs("blackwell_ladder: skipped, because this machine has no CUDA device\n", stderr);
        return examples::exit_no_device;
    }
    const auto& device = tessera::Device::current().properties();
    if (device.compute_capability_major != 10) {
        std::fprintf(stderr, "blackwell_ladder: skipped, because %s is not of compute capability 10\n",
                     device.name.c_str());
        return examples::exit_no_device;
    }
    const auto a = random_matrix(problem.m * problem.k, 1);
    const auto b = random_matrix(problem.n * problem.k, 2);

    const tessera::Stream stream;
    const auto device_a = tessera::DeviceBuffer<bf16>::from_host(stream, a);
    const auto device_b = tessera::DeviceBuffer<bf16>::from_host(stream, b);
    tessera::DeviceBuffer<float> device_d(stream, problem.m * problem.n);
    const std::vector<float> poison(problem.m * problem.n, NAN);

    std::printf("%zux%zux%zu, bf16 -> f32, on %s\n%-28s %s\n", problem.m, problem.n, problem.k, device.name.c_str(),
                "rung", "largest error / bound");
    const auto m = static_cast<std::int64_t>(problem.m);
    const auto n = static_cast<std::int64_t>(problem.n);
    const auto k = static_cast<std::int64_t>(problem.k);
    bool all_right = true;
    for (const Rung* rung : rungs) {
        device_d.copy_from(poison);
        launch(stream, *rung,
               {tessera::detail::operand_of(device_a.matrix(m, k)),
                tessera::detail::operand_of(device_b.matrix(n, k).transposed()),
                tessera::detail::operand_of(device_d.matrix(m, n))});
        const double error = largest_error(problem, a, b, device_d.to_vector());
        all_right = all_right && error <= 1.0;
        std::printf("%-28s %.4f%s\n", rung->config->name, error, error <= 1.0 ? "" : "  WRONG");
        std::fflush(stdout);
    }
    return all_right ? examples::exit_success : examples::exit_failure;
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_example("blackwell_ladder", [&] {
        Problem problem;
        if (argc > 3) {
            problem = {std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                       std::strtoull(argv[3], nullptr, 10)};
        }
        if (argc == 2 || argc == 3 || problem.m == 0 || problem.n == 0 || problem.n % 4 != 0 || problem.k % 8 != 0) {
            std::fputs(
                "usage: blackwell_ladder [m n k [rung ...]]\n"
                "  n is a multiple of 4 and k of 8, so that TMA can address the matrices\n",
                stderr);
            return examples::exit_usage;
        }
        std::vector<const Rung*> chosen;
        for (int i = 4; i < argc; ++i) {
            for (const Rung& rung : blackwell_ladder::rungs()) {
                if (rung.name() == argv[i]) {
                    chosen.push_back(&rung);
                }
            }
            if (chosen.size() != static_cast<std::size_t>(i) - 3) {
                std::fprintf(stderr, "blackwell_ladder: no rung is called '%s'; there are", argv[i]);
                for (const Rung& rung : blackwell_ladder::rungs()) {
                    std::fprintf(stderr, " %s", rung.config->name);
                }
                std::fputs("\n", stderr);
                return examples::exit_usage;
            }
        }
        if (chosen.empty()) {
            for (const Rung& rung : blackwell_ladder::rungs()) {
                chosen.push_back(&rung);
            }
        }
        return run(problem, chosen);
    });
}
