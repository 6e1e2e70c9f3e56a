#pragma once

/// The tensor memory accelerator in device code: loads, multicast loads and stores through a `TensorMap`, between
/// global memory and a `SharedTile` of the same element, box and swizzle. A pair that does not match does not compile.
///
/// Coordinates are in elements, innermost dimension first, as in the map. Elements outside of the tensor arrive as zero
/// and are not stored.
///
/// Source: PTX ISA, "cp.async.bulk.tensor", "Tensors".

#include <cuda/ptx>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/device/barrier.cuh"
#include "tessera/device/pipeline.cuh"
#include "tessera/tensor_map.hpp"

namespace tessera {

/// Shared memory that one TMA operation fills or reads. As large as the box; aligned so that the swizzle pattern begins
/// at its first byte, which the compiler grants static shared memory, and whoever carves up dynamic shared memory owes.
template <class T, class BoxShape, Swizzle Pattern>
struct alignas(TensorMap<T, BoxShape, Pattern>::shared_alignment) SharedTile {
    /// The map that fits.
    using map_type = TensorMap<T, BoxShape, Pattern>;

    std::byte bytes[map_type::box_bytes];  ///< in the order of `Pattern`
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

}  // namespace detail

/// Fetches the descriptor into its cache ahead of the first use. Executed by one thread.
template <class T, class BoxShape, Swizzle Pattern>
__device__ void prefetch(const TensorMap<T, BoxShape, Pattern>& map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");  // not in cuda::ptx
}

/// Loads a box into `tile` of this CTA and counts its bytes at the slot's barrier. Asynchronous; executed by one
/// thread.
template <class T, class BoxShape, Swizzle Pattern, class Tile, class Ring>
__device__ void tma_load(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, const FillSlot<Ring>& slot,
                         const std::int32_t (&coordinates)[BoxShape::rank])
{
    detail::require_matching_tile<TensorMap<T, BoxShape, Pattern>, Tile>();
    static_assert(std::is_same_v<typename Ring::Full, FilledByTma>,
                  "tessera: a TMA load fills a slot of a ring whose full barrier is FilledByTma");
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, tile.bytes, &map, coordinates,
                                    slot.full().word());
}

/// The same into the tile at this address in every CTA of `receivers`, each of which counts the bytes at its own
/// barrier.
template <class T, class BoxShape, Swizzle Pattern, class Tile, class Ring>
__device__ void tma_load_multicast(const TensorMap<T, BoxShape, Pattern>& map, Tile& tile, const FillSlot<Ring>& slot,
                                   const std::int32_t (&coordinates)[BoxShape::rank], CtaMask receivers)
{
    detail::require_matching_tile<TensorMap<T, BoxShape, Pattern>, Tile>();
    static_assert(std::is_same_v<typename Ring::Full, FilledByTma>,
                  "tessera: a TMA load fills a slot of a ring whose full barrier is FilledByTma");
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, tile.bytes, &map, coordinates,
                                    slot.full().word(), receivers.bits());
}

/// Stores `tile` to a box. Its writers must have executed `make_visible_to_tma` and been waited for. Asynchronous, part
/// of the thread's open group; executed by one thread.
template <class T, class BoxShape, Swizzle Pattern, class Tile>
__device__ void tma_store(const TensorMap<T, BoxShape, Pattern>& map, const std::int32_t (&coordinates)[BoxShape::rank],
                          const Tile& tile)
{
    detail::require_matching_tile<TensorMap<T, BoxShape, Pattern>, Tile>();
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, &map, coordinates, tile.bytes);
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
