#pragma once

/// The tile scheduler of the Blackwell kernel: gives each cluster its sequence of work tiles or, with stream-K, parts of
/// them, the same in every role.

#include <cstdint>
#include <type_traits>

#include "blackwell_arguments.hpp"
#include "blackwell_storage.cuh"
#include "tessera/device/clc.cuh"

namespace tessera::kernels {

/// The calling warp's own view of its cluster's work.
template <class Config>
class BlackwellQueue {
    static constexpr BlackwellConfig config = Config::config;
    using Tiles =
        std::conditional_t<Config::config.scheduling == Scheduling::one_tile, SingleWorkQueue,
                           std::conditional_t<Config::config.scheduling == Scheduling::static_persistent,
                                              StaticWorkQueue, ClcWorkQueue<Config::config.cluster, clc_slots>>>;

public:
    __device__ BlackwellQueue(const BlackwellArguments& arguments, BlackwellStorage<Config>& storage,
                              BlackwellPublished<Config> published)
        : arguments_(arguments), tiles_(make_tiles(arguments, storage, published)), parts_(arguments.split)
    {}

    __device__ WorkPart first() { return divides() ? parts_.first() : whole(tiles_.first()); }
    __device__ WorkPart next_of_warp() { return divides() ? parts_.next_of_warp() : whole(tiles_.next_of_warp()); }

private:
    __device__ bool divides() const { return config.shares_tiles() && arguments_.stream_k; }
    __device__ WorkPart whole(WorkItem&& item) const
    {
        return {.item = std::move(item), .first_step = 0, .steps = arguments_.k_steps};
    }
    __device__ static Tiles make_tiles(const BlackwellArguments& arguments, BlackwellStorage<Config>& storage,
                                       BlackwellPublished<Config> published)
    {
        if constexpr (Config::config.scheduling == Scheduling::one_tile) {
            return {};
        } else if constexpr (Config::config.scheduling == Scheduling::static_persistent) {
            return Tiles(arguments.units);
        } else {
            return Tiles(storage.clc, published);
        }
    }

    const BlackwellArguments& arguments_;
    Tiles tiles_;
    StreamKWorkQueue parts_;
};

}  // namespace tessera::kernels
