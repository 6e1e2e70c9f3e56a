#pragma once

/// The MMA loop of a consumer: one warpgroup reads stages from shared memory and accumulates A * B of a work tile in
/// its registers.

#include <cstdint>
#include <utility>

#include "hopper_shared.cuh"
#include "tessera/device/warp.cuh"
#include "tessera/device/wgmma.cuh"

namespace tessera::kernels {

/// Frees a slot in this CTA and in every peer that multicasts into it: the n-th thread of a consumer arrives at the
/// n-th of these CTAs.
class HopperReleaser {
public:
    __device__ HopperReleaser(const ClusterGrid& cluster, BarriersPublishedToCluster published)
        : peer_(published.ready(sharer_of_slot(cluster, threadIdx.x % 128))),
          alone_(cluster.size() == 1),
          tells_(threadIdx.x % 128 < sharers_of_slot(cluster))
    {}

    /// @param slot  a ReadSlot or ReadSlots
    template <class Slot>
    __device__ void release(Slot&& slot) const
    {
        if (!tells_) {
            std::forward<Slot>(slot).release_by_other();
        } else if (alone_) {
            std::forward<Slot>(slot).release();
        } else {
            std::forward<Slot>(slot).release_to(peer_);
        }
    }

private:
    ReadyCta peer_;
    bool alone_;
    bool tells_;
};

/// Returns the same descriptor in uniform registers, where wgmma needs it. All lanes have the same value.
template <class Layout>
__device__ __forceinline__ WgmmaDescriptor<Layout> made_uniform(WgmmaDescriptor<Layout> descriptor)
{
    return descriptor.with_low_half(of_first_lane(static_cast<std::uint32_t>(descriptor.bits())));
}

/// Descriptors of both operands of a stage.
template <class LayoutA, class LayoutB>
struct HopperOperands {
    WgmmaDescriptor<LayoutA> a;
    WgmmaDescriptor<LayoutB> b;
};

/// Returns the operands in the stage of the consumer's slot after the next `skipped` ones, given those in the first stage. Call
/// it before the wait for the slot: the time between that wait and the first instruction is on the critical path of small
/// products.
template <class Config, class Operands>
__device__ __forceinline__ Operands next_operands(const RingConsumer<HopperRing<Config>>& ring, const Operands& first,
                                                  std::uint32_t skipped = 0)
{
    const std::uint32_t offset = ring.next_index(skipped) * Config::config.stage_bytes();
    return {made_uniform(first.a.advanced(offset)), made_uniform(first.b.advanced(offset))};
}

/// An operand's tile in a stage: (Rows, 128 bytes of K) with 128-byte swizzle, as HopperTmaLoader fills it.
template <Major MajorAxis, int Rows, int ElementBytes>
struct HopperOperand {
    static constexpr unsigned block_k = HopperConfig::hopper_row_bytes / ElementBytes;
    using Layout = SharedLayout<MajorAxis, Swizzle::b128, Rows, block_k, ElementBytes>;

    /// Distance from one instruction's K to the next (32 bytes of K).
    static constexpr std::uint32_t k_step = Layout::k_offset(32 / ElementBytes);

    __device__ static WgmmaDescriptor<Layout> descriptor(const void* operand)
    {
        return made_uniform(wgmma_descriptor<Layout>(static_cast<std::uint32_t>(__cvta_generic_to_shared(operand))));
    }
};

/// Multiplies one stage; its instructions form one wgmma group. `first` overwrites the accumulators.
/// @param operands    a copy: `look_ahead` may replace the caller's
/// @param look_ahead  prepares the next stage. A warp waits with each wgmma until the tensor core takes it, so what is between two
///                    of them costs little, and what is behind the last one leaves the tensor core idle
template <class Config, WgmmaTypes Types, class LayoutA, class LayoutB, int Blocks, int Registers, class LookAhead>
__device__ __forceinline__ void multiply_stage(float (&accumulators)[Blocks][Registers],
                                               const HopperOperands<LayoutA, LayoutB> operands, bool first,
                                               LookAhead&& look_ahead)
{
    constexpr unsigned k_of_instruction = 32 / wgmma_element_bytes<Types>;
    constexpr std::uint32_t step_a = LayoutA::k_offset(k_of_instruction);
    constexpr std::uint32_t step_b = LayoutB::k_offset(k_of_instruction);
    constexpr std::uint32_t block_bytes = wgmma_m * HopperConfig::hopper_row_bytes;
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (k == 2) {
            look_ahead();
        }
#pragma unroll
        for (int block = 0; block < Blocks; ++block) {
            wgmma<Types, Config::config.tile_n>(accumulators[block],
                                                operands.a.advanced(block * block_bytes + k * step_a),
                                                operands.b.advanced(k * step_b), first && k == 0 ? 0 : 1);
        }
    }
    wgmma_commit();
}

