/// Gemm::launch on parts of larger matrices, on memory that overlaps, on the result of the previous launch, and with
/// plans. Needs a device.

#include <doctest/doctest.h>

#include <limits>

#include "device_fixture.hpp"
#include "support/gemm_runner.hpp"
#include "support/signature.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

/// A row-major host matrix of signature values, for A or B.
template <class Value>
std::vector<float> host_matrix(std::int64_t rows, std::int64_t columns, const Value& value)
{
    std::vector<float> elements;
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            elements.push_back(value(i, j));
        }
    }
    return elements;
}

double exact_product(std::int64_t row, std::int64_t column, std::int64_t k)
{
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) {
        sum += static_cast<double>(signature_a(row, i)) * static_cast<double>(signature_b(i, column));
    }
    return sum;
}

}  // namespace

TEST_CASE("a product of blocks of one parent matrix writes only its own block")
{
    // A row of the parent is | A (m x k) | B (k x n) | D (m x n) |: each has its own columns, at odd offsets.
    constexpr std::int64_t m = 33;
    constexpr std::int64_t n = 21;
    constexpr std::int64_t k = 19;
    constexpr std::int64_t rows = 40;
    constexpr std::int64_t columns = 80;
    std::vector<float> host(rows * columns, -7777.0F);
    const auto at = [&](std::int64_t row, std::int64_t column) -> float& {
        return host[static_cast<std::size_t>(row * columns + column)];
    };
    for (std::int64_t i = 0; i < k; ++i) {
        for (std::int64_t row = 0; row < m; ++row) {
            at(row + 1, i + 1) = signature_a(row, i);
        }
        for (std::int64_t column = 0; column < n; ++column) {
            at(i + 3, column + k + 2) = signature_b(i, column);
        }
    }
    const Stream stream;
    for (const Variant variant : {Variant::simt_naive, Variant::simt_tiled, Variant::simt_register_blocked}) {
        auto parent = DeviceBuffer<float>::from_host(stream, host);
        const auto whole = parent.matrix(rows, columns);
        Gemm::launch(stream, whole.block(1, 1, m, k), whole.block(3, k + 2, k, n), whole.block(2, k + n + 4, m, n), {},
                     variant);
        const std::vector<float> result = parent.to_vector();
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t column = 0; column < columns; ++column) {
                const std::int64_t d_row = row - 2;
                const std::int64_t d_column = column - (k + n + 4);
                const bool in_d = d_row >= 0 && d_row < m && d_column >= 0 && d_column < n;
                const double expected = in_d ? exact_product(d_row, d_column, k) : at(row, column);
                wrong += result[static_cast<std::size_t>(row * columns + column)] != expected;
            }
        }
        CHECK_MESSAGE(wrong == 0, to_string(variant));
    }
}

