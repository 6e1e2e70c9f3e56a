#pragma once

/// @file
/// @brief What a launch takes as a matrix, and one sentence for each other thing that users pass.

#include <cstdint>
#include <type_traits>

#include "tessera/detail/refused.hpp"
#include "tessera/device_span.hpp"
#include "tessera/element.hpp"
#include "tessera/matrix_view.hpp"

namespace tessera {

template <class T>
class DeviceBuffer;
template <class T>
class PinnedBuffer;
enum class Variant : std::uint8_t;
enum class Activation : std::uint8_t;
struct Bias;
struct MatrixOperand;

namespace detail {

/// The element type of a view, const or not; void if it is known only at run time.
template <class T>
struct OperandElement {};
template <class T, class Order>
struct OperandElement<MatrixView<T, Order>> {
    using type = T;
};
template <class T, class Order>
struct OperandElement<BatchView<T, Order>> {
    using type = T;
};
template <>
struct OperandElement<MatrixOperand> {
    using type = void;
};

/// A user's type that converts to an operand, such as a framework's tensor.
template <class T>
concept ConvertsToOperand = requires(const T& value) { value.operator MatrixOperand(); };
template <ConvertsToOperand T>
struct OperandElement<T> {
    using type = void;
};

/// What a launch takes as A, B, C or D.
template <class T>
concept Operand = requires { typename OperandElement<T>::type; };

template <class T>
inline constexpr bool is_device_memory = false;
template <class T>
inline constexpr bool is_device_memory<DeviceBuffer<T>> = true;
template <class T>
inline constexpr bool is_device_memory<DeviceSpan<T>> = true;

template <class T>
inline constexpr bool is_pinned_memory = false;
template <class T>
inline constexpr bool is_pinned_memory<PinnedBuffer<T>> = true;

template <class T>
concept HostContainer = requires(const T& value) {
    value.data();
    value.size();
};

/// Fails to compile, with the sentence for what `T` is.
template <class T>
constexpr void refuse_as_operand()
{
    if constexpr (is_device_memory<T>) {
        static_assert(always_false<T>,
                      "tessera: a product takes views of matrices, and a buffer or span has no rows and columns: pass "
                      "buffer.matrix(rows, columns)");
    } else if constexpr (is_pinned_memory<T> || HostContainer<T>) {
        static_assert(always_false<T>,
                      "tessera: a product takes views of matrices on the device, and this is host memory: copy "
                      "it with DeviceBuffer<T>::from_host(stream, values) and pass buffer.matrix(rows, columns)");
    } else if constexpr (std::is_pointer_v<T> || std::is_array_v<T>) {
        static_assert(always_false<T>,
                      "tessera: a product takes views of matrices, and a pointer has no rows and columns: pass "
                      "MatrixView<T>::from_raw_device_pointer(pointer, rows, columns, leading_dimension)");
    } else {
        static_assert(
            always_false<T>,
            "tessera: a product takes a MatrixView, a BatchView or a MatrixOperand for each of A, B, C and D");
    }
}

/// Returns true if elements of type `T`, perhaps const, can be in a matrix. A view of other elements does not compile
/// either, but g++ continues after that error.
template <class T>
constexpr bool is_operand_element()
{
    if constexpr (std::is_void_v<T>) {
        return true;
    } else {
        return MatrixElement<T>;
    }
}

/// Checks the element types that are known when the launch is compiled. The others are checked at run time.
template <class A, class B, class D>
constexpr void require_element_types()
{
    if constexpr (!std::is_void_v<A> && !std::is_void_v<B>) {
        static_assert(
            can_multiply({element_traits<std::remove_const_t<A>>::type, element_traits<std::remove_const_t<B>>::type}),
            "tessera: A and B have different element types: convert one of them; only f8e4m3 and f8e5m2 can be mixed");
    }
    if constexpr (!std::is_void_v<D>) {
        static_assert(OutputElement<D>,
                      "tessera: the output D has elements of f32, f16, bf16, f8e4m3 or f8e5m2; tf32 is for A and B "
                      "only");
        static_assert(
            !std::is_const_v<D>,
            "tessera: the output D is a view of const elements and cannot be written: take the view from a buffer "
            "that is not const");
    }
}

/// Returns true if a launch takes A, B and D. Otherwise it does not compile.
template <class A, class B, class D>
constexpr bool require_operands_of_launch()
{
    if constexpr (!Operand<A>) {
        refuse_as_operand<A>();
        return false;
    } else if constexpr (!Operand<B>) {
        refuse_as_operand<B>();
        return false;
    } else if constexpr (!Operand<D>) {
        refuse_as_operand<D>();
        return false;
    } else {
        using ElementA = typename OperandElement<A>::type;
        using ElementB = typename OperandElement<B>::type;
        using ElementD = typename OperandElement<D>::type;
        if constexpr (is_operand_element<ElementA>() && is_operand_element<ElementB>() &&
                      is_operand_element<ElementD>()) {
            require_element_types<ElementA, ElementB, ElementD>();
            return true;
        } else {
            return false;
        }
    }
}

/// Fails to compile, with the sentence for what was passed in the epilogue's place.
template <class Other>
constexpr void refuse_as_epilogue()
{
    if constexpr (std::is_same_v<Other, Variant>) {
        static_assert(always_false<Other>,
                      "tessera: the variant comes after the epilogue: pass {} for none, launch(stream, a, b, d, {}, "
                      "variant); a plan has its variant already");
    } else if constexpr (std::is_same_v<Other, Bias>) {
        static_assert(always_false<Other>, "tessera: a bias is part of the epilogue: pass {.bias = bias}");
    } else if constexpr (std::is_same_v<Other, Activation>) {
        static_assert(always_false<Other>,
                      "tessera: an activation is part of the epilogue: pass {.activation = activation}");
    } else if constexpr (Operand<Other>) {
        static_assert(always_false<Other>, "tessera: C is part of the epilogue: pass {.c = c}");
    } else {
        static_assert(always_false<Other>,
                      "tessera: after A, B and D a launch takes an Epilogue: {.alpha = ..., .beta = ..., .c = ..., "
                      ".bias = ..., .activation = ...}");
    }
}

/// Fails to compile, with the sentence for what was passed as a bias.
template <class Other>
constexpr void refuse_as_bias()
{
    if constexpr (is_device_memory<Other>) {
        static_assert(
            always_false<Other>,
            "tessera: a bias runs along rows or columns: pass Bias::per_column(buffer.span()) for one element "
            "per column of D, or Bias::per_row(...)");
    } else {
        static_assert(always_false<Other>,
                      "tessera: a bias is a vector on the device: pass Bias::per_column(buffer.span()) for one element "
                      "per column of D, or Bias::per_row(...)");
    }
}

}  // namespace detail
}  // namespace tessera
