/// Tensor maps: encoding and decoding agree, and maps that the driver refuses are refused.

#include "machine/tensor_map.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace tessera::emulator;

namespace {

/// A valid 2D map: 64 x 128 bf16 box of a 1000 x 512 matrix.
TensorMap matrix()
{
    TensorMap map;
    map.element = TensorElement::bf16;
    map.rank = 2;
    map.address = 0x7F0000001000;
    map.extents = {1000, 512, 1, 1, 1};
    map.strides = {2048, 0, 0, 0};
    map.box = {64, 128, 1, 1, 1};
    map.swizzle = TensorSwizzle::span_128;
    return map;
}

template <class Change>
std::string refusals_of(Change&& change)
{
    TensorMap map = matrix();
    change(map);
    return refusals(map);
}

bool mentions(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("a decoded map equals the encoded one")
{
    TensorMap map = matrix();
    CHECK(decode_tensor_map(encode(map)) == map);
    map.rank = 5;
    map.extents = {std::uint64_t{1} << 32U, 2, 3, 4, 5};
    map.strides = {16, (std::uint64_t{1} << 40U) - 16, 32, 0};
    map.box = {256, 1, 2, 3, 4};
    map.element_strides = {1, 8, 1, 2, 1};
    map.fill = TensorFill::nan;
    map.l2_promotion = 3;
    CHECK(decode_tensor_map(encode(map)) == map);
    map.mode = TensorMapMode::im2col;
    map.lower_corner = {-8, 0, 7};
    map.upper_corner = {-1, 3, -4};
    map.channels_per_pixel = 64;
    map.pixels_per_column = 1024;
    CHECK(decode_tensor_map(encode(map)) == map);
}

TEST_CASE("bytes that are not a map are refused")
{
    auto bytes = encode(matrix());
    bytes[0] ^= std::byte{1};
    CHECK_FALSE(decode_tensor_map(bytes).has_value());
    CHECK_FALSE(decode_tensor_map(std::array<std::byte, tensor_map_bytes>{}).has_value());
}

TEST_CASE("the mbarrier counts the whole box, reduced by element strides")
{
    TensorMap map = matrix();
    CHECK(map.box_bytes() == 64 * 128 * 2);
    map.element_strides[1] = 3;
    CHECK(map.copied(1) == 43);
    CHECK(map.box_bytes() == 64 * 43 * 2);
    map.element_strides[0] = 2;  // ignored without interleave
    CHECK(map.copied(0) == 64);
    map.element = TensorElement::u4_align16;
    CHECK(global_bits(map.element) == 4);
    CHECK(shared_bits(map.element) == 8);
    map.element = TensorElement::u6_align16;
    CHECK(global_bits(map.element) == 6);
}

TEST_CASE("each constraint of the driver is checked")
{
    CHECK(refusals(matrix()).empty());
    CHECK(mentions(refusals_of([](TensorMap& m) { m.rank = 0; }), "rank is 0"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.rank = 6; }), "rank is 6"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.address += 8; }), "multiple of 16"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.extents[1] = 0; }), "globalDim[1] is 0"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.extents[0] = (std::uint64_t{1} << 32U) + 1; }), "globalDim[0]"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.strides[0] = 2040; }), "globalStrides[0] is 2040"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.strides[0] = std::uint64_t{1} << 40U; }), "below 2^40"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.box[1] = 257; }), "boxDim[1] is 257"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.box[0] = 0; }), "boxDim[0] is 0"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.box[0] = 60; }), "multiple of 16 bytes"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.box[0] = 128; }), "takes at most 128"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.swizzle = TensorSwizzle::span_32; }), "takes at most 32"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.element_strides[1] = 9; }), "elementStrides[1] is 9"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.element_strides[1] = 0; }), "elementStrides[1] is 0"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.interleave = TensorInterleave::bytes_16; }), "interleaved"));
    CHECK(mentions(refusals_of([](TensorMap& m) {
                       m.interleave = TensorInterleave::bytes_32;
                       m.rank = 3;
                   }),
                   "32-byte swizzle"));
    CHECK(mentions(refusals_of([](TensorMap& m) {
                       m.element = TensorElement::u16;
                       m.fill = TensorFill::nan;
                   }),
                   "NaN"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.element = static_cast<TensorElement>(16); }), "unknown"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.swizzle = static_cast<TensorSwizzle>(7); }), "unknown"));
    CHECK(mentions(refusals_of([](TensorMap& m) { m.element = TensorElement::u4_align16; }), "must be 128"));
    CHECK(refusals_of([](TensorMap& m) { m.strides[0] = 0; }).empty());
}

TEST_CASE("corners of a pixel box have the range that the driver gives them")
{
    constexpr int limits[] = {1 << 15, 1 << 7, 1 << 4};  // of 3, 4 and 5 dimensions
    for (unsigned spatial = 1; spatial <= 3; ++spatial) {
        CAPTURE(spatial);
        const int limit = limits[spatial - 1];
        const auto with_corners = [&](int low, int high) {
            TensorMap map;
            map.mode = TensorMapMode::im2col;
            map.element = TensorElement::f16;
            map.rank = spatial + 2;
            map.address = 0x1000;
            for (unsigned i = 0; i < map.rank; ++i) {
                map.extents[i] = 64;
                map.element_strides[i] = 1;
                map.strides[i] = i + 1 < map.rank ? 128 : 0;
            }
            map.lower_corner[spatial - 1] = low;
            map.upper_corner[spatial - 1] = high;
            map.channels_per_pixel = 64;
            map.pixels_per_column = 128;
            return map;
        };
        CHECK(refusals(with_corners(-limit, limit - 1)).empty());
        CHECK(refusals(with_corners(limit - 1, -limit)).empty());
        CHECK(
            mentions(refusals(with_corners(-limit - 1, 0)), fmt::format("is {} in dimension {}", -limit - 1, spatial)));
        CHECK(mentions(refusals(with_corners(0, limit)), fmt::format("is {} in dimension {}", limit, spatial)));
        const TensorMap map = with_corners(-limit, limit - 1);
        CHECK(decode_tensor_map(encode(map)) == map);
    }
}

TEST_CASE("boxes up to the shared memory of an SM are accepted")
{
    TensorMap map = matrix();
    map.swizzle = TensorSwizzle::none;
    map.rank = 3;
    map.strides = {2048, 4096, 0, 0};
    map.box = {64, 228, 8, 1, 1};  // 233472 bytes
    CHECK(refusals(map).empty());
    map.box = {64, 229, 8, 1, 1};
    CHECK(mentions(refusals(map), "234496 bytes"));
}
