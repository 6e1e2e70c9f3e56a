// Products of sharded matrices on all emulated devices. Elements are small integers, so that every sum is exact in every order: a
// result must be equal to the product of whole matrices, bit by bit.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "ranks.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::distributed;
using namespace tessera::test;

namespace {

constexpr CommunicatorOptions by_kernels{.copy_engines = false};

/// Whole matrices, on the host.
struct Whole {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::vector<float> a;
    std::vector<float> b;
    std::vector<float> bias;

    Whole(std::int64_t rows, std::int64_t columns, std::int64_t inner, std::uint64_t salt)
        : m(rows), n(columns), k(inner), a(size(m, k)), b(size(k, n)), bias(static_cast<std::size_t>(n))
    {
        auto engine = random_engine(salt);
        std::uniform_int_distribution<int> values(-1, 1);
        for (auto* const matrix : {&a, &b, &bias}) {
            std::generate(matrix->begin(), matrix->end(), [&] { return static_cast<float>(values(engine)); });
        }
    }
    static std::size_t size(std::int64_t rows, std::int64_t columns)
    {
        return static_cast<std::size_t>(rows * columns);
    }

    float d(std::int64_t row, std::int64_t column, bool fused) const
    {
        float sum = 0;
        for (std::int64_t i = 0; i < k; ++i) {
            sum += a[size(row, k) + static_cast<std::size_t>(i)] * b[size(i, n) + static_cast<std::size_t>(column)];
        }
        return fused ? std::max(2 * sum + bias[static_cast<std::size_t>(column)], 0.0F) : sum;
    }
};

/// A block of a matrix on the host, in the given order.
template <class T>
std::vector<T> block(const std::vector<float>& matrix, std::int64_t all_columns, Share rows, Share columns,
                     bool row_major = true)
{
    std::vector<T> part(static_cast<std::size_t>(rows.size * columns.size));
    for (std::int64_t i = 0; i < rows.size; ++i) {
        for (std::int64_t j = 0; j < columns.size; ++j) {
            part[static_cast<std::size_t>(row_major ? i * columns.size + j : j * rows.size + i)] =
                T(matrix[static_cast<std::size_t>((rows.begin + i) * all_columns + columns.begin + j)]);
        }
    }
    return part;
}

enum class Kind : std::uint8_t { gather, scatter, reduce, local };

struct Case {
    Kind kind = Kind::gather;
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    int chunks = 0;
    bool fused = false;
    bool captured = false;
    bool b_column_major = false;
    int launches = 1;
};

template <class T>
void multiply(const Communicator& communicator, const Whole& whole, const Case& one)
{
    const int rank = communicator.rank();
    const int size = communicator.size();
    const Share all_m{0, whole.m};
    const Share all_n{0, whole.n};
    const Share all_k{0, whole.k};
    const bool is_sum = one.kind == Kind::scatter || one.kind == Kind::reduce;
    const Share m = Share::of(whole.m, size, rank);
    const Share n = is_sum ? all_n : Share::of(whole.n, size, rank);
    const Share k = is_sum ? Share::of(whole.k, size, rank) : all_k;
    const Share a_rows = one.kind == Kind::gather ? m : all_m;
    const Share d_rows = one.kind == Kind::scatter ? m : all_m;

    const Stream stream(communicator.device());
    const auto a_host = block<T>(whole.a, whole.k, a_rows, k);
    const auto b_host = block<T>(whole.b, whole.n, k, n, !one.b_column_major);
    const auto bias_host = block<float>(whole.bias, whole.n, {0, 1}, n);
    const auto a = DeviceBuffer<T>::from_host(stream, a_host);
    const auto b = DeviceBuffer<T>::from_host(stream, b_host);
    const auto bias = DeviceBuffer<float>::from_host(stream, bias_host);
    const MatrixOperand a_local = a.matrix(a_rows.size, k.size);
    const MatrixOperand b_local = one.b_column_major ? MatrixOperand(b.template matrix<ColumnMajor>(k.size, n.size))
                                                     : MatrixOperand(b.matrix(k.size, n.size));
    constexpr std::size_t guard = 256;
    const auto elements = static_cast<std::size_t>(d_rows.size * n.size);
    DeviceBuffer<T> d(stream, elements + guard);
    d.fill(stream, T(-77.0F));
    const MatrixOperand d_local = d.matrix(d_rows.size, n.size);

    const auto sharded = [&](Sharding sharding, std::int64_t rows, std::int64_t columns, const MatrixOperand& local) {
        return sharding == Sharding::by_rows      ? ShardedMatrix::by_rows(communicator, rows, columns, local)
               : sharding == Sharding::by_columns ? ShardedMatrix::by_columns(communicator, rows, columns, local)
                                                  : ShardedMatrix::replicated(communicator, rows, columns, local);
    };
    const auto of_a = is_sum                    ? Sharding::by_columns
                      : one.kind == Kind::local ? Sharding::replicated
                                                : Sharding::by_rows;
    const auto of_d = one.kind == Kind::scatter  ? Sharding::by_rows
                      : one.kind == Kind::reduce ? Sharding::replicated
                                                 : Sharding::by_columns;
    Epilogue epilogue;
    if (one.fused) {
        epilogue = {.alpha = 2.0F, .bias = Bias::per_column(bias.span()), .activation = Activation::relu};
    }
    const auto product =
        ShardedGemm::prepare(communicator, sharded(of_a, whole.m, whole.k, a_local),
                             sharded(is_sum ? Sharding::by_rows : Sharding::by_columns, whole.k, whole.n, b_local),
                             sharded(of_d, whole.m, whole.n, d_local), epilogue, {.chunks = one.chunks});
    communicator.synchronize(stream);
    if (one.captured) {
        const Graph graph = Graph::capture(stream, [&](StreamRef captured) { product.launch(captured); });
        for (int i = 0; i < one.launches; ++i) {
            graph.launch(stream);
        }
        communicator.synchronize(stream);
    } else {
        for (int i = 0; i < one.launches; ++i) {
            product.launch(stream);
        }
    }
    communicator.synchronize(stream);
    const std::vector<T> found = d.to_vector();
    for (std::size_t i = 0; i < found.size(); ++i) {
        const float expected = i < elements ? whole.d(d_rows.begin + static_cast<std::int64_t>(i) / n.size,
                                                      n.begin + static_cast<std::int64_t>(i) % n.size, one.fused)
                                            : -77.0F;
        if (float(found[i]) != expected) {
            throw std::runtime_error(
                fmt::format("rank {}: element {} of {} is {}, not {}", rank, i, elements, float(found[i]), expected));
        }
    }
}

/// Launches a plan for two pairs of A and D in turn, without waiting: what one launch gathers or sums must not be that of the next.
void multiply_in_turn(const Communicator& communicator, bool gathers)
{
    constexpr std::int64_t m = 256;
    constexpr std::int64_t n = 64;
    constexpr std::int64_t k = 64;
    constexpr int launches = 6;
    const Share rows = Share::of(m, communicator.size(), communicator.rank());
    const Share inner = Share::of(k, communicator.size(), communicator.rank());
    const Share columns = Share::of(n, communicator.size(), communicator.rank());
    const Stream stream(communicator.device());
    const std::int64_t a_rows = gathers ? rows.size : m;
    const std::int64_t a_columns = gathers ? k : inner.size;
    const std::int64_t d_rows = gathers ? m : rows.size;
    const std::int64_t d_columns = gathers ? columns.size : n;
    std::vector<DeviceBuffer<bf16>> a;
    std::vector<DeviceBuffer<bf16>> d;
    for (int i = 0; i < launches; ++i) {
        a.emplace_back(stream, a_rows * a_columns);
        a.back().fill(stream, bf16(static_cast<float>(i + 1)));
        d.emplace_back(stream, d_rows * d_columns);
    }
    DeviceBuffer<bf16> b(stream, a_columns * d_columns);
    b.fill(stream, bf16(0.25F));
    const auto matrix_a = [&](std::size_t i) {
        return gathers ? ShardedMatrix::by_rows(communicator, m, k, a[i].matrix(a_rows, a_columns))
                       : ShardedMatrix::by_columns(communicator, m, k, a[i].matrix(a_rows, a_columns));
    };
    const auto matrix_d = [&](std::size_t i) {
        return gathers ? ShardedMatrix::by_columns(communicator, m, n, d[i].matrix(d_rows, d_columns))
                       : ShardedMatrix::by_rows(communicator, m, n, d[i].matrix(d_rows, d_columns));
    };
    const auto matrix_b = gathers ? ShardedMatrix::by_columns(communicator, k, n, b.matrix(a_columns, d_columns))
                                  : ShardedMatrix::by_rows(communicator, k, n, b.matrix(a_columns, d_columns));
    const auto product = ShardedGemm::prepare(communicator, matrix_a(0), matrix_b, matrix_d(0), {}, {.chunks = 2});
    for (std::size_t i = 0; i < launches; ++i) {
        product.launch(stream, matrix_a(i), matrix_b, matrix_d(i));
    }
    communicator.synchronize(stream);
    for (std::size_t i = 0; i < launches; ++i) {
        const float expected = static_cast<float>(i + 1) * k / 4;
        for (const bf16 value : d[i].to_vector()) {
            if (float(value) != expected) {
                throw std::runtime_error(
                    fmt::format("rank {}: launch {} has {}, not {}", communicator.rank(), i, float(value), expected));
            }
        }
    }
}

/// Multiplies matrices by blocks: A in a grid of grid_rows x grid_columns ranks, B and D crosswise.
template <class T>
void multiply_blocks(const Communicator& communicator, const Whole& whole, int grid_rows, int grid_columns,
                     GridOrder order, int chunks, bool fused, bool captured)
{
    const int rank = communicator.rank();
    const auto other = order == GridOrder::along_rows ? GridOrder::along_columns : GridOrder::along_rows;
    const Stream stream(communicator.device());
    // What a rank has of each matrix follows from a view without memory.
    const auto form = [&](std::int64_t rows, std::int64_t columns, bool crosswise) {
        return ShardedMatrix{.rows = rows,
                             .columns = columns,
                             .sharding = Sharding::by_blocks,
                             .grid_rows = crosswise ? grid_columns : grid_rows,
                             .grid_columns = crosswise ? grid_rows : grid_columns,
                             .grid_order = crosswise ? other : order,
                             .rank = rank};
    };
    const auto view = [&](ShardedMatrix shape, const MatrixOperand& local) {
        return ShardedMatrix::by_blocks(communicator, shape.rows, shape.columns, shape.grid_rows, shape.grid_columns,
                                        local, shape.grid_order);
    };
    const ShardedMatrix of_a = form(whole.m, whole.k, false);
    const ShardedMatrix of_b = form(whole.k, whole.n, true);
    const ShardedMatrix of_d = form(whole.m, whole.n, true);
    const Share m = of_d.rows_of(rank);
    const Share n = of_d.columns_of(rank);
    const auto a =
        DeviceBuffer<T>::from_host(stream, block<T>(whole.a, whole.k, of_a.rows_of(rank), of_a.columns_of(rank)));
    const auto b =
        DeviceBuffer<T>::from_host(stream, block<T>(whole.b, whole.n, of_b.rows_of(rank), of_b.columns_of(rank)));
    const auto bias = DeviceBuffer<float>::from_host(stream, block<float>(whole.bias, whole.n, {0, 1}, n));
    DeviceBuffer<T> d(stream, static_cast<std::size_t>(m.size * n.size));
    d.fill(stream, T(-77.0F));
    Epilogue epilogue;
    if (fused) {
        epilogue = {.alpha = 2.0F, .bias = Bias::per_column(bias.span()), .activation = Activation::relu};
    }
    const auto product =
        ShardedGemm::prepare(communicator, view(of_a, a.matrix(of_a.rows_of(rank).size, of_a.columns_of(rank).size)),
                             view(of_b, b.matrix(of_b.rows_of(rank).size, of_b.columns_of(rank).size)),
                             view(of_d, d.matrix(m.size, n.size)), epilogue, {.chunks = chunks});
    communicator.synchronize(stream);
    if (captured) {
        const Graph graph = Graph::capture(stream, [&](StreamRef on) { product.launch(on); });
        graph.launch(stream);
        graph.launch(stream);
        communicator.synchronize(stream);
    } else {
        product.launch(stream);
        product.launch(stream);
    }
    communicator.synchronize(stream);
    const std::vector<T> found = d.to_vector();
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const double expected = whole.d(m.begin + at / n.size, n.begin + at % n.size, fused);
        if (double(float(found[i])) != expected) {
            throw std::runtime_error(fmt::format("rank {}: element {} of {}x{} is {}, not {}", rank, i, m.size, n.size,
                                                 float(found[i]), expected));
        }
    }
    if (chunks > 1 && communicator.size() > 1 &&
        product.explain().find("reduce-scatter of D: A") == std::string::npos) {
        throw std::runtime_error(product.explain());
    }
}

