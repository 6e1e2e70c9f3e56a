// Which bytes a tensor copy moves, against an element by element walk over the tensor.

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "machine/tensor_box.hpp"

using namespace tessera::emulator;

namespace {

/// The place in global memory of an element (index in the box), straight from the definition; nothing if it is out of
/// bounds.
std::optional<std::uint64_t> place_of(const TensorMap& map, const BoxRequest& request,
                                      const std::array<std::uint32_t, 5>& index)
{
    std::uint64_t address = map.address;
    for (unsigned i = 0; i < map.rank; ++i) {
        const std::int64_t step = i == 0 ? 1 : map.element_strides[i];
        const std::int64_t coordinate = request.coordinates[i] + step * index[i];
        if (coordinate < 0 || coordinate >= static_cast<std::int64_t>(map.extents[i])) {
            return std::nullopt;
        }
        const std::uint64_t stride = i == 0 ? global_bits(map.element) / 8 : map.strides[i - 1];
        address += static_cast<std::uint64_t>(coordinate) * stride;
    }
    return address;
}

/// For each element of the box, in the order of shared memory: its address in global memory.
std::vector<std::optional<std::uint64_t>> expand(const std::vector<BoxRun>& runs, unsigned element_bytes)
{
    std::vector<std::optional<std::uint64_t>> places;
    std::uint32_t linear = 0;
    for (const BoxRun& run : runs) {
        REQUIRE(run.linear == linear);
        REQUIRE(run.shared_bytes % element_bytes == 0);
        for (std::uint32_t at = 0; at < run.shared_bytes; at += element_bytes) {
            places.push_back(run.inside ? std::optional(run.global + at) : std::nullopt);
        }
        linear += run.shared_bytes;
    }
    return places;
}

}  // namespace

TEST_CASE("random tiles of 1 to 5 dimensions, in and out of bounds, with element strides")
{
    std::mt19937 random(7);
    const auto choose = [&](unsigned low, unsigned high) {
        return low + static_cast<unsigned>(random() % (high - low + 1));
    };
    for (unsigned trial = 0; trial < 400; ++trial) {
        TensorMap map;
        constexpr std::array elements{TensorElement::u8, TensorElement::f16, TensorElement::f32, TensorElement::f64};
        map.element = elements[choose(0, 3)];
        const unsigned bytes = global_bits(map.element) / 8;
        map.rank = choose(1, 5);
        map.address = 0x10000;
        std::uint64_t stride = bytes;
        for (unsigned i = 0; i < map.rank; ++i) {
            map.extents[i] = choose(1, 40);
            map.box[i] = i == 0 ? 16 / bytes * choose(1, 2) : choose(1, 5);
            map.element_strides[i] = i == 0 ? 1 : choose(1, 3);
            stride = (stride * map.extents[i] + 15) / 16 * 16;
            if (i + 1 < map.rank) {
                map.strides[i] = stride;
            }
        }
        BoxRequest request;
        request.dimensions = map.rank;
        for (unsigned i = 0; i < map.rank; ++i) {
            request.coordinates[i] = static_cast<std::int32_t>(choose(0, 50)) - 6;
        }
        request.coordinates[0] = request.coordinates[0] / static_cast<int>(16 / bytes) * static_cast<int>(16 / bytes);
        REQUIRE(problem_of(map, request, false).empty());
        const auto places = expand(box_runs(map, request), bytes);
        REQUIRE(places.size() * bytes == box_bytes(map, request));
        std::array<std::uint32_t, 5> index{};
        for (const auto& place : places) {
            REQUIRE(place == place_of(map, request, index));
            for (unsigned i = 0; i < map.rank && ++index[i] == map.copied(i); ++i) {
                index[i] = 0;
            }
        }
    }
}

TEST_CASE("gather4 takes four rows of one column block")
{
    TensorMap map;
    map.element = TensorElement::f32;
    map.rank = 2;
    map.address = 0x4000;
    map.extents = {32, 10, 1, 1, 1};
    map.strides = {128, 0, 0, 0};
    map.box = {8, 1, 1, 1, 1};
    BoxRequest request;
    request.mode = BoxMode::four_rows;
    request.dimensions = 2;
    request.coordinates = {28, 7, 0, -1, 10};
    REQUIRE(problem_of(map, request, false).empty());
    CHECK(box_bytes(map, request) == 128);
    const auto places = expand(box_runs(map, request), 4);
    REQUIRE(places.size() == 32);
    for (unsigned i = 0; i < 32; ++i) {
        const unsigned column = 28 + i % 8;
        const int row = std::array{7, 0, -1, 10}[i / 8];
        const bool inside = column < 32 && row >= 0 && row < 10;
        CHECK(places[i] ==
              (inside ? std::optional<std::uint64_t>(0x4000U + static_cast<unsigned>(row) * 128U + column * 4U)
                      : std::nullopt));
    }
    map.box[1] = 2;
    CHECK(problem_of(map, request, false).find("one row") != std::string::npos);
}

