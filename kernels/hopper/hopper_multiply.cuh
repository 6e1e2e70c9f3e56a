#pragma once

/// The main loop of a consumer: one warpgroup's accumulators over the stages of a unit.

#include <cstdint>
#include <utility>

#include "hopper_shared.cuh"
#include "tessera/device/wgmma.cuh"

namespace tessera::kernels {

/// Frees a slot in this CTA and in every peer that multicasts into it: the n-th thread of a consumer tells the n-th of
/// them.
class HopperReleaser {
public:
    __device__ explicit HopperReleaser(const ClusterGrid& cluster) : alone_(cluster.size() == 1)
    {
        const std::uint32_t thread = threadIdx.x % 128;
        tells_ = thread < cluster.rows() + cluster.columns() - 1;
        // First the own row, then the rest of the own column.
        std::uint32_t row = cluster.row();
        std::uint32_t column = thread;
        if (thread >= cluster.columns()) {
            column = cluster.column();
            const std::uint32_t other = thread - cluster.columns();
            row = other < cluster.row() ? other : other + 1;
        }
        peer_ = cluster.at(row, column).value();
        rows_ = cluster.rows();
        cluster_ = &cluster;
    }

    template <class Ring>
    __device__ void release(ReadSlot<Ring>&& slot) const
    {
        if (!tells_) {
            std::move(slot).release_by_other();
        } else if (alone_) {
            std::move(slot).release();
        } else {
            std::move(slot).release_to(cluster_->at(peer_ % rows_, peer_ / rows_));
        }
    }

private:
    const ClusterGrid* cluster_;
    std::uint32_t peer_;
    std::uint32_t rows_;
    bool alone_;
    bool tells_;
};

/// Descriptors of 128-byte swizzled operands, made of 64-row blocks of 8 KiB. The two orders differ in nothing but the
/// step from one instruction's K to the next: 32 bytes along a row, or its rows.
template <OperandMajor Major, int InstructionK>
struct HopperOperand {
    static constexpr std::uint64_t step = (Major == OperandMajor::k ? 32 : InstructionK * 128) / 16;

    /// Source: PTX ISA, "Matrix Descriptor Format" (wgmma): 128-byte swizzle, 1024 bytes from eight rows to the next,
    /// 8192 from one 64-element block to the next in MN-major order.
    __device__ static std::uint64_t descriptor(const void* operand)
    {
        constexpr std::uint64_t constant = std::uint64_t{1} << 62 | std::uint64_t{1024 / 16} << 32 |
                                           std::uint64_t{Major == OperandMajor::k ? 1 : 8192 / 16} << 16;
        const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(operand));
        return constant | (address & 0x3FFFF) >> 4;
    }
};

/// One stage: all its instructions, as one group. `first` clears the accumulators.
template <class Config, WgmmaTypes Types, OperandMajor MajorA, OperandMajor MajorB, int Blocks, int Registers>
__device__ __forceinline__ void multiply_stage(float (&accumulators)[Blocks][Registers], std::uint64_t a,
                                               std::uint64_t b, bool first)
{
    constexpr int instruction_k = Types == WgmmaTypes::tf32                               ? 8
                                  : Types == WgmmaTypes::f16 || Types == WgmmaTypes::bf16 ? 16
                                                                                          : 32;
    constexpr std::uint64_t step_a = HopperOperand<MajorA, instruction_k>::step;
    constexpr std::uint64_t step_b = HopperOperand<MajorB, instruction_k>::step;
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int block = 0; block < Blocks; ++block) {
            wgmma<Types, Config::config.tile_n, MajorA, MajorB>(
                accumulators[block], a + block * (8192 / 16) + k * step_a, b + k * step_b, first && k == 0 ? 0 : 1);
        }
    }
    wgmma_commit();
}