template <int Blocks, int Registers>
__device__ __forceinline__ void clear(float (&accumulators)[Blocks][Registers])
{
#pragma unroll
    for (auto& block : accumulators) {
#pragma unroll
        for (float& value : block) {
            value = 0.0F;
        }
    }
}

/// Skips the slots of the consumers that take turns with this one.
template <class Config>
__device__ __forceinline__ void skip_slots_of_others(RingConsumer<HopperRing<Config>>& ring)
{
    if constexpr (Config::config.stages_in_turn() > 1) {
        ring.skip(Config::config.stages_in_turn() - 1);
    }
}

/// accumulators = A * B over the next `stages` slots of the ring, or over every second one with intra-CTA split-K;
/// `stages` is even then. Calls `issued()` once all wgmma are issued; they may still be running.
template <class Config, WgmmaTypes Types, Major MajorA, Major MajorB, int Blocks, int Registers, class Issued>
__device__ __forceinline__ void multiply_unit(float (&accumulators)[Blocks][Registers],
                                              RingConsumer<HopperRing<Config>>& ring, HopperShared<Config>& shared,
                                              const HopperReleaser& releaser, int consumer_row, std::uint32_t stages,
                                              Issued&& issued)
{
    constexpr int bytes = wgmma_element_bytes<Types>;
    const HopperOperands in_first_stage{
        HopperOperand<MajorA, Config::config.tile_m, bytes>::descriptor(shared.stages[0].a +
                                                                        consumer_row * HopperConfig::hopper_row_bytes),
        HopperOperand<MajorB, Config::config.tile_n, bytes>::descriptor(shared.stages[0].b)};
    constexpr std::uint32_t stride = Config::config.stages_in_turn();

    auto operands = next_operands<Config>(ring, in_first_stage);
    bool is_filled = false;  // the next slot. Behind the last stage, it is looked at for nothing
    const auto look_ahead = [&] {
        if constexpr (Config::config.looks_ahead()) {
            operands = next_operands<Config>(ring, in_first_stage, stride - 1);
            is_filled = ring.is_filled(stride - 1);
        }
    };
    auto previous = ring.wait();
    multiply_stage<Config, Types>(accumulators, operands, true, look_ahead);
    for (std::uint32_t stage = stride; stage < stages; stage += stride) {
        skip_slots_of_others<Config>(ring);
        if constexpr (!Config::config.looks_ahead()) {
            operands = next_operands<Config>(ring, in_first_stage);
        }
        auto slot = ring.wait(is_filled);
        multiply_stage<Config, Types>(accumulators, operands, false, look_ahead);
        wgmma_wait<1>();  // the tensor core has read the previous stage
        releaser.release(std::move(previous));
        previous = std::move(slot);
    }
    issued();
    wgmma_finish(accumulators);
    releaser.release(std::move(previous));
}

