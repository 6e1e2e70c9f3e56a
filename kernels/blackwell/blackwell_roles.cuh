#pragma once

/// Load and MMA roles of the Blackwell kernel. The fallback load is in blackwell_copy.cuh, the epilogue in
/// blackwell_epilogue.cuh, and the kernel that assigns roles to warps in blackwell_gemm.cuh.
///
/// The load role reads A and B from global memory and fills the ring of stages in shared memory. The MMA role
/// multiplies the stages and writes accumulators in tensor memory.

#include <cuda/ptx>

#include <cstdint>
#include <utility>

#include "blackwell_arguments.hpp"
#include "blackwell_storage.cuh"
#include "tessera/device/cluster.cuh"
#include "tessera/device/mma.cuh"
#include "tessera/device/output_partition.cuh"
#include "tessera/device/tma.cuh"

namespace tessera::kernels {

/// Returns true if the fallback load copies the operand.
template <class Config>
__device__ __forceinline__ bool by_threads(const StagedOperand& operand)
{
    return Config::config.copies && operand.by_threads;
}

/// A cluster tile of a configuration.
template <class Config>
using ClusterTile = OutputTile<Config::config.cluster_m(), Config::config.block_n>;

/// Returns where block `m_tile` of CTA `rank` begins in the cluster tile, in blocks of 128 rows.
template <class Config>
__device__ __forceinline__ std::uint32_t block_of(std::uint32_t m_tile, std::uint32_t rank)
{
    return m_tile * Config::config.group_size() + rank;  // only pairs have more than one block per CTA
}

/// Load role: one warp keeps the ring of stages full with TMA, ahead of the MMAs by at most the depth of the ring. In a
/// pair both CTAs load, and both count at the first CTA's barriers.
template <class Config>
class StageLoader {
public:
    using Storage = BlackwellStorage<Config>;

    __device__ StageLoader(const BlackwellArguments& arguments, Storage& storage, BarriersPublished published,
                           const ClusterGrid& cluster)
        : arguments_(arguments),
          storage_(storage),
          cluster_(cluster),
          stages_(storage.stages, published),
          bytes_(announced_bytes(arguments))
    {}

    /// Moves to a stage of the tile.
    __device__ void begin(const ClusterTile<Config>& tile, std::uint32_t stage)
    {
        row_ = static_cast<std::int32_t>(tile.first_row());
        column_ = static_cast<std::int32_t>(tile.first_column());
        batch_ = static_cast<std::int32_t>(tile.batch());
        k_ = static_cast<std::int32_t>(stage * arguments_.block_k);
    }

    /// Issues the loads of the next stage. Waits until the stage is free.
    __device__ void step()
    {
        auto slot = stages_.acquire();
        if (elect_one()) {
            if (Config::config.group == CtaGroup::one || cluster_.row() == 0) {
                slot.full().arrive_and_expect(bytes_);
            }
            load(slot);
        }
        std::move(slot).publish();
        k_ += static_cast<std::int32_t>(arguments_.block_k);
    }

    /// Asks for the CTA's rows of C in L2, for the epilogue, which runs later than the loads.
    __device__ void prefetch_c() const
    {
        constexpr BlackwellConfig config = Config::config;
        const GemmArguments& gemm = arguments_.gemm;
        if (gemm.beta == 0.0F || !arguments_.stores_by_tma || !elect_one()) {
            return;
        }
        const auto columns = static_cast<std::int32_t>(config.store_columns(gemm.d_type == ElementType::f32 ? 4 : 2));
        const std::int32_t batch = arguments_.c_batched ? batch_ : 0;
#pragma unroll
        for (std::uint32_t m_tile = 0; m_tile < config.m_tiles; ++m_tile) {
            const auto first_row = row_ + static_cast<std::int32_t>(128 * block_of<Config>(m_tile, cluster_.row()));
            const auto rows = static_cast<std::int32_t>(min(gemm.m - first_row, std::int64_t{128}));
            const auto inside = static_cast<std::int32_t>(min(gemm.n - column_, std::int64_t{config.block_n}));
#pragma unroll 1
            for (std::int32_t row = 0; row < rows; row += 32) {
#pragma unroll 1
                for (std::int32_t column = 0; column < inside; column += columns) {
                    const std::int32_t origin[3] = {column_ + column, first_row + row, batch};
                    tma_prefetch(arguments_.c, origin, L2Policy::evict_first());
                }
            }
        }
    }

