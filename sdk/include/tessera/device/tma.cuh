#pragma once

/// The tensor memory accelerator in device code: loads, multicast loads, prefetches into L2 and stores through a
/// `TensorMap`, between global memory and a `SharedTile` of the same element, box and swizzle. A pair that does not
/// match does not compile. Through an `AnyTensorMap`, whose box is a fact of run time, they move any shared memory; the
/// number of coordinates and the kind of barrier are still checked.
///
/// Coordinates are in elements, innermost dimension first, as in the map. Elements outside of the tensor arrive as zero
/// and are not stored.
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

/// Where a box begins, in elements, innermost dimension first: `{k, m}`. From whole numbers of any type; one that is
/// too large for the hardware's 32 bits is cut to them, so that an unsigned number that passed below 0 is negative.
template <std::size_t Rank>
class TensorCoordinates {
public:
    /// One for each dimension of the map.
    template <class... Numbers>
    __device__ __forceinline__ TensorCoordinates(Numbers... numbers) : values{static_cast<std::int32_t>(numbers)...}
    {
        static_assert(sizeof...(Numbers) == Rank,
                      "tessera: TMA takes one coordinate for each dimension of the tensor map, innermost first");
        static_assert((std::is_integral_v<Numbers> && ...), "tessera: TMA's coordinates are whole numbers of elements");
    }
    /// The same, from an array.
    __device__ __forceinline__ TensorCoordinates(const std::int32_t (&numbers)[Rank])
    {
#pragma unroll
        for (std::size_t i = 0; i < Rank; ++i) {
            values[i] = numbers[i];
        }
    }

    std::int32_t values[Rank];  ///< as the instructions take them
};

/// Shared memory that one TMA operation fills or reads, and its elements where the swizzle puts them: `tile(row,
/// column)` is the element in that row and column of the box, outermost index first as in a matrix (coordinates of TMA
/// and the extents of a Box are innermost first). An index outside of the box traps; constant indices cost nothing.
///
/// Aligned so that the swizzle pattern begins at its first byte, which the compiler grants static shared memory, and
/// whoever carves up dynamic shared memory owes. Shared by the threads of a CTA, who order their accesses by barriers.
template <class T, class BoxShape, Swizzle Pattern>
class alignas(TensorMap<T, BoxShape, Pattern>::shared_alignment) SharedTile {
public:
    /// The map that fits.
    using map_type = TensorMap<T, BoxShape, Pattern>;
    /// From one row of the box (its innermost dimension) to the next. A row that is narrower than the swizzle's span
    /// begins where a span does; TMA leaves the rest of the span as it was (an H200 does).
    static constexpr std::uint32_t row_pitch_bytes =
        Pattern == Swizzle::none ? BoxShape::extents[0] * sizeof(T) : swizzle_span_bytes(Pattern);
    /// The whole tile. More than the `map_type::box_bytes` that a barrier expects if rows are narrower than the span.
    static constexpr std::size_t size_bytes = BoxShape::elements / BoxShape::extents[0] * row_pitch_bytes;

    /// The element at these indices, outermost first.
    template <std::integral... Indices>
    __device__ __forceinline__ T& operator()(Indices... indices)
    {
        return *reinterpret_cast<T*>(bytes_ + checked_offset<sizeof(T)>(indices...));
    }
    /// The same, for reading.
    template <std::integral... Indices>
    __device__ __forceinline__ const T& operator()(Indices... indices) const
    {
        return *reinterpret_cast<const T*>(bytes_ + checked_offset<sizeof(T)>(indices...));
    }

    /// Several neighbouring elements at once, e.g. `tile.template vector<float4>(row, column)`: at most 16 bytes, which
    /// no swizzle tears apart. The innermost index must be a multiple of their number, else it traps.
    template <class Vector, std::integral... Indices>
    __device__ __forceinline__ Vector& vector(Indices... indices)
    {
        return *reinterpret_cast<Vector*>(bytes_ + checked_offset<sizeof(Vector)>(indices...));
    }
    /// The same, for reading.
    template <class Vector, std::integral... Indices>
    __device__ __forceinline__ const Vector& vector(Indices... indices) const
    {
        return *reinterpret_cast<const Vector*>(bytes_ + checked_offset<sizeof(Vector)>(indices...));
    }

    /// Where the element at these indices lies, in bytes from the beginning. Unchecked.
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

    /// The memory as it is, for instructions that know the swizzle (descriptors of the tensor core, ldmatrix), and for
    /// code that computes addresses itself. Whoever reads or writes elements here has to swizzle.
    __device__ std::byte* raw_swizzled_bytes() { return bytes_; }
    /// The same, for reading.
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

template <class Ring>
__device__ constexpr void require_tma_ring()
{
    static_assert(std::is_same_v<typename Ring::Full, FilledByTma>,
                  "tessera: a TMA load fills a slot of a ring whose full barrier is FilledByTma");
}

__device__ __forceinline__ void prefetch_tensor_map(const void* map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");  // not in cuda::ptx
}

__device__ __forceinline__ std::uint32_t shared_address(const void* data)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(data));
}

