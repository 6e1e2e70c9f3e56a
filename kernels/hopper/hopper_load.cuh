#pragma once

/// The load role: keeps the ring of stages full, by TMA. hopper_copy.cuh has the way of operands that TMA cannot
/// address.

#include <cstdint>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_kernels.hpp"
#include "hopper_shared.cuh"
#include "hopper_work.cuh"

namespace tessera::kernels {

/// One thread loads by TMA. Of a tile that CTAs of the cluster share, each loads its part and sends it to all of them.
template <class Config, class Element>
class HopperTmaLoader {
    static constexpr int tile_m = Config::config.tile_m;
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int row_bytes = HopperConfig::hopper_row_bytes;
    static constexpr int block_k = row_bytes / static_cast<int>(sizeof(Element));

public:
    /// One operand, and the rows of its tile that this CTA loads. Along K they come in one box, as many as they are;
    /// the other order has a box of (64 of K, 64) for each 64 rows.
    template <int Rows>
    class Side {
    public:
        __device__ Side(const AnyTensorMap<3>& map, bool k_major, bool batched, std::uint32_t sharers,
                        std::uint32_t index, CtaMask receivers)
            : map_(map),
              k_major_(k_major),
              batched_(batched),
              multicast_(sharers > 1),
              first_(static_cast<int>(index * Rows >> ClusterGrid::log2(sharers))),
              end_(static_cast<int>((index + 1) * Rows >> ClusterGrid::log2(sharers))),
              receivers_(receivers)
        {}

        template <class Slot>
        __device__ __forceinline__ void load(std::byte* stage, const Slot& slot, int row, int k, int batch) const
        {
            const int place = batched_ ? batch : 0;
            if (k_major_) {
                load_box(stage, first_, slot, {k, row + first_, place});
                return;
            }
            if constexpr (Rows % mn_major_rows == 0) {
#pragma unroll 1
                for (int line = first_; line < end_; line += mn_major_rows) {
                    load_box(stage, line, slot, {row + line, k, place});
                }
            }
        }

    private:
        static constexpr int mn_major_rows = hopper_mn_major_lines;

        template <class Slot>
        __device__ __forceinline__ void load_box(std::byte* stage, int line, const Slot& slot,
                                                 const std::int32_t (&coordinates)[3]) const
        {
            if (multicast_) {
                tma_load_multicast(map_, stage + line * row_bytes, slot.full(), coordinates, receivers_);
            } else {
                tma_load(map_, stage + line * row_bytes, slot.full(), coordinates);
            }
        }

        const AnyTensorMap<3>& map_;
        bool k_major_;
        bool batched_;
        bool multicast_;
        int first_;
        int end_;
        CtaMask receivers_;
    };

    /// Fetches the descriptors, which the kernel before this one has no part in.
    __device__ static void prefetch_maps(const HopperArguments& arguments)
    {
        prefetch(arguments.a);
        prefetch(arguments.b);
        prefetch_map_of_d(arguments);
    }

    __device__ static void prefetch_map_of_d(const HopperArguments& arguments)
    {
        if (arguments.stores_by_tma) {
            prefetch(arguments.d);
        }
    }

    __device__ __forceinline__ static void run(const HopperArguments& arguments, HopperShared<Config>& shared,
                                               HopperQueue queue, const ClusterGrid& cluster,
                                               BarriersPublished published)
    {
        const Side<tile_m> a(arguments.a, arguments.a_k_major, arguments.a_batched, cluster.columns(), cluster.column(),
                             cluster.my_row());
        const Side<tile_n> b(arguments.b, arguments.b_k_major, arguments.b_batched, cluster.rows(), cluster.row(),
                             cluster.my_column());
        RingProducer<HopperRing<Config>> ring(shared.ring, published);
        HopperUnit unit{};
        while (queue.next(unit)) {
            const TileIndex place = queue.place(unit.tile);
            const int row = static_cast<int>((place.m * cluster.rows() + cluster.row()) * tile_m);
            const int column = static_cast<int>((place.n * cluster.columns() + cluster.column()) * tile_n);
            const int batch = static_cast<int>(place.batch);
            int k = static_cast<int>(arguments.work.skip_k ? 1 : unit.k_begin) * block_k;
            for (std::uint32_t stage = 0; stage < unit.k_count; ++stage, k += block_k) {
                auto slot = ring.acquire(Config::config.stage_bytes());
                a.load(shared.stages[slot.index()].a, slot, row, k, batch);
                b.load(shared.stages[slot.index()].b, slot, column, k, batch);
                std::move(slot).publish();
            }
        }
        std::move(ring).drain();
    }
};

}  // namespace tessera::kernels
