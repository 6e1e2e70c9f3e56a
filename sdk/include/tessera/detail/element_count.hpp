#pragma once

/// @file
/// @brief Counts and indices of elements as callers give them: of any integer type, so that a negative number is
/// recognized and does not become a number near 2^64.

#include "tessera/detail/language.hpp"

#include <concepts>
#include <cstddef>
#include <source_location>
#include <string_view>
#include <type_traits>

namespace tessera::detail {

/// Integers, and what converts to one: an unscoped enumerator, a `std::integral_constant`.
template <class Integer>
concept CountsElements = std::convertible_to<Integer, std::size_t> && !std::is_floating_point_v<Integer> &&
                         !std::is_same_v<std::remove_cv_t<Integer>, bool>;

/// A number of elements.
class ElementCount {
public:
    template <CountsElements Integer>
    constexpr ElementCount(Integer count) noexcept : count_(static_cast<std::size_t>(count))
    {
        if constexpr (std::is_signed_v<Integer>) {
            negative_ = count < 0;
        }
    }

    /// A negative number wraps to a size that no memory has: near 2^64.
    constexpr std::size_t wrapped() const noexcept { return count_; }
    constexpr bool is_negative() const noexcept { return negative_; }

    /// @throws Error `invalid_argument` for a negative number
    std::size_t require(std::string_view operation, const std::source_location& caller) const
    {
        if (negative_) [[unlikely]] {
            raise_negative(operation, caller);
        }
        return count_;
    }

private:
    [[noreturn]] void raise_negative(std::string_view operation, const std::source_location& caller) const;

    std::size_t count_;
    bool negative_ = false;
};

/// The index of an element and the line of the call: an operator has no other parameter that could carry it.
class ElementIndex : public ElementCount {
public:
    template <CountsElements Integer>
    constexpr ElementIndex(Integer index, std::source_location caller = std::source_location::current()) noexcept
        : ElementCount(index), caller_(caller)
    {}

    constexpr const std::source_location& caller() const noexcept { return caller_; }

private:
    std::source_location caller_;
};

[[noreturn]] void raise_index(std::string_view operation, ElementCount index, std::size_t size,
                              const std::source_location& caller);
[[noreturn]] void raise_range(std::string_view operation, const std::source_location& caller, std::size_t offset,
                              std::size_t count, std::size_t size);

}  // namespace tessera::detail
