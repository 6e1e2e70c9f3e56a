#pragma once

/// @file
/// @ingroup device_tma
/// @brief The tensor memory accelerator (TMA) in device code: loads, multicast loads, prefetches into L2 and stores.
///
/// They move boxes between global memory and a `SharedTile` of the same element, box and swizzle as the `TensorMap`. A
/// pair that does not match does not compile. Through an `AnyTensorMap`, whose box is known only at run time, they move
/// any shared memory; the number of coordinates and the kind of barrier are still checked.
///
/// @code{.cpp}
/// producer.fill([&](auto& slot) {                            // the whole warp waits, one thread calls this
///     tma_load(a_map, a[slot.index()], slot, {depth, row});  // innermost coordinate first
/// });
/// @endcode
///
/// Coordinates are in elements, innermost dimension first, as in the map. Elements outside of the tensor arrive as the
/// map's `OutOfBounds` value and are not stored.
///
/// Source: PTX ISA, "cp.async.bulk.tensor", "Tensors".

#include <cuda/ptx>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/device/barrier.cuh"
#include "tessera/device/cluster.cuh"
#include "tessera/device/cta_group.hpp"
#include "tessera/device/l2_policy.cuh"
#include "tessera/device/pipeline.cuh"
#include "tessera/tensor_map.hpp"

namespace tessera {

/// The first element of a box, innermost dimension first, for example `{k, m}`.
///
/// Made from integers of any type. A number that is too large is cut to the hardware's 32 bits, so that an unsigned
/// number that passed below 0 is negative.
/// @tparam Rank  number of dimensions of the map
template <std::size_t Rank>
class TensorCoordinates {
public:
    /// One coordinate for each dimension of the map.
    template <class... Numbers>
    __device__ __forceinline__ TensorCoordinates(Numbers... numbers) : values{static_cast<std::int32_t>(numbers)...}
    {
        static_assert(sizeof...(Numbers) == Rank,
                      "tessera: TMA takes one coordinate for each dimension of the tensor map, innermost first");
        static_assert((std::is_integral_v<Numbers> && ...), "tessera: TMA's coordinates are whole numbers of elements");
    }
    /// Takes the coordinates from an array.
    __device__ __forceinline__ TensorCoordinates(const std::int32_t (&numbers)[Rank])
    {
#pragma unroll
        for (std::size_t i = 0; i < Rank; ++i) {
            values[i] = numbers[i];
        }
    }

    std::int32_t values[Rank];  ///< the coordinates, as the instructions take them
};

/// Shared memory that one TMA operation fills or reads, indexed through its swizzle: `tile(row, column)` is the element
/// in that row and column of the box, outermost index first as in a matrix. (Coordinates of TMA and the extents of a
/// Box are innermost first.) An index outside of the box traps; constant indices cost nothing.
///
/// @code{.cpp}
/// using Rows = TensorMap<float, Box<32, 8>, Swizzle::b128>;  // 8 rows of 32 elements
///
/// __global__ void load_and_read(const __grid_constant__ Rows map, DeviceSpan<float> out)
/// {
///     __shared__ SharedTile<float, Box<32, 8>, Swizzle::b128> tile;
///     __shared__ RingBarriers<FilledByTma, FreedByThreads, 1> barriers;
///     const auto published = publish_barriers([&](const BarrierInitializer& by) {
///         barriers.initialize(by, {.producers = 1, .consumers = 32});
///     });
///     RingProducer producer(barriers, published);
///     RingConsumer consumer(barriers, published);
///
///     producer.fill([&](auto& slot) { tma_load(map, tile, slot, {0, 0}); });
///     auto filled = consumer.wait();
///     out[threadIdx.x] = tile(0, threadIdx.x);  // row 0
///     std::move(filled).release();
/// }
/// @endcode
///
/// It is aligned so that the swizzle pattern begins at its first byte. The compiler aligns static shared memory; code
/// that divides dynamic shared memory must align it. The threads of a CTA share it and order their accesses by
/// barriers.
///
/// @tparam T         the element type
/// @tparam BoxShape  the Box that one operation moves
/// @tparam Pattern   the swizzle
template <class T, class BoxShape, Swizzle Pattern>
class alignas(TensorMap<T, BoxShape, Pattern>::shared_alignment) SharedTile {
public:
    /// The TensorMap that fits.
    using map_type = TensorMap<T, BoxShape, Pattern>;
    /// The bytes from one row of the box (its innermost dimension) to the next. A row that is narrower than the
    /// swizzle's span begins where a span does. TMA leaves the rest of the span unchanged (observed on an H200).
    static constexpr std::uint32_t row_pitch_bytes =
        Pattern == Swizzle::none ? BoxShape::extents[0] * sizeof(T) : swizzle_span_bytes(Pattern);
    /// The bytes of the whole tile. If rows are narrower than the span, that is more than the `map_type::box_bytes`
    /// that a barrier expects.
    static constexpr std::size_t size_bytes = BoxShape::elements / BoxShape::extents[0] * row_pitch_bytes;