TEST_CASE("D computed tile by tile equals D computed in one launch")
{
    constexpr std::int64_t m = 50;
    constexpr std::int64_t n = 47;
    constexpr std::int64_t k = 23;
    const Stream stream;
    const auto a = DeviceBuffer<float>::from_host(stream, host_matrix(m, k, signature_a));
    const auto b = DeviceBuffer<float>::from_host(stream, host_matrix(k, n, signature_b));
    DeviceBuffer<float> d(stream, m * n);
    const auto view = d.matrix(m, n);
    for (std::int64_t tile_row = 0; tile_row * 16 < m; ++tile_row) {
        for (std::int64_t tile_column = 0; tile_column * 16 < n; ++tile_column) {
            const auto tile = view.tile(tile_row, tile_column, 16, 16);
            Gemm::launch(stream, a.matrix(m, k).block(tile_row * 16, 0, tile.rows(), k),
                         b.matrix(k, n).block(0, tile_column * 16, k, tile.columns()), tile);
        }
    }
    const std::vector<float> result = d.to_vector();
    std::int64_t wrong = 0;
    for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t column = 0; column < n; ++column) {
            wrong += result[static_cast<std::size_t>(row * n + column)] != exact_product(row, column, k);
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("transposed views give the transposed product")
{
    constexpr std::int64_t m = 31;
    constexpr std::int64_t n = 18;
    constexpr std::int64_t k = 9;
    const Stream stream;
    const auto a = DeviceBuffer<float>::from_host(stream, host_matrix(m, k, signature_a));
    const auto b = DeviceBuffer<float>::from_host(stream, host_matrix(k, n, signature_b));
    DeviceBuffer<float> d(stream, m * n);
    DeviceBuffer<float> d_transposed(stream, m * n);
    Gemm::launch(stream, a.matrix(m, k), b.matrix(k, n), d.matrix(m, n));
    // (A B)^T = B^T A^T, and the transposed view of D has the same memory.
    Gemm::launch(stream, b.matrix(k, n).transposed(), a.matrix(m, k).transposed(),
                 d_transposed.matrix(m, n).transposed());
    CHECK(d.to_vector() == d_transposed.to_vector());
}

TEST_CASE("a product reads the result of the previous one, although their kernels overlap")
{
    // W = S R, then X W^T and W X^T, which stream W and therefore prefetch it; then the next S. On a real device only:
    // on the emulated device, a kernel starts when the previous one has ended.
    constexpr std::int64_t rows = 16;
    constexpr std::int64_t depth = 64;
    const std::int64_t n = quick() ? 256 : 8192;
    const std::int64_t k = quick() ? 256 : 1024;
    const int turns = quick() ? 3 : 12;
    const auto s_at = [](int turn, std::int64_t row, std::int64_t i) { return walsh(row + 977 * turn, i); };
    const auto r_at = [](std::int64_t i, std::int64_t column) { return walsh(i + 1, 3 * column + 1); };
    const auto x_at = [](std::int64_t row, std::int64_t i) {
        return walsh(row + 1, i) * static_cast<float>(1 + i % 3);
    };
    const auto upload = [](const Stream& stream, std::int64_t height, std::int64_t width, const auto& at) {
        std::vector<f16> elements;
        for (const float value : host_matrix(height, width, at)) {
            elements.emplace_back(value);
        }
        return DeviceBuffer<f16>::from_host(stream, elements);
    };
    const Stream stream;
    const auto r = upload(stream, depth, k, r_at);
    const auto x = upload(stream, rows, k, x_at);
    std::vector<DeviceBuffer<f16>> s;
    for (int turn = 0; turn < turns; ++turn) {
        s.push_back(upload(stream, n, depth, [&](std::int64_t row, std::int64_t i) { return s_at(turn, row, i); }));
    }
    DeviceBuffer<f16> w(stream, static_cast<std::size_t>(n * k));
    const auto size = static_cast<std::size_t>(rows * n);
    DeviceBuffer<float> d(stream, 2 * size * static_cast<std::size_t>(turns));
    d.fill(stream, std::numeric_limits<float>::quiet_NaN());  // initcheck does not see what TMA stores
    const auto part = [&](int turn, std::size_t half) {
        return d.subspan((2 * static_cast<std::size_t>(turn) + half) * size, size);
    };
    for (int turn = 0; turn < turns; ++turn) {
        Gemm::launch(stream, s[static_cast<std::size_t>(turn)].matrix(n, depth), r.matrix(depth, k), w.matrix(n, k));
        Gemm::launch(stream, x.matrix(rows, k), w.matrix(n, k).transposed(), part(turn, 0).matrix(rows, n));
        Gemm::launch(stream, w.matrix(n, k), x.matrix(rows, k).transposed(), part(turn, 1).matrix(n, rows));
    }
    const std::vector<float> result = d.to_vector();
    std::vector<float> x_r(rows * depth);  // X R^T, of integers small enough that all sums are exact
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t i = 0; i < depth; ++i) {
            for (std::int64_t column = 0; column < k; ++column) {
                x_r[static_cast<std::size_t>(row * depth + i)] += x_at(row, column) * r_at(i, column);
            }
        }
    }
    for (int turn = 0; turn < turns; ++turn) {
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t column = 0; column < n; ++column) {
                float expected = 0;
                for (std::int64_t i = 0; i < depth; ++i) {
                    expected += x_r[static_cast<std::size_t>(row * depth + i)] * s_at(turn, column, i);
                }
                const std::size_t first = 2 * static_cast<std::size_t>(turn) * size;
                wrong += result[first + static_cast<std::size_t>(row * n + column)] != expected;
                wrong += result[first + size + static_cast<std::size_t>(column * rows + row)] != expected;
            }
        }
        CHECK_MESSAGE(wrong == 0, "turn " << turn);
    }
}

