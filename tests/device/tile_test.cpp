/// Tile programs: products, programs of rows, attention, compared with double, on whatever device there is: what it does not have
/// is left out.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "device_fixture.hpp"
#include "support/exact_product.hpp"
#include "support/test_main.hpp"
#include "tile_programs.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

int capability()
{
    const DeviceProperties& properties = Device::current().properties();
    return 10 * properties.compute_capability_major + properties.compute_capability_minor;
}

bool has_tensor_memory() { return Device::current().properties().has_tensor_memory; }

/// What a program that has no limits multiplies with.
tile::Instructions best_instructions()
{
    return has_tensor_memory()  ? tile::Instructions::tcgen05
           : capability() == 90 ? tile::Instructions::wgmma
                                : tile::Instructions::mma_sync;
}

/// A matrix on the host and its copy on the device, with elements before the first and after each line that nobody may touch.
template <class T, class Order>
struct Matrices {
    std::int64_t rows, columns, batches, leading_dimension, offset, stride;
    std::vector<T> host;
    DeviceBuffer<T> device;

    Matrices(StreamRef stream, std::int64_t r, std::int64_t c, std::int64_t count, std::int64_t gap, std::int64_t begin)
        : rows(r),
          columns(c),
          batches(count),
          leading_dimension(std::max<std::int64_t>((std::is_same_v<Order, RowMajor> ? c : r) + gap, 1)),
          offset(begin),
          stride(leading_dimension * (std::is_same_v<Order, RowMajor> ? r : c)),
          host(static_cast<std::size_t>(begin + stride * count), T(77.0F)),
          device(stream, host.size())
    {}
    std::size_t index(std::int64_t batch, std::int64_t row, std::int64_t column) const
    {
        return static_cast<std::size_t>(
            offset + batch * stride +
            (std::is_same_v<Order, RowMajor> ? row * leading_dimension + column : column * leading_dimension + row));
    }
    template <class Value>
    void fill(const Value& value)
    {
        for (std::int64_t b = 0; b < batches; ++b) {
            for (std::int64_t r = 0; r < rows; ++r) {
                for (std::int64_t c = 0; c < columns; ++c) {
                    host[index(b, r, c)] = T(static_cast<float>(value()));
                }
            }
        }
        device.copy_from(gsl::span<const T>(host));
    }
    double at(std::int64_t batch, std::int64_t row, std::int64_t column) const
    {
        return static_cast<double>(static_cast<float>(host[index(batch, row, column)]));
    }
    HostMatrix values(std::int64_t batch) const
    {
        HostMatrix result(rows, columns);
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < columns; ++c) {
                result.at(r, c) = static_cast<float>(host[index(batch, r, c)]);
            }
        }
        return result;
    }
    BatchView<T, Order> view()
    {
        return BatchView<T, Order>(
            MatrixView<T, Order>::from_raw_device_pointer(device.data() + offset, rows, columns, leading_dimension),
            batches, stride, 1, 0);
    }
};

struct Sizes {
    std::int64_t m, n, k, batches, gap, offset;
};

