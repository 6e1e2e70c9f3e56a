// Tensor parallelism: two layers of a network, sharded over all GPUs. H = gelu(X * W1 + b1), Y = H * W2.
//
// The tokens are divided by rows, W1 by columns and W2 by rows. The first product gathers X while it multiplies; the second one adds up
// what all GPUs have and leaves each its rows of Y. H never leaves its GPU.
//
// Without arguments, a thread for each GPU of this machine. One process for each GPU, if torchrun or mpirun starts it:
//
//     torchrun --no-python --nproc-per-node 2 tensor_parallel
#include <tessera/distributed.hpp>
#include <tessera/tessera.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "common/exact_sum.hpp"
#include "common/run_example.hpp"

using namespace tessera;
using namespace tessera::distributed;

namespace {

constexpr std::int64_t tokens = 80;
constexpr std::int64_t width = 64;
constexpr std::int64_t hidden = 96;

/// A block of a row-major matrix.
template <class T>
std::vector<T> block(const std::vector<T>& matrix, std::int64_t columns, Share rows, Share part)
{
    std::vector<T> values;
    for (std::int64_t i = rows.begin; i < rows.begin + rows.size; ++i) {
        const auto row = matrix.begin() + i * columns + part.begin;
        values.insert(values.end(), row, row + part.size);
    }
    return values;
}

/// A value in float64, and how far a right result may be from it.
struct Bounded {
    double value;
    double error;
};

struct Network {
    std::vector<bf16> x = examples::random_values<bf16>(tokens * width, 1);
    std::vector<bf16> w1 = examples::random_values<bf16>(width * hidden, 2);
    std::vector<float> b1 = examples::random_values<float>(hidden, 3);
    std::vector<bf16> w2 = examples::random_values<bf16>(hidden * width, 4);

    Bounded h(std::int64_t token, std::int64_t column) const
    {
        double sum = b1[static_cast<std::size_t>(column)];
        double magnitude = std::fabs(sum);
        for (std::int64_t i = 0; i < width; ++i) {
            const double term = double{float(x[static_cast<std::size_t>(token * width + i)])} *
                                double{float(w1[static_cast<std::size_t>(i * hidden + column)])};
            sum += term;
            magnitude += std::fabs(term);
        }
        const double sum_error = examples::gamma(double{width} + 3, 2 * examples::f32_roundoff) * magnitude;
        const double value = examples::activate(sum, Activation::gelu);
        const double error = examples::activation_error(sum, sum_error, Activation::gelu);
        return {value, error + examples::rounding_error(std::fabs(value) + error, ElementType::bf16)};
    }

    /// Returns how many of these elements of Y are wrong.
    std::size_t wrong_elements(const std::vector<float>& y, Share rows, int ranks) const
    {
        std::size_t wrong = 0;
        for (std::int64_t i = 0; i < rows.size; ++i) {
            std::vector<Bounded> of_token;
            for (std::int64_t j = 0; j < hidden; ++j) {
                of_token.push_back(h(rows.begin + i, j));
            }
            for (std::int64_t column = 0; column < width; ++column) {
                double sum = 0;
                double magnitude = 0;
                double error = 0;
                for (std::int64_t j = 0; j < hidden; ++j) {
                    const double weight = double{float(w2[static_cast<std::size_t>(j * width + column)])};
                    const Bounded& input = of_token[static_cast<std::size_t>(j)];
                    sum += input.value * weight;
                    magnitude += (std::fabs(input.value) + input.error) * std::fabs(weight);
                    error += input.error * std::fabs(weight);
                }
                error += examples::gamma(double{hidden} + ranks + 3, 2 * examples::f32_roundoff) * magnitude;
                const double found = double{y[static_cast<std::size_t>(i * width + column)]};
                wrong += std::fabs(found - sum) <= error ? 0 : 1;
            }
        }
        return wrong;
    }
};

/// The work of one rank. Returns how many elements of its part of Y are wrong.
std::size_t multiply(const Communicator& communicator, const Network& network)
{
    const Share of_tokens = Share::of(tokens, communicator.size(), communicator.rank());
    const Share of_hidden = Share::of(hidden, communicator.size(), communicator.rank());
    const Stream stream(communicator.device());
    const auto x = DeviceBuffer<bf16>::from_host(stream, block(network.x, width, of_tokens, {0, width}));
    const auto w1 = DeviceBuffer<bf16>::from_host(stream, block(network.w1, hidden, {0, width}, of_hidden));
    const auto b1 = DeviceBuffer<float>::from_host(stream, block(network.b1, hidden, {0, 1}, of_hidden));
    const auto w2 = DeviceBuffer<bf16>::from_host(stream, block(network.w2, width, of_hidden, {0, width}));
    DeviceBuffer<bf16> h(stream, tokens * of_hidden.size);
    DeviceBuffer<float> y(stream, of_tokens.size * width);

    const auto sharded_h = ShardedMatrix::by_columns(communicator, tokens, hidden, h.matrix(tokens, of_hidden.size));
    const auto first = ShardedGemm::prepare(
        communicator, ShardedMatrix::by_rows(communicator, tokens, width, x.matrix(of_tokens.size, width)),
        ShardedMatrix::by_columns(communicator, width, hidden, w1.matrix(width, of_hidden.size)), sharded_h,
        {.bias = Bias::per_column(b1.span()), .activation = Activation::gelu});
    const auto second = ShardedGemm::prepare(
        communicator, sharded_h, ShardedMatrix::by_rows(communicator, hidden, width, w2.matrix(of_hidden.size, width)),
        ShardedMatrix::by_rows(communicator, tokens, width, y.matrix(of_tokens.size, width)));
    first.launch(stream);
    second.launch(stream);
    communicator.synchronize(stream);

    const std::size_t wrong = network.wrong_elements(y.to_vector(), of_tokens, communicator.size());
    std::printf("tensor_parallel: %s: %zu of %zu elements are wrong\n", communicator.describe().c_str(), wrong,
                y.size());
    return wrong;
}

/// A thread for each GPU.
std::size_t multiply_in_threads(const Network& network)
{
    std::vector<int> devices(static_cast<std::size_t>(Device::count()));
    std::iota(devices.begin(), devices.end(), 0);
    std::vector<Communicator> communicators = Communicator::of_devices(devices);
    std::atomic<std::size_t> wrong = 0;
    {
        std::vector<std::jthread> ranks;
        for (Communicator& communicator : communicators) {
            // The thread owns its communicator, so that the others hear of an exception.
            ranks.emplace_back([&wrong, &network, mine = std::move(communicator)]() mutable {
                try {
                    const Communicator own = std::move(mine);
                    wrong += multiply(own, network);
                } catch (const Error& error) {
                    std::fprintf(stderr, "%s\n", error.what());
                    ++wrong;
                }
            });
        }
    }
    return wrong;
}

int run()
{
    static_cast<void>(Device::current());  // throws if there is none
    const Network network;
    const bool was_started_as_rank =
        std::getenv("WORLD_SIZE") != nullptr || std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
    const std::size_t wrong =
        was_started_as_rank ? multiply(Communicator::from_environment(), network) : multiply_in_threads(network);
    return wrong == 0 ? examples::exit_success : examples::exit_failure;
}

}  // namespace

int main() { return examples::run_example("tensor_parallel", run); }