TEST_CASE("an output that overlaps an input is refused and nothing is written")
{
    const Stream stream;
    const std::vector<float> host(1000, 3.0F);
    auto buffer = DeviceBuffer<float>::from_host(stream, host);
    auto other = DeviceBuffer<float>::from_host(stream, host);
    const auto d = buffer.subspan(50, 100).matrix(10, 10);
    const auto apart = other.matrix(10, 10);
    CHECK(code_of([&] { Gemm::launch(stream, buffer.matrix(10, 10), apart, d); }) == ErrorCode::aliasing);
    CHECK(code_of([&] { Gemm::launch(stream, apart, buffer.matrix(10, 10), d); }) == ErrorCode::aliasing);
    CHECK(code_of([&] { Gemm::launch(stream, apart, apart, d, {.beta = 1, .c = buffer.matrix(10, 10)}); }) ==
          ErrorCode::aliasing);
    CHECK(code_of([&] { Gemm::launch(stream, apart, apart, d, {.bias = Bias::per_row(buffer.subspan(55, 10))}); }) ==
          ErrorCode::aliasing);
    CHECK(buffer.to_vector() == host);
}

TEST_CASE("empty products launch nothing, and k = 0 gives act(beta * C + bias)")
{
    const Stream stream;
    DeviceBuffer<float> nothing(stream, 0);
    auto d = DeviceBuffer<float>::from_host(stream, std::vector<float>{1, -2, 3, -4, 5, -6});
    const auto bias = DeviceBuffer<float>::from_host(stream, std::vector<float>{10, -20, 30});
    Gemm::launch(stream, nothing.matrix(0, 4), nothing.matrix(4, 0), nothing.matrix(0, 0));
    Gemm::launch(stream, nothing.span().matrices(0, 0, 0, 0, 1), nothing.span().matrices(0, 0, 0, 0, 1),
                 nothing.span().matrices(0, 0, 0, 0, 1));
    for (const Variant variant : simt_variants()) {
        d.copy_from(std::vector<float>{1, -2, 3, -4, 5, -6});
        const auto view = d.matrix(2, 3);
        Gemm::launch(stream, nothing.matrix(2, 0, 4, RowMajor{}), nothing.matrix(0, 3), view,
                     {.beta = 2, .c = view, .bias = Bias::per_column(bias.span()), .activation = Activation::relu},
                     variant);
        CHECK(d.to_vector() == std::vector<float>{12, 0, 36, 2, 0, 18});
    }
}

TEST_CASE("with unaligned operands, vectorized rungs refuse with the reason, and automatic is right")
{
    GemmCase gemm;
    gemm.m = 20;
    gemm.n = 24;
    gemm.k = 12;
    gemm.a.offset = 1;
    const Stream stream;
    check_all_variants(stream, gemm);  // checks which variants refuse, and that the others are right
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    DeviceOperands operands(stream, gemm, data);
    try {
        static_cast<void>(operands.launch(Variant::simt_vectorized));
        FAIL("simt_vectorized ran on an unaligned A");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::variant_refused);
        CHECK(error.message().find("A's address is 4-byte aligned") != std::string_view::npos);
        CHECK(error.cure().find("Variant::automatic") != std::string_view::npos);
    }
}

TEST_CASE("a plan refuses other operands than it was prepared for")
{
    const Stream stream;
    const auto a = DeviceBuffer<float>::from_host(stream, host_matrix(8, 4, signature_a));
    const auto b = DeviceBuffer<float>::from_host(stream, host_matrix(4, 6, signature_b));
    DeviceBuffer<float> d(stream, 48);
    GemmProblem problem;
    problem.m = 8;
    problem.n = 6;
    problem.k = 4;
    const GemmPlan plan = GemmPlan::prepare(Device(stream.device()), problem);
    plan.launch(stream, a.matrix(8, 4), b.matrix(4, 6), d.matrix(8, 6));
    const std::vector<float> planned = d.to_vector();
    CHECK(planned[47] == exact_product(7, 5, 4));
    CHECK(code_of([&] { plan.launch(stream, a.matrix(4, 4), b.matrix(4, 6), d.matrix(4, 6)); }) ==
          ErrorCode::shape_mismatch);
    CHECK(code_of([&] { plan.launch(stream, a.matrix(4, 8).transposed(), b.matrix(4, 6), d.matrix(8, 6)); }) ==
          ErrorCode::shape_mismatch);
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
