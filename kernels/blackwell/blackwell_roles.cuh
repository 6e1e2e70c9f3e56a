#pragma once

/// Load and MMA roles of the Blackwell kernel. The fallback load is in blackwell_copy.cuh, the epilogue in
/// blackwell_epilogue.cuh, and the kernel that assigns roles to warps in blackwell_gemm.cuh.
///
/// The load role reads A and B from global memory and fills the ring of stages in shared memory. The MMA role
/// multiplies the stages and writes accumulators in tensor memory.

#include <cuda/ptx>

#include <cstdint>
#include <type_traits>
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

/// Returns where block `m_tile` of CTA `rank` begins in the cluster tile, in blocks of 128 rows. Those of a pair's two CTAs take
/// turns.
template <class Config>
__device__ __forceinline__ std::uint32_t block_of(std::uint32_t m_tile, std::uint32_t rank)
{
    constexpr std::uint32_t in_group = Config::config.group_size();
    if constexpr (Config::config.groups() == 1) {
        return m_tile * in_group + rank;
    } else {
        return (rank / in_group * Config::config.m_tiles + m_tile) * in_group + rank % in_group;
    }
}

/// Returns true in the CTA that issues the MMAs: each, or the first one of a pair.
template <class Config>
__device__ __forceinline__ bool issues_for_group(const ClusterGrid& cluster)
{
    return Config::config.group == CtaGroup::one || cluster.row() % 2 == 0;
}

/// Load role: one warp keeps the ring of stages full with TMA, ahead of the MMAs by at most the depth of the ring. In a
/// pair both CTAs load, and both count at the first CTA's barriers.
template <class Config>
class StageLoader {
public:
    using Storage = BlackwellStorage<Config>;

    __device__ StageLoader(const BlackwellArguments& arguments, Storage& storage, BlackwellPublished<Config> published,
                           const ClusterGrid& cluster)
        : arguments_(arguments),
          storage_(storage),
          cluster_(cluster),
          published_(published),
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

    /// Asks for the next stages in L2 while the kernel before this one ends. A hint: the loads see what that kernel writes.
    __device__ void prefetch_stages(std::uint32_t count) const
    {
        if (count == 0 || !elect_one()) {
            return;
        }
#pragma unroll 1
        for (std::uint32_t stage = 0; stage < count; ++stage) {
            for_each_box(0, k_ + static_cast<std::int32_t>(stage * arguments_.block_k),
                         [&](auto, const StagedOperand& operand, std::byte*, const std::int32_t(&origin)[3],
                             std::uint32_t) { tma_prefetch(operand.map, origin, policy_of(operand)); });
        }
    }