/// Returns how many elements of a product are wrong, or were written outside of it.
template <class A, class B, class D, class OrderA, class OrderB, class OrderD>
std::size_t wrong_products(TileShape shape, const Sizes& sizes)
{
    const Stream stream;
    std::mt19937_64 engine = random_engine(7);
    const auto small = [&] { return static_cast<int>(engine() % 9) - 4; };
    Matrices<A, OrderA> a(stream, sizes.m, sizes.k, sizes.batches, sizes.gap, sizes.offset);
    Matrices<B, OrderB> b(stream, sizes.k, sizes.n, sizes.batches, sizes.gap, sizes.offset);
    Matrices<float, RowMajor> bias(stream, 1, sizes.n, 1, 0, 0);
    Matrices<D, OrderD> c(stream, sizes.m, sizes.n, sizes.batches, sizes.gap, sizes.offset);
    Matrices<D, OrderD> d(stream, sizes.m, sizes.n, sizes.batches, sizes.gap, sizes.offset);
    a.fill(small);
    b.fill(small);
    bias.fill(small);
    c.fill(small);
    d.fill([] { return 99; });
    const tile::LaunchReport report = tile_product<A, B, D, OrderA, OrderB, OrderD>(
        stream, shape, a.view(), b.view(), bias.view().first(), c.view(), d.view());
    CHECK((report.instructions == best_instructions() || sizes.m != 128));  // others may be out of TMA's reach
    const std::vector<D> before = d.host;
    d.host = d.device.to_vector();
    std::size_t wrong = 0;
    for (std::int64_t batch = 0; batch < sizes.batches; ++batch) {
        HostMatrix sums = c.values(batch);
        add_product(sums, a.values(batch), b.values(batch));
        for (std::int64_t i = 0; i < sizes.m; ++i) {
            for (std::int64_t j = 0; j < sizes.n; ++j) {
                const auto expected = D(sums.at(i, j) + static_cast<float>(bias.at(0, 0, j)));
                wrong += static_cast<float>(expected) == static_cast<float>(d.host[d.index(batch, i, j)]) ? 0U : 1U;
                d.host[d.index(batch, i, j)] = before[d.index(batch, i, j)];
            }
        }
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
        wrong += static_cast<float>(before[i]) == static_cast<float>(d.host[i])
                     ? 0U
                     : 1U;  // between lines, before the first
    }
    return wrong;
}

template <class A, class B, class D, class OrderA, class OrderB, class OrderD>
void check_products()
{
    for (const TileShape shape : {TileShape::large, TileShape::small}) {
        if (shape == TileShape::large && capability() < 80) {
            continue;  // 64 KiB of shared memory: two steps of these tiles, and nothing else
        }
        for (const Sizes& sizes : {Sizes{128, 128, 256, 1, 0, 0}, Sizes{200, 136, 96, 1, 8, 0}, Sizes{1, 1, 1, 1, 0, 0},
                                   Sizes{130, 70, 33, 1, 3, 1}, Sizes{48, 300, 520, 1, 16, 16},
                                   Sizes{72, 72, 80, 3, 16, 0}, Sizes{5, 9, 0, 1, 0, 0}}) {
            CAPTURE(sizes.m);
            CAPTURE(sizes.k);
            CHECK(wrong_products<A, B, D, OrderA, OrderB, OrderD>(shape, sizes) == 0);
        }
    }
}

struct SumsResult {
    std::size_t wrong;  // elements
    tile::LaunchReport report;
};

/// Runs a program that does more with its sums than to store them.
template <int M, int N>
SumsResult run_sums(SumsProgram program, std::int64_t m, std::int64_t n, std::int64_t k)
{
    constexpr std::int64_t k_of_tile = 64;
    const Stream stream;
    std::mt19937_64 engine = random_engine(13);
    const auto small = [&] { return static_cast<int>(engine() % 9) - 4; };
    Matrices<f16, RowMajor> a(stream, m, k, 1, 0, 0), b(stream, k, n, 1, 0, 0);
    Matrices<float, RowMajor> c(stream, m, n, 1, 0, 0), d(stream, m, n, 1, 0, 0);
    a.fill(small);
    b.fill(small);
    c.fill(small);
    d.fill([] { return 99; });
    SumsResult result{
        0, tile_sums<M, N>(stream, program, a.view().first(), b.view().first(), c.view().first(), d.view().first())};
    d.host = d.device.to_vector();
    HostMatrix sums = program == SumsProgram::from_c ? c.values(0) : HostMatrix(m, n);
    HostMatrix totals(m, n);  // of the sums after each step
    const HostMatrix left = a.values(0);
    const HostMatrix right = b.values(0);
    for (std::int64_t first = 0; first < k; first += k_of_tile) {
        add_product(sums, left, right, first, std::min(k, first + k_of_tile));
        for (std::size_t i = 0; i < sums.values.size(); ++i) {
            sums.values[i] *= program == SumsProgram::replaced_between_steps ? -1.0F : 1.0F;
            totals.values[i] += sums.values[i];
        }
    }
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            float expected = sums.at(i, j);
            switch (program) {
                case SumsProgram::read_between_steps:
                case SumsProgram::used_after_passed_on: expected = totals.at(i, j); break;
                case SumsProgram::copied: expected *= 3; break;
                case SumsProgram::with_rows: expected += static_cast<float>(i); break;
                default: break;
            }
            result.wrong += d.host[d.index(0, i, j)] == expected ? 0U : 1U;
        }
    }
    return result;
}

