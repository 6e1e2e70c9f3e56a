#pragma once

// One warp: its splits (lanes that run together), their frames, and everything that instructions may use.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/lanes.hpp"
#include "base/spare_objects.hpp"
#include "checks/local_shadow.hpp"
#include "checks/read_log.hpp"
#include "checks/report.hpp"
#include "checks/undefined_values.hpp"
#include "machine/async_groups.hpp"
#include "machine/cta.hpp"
#include "machine/warp_barriers.hpp"
#include "program/decoder.hpp"
#include "program/effects.hpp"
#include "program/operation.hpp"

namespace tessera::emulator {

struct WarpgroupState;  // execute/wgmma_state.hpp
class Warp;

/// Called before an operation that names a register which a wgmma of its function uses after it was issued. Returns
/// false if the operation must wait: Split::wait is set. (execute/wgmma_accumulator.cpp)
[[nodiscard]] bool access_late_registers(Warp& warp, const Operation& operation, LaneMask active);

/// Registers, .param and .local variables of one function call, for all lanes.
struct Frame : Spare<Frame> {
    const FunctionCode* function = nullptr;
    Frame* caller = nullptr;
    std::uint32_t return_pc = 0;
    const Operation* call = nullptr;    ///< the call instruction; null for the kernel
    std::vector<std::byte> storage;     ///< registers
    std::byte* registers = nullptr;     ///< 64-byte aligned, in `storage`
    std::vector<std::byte> parameters;  ///< lane-major: lane * function->parameter_bytes
    std::uint32_t local_base = 0;       ///< of its .local variables, in each lane's local memory
    std::uint32_t references = 0;       ///< number of splits and frames that hold it
    std::uint64_t generation = 0;       ///< another one for each call, because frames are used again
    std::uint64_t stack = 0;            ///< bytes of a thread's stack, of this call and its callers
};

/// Why a split does not continue. Set by the handler that returns Step::wait; `kind` is none while the split runs.
struct Wait {
    enum class Kind : std::uint8_t {
        none,
        lanes,
        named_barrier,
        cluster_barrier,
        mbarrier,
        async_group,
        tensor_memory,
        launch_control,
        registers
    };
    Kind kind = Kind::none;
    std::uint32_t object = 0;  ///< barrier number or address
    std::uint32_t cta = 0;     ///< rank of the object's CTA
    std::uint64_t phase = 0;   ///< the awaited phase or number
    LaneMask lanes = 0;        ///< lanes: the missing ones
};

/// Lanes of a warp that are at the same place of the program and run together.
struct Split : Spare<Split> {
    LaneMask mask = 0;
    std::uint32_t pc = 0;
    Frame* frame = nullptr;
    std::vector<std::uint32_t> joins;  ///< indices into Warp::joins_, innermost last, where diverged lanes join again
    Wait wait;
    bool parked = false;         ///< at its innermost join
    bool granted = false;        ///< bar.warp.sync: the other lanes have arrived
    std::uint64_t seen = 0;      ///< Cluster::changes(), or the warp's executed count, at the last try
    std::uint64_t last_run = 0;  ///< the warp's executed count when it last ran
};

class Warp : public Spare<Warp> {
public:
    Warp(Cta& cta, std::uint32_t index, LaneMask lanes);
    ~Warp();

    Cta& cta;
    Cluster& cluster;
    const std::uint32_t index;  ///< in the CTA
    const Agent agent;          ///< in the cluster's Clocks
    const LaneMask lanes;       ///< existing threads
    LaneMask exited = 0;
    LaneMask carry = 0;        ///< the condition code CC.CF of each lane (add.cc, subc, madc)
    LocalShadow local_shadow;  ///< written bytes of local memory, if checks are on
    CopyGroups copies;         ///< cp.async
    CopyGroups bulk_copies;    ///< bulk copies that complete by groups
    WarpBarriers barriers;
    const std::span<const std::byte> parameters;  ///< of the kernel
    std::shared_ptr<WarpgroupState> warpgroup;    ///< wgmma and setmaxnreg; null until used

    // --- rows ---
    /// The 32 values of an operand.
    template <typename T>
    [[nodiscard]] T* row(Ref ref) noexcept
    {
        return reinterpret_cast<T*>(bases_[ref >> 30] + (ref & 0x3FFFFFFF));
    }
    template <typename T>
    [[nodiscard]] const T* row(Ref ref) const noexcept
    {
        return reinterpret_cast<const T*>(bases_[ref >> 30] + (ref & 0x3FFFFFFF));
    }
    /// The lanes in which a predicate is true.
    [[nodiscard]] LaneMask predicate(Ref ref) const noexcept { return *row<LaneMask>(ref); }
    [[nodiscard]] LaneMask predicate(Decoder::Predicate p) const noexcept
    {
        return p.negated ? ~predicate(p.row) : predicate(p.row);
    }
    void set_predicate(Ref ref, LaneMask active, LaneMask value) noexcept
    {
        LaneMask& p = *row<LaneMask>(ref);
        p = (p & ~active) | (value & active);
    }
    /// Address of a memory operand in `lane`, for absolute anchors: in the operand's state space.
    [[nodiscard]] std::uint64_t address(const AddressRef& ref, unsigned lane) const noexcept
    {
        if (ref.base == no_row) {
            return static_cast<std::uint64_t>(ref.offset);
        }
        const std::uint64_t base = ref.wide ? row<std::uint64_t>(ref.base)[lane] : row<std::uint32_t>(ref.base)[lane];
        return base + static_cast<std::uint64_t>(ref.offset);
    }

