/// Tensor maps with the real driver: what TMA does with them, and whether the SDK's checks agree with the driver's.
/// Needs a device of compute capability 9.0.

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "device_fixture.hpp"
#include "support/test_main.hpp"
#include "tensor_map_kernels.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

bool has_tensor_maps()
{
    const bool has = Device::current().properties().has_tensor_maps;
    if (!has) {
        MESSAGE("skipped: the device has no tensor memory accelerator");
    }
    return has;
}

/// Returns where byte `linear` of a dense box is put, for a box that starts at a multiple of 1024: the index of its
/// 16-byte chunk is XORed with the lowest bits of the index of its 128-byte line. (PTX ISA, "Tensors", swizzling
/// modes.)
std::size_t swizzled(std::size_t linear, Swizzle pattern)
{
    const std::size_t line_bits = (std::size_t{1} << static_cast<unsigned>(pattern)) - 1;  // 0, 1, 3, 7
    return linear ^ ((linear >> 7U & line_bits) << 4U);
}

/// Returns the element of a matrix in which every element has different bits (up to 2^16 of them, or 2^8 for 8-bit
/// elements).
template <class T>
T numbered(std::int64_t row, std::int64_t column, std::int64_t columns)
{
    const auto number = static_cast<std::uint32_t>(row * columns + column + 1);
    T element;
    std::memcpy(&element, &number, sizeof(T));
    return element;
}

template <class T, Swizzle Pattern>
void check_loads()
{
    using Map = TestMap<T, Pattern>;
    constexpr auto inner = static_cast<std::int64_t>(Map::box_type::extents[0]);
    constexpr std::int64_t rows = 40;
    constexpr std::int64_t columns = 100;  // not a multiple of any box
    constexpr std::int64_t leading_dimension = 112;
    const Stream stream;
    std::vector<T> host(rows * leading_dimension, numbered<T>(0, 65534, 1));
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
            host[static_cast<std::size_t>(row * leading_dimension + column)] = numbered<T>(row, column, columns);
        }
    }
    const auto matrix = DeviceBuffer<T>::from_host(stream, host);
    const Map map = Map::of(matrix.matrix(rows, columns, leading_dimension, RowMajor{}));
    DeviceBuffer<std::uint32_t> out(stream, Map::box_bytes / sizeof(std::uint32_t));

    struct Corner {
        int row;
        int column;
    };
    // Columns at multiples of 16 bytes: with any other, an H200 stops with an illegal instruction (715).
    for (const Corner corner : {Corner{0, 0}, Corner{16, 16}, Corner{-5, -16}, Corner{rows - 3, columns - 4},
                                Corner{rows, 0}, Corner{0, leading_dimension}, Corner{-104, -112}, Corner{7, 48}}) {
        std::vector<std::byte> expected(Map::box_bytes);
        for (std::int64_t i = 0; i < box_rows; ++i) {
            for (std::int64_t j = 0; j < inner; ++j) {
                const std::int64_t row = corner.row + i;
                const std::int64_t column = corner.column + j;
                if (row < 0 || row >= rows || column < 0 || column >= columns) {
                    continue;  // zero
                }
                const T element = numbered<T>(row, column, columns);
                const auto linear = static_cast<std::size_t>(i * inner + j) * sizeof(T);
                std::memcpy(expected.data() + swizzled(linear, Pattern), &element, sizeof(T));
            }
        }
        for (const LoadWay way : {LoadWay::plain, LoadWay::with_policy}) {
            out.fill(stream, 0xEEEEEEEEU);
            launch(load_box_kernel<Map>(),
                   LaunchConfig(stream, {1}, {128}).shared_memory_bytes(shared_bytes_for_box<Map>), map, way,
                   corner.row, corner.column, out.span());
            const std::vector<std::uint32_t> actual = out.to_vector();
            CHECK_MESSAGE(std::memcmp(actual.data(), expected.data(), expected.size()) == 0,
                          to_string(element_traits<T>::type)
                              << ", swizzle of " << swizzle_span_bytes(Pattern) << " bytes, box at (" << corner.row
                              << ", " << corner.column << "), way " << static_cast<int>(way));
        }
    }
}

template <class T>
void check_all_swizzles()
{
    check_loads<T, Swizzle::none>();
    check_loads<T, Swizzle::b32>();
    check_loads<T, Swizzle::b64>();
    check_loads<T, Swizzle::b128>();
}

/// Requests near every limit of the encoder: a valid one with up to three fields replaced by interesting values.
class RequestGenerator {
public:
    explicit RequestGenerator(std::mt19937_64 engine) : engine_(engine) {}

    detail::TensorMapRequest next()
    {
        struct Type {
            int type;
            std::uint32_t bytes;
        };
        static constexpr Type types[] = {{0, 1}, {1, 2}, {2, 4}, {3, 4}, {4, 8},
                                         {5, 8}, {6, 2}, {7, 4}, {8, 8}, {9, 2}};
        const Type type = types[engine_() % std::size(types)];
        detail::TensorMapRequest request{};
        request.type = type.type;
        request.element_bytes = type.bytes;
        request.rank = static_cast<std::uint32_t>(1 + engine_() % detail::max_tensor_rank);
        request.data = reinterpret_cast<const void*>(std::uintptr_t{0x7F0000000000} + 16 * (engine_() % 1000));
        request.swizzle = static_cast<Swizzle>(engine_() % 4);
        request.promotion = static_cast<L2Promotion>(engine_() % 4);
        const std::uint32_t limit = request.swizzle == Swizzle::none ? 256 : swizzle_span_bytes(request.swizzle);
        std::uint64_t stride = 16;
        for (std::size_t i = 0; i < detail::max_tensor_rank; ++i) {
            request.extents[i] = 1 + engine_() % 1000;
            request.box[i] = static_cast<std::uint32_t>(1 + engine_() % 64);
            stride = (stride * request.extents[i] + 15) / 16 * 16 % (std::uint64_t{1} << 40U);
            request.strides[i] = stride;
        }
        request.box[0] = static_cast<std::uint32_t>(16 * (1 + engine_() % (limit / 16)) / type.bytes);
        for (std::uint64_t changes = engine_() % 4; changes != 0; --changes) {
            change(request);
        }
        return request;
    }

private:
    template <class T, std::size_t Count>
    T any(const T (&values)[Count])
    {
        return values[engine_() % Count];
    }