    /// Waits until every stage is free. After that, nothing arrives at this CTA's barriers any more.
    __device__ void drain() { std::move(stages_).drain(); }

private:
    using Slot = FillSlot<typename Storage::Stages>;

    /// Bytes that complete a `full` barrier; for a pair, those of both CTAs.
    __device__ static std::uint32_t announced_bytes(const BlackwellArguments& arguments)
    {
        const std::uint32_t a_bytes = Config::config.m_tiles * arguments.a.loaded_bytes;
        const std::uint32_t own = (by_threads<Config>(arguments.a) ? 0 : a_bytes) +
                                  (by_threads<Config>(arguments.b) ? 0 : arguments.b.loaded_bytes);
        return own * Config::config.group_size();
    }

    /// Loads this CTA's part of a stage. Executed by one thread.
    __device__ void load(const Slot& slot)
    {
        constexpr BlackwellConfig config = Config::config;
        const std::uint32_t stage = slot.index();
        if (!by_threads<Config>(arguments_.a)) {
#pragma unroll
            for (std::uint32_t m_tile = 0; m_tile < config.m_tiles; ++m_tile) {
                const auto row = row_ + static_cast<std::int32_t>(128 * block_of<Config>(m_tile, cluster_.row()));
#pragma unroll 1
                for (std::uint32_t box = 0; box < arguments_.a.boxes; ++box) {
                    load_box<false>(storage_.a[stage][m_tile], arguments_.a, slot, row, box);
                }
            }
        }
        if (!by_threads<Config>(arguments_.b)) {
            if constexpr (config.multicast) {
                const std::uint32_t share = arguments_.b.boxes / config.cluster;
#pragma unroll 1
                for (std::uint32_t i = 0; i < share; ++i) {
                    load_box<true>(storage_.b[stage], arguments_.b, slot, column_, cluster_.row() * share + i);
                }
            } else {
                const std::uint32_t part = config.group == CtaGroup::pair ? cluster_.row() : 0;
                const auto column = column_ + static_cast<std::int32_t>(part * config.b_rows());
#pragma unroll 1
                for (std::uint32_t box = 0; box < arguments_.b.boxes; ++box) {
                    load_box<false>(storage_.b[stage], arguments_.b, slot, column, box);
                }
            }
        }
    }

    /// Loads one box of an operand. With `Shared`, the box goes to all CTAs of the cluster (multicast).
    template <bool Shared>
    __device__ __forceinline__ void load_box(std::byte* part, const StagedOperand& operand, const Slot& slot,
                                             std::int32_t row, std::uint32_t box) const
    {
        const auto index = static_cast<std::int32_t>(box);
        const bool k_major = operand.layout.major == Major::k;
        const std::int32_t x = row + index * operand.box_rows;
        const std::int32_t k = k_ + index * operand.box_k;
        const std::int32_t origin[3] = {k_major ? k : x, k_major ? x : k, operand.batched ? batch_ : 0};
        std::byte* const to = part + box * operand.box_bytes;
        if constexpr (Shared) {
            tma_load_multicast(operand.map, to, slot.full(), origin, cluster_.my_column());
        } else {
            tma_load<Config::config.group>(operand.map, to, slot.full(), origin);
        }
    }

    const BlackwellArguments& arguments_;
    Storage& storage_;
    const ClusterGrid& cluster_;
    RingProducer<typename Storage::Stages> stages_;
    std::uint32_t bytes_;
    std::int32_t row_ = 0;
    std::int32_t column_ = 0;
    std::int32_t batch_ = 0;
    std::int32_t k_ = 0;
};

/// MMA role: one warp multiplies the stages in the order in which they are filled; in a pair, a warp of the first CTA.
/// One elected thread issues the instructions. All lanes run the loop because the instructions want their operands in
/// uniform registers, and the compiler keeps a value there only if the whole warp computes it.
template <class Config, MmaKind Kind, class TensorMemory>
class StageMultiplier {
public:
    using Storage = BlackwellStorage<Config>;

    __device__ StageMultiplier(const BlackwellArguments& arguments, Storage& storage, BarriersPublished published,
                               const ClusterGrid& cluster, const TensorMemory& tensor_memory)
        : instruction_(Instruction::from_bits(arguments.instruction)),
          a_(descriptor(arguments.a, storage.a)),
          b_(descriptor(arguments.b, storage.b)),
          a_step_(arguments.a.descriptor_step * 16),
          b_step_(arguments.b.descriptor_step * 16),
          receivers_(cluster.my_column()),
          tensor_memory_(tensor_memory),
          stages_(storage.stages, published),
          accumulators_(storage.accumulators, published)
    {}

