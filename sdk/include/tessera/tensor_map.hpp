#pragma once

/// @file
/// @ingroup host_tensor_maps
/// @brief `TensorMap<T, Box<...>, Swizzle>`: a descriptor for the tensor memory accelerator (TMA) with its element
/// type, box and swizzle in its type.
///
/// Source: CUDA driver API, "Tensor Map Object Management"; PTX ISA, "Tensors".

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/element.hpp"
#include "tessera/swizzle.hpp"

// A kernel that is compiled at run time uses maps, and does not encode them.
#ifndef __CUDACC_RTC__
#include <source_location>
#include <string>
#include <string_view>

#include "tessera/matrix_view.hpp"
#include "tessera/stream.hpp"
#endif

namespace tessera {

/// What a load delivers for elements outside of the tensor.
enum class OutOfBounds : std::uint8_t {
    zero = 0,  ///< 0
    nan = 1    ///< NaN; floating-point elements only
};

/// A hint: how much L2 fetches around a request.
enum class L2Promotion : std::uint8_t {
    none = 0,  ///< only what is requested
    b64 = 1,   ///< 64 bytes
    b128 = 2,  ///< 128 bytes
    b256 = 3   ///< 256 bytes
};

/// The elements per dimension that one TMA operation moves, innermost (contiguous) dimension first.
/// @tparam Extents  in elements, 1 to 256 each
template <unsigned... Extents>
struct Box {
    /// The number of dimensions.
    static constexpr std::size_t rank = sizeof...(Extents);
    /// The extents, in elements, innermost first.
    static constexpr std::array<std::uint32_t, rank> extents{Extents...};
    /// The number of elements.
    static constexpr std::size_t elements = (std::size_t{1} * ... * Extents);