// cuda::ptx of CUDA 13.0 has loads of a pair, and multicast, for sm_100a only, not for the family: hence the assembly.

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

template <std::size_t Rank>
__device__ __forceinline__ void tensor_load_multicast(void* destination, const void* map,
                                                      const std::int32_t (&at)[Rank], std::uint64_t* barrier,
                                                      CtaMask receivers)
{
    if constexpr (Rank == 2) {
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

// Nor has it any with a policy for L2, and no prefetch of tensors.

template <std::size_t Rank>
__device__ constexpr void require_policy_rank()
{
    static_assert(Rank == 2 || Rank == 3, "tessera: TMA with a policy for L2 is of 2 or 3 dimensions");
}

template <std::size_t Rank>
__device__ __forceinline__ void tensor_load(void* destination, const void* map, const std::int32_t (&at)[Rank],
                                            std::uint64_t* barrier, L2Policy policy)
{
    require_policy_rank<Rank>();
    if constexpr (Rank == 2) {
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
                                                      std::uint64_t* barrier, CtaMask receivers, L2Policy policy)
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

/// Fetches the descriptor into its cache ahead of the first use. Executed by one thread.
template <class T, class BoxShape, Swizzle Pattern>
__device__ void prefetch(const TensorMap<T, BoxShape, Pattern>& map)
{
    detail::prefetch_tensor_map(&map);
}
/// The same.
template <std::size_t Rank>
__device__ void prefetch(const AnyTensorMap<Rank>& map)
{
    detail::prefetch_tensor_map(&map);
}

// Each operation is there twice: with an array of 32-bit coordinates, and with whatever becomes one.

/// Loads a box into `tile` of this CTA and counts its bytes at the slot's barrier; in a pair at that barrier of the
/// pair's first CTA, whichever of the two loads. Asynchronous; executed by one thread.
template <CtaGroup Group = CtaGroup::one, class T, class BoxShape, Swizzle Pattern, class Tile, class Ring,
          std::same_as<std::int32_t> Number>
__device__ void tma_load(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, const FillSlot<Ring>& slot,
                         const Number (&coordinates)[BoxShape::rank])
{
    detail::require_matching_tile<TensorMap<T, BoxShape, Pattern>, Tile>();
    detail::require_tma_ring<Ring>();
    detail::tensor_load<Group>(tile.raw_swizzled_bytes(), &map, coordinates, slot.full().word());
}
/// The same.
template <CtaGroup Group = CtaGroup::one, class T, class BoxShape, Swizzle Pattern, class Tile, class Ring>
__device__ void tma_load(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, const FillSlot<Ring>& slot,
                         const std::type_identity_t<TensorCoordinates<BoxShape::rank>>& coordinates)
{
    tma_load<Group>(map, tile, slot, coordinates.values);
}
/// The same with a barrier that is no ring's. @param destination  room for the map's box, aligned as its swizzle wants
template <CtaGroup Group = CtaGroup::one, std::size_t Rank, std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_load(const AnyTensorMap<Rank>& map, std::byte* destination,
                                         const Barrier<FilledByTma, Ready>& barrier, const Number (&coordinates)[Rank])
{
    detail::tensor_load<Group>(destination, &map, coordinates, barrier.word());
}
/// The same.
template <CtaGroup Group = CtaGroup::one, std::size_t Rank>
__device__ __forceinline__ void tma_load(const AnyTensorMap<Rank>& map, std::byte* destination,
                                         const Barrier<FilledByTma, Ready>& barrier,
                                         const std::type_identity_t<TensorCoordinates<Rank>>& coordinates)
{
    tma_load<Group>(map, destination, barrier, coordinates.values);
}

/// The same, with what L2 is to do with the lines; of 2 or 3 dimensions.
template <std::size_t Rank, std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_load(const AnyTensorMap<Rank>& map, std::byte* destination,
                                         const Barrier<FilledByTma, Ready>& barrier, const Number (&coordinates)[Rank],
                                         L2Policy policy)
{
    detail::tensor_load(destination, &map, coordinates, barrier.word(), policy);
}
/// The same.
template <std::size_t Rank>
__device__ __forceinline__ void tma_load(const AnyTensorMap<Rank>& map, std::byte* destination,
                                         const Barrier<FilledByTma, Ready>& barrier,
                                         const std::type_identity_t<TensorCoordinates<Rank>>& coordinates,
                                         L2Policy policy)
{
    tma_load(map, destination, barrier, coordinates.values, policy);
}

/// Loads into the tile at this address in every CTA of `receivers`, each of which counts the bytes at its own barrier.
template <class T, class BoxShape, Swizzle Pattern, class Tile, class Ring, std::same_as<std::int32_t> Number>
__device__ void tma_load_multicast(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, const FillSlot<Ring>& slot,
                                   const Number (&coordinates)[BoxShape::rank], CtaMask receivers)
{
    detail::require_matching_tile<TensorMap<T, BoxShape, Pattern>, Tile>();
    detail::require_tma_ring<Ring>();
    detail::tensor_load_multicast(tile.raw_swizzled_bytes(), &map, coordinates, slot.full().word(), receivers);
}
/// The same.
template <class T, class BoxShape, Swizzle Pattern, class Tile, class Ring>
__device__ void tma_load_multicast(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, const FillSlot<Ring>& slot,
                                   const std::type_identity_t<TensorCoordinates<BoxShape::rank>>& coordinates,
                                   CtaMask receivers)
{
    tma_load_multicast(map, tile, slot, coordinates.values, receivers);
}
/// The same with any map.
template <std::size_t Rank, std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_load_multicast(const AnyTensorMap<Rank>& map, std::byte* destination,
                                                   const Barrier<FilledByTma, Ready>& barrier,
                                                   const Number (&coordinates)[Rank], CtaMask receivers)
{
    detail::tensor_load_multicast(destination, &map, coordinates, barrier.word(), receivers);
}
/// The same.
template <std::size_t Rank>
__device__ __forceinline__ void tma_load_multicast(const AnyTensorMap<Rank>& map, std::byte* destination,
                                                   const Barrier<FilledByTma, Ready>& barrier,
                                                   const std::type_identity_t<TensorCoordinates<Rank>>& coordinates,
                                                   CtaMask receivers)
{
    tma_load_multicast(map, destination, barrier, coordinates.values, receivers);
}

/// The same, with what L2 is to do with the lines; of 3 dimensions.
template <std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_load_multicast(const AnyTensorMap<3>& map, std::byte* destination,
                                                   const Barrier<FilledByTma, Ready>& barrier,
                                                   const Number (&coordinates)[3], CtaMask receivers, L2Policy policy)
{
    detail::tensor_load_multicast(destination, &map, coordinates, barrier.word(), receivers, policy);
}
/// The same.
__device__ __forceinline__ void tma_load_multicast(const AnyTensorMap<3>& map, std::byte* destination,
                                                   const Barrier<FilledByTma, Ready>& barrier,
                                                   const TensorCoordinates<3>& coordinates, CtaMask receivers,
                                                   L2Policy policy)
{
    tma_load_multicast(map, destination, barrier, coordinates.values, receivers, policy);
}

/// Brings a box into L2, for a load that is to come. A hint: nothing is read in the sense of the memory model, so it
/// may come before the grid that writes the box has ended (`cudaGridDependencySynchronize`); what that grid writes is
/// what the load finds. Asynchronous; executed by one thread. Of 2 or 3 dimensions.
///
/// Source: PTX ISA, "cp.async.bulk.prefetch.tensor".
template <std::size_t Rank, std::same_as<std::int32_t> Number>
__device__ __forceinline__ void tma_prefetch(const AnyTensorMap<Rank>& map, const Number (&coordinates)[Rank],
                                             L2Policy policy)
{
    detail::tensor_prefetch(&map, coordinates, policy);
}
/// The same.
template <std::size_t Rank>
__device__ __forceinline__ void tma_prefetch(const AnyTensorMap<Rank>& map,
                                             const std::type_identity_t<TensorCoordinates<Rank>>& coordinates,
                                             L2Policy policy)
{
    tma_prefetch(map, coordinates.values, policy);
}

/// Stores `tile` to a box. Its writers must have executed `make_visible_to_tma` and been waited for. Asynchronous, part
/// of the thread's open group; executed by one thread.
template <class T, class BoxShape, Swizzle Pattern, class Tile, std::same_as<std::int32_t> Number>
__device__ void tma_store(const TensorMap<T, BoxShape, Pattern>& map, const Number (&coordinates)[BoxShape::rank],
                          const Tile& tile)
{
    detail::require_matching_tile<TensorMap<T, BoxShape, Pattern>, Tile>();
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, &map, coordinates,
                                    tile.raw_swizzled_bytes());
}
/// The same.
template <class T, class BoxShape, Swizzle Pattern, class Tile>
__device__ void tma_store(const TensorMap<T, BoxShape, Pattern>& map,
                          const std::type_identity_t<TensorCoordinates<BoxShape::rank>>& coordinates, const Tile& tile)
{
    tma_store(map, coordinates.values, tile);
}

/// Orders the calling thread's ordinary accesses to shared memory before later ones of TMA and of the tensor core, once
/// those are ordered after it by a barrier.
__device__ inline void make_visible_to_tma() { cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); }

/// Closes the thread's group of stores.
__device__ inline void tma_commit_stores() { cuda::ptx::cp_async_bulk_commit_group(); }

/// Waits until at most `Newest` of the thread's groups of stores still have to read their shared memory.
template <int Newest>
__device__ void tma_wait_stores_read()
{
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<Newest>());
}

}  // namespace tessera
