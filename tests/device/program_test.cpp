/// Tile programs that are compiled at run time, on whatever device there is: results, refusals, and what is kept on disk.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "device_fixture.hpp"
#include "support/test_main.hpp"
#include "tessera/tessera.hpp"
#include "tessera/tile/epilogue_program.hpp"
#include "tessera/tile/program.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr const char* source = R"(
using namespace tessera;

template <class T, int Rows, int Columns>
struct Add {
    tile::Input<T, Rows, Columns> x, y;
    tile::Output<T, Rows, Columns> z;
    float factor;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : z.tiles(cta)) {
            z.store(at, tile::convert<T>(x.load(at) + factor * y.load(at)));
        }
    }
};

template <class T, class D, int M, int N, int K, class OrderB = RowMajor>
struct Product {
    tile::Input<T, M, K> a;
    tile::Input<T, K, N, OrderB> b;
    tile::Input<float, 1, N> bias;
    tile::Output<D, M, N> d;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, M, N>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<D>(sum + bias.load(at)));
        }
    }
};

template <int Columns>
struct Softmax {
    tile::Input<float, 4, Columns> x;
    tile::Output<float, 4, Columns> y;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto value = x.load(at, -INFINITY);
            const auto power = tile::exp(value - tile::row_maxima(value));
            y.store(at, power / tile::row_sums(power));
        }
    }
};

template <int M, int N, int D>
struct Attention {
    tile::Input<f16, M, D> q;
    tile::Input<f16, D, N, ColumnMajor> k;
    tile::Input<f16, N, D> v;
    tile::Output<f16, M, D> z;
    int length;
    bool causal;
    static constexpr tile::Hints hints{.warps_m = 8, .warps_n = 1};
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : z.tiles_from_last_row(cta)) {
            const auto query = tile::hold(cta, q, at);
            auto sum = tile::zeros<float, M, D>(cta);
            auto highest = tile::full<float, M, 1>(cta, -INFINITY);
            auto total = tile::full<float, M, 1>(cta, 0.0F);
            const std::int64_t end = causal ? at.first_row() + M : length;
            const auto keys = k.row(0, at.batch()).until(end);
            const auto values = v.column(0, at.batch()).until(end);
            for (auto [key, value] : tile::stream(cta, keys, values)) {
                auto score = mma(query, key, tile::zeros<float, M, N>(cta));
                const auto column = tile::iota_columns(score) + static_cast<int>(key.first_column());
                const auto row = tile::iota_rows(score) + static_cast<int>(at.first_row());
                score = tile::where(column < length && (column <= row || !causal), score, -INFINITY);
                const auto higher = tile::max(highest, tile::row_maxima(score));
                const auto weight = tile::exp(score - higher);
                const auto before = tile::exp(highest - higher);
                total = total * before + tile::row_sums(weight);
                sum = sum * before;
                sum = mma(tile::convert<f16>(weight), value, sum);
                highest = higher;
            }
            z.store(at, tile::convert<f16>(sum / total));
        }
    }
};

template <bool Whole, class E>
struct Chosen {
    tile::Input<f16, 128, 32, RowMajor, E> x;
    tile::Input<f16, 32, 128> w;
    tile::Output<float, 128, 128> y;
    tile::Output<float, 1, 128> totals;
    tile::Numbers<int> rows;
    static constexpr tile::Hints hints{.whole_tiles = Whole};
    TESSERA_TILE void operator()(auto cta) const
    {
        const auto chosen = tile::gather(x, rows);
        for (auto at : y.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
            for (auto [left, right] : tile::stream(cta, chosen.row(at), w.column(at))) {
                sum = mma(left, right, sum);
            }
            const auto value = tile::convert<float>(sum);
            y.store(at, value);
            tile::atomic_add(totals, at, tile::column_sums(value));
        }
    }
};

