#pragma once

// The wgmmas that one warp has in flight, and its share of the CTA's registers.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "checks/clocks.hpp"
#include "execute/fragment.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

/// Registers of one function call. The call may be over when asynchronous work completes.
struct FrameRegisters {
    Frame* frame = nullptr;
    std::uint64_t generation = 0;
    std::span<const Ref> refs, sorted;  ///< in the payload of a wgmma

    FrameRegisters() = default;
    FrameRegisters(Frame* frame_, std::span<const Ref> refs_, std::span<const Ref> sorted_);
    [[nodiscard]] std::uint32_t* row(std::size_t index) const noexcept
    {
        return reinterpret_cast<std::uint32_t*>(frame->registers + (refs[index] & 0x3FFFFFFF));
    }
    /// Returns false if the function has returned.
    [[nodiscard]] bool exist() const noexcept { return frame->generation == generation; }
    [[nodiscard]] bool contain(const Frame* of, Ref ref) const noexcept;
    [[nodiscard]] bool overlap(const FrameRegisters& other) const noexcept;
    bool operator==(const FrameRegisters& other) const noexcept;
};

/// The accumulator of one or more wgmmas, 16 rows of the warp, until wait_group.
struct WgmmaAccumulator {
    FrameRegisters registers;
    AccumulatorFragment fragment;
    std::vector<std::uint32_t> values;  ///< fragment.rows x fragment.columns: bits of f32 (f16 sums, too) or s32
    bool in_registers = true;           ///< the registers have the value, because an instruction accessed one of them
    std::uint64_t end = 0;              ///< one past the last wgmma that accumulates into it
    const Operation* last = nullptr;    ///< that wgmma
};

/// Registers from which a wgmma in flight reads A.
struct WgmmaOperandRegisters {
    FrameRegisters registers;
    std::uint64_t end = 0;
    const Operation* operation = nullptr;
};

struct WarpgroupState {
    std::uint64_t issued = 0;           ///< number of wgmmas
    std::uint64_t completed = 0;        ///< in the order of issue
    std::deque<std::uint64_t> groups;   ///< `issued` at each commit_group not yet waited for
    std::deque<SyncPoint> completions;  ///< of the wgmmas from `acquired` on
    std::uint64_t acquired = 0;
    bool fenced = false;                                       ///< wgmma.fence was executed
    std::vector<std::shared_ptr<WgmmaAccumulator>> in_flight;  ///< until they are waited for
    std::vector<WgmmaOperandRegisters> operands;               ///< the same

    /// The last write of a register that a wgmma uses, by another instruction.
    struct Written {
        std::uint64_t fences = 0;  ///< one more than wgmma.fences before it; 0: not written
        const Operation* operation = nullptr;
    };
    std::vector<Written> written;  ///< by the place of the row in the frame, in units of 64 bytes
    std::uint64_t written_in = 0;  ///< generation of the frame
    std::uint64_t fences = 0;      ///< number of wgmma.fences
    /// The write of the register since the last wgmma.fence; null if there is none.
    [[nodiscard]] const Written* written_since_fence(Ref row) const noexcept
    {
        const std::size_t place = row / 64;
        return place < written.size() && written[place].fences == fences + 1 ? &written[place] : nullptr;
    }

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

/// Waits for accumulators in flight that share a part of the registers. Returns false while they are not complete:
/// Split::wait is set. `found`: there are such accumulators.
[[nodiscard]] bool settle_overlapping(Warp& warp, const FrameRegisters& registers, bool& found);
/// Waits for accumulators in flight that are A of `wgmma`, and reports them. Returns false while they are not complete:
/// Split::wait is set.
[[nodiscard]] bool access_a(Warp& warp, const Operation& wgmma, std::span<const Ref> refs);
/// Returns the accumulator in these registers: one in flight, or a new one with the registers' contents
/// (`read_registers`).
[[nodiscard]] std::shared_ptr<WgmmaAccumulator> take_accumulator(Warp& warp, FrameRegisters registers,
                                                                 const AccumulatorFragment& fragment,
                                                                 bool read_registers);
/// Reports that a register which `wgmma` reads was written since the last wgmma.fence.
void check_fence(Warp& warp, const Operation& wgmma, std::span<const Ref> refs, const char* what);
/// A wgmma writes D: what another instruction wrote there before does not matter to the next one.
void overwrite_accumulator(Warp& warp, std::span<const Ref> refs);
/// For wait_group: all wgmmas before `end` are complete. Writes their accumulators to the registers.
void waited(Warp& warp, std::uint64_t end);

}  // namespace tessera::emulator
