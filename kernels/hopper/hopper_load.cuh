#pragma once

/// The load role: one thread reads A and B by TMA and keeps the ring of stages in shared memory full. The fallback load
/// is in hopper_copy.cuh.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_kernels.hpp"
#include "hopper_shared.cuh"
#include "hopper_work.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

/// One thread loads by TMA. If CTAs of the cluster share an operand's tile, each loads a part and multicasts it to all.
///
/// The latency of this thread bounds small products. Therefore the loop over stages has no branch in the common case
/// and computes nothing twice.
template <class Config, class Element>
class HopperTmaLoader {
    static constexpr int tile_m = Config::config.tile_m;
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int row_bytes = HopperConfig::hopper_row_bytes;
    static constexpr int block_k = row_bytes / static_cast<int>(sizeof(Element));

public:
    /// For loads without an L2 cache hint.
    struct NoPolicy {};
    /// For boxes that follow each other.
    struct NoShift {
        __device__ int operator()(int /*line*/) const { return 0; }
    };

    /// One operand, and the rows of its tile that this CTA loads. A K-major operand arrives in one box; an M- or
    /// N-major one in a box of (64 of K, 64 rows) per 64 rows. Policy is L2Policy or NoPolicy.
    template <int Rows, class Policy>
    class Side {
    public:
        /// @param rows  rows of the tile that all sharers load together
        __device__ Side(const AnyTensorMap<3>& map, bool k_major, bool batched, std::uint32_t rows,
                        std::uint32_t sharers, std::uint32_t index, ReadyCtas receivers, Policy policy)
            : map_(map),
              policy_(policy),
              k_major_(k_major),
              batched_(batched),
              multicast_(sharers > 1),
              first_(static_cast<int>(index * rows >> ClusterGrid::log2(sharers))),
              end_(static_cast<int>((index + 1) * rows >> ClusterGrid::log2(sharers))),
              receivers_(receivers)
        {}

        __device__ bool k_major() const { return k_major_; }
        /// First row of this CTA's part in the operand, for a tile at `row`.
        __device__ int first_row(int row) const { return row + first_; }
        __device__ int batch(int of_unit) const { return batched_ ? of_unit : 0; }

        /// For K-major operands; `row` is `first_row`.
        template <bool Multicast, class Slot>
        __device__ __forceinline__ void load_box(std::byte* stage, const Slot& slot, int row, int k, int batch) const
        {
            load_box<Multicast>(stage, first_, slot, {k, row, batch});
        }
        /// For either major; `row` is the tile's. `shift(row in the tile)` is added to the rows of M- or N-major boxes.
        template <class Slot, class Shift = NoShift>
        __device__ __forceinline__ void load(std::byte* stage, const Slot& slot, int row, int k, int batch,
                                             Shift&& shift = {}) const
        {
            for_each_box(row, k, batch, shift, [&](int line, const std::int32_t(&coordinates)[3]) {
                if (multicast_) {
                    load_box<true>(stage, line, slot, coordinates);
                } else {
                    load_box<false>(stage, line, slot, coordinates);
                }
            });
        }
        /// Prefetches into L2 what `load` will load.
        template <class Shift = NoShift>
        __device__ __forceinline__ void prefetch(int row, int k, int batch, Shift&& shift = {}) const
        {
            for_each_box(row, k, batch, shift,
                         [&](int, const std::int32_t(&coordinates)[3]) { tma_prefetch(map_, coordinates, policy_); });
        }

    private:
        static constexpr int mn_major_rows = hopper_mn_major_lines;
        static constexpr bool has_policy = std::is_same_v<Policy, L2Policy>;

        /// Calls `visit(row in the stage, coordinates)` for each box.
        template <class Shift, class Visit>
        __device__ __forceinline__ void for_each_box(int row, int k, int batch, Shift&& shift, Visit&& visit) const
        {
            if (k_major_) {
                visit(first_, {k, row + first_, batch});
                return;
            }
            if constexpr (Rows % mn_major_rows == 0) {
#pragma unroll 1
                for (int line = first_; line < end_; line += mn_major_rows) {
                    visit(line, {row + line + shift(line), k, batch});
                }
            }
        }
        template <bool Multicast, class Slot>
        __device__ __forceinline__ void load_box(std::byte* stage, int line, const Slot& slot,
                                                 const std::int32_t (&coordinates)[3]) const
        {
            std::byte* const to = stage + line * row_bytes;
            if constexpr (Multicast && !has_policy) {
                tma_load_multicast(map_, to, slot.bytes(), coordinates, receivers_);
            } else if constexpr (Multicast) {
                tma_load_multicast(map_, to, slot.bytes(), coordinates, receivers_, policy_);
            } else if constexpr (!has_policy) {
                tma_load(map_, to, slot.bytes(), coordinates);
            } else {
                tma_load(map_, to, slot.bytes(), coordinates, policy_);
            }
        }

