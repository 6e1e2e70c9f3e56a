#pragma once

/// @file
/// @ingroup device_clusters
/// @brief Thread-block clusters by role: who am I, who are my peers, which CTAs does a multicast reach?
///
/// Ranks and masks are types made from roles; none is made from a bare integer.
///
/// A cluster of this library is an array of (`Rows`, `Columns`) CTAs in one grid dimension, possibly in several layers
/// for cluster split-K. The CTAs in one column share a tile of B, those in one row share a tile of A. Rank r is at row
/// r % rows, column r / rows. Both counts are powers of two, so that positions are bits of the rank and cost no
/// division.
///
/// Source: PTX ISA, "Cluster of Cooperative Thread Arrays", "barrier.cluster", "mapa".

#include "tessera/detail/language.hpp"

#include <cuda/ptx>

#include <cstdint>

namespace tessera {

/// A CTA of the calling thread's cluster.
class CtaRank {
public:
    /// Returns the calling thread's own CTA.
    __device__ static CtaRank self() { return CtaRank(cuda::ptx::get_sreg_cluster_ctarank()); }

    /// Returns the rank as a number from 0 to the cluster's size - 1.
    __device__ std::uint32_t value() const { return value_; }

private:
    friend class ClusterGrid;
    __device__ explicit CtaRank(std::uint32_t value) : value_(value) {}

    std::uint32_t value_;
};

/// A set of CTAs of the cluster, for a multicast. Only `ClusterGrid` makes one.
class CtaMask {
public:
    /// Returns the set as bits: bit i is the CTA with rank i, as instructions take it.
    __device__ std::uint16_t bits() const { return bits_; }

private:
    friend class ClusterGrid;
    __device__ explicit CtaMask(std::uint32_t bits) : bits_(static_cast<std::uint16_t>(bits)) {}

    std::uint16_t bits_;
};

/// The calling thread's cluster as an array of CTAs.
///
/// @code{.cpp}
/// const ClusterGrid cluster(2, 1);     // two CTAs in a column: they share B
/// const auto both = pair_published.ready(cluster.my_column());
/// producer.fill([&](auto& slot) {      // each of the two loads a half of B for both
///     tma_load_multicast(b_map, b_halves[slot.index()][cluster.row()], slot, {depth, column}, both);
/// });
/// std::move(producer).drain();         // the peer has read our shared memory: exit
/// @endcode
class ClusterGrid {
public:
    /// Describes the cluster as rows and columns of CTAs, in as many layers as its size needs.
    /// @param rows, columns  CTAs of one layer: powers of two, as is the cluster's size, which their product divides
    __device__ ClusterGrid(std::uint32_t rows, std::uint32_t columns) : rows_(rows), columns_(columns) {}

    // Derived values are computed on use: special registers are cheaper to read than to keep.

    /// Returns the CTAs of one column.
    __device__ std::uint32_t rows() const { return rows_; }
    /// Returns the CTAs of one row.
    __device__ std::uint32_t columns() const { return columns_; }
    /// Returns the number of layers: the CTAs at one row and column, which divide K among them.
    __device__ std::uint32_t layers() const { return size() >> log2(rows_ * columns_); }
    /// Returns the calling CTA's row.
    __device__ std::uint32_t row() const { return rank() & (rows_ - 1); }
    /// Returns the calling CTA's column.
    __device__ std::uint32_t column() const { return (rank() >> log2(rows_)) & (columns_ - 1); }
    /// Returns the calling CTA's layer.
    __device__ std::uint32_t layer() const { return rank() >> log2(rows_ * columns_); }
    /// Returns the first of `count` items that `layer` gets. The items are divided into consecutive, equal parts.
    __device__ std::uint32_t first_of_layer(std::uint32_t count, std::uint32_t layer) const
    {
        return layer * count >> log2(layers());
    }
    /// Returns the calling CTA's rank.
    __device__ static std::uint32_t rank() { return cuda::ptx::get_sreg_cluster_ctarank(); }
    /// Returns the number of CTAs.
    __device__ static std::uint32_t size() { return cuda::ptx::get_sreg_cluster_nctarank(); }