struct BlockCase {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    int chunks = 1;
    bool fused = false;
    bool captured = false;
};

/// In all grids of all devices, in both orders.
template <class T>
void check_blocks(const BlockCase& one, const CommunicatorOptions& options = {})
{
    const Whole whole(one.m, one.n, one.k, static_cast<std::uint64_t>(one.m * 31 + one.n));
    const int ranks = Device::count();
    for (int rows = 1; rows <= ranks; ++rows) {
        for (const GridOrder order : {GridOrder::along_rows, GridOrder::along_columns}) {
            if (ranks % rows != 0) {
                continue;
            }
            const std::int64_t splits = FakeNccl::statistics().splits;
            const RankErrors errors =
                run_ranks(communicators_of(ranks, options), [&](const Communicator& communicator) {
                    multiply_blocks<T>(communicator, whole, rows, ranks / rows, order, one.chunks, one.fused,
                                       one.captured);
                });
            for (const std::string& text : errors.texts) {
                CHECK_MESSAGE(text.empty(), rows << "x" << ranks / rows << " ranks, " << to_string(order) << ", "
                                                 << one.m << "x" << one.n << "x" << one.k << ", " << one.chunks
                                                 << " chunks: " << text);
            }
            // Rows and columns of the grid exchange data by themselves.
            CHECK(FakeNccl::statistics().splits == splits + (rows > 1 && rows < ranks ? 2 * ranks : 0));
            const FakeNcclStatistics left = FakeNccl::statistics();
            CHECK(left.communicators == 0);
            CHECK(left.windows == 0);
            CHECK(left.allocations == 0);
        }
    }
}