    // --- addresses of the last loads and stores ---
    /// The values of a register that holds addresses: first + lane * stride in the lanes `active`. If `bytes` is not 0:
    /// anything from first to first + stride in all lanes, at distances of multiples of `bytes`.
    struct KnownBase {
        std::uint8_t number = 0;  ///< Operation::base; 0: nothing is known
        std::uint8_t bytes = 0;
        LaneMask active = 0;
        std::uint64_t first = 0, stride = 0;
        std::uint32_t near_words = 0;  ///< of the first access: LaneOffsets::near_words
        KeptOffsets kept;
    };
    [[nodiscard]] KnownBase& known_base(std::uint8_t number) noexcept
    {
        return known_bases_[number % most_known_bases];
    }

    // --- control ---
    [[nodiscard]] Split& split() noexcept { return *current_; }
    [[nodiscard]] LaneMask live() const noexcept { return lanes & ~exited; }
    /// Branches for the lanes of `taken`; the other lanes of the split continue. `join`: where they meet again
    /// (no_join: nowhere).
    Step branch(LaneMask taken, std::uint32_t target, std::uint32_t join);
    /// Divides lanes by target: targets[lane] for the lanes of `active` (brx.idx, indirect calls).
    Step branch_indexed(LaneMask active, const std::uint32_t* targets, std::uint32_t join);
    /// Enters `callee` with the lanes of `active`. Those of `again` execute the call once more afterwards.
    Step call(const Operation& operation, LaneMask active, const FunctionCode& callee, std::uint32_t return_pc,
              LaneMask again = 0);
    Step leave(LaneMask active);  ///< ret
    Step exit(LaneMask active);
    /// For instructions that need all lanes of `members` at this operation (shfl.sync, bar.warp.sync). Returns true if
    /// the current split has all of them; exited lanes do not count. Otherwise Wait::lanes is set, the handler returns
    /// Step::wait, and the splits are merged when the others arrive.
    bool gather(LaneMask members);
    /// Returns true if the split is the whole live warp. Returns false while other lanes may still arrive, however long
    /// they take; the handler must then return Step::wait. Returns true and reports `divergent_aligned` once it is
    /// clear that they will not: no path leads them here, or they wait for this split.
    bool gather_aligned(const Operation& operation);

    // --- reports ---
    void report(const Operation& operation, FindingKind kind, LaneMask lanes, FindingText text, bool error = false);
    /// For what a loop may report again and again: `text()` is called unless the instruction has reported a finding of
    /// this kind in this CTA before. `detail` tells apart findings that Finding::cause tells apart.
    template <std::invocable Text>
    void report(const Operation& operation, FindingKind kind, LaneMask lanes_, Text&& text, std::uint64_t detail = 0)
    {
        if (!repeats(operation, kind, lanes_, detail)) {
            report_first(operation, kind, lanes_, text(), detail);
        }
    }
    /// The next such report() only counts.
    [[nodiscard]] bool is_known(const Operation& operation, FindingKind kind, std::uint64_t detail) const;
    /// Reports an error and throws Fault.
    [[noreturn]] void fault(const Operation& operation, FindingKind kind, int code, LaneMask lanes,
                            std::string message);
    [[nodiscard]] bool checks() const noexcept;
    /// Number of instructions so far.
    [[nodiscard]] std::uint64_t executed() const noexcept { return executed_; }

    // --- undefined values (machine/warp_undefined.cpp) ---
    // `operation` read an undefined value into the lanes `undefined` of the register `row`. It is reported, with
    // `message()`, when the value is used.
    template <typename Message>
    void follow(const Operation& operation, Ref row, LaneMask undefined, FindingKind kind, Message&& message)
    {
        const UndefinedValues::OriginId origin = undefined_.origin(operation, kind, message);
        undefined_.write(current_->frame, row, undefined, {undefined, origin});
        follows_ = true;
    }
    /// The register `row` has no value until so many wgmmas of the warp were waited for; `wgmma` computes it.
    void follow_in_flight(const Operation& wgmma, Ref row, std::uint64_t until);
    /// Reports that `operation` uses a value in the lanes `lanes` of `row` that is in flight.
    void report_in_flight(const Operation& operation, Ref row, LaneMask lanes);
    /// So many wgmmas of the warp were waited for.
    void end_in_flight(std::uint64_t wgmmas);
    /// Returns true if there are undefined values now. If not, the other functions need not be called.
    [[nodiscard]] bool follows_undefined() const noexcept { return follows_; }
    /// The undefined lanes of a register of the current frame.
    [[nodiscard]] LaneMask undefined_lanes(Ref row) const noexcept { return undefined_.of(current_->frame, row).mask; }
    /// The load that some bits of the undefined lanes of `row` still come from, while `and` or `bfi` has defined others.
    /// Null if there is none.
    [[nodiscard]] const Operation* masked_origin(Ref row) const noexcept;
    /// Reports that `operation` uses the undefined value in the lanes `lanes` of `row`.
    void report_undefined(const Operation& operation, Ref row, LaneMask lanes);