/// The same with two-level accumulation: the tensor core adds the products of one stage, 128 of K, with 13 fraction
/// bits; the thread adds these sums in fp32 (DeepSeek-V3 technical report, section 3.3.2). A stage is multiplied in
/// parts of the tile, because a second set of all accumulators does not fit. The other consumer multiplies while this
/// one adds. The wait for the next stage overlaps the multiplication of the last part.
template <class Config, WgmmaTypes Types, int Blocks, int Registers, class Issued>
__device__ __forceinline__ void multiply_unit_in_two_levels(float (&accumulators)[Blocks][Registers],
                                                            RingConsumer<HopperRing<Config>>& ring,
                                                            HopperShared<Config>& shared,
                                                            const HopperReleaser& releaser, int consumer_row,
                                                            std::uint32_t stages, Issued&& issued)
{
    constexpr Major k_major = Major::k;
    constexpr int columns = Config::config.two_level_columns();
    constexpr int parts_of_block = Config::config.tile_n / columns;
    constexpr int parts = Blocks * parts_of_block;
    constexpr std::uint32_t row_bytes = HopperConfig::hopper_row_bytes;
    using OperandA = HopperOperand<k_major, Config::config.tile_m, 1>;
    using OperandB = HopperOperand<k_major, Config::config.tile_n, 1>;
    const HopperOperands in_first_stage{OperandA::descriptor(shared.stages[0].a + consumer_row * row_bytes),
                                        OperandB::descriptor(shared.stages[0].b)};
    constexpr std::uint32_t stride = Config::config.stages_in_turn();

    auto operands = next_operands<Config>(ring, in_first_stage);
    float sums[1][columns / 2];
    const auto multiply = [&](int part) {
        const auto a = operands.a.advanced(part / parts_of_block * wgmma_m * row_bytes);
        const auto b = operands.b.advanced(part % parts_of_block * columns * row_bytes);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            wgmma<Types, columns>(sums[0], a.advanced(k * OperandA::k_step), b.advanced(k * OperandB::k_step),
                                  k == 0 ? 0 : 1);
        }
        wgmma_commit();
    };
    const auto add = [&](int part) {
#pragma unroll
        for (int i = 0; i < columns / 2; ++i) {
            accumulators[part / parts_of_block][part % parts_of_block * columns / 2 + i] += sums[0][i];
        }
    };

    clear(accumulators);
    auto slot = ring.wait();
    for (std::uint32_t stage = stride;; stage += stride) {
        multiply(0);
#pragma unroll
        for (int part = 1; part < parts; ++part) {
            wgmma_finish(sums);
            add(part - 1);
            multiply(part);
        }
        if (stage >= stages) {
            break;
        }
        skip_slots_of_others<Config>(ring);
        operands = next_operands<Config>(ring, in_first_stage);
        auto next = ring.wait();
        wgmma_finish(sums);
        releaser.release(std::move(slot));
        slot = std::move(next);
        add(parts - 1);
    }
    issued();
    wgmma_finish(sums);
    releaser.release(std::move(slot));
    add(parts - 1);
}

/// Selects the loop for the types and majors in `arguments`, with one branch per work tile.
template <class Config, int ElementBytes, int Blocks, int Registers, class... Loop>
__device__ __forceinline__ void multiply_unit(const HopperArguments& arguments,
                                              float (&accumulators)[Blocks][Registers], Loop&&... loop)
{
    constexpr Major k = Major::k;
    constexpr Major mn = Major::mn;
    if constexpr (ElementBytes == 2) {
        const auto orders = [&]<WgmmaTypes Types>() {
            const auto order_b = [&]<Major B>() {
                arguments.a_k_major ? multiply_unit<Config, Types, k, B>(accumulators, loop...)
                                    : multiply_unit<Config, Types, mn, B>(accumulators, loop...);
            };
            if constexpr (Config::config.tile_n % 64 == 0) {  // an N-major operand needs blocks of 64 columns
                if (!arguments.b_k_major) {
                    order_b.template operator()<mn>();
                    return;
                }
            }
            order_b.template operator()<k>();
        };
        arguments.types == HopperTypes::f16 ? orders.template operator()<WgmmaTypes::f16>()
                                            : orders.template operator()<WgmmaTypes::bf16>();
    } else if constexpr (ElementBytes == 4) {
        multiply_unit<Config, WgmmaTypes::tf32, k, k>(accumulators, loop...);
    } else {
        const auto levels = [&]<WgmmaTypes Types>() {
            if constexpr (Config::config.two_level_columns() > 0) {
                if (arguments.two_level) {
                    multiply_unit_in_two_levels<Config, Types>(accumulators, loop...);
                    return;
                }
            }
            multiply_unit<Config, Types, k, k>(accumulators, loop...);
        };
        switch (arguments.types) {
            case HopperTypes::e4m3_e5m2: levels.template operator()<WgmmaTypes::e4m3_e5m2>(); break;
            case HopperTypes::e5m2_e4m3: levels.template operator()<WgmmaTypes::e5m2_e4m3>(); break;
            case HopperTypes::e5m2_e5m2: levels.template operator()<WgmmaTypes::e5m2_e5m2>(); break;
            default: levels.template operator()<WgmmaTypes::e4m3_e4m3>(); break;
        }
    }
}

}  // namespace tessera::kernels