    /// Multiplies a whole tile: `k_steps` stages, with `before_step(k)` before each.
    template <class BeforeStep>
    __device__ void multiply(std::uint32_t k_steps, BeforeStep before_step)
    {
        multiply(k_steps, before_step, accumulators_.acquire());
    }

private:
    static constexpr BlackwellConfig config = Config::config;
    static constexpr std::uint32_t m_tiles = Config::config.m_tiles;
    using Instruction = MmaInstruction<Kind, Config::config.group, MmaForm::shared, ScaleVector::none,
                                       MmaShape{Config::config.instruction_m(), Config::config.block_n}>;
    using Slot = FillSlot<typename Storage::Accumulators>;

    template <class Stages>
    __device__ static Tcgen05Descriptor descriptor(const StagedOperand& operand, const Stages& stages)
    {
        return Tcgen05Descriptor::from_bits(operand.descriptor)
            .advanced(tessera::detail::shared_address(stages) & 0x3FFFFU);  // without the CTA's rank
    }

    /// Acquires one accumulator per block of rows, then multiplies.
    template <class BeforeStep, class... Slots>
    __device__ void multiply(std::uint32_t k_steps, BeforeStep before_step, Slots&&... slots)
    {
        if constexpr (sizeof...(Slots) < m_tiles) {
            multiply(k_steps, before_step, std::move(slots)..., accumulators_.acquire());
        } else {
            tcgen05_fence_after_sync();  // the epilogue has read the accumulators
            const std::uint32_t indices[] = {slots.index()...};
            auto accumulate = Accumulate::overwrite;
#pragma unroll 1
            for (std::uint32_t k = 0; k < k_steps; ++k) {
                before_step(k);
                multiply_stage(indices, accumulate);
                accumulate = Accumulate::add;
            }
            (finish(std::move(slots)), ...);
        }
    }

    __device__ __forceinline__ void multiply_stage(const std::uint32_t (&accumulators)[m_tiles], Accumulate first)
    {
        constexpr std::uint32_t instructions = BlackwellConfig::stage_row_bytes / 32;  // 32 bytes of K each
        auto stage = stages_.wait();
        tcgen05_fence_after_sync();
        // Lets the compiler compute the offsets below in 32 bits.
        __builtin_assume(stage.index() < Config::config.stages);
        const Tcgen05Descriptor a = a_.advanced(stage.index() * m_tiles * Config::config.a_bytes());
        const Tcgen05Descriptor b = b_.advanced(stage.index() * Config::config.b_bytes());
        if (elect_one()) {
#pragma unroll
            for (std::uint32_t i = 0; i < instructions; ++i) {
#pragma unroll
                for (std::uint32_t m_tile = 0; m_tile < m_tiles; ++m_tile) {
                    mma(tensor_memory_.template accumulator<Config::config.accumulator_columns()>(accumulators[m_tile]),
                        a.advanced(i * a_step_ + m_tile * Config::config.a_bytes()), b.advanced(i * b_step_),
                        instruction_, i == 0 ? first : Accumulate::add);
                }
            }
            commit_to(stage.empty());
        }
        std::move(stage).release_by_other();
    }

    __device__ void finish(Slot&& slot)
    {
        if (elect_one()) {
            commit_to(slot.full(), Config::config.group == CtaGroup::pair);
        }
        std::move(slot).publish();
    }

    /// A stage is freed in every CTA whose loads fill it. An accumulator becomes full in every CTA that holds part of
    /// it.
    template <class Kind2>
    __device__ __forceinline__ void commit_to(const Barrier<Kind2, Ready>& barrier, bool everywhere = true) const
    {
        if constexpr (Config::config.cluster > 1) {
            if (everywhere) {
                commit<Config::config.group>(barrier, receivers_);
                return;
            }
        }
        commit<Config::config.group>(barrier);
    }

    Instruction instruction_;
    Tcgen05Descriptor a_;
    Tcgen05Descriptor b_;
    std::uint32_t a_step_;
    std::uint32_t b_step_;
    CtaMask receivers_;  // all CTAs of the cluster
    const TensorMemory& tensor_memory_;
    RingConsumer<typename Storage::Stages> stages_;
    RingProducer<typename Storage::Accumulators> accumulators_;
};

}  // namespace tessera::kernels