    // --- execution, for the cluster's scheduler ---
    /// Runs up to `budget` operations, and if `to_visible` no second visible one. Returns how many were executed; 0 if
    /// every split waits.
    template <bool to_visible>
    unsigned run(unsigned budget);
    /// The last run ended with a test that failed.
    [[nodiscard]] bool has_yielded() const noexcept { return has_yielded_; }
    [[nodiscard]] bool finished() const noexcept { return exited == lanes; }
    /// Returns true if run() could execute something.
    [[nodiscard]] bool runnable() const;
    /// Lets lanes at a join continue without the others, because the others cannot arrive. Returns true if there were
    /// any.
    bool release_parked();
    [[nodiscard]] const std::vector<std::unique_ptr<Split>>& splits() const noexcept { return splits_; }
    /// Pointer to a lane's local memory at its local address.
    [[nodiscard]] std::byte* local_bytes(unsigned lane, std::uint64_t address, std::uint64_t size);
    /// Bytes of local memory of a lane: the distance between the same address of two lanes.
    [[nodiscard]] std::uint32_t local_stride() const noexcept { return local_stride_; }
    [[nodiscard]] Operation const& operation_at(std::uint32_t pc) const noexcept;

    static constexpr std::uint32_t no_join = 0xFFFFFFFF;

private:
    struct Join {
        std::uint32_t pc = 0;
        Frame* frame = nullptr;
        LaneMask mask = 0;  // lanes that are expected
        bool in_use = false;
        std::uint64_t since = 0;  // operations executed by the warp when the first split parked
    };
    [[nodiscard]] Split* pick();
    void select(Split& split) noexcept;
    Split& new_split(const Split& like, LaneMask mask, std::uint32_t pc);
    void remove(Split& split);
    Frame* new_frame(const FunctionCode& function, Frame* caller);
    void release(Frame* frame);
    void check_stack(const Operation& operation, LaneMask active, const FunctionCode& callee);
    [[nodiscard]] bool waits(const Split& split) const;
    bool arrive_at_join(Split& split);
    void check_joins();  // after lanes have exited: parked splits may be complete
    // All but the outermost `keep`: other splits no longer wait there for its lanes.
    void leave_joins(Split& split, std::size_t keep);
    std::uint32_t add_join(std::uint32_t pc, Frame* frame, LaneMask mask);
    void free_unused_join(std::uint32_t join);
    void absorb(Split& into, Split& from);  // both are at the same place
    // `from` is of the same call as `to`. Its lanes `moved` continue in `to`.
    void move_lanes(Frame& to, Frame& from, LaneMask moved);
    // The next thing that the split does is to end its lanes.
    [[nodiscard]] bool exits_next(const Split& split) const;
    // The lanes without which a split that waits at a join, or for lanes, does not continue.
    [[nodiscard]] LaneMask awaited_lanes(const Split& split) const;
    // The other lanes that may still arrive where `split` is.
    [[nodiscard]] LaneMask lanes_that_may_come(const Split& split);
    [[nodiscard]] bool may_reach(const Split& from, const Split& to);
    void initialize_constants();
    [[nodiscard]] bool repeats(const Operation& operation, FindingKind kind, LaneMask lanes_, std::uint64_t detail);
    void report_first(const Operation& operation, FindingKind kind, LaneMask lanes_, FindingText text,
                      std::uint64_t detail);
    void pass_on_undefined(const Operation& operation);
    void pass_on_in_flight(const Operation& operation, ValueFlow flow, const OperandRoles& roles);
    void update_follows() noexcept { follows_ = !undefined_.empty() || !in_flight_.empty(); }

    std::array<std::byte*, 4> bases_{};
    std::array<KnownBase, most_known_bases> known_bases_;
    Split* current_ = nullptr;
    bool has_yielded_ = false;
    bool follows_ = false;  ///< undefined_ or in_flight_ is not empty
    std::vector<std::unique_ptr<Split>> splits_;
    std::vector<Join> joins_;
    std::vector<std::byte> constants_storage_;  // rows of the warp's own constants
    std::vector<std::byte> local_;              // lane-major
    std::uint32_t local_stride_ = 0;
    Frame kernel_frame_;
    std::vector<std::unique_ptr<Frame>> frames_, spare_frames_;  ///< of other functions
    std::uint64_t executed_ = 0;
    std::uint64_t calls_ = 0;  ///< number of frames so far
    unsigned parked_ = 0;
    std::map<std::uint32_t, std::vector<bool>> ways_to_;  // by operation: see operations_before()
    UndefinedValues undefined_;
    UndefinedValues in_flight_;  ///< apart, because a register may hold values of both kinds
};

}  // namespace tessera::emulator