    void change(detail::TensorMapRequest& request)
    {
        constexpr std::uint64_t one = 1;
        const std::size_t dimension = engine_() % detail::max_tensor_rank;
        switch (engine_() % 8) {
            case 0: request.rank = any<std::uint32_t>({0, 1, 2, 3, 4, 5, 6}); break;
            case 1: {
                const auto address =
                    any<std::uintptr_t>({0, 1, 2, 8, 16, 24, 32, 0x7F0000000010, 0x7F0000000018, 0x7F0000000001});
                request.data = reinterpret_cast<const void*>(address);
                break;
            }
            case 2:
                request.extents[dimension] =
                    any<std::uint64_t>({0, 1, 2, 255, 256, 257, (one << 31) - 1, one << 31, (one << 32) - 1, one << 32,
                                        (one << 32) + 1, one << 40, ~std::uint64_t{0}});
                break;
            case 3:
                request.strides[dimension] = any<std::uint64_t>(
                    {0, 1, 8, 15, 16, 17, 24, 32, 48, (one << 32) + 16, (one << 39), (one << 40) - 16, (one << 40) - 8,
                     one << 40, (one << 40) + 16, ~std::uint64_t{0}, ~std::uint64_t{15}});
                break;
            case 4:
                request.box[dimension] =
                    any<std::uint32_t>({0, 1, 2, 3, 4, 8, 16, 32, 64, 127, 128, 129, 255, 256, 257, ~0U});
                break;
            case 5: request.box[0] = static_cast<std::uint32_t>(engine_() % 260); break;
            case 6: request.swizzle = static_cast<Swizzle>(engine_() % 4); break;
            case 7: request.out_of_bounds = static_cast<OutOfBounds>(engine_() % 2); break;
        }
    }

    std::mt19937_64 engine_;
};

std::string describe(const detail::TensorMapRequest& request)
{
    std::string text = "type " + std::to_string(request.type) + ", rank " + std::to_string(request.rank) +
                       ", address " + std::to_string(reinterpret_cast<std::uintptr_t>(request.data)) + ", swizzle " +
                       std::to_string(static_cast<int>(request.swizzle)) + ", out of bounds " +
                       std::to_string(static_cast<int>(request.out_of_bounds));
    for (std::size_t i = 0; i < std::min<std::size_t>(request.rank, detail::max_tensor_rank); ++i) {
        text += "; extent " + std::to_string(request.extents[i]) + ", box " + std::to_string(request.box[i]) +
                ", next stride " + std::to_string(request.strides[i]);
    }
    return text;
}

}  // namespace

TEST_CASE("TMA puts each element where the swizzle says, and zeros for elements outside")
{
    if (has_tensor_maps()) {
        check_all_swizzles<f32>();
        check_all_swizzles<f16>();
        check_all_swizzles<bf16>();
        check_all_swizzles<tf32>();
        check_all_swizzles<f8e4m3>();
        check_all_swizzles<f8e5m2>();
    }
}

TEST_CASE("the SDK's checks of a tensor map agree with the driver's")
{
    if (!has_tensor_maps()) {
        return;
    }
    RequestGenerator generator(random_engine(1));
    int accepted = 0;
    const int count = quick() ? 500 : 20000;
    for (int i = 0; i < count; ++i) {
        const detail::TensorMapRequest request = generator.next();
        const std::string refusals = detail::tensor_map_refusals(request);
        detail::TensorMapBits bits{};
        int driver_status = 0;
        REQUIRE(detail::encode_tensor_map_unchecked(request, bits, &driver_status) == cudaSuccess);
        accepted += driver_status == 0;
        // The only rule that the driver does not have: it encodes a map of address 0.
        const bool is_our_own_rule = request.data == nullptr;
        if (refusals.empty() != (driver_status == 0) && !is_our_own_rule) {
            report_failure(request.rank, describe(request),
                           "the driver returned " + std::to_string(driver_status) +
                               " and our checks say: " + (refusals.empty() ? "nothing to refuse" : refusals));
        }
    }
    MESSAGE(accepted << " of " << count << " requests were accepted");
    CHECK(accepted > count / 10);
    CHECK(accepted < count - count / 10);
}

TEST_CASE("a request that breaks a rule is refused with that rule, before the driver is called")
{
    if (!has_tensor_maps()) {
        return;
    }
    const Stream stream;
    DeviceBuffer<float> buffer(stream, 1000);
    using Map = TensorMap<float, Box<32, 8>, Swizzle::b128>;
    CHECK(code_of([&] { Map::of(buffer.matrix(10, 33)); }) == ErrorCode::tensor_map_refused);
    CHECK(code_of([&] { Map::of(buffer.matrix(0, 32)); }) == ErrorCode::tensor_map_refused);
    CHECK(code_of([&] { Map::of(buffer.subspan(1, 900).matrix(10, 32)); }) == ErrorCode::tensor_map_refused);
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
