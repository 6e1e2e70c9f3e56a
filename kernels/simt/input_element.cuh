#pragma once

/// Conversion of an element of A or B to float: `Widen<Element>`.

#include <cstdint>

#include "tessera/element.hpp"

namespace tessera::kernels {

/// An 8-bit element whose type is known at run time. One kernel then serves the four pairs of types of A and B, at the
/// cost of a select per element. The library needs a quarter of the 8-bit kernels.
struct AnyFloat8 {
    std::uint8_t bits;
};

namespace detail {

template <class Element>
struct Widen {
    __device__ explicit Widen(ElementType) {}
    __device__ float operator()(Element element) const { return element; }
};

template <>
struct Widen<AnyFloat8> {
    bool is_e5m2;

    __device__ explicit Widen(ElementType type) : is_e5m2(type == ElementType::f8e5m2) {}
    __device__ float operator()(AnyFloat8 element) const
    {
        return is_e5m2 ? float(f8e5m2::from_bits(element.bits)) : float(f8e4m3::from_bits(element.bits));
    }
};

}  // namespace detail

}  // namespace tessera::kernels
