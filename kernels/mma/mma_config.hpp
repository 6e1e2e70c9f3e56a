#pragma once

/// Configurations of the mma.sync kernel, as plain values that the host reads, too.
///
/// A CTA computes a tile of D; its warps divide the tile into equal parts of (warp_m, warp_n). It steps along K by 128 bytes
/// of each operand's element, through a ring of stages in shared memory. How many stages there are is up to the launch:
/// shared memory differs between GPUs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tessera/detail/host_device.hpp"

namespace tessera::kernels {

struct MmaConfig {
    int tile_m;
    int tile_n;
    int warps_m;  // of the CTA, along M
    int warps_n;
    // Cycles of an SM per step of a CTA, for the cost model: of many CTAs, and of one that has the SM for itself. Measured on an
    // H200 with bf16.
    int step_cycles;
    int lone_step_cycles;
    bool for_75 = false;         // its loads fit in the registers of 7.5, where no copy is asynchronous
    bool for_80 = true;          // worth its code from 8.0 on
    bool any_alignment = false;  // of the operands; others need multiples of 16 bytes as addresses and strides
    bool f16_sums = false;       // a step is summed in f16, and its sums are added in f32

    TESSERA_DETAIL_HOST_DEVICE constexpr int threads() const { return 32 * warps_m * warps_n; }
    TESSERA_DETAIL_HOST_DEVICE constexpr int warp_m() const { return tile_m / warps_m; }
    TESSERA_DETAIL_HOST_DEVICE constexpr int warp_n() const { return tile_n / warps_n; }
    /// Bytes of one stage: both operands' tiles.
    TESSERA_DETAIL_HOST_DEVICE constexpr int stage_bytes() const { return (tile_m + tile_n) * 128; }
    /// CTAs of an SM that the registers must suffice for.
    TESSERA_DETAIL_HOST_DEVICE constexpr int min_ctas() const { return threads() > 128 ? 1 : 2; }
};

/// Bytes along K of a stage.
inline constexpr int mma_stage_k_bytes = 128;
/// Most stages of a ring that TMA fills, and of one that threads fill. There are at least 2.
inline constexpr int mma_most_stages = 8;
inline constexpr int mma_most_copied_stages = 5;
/// On 7.5, where one more is in registers.
inline constexpr int mma_stages_of_75 = 2;
/// Shared memory behind the ring, for its barriers.
inline constexpr int mma_barrier_bytes = 128;
/// Alignment of the ring in shared memory: TMA's swizzle is a function of the address.
inline constexpr int mma_shared_alignment = 1024;

/// True on 7.5, where no copy is asynchronous.
inline constexpr bool mma_loads_through_registers =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    true;
#else
    false;
#endif

/// True if the code that is compiled loads stages by TMA. The host knows from the capability that it was compiled for.
template <class Config>
inline constexpr bool mma_loads_by_tma =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    !Config::config.any_alignment;
#else
    false;
#endif

/// Bytes of shared memory that a ring needs.
constexpr std::size_t mma_ring_bytes(const MmaConfig& config, int stages)
{
    return static_cast<std::size_t>(config.stage_bytes()) * static_cast<std::size_t>(stages) + mma_barrier_bytes;
}

/// CTAs that an SM has room for, with two stages each. An SM has 1 KiB of shared memory more than a CTA may have, and each CTA
/// needs 1 KiB for the system (from 8.0 on).
/// @param shared_bytes  that a CTA may have
constexpr int mma_ctas_per_sm(const MmaConfig& config, std::size_t shared_bytes)
{
    constexpr std::size_t reserved = 1024;
    const auto by_memory = static_cast<int>((shared_bytes + reserved) / (mma_ring_bytes(config, 2) + reserved));
    return std::clamp(by_memory, 1, config.min_ctas());
}

/// Stages that each of these CTAs has room for, from 2 to `most`.
constexpr int mma_stages(const MmaConfig& config, std::size_t shared_bytes, int most)
{
    constexpr std::size_t reserved = 1024;
    const std::size_t room =
        (shared_bytes + reserved) / static_cast<std::size_t>(mma_ctas_per_sm(config, shared_bytes)) - reserved;
    int stages = 2;
    while (stages < most && mma_ring_bytes(config, stages + 1) <= room) {
        ++stages;
    }
    return stages;
}

/// Stages that threads fill, on GPUs whose CTAs may have 163 KiB of shared memory or more, and on the others from 8.0 on, where
/// it is 99 KiB. Both are constants, since branches that choose in every step cost up to 6 %.
inline constexpr std::size_t mma_larger_shared_bytes = std::size_t{163} * 1024;
/// True of a compute capability, times ten, whose GPUs all have 99 KiB: code for it has no loop with the other number of stages.
constexpr bool mma_has_smaller_shared(int capability)
{
    return capability == 86 || capability == 89 || capability >= 120;
}
/// The same of what is compiled.
inline constexpr bool mma_compiles_for_smaller_shared =
#if defined(__CUDA_ARCH__)
    mma_has_smaller_shared(__CUDA_ARCH__ / 10);
#else
    false;
#endif
constexpr int mma_copied_stages(const MmaConfig& config, bool larger)
{
    constexpr std::size_t smaller_shared_bytes = std::size_t{99} * 1024;
    // Sums in f16 are for GPUs that have less of it.
    return mma_stages(config, larger && !config.f16_sums ? mma_larger_shared_bytes : smaller_shared_bytes,
                      mma_most_copied_stages);
}

/// Rows by which the epilogue's staging memory is padded, in floats: rows begin 8 banks apart.
inline constexpr int mma_staging_pad = 8;

/// Bytes of shared memory that the epilogue needs where the CTA stages a tile: 16 rows for each row of warps.
constexpr int mma_staging_bytes(const MmaConfig& config)
{
    return 16 * config.warps_m * (config.tile_n + mma_staging_pad) * static_cast<int>(sizeof(float));
}

/// Fragments along M that a warp has room for in a ring of two stages.
constexpr int mma_fragments_in_two_stages(const MmaConfig& config)
{
    const int bytes =  // of a fragment of each warp
        config.threads() / 32 * 16 * (config.warp_n() + mma_staging_pad) * static_cast<int>(sizeof(float));
    int fragments = config.warp_m() / 16;
    while (fragments * bytes > 2 * config.stage_bytes()) {
        fragments /= 2;
    }
    return fragments;
}

/// Fragments along M that a warp stages for itself, where it does: all of them in the code for GPUs that have shared memory for
/// more than two stages, 9.0 to 11.x. Then its accumulators are free when it finishes the first.
template <class Config>
inline constexpr int mma_own_fragments =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
    Config::config.warp_m() / 16;
#else
    mma_fragments_in_two_stages(Config::config);
#endif

constexpr bool is_valid(const MmaConfig& config)
{
    return config.warp_m() % 16 == 0 && config.warp_n() % 16 == 0 && config.warp_m() <= 64 && config.warp_n() <= 64 &&
           config.tile_m * 8 % config.threads() == 0 && config.tile_n * 8 % config.threads() == 0 &&
           mma_staging_bytes(config) <= config.stage_bytes() && mma_fragments_in_two_stages(config) > 0;
}

// A configuration has a name, a type, since tuning files and kernels' symbols show it.
#define TESSERA_MMA_CONFIG(NAME, ...)                   \
    struct NAME {                                       \
        static constexpr MmaConfig config{__VA_ARGS__}; \
        static constexpr std::string_view name = #NAME; \
        static_assert(is_valid(config));                \
    }

TESSERA_MMA_CONFIG(Mma256x128, .tile_m = 256, .tile_n = 128, .warps_m = 4, .warps_n = 2, .step_cycles = 1700,
                   .lone_step_cycles = 1700);
TESSERA_MMA_CONFIG(Mma128x128, .tile_m = 128, .tile_n = 128, .warps_m = 2, .warps_n = 2, .step_cycles = 955,
                   .lone_step_cycles = 1140);
TESSERA_MMA_CONFIG(Mma128x128Wide, .tile_m = 128, .tile_n = 128, .warps_m = 2, .warps_n = 4, .step_cycles = 950,
                   .lone_step_cycles = 950);
TESSERA_MMA_CONFIG(Mma64x128, .tile_m = 64, .tile_n = 128, .warps_m = 2, .warps_n = 2, .step_cycles = 475,
                   .lone_step_cycles = 1105, .for_75 = true, .for_80 = false);
TESSERA_MMA_CONFIG(Mma64x64, .tile_m = 64, .tile_n = 64, .warps_m = 2, .warps_n = 2, .step_cycles = 315,
                   .lone_step_cycles = 315, .for_75 = true);
TESSERA_MMA_CONFIG(Mma64x64Any, .tile_m = 64, .tile_n = 64, .warps_m = 2, .warps_n = 2, .step_cycles = 600,
                   .lone_step_cycles = 800, .for_75 = true, .any_alignment = true);
TESSERA_MMA_CONFIG(Mma32x128, .tile_m = 32, .tile_n = 128, .warps_m = 1, .warps_n = 4, .step_cycles = 425,
                   .lone_step_cycles = 425, .for_75 = true);
TESSERA_MMA_CONFIG(Mma16x64, .tile_m = 16, .tile_n = 64, .warps_m = 1, .warps_n = 4, .step_cycles = 175,
                   .lone_step_cycles = 175, .for_75 = true);

// Sums in f16. The cycles are not measured: NVIDIA's data sheets of GPUs for graphics say twice the rate of sums in f32, and
// each sum of a step is converted and added. Where the rates are equal (T4, A100, H100) they are too low, but choose only between
// these tiles and those for few rows.
TESSERA_MMA_CONFIG(Mma128x128F16Sums, .tile_m = 128, .tile_n = 128, .warps_m = 2, .warps_n = 4, .step_cycles = 600,
                   .lone_step_cycles = 600, .f16_sums = true);
TESSERA_MMA_CONFIG(Mma64x128F16Sums, .tile_m = 64, .tile_n = 128, .warps_m = 2, .warps_n = 2, .step_cycles = 310,
                   .lone_step_cycles = 620, .for_75 = true, .for_80 = false, .f16_sums = true);
TESSERA_MMA_CONFIG(Mma64x64F16Sums, .tile_m = 64, .tile_n = 64, .warps_m = 2, .warps_n = 2, .step_cycles = 200,
                   .lone_step_cycles = 200, .for_75 = true, .f16_sums = true);

#undef TESSERA_MMA_CONFIG

}  // namespace tessera::kernels