template <class T>
void check(const Case& one, const CommunicatorOptions& options = {}, int ranks = Device::count())
{
    const Whole whole(one.m, one.n, one.k, static_cast<std::uint64_t>(one.m * 31 + one.n));
    const RankErrors errors = run_ranks(communicators_of(ranks, options), [&](const Communicator& communicator) {
        multiply<T>(communicator, whole, one);
    });
    for (const std::string& text : errors.texts) {
        CHECK_MESSAGE(text.empty(), "kind " << static_cast<int>(one.kind) << ", " << one.m << "x" << one.n << "x"
                                            << one.k << ", " << one.chunks << " chunks, " << ranks
                                            << " ranks: " << text);
    }
    const FakeNcclStatistics left = FakeNccl::statistics();
    CHECK(left.communicators == 0);
    CHECK(left.windows == 0);
    CHECK(left.allocations == 0);
}

}  // namespace

TEST_CASE("each product of shards is the product of the whole matrices, in any number of chunks")
{
    for (const Kind kind : {Kind::gather, Kind::scatter, Kind::reduce, Kind::local}) {
        for (const int chunks : {1, 2, 3}) {
            for (const bool copies : {false, true}) {
                check<bf16>({.kind = kind, .m = 96, .n = 64, .k = 48, .chunks = chunks}, {.copy_engines = copies});
            }
        }
    }
}