    /// Returns the element at these indices, outermost first.
    template <std::integral... Indices>
    __device__ __forceinline__ T& operator()(Indices... indices)
    {
        return *reinterpret_cast<T*>(bytes_ + checked_offset<sizeof(T)>(indices...));
    }
    /// Returns the element at these indices, for reading.
    template <std::integral... Indices>
    __device__ __forceinline__ const T& operator()(Indices... indices) const
    {
        return *reinterpret_cast<const T*>(bytes_ + checked_offset<sizeof(T)>(indices...));
    }

    /// Returns several neighbouring elements at once, for example `tile.template vector<float4>(row, column)`: at most
    /// 16 bytes, which no swizzle separates. Traps unless the innermost index is a multiple of their number.
    template <class Vector, std::integral... Indices>
    __device__ __forceinline__ Vector& vector(Indices... indices)
    {
        return *reinterpret_cast<Vector*>(bytes_ + checked_offset<sizeof(Vector)>(indices...));
    }
    /// Returns several neighbouring elements, for reading.
    template <class Vector, std::integral... Indices>
    __device__ __forceinline__ const Vector& vector(Indices... indices) const
    {
        return *reinterpret_cast<const Vector*>(bytes_ + checked_offset<sizeof(Vector)>(indices...));
    }

    /// Returns where the element at these indices is, in bytes from the beginning. The indices are not checked.
    template <std::integral... Indices>
    TESSERA_DETAIL_HOST_DEVICE static constexpr std::uint32_t offset_bytes(Indices... indices)
    {
        static_assert(sizeof...(Indices) == BoxShape::rank,
                      "tessera: an element of a shared tile has one index for each dimension of its box");
        const std::uint32_t at[] = {static_cast<std::uint32_t>(indices)...};
        std::uint32_t row = 0;
        for (std::size_t i = 0; i + 1 < BoxShape::rank; ++i) {
            row = row * BoxShape::extent(BoxShape::rank - 1 - i) + at[i];
        }
        return swizzled(Pattern, row * row_pitch_bytes + at[BoxShape::rank - 1] * std::uint32_t{sizeof(T)});
    }

    /// Returns the memory itself, for instructions that know the swizzle (descriptors of the tensor core, ldmatrix) and
    /// for code that computes addresses. Code that accesses elements here must swizzle.
    __device__ std::byte* raw_swizzled_bytes() { return bytes_; }
    /// Returns the memory itself, for reading.
    __device__ const std::byte* raw_swizzled_bytes() const { return bytes_; }

private:
    template <std::size_t Bytes, class... Indices>
    __device__ __forceinline__ static std::uint32_t checked_offset(Indices... indices)
    {
        static_assert(sizeof...(Indices) == BoxShape::rank,
                      "tessera: an element of a shared tile has one index for each dimension of its box");
        static_assert(Bytes >= sizeof(T) && 16 % Bytes == 0,
                      "tessera: a vector of a shared tile has 1, 2, 4, 8 or 16 bytes and at least one element");
        if constexpr (sizeof...(Indices) == BoxShape::rank) {
            std::size_t dimension = BoxShape::rank;
            bool inside = true;
            // Converted to unsigned, an index below 0 is above every extent.
            ((inside = static_cast<std::make_unsigned_t<Indices>>(indices) < BoxShape::extent(--dimension) && inside),
             ...);
            const std::uint32_t offset = offset_bytes(indices...);
            if constexpr (Bytes > sizeof(T)) {
                inside = inside && offset % Bytes == 0;
            }
            if (!inside) {
                __trap();
            }
            return offset;
        }
        return 0;
    }

