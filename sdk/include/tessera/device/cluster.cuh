#pragma once

/// Thread-block clusters by role: who am I, who are my peers, and whom does a multicast reach. Ranks and masks are
/// types made from roles; nothing here is made from a naked integer.
///
/// A cluster of this library is an array of (`Rows`, `Columns`) CTAs in one grid dimension; its CTAs in one column
/// share a tile of B, those in one row a tile of A. Rank r is at row r % rows, column r / rows.
///
/// Source: PTX ISA, "Cluster of Cooperative Thread Arrays", "barrier.cluster", "mapa".

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
    /// @param rows  CTAs of one column; must divide the cluster's size
    __device__ explicit ClusterGrid(std::uint32_t rows)
        : rows_(rows),
          columns_(cuda::ptx::get_sreg_cluster_nctarank() / rows),
          row_(cuda::ptx::get_sreg_cluster_ctarank() % rows),
          column_(cuda::ptx::get_sreg_cluster_ctarank() / rows)
    {}

    /// CTAs of one column.
    __device__ std::uint32_t rows() const { return rows_; }
    /// CTAs of one row.
    __device__ std::uint32_t columns() const { return columns_; }
    /// The calling CTA's row.
    __device__ std::uint32_t row() const { return row_; }
    /// The calling CTA's column.
    __device__ std::uint32_t column() const { return column_; }
    /// How many CTAs.
    __device__ std::uint32_t size() const { return rows_ * columns_; }

    /// The CTA at a position.
    __device__ CtaRank at(std::uint32_t row, std::uint32_t column) const { return CtaRank(row + column * rows_); }

    /// All CTAs of the calling CTA's row, itself included.
    __device__ CtaMask my_row() const
    {
        std::uint32_t bits = 0;
        for (std::uint32_t column = 0; column < columns_; ++column) {
            bits |= 1U << (row_ + column * rows_);
        }
        return CtaMask(bits);
    }
    /// All CTAs of the calling CTA's column, itself included.
    __device__ CtaMask my_column() const { return CtaMask(((1U << rows_) - 1U) << (column_ * rows_)); }

    /// Waits until all threads of the cluster have called this. What they did before is visible after it. Executed by
    /// whole warps.
    __device__ static ClusterArrived synchronize()
    {
        cuda::ptx::barrier_cluster_arrive();
        cuda::ptx::barrier_cluster_wait();
        return {};
    }

private:
    std::uint32_t rows_;
    std::uint32_t columns_;
    std::uint32_t row_;
    std::uint32_t column_;
};

}  // namespace tessera
