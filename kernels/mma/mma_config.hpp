#pragma once

/// Configurations of the mma.sync kernel, as plain values that the host reads, too.
///
/// A CTA computes a tile of D; its warps divide the tile into equal parts of (warp_m, warp_n). It steps along K by 128 bytes
/// of each operand's element, through a ring of stages in shared memory. How many stages there are is up to the launch:
/// shared memory differs between GPUs.

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
    // H200 with bf16; the 8-bit tile's is derived from one product.
    int step_cycles;
    int lone_step_cycles;
    bool for_75 = false;         // its loads fit in the registers of 7.5, where no copy is asynchronous
    bool any_alignment = false;  // of the operands; others need multiples of 16 bytes as addresses and strides

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
/// Most stages of a ring; deeper ones did not help.
inline constexpr int mma_most_stages = 5;

/// Rows by which the epilogue's staging memory is padded, in floats: rows begin 8 banks apart.
inline constexpr int mma_staging_pad = 8;

/// Bytes of shared memory that the epilogue needs: 16 rows for each row of warps.
constexpr int mma_staging_bytes(const MmaConfig& config)
{
    return 16 * config.warps_m * (config.tile_n + mma_staging_pad) * static_cast<int>(sizeof(float));
}

constexpr bool is_valid(const MmaConfig& config)
{
    return config.warp_m() % 16 == 0 && config.warp_n() % 16 == 0 && config.warp_m() <= 64 && config.warp_n() <= 64 &&
           config.tile_m * 8 % config.threads() == 0 && config.tile_n * 8 % config.threads() == 0 &&
           mma_staging_bytes(config) <= config.stage_bytes();
}

// A configuration has a name, a type, since tuning files and kernels' symbols show it.
#define TESSERA_MMA_CONFIG(NAME, ...)                   \
    struct NAME {                                       \
        static constexpr MmaConfig config{__VA_ARGS__}; \
        static constexpr std::string_view name = #NAME; \
        static_assert(is_valid(config));                \
    }

TESSERA_MMA_CONFIG(Mma256x128, .tile_m = 256, .tile_n = 128, .warps_m = 4, .warps_n = 2, .step_cycles = 2070,
                   .lone_step_cycles = 2070);
TESSERA_MMA_CONFIG(Mma128x128, .tile_m = 128, .tile_n = 128, .warps_m = 2, .warps_n = 2, .step_cycles = 1150,
                   .lone_step_cycles = 1640);
TESSERA_MMA_CONFIG(Mma128x128Wide, .tile_m = 128, .tile_n = 128, .warps_m = 2, .warps_n = 4, .step_cycles = 2000,
                   .lone_step_cycles = 2000);
TESSERA_MMA_CONFIG(Mma64x128, .tile_m = 64, .tile_n = 128, .warps_m = 2, .warps_n = 2, .step_cycles = 720,
                   .lone_step_cycles = 1045, .for_75 = true);
TESSERA_MMA_CONFIG(Mma64x64, .tile_m = 64, .tile_n = 64, .warps_m = 2, .warps_n = 2, .step_cycles = 600,
                   .lone_step_cycles = 800, .for_75 = true, .any_alignment = true);
TESSERA_MMA_CONFIG(Mma32x128, .tile_m = 32, .tile_n = 128, .warps_m = 1, .warps_n = 4, .step_cycles = 495,
                   .lone_step_cycles = 635, .for_75 = true);
TESSERA_MMA_CONFIG(Mma16x64, .tile_m = 16, .tile_n = 64, .warps_m = 1, .warps_n = 4, .step_cycles = 230,
                   .lone_step_cycles = 415, .for_75 = true);

#undef TESSERA_MMA_CONFIG

}  // namespace tessera::kernels
