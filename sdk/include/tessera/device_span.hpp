#pragma once

/// @file
/// @ingroup host_views
/// @brief `DeviceSpan<T>`: elements of device memory that somebody else owns, with their count and device.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "tessera/detail/host_device.hpp"
#include "tessera/error.hpp"
#include "tessera/matrix_view.hpp"

namespace tessera {

namespace detail {

[[noreturn]] void raise_range(std::string_view operation, const std::source_location& caller, std::size_t offset,
                              std::size_t count, std::size_t size);

inline void require_range(std::string_view operation, const std::source_location& caller, std::size_t offset,
                          std::size_t count, std::size_t size)
{
    if (offset > size || count > size - offset) [[unlikely]] {
        raise_range(operation, caller, offset, count, size);
    }
}

}  // namespace detail

/// `size()` elements of device memory that somebody else owns.
///
/// It can be passed to kernels by value. On the host it hands out its address but no elements; in device code it is
/// indexed, and an index out of range stops the kernel instead of reading elsewhere.
///
/// @code{.cpp}
/// __global__ void scale(DeviceSpan<float> values, float factor)
/// {
///     for (std::size_t i = threadIdx.x; i < values.size(); i += blockDim.x) {
///         values[i] *= factor;
///     }
/// }
/// @endcode
///
/// @par Lifetime
/// The span must not outlive the memory. Nothing checks this at run time; the emulated device reports it.
///
/// @par Thread safety
/// A value: threads may use copies of it, or read the same object.
///
/// @tparam T  a trivially copyable type; a `const` one cannot be written
template <class T>
class DeviceSpan {
    static_assert(std::is_trivially_copyable_v<T>, "tessera: elements of device memory must be trivially copyable");

public:
    /// The element type without const.
    using value_type = std::remove_cv_t<T>;

    /// An empty span of no device.
    DeviceSpan() = default;

    /// For the SDK: memory whose device is known.
    TESSERA_DETAIL_HOST_DEVICE DeviceSpan(T* data, std::size_t size, int device) noexcept
        : data_(data), size_(size), device_(device)
    {}

    /// Refers to memory that the SDK did not allocate. The caller answers for the count; the SDK asks CUDA for its
    /// device.
    /// @param data    address of the first element in device memory
    /// @param size    number of elements
    /// @throws Error  `wrong_memory` if `data` is host memory that kernels cannot reach, `misaligned` if it is not a
    ///                multiple of `alignof(T)`
    static DeviceSpan from_raw_device_pointer(T* data, std::size_t size,
                                              std::source_location caller = std::source_location::current())
    {
        constexpr std::string_view operation = "DeviceSpan::from_raw_device_pointer";
        return DeviceSpan(data, size, size == 0 ? -1 : detail::device_of_elements(data, alignof(T), operation, caller));
    }

    /// Converts a span of writable elements to one of const elements.
    // A template only because nvcc warns about a plain operator where T is const already.
    template <std::same_as<const T> ConstElement>
        requires(!std::is_const_v<T>)
    TESSERA_DETAIL_HOST_DEVICE operator DeviceSpan<ConstElement>() const noexcept
    {
        return {data_, size_, device_};
    }

    /// Returns the address of the first element in device memory, or null.
    TESSERA_DETAIL_HOST_DEVICE T* data() const noexcept { return data_; }
    /// Returns the number of elements.
    TESSERA_DETAIL_HOST_DEVICE std::size_t size() const noexcept { return size_; }
    /// Returns the size in bytes.
    TESSERA_DETAIL_HOST_DEVICE std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    /// Returns true if there are no elements.
    TESSERA_DETAIL_HOST_DEVICE bool empty() const noexcept { return size_ == 0; }
    /// Returns the ordinal of the memory's device, -1 for an empty span of no device.
    TESSERA_DETAIL_HOST_DEVICE int device() const noexcept { return device_; }

    /// Returns the elements [offset, offset + count).
    /// @throws Error  `out_of_range`
    DeviceSpan subspan(std::size_t offset, std::size_t count,
                       std::source_location caller = std::source_location::current()) const
    {
        detail::require_range("DeviceSpan::subspan", caller, offset, count, size_);
        return DeviceSpan(data_ + offset, count, device_);
    }
    /// Returns the elements from `offset` to the end.
    /// @throws Error  `out_of_range`
    DeviceSpan subspan(std::size_t offset, std::source_location caller = std::source_location::current()) const
    {
        return subspan(offset, offset <= size_ ? size_ - offset : 0, caller);
    }

    /// Views the first rows * columns elements as a matrix without gaps between its rows (or columns). Elements of
    /// CUDA's `__half`, `__nv_bfloat16`, `__nv_fp8_e4m3` and `__nv_fp8_e5m2` are viewed as f16, bf16, f8e4m3 and
    /// f8e5m2.
    /// @throws Error  `out_of_range` if there are too few elements, `invalid_argument` for a negative extent,
    ///                `size_overflow`
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<T>, Order> matrix(std::int64_t rows, std::int64_t columns, Order /*order*/ = {},
                                                   std::source_location caller = std::source_location::current()) const
    {
        return detail::checked_matrix<Order>("DeviceSpan::matrix", data_, size_, device_, rows, columns,
                                             detail::packed_leading_dimension<Order>(rows, columns), caller);
    }

    /// Views the first elements as a matrix whose rows (or columns) are `leading_dimension` elements apart.
    /// @throws Error  as above; `invalid_argument` if the leading dimension is too small
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<T>, Order> matrix(std::int64_t rows, std::int64_t columns,
                                                   std::int64_t leading_dimension, Order /*order*/ = {},
                                                   std::source_location caller = std::source_location::current()) const
    {
        return detail::checked_matrix<Order>("DeviceSpan::matrix", data_, size_, device_, rows, columns,
                                             leading_dimension, caller);
    }

    /// Views the first elements as equally spaced matrices, see BatchLayout. Matrices that overlap can be read but not
    /// written: a product refuses them as its output.
    /// @throws Error  `out_of_range` if there are too few elements, `invalid_argument`, `size_overflow`
    template <StorageOrder Order = RowMajor>
    BatchView<detail::ElementOf<T>, Order> matrices(const BatchLayout& layout, Order /*order*/ = {},
                                                    std::source_location caller = std::source_location::current()) const
    {
        return detail::checked_matrices<Order>("DeviceSpan::matrices", data_, size_, device_, layout, caller);
    }

    /// Does the same for one group, with bare numbers.
    template <StorageOrder Order = RowMajor>
    BatchView<detail::ElementOf<T>, Order> matrices(std::int64_t count, std::int64_t batch_stride, std::int64_t rows,
                                                    std::int64_t columns, std::int64_t leading_dimension,
                                                    Order /*order*/ = {},
                                                    std::source_location caller = std::source_location::current()) const
    {
        return matrices(BatchLayout{rows, columns, leading_dimension, count, batch_stride}, Order{}, caller);
    }

#ifdef __CUDACC__
    /// Returns element `index`. Device code only; an index out of range traps.
    __device__ T& operator[](std::size_t index) const
    {
        if (index >= size_) {
            __trap();
        }
        return data_[index];
    }
#endif

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
    int device_ = -1;
};

}  // namespace tessera