    /// Issues the loads of the next stage. Waits until the stage is free.
    __device__ void step()
    {
        stages_.fill(bytes_, [&](const Slot& slot) { load(slot); });
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

    /// Calls `visit(is shared, operand, part in shared memory, coordinates, box)` for each box of the stage at K = `k`. A shared
    /// box goes to all CTAs of the cluster that have the same rows of B.
    template <class Visit>
    __device__ __forceinline__ void for_each_box(std::uint32_t stage, std::int32_t k, Visit&& visit) const
    {
        constexpr BlackwellConfig config = Config::config;
        const auto visit_box = [&](auto is_shared, const StagedOperand& operand, std::byte* part, std::int32_t row,
                                   std::uint32_t box) {
            const auto index = static_cast<std::int32_t>(box);
            const bool k_major = operand.layout.major == Major::k;
            const std::int32_t x = row + index * operand.box_rows;
            const std::int32_t along_k = k + index * operand.box_k;
            const std::int32_t origin[3] = {k_major ? along_k : x, k_major ? x : along_k, operand.batched ? batch_ : 0};
            visit(is_shared, operand, part, origin, box);
        };
        if (!by_threads<Config>(arguments_.a)) {
#pragma unroll
            for (std::uint32_t m_tile = 0; m_tile < config.m_tiles; ++m_tile) {
                const auto row = row_ + static_cast<std::int32_t>(128 * block_of<Config>(m_tile, cluster_.row()));
#pragma unroll 1
                for (std::uint32_t box = 0; box < arguments_.a.boxes; ++box) {
                    visit_box(std::false_type{}, arguments_.a, storage_.a[stage][m_tile], row, box);
                }
            }
        }
        if (!by_threads<Config>(arguments_.b)) {
            const std::uint32_t part = config.group == CtaGroup::pair ? cluster_.row() % 2 : 0;
            const auto column = column_ + static_cast<std::int32_t>(part * config.b_rows());
            const std::uint32_t share = arguments_.b.boxes / config.b_sharers();
            const std::uint32_t first = config.multicast ? cluster_.row() / config.group_size() * share : 0;
#pragma unroll 1
            for (std::uint32_t i = 0; i < share; ++i) {
                visit_box(std::bool_constant<config.multicast>{}, arguments_.b, storage_.b[stage], column, first + i);
            }
        }
    }

    __device__ static L2Policy policy_of(const StagedOperand& operand)
    {
        return operand.read_once ? L2Policy::evict_first() : L2Policy::evict_unchanged();
    }

    /// Loads this CTA's part of a stage. Executed by one thread.
    __device__ void load(const Slot& slot)
    {
        for_each_box(slot.index(), k_,
                     [&](auto is_shared, const StagedOperand& operand, std::byte* part, const std::int32_t(&origin)[3],
                         std::uint32_t box) {
                         std::byte* const to = part + box * operand.box_bytes;
                         if constexpr (Config::config.multicast) {
                             if constexpr (decltype(is_shared)::value) {
                                 const ReadyCtas sharers = published_.ready(receivers());
                                 tma_load_multicast(operand.map, to, slot.bytes(), origin, sharers);
                                 return;
                             }
                         }
                         if (operand.read_once) {
                             tma_load(operand.map, to, slot.bytes(), origin, L2Policy::evict_first());
                         } else {
                             tma_load(operand.map, to, slot.bytes(), origin);
                         }
                     });
    }

    __device__ __forceinline__ CtaMask receivers() const
    {
        return Config::config.group == CtaGroup::pair ? cluster_.my_place_in_pairs() : cluster_.my_column();
    }

    const BlackwellArguments& arguments_;
    Storage& storage_;
    const ClusterGrid& cluster_;
    BlackwellPublished<Config> published_;
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

    __device__ StageMultiplier(const BlackwellArguments& arguments, Storage& storage,
                               BlackwellPublished<Config> published, const ClusterGrid& cluster,
                               const TensorMemory& tensor_memory)
        : instruction_(Instruction::from_bits(arguments.instruction)),
          a_(descriptor(arguments.a, storage.a)),
          b_(descriptor(arguments.b, storage.b)),
          a_step_(arguments.a.descriptor_step * 16),
          b_step_(arguments.b.descriptor_step * 16),
          cluster_(cluster),
          published_(published),
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
    using Instruction =
        AnyMmaInstruction<Kind, Config::config.group, MmaShape{Config::config.instruction_m(), Config::config.block_n}>;
    using Slot = FillSlot<typename Storage::Accumulators>;

    template <class Stages>
    __device__ static Tcgen05Descriptor<> descriptor(const StagedOperand& operand, const Stages& stages)
    {
        return Tcgen05Descriptor<>::from_bits(operand.descriptor)
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
        const Tcgen05Descriptor<> a = a_.advanced(stage.index() * m_tiles * Config::config.a_bytes());
        const Tcgen05Descriptor<> b = b_.advanced(stage.index() * Config::config.b_bytes());
        const bool elected = elect_one();
        if (elected) {
#pragma unroll
            for (std::uint32_t i = 0; i < instructions; ++i) {
#pragma unroll
                for (std::uint32_t m_tile = 0; m_tile < m_tiles; ++m_tile) {
                    mma(accumulator(accumulators[m_tile]), a.advanced(i * a_step_ + m_tile * Config::config.a_bytes()),
                        b.advanced(i * b_step_), instruction_, i == 0 ? first : Accumulate::add);
                }
            }
        }
        // A stage is freed in every CTA whose loads fill it.
        if constexpr (Config::config.cluster > 1) {
            release_after_mma(std::move(stage), accumulator(0), elected, published_.ready(cluster_.my_column()));
        } else {
            release_after_mma(std::move(stage), accumulator(0), elected);
        }
    }

    __device__ void finish(Slot&& slot)
    {
        // An accumulator becomes full in every CTA that holds part of it.
        if constexpr (Config::config.group == CtaGroup::pair) {
            publish_after_mma(std::move(slot), accumulator(0), elect_one(), published_.ready(ClusterGrid::my_pair()));
        } else {
            publish_after_mma(std::move(slot), accumulator(0), elect_one());
        }
    }

    __device__ __forceinline__ auto accumulator(std::uint32_t index) const
    {
        return tensor_memory_.template accumulator<Config::config.accumulator_columns()>(index);
    }
    Instruction instruction_;
    Tcgen05Descriptor<> a_;
    Tcgen05Descriptor<> b_;
    std::uint32_t a_step_;
    std::uint32_t b_step_;
    const ClusterGrid& cluster_;
    BlackwellPublished<Config> published_;
    const TensorMemory& tensor_memory_;
    RingConsumer<typename Storage::Stages> stages_;
    RingProducer<typename Storage::Accumulators> accumulators_;
};

}  // namespace tessera::kernels
