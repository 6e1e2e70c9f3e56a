#pragma once

/// `HostSpan<T>`: elements in host memory that somebody else owns, with checked access. What `PinnedBuffer` hands out.

#include <cstddef>
#include <gsl/span>
#include <source_location>
#include <span>
#include <type_traits>

#include "tessera/detail/element_count.hpp"

namespace tessera {

/// `size()` elements of host memory that somebody else owns. Converts to `gsl::span` and `std::span`.
///
/// An index or range outside of it throws an Error with the values, where `std::span` is silent and `gsl::span` ends
/// the process.
///
/// Thread safety: a value, as a pointer is.
template <class T>
class HostSpan {
public:
    /// The element type.
    using element_type = T;
    /// The element type without const.
    using value_type = std::remove_cv_t<T>;
    /// For range algorithms.
    using iterator = T*;

    /// Empty.
    constexpr HostSpan() = default;
    /// The elements [data, data + size). The caller vouches for them.
    constexpr HostSpan(T* data, std::size_t size) noexcept : data_(data), size_(size) {}

    /// A span of writable elements is one of const elements.
    constexpr operator HostSpan<const T>() const noexcept
        requires(!std::is_const_v<T>)
    {
        return {data_, size_};
    }
    /// The same elements, for functions that take a `gsl::span`.
    constexpr operator gsl::span<T>() const noexcept { return {data_, size_}; }

    /// The address of the first element, or null.
    constexpr T* data() const noexcept { return data_; }
    /// In elements.
    constexpr std::size_t size() const noexcept { return size_; }
    /// In bytes.
    constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    /// True if there are no elements.
    constexpr bool empty() const noexcept { return size_ == 0; }

    /// One element. @throws Error `out_of_range`
    constexpr T& operator[](detail::ElementIndex index) const
    {
        if (index.wrapped() >= size_) [[unlikely]] {
            detail::raise_index("HostSpan::operator[]", index, size_, index.caller());
        }
        return data_[index.wrapped()];
    }

    /// The elements [offset, offset + count). @throws Error `out_of_range`
    HostSpan subspan(std::size_t offset, std::size_t count,
                     std::source_location caller = std::source_location::current()) const
    {
        if (offset > size_ || count > size_ - offset) [[unlikely]] {
            detail::raise_range("HostSpan::subspan", caller, offset, count, size_);
        }
        return {data_ + offset, count};
    }

    /// The first element, for range-based loops.
    constexpr T* begin() const noexcept { return data_; }
    /// One past the last element.
    constexpr T* end() const noexcept { return data_ + size_; }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace tessera

/// @cond
// Its iterators are pointers, which do not need it.
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<tessera::HostSpan<T>> = true;
/// @endcond