    std::byte bytes_[size_bytes];
};

namespace detail {

template <class Map, class Tile>
__device__ constexpr void require_matching_tile()
{
    static_assert(std::is_same_v<typename Map::element_type, typename Tile::map_type::element_type>,
                  "tessera: the tensor map's element type is not the shared tile's");
    static_assert(std::is_same_v<typename Map::box_type, typename Tile::map_type::box_type>,
                  "tessera: the tensor map's box is not the shared tile's");
    static_assert(Map::swizzle == Tile::map_type::swizzle,
                  "tessera: the tensor map's swizzle is not the shared tile's");
}

__device__ __forceinline__ void prefetch_tensor_map(const void* map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");  // not in cuda::ptx
}

__device__ __forceinline__ std::uint32_t shared_address(const void* data)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(data));
}

// Assembly: cuda::ptx of CUDA 13.0 has the loads of a pair, and multicast, for sm_100a only, not for the family.

/// `.cta_group::2`: the barrier is that of the pair's first CTA.
template <std::size_t Rank>
__device__ __forceinline__ void tensor_load_of_pair(void* destination, const void* map, const std::int32_t (&at)[Rank],
                                                    const std::uint64_t* barrier)
{
    static_assert(Rank == 2 || Rank == 3, "tessera: a pair's loads are of 2 or 3 dimensions");
    const std::uint32_t counted = in_first_of_pair(shared_address(barrier));
    if constexpr (Rank == 2) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], "
            "[%1, {%2, %3}], [%4];" ::"r"(shared_address(destination)),
            "l"(map), "r"(at[0]), "r"(at[1]), "r"(counted)
            : "memory");
    } else {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], "
            "[%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(destination)),
            "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(counted)
            : "memory");
    }
}

template <CtaGroup Group, std::size_t Rank>
__device__ __forceinline__ void tensor_load(void* destination, const void* map, const std::int32_t (&at)[Rank],
                                            std::uint64_t* barrier)
{
    if constexpr (Group == CtaGroup::pair) {
        tensor_load_of_pair(destination, map, at, barrier);
    } else {
        cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, destination, map, at,
                                        barrier);
    }
}

/// Each receiver counts at the barrier with this offset: its own, or that of its pair's first CTA.
template <CtaGroup Group, std::size_t Rank>
__device__ __forceinline__ void tensor_load_multicast(void* destination, const void* map,
                                                      const std::int32_t (&at)[Rank], std::uint64_t* barrier,
                                                      ReadyCtas receivers)
{
    if constexpr (Group == CtaGroup::pair) {
        static_assert(Rank == 2 || Rank == 3, "tessera: a pair's loads are of 2 or 3 dimensions");
        const std::uint32_t counted = in_first_of_pair(shared_address(barrier));
        if constexpr (Rank == 2) {
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                ".cta_group::2 [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(destination)),
                "l"(map), "r"(at[0]), "r"(at[1]), "r"(counted), "h"(receivers.bits())
                : "memory");
        } else {
            asm volatile(
                "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                ".cta_group::2 [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(destination)),
                "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(counted), "h"(receivers.bits())
                : "memory");
        }
    } else if constexpr (Rank == 2) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
            "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(destination)),
            "l"(map), "r"(at[0]), "r"(at[1]), "r"(shared_address(barrier)), "h"(receivers.bits())
            : "memory");
    } else if constexpr (Rank == 3) {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
            "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(destination)),
            "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(shared_address(barrier)), "h"(receivers.bits())
            : "memory");
    } else {
        cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, destination, map, at,
                                        barrier, receivers.bits());
    }
}

// cuda::ptx also lacks the forms with a cache hint, and the prefetch of tensors.

template <std::size_t Rank>
__device__ constexpr void require_policy_rank()
{
    static_assert(Rank == 2 || Rank == 3, "tessera: TMA with a policy for L2 is of 2 or 3 dimensions");
}

