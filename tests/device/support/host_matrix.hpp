#pragma once

/// Matrices in host memory with the layout of device memory: padding, guards and poison.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tessera/element.hpp"

namespace tessera::test {

/// Calls `use(std::type_identity<T>{})` with the output type that `type` names.
template <class Use>
decltype(auto) with_output_type(ElementType type, Use&& use)
{
    switch (type) {
        case ElementType::f16: return use(std::type_identity<f16>{});
        case ElementType::bf16: return use(std::type_identity<bf16>{});
        case ElementType::f8e4m3: return use(std::type_identity<f8e4m3>{});
        case ElementType::f8e5m2: return use(std::type_identity<f8e5m2>{});
        default: break;
    }
    return use(std::type_identity<f32>{});
}

/// Calls `use(std::type_identity<T>{})` with the type of C or a bias that `type` names.
template <class Use>
decltype(auto) with_addend_type(ElementType type, Use&& use)
{
    switch (type) {
        case ElementType::f16: return use(std::type_identity<f16>{});
        case ElementType::bf16: return use(std::type_identity<bf16>{});
        default: break;
    }
    return use(std::type_identity<f32>{});
}

/// Calls `use(std::type_identity<A>{}, std::type_identity<B>{})` with the types that `types` names.
template <class Use>
decltype(auto) with_input_types(InputTypes types, Use&& use)
{
    const auto same = [&]<class T>(std::type_identity<T> type) { return use(type, type); };
    switch (types.a) {
        case ElementType::f16: return same(std::type_identity<f16>{});
        case ElementType::bf16: return same(std::type_identity<bf16>{});
        case ElementType::tf32: return same(std::type_identity<tf32>{});
        case ElementType::f8e4m3:
            return types.b == types.a ? same(std::type_identity<f8e4m3>{})
                                      : use(std::type_identity<f8e4m3>{}, std::type_identity<f8e5m2>{});
        case ElementType::f8e5m2:
            return types.b == types.a ? same(std::type_identity<f8e5m2>{})
                                      : use(std::type_identity<f8e5m2>{}, std::type_identity<f8e4m3>{});
        case ElementType::f32: break;
    }
    return same(std::type_identity<f32>{});
}

/// A NaN that arithmetic never produces: an element that still has it was not written.
constexpr std::uint32_t poison_bits(ElementType type)
{
    switch (type) {
        case ElementType::f16: return 0x7EA5;
        case ElementType::bf16: return 0x7FA5;
        case ElementType::f8e4m3:
        case ElementType::f8e5m2: return 0xFF;
        case ElementType::f32:
        case ElementType::tf32: break;
    }
    return 0x7FA5A5A5;
}

/// An array whose element type is known at run time. Initially full of poison.
class HostArray {
public:
    HostArray(ElementType type, std::size_t size) : type_(type), size_(size), bytes_(size * size_of(type))
    {
        for (std::size_t i = 0; i < size; ++i) {
            set_bits(i, poison_bits(type));
        }
    }

    ElementType type() const noexcept { return type_; }
    std::size_t size() const noexcept { return size_; }
    const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
    std::vector<std::byte>& bytes() noexcept { return bytes_; }

    std::uint32_t bits(std::size_t index) const
    {
        std::uint32_t value = 0;  // the machine is little-endian, like all hosts of CUDA
        std::memcpy(&value, bytes_.data() + index * size_of(type_), size_of(type_));
        return value;
    }
    void set_bits(std::size_t index, std::uint32_t value)
    {
        std::memcpy(bytes_.data() + index * size_of(type_), &value, size_of(type_));
    }
    float get(std::size_t index) const { return widened(type_, bits(index)); }
    void set(std::size_t index, float value) { set_bits(index, narrowed(type_, value)); }

    static float widened(ElementType type, std::uint32_t bits)
    {
        switch (type) {
            case ElementType::f16: return detail::widen_from_f16(static_cast<std::uint16_t>(bits));
            case ElementType::bf16: return detail::widen_from_bf16(static_cast<std::uint16_t>(bits));
            case ElementType::f8e4m3: return f8e4m3::from_bits(static_cast<std::uint8_t>(bits));
            case ElementType::f8e5m2: return f8e5m2::from_bits(static_cast<std::uint8_t>(bits));
            case ElementType::f32:
            case ElementType::tf32: break;
        }
        return std::bit_cast<float>(bits);
    }
    static std::uint32_t narrowed(ElementType type, float value)
    {
        switch (type) {
            case ElementType::f16: return detail::narrow_to_f16(value);
            case ElementType::bf16: return detail::narrow_to_bf16(value);
            case ElementType::tf32: return detail::narrow_to_tf32(value);
            case ElementType::f8e4m3: return f8e4m3(value).bits;
            // The conversion saturates, but infinity is a value of the type, too.
            case ElementType::f8e5m2: return std::isinf(value) ? (value < 0 ? 0xFC : 0x7C) : f8e5m2(value).bits;
            case ElementType::f32: break;
        }
        return std::bit_cast<std::uint32_t>(value);
    }

private:
    ElementType type_;
    std::size_t size_;
    std::vector<std::byte> bytes_;
};

/// Positions of the elements of a strided batch of matrices in an array.
struct Placement {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t batches = 1;
    std::int64_t leading_dimension = 1;
    std::int64_t batch_stride = 0;
    std::int64_t first = 0;  // element (0, 0) of matrix 0
    bool row_major = true;

    std::int64_t vectors() const { return row_major ? rows : columns; }
    std::int64_t vector_size() const { return row_major ? columns : rows; }
    bool empty() const { return rows == 0 || columns == 0 || batches == 0; }

    /// Number of elements from the first to one past the last.
    std::int64_t span() const
    {
        return empty() ? 0 : (batches - 1) * batch_stride + (vectors() - 1) * leading_dimension + vector_size();
    }
    std::size_t index(std::int64_t batch, std::int64_t row, std::int64_t column) const
    {
        return static_cast<std::size_t>(
            first + batch * batch_stride +
            (row_major ? row * leading_dimension + column : column * leading_dimension + row));
    }
};

}  // namespace tessera::test