        const AnyTensorMap<3>& map_;
        Policy policy_;
        bool k_major_;
        bool batched_;
        bool multicast_;
        int first_;
        int end_;
        ReadyCtas receivers_;
    };

    /// Prefetches the descriptors. The previous kernel does not write them, so this need not wait for it.
    __device__ static void prefetch_maps(const HopperArguments& arguments)
    {
        prefetch(arguments.a);
        prefetch(arguments.b);
        prefetch_maps_of_epilogue(arguments);
    }

    __device__ static void prefetch_maps_of_epilogue(const HopperArguments& arguments)
    {
        if (arguments.stores_by_tma) {
            prefetch(arguments.d);
        }
        if (arguments.work.c_slots > 0) {
            prefetch(arguments.c);
        }
    }

    /// The role, executed by the first warp of the load warpgroup.
    __device__ __forceinline__ static void run(const HopperArguments& arguments, HopperShared<Config>& shared_memory,
                                               HopperQueue queue, const ClusterGrid& cluster,
                                               BarriersPublishedToCluster published)
    {
        auto& shared = with_known_address(shared_memory);
        if (!elect_one()) {
            exit_thread();
        }
        if (arguments.prefetched_stages == 0) {
            load_units(arguments, shared, queue, cluster, published, NoPolicy{}, NoPolicy{});
        } else {
            const auto policy = [](bool read_once) {
                return read_once ? L2Policy::evict_first() : L2Policy::evict_unchanged();
            };
            load_units(arguments, shared, queue, cluster, published, policy(arguments.a_read_once),
                       policy(arguments.b_read_once));
        }
    }

private:
    template <class Policy>
    __device__ __forceinline__ static void load_units(const HopperArguments& arguments, HopperShared<Config>& shared,
                                                      HopperQueue queue, const ClusterGrid& cluster,
                                                      BarriersPublishedToCluster published, Policy policy_a,
                                                      Policy policy_b)
    {
        const Side<tile_m, Policy> a(arguments.a, arguments.a_k_major, arguments.a_batched, arguments.a_rows,
                                     cluster.columns(), cluster.column(), published.ready(cluster.my_row()), policy_a);
        const Side<tile_n, Policy> b(arguments.b, arguments.b_k_major, arguments.b_batched, arguments.b_rows,
                                     cluster.rows(), cluster.row(), published.ready(cluster.my_column()), policy_b);
        // Read from the parameters at each use, because registers are few.
        const auto to_pair = [&](int line) {
            return Config::config.gates() && line >= tile_n / 2 ? arguments.b_second_half : 0;
        };
        RingProducer<HopperRing<Config>> ring(shared.ring, published);
        const bool along_k = a.k_major() && b.k_major();
        const std::uint32_t stage_bytes = (arguments.a_rows + arguments.b_rows) * row_bytes;
        bool waits = true;
        HopperUnit unit{};
        while (queue.next(unit)) {
            const TilePosition place = arguments.gemm.raster.position(unit.tile);
            const int row = static_cast<int>((place.row * cluster.rows() + cluster.row()) * tile_m);
            const int column = static_cast<int>((place.column * cluster.columns() + cluster.column()) * tile_n) >>
                               (Config::config.gates() ? arguments.log2_columns_of_pair : 0);
            const int batch_a = a.batch(static_cast<int>(place.batch));
            const int batch_b = b.batch(static_cast<int>(place.batch));
            const int row_a = a.first_row(row);
            const int row_b = b.first_row(column);
            const int first_k = static_cast<int>(arguments.work.skip_k ? 1 : unit.k_begin) * block_k;
            if (waits) {  // what comes before overlaps the end of the previous kernel
                if constexpr (std::is_same_v<Policy, L2Policy>) {
                    const std::uint32_t prefetched = min(arguments.prefetched_stages, unit.k_count);
#pragma unroll 1
                    for (std::uint32_t stage = 0; stage < prefetched; ++stage) {
                        const int k = first_k + static_cast<int>(stage) * block_k;
                        a.prefetch(row, k, batch_a);
                        b.prefetch(column, k, batch_b, to_pair);
                    }
                }
                await_kernel_before();
                waits = false;
            }
            const auto load_stages = [&](auto&& load) {
                int k = first_k;
#pragma unroll 1
                for (std::uint32_t stage = unit.k_count; stage > 0; --stage, k += block_k) {
                    auto slot = ring.acquire(stage_bytes);
                    load(shared.stages[slot.index()], slot, k);
                    std::move(slot).publish();
                }
            };
            const auto load_along_k = [&]<bool SharesA, bool SharesB>() {
                load_stages([&](auto& stage, const auto& slot, int k) {
                    a.template load_box<SharesA>(stage.a, slot, row_a, k, batch_a);
                    b.template load_box<SharesB>(stage.b, slot, row_b, k, batch_b);
                });
            };
            if (!along_k) {
                load_stages([&](auto& stage, const auto& slot, int k) {
                    a.load(stage.a, slot, row, k, batch_a);
                    b.load(stage.b, slot, column, k, batch_b, to_pair);
                });
            } else if (cluster.columns() > 1) {
                cluster.rows() > 1 ? load_along_k.template operator()<true, true>()
                                   : load_along_k.template operator()<true, false>();
            } else {
                cluster.rows() > 1 ? load_along_k.template operator()<false, true>()
                                   : load_along_k.template operator()<false, false>();
            }
            if constexpr (Config::config.carries_c()) {
                if (unit.c_slots > 0) {
                    load_c(arguments, shared, ring, cluster, published, row, column, static_cast<int>(place.batch));
                }
            }
        }
        std::move(ring).drain();
    }