/// Checks programs of sums, and on which instructions they run.
template <int M, int N>
void check_sums()
{
    constexpr SumsProgram programs[] = {
        SumsProgram::product, SumsProgram::without_pairs,      SumsProgram::with_rows,
        SumsProgram::from_c,  SumsProgram::read_between_steps, SumsProgram::replaced_between_steps,
        SumsProgram::copied,  SumsProgram::not_read,           SumsProgram::held};
    for (const SumsProgram program : programs) {
        for (const std::int64_t rows : {M + 8, 2 * M + 1, 3 * M}) {  // pairs of places: whole, and one that is outside
            const std::int64_t k = program == SumsProgram::held ? 56 : 136;
            CAPTURE(static_cast<int>(program));
            CAPTURE(rows);
            const SumsResult result = run_sums<M, N>(program, rows, 2 * N + 16, k);
            CAPTURE(result.report.reason);
            CHECK(result.wrong == 0);
            CHECK(result.report.instructions == best_instructions());
            const bool one_by_one = program == SumsProgram::without_pairs || program == SumsProgram::with_rows;
            CHECK(result.report.pairs == (has_tensor_memory() && !one_by_one));
            CHECK(result.report.reason.empty() == (!has_tensor_memory() || !one_by_one));
            CHECK(result.report.by_tma == (capability() >= 90));
            CHECK(result.report.cluster == (result.report.pairs ? 2 : 1));
            CHECK(result.report.cluster_reason.empty() == (program != SumsProgram::without_pairs));
        }
    }
}

/// What a program of rows gives for a matrix, in tiles of (tile_rows, tile_columns).
std::vector<double> expected_rows(RowProgram program, const Matrices<float, RowMajor>& x, std::int64_t tile_rows,
                                  std::int64_t tile_columns)
{
    std::vector<double> y(static_cast<std::size_t>(x.rows * x.columns));
    for (std::int64_t r = 0; r < x.rows; ++r) {
        double largest = -std::numeric_limits<double>::infinity(), sum = 0, squares = 0, powers = 0;
        for (std::int64_t c = 0; c < x.columns; ++c) {
            largest = std::max(largest, x.at(0, r, c));
            sum += x.at(0, r, c);
        }
        const double mean = sum / static_cast<double>(x.columns);
        for (std::int64_t c = 0; c < x.columns; ++c) {
            powers += std::exp(x.at(0, r, c) - largest);
            squares += (x.at(0, r, c) - mean) * (x.at(0, r, c) - mean);
        }
        double tile_sum = 0;  // of the tile that has element (r, c)
        for (std::int64_t c = 0; c < x.columns; ++c) {
            const double value = x.at(0, r, c);
            const std::int64_t first_row = r / tile_rows * tile_rows;
            const std::int64_t end_row = std::min(x.rows, first_row + tile_rows);
            double column_sum = 0;
            for (std::int64_t i = first_row; i < end_row; ++i) {
                column_sum += x.at(0, i, c);
            }
            tile_sum = c % tile_columns == 0 ? 0 : tile_sum;
            for (std::int64_t j = c; c % tile_columns == 0 && j < std::min(x.columns, c + tile_columns); ++j) {
                for (std::int64_t i = first_row; i < end_row; ++i) {
                    tile_sum += x.at(0, i, j);
                }
            }
            double& result = y[static_cast<std::size_t>(r * x.columns + c)];
            switch (program) {
                case RowProgram::scale: result = 2 * value + 1; break;
                case RowProgram::softmax: result = std::exp(value - largest) / powers; break;
                case RowProgram::normalize:
                    result = (value - mean) / std::sqrt(squares / static_cast<double>(x.columns));
                    break;
                case RowProgram::less_column: result = value - column_sum / static_cast<double>(tile_rows); break;
                case RowProgram::less_tile:
                    result = value - tile_sum / static_cast<double>(tile_rows * tile_columns);
                    break;
                case RowProgram::transposed: result = 2 * value; break;
                case RowProgram::positions:
                    result = value > 0 ? static_cast<double>(1000 * (r % tile_rows) + c % tile_columns) : value;
                    break;
            }
        }
    }
    return y;
}

