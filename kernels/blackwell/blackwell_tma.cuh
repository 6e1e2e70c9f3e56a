#pragma once

/// TMA through maps whose element, box and swizzle are run-time facts: the host encodes them from the same `TileLayout`
/// that the descriptors come from. Everything else uses the typed loads of tessera/device/tma.cuh.

#include <cstdint>

#include "tessera/device/barrier.cuh"
#include "tessera/device/cta_group.hpp"
#include "tessera/device/output_partition.cuh"
#include "tessera/tensor_map.hpp"

namespace tessera::kernels::tma {

using Map = tessera::detail::TensorMapBits;

/// Where a box begins: contiguous dimension, other dimension, batch.
struct BoxOrigin {
    std::int32_t inner;
    std::int32_t outer;
    std::int32_t batch;
};

__device__ __forceinline__ std::uint32_t shared_address(const void* data)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(data));
}

__device__ __forceinline__ void prefetch(const Map& map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Bytes are counted at `barrier`; in a pair at that barrier of the pair's first CTA, whichever of the two loads.
template <CtaGroup Group>
__device__ __forceinline__ void load(std::uint32_t destination, const Map& map, const BoxOrigin& origin,
                                     const Barrier<FilledByTma, Ready>& barrier)
{
    if constexpr (Group == CtaGroup::one) {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
            "%4}], "
            "[%5];" ::"r"(destination),
            "l"(&map), "r"(origin.inner), "r"(origin.outer), "r"(origin.batch), "r"(shared_address(barrier.word()))
            : "memory");
    } else {
        // In the shared::cluster window, bit 24 of an address is the lowest bit of the CTA's rank: cleared, it is the
        // same place in the pair's first CTA.
        constexpr std::uint32_t first_of_pair = 0xFEFFFFFFU;
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], "
            "[%1, {%2, %3, %4}], [%5];" ::"r"(destination),
            "l"(&map), "r"(origin.inner), "r"(origin.outer), "r"(origin.batch),
            "r"(shared_address(barrier.word()) & first_of_pair)
            : "memory");
    }
}

/// The same into every CTA of `receivers`, each of which counts the bytes at its own barrier.
__device__ __forceinline__ void load_multicast(std::uint32_t destination, const Map& map, const BoxOrigin& origin,
                                               const Barrier<FilledByTma, Ready>& barrier, CtaMask receivers)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3, %4}], [%5], %6;" ::"r"(destination),
        "l"(&map), "r"(origin.inner), "r"(origin.outer), "r"(origin.batch), "r"(shared_address(barrier.word())),
        "h"(receivers.bits())
        : "memory");
}

/// Loads a part of C that is where an output tile is.
template <std::uint32_t Rows, std::uint32_t Columns>
__device__ __forceinline__ void load(void* destination, const Map& map, const OutputTile<Rows, Columns>& tile,
                                     bool batched, const Barrier<FilledByTma, Ready>& barrier)
{
    load<CtaGroup::one>(shared_address(destination), map,
                        {static_cast<std::int32_t>(tile.first_column()), static_cast<std::int32_t>(tile.first_row()),
                         batched ? static_cast<std::int32_t>(tile.batch()) : 0},
                        barrier);
}

/// Stores to an output tile.
template <std::uint32_t Rows, std::uint32_t Columns>
__device__ __forceinline__ void store(const Map& map, const OutputTile<Rows, Columns>& tile, bool batched,
                                      const void* source)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
                 "r"(tile.first_column()), "r"(tile.first_row()), "r"(batched ? tile.batch() : 0U),
                 "r"(shared_address(source))
                 : "memory");
}

}  // namespace tessera::kernels::tma