    /// Loads the tile of C into the slots after the tile's stages, in boxes of 64 rows of 128 bytes. Where the tile does not
    /// end with a box, the last one of a row is narrower: if C is D, what lies beyond may be being stored by another CTA.
    ///
    /// C is each CTA's own, but the consumers free a slot in all CTAs of their row and column. If C alone filled it, a
    /// fast CTA could free its slot twice while a slow one still reads, and the peers would count that as both. So each
    /// of these CTAs adds a byte once it has the slot free, as it adds its part of a stage.
    __device__ static void load_c(const HopperArguments& arguments, HopperShared<Config>& shared,
                                  RingProducer<HopperRing<Config>>& ring, const ClusterGrid& cluster,
                                  BarriersPublishedToCluster published, int row, int column, int batch)
    {
        constexpr int box_bytes = HopperConfig::hopper_store_bytes;
        const bool is_f32 = arguments.gemm.d_type == ElementType::f32;
        const int across = is_f32 ? Config::config.c_boxes_per_row(4) : Config::config.c_boxes_per_row(2);
        const int columns = is_f32 ? row_bytes / 4 : row_bytes / 2;
        constexpr bool has_rest = Config::config.c_columns_of_rest(2) != 0;  // then those of 4 bytes may have one, too
        const int in_last = is_f32 ? Config::config.c_columns_of_rest(4) : Config::config.c_columns_of_rest(2);
        const int bytes_beyond = in_last == 0 ? 0 : box_bytes / columns * (columns - in_last);
        const std::uint32_t sharers = sharers_of_slot(cluster);
        int left = tile_m / 64 * across;
        int box_row = 0;
        int box_column = 0;
#pragma unroll 1
        while (left > 0) {
            const int boxes = min(left, Config::config.c_boxes_per_stage());
            int bytes = boxes * box_bytes;
            if constexpr (has_rest) {
                bytes -= (box_column + boxes) / across * bytes_beyond;
            }
            auto slot = ring.acquire(static_cast<std::uint32_t>(bytes) + sharers);
#pragma unroll 1
            for (std::uint32_t sharer = 0; sharer < sharers; ++sharer) {
                slot.complete_bytes_at(published.ready(sharer_of_slot(cluster, sharer)), 1);
            }
            std::byte* to = shared.stages[slot.index()].a;
#pragma unroll 1
            for (int box = 0; box < boxes; ++box, to += box_bytes) {
                const bool is_rest = has_rest && bytes_beyond > 0 && across > 1 && box_column == across - 1;
                tma_load(is_rest ? arguments.c_rest : arguments.c, to, slot.bytes(),
                         {column + box_column * columns, row + box_row * 64, arguments.c_batched ? batch : 0});
                if (++box_column == across) {
                    box_column = 0;
                    ++box_row;
                }
            }
            std::move(slot).publish();
            left -= boxes;
        }
    }
};

}  // namespace tessera::kernels
