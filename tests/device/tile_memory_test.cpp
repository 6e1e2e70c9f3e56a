/// What tile programs do with memory: whole tiles, extents that they are compiled for, rows that a vector names, and sums over all
/// places, compared with double, on whatever device there is.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device_fixture.hpp"
#include "support/test_main.hpp"
#include "tile_programs.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

const auto small = [] {
    static std::mt19937_64 engine = random_engine(5);
    return static_cast<float>(static_cast<int>(engine() % 9) - 4);
};

/// A row-major matrix on the host and on the device, with gaps between its rows that nobody may touch.
template <class T>
struct Matrix {
    std::int64_t rows, columns, stride;
    std::vector<T> host;
    DeviceBuffer<T> device;

    Matrix(StreamRef stream, std::int64_t r, std::int64_t c, bool is_random, std::int64_t gap = 8)
        : rows(r),
          columns(c),
          stride(c + gap),
          host(static_cast<std::size_t>(r * stride), T(77.0F)),
          device(stream, host.size())
    {
        for (std::int64_t i = 0; i < (is_random ? r : 0); ++i) {
            for (std::int64_t j = 0; j < c; ++j) {
                host[index(i, j)] = T(small());
            }
        }
        device.copy_from(gsl::span<const T>(host));
    }
    std::size_t index(std::int64_t row, std::int64_t column) const
    {
        return static_cast<std::size_t>(row * stride + column);
    }
    double at(std::int64_t row, std::int64_t column) const
    {
        return static_cast<double>(static_cast<float>(host[index(row, column)]));
    }
    void fill(float value)
    {
        host.assign(host.size(), T(value));
        device.copy_from(gsl::span<const T>(host));
    }
    /// Returns how many elements are not `expected(row, column)`, or were touched outside.
    template <class Expected>
    std::size_t wrong(const Expected& expected, float outside = 77.0F)
    {
        host = device.to_vector();
        std::size_t count = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < stride; ++j) {
                const double right = j < columns ? static_cast<double>(expected(i, j)) : static_cast<double>(outside);
                count += at(i, j) == right ? 0U : 1U;
            }
        }
        return count;
    }
    MatrixView<T> view() { return device.matrix(rows, columns, stride); }
};

template <class T>
double product(const Matrix<T>& a, const Matrix<T>& b, std::int64_t row, std::int64_t column)
{
    double sum = 0;
    for (std::int64_t k = 0; k < a.columns; ++k) {
        sum += a.at(row, k) * b.at(k, column);
    }
    return sum;
}

template <class Call>
std::string error_of(const Call& call)
{
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Runs a product; returns how many elements are wrong.
std::size_t wrong_products(FixedProgram program, std::int64_t m, std::int64_t n, std::int64_t k)
{
    const Stream stream;
    Matrix<f16> a(stream, m, k, true), b(stream, k, n, true);
    Matrix<float> bias(stream, 1, n, true), d(stream, m, n, false);
    tile_fixed_product(stream, program, a.view(), b.view(), bias.view(), d.view());
    return d.wrong([&](std::int64_t i, std::int64_t j) { return product(a, b, i, j) + bias.at(0, j); });
}

std::size_t wrong_rows(FixedProgram program, std::int64_t rows, std::int64_t columns, std::int64_t gap)
{
    const Stream stream;
    Matrix<float> x(stream, rows, columns, true, gap), y(stream, rows, columns, false, gap);
    tile_fixed_rows(stream, program, x.view(), y.view());
    return y.wrong([&](std::int64_t i, std::int64_t j) { return 2 * x.at(i, j) + 1; });
}

}  // namespace

TEST_CASE("whole tiles are not compared with the end of a matrix, and the launch refuses others")
{
    CHECK(wrong_products(FixedProgram::whole, 256, 128, 96) == 0);
    CHECK(wrong_products(FixedProgram::whole, 128, 64, 32) == 0);
    for (const std::int64_t gap : {0, 8, 3}) {
        CHECK(wrong_rows(FixedProgram::whole, 12, 384, gap) == 0);
    }
    CHECK(has(error_of([] { wrong_products(FixedProgram::whole, 250, 128, 96); }),
              "is not whole tiles of 128x32, and the program's hints say whole_tiles"));
    CHECK(has(error_of([] { wrong_products(FixedProgram::whole, 256, 128, 80); }), "is not whole tiles of"));
    CHECK(has(error_of([] { wrong_rows(FixedProgram::whole, 12, 129, 8); }), "a matrix of 12x129"));

    const Stream stream;
    Matrix<float> x(stream, 4, 256, true), y(stream, 8, 256, false);
    CHECK(has(error_of([&] { tile_fixed_rows(stream, FixedProgram::whole, x.view(), y.view()); }),
              "a matrix has 1x2 tiles where the output has 2x2"));
}

TEST_CASE("programs that are compiled for extents, and other matrices")
{
    CHECK(wrong_products(FixedProgram::extents, 256, 128, 96) == 0);
    CHECK(wrong_products(FixedProgram::ragged_extents, 200, 136, 80) == 0);
    for (const std::int64_t gap : {0, 8, 3}) {
        CHECK(wrong_rows(FixedProgram::extents, 8, 256, gap) == 0);
        CHECK(wrong_rows(FixedProgram::ragged_extents, 7, 250, gap) == 0);
    }
    CHECK(has(error_of([] { wrong_products(FixedProgram::extents, 256, 128, 64); }),
              "the matrix is 256x64, and the program is compiled for 256x96"));
    CHECK(has(error_of([] { wrong_products(FixedProgram::ragged_extents, 200, 136, 96); }),
              "the matrix is 96x136, and the program is compiled for 80x136"));
    const Stream stream;
    Matrix<f16> a(stream, 201, 80, true), b(stream, 80, 136, true);
    Matrix<float> bias(stream, 1, 136, true), d(stream, 200, 136, false);
    CHECK(has(error_of([&] {
                  tile_fixed_product(stream, FixedProgram::ragged_extents, a.view(), b.view(), bias.view(), d.view());
              }),
              "the matrix is 201x80, and the program is compiled for 200xany"));
}

