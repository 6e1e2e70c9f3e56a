#pragma once

/// Thread-block clusters by role: who am I, who are my peers, and whom does a multicast reach. Ranks and masks are
/// types made from roles; nothing here is made from a naked integer.
///
/// A cluster of this library is an array of (`Rows`, `Columns`) CTAs in one grid dimension; its CTAs in one column
/// share a tile of B, those in one row a tile of A. Rank r is at row r % rows, column r / rows. Both counts are powers
/// of two: positions are bits of the rank, and cost no division.
///
/// Source: PTX ISA, "Cluster of Cooperative Thread Arrays", "barrier.cluster", "mapa".

#include "tessera/detail/language.hpp"

#include <cuda/ptx>

#include <cstdint>

namespace tessera {

/// A CTA of the calling thread's cluster.
class CtaRank {
public:
    /// The calling thread's own CTA.
    __device__ static CtaRank self() { return CtaRank(cuda::ptx::get_sreg_cluster_ctarank()); }

    /// As a number from 0 to the cluster's size - 1.
    __device__ std::uint32_t value() const { return value_; }

private:
    friend class ClusterGrid;
    __device__ explicit CtaRank(std::uint32_t value) : value_(value) {}

    std::uint32_t value_;
};

/// A set of CTAs of the cluster: whom a multicast reaches. Made by `ClusterGrid` only.
class CtaMask {
public:
    /// Bit i is the CTA with rank i: the form that instructions take.
    __device__ std::uint16_t bits() const { return bits_; }

private:
    friend class ClusterGrid;
    __device__ explicit CtaMask(std::uint32_t bits) : bits_(static_cast<std::uint16_t>(bits)) {}

    std::uint16_t bits_;
};

/// Proof that every thread of the cluster has arrived at a point of the program after the shared memory of each CTA
/// came into use: what touches a peer's memory takes one.
class ClusterArrived {
private:
    friend class ClusterGrid;
    __device__ ClusterArrived() {}
};

/// The calling thread's cluster as an array of CTAs.
class ClusterGrid {
public:
    /// @param rows, columns  CTAs of one layer: powers of two, as is the cluster's size, which their product divides
    __device__ ClusterGrid(std::uint32_t rows, std::uint32_t columns) : rows_(rows), columns_(columns) {}

    // Derived values are computed where they are asked for: special registers are cheaper to read than to keep.

    /// CTAs of one column.
    __device__ std::uint32_t rows() const { return rows_; }
    /// CTAs of one row.
    __device__ std::uint32_t columns() const { return columns_; }
    /// CTAs at one position of the other two dimensions.
    __device__ std::uint32_t layers() const { return size() >> log2(rows_ * columns_); }
    /// The calling CTA's row.
    __device__ std::uint32_t row() const { return rank() & (rows_ - 1); }
    /// The calling CTA's column.
    __device__ std::uint32_t column() const { return (rank() >> log2(rows_)) & (columns_ - 1); }
    /// The calling CTA's layer.
    __device__ std::uint32_t layer() const { return rank() >> log2(rows_ * columns_); }
    /// The first that `layer` gets of `count` things which are dealt to the layers one behind the other, evenly.
    __device__ std::uint32_t first_of_layer(std::uint32_t count, std::uint32_t layer) const
    {
        return layer * count >> log2(layers());
    }
    /// The calling CTA's rank.
    __device__ static std::uint32_t rank() { return cuda::ptx::get_sreg_cluster_ctarank(); }
    /// How many CTAs.
    __device__ static std::uint32_t size() { return cuda::ptx::get_sreg_cluster_nctarank(); }

    /// The CTA at a position of the calling CTA's layer.
    __device__ CtaRank at(std::uint32_t row, std::uint32_t column) const
    {
        return CtaRank(row + rows_ * (column + columns_ * layer()));
    }
    /// The CTA at the calling CTA's row and column in another layer.
    __device__ CtaRank in_layer(std::uint32_t layer) const
    {
        return CtaRank(row() + rows_ * (column() + columns_ * layer));
    }

    /// All CTAs of the calling CTA's row in its layer, itself included.
    __device__ CtaMask my_row() const
    {
        std::uint32_t bits = 0;
#pragma unroll 1  // code that is cold where a kernel starts costs more than the loop
        for (std::uint32_t column = 0; column < columns_; ++column) {
            bits |= 1U << at(row(), column).value();
        }
        return CtaMask(bits);
    }
    /// All CTAs of the calling CTA's column in its layer, itself included.
    __device__ CtaMask my_column() const { return CtaMask(((1U << rows_) - 1U) << at(0, column()).value()); }

    /// Waits until all threads of the cluster have called this. What they did before is visible after it. Executed by
    /// whole warps.
    __device__ static ClusterArrived synchronize()
    {
        cuda::ptx::barrier_cluster_arrive();
        cuda::ptx::barrier_cluster_wait();
        return {};
    }

    /// Waits until all threads of the cluster have called this, and makes nothing visible: for a CTA that exits when
    /// its peers have read its shared memory. `synchronize` would wait for all that was written anywhere, too. Executed
    /// by whole warps.
    __device__ static void await_peers()
    {
        cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
        cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
    }

    /// Of a power of two.
    __device__ static std::uint32_t log2(std::uint32_t power)
    {
        return static_cast<std::uint32_t>(31 - __clz(static_cast<int>(power)));
    }

private:
    std::uint32_t rows_;
    std::uint32_t columns_;
};

/// Reads 16 bytes, aligned to 16, at the address that `local` has in the calling CTA, from a peer's shared memory.
/// Whoever wrote them has been synchronized with, and does not exit before a further synchronization.
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

/// A 32-bit shared address of the calling CTA as an address in the first CTA of its pair.
///
/// In the shared::cluster window, bit 24 of an address is the lowest bit of the CTA's rank (PTX ISA does not promise
/// it; CUTLASS relies on it, too): cleared, it is the same place in the pair's CTA with the even rank.
__device__ __forceinline__ std::uint32_t in_first_of_pair(std::uint32_t shared_address)
{
    return shared_address & 0xFEFFFFFFU;
}

}  // namespace detail

}  // namespace tessera