/// accumulators = A * B over the next `stages` slots of the ring.
template <class Config, WgmmaTypes Types, OperandMajor MajorA, OperandMajor MajorB, int Blocks, int Registers>
__device__ __forceinline__ void multiply_unit(float (&accumulators)[Blocks][Registers],
                                              RingConsumer<HopperRing<Config>>& ring, HopperShared<Config>& shared,
                                              const HopperReleaser& releaser, int consumer_row, std::uint32_t stages)
{
    constexpr int instruction_k = Types == WgmmaTypes::tf32 ? 8 : 16;  // matters for MN-major 16-bit operands only
    const std::uint64_t a = HopperOperand<MajorA, instruction_k>::descriptor(
        shared.stages[0].a + consumer_row * HopperConfig::hopper_row_bytes);
    const std::uint64_t b = HopperOperand<MajorB, instruction_k>::descriptor(shared.stages[0].b);
    constexpr std::uint64_t stage_step = Config::config.stage_bytes() / 16;

    auto previous = ring.wait();
    multiply_stage<Config, Types, MajorA, MajorB>(accumulators, a + previous.index() * stage_step,
                                                  b + previous.index() * stage_step, true);
    for (std::uint32_t stage = 1; stage < stages; ++stage) {
        auto slot = ring.wait();
        multiply_stage<Config, Types, MajorA, MajorB>(accumulators, a + slot.index() * stage_step,
                                                      b + slot.index() * stage_step, false);
        wgmma_wait<1>();  // the tensor core has read the previous stage
        releaser.release(std::move(previous));
        previous = std::move(slot);
    }
    wgmma_finish(accumulators);
    releaser.release(std::move(previous));
}

/// The same in two levels: the tensor core adds up the products of one stage, 128 of K, with 13 fraction bits, the thread
/// adds these sums up in fp32 (DeepSeek-V3 technical report, section 3.3.2). The other consumer multiplies meanwhile.
template <class Config, WgmmaTypes Types, int Blocks, int Registers>
__device__ __forceinline__ void multiply_unit_in_two_levels(float (&accumulators)[Blocks][Registers],
                                                            RingConsumer<HopperRing<Config>>& ring,
                                                            HopperShared<Config>& shared, const HopperReleaser& releaser,
                                                            int consumer_row, std::uint32_t stages)
{
    constexpr OperandMajor k = OperandMajor::k;
    const std::uint64_t a =
        HopperOperand<k, 32>::descriptor(shared.stages[0].a + consumer_row * HopperConfig::hopper_row_bytes);
    const std::uint64_t b = HopperOperand<k, 32>::descriptor(shared.stages[0].b);
    constexpr std::uint64_t stage_step = Config::config.stage_bytes() / 16;
#pragma unroll
    for (auto& block : accumulators) {
#pragma unroll
        for (float& value : block) {
            value = 0.0F;
        }
    }
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
        float sums[Blocks][Registers];
        auto slot = ring.wait();
        multiply_stage<Config, Types, k, k>(sums, a + slot.index() * stage_step, b + slot.index() * stage_step, true);
        wgmma_finish(sums);
        releaser.release(std::move(slot));
#pragma unroll
        for (int block = 0; block < Blocks; ++block) {
#pragma unroll
            for (int i = 0; i < Registers; ++i) {
                accumulators[block][i] += sums[block][i];
            }
        }
    }
}

/// The loop for the types and orders of `arguments`: they cost one branch per unit.
template <class Config, int ElementBytes, int Blocks, int Registers, class... Loop>
__device__ __forceinline__ void multiply_unit(const HopperArguments& arguments,
                                              float (&accumulators)[Blocks][Registers], Loop&&... loop)
{
    constexpr OperandMajor k = OperandMajor::k;
    constexpr OperandMajor mn = OperandMajor::mn;
    if constexpr (ElementBytes == 2) {
        const auto orders = [&]<WgmmaTypes Types>() {
            if (arguments.a_k_major) {
                arguments.b_k_major ? multiply_unit<Config, Types, k, k>(accumulators, loop...)
                                    : multiply_unit<Config, Types, k, mn>(accumulators, loop...);
            } else {
                arguments.b_k_major ? multiply_unit<Config, Types, mn, k>(accumulators, loop...)
                                    : multiply_unit<Config, Types, mn, mn>(accumulators, loop...);
            }
        };
        arguments.types == HopperTypes::f16 ? orders.template operator()<WgmmaTypes::f16>()
                                            : orders.template operator()<WgmmaTypes::bf16>();
    } else if constexpr (ElementBytes == 4) {
        multiply_unit<Config, WgmmaTypes::tf32, k, k>(accumulators, loop...);
    } else {
        const auto levels = [&]<WgmmaTypes Types>() {
            if constexpr (has_room_for_two_levels(Config::config)) {
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
