#pragma once

// Counts of what a launch did. A timing model could start from them: keep them free of judgement.

#include <array>
#include <cstdint>
#include <string>

namespace tessera::emulator {

enum class InstructionClass : std::uint8_t {
    integer,
    floating,
    conversion,
    memory,
    control,
    barrier,
    shuffle,
    tensor,
    copy,
    other,
    count
};

struct Statistics {
    std::array<std::uint64_t, static_cast<std::size_t>(InstructionClass::count)> warp_instructions{};
    std::uint64_t global_read_bytes = 0, global_write_bytes = 0;  ///< by ld, st, atom: visible to L2
    std::uint64_t shared_read_bytes = 0, shared_write_bytes = 0;
    std::uint64_t async_copy_bytes = 0;                     ///< cp.async
    std::uint64_t tma_load_bytes = 0, tma_store_bytes = 0;  ///< shared-memory side; multicast counts each destination
    std::uint64_t tma_global_read_bytes = 0;                ///< global side; multicast counts once
    std::uint64_t mma_issued = 0;                           ///< mma.sync, wgmma, tcgen05.mma
    std::uint64_t mma_operand_bytes = 0;                    ///< read from shared and tensor memory
    std::uint64_t mma_flops = 0;
    std::uint64_t barrier_waits = 0;   ///< waits of a warp at an mbarrier, stalled or not
    std::uint64_t barrier_stalls = 0;  ///< waits that stalled, at mbarriers and at other barriers
    std::uint64_t barrier_polls = 0;   ///< instructions that tested an mbarrier
    std::uint64_t clusters = 0, ctas = 0;
    std::uint64_t scheduler_steps = 0;
    std::uint64_t turns = 0;  ///< of clusters that synchronize with others; 0: all ran side by side
    /// In the schedule pct, the most of a cluster: warps and asynchronous works, and steps up to a visible operation.
    std::uint64_t pct_threads = 0, pct_steps = 0;
    /// Scheduler steps in which loads, MMAs and epilogue instructions were in flight: [loads][mmas][epilogue].
    std::array<std::uint64_t, 8> overlap_steps{};

    Statistics& operator+=(const Statistics& other) noexcept;
};

/// One line per count.
[[nodiscard]] std::string to_text(const Statistics& statistics);
[[nodiscard]] std::string to_json(const Statistics& statistics);

}  // namespace tessera::emulator