TEST_CASE("im2col walks over the pixels of the bounding box and adds the filter's offsets")
{
    // N = 2 images of 5 x 4 (W x H) with 16 channels; a 3 x 3 filter with padding 1.
    TensorMap map;
    map.mode = TensorMapMode::im2col;
    map.element = TensorElement::f16;
    map.rank = 4;
    map.address = 0x8000;
    map.extents = {16, 5, 4, 2, 1};
    map.strides = {32, 160, 640, 0};
    map.lower_corner = {-1, -1, 0};
    map.upper_corner = {-1, -1, 0};
    map.channels_per_pixel = 8;
    map.pixels_per_column = 32;
    for (std::uint32_t r = 0; r < 3; ++r) {
        for (std::uint32_t s = 0; s < 3; ++s) {
            BoxRequest request;
            request.mode = BoxMode::im2col;
            request.dimensions = 4;
            request.coordinates = {8, -1, -1, 0, 0};
            request.offsets = {s, r, 0};
            REQUIRE(problem_of(map, request, false).empty());
            CHECK(box_bytes(map, request) == 32 * 16);
            const auto places = expand(box_runs(map, request), 2);
            REQUIRE(places.size() == 32 * 8);
            // Output pixel m of the convolution is image m / 20, row m % 20 / 5, column m % 5.
            for (unsigned i = 0; i < places.size(); ++i) {
                const unsigned m = i / 8;
                const int n = static_cast<int>(m / 20);
                const int y = static_cast<int>(m % 20 / 5) + static_cast<int>(r) - 1;
                const int x = static_cast<int>(m % 5) + static_cast<int>(s) - 1;
                std::optional<std::uint64_t> expected;
                if (y >= 0 && y < 4 && x >= 0 && x < 5) {
                    expected = static_cast<std::uint64_t>(0x8000 + n * 640 + y * 160 + x * 32) + 2 * (8 + i % 8);
                }
                REQUIRE(places[i] == expected);
            }
        }
    }
}

TEST_CASE("padded elements take 16 bytes of shared memory for 16 elements")
{
    for (const TensorElement element : {TensorElement::u4_align16, TensorElement::u6_align16}) {
        const std::uint32_t packed = element == TensorElement::u4_align16 ? 8 : 12;
        TensorMap map;
        map.element = element;
        map.rank = 2;
        map.address = 0x1000;
        map.extents = {256, 3, 1, 1, 1};
        map.strides = {packed * 16, 0, 0, 0};
        map.box = {128, 2, 1, 1, 1};
        BoxRequest request;
        request.dimensions = 2;
        request.coordinates = {128, 2, 0, 0, 0};
        const std::vector<BoxRun> runs = box_runs(map, request);
        CHECK(box_bytes(map, request) == 256);
        REQUIRE(runs.size() == 16);
        for (std::uint32_t i = 0; i < 16; ++i) {
            CHECK(runs[i].linear == 16 * i);
            CHECK(runs[i].shared_bytes == 16);
            CHECK(runs[i].inside == (i < 8));
            if (i < 8) {
                CHECK(runs[i].global == 0x1000 + 2 * packed * 16 + packed * 8 + i * packed);
                CHECK(runs[i].global_bytes == packed);
            }
        }
    }
}

TEST_CASE("invalid copies are refused with a sentence")
{
    TensorMap map;
    map.element = TensorElement::f32;
    map.rank = 2;
    map.extents = {64, 64, 1, 1, 1};
    map.strides = {256, 0, 0, 0};
    map.box = {32, 8, 1, 1, 1};
    BoxRequest request;
    request.dimensions = 2;
    CHECK(problem_of(map, request, false).empty());
    request.dimensions = 3;
    CHECK(problem_of(map, request, false).find("2 dimensions") != std::string::npos);
    request.dimensions = 2;
    request.coordinates[0] = 2;
    CHECK(problem_of(map, request, false).find("multiple of 16 bytes") != std::string::npos);
    request.coordinates[0] = 0;
    request.mode = BoxMode::im2col;
    CHECK(problem_of(map, request, false).find("im2col") != std::string::npos);
}

TEST_CASE("fill and conversions of loads")
{
    TensorMap map;
    map.element = TensorElement::f32;
    CHECK(fill_pattern(map) == std::array<std::byte, 8>{});
    map.fill = TensorFill::nan;
    std::uint64_t nan = 0;
    std::memcpy(&nan, fill_pattern(map).data(), 8);
    CHECK(nan == 0x7FF7'7FF7'7FF7'7FF7);

    const auto convert = [&](TensorElement element, std::uint32_t word) {
        map.element = element;
        std::array<std::byte, 4> bytes{};
        std::memcpy(bytes.data(), &word, 4);
        convert_loaded(map, bytes.data(), 4);
        std::memcpy(&word, bytes.data(), 4);
        return word;
    };
    CHECK(convert(TensorElement::f32, 0x8000'0001) == 0x8000'0001);
    CHECK(convert(TensorElement::f32_ftz, 0x8000'0001) == 0x8000'0001);
    CHECK(convert(TensorElement::tf32, 0x3F80'0FFF) == 0x3F80'0000);
    CHECK(convert(TensorElement::tf32, 0x3F80'1000) == 0x3F80'0000);  // ties go to even
    CHECK(convert(TensorElement::tf32, 0x3F80'3000) == 0x3F80'4000);
    CHECK(convert(TensorElement::tf32, 0x3F80'1001) == 0x3F80'2000);
    CHECK(convert(TensorElement::tf32, 0x7F7F'F000) == 0x7F80'0000);
    CHECK(convert(TensorElement::tf32, 0xFFC1'2345) == 0x7FFF'E000);
    CHECK(convert(TensorElement::tf32, 0x7F80'0000) == 0x7F80'0000);
    CHECK(convert(TensorElement::tf32_ftz, 0x0000'1FFF) == 0x0000'2000);
}