template <class T, int Rows, int Columns>
void check_rows(double unit)
{
    const Stream stream;
    std::mt19937_64 engine = random_engine(11);
    std::vector<RowProgram> programs{RowProgram::scale, RowProgram::softmax, RowProgram::normalize,
                                     RowProgram::transposed, RowProgram::positions};
    if (Rows > 1) {
        programs.push_back(RowProgram::less_column);
        programs.push_back(RowProgram::less_tile);
    }
    for (const RowProgram program : programs) {
        const bool whole_rows = program == RowProgram::softmax || program == RowProgram::normalize;
        for (const std::int64_t columns : {Columns, Columns / 2 + 8, 13, whole_rows ? 24 : 2 * Columns + 1}) {
            for (const std::int64_t rows : {1, 2 * Rows, 3 * Rows + 1}) {
                Matrices<float, RowMajor> x(stream, rows, columns, 1, 0, 0);
                Matrices<T, RowMajor> narrow(stream, rows, columns, 1, columns % 8 == 0 ? 8 : 1, 0);
                Matrices<T, RowMajor> y(stream, rows, columns, 1, columns % 8 == 0 ? 8 : 3, 0);
                narrow.fill([&] { return static_cast<float>(static_cast<int>(engine() % 64) - 32) / 8; });
                for (std::int64_t r = 0; r < rows; ++r) {
                    for (std::int64_t c = 0; c < columns; ++c) {
                        x.host[x.index(0, r, c)] = static_cast<float>(narrow.at(0, r, c));
                    }
                }
                y.fill([] { return 55; });
                tile_rows<T, Rows, Columns>(stream, program, narrow.view().first(), y.view().first());
                y.host = y.device.to_vector();
                const std::vector<double> expected = expected_rows(program, x, Rows, Columns);
                double worst = 0;
                for (std::int64_t r = 0; r < rows; ++r) {
                    for (std::int64_t c = 0; c < columns; ++c) {
                        const double should = expected[static_cast<std::size_t>(r * columns + c)];
                        worst = std::max(worst, std::abs(should - y.at(0, r, c)) / (0.05 + std::abs(should)));
                    }
                }
                CAPTURE(static_cast<int>(program));
                CAPTURE(rows);
                CAPTURE(columns);
                CHECK(worst <= unit);
                std::size_t touched = 0;  // between the rows
                for (std::int64_t r = 0; r < rows; ++r) {
                    for (std::int64_t c = columns; c < y.leading_dimension; ++c) {
                        touched += static_cast<float>(y.host[y.index(0, r, c)]) == 77.0F ? 0U : 1U;
                    }
                }
                CHECK(touched == 0);
            }
        }
    }
}

