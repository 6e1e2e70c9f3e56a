#pragma once

// D = A * B + D for mma, wmma and wgmma: operands in the layout of registers or shared memory, any element type, dense
// or with a structured sparse A. The sums themselves are in numerics/tensor_sum.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/device_model.hpp"
#include "machine/options.hpp"
#include "numerics/tensor_sum.hpp"

namespace tessera::emulator {

/// Element types of A and B.
enum class Element : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, s4, u4, b1, f64 };
/// Element types of C and D.
enum class SumType : std::uint8_t { f32, f16, s32, f64 };

[[nodiscard]] std::optional<Element> element_named(std::string_view name) noexcept;
[[nodiscard]] std::optional<SumType> sum_type_named(std::string_view name) noexcept;
[[nodiscard]] std::string_view name_of(Element element) noexcept;

[[nodiscard]] constexpr unsigned bits_of(Element element) noexcept
{
    switch (element) {
        case Element::f16:
        case Element::bf16: return 16;
        case Element::tf32: return 32;
        case Element::e4m3:
        case Element::e5m2:
        case Element::s8:
        case Element::u8: return 8;
        case Element::s4:
        case Element::u4: return 4;
        case Element::b1: return 1;
        case Element::f64: return 64;
    }
    return 0;
}
[[nodiscard]] constexpr bool is_floating(Element element) noexcept { return element <= Element::e5m2; }

/// An operand's elements, packed as in memory (4-bit and 1-bit elements with low bits first). A line holds all K of one
/// row of A or column of B. With `mn_major` (16-bit types only) it holds all M or N of one K.
struct OperandBlock {
    const std::byte* bytes = nullptr;
    std::size_t line_bytes = 0;
    bool mn_major = false;
};

struct Product {
    Element a = Element::f16, b = Element::f16;
    SumType sum = SumType::f32;
    unsigned m = 0, n = 0, k = 0;
    bool negate_a = false, negate_b = false;
    bool saturate = false;  ///< .satfinite of integer types
    numerics::BitOperation bits = numerics::BitOperation::bit_and;
    numerics::Rounding rounding = numerics::Rounding::nearest_even;  ///< of f64
    numerics::TensorUnit unit = numerics::TensorUnit::hopper_mma;
    Numerics numerics = Numerics::exact;
    unsigned instruction_k = 0;  ///< K of one hardware instruction if the product is a chain of several; else 0
    /// Sparse A: it holds k/2 elements per row. Stored element (row, i) is at K position positions[row * k/2 + i].
    const std::uint16_t* positions = nullptr;
};

/// `d` is m x n in row order: floats for f32 and f16 sums (f16 values as floats). Unless `accumulate`, its old contents
/// are ignored.
void multiply(const Product& product, const OperandBlock& a, const OperandBlock& b, float* d, bool accumulate);
void multiply(const Product& product, const OperandBlock& a, const OperandBlock& b, std::int32_t* d, bool accumulate);
void multiply(const Product& product, const OperandBlock& a, const OperandBlock& b, double* d, bool accumulate);

/// The tensor core that executes mma.sync and wmma on `device`.
[[nodiscard]] numerics::TensorUnit warp_tensor_unit(const DeviceModel& device) noexcept;

}  // namespace tessera::emulator