    /// Returns the extent of a dimension. For device code, too, which has no access to `extents`.
    TESSERA_DETAIL_HOST_DEVICE static constexpr std::uint32_t extent(std::size_t dimension)
    {
        constexpr std::uint32_t all[] = {Extents...};
        return all[dimension];
    }
};

/// A tensor in device memory, innermost dimension first. The innermost stride is the element's size and is left out.
template <std::size_t Rank>
struct TensorLayout {
    const void* data = nullptr;                                     ///< device address of the first element
    std::array<std::uint64_t, Rank> extents{};                      ///< in elements, innermost first
    std::array<std::uint64_t, Rank == 0 ? 0 : Rank - 1> strides{};  ///< in bytes, from the second dimension on
};

namespace detail {

inline constexpr std::size_t max_tensor_rank = 5;

/// The largest box in bytes: 228 KiB, the shared memory of an SM. Not in NVIDIA's documentation; measured with driver
/// 580.159 on an H200, for 1 to 8-byte elements, ranks 2 to 5, with and without a swizzle.
inline constexpr std::size_t max_box_bytes = std::size_t{228} * 1024;

/// CUtensorMapDataType for an element type; the numbers are the driver's.
///
/// The driver has no 8-bit floats: their bytes are moved as integers. tf32 is moved as f32, bit by bit: the driver's
/// own type for it (11) rounds while it loads, and elements of type tf32 are rounded already.
template <class T>
inline constexpr int tensor_map_type = -1;
template <>
inline constexpr int tensor_map_type<std::uint8_t> = 0;
template <>
inline constexpr int tensor_map_type<std::uint16_t> = 1;
template <>
inline constexpr int tensor_map_type<std::uint32_t> = 2;
template <>
inline constexpr int tensor_map_type<std::int32_t> = 3;
template <>
inline constexpr int tensor_map_type<std::uint64_t> = 4;
template <>
inline constexpr int tensor_map_type<std::int64_t> = 5;
template <>
inline constexpr int tensor_map_type<f16> = 6;
template <>
inline constexpr int tensor_map_type<f32> = 7;
template <>
inline constexpr int tensor_map_type<double> = 8;
template <>
inline constexpr int tensor_map_type<bf16> = 9;
template <>
inline constexpr int tensor_map_type<tf32> = tensor_map_type<f32>;
template <>
inline constexpr int tensor_map_type<f8e4m3> = tensor_map_type<std::uint8_t>;
template <>
inline constexpr int tensor_map_type<f8e5m2> = tensor_map_type<std::uint8_t>;

#ifndef __CUDACC_RTC__
/// Returns the name of an element type for messages.
template <class T>
constexpr std::string_view tensor_map_element_name() noexcept
{
    if constexpr (MatrixElement<T>) {
        return to_string(element_traits<T>::type);
    } else if constexpr (std::is_floating_point_v<T>) {
        return "double";
    } else if constexpr (std::is_signed_v<T>) {
        return sizeof(T) == 8 ? "int64" : "int32";
    } else {
        return sizeof(T) == 8 ? "uint64" : sizeof(T) == 4 ? "uint32" : sizeof(T) == 2 ? "uint16" : "uint8";
    }
}

/// The arguments of the encoder, without types.
struct TensorMapRequest {
    std::string_view element_name;  // for messages
    int type;
    std::uint32_t element_bytes;
    std::uint32_t rank;
    const void* data;
    std::array<std::uint64_t, max_tensor_rank> extents;
    std::array<std::uint64_t, max_tensor_rank> strides;  // bytes; rank - 1 of them
    std::array<std::uint32_t, max_tensor_rank> box;
    Swizzle swizzle;
    OutOfBounds out_of_bounds;
    L2Promotion promotion;
};

#endif
/// The 128 bytes of a descriptor. Only the driver knows their meaning.
struct alignas(128) TensorMapBits {
    std::array<std::uint64_t, 16> words;
};
#ifndef __CUDACC_RTC__

/// Returns the broken rules, one sentence per line; empty if the encoder will accept the request.
std::string tensor_map_refusals(const TensorMapRequest& request);

/// Lets the driver encode, without any check before.
cudaError_t encode_tensor_map_unchecked(const TensorMapRequest& request, TensorMapBits& bits, int* driver_status);

/// Checks, encodes, and applies `mend_small_tensor_map`.
TensorMapBits encode_tensor_map(const Device& device, const TensorMapRequest& request,
                                const std::source_location& caller);

/// Blackwell drivers up to release 595 set bit 85 for tensors that span less than 128 KiB, which can fault when the
/// tensor has gaps. NVIDIA's release notes of driver 595.71.05 say to clear the bit.
void mend_small_tensor_map(const DeviceProperties& device, const TensorMapRequest& request,
                           TensorMapBits& bits) noexcept;
#endif

template <class BoxType>
TESSERA_DETAIL_HOST_DEVICE constexpr bool box_extents_are_valid() noexcept
{
    for (const std::uint32_t extent : BoxType::extents) {
        if (extent < 1 || extent > 256) {
            return false;
        }
    }
    return true;
}

}  // namespace detail

/// Options of an encoding that are not part of the map's type.
struct TensorMapOptions {
    OutOfBounds out_of_bounds = OutOfBounds::zero;  ///< for elements outside of the tensor
    L2Promotion promotion = L2Promotion::b128;      ///< how much L2 fetches around a request
};

/// A TMA descriptor. Its element type, box and swizzle are part of its type, so that the kernel that loads through it
/// and the host that encodes it cannot disagree.
///
/// What can be wrong at compile time does not compile. Every other rule of the encoder is checked before the driver is
/// called, and has a sentence of its own. Extents and boxes are given innermost (contiguous) dimension first.
///
/// @code{.cpp}
/// using Tile = TensorMap<bf16, Box<64, 128>, Swizzle::b128>;  // 128 rows of 64 elements
/// const auto map = Tile::of(a16);
/// @endcode
///
/// @par In a kernel
/// Pass it by value as `const __grid_constant__ TensorMap<...>` and never copy it in device code: the hardware needs
/// the parameter's own address. `tma_load` and `tma_store` (tessera/device/tma.cuh) use it.
///
/// @par Coordinates
/// A box may begin outside of the tensor, but its innermost coordinate times the element's size must be a multiple of
/// 16 bytes: an H200 stops with cudaErrorIllegalInstruction otherwise (measured, driver 580.159).
///
/// @par Lifetime
/// The tensor's memory must outlive every kernel that uses the map.
///
/// @par Thread safety
/// A value on the host: threads may use copies of it, or read the same object.
///
/// @tparam T         f32, f16, bf16, tf32, f8e4m3, f8e5m2, double, uint8/16/32/64 or int32/64
/// @tparam BoxShape  the Box that one operation moves: 1 to 5 dimensions, at most 228 KiB, innermost a multiple of 16
///                   bytes
/// @tparam Pattern   the swizzle of the tile in shared memory; the innermost extent must fit into its span
template <class T, class BoxShape, Swizzle Pattern = Swizzle::none>
class TensorMap {
    static_assert(detail::tensor_map_type<T> >= 0,
                  "tessera: a tensor map's element is f32, f16, bf16, tf32, f8e4m3, f8e5m2, double, uint8/16/32/64 or "
                  "int32/64");
    static_assert(BoxShape::rank >= 1 && BoxShape::rank <= detail::max_tensor_rank,
                  "tessera: a tensor map has 1 to 5 dimensions");
    static_assert(detail::box_extents_are_valid<BoxShape>(),
                  "tessera: each extent of a tensor map's box is 1 to 256 elements");
    static_assert(BoxShape::elements * sizeof(T) <= detail::max_box_bytes,
                  "tessera: a tensor map's box has at most 228 KiB, the shared memory of an SM");
    static_assert(BoxShape::extents[0] * sizeof(T) % 16 == 0,
                  "tessera: the innermost extent of a tensor map's box must be a multiple of 16 bytes");
    static_assert(Pattern == Swizzle::none || BoxShape::extents[0] * sizeof(T) <= swizzle_span_bytes(Pattern),
                  "tessera: the innermost extent of a tensor map's box must fit into the swizzle's span (32, 64 or 128 "
                  "bytes)");

public:
    /// The element type.
    using element_type = T;
    /// The box that one operation moves.
    using box_type = BoxShape;
    /// The swizzle of a box in shared memory.
    static constexpr Swizzle swizzle = Pattern;
    /// The number of dimensions.
    static constexpr std::size_t rank = BoxShape::rank;
    /// The bytes that one load writes to shared memory, also where the box leaves the tensor. A barrier must expect
    /// this many.
    static constexpr std::size_t box_bytes = BoxShape::elements * sizeof(T);
    /// The address of a box in shared memory must be a multiple of this, so that the swizzle pattern starts at its
    /// origin.
    static constexpr std::size_t shared_alignment = swizzle_alignment(Pattern);

#ifndef __CUDACC_RTC__
    /// Encodes a map of a tensor in device memory. Does not wait.
    ///
    /// @param device   the device of the memory
    /// @param layout   address, extents and strides; the memory must outlive every kernel that uses the map
    /// @param options  what a load delivers outside of the tensor, and how much L2 fetches
    /// @throws Error  `tensor_map_refused` with a sentence for each broken rule, `unsupported_device` below compute
    ///                capability 9.0, `no_device` if the driver lacks the encoder
    static TensorMap encode(const Device& device, const TensorLayout<rank>& layout, TensorMapOptions options = {},
                            std::source_location caller = std::source_location::current())
    {
        detail::TensorMapRequest request{};
        request.element_name = detail::tensor_map_element_name<T>();
        request.type = detail::tensor_map_type<T>;
        request.element_bytes = sizeof(T);
        request.rank = rank;
        request.data = layout.data;
        for (std::size_t i = 0; i < rank; ++i) {
            request.extents[i] = layout.extents[i];
            request.box[i] = BoxShape::extents[i];
        }
        for (std::size_t i = 0; i + 1 < rank; ++i) {
            request.strides[i] = layout.strides[i];
        }
        request.swizzle = Pattern;
        request.out_of_bounds = options.out_of_bounds;
        request.promotion = options.promotion;
        return TensorMap(detail::encode_tensor_map(device, request, caller));
    }

