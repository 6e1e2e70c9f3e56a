#pragma once

/// @file
/// @ingroup host_views
/// @brief `HostSpan<T>`: elements in host memory that somebody else owns, with checked access. `PinnedBuffer` hands it
/// out.

#include <cstddef>
#include <gsl/span>
#include <source_location>
#include <span>
#include <type_traits>

#include "tessera/detail/element_count.hpp"

namespace tessera {

/// `size()` elements of host memory that somebody else owns. Converts to `gsl::span` and `std::span`.
///
/// An index or range outside of it throws an Error with the values, where `std::span` does nothing and `gsl::span` ends
/// the process. It must not outlive the memory.
///
/// @par Thread safety
/// A value, like a pointer: threads that access the same elements must order their accesses.
///
/// @tparam T  the element type; a `const` one cannot be written
template <class T>
class HostSpan {
public:
    /// The element type.
    using element_type = T;
    /// The element type without const.
    using value_type = std::remove_cv_t<T>;
    /// The iterator of range algorithms.
    using iterator = T*;

    /// An empty span.
    constexpr HostSpan() = default;
    /// Refers to the elements [data, data + size). The caller answers for them.
    constexpr HostSpan(T* data, std::size_t size) noexcept : data_(data), size_(size) {}

    /// Converts a span of writable elements to one of const elements.
    constexpr operator HostSpan<const T>() const noexcept
        requires(!std::is_const_v<T>)
    {
        return {data_, size_};
    }
    /// Converts to a `gsl::span` of the same elements.
    constexpr operator gsl::span<T>() const noexcept { return {data_, size_}; }

    /// Returns the address of the first element, or null.
    constexpr T* data() const noexcept { return data_; }
    /// Returns the number of elements.
    constexpr std::size_t size() const noexcept { return size_; }
    /// Returns the size in bytes.
    constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    /// Returns true if there are no elements.
    constexpr bool empty() const noexcept { return size_ == 0; }

    /// Returns element `index`.
    /// @throws Error  `out_of_range`
    constexpr T& operator[](detail::ElementIndex index) const
    {
        if (index.wrapped() >= size_) [[unlikely]] {
            detail::raise_index("HostSpan::operator[]", index, size_, index.caller());
        }
        return data_[index.wrapped()];
    }

    /// Returns the elements [offset, offset + count).
    /// @throws Error  `out_of_range`
    HostSpan subspan(std::size_t offset, std::size_t count,
                     std::source_location caller = std::source_location::current()) const
    {
        if (offset > size_ || count > size_ - offset) [[unlikely]] {
            detail::raise_range("HostSpan::subspan", caller, offset, count, size_);
        }
        return {data_ + offset, count};
    }

    /// Returns an iterator to the first element.
    constexpr T* begin() const noexcept { return data_; }
    /// Returns an iterator past the last element.
    constexpr T* end() const noexcept { return data_ + size_; }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace tessera

/// @cond
// Its iterators are pointers: they stay valid without the span.
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<tessera::HostSpan<T>> = true;
/// @endcond
