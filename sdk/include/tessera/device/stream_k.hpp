#pragma once

/// @file
/// @ingroup device_clusters
/// @brief `StreamKSplit`: the steps along K of all work tiles, divided evenly over clusters.
///
/// Source: Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU",
/// PPoPP 2023.

#include <cstdint>

#include "tessera/detail/divisor.hpp"
#include "tessera/detail/host_device.hpp"

namespace tessera {

/// The steps along K of all work tiles, laid end to end and cut into equal parts, one per cluster. The clusters that have
/// parts of a tile sum it up together. With a multiple of as many clusters as tiles, that is split-K.
///
/// Make it on the host, and pass it to the kernel by value; `StreamKWorkQueue` hands out the parts.
class StreamKSplit {
public:
    StreamKSplit() = default;
    /// Divides the work evenly.
    /// @param tiles     work tiles
    /// @param steps     of each tile along K, at least 1; tiles * steps is less than 2^31
    /// @param clusters  of the grid; at most tiles * steps, so that each has a step
    TESSERA_DETAIL_HOST_DEVICE StreamKSplit(std::uint32_t tiles, std::uint32_t steps, std::uint32_t clusters)
        : steps_(steps),
          clusters_(clusters),
          per_cluster_(tiles * steps / clusters),
          left_(tiles * steps % clusters),
          clusters_per_step_(static_cast<float>(clusters) / static_cast<float>(tiles * steps))
    {}

    /// Steps of a tile.
    TESSERA_DETAIL_HOST_DEVICE std::uint32_t steps() const { return steps_.value(); }
    /// The tile that has a step.
    TESSERA_DETAIL_HOST_DEVICE std::uint32_t tile_of(std::uint32_t step) const { return steps_.quotient(step); }
    /// The first step of a cluster; of the number of clusters, the number of all steps.
    TESSERA_DETAIL_HOST_DEVICE std::uint32_t begin_of(std::uint32_t cluster) const
    {
        return cluster * per_cluster_ + clusters_.quotient(cluster * left_);
    }
    /// The cluster that has a step.
    TESSERA_DETAIL_HOST_DEVICE std::uint32_t owner_of(std::uint32_t step) const
    {
        // There are so few clusters that the estimate is off by at most one.
        auto cluster = static_cast<std::uint32_t>(static_cast<float>(step) * clusters_per_step_);
        cluster -= cluster > 0 && begin_of(cluster) > step ? 1 : 0;
        return begin_of(cluster + 1) <= step ? cluster + 1 : cluster;
    }

private:
    detail::Divisor steps_;
    detail::Divisor clusters_;
    std::uint32_t per_cluster_;  // cluster c begins at floor(c * steps of all tiles / clusters): quotient
    std::uint32_t left_;         // and remainder
    float clusters_per_step_;    // for the inverse
};

}  // namespace tessera