TEST_CASE("by blocks: rows are gathered along one side of the grid, and sums scattered along the other")
{
    for (const int chunks : {1, 2, 3}) {
        check_blocks<bf16>({.m = 96, .n = 64, .k = 48, .chunks = chunks});
    }
    check_blocks<f16>({.m = 96, .n = 64, .k = 48, .chunks = 2}, by_kernels);
}

TEST_CASE("by blocks: extents that the grid cannot divide evenly, and those with nothing for some")
{
    for (const int chunks : {1, 2}) {
        check_blocks<bf16>({.m = 67, .n = 41, .k = 37, .chunks = chunks});
        check_blocks<f32>({.m = 1, .n = 3, .k = 1, .chunks = chunks});
    }
    check_blocks<f32>({.m = 0, .n = 8, .k = 8, .chunks = 2});
}

TEST_CASE("by blocks: bias and activation are applied once, also in a graph that is launched again")
{
    for (const int chunks : {1, 2}) {
        check_blocks<bf16>({.m = 64, .n = 32, .k = 40, .chunks = chunks, .fused = true, .captured = chunks == 2});
        check_blocks<bf16>({.m = 64, .n = 32, .k = 40, .chunks = chunks, .captured = true});
    }
}

TEST_CASE("by blocks: what one product computes is what the next one takes")
{
    if (Device::count() != 4) {
        return;
    }
    constexpr std::int64_t extent = 32;
    const RankErrors errors = run_ranks(communicators_of(4), [](const Communicator& communicator) {
        const Stream stream(communicator.device());
        constexpr std::int64_t half = extent / 2;
        std::vector<DeviceBuffer<bf16>> memory;
        for (int i = 0; i < 5; ++i) {
            memory.emplace_back(stream, half * half);
            memory.back().fill(stream, bf16(i % 2 == 0 ? 0.5F : 0.25F));
        }
        const auto view = [&](std::size_t i, GridOrder order) {
            return ShardedMatrix::by_blocks(communicator, extent, extent, 2, 2, memory[i].matrix(half, half), order);
        };
        const auto x = view(0, GridOrder::along_rows);
        const auto h = view(1, GridOrder::along_columns);
        const auto y = view(2, GridOrder::along_rows);
        const auto first = ShardedGemm::prepare(communicator, x, view(3, GridOrder::along_columns), h);
        const auto second = ShardedGemm::prepare(communicator, h, view(4, GridOrder::along_rows), y);
        first.launch(stream);
        second.launch(stream);
        communicator.synchronize(stream);
        for (const bf16 value : memory[2].to_vector()) {
            if (float(value) != extent * extent * 0.5F * 0.25F * 0.5F) {
                throw std::runtime_error(fmt::format("rank {} has {}", communicator.rank(), float(value)));
            }
        }
    });
    for (const std::string& text : errors.texts) {
        CHECK(text == "");
    }
    CHECK(FakeNccl::statistics().communicators == 0);
}