double worst_attention(std::int64_t length, std::int64_t heads, bool causal)
{
    constexpr std::int64_t depth = 128;
    const Stream stream;
    std::mt19937_64 engine = random_engine(5);
    std::normal_distribution<float> normal;
    const auto random = [&] { return normal(engine); };
    Matrices<bf16, RowMajor> q(stream, length, depth, heads, 0, 0), k(stream, length, depth, heads, 0, 0),
        v(stream, length, depth, heads, 0, 0), z(stream, length, depth, heads, 0, 0);
    q.fill(random);
    k.fill(random);
    v.fill(random);
    const float scale = 1 / std::sqrt(static_cast<float>(depth));
    const tile::LaunchReport report =
        tile_attention<bf16>(stream, q.view(), k.view(), v.view(), z.view(), scale, causal);
    CHECK(report.instructions == best_instructions());
    CHECK_FALSE(report.pairs);
    z.host = z.device.to_vector();
    double worst = 0;
    std::vector<double> weights(static_cast<std::size_t>(length));
    for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < length; ++i) {
            const auto end = static_cast<std::size_t>(causal ? i + 1 : length);
            double largest = -std::numeric_limits<double>::infinity(), total = 0;
            for (std::size_t j = 0; j < end; ++j) {
                weights[j] = 0;
                for (std::int64_t c = 0; c < depth; ++c) {
                    weights[j] += q.at(h, i, c) * k.at(h, static_cast<std::int64_t>(j), c) * static_cast<double>(scale);
                }
                largest = std::max(largest, weights[j]);
            }
            for (std::size_t j = 0; j < end; ++j) {
                weights[j] = std::exp(weights[j] - largest);
                total += weights[j];
            }
            for (std::int64_t c = 0; c < depth; ++c) {
                double sum = 0;
                for (std::size_t j = 0; j < end; ++j) {
                    sum += weights[j] / total * v.at(h, static_cast<std::int64_t>(j), c);
                }
                worst = std::max(worst, std::abs(sum - z.at(h, i, c)) / (1 + std::abs(sum)));
            }
        }
    }
    return worst;
}

}  // namespace

TEST_CASE("products of f16 tiles are exact in every order, with bias and C")
{
    check_products<f16, f16, f16, RowMajor, RowMajor, RowMajor>();
    check_products<f16, f16, f16, RowMajor, ColumnMajor, RowMajor>();
    check_products<f16, f16, float, ColumnMajor, RowMajor, RowMajor>();
    check_products<f16, f16, float, ColumnMajor, ColumnMajor, ColumnMajor>();
}

