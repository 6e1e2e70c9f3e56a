// The order of tiles, and the division by multiplication that it needs.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tessera/detail/divisor.hpp"
#include "tessera/device/tile_raster.hpp"

namespace tessera {
namespace {

TEST_CASE("Divisor gives the same quotients as operator /")
{
    constexpr std::uint32_t largest = 0x7FFFFFFF;
    std::vector<std::uint32_t> values{1, 2, 3, 5, 7, 8, 127, 128, 129, 0x3FFFFFFF, 0x40000000, 0x40000001, largest};
    std::mt19937 engine(1);
    const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
    for (int i = 0; i < 2000; ++i) {
        values.push_back(1 + random() % (largest >> random() % 31));
    }
    for (const std::uint32_t value : values) {
        const detail::Divisor divisor(value);
        CHECK(divisor.value() == value);
        std::vector<std::uint32_t> numbers{0, 1, value - 1, value, largest - 1, largest};
        const std::uint32_t multiple = random() % (largest / value + 1) * value;  // where a quotient begins
        numbers.insert(numbers.end(), {multiple, multiple + value / 2});
        if (multiple > 0) {
            numbers.push_back(multiple - 1);
        }
        for (const std::uint32_t number : numbers) {
            if (number <= largest) {
                CHECK(divisor.quotient(number) == number / value);
            }
        }
    }
}

TEST_CASE("TileRaster visits each tile once, by raster groups, column by column")
{
    for (const std::uint32_t tiles_m : {1U, 2U, 3U, 8U, 13U}) {
        for (const std::uint32_t tiles_n : {1U, 2U, 7U}) {
            for (const std::uint32_t band : {1U, 2U, 4U, 5U, 16U}) {
                const TileRaster raster(tiles_m, tiles_n, band);
                std::uint32_t tile = 0;
                for (std::uint32_t batch = 0; batch < 3; ++batch) {
                    for (std::uint32_t first = 0; first < tiles_m; first += band) {
                        for (std::uint32_t n = 0; n < tiles_n; ++n) {
                            for (std::uint32_t m = first; m < std::min(first + band, tiles_m); ++m, ++tile) {
                                const TilePosition place = raster.position(tile);
                                CHECK(place.row == m);
                                CHECK(place.column == n);
                                CHECK(place.batch == batch);
                            }
                        }
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace tessera