TEST_CASE("extents that the ranks cannot divide evenly, and those with nothing for some")
{
    for (const Kind kind : {Kind::gather, Kind::scatter, Kind::reduce}) {
        check<bf16>({.kind = kind, .m = 67, .n = 41, .k = 37, .chunks = 2});
        check<bf16>({.kind = kind, .m = 67, .n = 41, .k = 37, .chunks = 1});
        check<f32>({.kind = kind, .m = 1, .n = 3, .k = 1, .chunks = 2}, by_kernels);
        check<f32>({.kind = kind, .m = 0, .n = 8, .k = 8, .chunks = 2});
    }
}

TEST_CASE("bias and activation are applied once, to the whole sum")
{
    for (const Kind kind : {Kind::gather, Kind::scatter, Kind::local}) {
        for (const int chunks : {1, 2}) {
            check<bf16>({.kind = kind, .m = 64, .n = 32, .k = 40, .chunks = chunks, .fused = true});
            check<f16>({.kind = kind, .m = 64, .n = 32, .k = 40, .chunks = chunks, .fused = true}, by_kernels);
        }
    }
}

TEST_CASE("B in another order")
{
    check<bf16>({.kind = Kind::gather, .m = 64, .n = 32, .k = 40, .chunks = 2, .b_column_major = true});
    check<bf16>({.kind = Kind::scatter, .m = 64, .n = 32, .k = 40, .chunks = 2, .b_column_major = true});
}

