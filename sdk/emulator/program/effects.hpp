#pragma once

// What an operation does, as data: the registers it uses, the memory it accesses and in which order, what it
// synchronizes with. Decoder and the families' decoders fill the record while they decode. All code that does not
// execute the operation reads the record, never the PTX text: the assignment of registers, the scheduler, the checks.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/lanes.hpp"
#include "base/memory_kinds.hpp"
#include "base/registers.hpp"
#include "base/shuffle.hpp"

namespace tessera::emulator {

/// A register or a constant that an operation reads or writes. A destination is written completely in every lane that
/// executes the operation, unless it is used later.
struct OperandRole {
    Ref row = no_row;
    std::uint8_t bytes = 0;      ///< of a lane's value; 0: a predicate
    bool negated = false;        ///< a predicate that is read as !p
    bool later = false;          ///< asynchronous work uses it after the operation was issued
    LaneMask lanes = all_lanes;  ///< whose values matter, of ValueFlow::used
};

/// What becomes of an undefined value that an operation reads.
enum class ValueFlow : std::uint8_t {
    used,         ///< it decides something, or leaves the registers
    passed_on,    ///< the results are undefined, too
    moved,        ///< mov: the same, and a value that is not there yet may be moved
    selected,     ///< selp: only if it is selected
    conjunction,  ///< and: not if the other operand is 0
    disjunction,  ///< or: not if the other operand has all bits set
    inserted,     ///< bfi: some bits of the second operand stay
    shuffled,     ///< shfl: in the lanes that read it
    in_place,     ///< mov.v2, mov.v4: each result comes from the operand at its place
    stored,       ///< st: depends on the destination, see the handler
};

/// Where the lanes that execute the operation continue.
enum class Flow : std::uint8_t {
    next,
    branch,  ///< at one of BranchPayload::targets
    call,    ///< in a function of the program; they come back
    leave,   ///< ret
    end,     ///< exit, trap
};

/// Which lanes of a warp have to execute the operation together.
enum class Convergence : std::uint8_t {
    any,
    aligned,  ///< all that have not exited
    named,    ///< those in a member mask, which is an operand
};

/// The hardware that works on after the operation was issued.
enum class AsyncUnit : std::uint8_t {
    none,
    load_store,  ///< cp.async, st.async, red.async
    tma,         ///< bulk copies, with and without tensor maps
    tensor,      ///< wgmma, tcgen05
    launch_control,
};

struct MemoryEffect {
    Space space = Space::generic;
    Direction direction = Direction::read;
    std::uint32_t bytes = 0;  ///< per lane; 0: operands or descriptors say how many
    Proxy proxy = Proxy::generic;
    bool atomic = false;
    bool later = false;  ///< by asynchronous work
    MemoryOrder order{};
    friend constexpr bool operator==(const MemoryEffect&, const MemoryEffect&) = default;
};

enum class SyncObject : std::uint8_t {
    none,
    lanes,            ///< bar.warp.sync
    named_barrier,    ///< bar, barrier
    cluster_barrier,  ///< barrier.cluster
    mbarrier,
    memory,           ///< fence, membar
    async_proxy,      ///< fence.proxy.async
    other_proxy,      ///< fence.proxy of other proxies
    async_groups,     ///< cp.async, bulk copies and wgmma: commit_group and wait_group
    wgmma_registers,  ///< wgmma.fence
    tensor_memory,    ///< tcgen05.alloc, wait and fence
    register_pool,    ///< setmaxnreg
    grids,            ///< griddepcontrol
};

/// What an operation does to the object.
struct SyncEffect {
    SyncObject object = SyncObject::none;
    bool arrives = false, waits = false;
    bool fences = false, commits = false;
    bool manages = false;  ///< initializes, invalidates, expects, allocates, frees
    bool later = false;    ///< when the asynchronous work is complete
    MemoryOrder order{};
    friend constexpr bool operator==(const SyncEffect&, const SyncEffect&) = default;
};

struct Effects {
    ValueFlow flow = ValueFlow::used;
    std::optional<Shuffle> shuffle{};  ///< for ValueFlow::shuffled
    Flow control = Flow::next;
    Convergence lanes = Convergence::any;
    AsyncUnit unit = AsyncUnit::none;
    bool may_wait = false;             ///< executed again later if it cannot finish now
    bool meets_clusters = false;       ///< other clusters may observe it: see Cluster::may_meet
    bool depends_on_clusters = false;  ///< the order of clusters is part of the result: see KernelInfo
    std::uint8_t accesses = 0;         ///< number of entries of `memory`
    std::array<MemoryEffect, 2> memory{};
    SyncEffect sync{};

    /// Adds an access.
    void access(const MemoryEffect& effect) { memory.at(accesses++) = effect; }
    [[nodiscard]] std::span<const MemoryEffect> memory_effects() const noexcept { return {memory.data(), accesses}; }
    /// Returns true if no other agent can observe the operation: it works on registers of its own lanes only.
    [[nodiscard]] bool is_local() const noexcept
    {
        return accesses == 0 && sync.object == SyncObject::none && unit == AsyncUnit::none &&
               lanes == Convergence::any && control == Flow::next && !may_wait;
    }
    /// Returns true if it may matter which warp runs next: the operation synchronizes, or its accesses are strong, atomic
    /// or those of asynchronous work. Ordinary accesses do not count: if their order matters, it is a race, which every
    /// order shows.
    [[nodiscard]] bool is_visible() const noexcept;
};

/// The registers that an operation names: bases of addresses, then what it reads in the order of the text, constants
/// included, then what it writes, sinks included.
struct OperandRoles {
    std::span<const OperandRole> addresses, reads, writes;
};

/// The effects of all operations of a program.
class EffectsTable {
public:
    /// Adds the operation with this number; skipped operations have no effects.
    void add(std::uint32_t operation, const Effects& effects, const OperandRoles& roles);
    [[nodiscard]] const Effects& of(std::uint32_t operation) const noexcept { return entries_[operation].effects; }
    [[nodiscard]] OperandRoles roles(std::uint32_t operation) const noexcept;

private:
    struct Entry {
        Effects effects;
        std::uint32_t first = 0;
        std::uint16_t addresses = 0, reads = 0, writes = 0;
    };
    std::vector<Entry> entries_;
    std::vector<OperandRole> roles_;
};

}  // namespace tessera::emulator