TEST_CASE("Gemm::launch with an epilogue of its own, which knows rows, columns and elements")
{
    const Stream stream;
    std::mt19937_64 engine = random_engine(29);
    const auto small = [&] { return static_cast<int>(engine() % 9) - 4; };
    for (const Sizes& sizes : {Sizes{200, 264, 136, 1, 0, 0}, Sizes{65, 130, 72, 2, 3, 1}, Sizes{1, 1, 8, 1, 0, 0}}) {
        Matrices<f16, RowMajor> a(stream, sizes.m, sizes.k, sizes.batches, sizes.gap, sizes.offset);
        Matrices<f16, ColumnMajor> b(stream, sizes.k, sizes.n, sizes.batches, sizes.gap, sizes.offset);
        Matrices<f16, RowMajor> elements(stream, sizes.m, sizes.n, sizes.batches, sizes.gap, sizes.offset);
        Matrices<float, RowMajor> columns(stream, 1, sizes.n, 1, 0, 0),
            d(stream, sizes.m, sizes.n, sizes.batches, 0, 0);
        Matrices<f16, RowMajor> rows(stream, 1, sizes.m, 1, 0, 0);
        a.fill(small);
        b.fill(small);
        elements.fill(small);
        columns.fill(small);
        rows.fill(small);
        own_epilogue(stream, a.view(), b.view(), columns.device.span(), rows.device.span(), elements.view(), d.view());
        d.host = d.device.to_vector();
        std::size_t wrong = 0;
        for (std::int64_t batch = 0; batch < sizes.batches; ++batch) {
            HostMatrix sums(sizes.m, sizes.n);
            add_product(sums, a.values(batch), b.values(batch));
            for (std::int64_t i = 0; i < sizes.m; ++i) {
                for (std::int64_t j = 0; j < sizes.n; ++j) {
                    const double sum = static_cast<double>(sums.at(i, j)) + columns.at(0, 0, j) - rows.at(0, 0, i);
                    const double expected = std::max(sum, elements.at(batch, i, j) * static_cast<double>(i % 3));
                    wrong += expected == d.at(batch, i, j) ? 0U : 1U;
                }
            }
        }
        CAPTURE(sizes.m);
        CHECK(wrong == 0);
    }
    // What does not fit is refused before anything is launched.
    Matrices<f16, RowMajor> a(stream, 16, 16, 1, 0, 0);
    Matrices<f16, ColumnMajor> b(stream, 16, 16, 1, 0, 0), deep(stream, 24, 16, 1, 0, 0);
    Matrices<float, RowMajor> d(stream, 16, 16, 1, 0, 0), columns(stream, 1, 16, 1, 0, 0), few(stream, 1, 8, 1, 0, 0);
    Matrices<f16, RowMajor> rows(stream, 1, 16, 1, 0, 0);
    const auto launch = [&](auto& right, auto& vector, auto& elements) {
        return code_of([&] {
            own_epilogue(stream, a.view(), right.view(), vector.device.span(), rows.device.span(), elements.view(),
                         d.view());
        });
    };
    CHECK(launch(deep, columns, a) == ErrorCode::shape_mismatch);
    CHECK(launch(b, few, a) == ErrorCode::shape_mismatch);
    CHECK(launch(b, columns, rows) == ErrorCode::shape_mismatch);
}

