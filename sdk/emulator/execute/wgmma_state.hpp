#pragma once

// The wgmmas that one warp has in flight, and its share of the CTA's registers.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "checks/clocks.hpp"
#include "execute/fragment.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

/// Registers of a frame. The frame may be gone when asynchronous work completes.
struct FrameRegisters {
    Frame* frame = nullptr;
    std::vector<Ref> refs;

    [[nodiscard]] std::uint32_t* row(std::size_t index) const noexcept
    {
        return reinterpret_cast<std::uint32_t*>(frame->registers + (refs[index] & 0x3FFFFFFF));
    }
    friend bool operator==(const FrameRegisters&, const FrameRegisters&) = default;
};

/// The accumulator of one or more wgmmas, 16 rows of the warp. While they are in flight its value is here, and the
/// registers hold poison: each 32-bit value encodes an accumulator, register and lane. wait_group writes the value to
/// the registers.
///
/// A move of a poisoned register copies the poison; wait_group replaces these copies, too. Compilers make such moves,
/// because nothing in the PTX text says that a register is in flight. ptxas resolves them by waiting, or by using one
/// register for both.
struct WgmmaAccumulator {
    FrameRegisters registers;
    AccumulatorFragment fragment;
    std::vector<std::uint32_t> values;  ///< fragment.rows x fragment.columns: bits of f32 (f16 sums, too) or s32
    std::uint64_t end = 0;              ///< one past the last wgmma that accumulates into it
    std::uint32_t token = 0;            ///< poison of register 0, lane 0
    const Operation* last = nullptr;    ///< that wgmma
};

/// Registers from which a wgmma reads A, and their values when it was issued.
struct WgmmaOperandRegisters {
    FrameRegisters registers;
    std::vector<std::array<std::uint32_t, warp_size>> values;
    std::uint64_t end = 0;
    const Operation* operation = nullptr;
};

struct WarpgroupState {
    std::uint64_t issued = 0;           ///< number of wgmmas
    std::uint64_t completed = 0;        ///< in the order of issue
    std::deque<std::uint64_t> groups;   ///< `issued` at each commit_group not yet waited for
    std::deque<SyncPoint> completions;  ///< of the wgmmas from `acquired` on
    std::uint64_t acquired = 0;
    bool fenced = false;  ///< wgmma.fence was executed
    std::vector<std::shared_ptr<WgmmaAccumulator>> in_flight;
    std::vector<std::shared_ptr<WgmmaAccumulator>> written_back;  ///< since the last wgmma.fence
    std::vector<WgmmaOperandRegisters> operands;
    std::uint32_t next_token = 0;
    std::set<std::pair<std::uint32_t, Ref>> inspected;  ///< report_early_use: place, and first register in flight there

    /// The last wgmmas, for comparison with the other warps of the warpgroup: number i is at i % size.
    struct Issue {
        const Operation* operation = nullptr;
        std::uint64_t a = 0, b = 0;
        bool accumulate = false;
    };
    static constexpr std::size_t remembered = 64;
    std::array<Issue, remembered> issues{};

    std::uint32_t register_limit = 0;  ///< registers per thread, set by setmaxnreg; 0: as launched
};

[[nodiscard]] inline WarpgroupState& warpgroup_state(Warp& warp)
{
    if (warp.warpgroup == nullptr) {
        warp.warpgroup = std::make_shared<WarpgroupState>();
    }
    return *warp.warpgroup;
}

inline constexpr unsigned warps_per_warpgroup = 4;

/// The warps of the warpgroup, or only this one if the warpgroup is incomplete. A wgmma is one instruction of all four
/// warps. Waiting for it waits for all four parts, and one warp may release a stage to a producer for all of them, as
/// the pipelines of CUTLASS do.
[[nodiscard]] std::vector<Warp*> warps_that_wait_for_each_other(Warp& warp);

/// setmaxnreg: execute/register_pool.cpp.
void decode_setmaxnreg(Decoder& decoder, Operation& operation);

// --- accumulators in flight: execute/wgmma_accumulator.cpp ---

/// Returns the accumulator in these registers: one in flight, or a new one with the registers' contents
/// (`read_registers`). Poisons the registers. Returns null if a part of the registers belongs to another accumulator in
/// flight.
[[nodiscard]] std::shared_ptr<WgmmaAccumulator> take_accumulator(Warp& warp, const Operation& operation,
                                                                 FrameRegisters registers,
                                                                 const AccumulatorFragment& fragment,
                                                                 bool read_registers);
/// For wait_group: all wgmmas before `end` are complete. Writes their accumulators to the registers, and reports
/// accumulator or A registers that were written in the meantime.
void write_back(Warp& warp, std::uint64_t end);
/// Reports instructions between `pc` and the next wait or branch that use registers of accumulators in flight.
void report_early_use(Warp& warp, std::uint32_t pc);

}  // namespace tessera::emulator
