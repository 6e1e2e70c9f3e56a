/// Views, disjoint matrices and shared tiles in kernels.

#include <doctest/doctest.h>

#include <cstring>
#include <string_view>

#include "device_fixture.hpp"
#include "support/test_main.hpp"
#include "tessera/matrix_copy.hpp"
#include "view_kernels.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<float> numbers(std::size_t count)
{
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0F);
    return values;
}

template <class T, unsigned Bytes, Swizzle Pattern>
void check_tile()
{
    using Map = TileMap<T, Bytes, Pattern>;
    constexpr std::size_t columns = Bytes / sizeof(T);
    const Stream stream;
    std::vector<T> host(tile_rows * columns);
    for (std::size_t i = 0; i < host.size(); ++i) {
        // Bytes of 251 values in order: no two of a row's or a column's chunks are equal.
        host[i] = static_cast<T>(0x0101010101010101U * ((i * 7 + i / columns) % 251));
    }
    const auto in = DeviceBuffer<T>::from_host(stream, host);
    DeviceBuffer<T> out(stream, host.size());
    DeviceBuffer<T> seen(stream, host.size());
    DeviceBuffer<unsigned> wrong(stream, 1);
    out.fill(stream, T{0xEE});
    seen.fill(stream, T{0xEE});
    wrong.fill(stream, 0U);
    const auto map_of = [&](const void* data) {
        return Map::encode(Device::current(), {data, {columns, tile_rows}, {Bytes}});
    };
    launch(reverse_rows_kernel<Map>(), LaunchConfig(stream, {1}, {32}), map_of(in.data()), map_of(out.data()),
           seen.span(), wrong.span());
    std::vector<T> reversed(host.size());
    for (std::size_t row = 0; row < tile_rows; ++row) {
        std::copy_n(host.begin() + static_cast<std::ptrdiff_t>((tile_rows - 1 - row) * columns), columns,
                    reversed.begin() + static_cast<std::ptrdiff_t>(row * columns));
    }
    CAPTURE(sizeof(T));
    CAPTURE(Bytes);
    CAPTURE(swizzle_span_bytes(Pattern));
    CHECK(seen.to_vector() == host);
    CHECK(out.to_vector() == reversed);
    CHECK(wrong.to_vector()[0] == 0);
}

template <class T>
void check_tiles()
{
    check_tile<T, 48, Swizzle::none>();
    check_tile<T, 32, Swizzle::b32>();
    check_tile<T, 16, Swizzle::b32>();
    check_tile<T, 64, Swizzle::b64>();
    check_tile<T, 48, Swizzle::b64>();
    check_tile<T, 128, Swizzle::b128>();
    check_tile<T, 80, Swizzle::b128>();
}

}  // namespace

TEST_CASE("a kernel indexes batches of two levels, in both orders")
{
    const Stream stream;
    // [outer 2][row 3][inner 4][column 5], and column-major matrices without gaps.
    DeviceBuffer<float> out(stream, 2 * 3 * 4 * 5);
    const auto in = DeviceBuffer<float>::from_host(stream, numbers(out.size()));
    const BatchLayout heads{.rows = 3,
                            .columns = 5,
                            .leading_dimension = 4 * 5,
                            .count = 4,
                            .stride = 5,
                            .outer_count = 2,
                            .outer_stride = 3 * 4 * 5};
    launch(add_batches_kernel(), LaunchConfig(stream, {1}, {64}), out.matrices(heads),
           in.matrices({.rows = 3, .columns = 5, .count = 4, .outer_count = 2}, ColumnMajor{}), 0.5F);
    const std::vector<float> actual = out.to_vector();
    for (std::size_t outer = 0; outer < 2; ++outer) {
        for (std::size_t inner = 0; inner < 4; ++inner) {
            for (std::size_t row = 0; row < 3; ++row) {
                for (std::size_t column = 0; column < 5; ++column) {
                    const std::size_t from = (outer * 4 + inner) * 15 + column * 3 + row;
                    CHECK(actual[((outer * 3 + row) * 4 + inner) * 5 + column] == static_cast<float>(from + 1) + 0.5F);
                }
            }
        }
    }
}

