#pragma once

/// Definition of the table entry that hopper_table.hpp declares.

#include "hopper_gemm.cuh"
#include "hopper_table.hpp"

namespace tessera::kernels::detail {

template <class Config, int ElementBytes>
HopperKernel hopper_kernel()
{
    constexpr HopperConfig config = Config::config;
    return {.name = config.name,
            .function = reinterpret_cast<const void*>(&hopper_gemm<Config, ElementBytes>),
            .tile_m = config.tile_m,
            .tile_n = config.tile_n,
            .block_k = HopperConfig::hopper_row_bytes / ElementBytes,
            .stages = config.stages,
            .stages_in_turn = config.stages_in_turn(),
            .consumers = config.consumers,
            .ping_pong = config.schedule == HopperSchedule::ping_pong,
            .shares_tiles = config.shares_tiles(),
            .two_level_columns = ElementBytes == 1 ? config.two_level_columns() : 0,
            .copies = config.copies,
            .carries_c = config.carries_c(),
            .streams = config.streams(ElementBytes),
            .streams_parts = config.streams_parts(ElementBytes),
            .gates = config.gates(),
            .epilogue_columns = config.epilogue_columns(),
            .c_slots_16_bit = config.c_slots(2),
            .c_slots_f32 = config.c_slots(4),
            .ctas = config.ctas,
            .threads = config.threads(),
            .shared_bytes = static_cast<std::size_t>(config.shared_bytes())};
}

}  // namespace tessera::kernels::detail