TEST_CASE("what warps exchange does not touch the tiles that are loaded meanwhile")
{
    if (capability() < 80) {
        return;  // 64 KiB of shared memory: two steps of these tiles, and nothing else
    }
    // More tiles than SMs: on a GPU with warp roles, the next product is loaded while this one's columns are summed.
    constexpr std::int64_t m = 128, n = 128 * 150, k = 512;
    const Stream stream;
    std::mt19937_64 engine = random_engine(23);
    Matrices<f16, RowMajor> a(stream, m, k, 1, 0, 0), b(stream, k, n, 1, 0, 0);
    Matrices<float, RowMajor> d(stream, m, n, 1, 0, 0);
    const auto random = [&] { return static_cast<float>(static_cast<int>(engine() % 5) - 2); };
    a.fill(random);
    b.fill(random);
    tile_centred_product(stream, a.view().first(), b.view().first(), d.view().first());
    d.host = d.device.to_vector();
    std::size_t wrong = 0;
    HostMatrix sums(m, n);
    add_product(sums, a.values(0), b.values(0));
    for (std::int64_t c = 0; c < n; ++c) {
        double mean = 0;
        for (std::int64_t r = 0; r < m; ++r) {
            mean += static_cast<double>(sums.at(r, c)) / m;
        }
        for (std::int64_t r = 0; r < m; ++r) {
            wrong += static_cast<double>(sums.at(r, c)) - mean == d.at(0, r, c) ? 0U : 1U;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("products of bf16 and tf32 tiles are exact")
{
    if (capability() >= 80) {
        check_products<bf16, bf16, bf16, RowMajor, RowMajor, RowMajor>();
        check_products<bf16, bf16, float, ColumnMajor, ColumnMajor, RowMajor>();
        check_products<tf32, tf32, float, RowMajor, ColumnMajor, RowMajor>();
    }
}

TEST_CASE("products of tiles of 8-bit floats are exact")
{
    if (capability() >= 89) {
        check_products<f8e4m3, f8e4m3, bf16, RowMajor, ColumnMajor, RowMajor>();
        check_products<f8e4m3, f8e5m2, float, RowMajor, ColumnMajor, RowMajor>();
        check_products<f8e5m2, f8e4m3, float, RowMajor, ColumnMajor, RowMajor>();
    }
}

TEST_CASE("sums can be read, replaced, copied and left between products")
{
    if (capability() >= 80) {
        check_sums<128, 128>();
        check_sums<256, 64>();
    }
}

TEST_CASE("sums in tensor memory are in one place: a program that uses them twice has other instructions")
{
    if (has_tensor_memory()) {
        const SumsResult result = run_sums<128, 128>(SumsProgram::used_after_passed_on, 256, 128, 192);
        CHECK(result.wrong == 0);
        CHECK(result.report.instructions == tile::Instructions::mma_sync);
        CHECK(result.report.reason == "sums are used after they were passed on: they are in one place only");
    }
}

TEST_CASE("programs of rows: loads, stores, reductions, exchanges, at every edge")
{
    check_rows<float, 1, 1024>(2e-6);
    check_rows<float, 1, 768>(2e-6);   // a thread has parts of a row, or nothing
    check_rows<float, 2, 2048>(2e-6);  // pairs of lanes exchange vectors
    check_rows<float, 4, 32>(2e-6);
    check_rows<f16, 16, 128>(1.0 / 1024);
    check_rows<bf16, 2, 4096>(1.0 / 128);
}

TEST_CASE("what an input has less than the output is loaded as outside, also where no row of a tile is left")
{
    const Stream stream;
    Matrices<bf16, RowMajor> x(stream, 3, 4096, 1, 0, 0);
    Matrices<bf16, RowMajor> y(stream, 8, 4096, 1, 0, 0);
    x.fill([] { return 2; });
    tile_rows<bf16, 2, 4096>(stream, RowProgram::scale, x.view().first(), y.view().first());
    y.host = y.device.to_vector();
    std::size_t wrong = 0;
    for (std::int64_t row = 0; row < y.rows; ++row) {
        for (std::int64_t column = 0; column < y.columns; ++column) {
            wrong += y.at(0, row, column) == (row < x.rows ? 5.0 : 1.0) ? 0U : 1U;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("attention, with and without a causal mask, for lengths that tiles do not divide")
{
    if (capability() >= 80) {
        CHECK(worst_attention(128, 1, false) < 0.01);
        CHECK(worst_attention(200, 2, false) < 0.01);
        CHECK(worst_attention(200, 2, true) < 0.01);
        CHECK(worst_attention(1, 1, true) < 0.01);
    }
}

TEST_CASE("a program that cannot run is refused before anything is launched")
{
    const Stream stream;
    Matrices<f16, RowMajor> a(stream, 64, 64, 1, 0, 0), b(stream, 72, 64, 1, 0, 0), c(stream, 64, 64, 1, 0, 0),
        d(stream, 64, 64, 1, 0, 0), b3(stream, 64, 64, 3, 0, 0);
    Matrices<float, RowMajor> bias(stream, 1, 64, 1, 0, 0);
    a.fill([] { return 1; });
    bias.fill([] { return 1; });
    c.fill([] { return 1; });
    const auto product = [&](auto& left, auto& right) {
        tile_product<f16, f16, f16, RowMajor, RowMajor, RowMajor>(stream, TileShape::small, left.view(), right.view(),
                                                                  bias.view().first(), c.view(), d.view());
    };
    CHECK(code_of([&] { product(a, b); }) == ErrorCode::shape_mismatch);   // 64 columns, 72 rows
    CHECK(code_of([&] { product(a, b3); }) == ErrorCode::shape_mismatch);  // one D, three B
    CHECK(code_of([&] { tile_holds_five(stream, a.view().first(), d.view().first()); }) == ErrorCode::launch_refused);
    product(a, a);
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
