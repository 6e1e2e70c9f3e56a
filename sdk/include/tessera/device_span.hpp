#pragma once

/// `DeviceSpan<T>`: a pointer to device memory, its element count and its device, owned by somebody else.
///
/// It can be passed to kernels by value. On the host it hands out its address but no elements; in device code it is
/// indexed, and an index out of range stops the kernel instead of reading elsewhere.

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

/// Device memory of `size()` elements that somebody else owns. `T` may be const. A value: it may be copied, passed to
/// kernels and used from several threads.
template <class T>
class DeviceSpan {
    static_assert(std::is_trivially_copyable_v<T>, "tessera: elements of device memory must be trivially copyable");

public:
    /// The element type without const.
    using value_type = std::remove_cv_t<T>;

    /// Empty.
    DeviceSpan() = default;

    /// For the SDK: memory whose device is known.
    TESSERA_DETAIL_HOST_DEVICE DeviceSpan(T* data, std::size_t size, int device) noexcept
        : data_(data), size_(size), device_(device)
    {}

    /// Names memory that the SDK did not allocate. The caller vouches for the count; that the memory is a device's is
    /// asked of CUDA.
    /// @throws Error `wrong_memory` if `data` is host memory that kernels cannot reach, `misaligned` if no `T` can lie
    ///               there
    static DeviceSpan from_raw_device_pointer(T* data, std::size_t size,
                                              std::source_location caller = std::source_location::current())
    {
        constexpr std::string_view operation = "DeviceSpan::from_raw_device_pointer";
        return DeviceSpan(data, size, size == 0 ? -1 : detail::device_of_elements(data, alignof(T), operation, caller));
    }

    /// A span of writable elements is one of const elements.
    /// A template only because nvcc warns of a plain operator where T is const already.
    template <std::same_as<const T> ConstElement>
        requires(!std::is_const_v<T>)
    TESSERA_DETAIL_HOST_DEVICE operator DeviceSpan<ConstElement>() const noexcept
    {
        return {data_, size_, device_};
    }

    /// The address of the first element in device memory, or null.
    TESSERA_DETAIL_HOST_DEVICE T* data() const noexcept { return data_; }
    /// In elements.
    TESSERA_DETAIL_HOST_DEVICE std::size_t size() const noexcept { return size_; }
    /// In bytes.
    TESSERA_DETAIL_HOST_DEVICE std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    /// True if there are no elements.
    TESSERA_DETAIL_HOST_DEVICE bool empty() const noexcept { return size_ == 0; }
    /// The ordinal of the memory's device, -1 for an empty span of none.
    TESSERA_DETAIL_HOST_DEVICE int device() const noexcept { return device_; }

    /// The elements [offset, offset + count).
    /// @throws Error `out_of_range`
    DeviceSpan subspan(std::size_t offset, std::size_t count,
                       std::source_location caller = std::source_location::current()) const
    {
        detail::require_range("DeviceSpan::subspan", caller, offset, count, size_);
        return DeviceSpan(data_ + offset, count, device_);
    }
    /// The elements from `offset` to the end.
    /// @throws Error `out_of_range`
    DeviceSpan subspan(std::size_t offset, std::source_location caller = std::source_location::current()) const
    {
        return subspan(offset, offset <= size_ ? size_ - offset : 0, caller);
    }

    /// Views the first elements as a matrix without gaps between its rows (or columns). Elements of CUDA's `__half`,
    /// `__nv_bfloat16`, `__nv_fp8_e4m3` and `__nv_fp8_e5m2` are viewed as f16, bf16, f8e4m3 and f8e5m2.
    /// @throws Error `out_of_range` if there are too few elements, `invalid_argument`, `size_overflow`
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<T>, Order> matrix(std::int64_t rows, std::int64_t columns, Order /*order*/ = {},
                                                   std::source_location caller = std::source_location::current()) const
    {
        return detail::checked_matrix<Order>("DeviceSpan::matrix", data_, size_, device_, rows, columns,
                                             detail::packed_leading_dimension<Order>(rows, columns), caller);
    }

    /// Views the first elements as a matrix whose rows (or columns) are `leading_dimension` elements apart.
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<T>, Order> matrix(std::int64_t rows, std::int64_t columns,
                                                   std::int64_t leading_dimension, Order /*order*/ = {},
                                                   std::source_location caller = std::source_location::current()) const
    {
        return detail::checked_matrix<Order>("DeviceSpan::matrix", data_, size_, device_, rows, columns,
                                             leading_dimension, caller);
    }

    /// Views the first elements as equally spaced matrices. Matrices that overlap can be read but not written: as an
    /// output of a product they are refused.
    /// @throws Error `out_of_range` if there are too few elements, `invalid_argument`, `size_overflow`
    template <StorageOrder Order = RowMajor>
    BatchView<detail::ElementOf<T>, Order> matrices(const BatchLayout& layout, Order /*order*/ = {},
                                                    std::source_location caller = std::source_location::current()) const
    {
        return detail::checked_matrices<Order>("DeviceSpan::matrices", data_, size_, device_, layout, caller);
    }

    /// The same for one group, with bare numbers.
    template <StorageOrder Order = RowMajor>
    BatchView<detail::ElementOf<T>, Order> matrices(std::int64_t count, std::int64_t batch_stride, std::int64_t rows,
                                                    std::int64_t columns, std::int64_t leading_dimension,
                                                    Order /*order*/ = {},
                                                    std::source_location caller = std::source_location::current()) const
    {
        return matrices(BatchLayout{rows, columns, leading_dimension, count, batch_stride}, Order{}, caller);
    }

#ifdef __CUDACC__
    /// Device code only. An index out of range traps.
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