struct Grouped {
    tile::Input<f16, 128, 64> x;
    tile::Input<f16, 64, 128> w;
    tile::Output<float, 128, 128> y;
    tile::Numbers<int> expert;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
            const auto chosen = static_cast<std::uint32_t>(expert[at.tile_row()]);
            for (auto [left, right] : tile::stream(cta, x.row(at), w.column(at.tile_column(), chosen))) {
                sum = mma(left, right, sum);
            }
            y.store(at, sum);
        }
    }
};
)";

const tile::Program& program()
{
    static const tile::Program instance = tile::Program::from_source(source, {.name = "programs.cu"});
    return instance;
}

/// A matrix on the host and on the device.
template <class T>
struct Matrix {
    std::int64_t rows, columns;
    std::vector<T> host;
    DeviceBuffer<T> device;

    Matrix(StreamRef stream, std::int64_t r, std::int64_t c)
        : rows(r), columns(c), host(static_cast<std::size_t>(r * c), T(77.0F)), device(stream, host.size())
    {
        device.copy_from(gsl::span<const T>(host));
    }
    template <class Value>
    void fill(const Value& value)
    {
        for (T& element : host) {
            element = T(static_cast<float>(value()));
        }
        device.copy_from(gsl::span<const T>(host));
    }
    void read() { host = device.to_vector(); }
    double at(std::int64_t row, std::int64_t column) const
    {
        return static_cast<double>(static_cast<float>(host[static_cast<std::size_t>(row * columns + column)]));
    }
    auto view() { return device.matrix(rows, columns); }
};

/// The best instructions of the device.
tile::Instructions best()
{
    const DeviceProperties& properties = Device::current().properties();
    return properties.has_tensor_memory ? tile::Instructions::tcgen05
           : 10 * properties.compute_capability_major + properties.compute_capability_minor == 90
               ? tile::Instructions::wgmma
               : tile::Instructions::mma_sync;
}

const auto small = [] {
    static std::mt19937_64 engine = random_engine(3);
    return static_cast<int>(engine() % 9) - 4;
};

template <class T, class D>
std::size_t wrong_products(const std::string& type, std::int64_t m, std::int64_t n, std::int64_t k,
                           tile::LaunchReport& report)
{
    const Stream stream;
    Matrix<T> a(stream, m, k), b(stream, k, n);
    Matrix<float> bias(stream, 1, n);
    Matrix<D> d(stream, m, n);
    a.fill(small);
    b.fill(small);
    bias.fill(small);
    report = program().kernel(type).launch(stream, a.view(), b.view(), bias.view(), d.view());
    d.read();
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = bias.at(0, j);
            for (std::int64_t l = 0; l < k; ++l) {
                sum += a.at(i, l) * b.at(l, j);
            }
            wrong += static_cast<double>(static_cast<float>(D(static_cast<float>(sum)))) == d.at(i, j) ? 0U : 1U;
        }
    }
    return wrong;
}

double worst_attention(std::int64_t length, bool causal)
{
    constexpr std::int64_t depth = 64;
    const Stream stream;
    Matrix<f16> q(stream, length, depth), k(stream, length, depth), v(stream, length, depth), z(stream, length, depth);
    const auto narrow = [] { return 0.25F * static_cast<float>(small()); };
    q.fill(narrow);
    k.fill(narrow);
    v.fill(narrow);
    const tile::LaunchReport report =
        program()
            .kernel("Attention<128, 64, 64>")
            .launch(stream, q.view(), k.view().transposed(), v.view(), z.view(), static_cast<int>(length), causal);
    CHECK(report.instructions == best());
    CHECK(report.by_tma == (Device::current().properties().compute_capability_major >= 9));
    CHECK_FALSE(report.pairs);
    z.read();
    double worst = 0;
    for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t end = causal ? i + 1 : length;
        std::vector<double> weights(static_cast<std::size_t>(end));
        double total = 0;
        for (std::int64_t j = 0; j < end; ++j) {
            double score = 0;
            for (std::int64_t c = 0; c < depth; ++c) {
                score += q.at(i, c) * k.at(j, c);
            }
            total += weights[static_cast<std::size_t>(j)] = std::exp(score);
        }
        for (std::int64_t c = 0; c < depth; ++c) {
            double sum = 0;
            for (std::int64_t j = 0; j < end; ++j) {
                sum += weights[static_cast<std::size_t>(j)] / total * v.at(j, c);
            }
            worst = std::max(worst, std::abs(sum - z.at(i, c)));
        }
    }
    return worst;
}