template <CtaGroup Group, std::size_t Rank>
__device__ __forceinline__ void tensor_load(void* destination, const void* map, const std::int32_t (&at)[Rank],
                                            std::uint64_t* barrier, L2Policy policy)
{
    require_policy_rank<Rank>();
    if constexpr (Group == CtaGroup::pair && Rank == 2) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"
            ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(destination)),
            "l"(map), "r"(at[0]), "r"(at[1]), "r"(in_first_of_pair(shared_address(barrier))), "l"(policy.bits())
            : "memory");
    } else if constexpr (Group == CtaGroup::pair) {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"
            ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(destination)),
            "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(in_first_of_pair(shared_address(barrier))),
            "l"(policy.bits())
            : "memory");
    } else if constexpr (Rank == 2) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
            "[%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(destination)),
            "l"(map), "r"(at[0]), "r"(at[1]), "r"(shared_address(barrier)), "l"(policy.bits())
            : "memory");
    } else {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
            "[%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(destination)),
            "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(shared_address(barrier)), "l"(policy.bits())
            : "memory");
    }
}

__device__ __forceinline__ void tensor_load_multicast(void* destination, const void* map, const std::int32_t (&at)[3],
                                                      std::uint64_t* barrier, ReadyCtas receivers, L2Policy policy)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(shared_address(destination)),
        "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(shared_address(barrier)), "h"(receivers.bits()),
        "l"(policy.bits())
        : "memory");
}

template <std::size_t Rank>
__device__ __forceinline__ void tensor_prefetch(const void* map, const std::int32_t (&at)[Rank], L2Policy policy)
{
    require_policy_rank<Rank>();
    if constexpr (Rank == 2) {
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile.L2::cache_hint [%0, {%1, %2}], %3;" ::"l"(map),
                     "r"(at[0]), "r"(at[1]), "l"(policy.bits())
                     : "memory");
    } else {
        asm volatile(
            "cp.async.bulk.prefetch.tensor.3d.L2.global.tile.L2::cache_hint [%0, {%1, %2, %3}], %4;" ::"l"(map),
            "r"(at[0]), "r"(at[1]), "r"(at[2]), "l"(policy.bits())
            : "memory");
    }
}

}  // namespace detail

/// Fetches the map's descriptor into its cache before the first use. Does not wait. Called by one thread.
template <class T, class BoxShape, Swizzle Pattern>
__device__ void prefetch(const TensorMap<T, BoxShape, Pattern>& map)
{
    detail::prefetch_tensor_map(&map);
}
/// Fetches the map's descriptor into its cache before the first use.
template <std::size_t Rank>
__device__ void prefetch(const AnyTensorMap<Rank>& map)
{
    detail::prefetch_tensor_map(&map);
}

// Each operation has two overloads: for an array of 32-bit coordinates, and for anything that converts to one.

/// Loads a box into `tile` of this CTA, for the slot's full barrier. In a pair, both CTAs load for the barrier of the pair's
/// first CTA. Asynchronous; called by one thread, in `RingProducer::fill`, which announces the bytes.
///
/// @param map          a kernel parameter, `const __grid_constant__`
/// @param tile         where the box goes
/// @param slot         what `fill` gives: a slot of a ring that is FilledByTma
/// @param coordinates  the first element of the box, innermost dimension first
template <class T, class BoxShape, Swizzle Pattern, class Tile, class Ring, std::same_as<std::int32_t> Number>
__device__ void tma_load(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, LoadSlot<Ring>& slot,
                         const Number (&coordinates)[BoxShape::rank])
{
    using Map = TensorMap<T, BoxShape, Pattern>;
    detail::require_matching_tile<Map, Tile>();
    detail::tensor_load<Ring::group>(tile.raw_swizzled_bytes(), &map, coordinates, slot.bytes().word());
    slot.count(static_cast<std::uint32_t>(Map::box_bytes));
}
/// Loads a box at any integer coordinates.
template <class T, class BoxShape, Swizzle Pattern, class Tile, class Ring>
__device__ void tma_load(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, LoadSlot<Ring>& slot,
                         const std::type_identity_t<TensorCoordinates<BoxShape::rank>>& coordinates)
{
    tma_load(map, tile, slot, coordinates.values);
}
/// Loads a box through an `AnyTensorMap`. Nobody but the caller knows its bytes, and announces them.
/// @param destination  shared memory for the map's box, aligned for its swizzle
/// @param counter      `bytes()` of a slot or of a barrier
template <std::size_t Rank, CtaGroup Group, std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_load(const AnyTensorMap<Rank>& map, std::byte* destination,
                                         ByteCounter<Group> counter, const Number (&coordinates)[Rank])
{
    detail::tensor_load<Group>(destination, &map, coordinates, counter.word());
}
/// Loads a box through an `AnyTensorMap`, at any integer coordinates.
template <std::size_t Rank, CtaGroup Group>
__device__ __forceinline__ void tma_load(const AnyTensorMap<Rank>& map, std::byte* destination,
                                         ByteCounter<Group> counter,
                                         const std::type_identity_t<TensorCoordinates<Rank>>& coordinates)
{
    tma_load(map, destination, counter, coordinates.values);
}