    /// Returns the CTA at a position of the calling CTA's layer.
    __device__ CtaRank at(std::uint32_t row, std::uint32_t column) const
    {
        return CtaRank(row + rows_ * (column + columns_ * layer()));
    }
    /// Returns the CTA at the calling CTA's row and column in another layer.
    __device__ CtaRank in_layer(std::uint32_t layer) const
    {
        return CtaRank(row() + rows_ * (column() + columns_ * layer));
    }

    /// Returns all CTAs of the calling CTA's row in its layer, itself included.
    __device__ CtaMask my_row() const
    {
        std::uint32_t bits = 0;
#pragma unroll 1  // at a kernel's start the code is cold: unrolled, it costs more than the loop
        for (std::uint32_t column = 0; column < columns_; ++column) {
            bits |= 1U << at(row(), column).value();
        }
        return CtaMask(bits);
    }
    /// Returns all CTAs of the calling CTA's column in its layer, itself included.
    __device__ CtaMask my_column() const { return CtaMask(((1U << rows_) - 1U) << at(0, column()).value()); }

    /// Returns the two CTAs of the calling CTA's pair: an even rank and the next one.
    __device__ static CtaMask my_pair() { return CtaMask(3U << (rank() & ~1U)); }
    /// Returns the CTAs of the calling CTA's column that have its place in their pairs, itself included.
    __device__ CtaMask my_place_in_pairs() const { return CtaMask(my_column().bits() & 0x5555U << (rank() & 1U)); }

    /// Waits until all threads of the cluster have called this. What they did before is visible afterwards (release and
    /// acquire at cluster scope). Called by all threads of the cluster, in whole, converged warps.
    __device__ static void synchronize()
    {
        cuda::ptx::barrier_cluster_arrive();
        cuda::ptx::barrier_cluster_wait();
    }

    /// Waits until all threads of the cluster have called this, and makes nothing visible. For a CTA that exits when
    /// its peers have read its shared memory; `synchronize` would also wait for everything that was written anywhere.
    /// Called by all threads of the cluster, in whole, converged warps.
    __device__ static void await_peers()
    {
        cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
        cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
    }

    /// Returns the logarithm of a power of two.
    __device__ static std::uint32_t log2(std::uint32_t power)
    {
        return static_cast<std::uint32_t>(31 - __clz(static_cast<int>(power)));
    }

private:
    std::uint32_t rows_;
    std::uint32_t columns_;
};

/// Reads 16 bytes from a peer's shared memory, at the address that `local` has in the calling CTA.
/// @param local  a multiple of 16 bytes, in shared memory
/// @param peer   the CTA to read from
/// @pre The calling thread has synchronized with the writer since the write, and the peer does not exit before a
///      further synchronization.
__device__ inline float4 load_from_peer(const float4* local, CtaRank peer)
{
    // cuda::ptx has neither mapa nor loads from the cluster's shared memory.
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(local));
    float4 value;
    asm volatile(
        "{\n\t"
        ".reg .b32 remote;\n\t"
        "mapa.shared::cluster.u32 remote, %4, %5;\n\t"
        "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n\t"
        "}"
        : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
        : "r"(address), "r"(peer.value())
        : "memory");
    return value;
}

namespace detail {

/// Returns a 32-bit shared address of the calling CTA as an address in the first CTA of its pair.
///
/// In the shared::cluster window, bit 24 of an address is the lowest bit of the CTA's rank. Cleared, it is the same
/// place in the pair's CTA with the even rank. PTX ISA does not promise this; CUTLASS relies on it, too.
__device__ __forceinline__ std::uint32_t in_first_of_pair(std::uint32_t shared_address)
{
    return shared_address & 0xFEFFFFFFU;
}

}  // namespace detail

}  // namespace tessera
