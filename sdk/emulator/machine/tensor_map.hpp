#pragma once

// Tensor maps (CUtensorMap), which describe a tensor in global memory to the tensor copies (TMA).
//
// NVIDIA's layout of the 128 bytes is not public, and programs must not rely on it. The emulated device has its own
// layout, little endian. It is private: only encode() and decode() know it.
//
//   offset  bytes  field
//        0      4  magic 0x54454D54 ("TMET")
//        4      1  element type (TensorElement)        8   1  out-of-bounds fill
//        5      1  rank                                9   1  L2 promotion
//        6      1  interleave                         10   1  mode (TensorMapMode)
//        7      1  swizzle                            11   5  zero
//       16      8  global address
//       24     20  extent of dimension i, minus 1: 5 x u32
//       44      4  zero
//       48     32  stride of dimension i + 1 in bytes: 4 x u64
//       80     10  box extent of dimension i: 5 x u16
//       90      5  element stride of dimension i: 5 x u8
//       95      1  zero
//       96     12  im2col: lower corner 3 x s16, upper corner 3 x s16
//      108      4  im2col: channels per pixel u16, pixels per column u16
//      112     16  zero

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tessera::emulator {

inline constexpr unsigned max_tensor_rank = 5;
inline constexpr std::size_t tensor_map_bytes = 128;

/// Numbers of CUtensorMapDataType. (Those of PTX's tensormap.replace.elemtype differ: there 8 is f32.ftz, 9 f64, 10
/// bf16.)
enum class TensorElement : std::uint8_t {
    u8 = 0,
    u16 = 1,
    u32 = 2,
    s32 = 3,
    u64 = 4,
    s64 = 5,
    f16 = 6,
    f32 = 7,
    f64 = 8,
    bf16 = 9,
    f32_ftz = 10,
    tf32 = 11,
    tf32_ftz = 12,
    u4_align8 = 13,   ///< 4-bit elements, packed in both memories
    u4_align16 = 14,  ///< 16 4-bit elements: 8 bytes in global memory, 16 in shared memory
    u6_align16 = 15,  ///< 16 6-bit elements: 12 bytes in global memory, 16 in shared memory
};

/// Numbers of CUtensorMapInterleave.
enum class TensorInterleave : std::uint8_t { none = 0, bytes_16 = 1, bytes_32 = 2 };

/// Numbers of CUtensorMapSwizzle.
enum class TensorSwizzle : std::uint8_t {
    none = 0,
    span_32 = 1,
    span_64 = 2,
    span_128 = 3,
    span_128_atom_32 = 4,
    span_128_atom_32_flip_8 = 5,
    span_128_atom_64 = 6,
};

/// Numbers of CUtensorMapFloatOOBfill.
enum class TensorFill : std::uint8_t { zeros = 0, nan = 1 };

enum class TensorMapMode : std::uint8_t { tiled = 0, im2col = 1 };

/// A tensor map, decoded. Dimension 0 is the contiguous one; entries from `rank` on are 1 (extents) or 0 (strides).
struct TensorMap {
    TensorMapMode mode = TensorMapMode::tiled;
    TensorElement element = TensorElement::u8;
    std::uint32_t rank = 1;
    std::uint64_t address = 0;
    std::array<std::uint64_t, max_tensor_rank> extents{1, 1, 1, 1, 1};  ///< in elements, at most 2^32
    /// strides[i]: bytes from one element of dimension i + 1 to the next. Dimension 0 has the element's size.
    std::array<std::uint64_t, max_tensor_rank - 1> strides{};
    std::array<std::uint32_t, max_tensor_rank> box{1, 1, 1, 1, 1};              ///< tiled: in elements
    std::array<std::uint32_t, max_tensor_rank> element_strides{1, 1, 1, 1, 1};  ///< every n-th element is copied
    TensorInterleave interleave = TensorInterleave::none;
    TensorSwizzle swizzle = TensorSwizzle::none;
    TensorFill fill = TensorFill::zeros;
    std::uint8_t l2_promotion = 0;  ///< a hint
    std::array<std::int32_t, 3> lower_corner{},
        upper_corner{};  ///< im2col: of the pixels' bounding box; dimension 1 first
    std::uint32_t channels_per_pixel = 1, pixels_per_column = 1;  ///< im2col

    friend bool operator==(const TensorMap&, const TensorMap&) = default;

    /// Number of elements along dimension i that one copy moves: every element_strides[i]-th of the box. Without
    /// interleave, dimension 0 has no element stride.
    [[nodiscard]] std::uint32_t copied(unsigned i) const noexcept;
    /// Bytes of a whole box in shared memory, including the padding of packed elements.
    [[nodiscard]] std::uint64_t box_bytes() const noexcept;
};

/// Bits of one element in global and in shared memory.
[[nodiscard]] unsigned global_bits(TensorElement element) noexcept;
[[nodiscard]] unsigned shared_bits(TensorElement element) noexcept;
[[nodiscard]] bool is_floating(TensorElement element) noexcept;

/// What the driver's encoders would refuse, as sentences with the values, one per line; empty if valid. The rules are
/// those of "Tensor Map Object Management" in the CUDA driver API, plus the limit of 233472 bytes for a box.
[[nodiscard]] std::string refusals(const TensorMap& map);

/// The bytes that a program holds. Checks nothing; extents, boxes and strides are truncated to their fields.
[[nodiscard]] std::array<std::byte, tensor_map_bytes> encode(const TensorMap& map) noexcept;

/// Decodes the result of encode(). Empty if the bytes are not a tensor map.
[[nodiscard]] std::optional<TensorMap> decode_tensor_map(std::span<const std::byte, tensor_map_bytes> bytes) noexcept;

}  // namespace tessera::emulator
