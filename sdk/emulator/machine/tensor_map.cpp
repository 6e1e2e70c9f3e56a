#include "machine/tensor_map.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace tessera::emulator {

namespace {

constexpr std::uint32_t magic = 0x54454D54;
constexpr std::uint64_t extent_limit = std::uint64_t{1} << 32U;  // elements, inclusive
constexpr std::uint64_t stride_limit = std::uint64_t{1} << 40U;  // bytes, exclusive
constexpr std::uint32_t box_limit = 256;
constexpr std::uint64_t box_bytes_limit = 228 << 10;  // the driver's limit

struct Bits {
    std::uint32_t magic;
    std::uint8_t element, rank, interleave, swizzle, fill, l2_promotion, mode;
    std::uint8_t zero_0[5];
    std::uint64_t address;
    std::uint32_t last_index[5];
    std::uint32_t zero_1;
    std::uint64_t strides[4];
    std::uint16_t box[5];
    std::uint8_t element_strides[5];
    std::uint8_t zero_2;
    std::int16_t lower_corner[3], upper_corner[3];
    std::uint16_t channels_per_pixel, pixels_per_column;
    std::uint8_t zero_3[16];
};
static_assert(sizeof(Bits) == tensor_map_bytes && offsetof(Bits, address) == 16 && offsetof(Bits, strides) == 48 &&
              offsetof(Bits, box) == 80 && offsetof(Bits, lower_corner) == 96 && offsetof(Bits, zero_3) == 112);

bool is_packed_16(TensorElement element)
{
    return element == TensorElement::u4_align16 || element == TensorElement::u6_align16;
}

unsigned span_of(TensorSwizzle swizzle)
{
    switch (swizzle) {
        case TensorSwizzle::none: return 0;
        case TensorSwizzle::span_32: return 32;
        case TensorSwizzle::span_64: return 64;
        default: return 128;
    }
}

class Refusals {
public:
    template <class... Arguments>
    void add(fmt::format_string<Arguments...> format, Arguments&&... arguments)
    {
        text_ += text_.empty() ? "" : "\n";
        fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

void check_global(const TensorMap& map, Refusals& refusals)
{
    const bool wide = map.interleave == TensorInterleave::bytes_32 || is_packed_16(map.element);
    const unsigned alignment = wide ? 32 : 16;
    if (map.address % alignment != 0) {
        refusals.add("the global address {:#x} is not a multiple of {} bytes", map.address, alignment);
    }
    for (unsigned i = 0; i < map.rank; ++i) {
        if (map.extents[i] < 1 || map.extents[i] > extent_limit) {
            refusals.add("globalDim[{}] is {}; it must be 1 to 2^32", i, map.extents[i]);
        }
    }
    const unsigned multiple = is_packed_16(map.element) ? 128 : map.element == TensorElement::u4_align8 ? 2 : 1;
    if (map.extents[0] % multiple != 0) {
        refusals.add("globalDim[0] is {}; with this packed type it must be a multiple of {}", map.extents[0], multiple);
    }
    for (unsigned i = 0; i + 1 < map.rank; ++i) {
        if (map.strides[i] % alignment != 0 || map.strides[i] >= stride_limit) {
            refusals.add("globalStrides[{}] is {} bytes; it must be a multiple of {} below 2^40", i, map.strides[i],
                         alignment);
        }
    }
}

void check_box(const TensorMap& map, Refusals& refusals)
{
    const unsigned bits = global_bits(map.element);
    bool boxes_are_valid = true;
    for (unsigned i = 0; i < map.rank; ++i) {
        if (map.box[i] < 1 || map.box[i] > box_limit) {
            refusals.add("boxDim[{}] is {}; it must be 1 to {}", i, map.box[i], box_limit);
            boxes_are_valid = false;
        }
    }
    if (!boxes_are_valid) {
        return;
    }
    if (is_packed_16(map.element) && map.box[0] != 128) {
        refusals.add("boxDim[0] is {}; with this packed type it must be 128", map.box[0]);
    }
    const std::uint64_t inner = std::uint64_t{map.box[0]} * shared_bits(map.element) / 8;
    if (map.interleave == TensorInterleave::none) {
        if (std::uint64_t{map.box[0]} * bits % 128 != 0) {
            refusals.add("the box is {} bytes wide in dimension 0; it must be a multiple of 16 bytes",
                         std::uint64_t{map.box[0]} * bits / 8);
        }
        if (const unsigned span = span_of(map.swizzle); span != 0 && inner > span) {
            refusals.add("the box is {} bytes wide in dimension 0; this swizzle takes at most {}", inner, span);
        }
    }
    if (map.box_bytes() > box_bytes_limit) {
        refusals.add("the box has {} bytes; the driver takes at most {}, the shared memory of an SM", map.box_bytes(),
                     box_bytes_limit);
    }
}

void check_im2col(const TensorMap& map, Refusals& refusals)
{
    if (map.rank < 3) {
        refusals.add("the rank is {}; an im2col map has 3 to 5 dimensions", map.rank);
        return;
    }
    const unsigned spatial = map.rank - 2;
    const int bits = spatial == 1 ? 16 : spatial == 2 ? 8 : 5;  // as cuTensorMapEncodeIm2col allows them
    const int low = -(1 << (bits - 1));
    const int high = (1 << (bits - 1)) - 1;
    for (unsigned i = 0; i < spatial; ++i) {
        for (const int corner : {map.lower_corner[i], map.upper_corner[i]}) {
            if (corner < low || corner > high) {
                refusals.add("a corner of the pixel box is {} in dimension {}; it must be {} to {}", corner, i + 1, low,
                             high);
            }
        }
    }
    if (map.channels_per_pixel > 256) {
        refusals.add("channelsPerPixel is {}; it must be at most 256", map.channels_per_pixel);
    }
    if (map.pixels_per_column > 1024) {
        refusals.add("pixelsPerColumn is {}; it must be at most 1024", map.pixels_per_column);
    }
    const std::uint64_t inner = std::uint64_t{map.channels_per_pixel} * shared_bits(map.element) / 8;
    if (const unsigned span = span_of(map.swizzle);
        map.interleave == TensorInterleave::none && span != 0 && inner > span) {
        refusals.add("a pixel's channels have {} bytes; this swizzle takes at most {}", inner, span);
    }
}

}  // namespace

unsigned global_bits(TensorElement element) noexcept
{
    switch (element) {
        case TensorElement::u8: return 8;
        case TensorElement::u16:
        case TensorElement::f16:
        case TensorElement::bf16: return 16;
        case TensorElement::u64:
        case TensorElement::s64:
        case TensorElement::f64: return 64;
        case TensorElement::u4_align8:
        case TensorElement::u4_align16: return 4;
        case TensorElement::u6_align16: return 6;
        default: return 32;
    }
}

unsigned shared_bits(TensorElement element) noexcept { return is_packed_16(element) ? 8 : global_bits(element); }

bool is_floating(TensorElement element) noexcept
{
    return element >= TensorElement::f16 && element <= TensorElement::tf32_ftz;
}

std::uint32_t TensorMap::copied(unsigned i) const noexcept
{
    if ((i == 0 && interleave == TensorInterleave::none) || element_strides[i] <= 1) {
        return box[i];
    }
    return (box[i] + element_strides[i] - 1) / element_strides[i];
}

std::uint64_t TensorMap::box_bytes() const noexcept
{
    if (mode == TensorMapMode::im2col) {
        return std::uint64_t{channels_per_pixel} * pixels_per_column * shared_bits(element) / 8;
    }
    std::uint64_t elements = 1;
    for (unsigned i = 0; i < rank && i < max_tensor_rank; ++i) {
        elements *= copied(i);
    }
    return elements * shared_bits(element) / 8;
}

std::string refusals(const TensorMap& map)
{
    Refusals refusals;
    if (map.element > TensorElement::u6_align16) {
        refusals.add("tensorDataType {} is unknown", static_cast<int>(map.element));
    }
    if (map.rank < 1 || map.rank > max_tensor_rank) {
        refusals.add("the rank is {}; a tensor map has 1 to {} dimensions", map.rank, max_tensor_rank);
    }
    if (map.interleave > TensorInterleave::bytes_32) {
        refusals.add("interleave {} is unknown", static_cast<int>(map.interleave));
    }
    if (map.swizzle > TensorSwizzle::span_128_atom_64) {
        refusals.add("swizzle {} is unknown", static_cast<int>(map.swizzle));
    }
    if (map.l2_promotion > 3) {
        refusals.add("l2Promotion {} is unknown", map.l2_promotion);
    }
    if (map.fill > TensorFill::nan) {
        refusals.add("oobFill {} is unknown", static_cast<int>(map.fill));
    }
    if (std::string unknown = refusals.take(); !unknown.empty()) {
        return unknown;
    }
    if (map.interleave != TensorInterleave::none && map.rank < 3) {
        refusals.add("the rank is {}; interleaved tensors have 3 to 5 dimensions", map.rank);
    }
    if (map.interleave == TensorInterleave::bytes_32 && map.swizzle != TensorSwizzle::span_32) {
        refusals.add("interleave by 32 bytes needs the 32-byte swizzle");
    }
    if (is_packed_16(map.element)) {
        const bool swizzle_fits =
            map.swizzle == TensorSwizzle::none || map.swizzle == TensorSwizzle::span_128 ||
            map.swizzle == TensorSwizzle::span_128_atom_32 ||
            (map.swizzle == TensorSwizzle::span_128_atom_64 && map.element == TensorElement::u6_align16);
        if (!swizzle_fits || map.interleave != TensorInterleave::none) {
            refusals.add(
                "this packed type takes no interleave, and the swizzles none, 128 bytes, or 128 bytes with 32-byte "
                "atoms");
        }
    }
    if (map.fill == TensorFill::nan && !is_floating(map.element)) {
        refusals.add("out-of-bounds elements can be NaN only for floating-point elements");
    }
    for (unsigned i = 0; i < map.rank; ++i) {
        if (map.element_strides[i] < 1 || map.element_strides[i] > 8) {
            refusals.add("elementStrides[{}] is {}; it must be 1 to 8", i, map.element_strides[i]);
        }
    }
    if (std::string early = refusals.take(); !early.empty()) {
        return early;
    }
    check_global(map, refusals);
    map.mode == TensorMapMode::tiled ? check_box(map, refusals) : check_im2col(map, refusals);
    return refusals.take();
}

std::array<std::byte, tensor_map_bytes> encode(const TensorMap& map) noexcept
{
    Bits bits{};
    bits.magic = magic;
    bits.element = static_cast<std::uint8_t>(map.element);
    bits.rank = static_cast<std::uint8_t>(map.rank);
    bits.interleave = static_cast<std::uint8_t>(map.interleave);
    bits.swizzle = static_cast<std::uint8_t>(map.swizzle);
    bits.fill = static_cast<std::uint8_t>(map.fill);
    bits.l2_promotion = map.l2_promotion;
    bits.mode = static_cast<std::uint8_t>(map.mode);
    bits.address = map.address;
    for (unsigned i = 0; i < max_tensor_rank; ++i) {
        bits.last_index[i] = static_cast<std::uint32_t>(map.extents[i] - 1);
        bits.box[i] = static_cast<std::uint16_t>(map.box[i]);
        bits.element_strides[i] = static_cast<std::uint8_t>(map.element_strides[i]);
    }
    for (unsigned i = 0; i + 1 < max_tensor_rank; ++i) {
        bits.strides[i] = map.strides[i];
    }
    for (unsigned i = 0; i < 3; ++i) {
        bits.lower_corner[i] = static_cast<std::int16_t>(map.lower_corner[i]);
        bits.upper_corner[i] = static_cast<std::int16_t>(map.upper_corner[i]);
    }
    bits.channels_per_pixel = static_cast<std::uint16_t>(map.channels_per_pixel);
    bits.pixels_per_column = static_cast<std::uint16_t>(map.pixels_per_column);
    return std::bit_cast<std::array<std::byte, tensor_map_bytes>>(bits);
}

std::optional<TensorMap> decode_tensor_map(std::span<const std::byte, tensor_map_bytes> bytes) noexcept
{
    Bits bits{};
    std::memcpy(&bits, bytes.data(), sizeof bits);
    if (bits.magic != magic || bits.rank < 1 || bits.rank > max_tensor_rank) {
        return std::nullopt;
    }
    TensorMap map;
    map.mode = static_cast<TensorMapMode>(bits.mode);
    map.element = static_cast<TensorElement>(bits.element);
    map.rank = bits.rank;
    map.address = bits.address;
    map.interleave = static_cast<TensorInterleave>(bits.interleave);
    map.swizzle = static_cast<TensorSwizzle>(bits.swizzle);
    map.fill = static_cast<TensorFill>(bits.fill);
    map.l2_promotion = bits.l2_promotion;
    for (unsigned i = 0; i < max_tensor_rank; ++i) {
        map.extents[i] = std::uint64_t{bits.last_index[i]} + 1;
        map.box[i] = bits.box[i];
        map.element_strides[i] = bits.element_strides[i];
    }
    for (unsigned i = 0; i + 1 < max_tensor_rank; ++i) {
        map.strides[i] = bits.strides[i];
    }
    for (unsigned i = 0; i < 3; ++i) {
        map.lower_corner[i] = bits.lower_corner[i];
        map.upper_corner[i] = bits.upper_corner[i];
    }
    map.channels_per_pixel = bits.channels_per_pixel;
    map.pixels_per_column = bits.pixels_per_column;
    return map;
}

}  // namespace tessera::emulator
