// The largest eigenvalue of a symmetric matrix by power iteration: v <- A*v / |A*v|, repeated.
//
// A*v is a Gemm::launch, the division a kernel of your own. One round is captured into a graph and replayed.
#include <tessera/device/disjoint_span.cuh>
#include <tessera/tessera.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

#include "common/error_bound.hpp"
#include "common/exact_sum.hpp"
#include "common/run_example.hpp"

using namespace tessera;

namespace {

constexpr unsigned n = 160;
constexpr unsigned threads = 256;  // of the one CTA: a power of 2, at least n
constexpr int rounds = 30;

/// vector = product / |product| and norm = |product|, by one CTA with a thread for each element.
__global__ void normalize(MatrixView<const float> product, DisjointSpan<float> vector, DisjointSpan<float> norm)
{
    __shared__ float squares[threads];
    const auto index = ThreadIndex::in_grid();
    const float element = vector.contains(index) ? product(threadIdx.x, 0) : 0.0F;
    squares[threadIdx.x] = element * element;
    for (unsigned half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            squares[threadIdx.x] += squares[threadIdx.x + half];
        }
    }
    __syncthreads();
    const float length = sqrtf(squares[0]);
    if (vector.contains(index)) {
        vector[index] = element / length;
    }
    if (norm.contains(index)) {
        norm[index] = length;
    }
}

/// Noise plus a rank-1 matrix whose eigenvalue is far above the noise's.
std::vector<float> symmetric_matrix()
{
    const auto noise = examples::random_values<float>(n * n, 1);
    const auto direction = examples::random_values<float>(n, 2);
    std::vector<float> matrix(n * n);
    for (unsigned i = 0; i < n; ++i) {
        for (unsigned j = 0; j < n; ++j) {
            matrix[i * n + j] = 0.05F * (noise[i * n + j] + noise[j * n + i]) + direction[i] * direction[j];
        }
    }
    return matrix;
}

struct Eigenvalue {
    double value;
    double bound;  // the largest error that a float32 result may have
};

/// The same iteration in float64, until it converges. For a symmetric matrix the norm depends on the vector's error in
/// second order only. What remains is the error of the last product and of the norm.
Eigenvalue reference(const std::vector<float>& matrix)
{
    std::vector<double> vector(n, 1.0 / std::sqrt(double{n}));
    double norm = 0;
    double magnitudes = 0;  // the norm of |A| * |v|
    for (int round = 0; round < 200; ++round) {
        std::vector<double> product(n);
        double squares = 0;
        magnitudes = 0;
        for (unsigned i = 0; i < n; ++i) {
            double magnitude = 0;
            for (unsigned j = 0; j < n; ++j) {
                product[i] += matrix[i * n + j] * vector[j];
                magnitude += std::fabs(matrix[i * n + j] * vector[j]);
            }
            squares += product[i] * product[i];
            magnitudes += magnitude * magnitude;
        }
        norm = std::sqrt(squares);
        for (unsigned i = 0; i < n; ++i) {
            vector[i] = product[i] / norm;
        }
    }
    const double rounding = examples::gamma(n + 3.0, 2.0 * examples::f32_roundoff);
    return {norm, rounding * (std::sqrt(magnitudes) + norm)};
}

int run()
{
    const auto matrix = symmetric_matrix();
    const Stream stream;
    const auto a = DeviceBuffer<float>::from_host(stream, matrix);
    auto vector = DeviceBuffer<float>::from_host(stream, std::vector<float>(n, 1.0F));
    DeviceBuffer<float> product(stream, n);
    DeviceBuffer<float> norm(stream, 1);

    auto graph = Graph::capture(stream, [&](StreamRef captured) {
        Gemm::launch(captured, a.matrix(n, n), vector.matrix(n, 1), product.matrix(n, 1));
        launch(normalize, LaunchConfig(captured, {1}, {threads}), product.matrix(n, 1), DisjointSpan(vector),
               DisjointSpan(norm));
    });
    for (int round = 0; round < rounds; ++round) {
        graph.launch(stream);
    }

    const double found = norm.to_vector().at(0);
    const Eigenvalue expected = reference(matrix);
    const bool right = std::fabs(found - expected.value) <= expected.bound;
    std::printf("power_iteration: %d rounds give %.6f, float64 gives %.6f: %s\n", rounds, found, expected.value,
                right ? "right" : "wrong");
    return right ? examples::exit_success : examples::exit_failure;
}

}  // namespace

int main() { return examples::run_example("power_iteration", run); }
