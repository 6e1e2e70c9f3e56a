#pragma once

/// The load role: keeps the ring of stages full, by TMA. hopper_copy.cuh has the way of operands that TMA cannot
/// address.

#include <cstdint>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_shared.cuh"
#include "hopper_work.cuh"

namespace tessera::kernels {

/// One thread loads by TMA, in boxes of 128 bytes by up to 64 rows. Of a tile that CTAs of the cluster share, each
/// loads its part and sends it to all of them.
template <class Config, class Element>
class HopperTmaLoader {
    static constexpr int tile_m = Config::config.tile_m;
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int block_k = HopperConfig::hopper_row_bytes / static_cast<int>(sizeof(Element));

public:
    /// One operand: its blocks of rows, and which of them this CTA loads.
    template <int Rows>
    struct Side {
        static constexpr int box_rows = Rows < 64 ? Rows : 64;
        using BoxType = Box<block_k, box_rows, 1>;
        using Map = TensorMap<Element, BoxType, Swizzle::b128>;
        using Tile = SharedTile<Element, BoxType, Swizzle::b128>;

        const Map& map;
        bool k_major;
        bool batched;
        bool multicast;
        int first;
        int end;
        CtaMask receivers;

        __device__ Side(const tessera::detail::TensorMapBits& bits, bool k_contiguous, bool has_batches,
                        std::uint32_t sharers, std::uint32_t index, CtaMask mask)
            : map(reinterpret_cast<const Map&>(bits)),
              k_major(k_contiguous),
              batched(has_batches),
              multicast(sharers > 1),
              first(static_cast<int>(index * (Rows / box_rows) / sharers)),
              end(static_cast<int>((index + 1) * (Rows / box_rows) / sharers)),
              receivers(mask)
        {}

        template <class Slot>
        __device__ void load(std::byte* stage, const Slot& slot, int row, int k, int batch) const
        {
            auto* const tiles = reinterpret_cast<Tile*>(stage);
            for (int block = first; block < end; ++block) {
                const int block_row = row + block * box_rows;
                const std::int32_t coordinates[3] = {k_major ? k : block_row, k_major ? block_row : k,
                                                     batched ? batch : 0};
                if (multicast) {
                    tma_load_multicast(map, tiles[block], slot, coordinates, receivers);
                } else {
                    tma_load(map, tiles[block], slot, coordinates);
                }
            }
        }
    };

    /// Fetches the descriptors, which the kernel before this one has no part in.
    __device__ static void prefetch_maps(const HopperArguments& arguments)
    {
        prefetch(reinterpret_cast<const typename Side<tile_m>::Map&>(arguments.a));
        prefetch(reinterpret_cast<const typename Side<tile_n>::Map&>(arguments.b));
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