TEST_CASE("tiles, blocks and transposed views work the same in a kernel")
{
    const Stream stream;
    constexpr std::size_t rows = 19;
    constexpr std::size_t columns = 21;
    const auto in = DeviceBuffer<float>::from_host(stream, numbers(rows * 24));
    DeviceBuffer<float> out(stream, columns * rows);
    for (const std::string_view way : {"tiles", "own elements", "mdspans"}) {
        out.fill(stream, -1.0F);
        const auto from = in.matrix(rows, columns, 24);
        const auto to = out.matrix(columns, rows);
        if (way == "tiles") {
            launch(transpose_tiles_kernel(), LaunchConfig(stream, {3, 3}, {8, 8}), to, from);
        } else if (way == "own elements") {
            launch(transpose_kernel(), LaunchConfig::covering(stream, to), DisjointMatrix(to), from);
        } else {
            launch(transpose_mdspans_kernel(), LaunchConfig(stream, {1}, {64}), to, from);
        }
        const std::vector<float> actual = out.to_vector();
        CAPTURE(way);
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < columns; ++column) {
                CHECK(actual[column * rows + row] == static_cast<float>(row * 24 + column + 1));
            }
        }
    }
}

TEST_CASE("a block of a matrix can be copied from and to the host")
{
    const Stream stream;
    const auto memory = DeviceBuffer<float>::from_host(stream, numbers(19 * 24));
    DeviceBuffer<float> other(stream, 19 * 24);
    other.fill(stream, -1.0F);
    const std::vector<float> block = to_vector(stream, memory.matrix(19, 24).block(3, 5, 7, 11));
    copy_from_host(stream, other.matrix(19, 24).block(3, 5, 7, 11), block);
    const std::vector<float> actual = other.to_vector();
    bool right = true;
    for (std::size_t row = 0; row < 19; ++row) {
        for (std::size_t column = 0; column < 24; ++column) {
            const bool inside = row >= 3 && row < 10 && column >= 5 && column < 16;
            right = right && actual[row * 24 + column] == (inside ? static_cast<float>(row * 24 + column + 1) : -1.0F);
        }
    }
    CHECK(right);
}

TEST_CASE("a grid of any shape covers each element of a matrix once")
{
    const Stream stream;
    DeviceBuffer<float> out(stream, 50 * 30);
    for (const auto& [grid, block] : {std::pair{Dim3{2, 2, 3}, Dim3{4, 2, 2}}, std::pair{Dim3{1}, Dim3{1}},
                                      std::pair{Dim3{3, 70}, Dim3{32, 1}}, std::pair{Dim3{1, 1, 5}, Dim3{8, 8}}}) {
        out.fill(stream, -1.0F);
        launch(number_kernel(), LaunchConfig(stream, grid, block), DisjointMatrix(out.matrix(50, 30, ColumnMajor{})));
        const std::vector<float> actual = out.to_vector();
        bool right = true;
        for (std::size_t row = 0; row < 50; ++row) {
            for (std::size_t column = 0; column < 30; ++column) {
                right = right && actual[column * 50 + row] == static_cast<float>(row * 30 + column);
            }
        }
        CAPTURE(grid.x);
        CHECK(right);
    }
}

TEST_CASE("a thread that is alone in its warp fills a ring")
{
    if (!Device::current().properties().has_tensor_maps) {
        MESSAGE("skipped: the device has no tensor maps");
        return;
    }
    constexpr std::size_t rows = std::size_t{5} * lone_rows;  // more tiles than the ring has slots
    std::vector<float> matrix(rows * 32);
    for (std::size_t i = 0; i < matrix.size(); ++i) {
        matrix[i] = static_cast<float>(i);
    }
    const Stream stream;
    const auto in = DeviceBuffer<float>::from_host(stream, matrix);
    DeviceBuffer<float> out(stream, matrix.size());
    out.fill(stream, -1.0F);
    launch(lone_loader_kernel(), LaunchConfig(stream, {1}, {64}), LoneMap::of(in.matrix(rows, 32)), out.span());
    CHECK(out.to_vector() == matrix);
}

TEST_CASE("a shared tile finds each element where TMA puts it, and TMA stores what was written to it")
{
    if (!Device::current().properties().has_tensor_maps) {
        MESSAGE("skipped: the device has no tensor memory accelerator");
        return;
    }
    check_tiles<std::uint8_t>();
    check_tiles<std::uint16_t>();
    check_tiles<std::uint32_t>();
    check_tiles<std::uint64_t>();
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
