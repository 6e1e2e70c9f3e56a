/// Products whose operands extend beyond 2^31 and 2^32 bytes and beyond 2^31 elements. Needs a device with about 6 GB
/// of free memory.

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "kernels.hpp"
#include "support/gemm_runner.hpp"
#include "support/parallel.hpp"
#include "support/signature.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::int64_t extent = 68;  // M, N and K of the spread products: not a multiple of a tile, but of all vectors
constexpr std::int64_t batches = 3;
constexpr std::size_t bytes_needed = std::size_t{6} << 30U;

bool has_room(const char* what)
{
    const std::size_t free = Device::current().free_memory_bytes();
    if (quick() || free < bytes_needed) {
        MESSAGE(
            "left out: " << what
                         << (quick() ? ", because of --quick" : fmt::format(", because only {} bytes are free", free)));
        return false;
    }
    return true;
}

enum class Spread : std::uint8_t { leading_dimension, batch_stride };
enum class Role : std::uint8_t { a, b, c, d };

/// A batch of extent x extent matrices whose last element is beyond 2^31 elements (f16), so beyond 2^32 bytes.
Placement spread_placement(Spread spread, bool row_major, std::size_t element_bytes)
{
    const std::int64_t reach = (std::int64_t{1} << 32) / static_cast<std::int64_t>(element_bytes);  // elements
    Placement place;
    place.rows = place.columns = extent;
    place.row_major = row_major;
    place.batches = spread == Spread::batch_stride ? batches : 1;
    place.leading_dimension = spread == Spread::leading_dimension ? reach / 64 + 8 : extent + 4;
    place.batch_stride = spread == Spread::batch_stride ? reach / (batches - 1) + 8 : 0;
    return place;
}

/// Matrices without gaps, one after the other.
Placement dense_placement(std::int64_t count)
{
    return {.rows = extent,
            .columns = extent,
            .batches = count,
            .leading_dimension = extent,
            .batch_stride = extent * extent};
}

/// An operand in device memory, with values by `value(batch, row, column)`.
template <class T>
class SpreadMatrix {
public:
    SpreadMatrix(StreamRef stream, const Placement& place) : place_(place), buffer_(stream, elements(place))
    {
        clear();
    }

    /// All bits set: NaN in every type.
    void clear() { buffer_.fill(buffer_.stream(), ones()); }

    template <class Value>
    void set(const Value& value)
    {
        std::vector<T> vector(static_cast<std::size_t>(extent));
        for (std::int64_t batch = 0; batch < place_.batches; ++batch) {
            for (std::int64_t v = 0; v < extent; ++v) {
                for (std::int64_t i = 0; i < extent; ++i) {
                    vector[static_cast<std::size_t>(i)] = T(place_.row_major ? value(batch, v, i) : value(batch, i, v));
                }
                buffer_.copy_from(vector, vector_start(batch, v));
            }
        }
    }

    /// Returns how many elements differ from `value(batch, row, column)`, and clears them.
    template <class Value>
    std::int64_t take_wrong(const Value& value)
    {
        std::int64_t wrong = 0;
        std::vector<T> vector(static_cast<std::size_t>(extent));
        const std::vector<T> cleared(vector.size(), ones());
        for (std::int64_t batch = 0; batch < place_.batches; ++batch) {
            for (std::int64_t v = 0; v < extent; ++v) {
                buffer_.copy_to(vector, vector_start(batch, v));
                buffer_.copy_from(cleared, vector_start(batch, v));
                for (std::int64_t i = 0; i < extent; ++i) {
                    const float expected = place_.row_major ? value(batch, v, i) : value(batch, i, v);
                    wrong += static_cast<float>(vector[static_cast<std::size_t>(i)]) != expected;
                }
            }
        }
        return wrong;
    }

    /// Returns the number of eight-byte words that changed since clear().
    unsigned long long touched(StreamRef stream)
    {
        auto count = DeviceBuffer<unsigned long long>::from_host(stream, std::vector<unsigned long long>{0});
        const DeviceSpan<const std::uint64_t> words(reinterpret_cast<const std::uint64_t*>(buffer_.data()),
                                                    buffer_.size_bytes() / 8, buffer_.device());
        launch(count_different_kernel(), LaunchConfig(stream, {1024}, {256}), words, ~std::uint64_t{0}, count.data());
        return count.to_vector()[0];
    }

    template <class Element, class Order>
    BatchView<Element, Order> view(Order order)
    {
        return DeviceSpan<Element>(buffer_.span())
            .matrices(place_.batches, place_.batch_stride, extent, extent, place_.leading_dimension, order);
    }