/// Loads a box of 2 or 3 dimensions with a policy for L2.
template <std::size_t Rank, CtaGroup Group, std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_load(const AnyTensorMap<Rank>& map, std::byte* destination,
                                         ByteCounter<Group> counter, const Number (&coordinates)[Rank], L2Policy policy)
{
    detail::tensor_load<Group>(destination, &map, coordinates, counter.word(), policy);
}
/// Loads a box of 2 or 3 dimensions with a policy for L2, at any integer coordinates.
template <std::size_t Rank, CtaGroup Group>
__device__ __forceinline__ void tma_load(const AnyTensorMap<Rank>& map, std::byte* destination,
                                         ByteCounter<Group> counter,
                                         const std::type_identity_t<TensorCoordinates<Rank>>& coordinates,
                                         L2Policy policy)
{
    tma_load(map, destination, counter, coordinates.values, policy);
}

/// Loads a box into the tile at this address in every CTA of `receivers`, for the slot's barrier in each of them, or in the
/// first CTA of its pair. Each of the receivers loads as many bytes for all of them: so `fill` announces what a slot gets.
/// Asynchronous; called by one thread.
/// @pre The receivers' slots are free.
template <class T, class BoxShape, Swizzle Pattern, class Tile, class Ring, std::same_as<std::int32_t> Number>
__device__ void tma_load_multicast(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, LoadSlot<Ring>& slot,
                                   const Number (&coordinates)[BoxShape::rank], ReadyCtas receivers)
{
    using Map = TensorMap<T, BoxShape, Pattern>;
    detail::require_matching_tile<Map, Tile>();
    detail::tensor_load_multicast<Ring::group>(tile.raw_swizzled_bytes(), &map, coordinates, slot.bytes().word(),
                                               receivers);
    slot.count(static_cast<std::uint32_t>(Map::box_bytes) * static_cast<std::uint32_t>(__popc(receivers.bits())));
}
/// Loads a box into several CTAs, at any integer coordinates.
template <class T, class BoxShape, Swizzle Pattern, class Tile, class Ring>
__device__ void tma_load_multicast(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, LoadSlot<Ring>& slot,
                                   const std::type_identity_t<TensorCoordinates<BoxShape::rank>>& coordinates,
                                   ReadyCtas receivers)
{
    tma_load_multicast(map, tile, slot, coordinates.values, receivers);
}
/// Loads a box into several CTAs through an `AnyTensorMap`.
template <std::size_t Rank, CtaGroup Group, std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_load_multicast(const AnyTensorMap<Rank>& map, std::byte* destination,
                                                   ByteCounter<Group> counter, const Number (&coordinates)[Rank],
                                                   ReadyCtas receivers)
{
    detail::tensor_load_multicast<Group>(destination, &map, coordinates, counter.word(), receivers);
}
/// Loads a box into several CTAs through an `AnyTensorMap`, at any integer coordinates.
template <std::size_t Rank, CtaGroup Group>
__device__ __forceinline__ void tma_load_multicast(const AnyTensorMap<Rank>& map, std::byte* destination,
                                                   ByteCounter<Group> counter,
                                                   const std::type_identity_t<TensorCoordinates<Rank>>& coordinates,
                                                   ReadyCtas receivers)
{
    tma_load_multicast(map, destination, counter, coordinates.values, receivers);
}