TEST_CASE("a captured product, launched again and again")
{
    for (const Kind kind : {Kind::gather, Kind::scatter, Kind::reduce}) {
        for (const bool copies : {false, true}) {
            check<bf16>({.kind = kind, .m = 64, .n = 32, .k = 32, .chunks = 2, .captured = true, .launches = 3},
                        {.copy_engines = copies});
        }
        check<bf16>({.kind = kind, .m = 64, .n = 32, .k = 32, .chunks = 1, .captured = true, .launches = 2});
    }
}

TEST_CASE("launches that follow each other do not overwrite what the earlier ones still read")
{
    for (const Kind kind : {Kind::gather, Kind::scatter, Kind::reduce}) {
        check<bf16>({.kind = kind, .m = 64, .n = 32, .k = 32, .chunks = 2, .launches = 4});
    }
}

TEST_CASE("launches with other matrices that follow each other are all right")
{
    for (const bool copies : {true, false}) {
        for (const bool gathers : {true, false}) {
            const RankErrors errors =
                run_ranks(communicators_of(2, {.copy_engines = copies}),
                          [&](const Communicator& communicator) { multiply_in_turn(communicator, gathers); });
            CHECK(errors.texts[0] == "");
            CHECK(errors.texts[1] == "");
        }
    }
}

TEST_CASE("one rank alone needs no other")
{
    for (const Kind kind : {Kind::gather, Kind::scatter, Kind::reduce}) {
        check<bf16>({.kind = kind, .m = 24, .n = 16, .k = 16, .chunks = 2}, {}, 1);
    }
}

TEST_CASE("copy engines move data where they can, and kernels of a bounded size elsewhere")
{
    const std::int64_t before = FakeNccl::statistics().copies;
    check<bf16>({.kind = Kind::gather, .m = 64, .n = 32, .k = 32, .chunks = 2});
    const std::int64_t gathered = FakeNccl::statistics().copies - before;
    CHECK(gathered == (1 + 2 + 2) * Device::count());  // to find out, to connect, and the product
    check<bf16>({.kind = Kind::gather, .m = 64, .n = 32, .k = 32, .chunks = 2}, {.max_ctas = 5, .copy_engines = false});
    CHECK(FakeNccl::statistics().copies == before + gathered);
    CHECK(FakeNccl::statistics().most_ctas == 5);
}

TEST_CASE("the schedule is explained")
{
    const RankErrors errors = run_ranks(communicators_of(2), [](const Communicator& communicator) {
        const Stream stream(communicator.device());
        const DeviceBuffer<bf16> a(stream, 32 * 16);
        const DeviceBuffer<bf16> b(stream, 16 * 8);
        DeviceBuffer<bf16> d(stream, 64 * 8);
        const auto product =
            ShardedGemm::prepare(communicator, ShardedMatrix::by_rows(communicator, 64, 16, a.matrix(32, 16)),
                                 ShardedMatrix::by_columns(communicator, 16, 16, b.matrix(16, 8)),
                                 ShardedMatrix::by_columns(communicator, 64, 16, d.matrix(64, 8)), {}, {.chunks = 2});
        const std::string text = product.explain();
        for (const char* const part :
             {"all-gather of A, and the product", "A 64x16 by_rows", "2 chunks of each rank's rows",
              "moved by copy engines", "gather 16 rows of each rank", "multiply 32 rows of block",
              "one after the other"}) {
            if (text.find(part) == std::string::npos) {
                throw std::runtime_error(fmt::format("\"{}\" is not in\n{}", part, text));
            }
        }
    });
    CHECK(errors.texts[0] == "");
    CHECK(errors.texts[1] == "");
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