    bool row_major() const { return place_.row_major; }

private:
    static std::size_t elements(const Placement& place) { return (static_cast<std::size_t>(place.span()) + 7) / 8 * 8; }
    static T ones()
    {
        if constexpr (sizeof(T) == 2) {
            return T::from_bits(0xFFFF);
        } else {
            return std::bit_cast<T>(~0U);
        }
    }
    std::size_t vector_start(std::int64_t batch, std::int64_t v) const
    {
        return static_cast<std::size_t>(batch * place_.batch_stride + v * place_.leading_dimension);
    }

    Placement place_;
    DeviceBuffer<T> buffer_;
};

/// The product with one operand, `role`, spread over more than 4 GiB.
template <class T, class Order>
void check_spread(StreamRef stream, Spread spread, Role role, Order order)
{
    const Placement wide = spread_placement(spread, std::is_same_v<Order, RowMajor>, sizeof(T));
    const auto place_of = [&](Role r) { return r == role ? wide : dense_placement(wide.batches); };
    const float alpha = 0x1p-9F;  // keeps the sums in the range of f16; exact
    SpreadMatrix<T> a(stream, place_of(Role::a));
    SpreadMatrix<T> b(stream, place_of(Role::b));
    SpreadMatrix<T> c(stream, place_of(Role::c));
    SpreadMatrix<T> d(stream, place_of(Role::d));
    a.set([](std::int64_t batch, std::int64_t row, std::int64_t k) { return signature_a(row + 7 * batch, k); });
    b.set([](std::int64_t batch, std::int64_t k, std::int64_t column) { return signature_b(k, column + 11 * batch); });
    c.set([](std::int64_t batch, std::int64_t row, std::int64_t column) { return signature_c(row + batch, column); });

    std::vector<float> expected;
    for (std::int64_t batch = 0; batch < wide.batches; ++batch) {
        for (std::int64_t row = 0; row < extent; ++row) {
            for (std::int64_t column = 0; column < extent; ++column) {
                double sum = 0;
                for (std::int64_t k = 0; k < extent; ++k) {
                    sum += static_cast<double>(signature_a(row + 7 * batch, k)) *
                           static_cast<double>(signature_b(k, column + 11 * batch));
                }
                const double exact = alpha * sum + static_cast<double>(signature_c(row + batch, column));
                expected.push_back(static_cast<float>(T(static_cast<float>(exact))));
            }
        }
    }
    const auto expected_at = [&](std::int64_t batch, std::int64_t row, std::int64_t column) {
        return expected[static_cast<std::size_t>((batch * extent + row) * extent + column)];
    };
    const auto run = [&](auto a_order, auto b_order, auto c_order, auto d_order) {
        std::size_t ran = 0;
        for (const Variant variant : simt_variants()) {
            const std::string problem = fmt::format(
                "{} with operand {} spread by its {} over 2^32 bytes, {}", to_string(variant),
                "ABCD"[static_cast<int>(role)], spread == Spread::batch_stride ? "batch stride" : "leading dimension",
                wide.row_major ? "row-major" : "column-major");
            try {
                const Epilogue epilogue{.alpha = alpha, .beta = 1, .c = c.template view<const T>(c_order)};
                if (wide.batches == 1) {
                    Gemm::launch(stream, a.template view<const T>(a_order).first(),
                                 b.template view<const T>(b_order).first(), d.template view<T>(d_order).first(),
                                 epilogue, variant);
                } else {
                    Gemm::launch(stream, a.template view<const T>(a_order), b.template view<const T>(b_order),
                                 d.template view<T>(d_order), epilogue, variant);
                }
            } catch (const Error& error) {
                report_failure(extent, problem, error.what());
                continue;
            }
            ++ran;
            if (const std::int64_t wrong = d.take_wrong(expected_at); wrong != 0) {
                report_failure(extent, problem, fmt::format("{} elements are wrong", wrong));
            }
            if (const auto touched = d.touched(stream); touched != 0) {
                report_failure(extent, problem, fmt::format("{} words around D were overwritten", touched));
                d.clear();
            }
        }
        CHECK(ran == simt_variants().size());
    };
    const RowMajor dense;
    switch (role) {
        case Role::a: run(order, dense, dense, dense); break;
        case Role::b: run(dense, order, dense, dense); break;
        case Role::c: run(dense, dense, order, dense); break;
        case Role::d: run(dense, dense, dense, order); break;
    }
}