/// Loads a box of 3 dimensions into several CTAs with a policy for L2.
template <std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_load_multicast(const AnyTensorMap<3>& map, std::byte* destination,
                                                   ByteCounter<CtaGroup::one> counter, const Number (&coordinates)[3],
                                                   ReadyCtas receivers, L2Policy policy)
{
    detail::tensor_load_multicast(destination, &map, coordinates, counter.word(), receivers, policy);
}
/// Loads a box of 3 dimensions into several CTAs with a policy for L2, at any integer coordinates.
__device__ __forceinline__ void tma_load_multicast(const AnyTensorMap<3>& map, std::byte* destination,
                                                   ByteCounter<CtaGroup::one> counter,
                                                   const TensorCoordinates<3>& coordinates, ReadyCtas receivers,
                                                   L2Policy policy)
{
    tma_load_multicast(map, destination, counter, coordinates.values, receivers, policy);
}

/// Brings a box of 2 or 3 dimensions into L2 for a later load. Asynchronous; called by one thread.
///
/// A hint: it reads nothing in the sense of the memory model. So it may come before the grid that writes the box has
/// ended (`cudaGridDependencySynchronize`); the later load sees what that grid writes.
///
/// Source: PTX ISA, "cp.async.bulk.prefetch.tensor".
template <std::size_t Rank, std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_prefetch(const AnyTensorMap<Rank>& map, const Number (&coordinates)[Rank],
                                             L2Policy policy)
{
    detail::tensor_prefetch(&map, coordinates, policy);
}
/// Brings a box into L2, at any integer coordinates.
template <std::size_t Rank>
__device__ __forceinline__ void tma_prefetch(const AnyTensorMap<Rank>& map,
                                             const std::type_identity_t<TensorCoordinates<Rank>>& coordinates,
                                             L2Policy policy)
{
    tma_prefetch(map, coordinates.values, policy);
}

/// Stores `tile` to a box; elements outside of the tensor are not stored. Asynchronous, part of the calling thread's
/// open group of stores; called by one thread. The tile must not change before `tma_wait_stores_read`.
///
/// @code{.cpp}
/// staged(row, column) = 1;        // all threads write their elements
/// make_visible_to_tma();
/// __syncthreads();
/// if (warp == 0 && elect_one()) {
///     tma_store(d_map, {64, 32}, staged);
///     tma_commit_stores();
///     tma_wait_stores_read<0>();  // now `staged` may change
/// }
/// @endcode
///
/// @pre The threads that wrote the tile have called `make_visible_to_tma`, and the calling thread has synchronized with
///      them since.
/// @param map          a kernel parameter, `const __grid_constant__`
/// @param coordinates  the first element of the box, innermost dimension first
/// @param tile         what to store
template <class T, class BoxShape, Swizzle Pattern, class Tile, std::same_as<std::int32_t> Number>
__device__ void tma_store(const TensorMap<T, BoxShape, Pattern>& map, const Number (&coordinates)[BoxShape::rank],
                          const Tile& tile)
{
    detail::require_matching_tile<TensorMap<T, BoxShape, Pattern>, Tile>();
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, &map, coordinates,
                                    tile.raw_swizzled_bytes());
}
/// Stores `tile` to a box at any integer coordinates.
template <class T, class BoxShape, Swizzle Pattern, class Tile>
__device__ void tma_store(const TensorMap<T, BoxShape, Pattern>& map,
                          const std::type_identity_t<TensorCoordinates<BoxShape::rank>>& coordinates, const Tile& tile)
{
    tma_store(map, coordinates.values, tile);
}

/// Stores a box through an `AnyTensorMap`.
/// @param source  shared memory with the map's box, as its swizzle says, and aligned for it
template <std::size_t Rank, std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_store(const AnyTensorMap<Rank>& map, const Number (&coordinates)[Rank],
                                          const std::byte* source)
{
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, &map, coordinates, source);
}

/// Orders the calling thread's ordinary accesses to shared memory before later ones of TMA and of the tensor core,
/// which a barrier must order after this call (a proxy fence).
__device__ inline void make_visible_to_tma() { cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); }

/// Closes the calling thread's group of stores.
__device__ inline void tma_commit_stores() { cuda::ptx::cp_async_bulk_commit_group(); }

/// Waits until at most `Newest` of the calling thread's groups of stores still have to read their shared memory.
/// @tparam Newest  0 waits for all
template <int Newest>
__device__ void tma_wait_stores_read()
{
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<Newest>());
}

}  // namespace tessera