/// Returns the error of a call, or "" if there was none.
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

}  // namespace

TEST_CASE("a program of rows, with values, at every edge")
{
    const Stream stream;
    for (const std::int64_t rows : {1, 16, 70}) {
        for (const std::int64_t columns : {128, 13, 300}) {
            Matrix<float> x(stream, rows, columns), y(stream, rows, columns), z(stream, rows, columns);
            x.fill(small);
            y.fill(small);
            program().kernel("Add<float, 16, 128>").launch(stream, x.view(), y.view(), z.view(), 0.5F);
            z.read();
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < z.host.size(); ++i) {
                wrong += z.host[i] == x.host[i] + 0.5F * y.host[i] ? 0U : 1U;
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("products, also of matrices that TMA cannot address")
{
    const bool has_tensor_memory = Device::current().properties().has_tensor_memory;
    tile::LaunchReport report;
    for (const std::int64_t n : {128, 264}) {
        CHECK(wrong_products<f16, f16>("Product<f16, f16, 128, 128, 32>", 136, n, 200, report) == 0);
        CHECK(report.instructions == best());
        CHECK(report.pairs == has_tensor_memory);
        CHECK(report.by_tma == Device::current().properties().has_tensor_maps);
        CHECK(report.reason == "");
    }
    CHECK(wrong_products<f16, f16>("Product<f16, f16, 128, 128, 32>", 136, 77, 200, report) == 0);
    CHECK(report.instructions == tile::Instructions::mma_sync);
    CHECK_FALSE(report.by_tma);
    CHECK(wrong_products<f16, float>("Product<f16, float, 128, 64, 32>", 300, 96, 64, report) == 0);
    CHECK(report.instructions == best());
    CHECK(report.pairs == has_tensor_memory);
    CHECK(report.reason == "");
}

TEST_CASE("softmax of rows, which threads exchange")
{
    const Stream stream;
    Matrix<float> x(stream, 37, 1000), y(stream, 37, 1000);
    x.fill(small);
    program().kernel("Softmax<1024>").launch(stream, x.view(), y.view());
    y.read();
    double worst = 0;
    for (std::int64_t r = 0; r < x.rows; ++r) {
        double total = 0;
        for (std::int64_t c = 0; c < x.columns; ++c) {
            total += std::exp(x.at(r, c));
        }
        for (std::int64_t c = 0; c < x.columns; ++c) {
            worst = std::max(worst, std::abs(y.at(r, c) - std::exp(x.at(r, c)) / total));
        }
    }
    CHECK(worst < 1e-6);
}

TEST_CASE("attention: held tiles, bands with an end of their own, values that decide")
{
    for (const bool causal : {false, true}) {
        CHECK(worst_attention(128, causal) < 0.01);
        CHECK(worst_attention(200, causal) < 0.01);
        CHECK(worst_attention(1, causal) < 0.01);
    }
}

TEST_CASE("matrices that a program chooses by number")
{
    constexpr std::int64_t experts = 3, m = 512, n = 128, k = 64;
    const Stream stream;
    Matrix<f16> x(stream, m, k), w(stream, experts * k, n);
    Matrix<float> y(stream, m, n);
    x.fill(small);
    w.fill(small);
    const std::vector<int> chosen{2, 0, 1, 2};
    const auto numbers = DeviceBuffer<int>::from_host(stream, chosen);
    const BatchView<f16> weights(w.device.matrix(k, n), experts, k * n, 1, 0);
    CHECK(program().kernel("Grouped").launch(stream, x.view(), weights, y.view(), numbers.span()).instructions ==
          best());
    y.read();
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t l = 0; l < k; ++l) {
                sum += x.at(i, l) * w.at(chosen[static_cast<std::size_t>(i / 128)] * k + l, j);
            }
            wrong += sum == y.at(i, j) ? 0U : 1U;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("rows that a vector names, sums over all places, extents and whole tiles")
{
    constexpr std::int64_t rows = 96, m = 256, n = 128, k = 64;
    const Stream stream;
    Matrix<f16> x(stream, rows, k), w(stream, k, n);
    Matrix<float> y(stream, m, n), totals(stream, 1, n);
    x.fill(small);
    w.fill(small);
    std::vector<int> chosen(static_cast<std::size_t>(m));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        chosen[i] = static_cast<int>(i * 7 % rows);
    }
    const auto numbers = DeviceBuffer<int>::from_host(stream, chosen);
    for (const char* const type : {"Chosen<false, tile::Extents<>>", "Chosen<true, tile::Extents<96, 64>>"}) {
        totals.fill([] { return 0; });
        const tile::LaunchReport report =
            program().kernel(type).launch(stream, x.view(), w.view(), y.view(), totals.view(), numbers.span());
        CHECK(report.instructions == tile::Instructions::mma_sync);
        CHECK((report.reason.empty() || has(std::string(report.reason), "TMA does not gather")));
        y.read();
        totals.read();
        std::size_t wrong = 0;
        for (std::int64_t j = 0; j < n; ++j) {
            double total = 0;
            for (std::int64_t i = 0; i < m; ++i) {
                double sum = 0;
                for (std::int64_t l = 0; l < k; ++l) {
                    sum += x.at(chosen[static_cast<std::size_t>(i)], l) * w.at(l, j);
                }
                total += sum;
                wrong += sum == y.at(i, j) ? 0U : 1U;
            }
            wrong += total == totals.at(0, j) ? 0U : 1U;
        }
        CHECK(wrong == 0);
    }
    const tile::Kernel kernel = program().kernel("Chosen<true, tile::Extents<96, 64>>");
    CHECK(has(error_of([&] {
                  kernel.launch(stream, x.view().block(0, 0, 95, k), w.view(), y.view(), totals.view(), numbers.span());
              }),
              "the matrix is 95x64, and the program is compiled for 96x64"));
    CHECK(has(error_of([&] {
                  kernel.launch(stream, x.view(), w.view(), y.view().block(0, 0, 255, n), totals.view(),
                                numbers.span());
              }),
              "a matrix of 255x128 is not whole tiles of 128x128, and the program's hints say whole_tiles"));
}

TEST_CASE("arguments that do not fit are refused in words, and nothing is launched")
{
    const Stream stream;
    Matrix<float> x(stream, 16, 128), y(stream, 16, 128), z(stream, 16, 128);
    const tile::Kernel add = program().kernel("Add<float, 16, 128>");
    const auto launch = [&](const auto&... arguments) { return error_of([&] { add.launch(stream, arguments...); }); };
    CHECK(has(launch(x.view(), y.view(), z.view()), "Add<float, 16, 128> has 4 members, and the launch 3 arguments"));
    CHECK(has(launch(x.view(), y.view(), z.view(), 0.5),
              "member 4 of Add<float, 16, 128> is a floating-point number of 4 bytes, and argument 4 is a "
              "floating-point number of 8 bytes"));
    CHECK(has(launch(x.view(), y.view().transposed(), z.view(), 0.5F),
              "member 2 of Add<float, 16, 128> is an Input of f32 in tiles of (16, 128), row-major, and argument 2 is "
              "a column-major matrix of f32"));
    const DeviceBuffer<float>& constant = z.device;
    CHECK(has(launch(x.view(), y.view(), constant.matrix(16, 128), 0.5F), "a row-major matrix of const f32"));
    CHECK(has(launch(x.view(), 1, z.view(), 0.5F), "argument 2 is a signed integer of 4 bytes"));
    z.read();
    CHECK(z.host == std::vector<float>(z.host.size(), 77.0F));

    Matrix<f16> a(stream, 128, 64), b(stream, 80, 128);
    Matrix<float> bias(stream, 1, 128);
    Matrix<f16> d(stream, 128, 128);
    const std::string lengths = error_of([&] {
        program().kernel("Product<f16, f16, 128, 128, 32>").launch(stream, a.view(), b.view(), bias.view(), d.view());
    });
    CHECK(has(lengths, "shape_mismatch"));
    CHECK(has(lengths, "a stream has a band of 64 elements, and one of 80"));
    Matrix<f16> many(stream, std::int64_t{3} * 128, 64);
    const std::string batches = error_of([&] {
        program()
            .kernel("Product<f16, f16, 128, 128, 32>")
            .launch(stream, BatchView<f16>(many.device.matrix(128, 64), 3, std::int64_t{128} * 64, 1, 0),
                    b.view().block(0, 0, 64, 128), bias.view(), d.view());
    });
    CHECK(has(batches, "the output is a batch of 1 matrices, an input one of 3"));
}

TEST_CASE("Gemm::launch with an epilogue in a text")
{
    constexpr std::int64_t m = 70, n = 140, k = 40;
    const Stream stream;
    Matrix<f16> a(stream, m, k), b(stream, k, n), d(stream, m, n), residual(stream, m, n);
    Matrix<float> bias(stream, 1, n);
    for (Matrix<f16>* matrix : {&a, &b, &residual}) {
        matrix->fill(small);
    }
    bias.fill(small);
    Gemm::launch(stream, a.view(), b.view(), d.view(),
                 tile::epilogue("fmaxf(value + x0, x1 * (value + x0)) + x2 + row % 2",
                                tile::per_column(bias.device.span()), 0.25F, tile::per_element(residual.view())));
    d.read();
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = bias.at(0, j);
            for (std::int64_t l = 0; l < k; ++l) {
                sum += a.at(i, l) * b.at(l, j);
            }
            const double expected = std::max(sum, sum / 4) + residual.at(i, j) + static_cast<double>(i % 2);
            wrong += static_cast<double>(static_cast<float>(f16(static_cast<float>(expected)))) == d.at(i, j) ? 0U : 1U;
        }
    }
    CHECK(wrong == 0);
    // An activation of the library, in a text, has the bits of the library's own.
    Matrix<float> ours(stream, m, n), theirs(stream, m, n);
    Gemm::launch(stream, a.view(), b.view(), ours.view(),
                 tile::epilogue("tile::gelu_tanh(value + x0)", tile::per_column(bias.device.span())));
    Gemm::launch(stream, a.view(), b.view(), theirs.view(),
                 {.bias = Bias::per_column(bias.device.span()), .activation = Activation::gelu_tanh});
    ours.read();
    theirs.read();
    CHECK(ours.host == theirs.host);
    CHECK(has(error_of([&] { Gemm::launch(stream, a.view(), b.view(), d.view(), tile::epilogue("value +")); }),
              "the epilogue(2): error: expected an expression"));
    CHECK(has(error_of([&] {
                  Gemm::launch(stream, a.view(), b.view(), d.view(),
                               tile::epilogue("value + x0", tile::per_row(bias.device.span())));
              }),
              "per_row of the epilogue has 140 elements, and D 70 rows"));
}

TEST_CASE("a program without tiles launches nothing")
{
    const Stream stream;
    Matrix<float> x(stream, 0, 128), y(stream, 0, 128), z(stream, 0, 128);
    program().kernel("Add<float, 16, 128>").launch(stream, x.view(), y.view(), z.view(), 1.0F);
    stream.synchronize();
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