/// D = A * B for a tall A without gaps of `rows` x `depth` elements; sampled rows are compared.
template <class T>
void check_tall(std::int64_t rows, std::int64_t depth, Kernel<DisjointSpan<T>, std::uint64_t> fill)
{
    constexpr std::int64_t columns = 33;
    const Stream stream;
    DeviceBuffer<T> a(stream, static_cast<std::size_t>(rows * depth));
    DeviceBuffer<T> b(stream, static_cast<std::size_t>(depth * columns));
    DeviceBuffer<float> d(stream, static_cast<std::size_t>(rows * columns));
    const std::uint64_t seed_a = seed() >> 8U;
    const std::uint64_t seed_b = seed_a + 12345;
    launch(fill, LaunchConfig(stream, {4096}, {256}), DisjointSpan(a), seed_a);
    launch(fill, LaunchConfig(stream, {64}, {256}), DisjointSpan(b), seed_b);

    std::vector<std::int64_t> sampled{0, 1, rows - 1};
    for (const std::int64_t power : {31, 32}) {  // where byte and element offsets overflow
        for (const std::int64_t element :
             {(std::int64_t{1} << power) / static_cast<std::int64_t>(sizeof(T)), std::int64_t{1} << power}) {
            for (std::int64_t row = element / depth - 1; row <= element / depth + 1; ++row) {
                if (row < rows) {
                    sampled.push_back(row);
                }
            }
        }
    }
    std::mt19937_64 engine = random_engine(3);
    while (sampled.size() < 32) {
        sampled.push_back(static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(rows)));
    }
    std::vector<double> host_b(static_cast<std::size_t>(depth * columns));  // column-major, as on the device
    for (std::size_t i = 0; i < host_b.size(); ++i) {
        host_b[i] = small_value(seed_b, i);
    }
    const auto count = static_cast<std::int64_t>(sampled.size());
    std::vector<Bounded> expected(sampled.size() * columns);
    parallel_for(count, columns * depth * 4, [&](std::int64_t i) {
        std::vector<double> row(static_cast<std::size_t>(depth));
        for (std::int64_t k = 0; k < depth; ++k) {
            row[static_cast<std::size_t>(k)] =
                small_value(seed_a, static_cast<std::uint64_t>(sampled[static_cast<std::size_t>(i)] * depth + k));
        }
        for (std::int64_t column = 0; column < columns; ++column) {
            expected[static_cast<std::size_t>(i * columns + column)] = epilogue_of(
                bounded(sum_of_products(row.data(), host_b.data() + column * depth, depth), depth), ElementEpilogue{});
        }
    });

    std::vector<float> first_result;
    std::size_t ran = 0;
    for (const Variant variant : simt_variants()) {
        const std::string problem = fmt::format("{}x{}x{} (MxNxK) {} with {}", rows, columns, depth,
                                                to_string(element_traits<T>::type), to_string(variant));
        d.fill(stream, std::bit_cast<float>(~0U));
        try {
            Gemm::launch(stream, a.matrix(rows, depth), b.matrix(depth, columns, ColumnMajor{}),
                         d.matrix(rows, columns), {}, variant);
        } catch (const Error& error) {
            report_failure(rows, problem, error.what());
            continue;
        }
        const std::vector<float> result = d.to_vector();
        for (std::int64_t i = 0; i < count * columns; ++i) {
            const std::int64_t row = sampled[static_cast<std::size_t>(i / columns)];
            const float actual = result[static_cast<std::size_t>(row * columns + i % columns)];
            const Bounded& wanted = expected[static_cast<std::size_t>(i)];
            if (!agrees(wanted, actual)) {
                report_failure(rows, problem,
                               fmt::format("D({}, {}) is {}, but must be {} +- {}", row, i % columns, actual,
                                           wanted.value, wanted.error));
                break;
            }
        }
        if (first_result.empty()) {
            first_result = result;
        } else if (std::memcmp(result.data(), first_result.data(), result.size() * sizeof(float)) != 0) {
            report_failure(rows, problem, "the bits differ from the other variants'");
        }
        ++ran;
    }
    CHECK(ran == simt_variants().size());
}

}  // namespace

TEST_CASE("a dense A may exceed 2^31 bytes and 2^31 elements")
{
    if (has_room("a dense A beyond 2^31 bytes")) {
        check_tall<float>(70000, 8192, fill_f32_kernel());
        check_tall<f16>(262400, 8192, fill_f16_kernel());
    }
}

TEST_CASE("every operand may span more than 2^32 bytes, by its leading dimension or its batch stride")
{
    if (!has_room("operands spread over more than 2^32 bytes")) {
        return;
    }
    const Stream stream;
    for (const Spread spread : {Spread::leading_dimension, Spread::batch_stride}) {
        for (const Role role : {Role::a, Role::b, Role::c, Role::d}) {
            check_spread<f16>(stream, spread, role, RowMajor{});
            check_spread<f16>(stream, spread, role, ColumnMajor{});
            check_spread<float>(stream, spread, role, RowMajor{});
            check_spread<float>(stream, spread, role, ColumnMajor{});
        }
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
