#pragma once

/// Maps element types known at run time to C++ types.

#include <stdexcept>
#include <type_traits>

#include "tessera/element.hpp"

namespace tessera::bench {

/// Calls `use(std::type_identity<T>{})` with the type that `type` names, and returns the result.
template <class Use>
decltype(auto) with_element(ElementType type, const Use& use)
{
    switch (type) {
        case ElementType::f32: return use(std::type_identity<f32>{});
        case ElementType::f16: return use(std::type_identity<f16>{});
        case ElementType::bf16: return use(std::type_identity<bf16>{});
        case ElementType::tf32: return use(std::type_identity<tf32>{});
        case ElementType::f8e4m3: return use(std::type_identity<f8e4m3>{});
        case ElementType::f8e5m2: return use(std::type_identity<f8e5m2>{});
    }
    throw std::logic_error("unknown element type");
}

/// The same for the types that D can have.
template <class Use>
decltype(auto) with_output_element(ElementType type, const Use& use)
{
    switch (type) {
        case ElementType::f32: return use(std::type_identity<f32>{});
        case ElementType::f16: return use(std::type_identity<f16>{});
        case ElementType::bf16: return use(std::type_identity<bf16>{});
        default: throw std::logic_error("not an element type of D");
    }
}

}  // namespace tessera::bench