    /// Encodes a map of a matrix, for a box of two dimensions: dimension 0 runs along a row of a row-major matrix,
    /// along a column of a column-major one.
    /// @throws Error  as for `encode`
    template <class Element, class Order>
        requires(rank == 2 && std::is_same_v<std::remove_const_t<Element>, T>)
    static TensorMap of(MatrixView<Element, Order> matrix, TensorMapOptions options = {},
                        std::source_location caller = std::source_location::current())
    {
        constexpr bool row_major = std::is_same_v<Order, RowMajor>;
        const auto inner = static_cast<std::uint64_t>(row_major ? matrix.columns() : matrix.rows());
        const auto outer = static_cast<std::uint64_t>(row_major ? matrix.rows() : matrix.columns());
        const auto stride = static_cast<std::uint64_t>(matrix.leading_dimension()) * sizeof(T);
        const int device = matrix.device() < 0 ? Device::current(caller).ordinal() : matrix.device();
        return encode(Device(device, caller), {matrix.data(), {inner, outer}, {stride}}, options, caller);
    }

#endif

    /// Returns the descriptor's bytes, for tests and for raw code; reinterpret them as CUtensorMap.
    const detail::TensorMapBits& bits() const noexcept { return bits_; }

private:
    explicit TensorMap(const detail::TensorMapBits& bits) noexcept : bits_(bits) {}

    detail::TensorMapBits bits_;
};

/// A TMA descriptor whose element type, box and swizzle are known only at run time; the number of dimensions is in its
/// type.
///
/// It is for kernels that take operands in more layouts than they are compiled for. Whoever encodes the map must make
/// sure that the box fits into the shared memory that it is loaded into.
///
/// @tparam Rank  number of dimensions, 1 to 5
template <std::size_t Rank>
class AnyTensorMap {
    static_assert(Rank >= 1 && Rank <= detail::max_tensor_rank, "tessera: a tensor map has 1 to 5 dimensions");

public:
    /// The number of dimensions.
    static constexpr std::size_t rank = Rank;

    /// No map: it must not be used.
    AnyTensorMap() = default;
    /// Takes any map with this number of dimensions.
    template <class T, class BoxShape, Swizzle Pattern>
        requires(BoxShape::rank == Rank)
    AnyTensorMap(const TensorMap<T, BoxShape, Pattern>& map) noexcept : bits_(map.bits())
    {}
    /// Returns a map that was encoded by other means.
    static AnyTensorMap from_bits(const detail::TensorMapBits& bits) noexcept
    {
        AnyTensorMap map;
        map.bits_ = bits;
        return map;
    }

private:
    detail::TensorMapBits bits_;
};

}  // namespace tessera