TEST_CASE("rows that a vector names are streamed and loaded")
{
    const Stream stream;
    const std::int64_t m = 300, n = 100, k = 72, rows = 41;
    for (const std::int64_t gap : {8, 1}) {
        Matrix<f16> a(stream, rows, k, true, gap), b(stream, k, n, true, gap);
        Matrix<float> c(stream, rows, n, true, gap), d(stream, m, n, false, gap);
        std::vector<int> chosen(static_cast<std::size_t>(m));
        auto engine = random_engine(11);
        for (int& row : chosen) {
            row = static_cast<int>(engine() % static_cast<std::uint64_t>(rows));
        }
        const auto numbers = DeviceBuffer<int>::from_host(stream, chosen);
        const tile::LaunchReport report =
            tile_gathered_product(stream, a.view(), b.view(), c.view(), numbers.span(), d.view());
        CHECK(report.instructions == tile::Instructions::mma_sync);
        CHECK(d.wrong([&](std::int64_t i, std::int64_t j) {
            const std::int64_t row = chosen[static_cast<std::size_t>(i)];
            return product(a, b, row, j) + c.at(row, j);
        }) == 0);
        if (Device::current().properties().has_tensor_memory) {
            CHECK(has(std::string(report.reason), "TMA does not gather"));
        }

        Matrix<f16> x(stream, rows, 300, true, gap), y(stream, 50, 300, false, gap);
        tile_gathered_rows(stream, x.view(), numbers.span(), y.view());
        CHECK(y.wrong([&](std::int64_t i, std::int64_t j) { return x.at(chosen[static_cast<std::size_t>(i)], j); }) ==
              0);
    }
}

TEST_CASE("places add to an output that they share")
{
    const Stream stream;
    const std::int64_t m = 200, n = 100, k = 40, batches = 2;
    Matrix<f16> a(stream, batches * m, k, true), b(stream, k, n, true);
    Matrix<float> d(stream, batches * m, n, false), twice(stream, batches * m, n, false), columns(stream, 1, n, false),
        rows(stream, m, 1, false);
    twice.fill(1);
    columns.fill(3);
    rows.fill(4);
    const auto batch = [&](auto& matrix) {
        return BatchView(matrix.device.matrix(m, matrix.columns, matrix.stride), batches, m * matrix.stride, 1, 0);
    };
    tile_totals(stream, batch(a), b.view(), batch(d), columns.view(), rows.view(), batch(twice));
    CHECK(d.wrong([&](std::int64_t i, std::int64_t j) { return product(a, b, i, j); }) == 0);
    CHECK(twice.wrong([&](std::int64_t i, std::int64_t j) { return 1 + 2 * product(a, b, i, j); }, 1) == 0);
    CHECK(columns.wrong(
              [&](std::int64_t, std::int64_t j) {
                  double sum = 3;
                  for (std::int64_t i = 0; i < batches * m; ++i) {
                      sum += product(a, b, i, j);
                  }
                  return sum;
              },
              3) == 0);
    CHECK(rows.wrong(
              [&](std::int64_t i, std::int64_t) {
                  double sum = 4;
                  for (std::int64_t j = 0; j < n; ++j) {
                      sum += product(a, b, i, j) + product(a, b, i + m, j);
                  }
                  return sum;
              },
              4) == 0);
}

TEST_CASE("activations of tiles have the bits of Gemm::launch's")
{
    const Stream stream;
    constexpr std::int64_t m = 64, n = 64;
    Matrix<f16> a(stream, m, n, false, 0), one(stream, n, n, false, 0);
    Matrix<float> x(stream, m, n, false, 0), y(stream, m, n, false, 0), d(stream, m, n, false, 0);
    auto engine = random_engine(13);
    for (std::size_t i = 0; i < a.host.size(); ++i) {
        // Of every size that an activation may meet, and of both signs.
        const double size = std::exp2(static_cast<double>(engine() % 20) - 14.0);
        const double value = (static_cast<double>(engine() % 2048) / 1024 - 1) * size;
        a.host[i] = f16(static_cast<float>(value));
        x.host[i] = static_cast<float>(a.host[i]) + 0.0F;
        one.host[i] = f16(i % (n + 1) == 0 ? 1.0F : 0.0F);
    }
    a.device.copy_from(gsl::span<const f16>(a.host));
    one.device.copy_from(gsl::span<const f16>(one.host));
    x.device.copy_from(gsl::span<const float>(x.host));
    for (const Activation kind : all_activations) {
        Gemm::launch(stream, a.view(), one.view(), d.view(), Epilogue{.activation = kind});
        tile_activation(stream, kind, x.view(), y.view());
        const std::vector<float> expected = d.device.to_vector();
        const std::vector<float> found = y.device.to_vector();
        CAPTURE(std::string(to_string(kind)));
        CHECK(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)) == 0);
    }
    // The same in the form of an epilogue of one's own, with a bias.
    Matrix<float> bias(stream, 1, n, true, 0);
    Gemm::launch(stream, a.view(), one.view(), d.view(),
                 Epilogue{.bias = Bias::per_column(bias.device.span()), .activation = Activation::gelu});
    activated_product(stream, a.view(), one.view(), bias.device.span(), y.view());
    CHECK(d.device.to_vector() == y.device.to_vector());
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
