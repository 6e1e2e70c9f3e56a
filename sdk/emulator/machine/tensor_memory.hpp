#pragma once

// Tensor memory of one CTA (PTX ISA "Tensor Memory"): 128 lanes of 512 columns of 32 bits, who has allocated them, and
// what is known of each column: which lanes were written, by whom last, who read them since, and which work on them is
// not done.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checks/clocks.hpp"
#include "checks/shared_shadow.hpp"
#include "machine/async_operation.hpp"
#include "machine/lanes.hpp"

namespace tessera::emulator {

class Cluster;
class Cta;
class TensorWork;
class Warp;

inline constexpr unsigned tensor_lanes = 128;
inline constexpr unsigned tensor_columns = 512;

/// An address in tensor memory: lane in bits 16-31, column in bits 0-15.
struct TensorAddress {
    std::uint32_t lane = 0, column = 0;
    TensorAddress() = default;
    constexpr TensorAddress(std::uint32_t lane_index, std::uint32_t column_index) noexcept
        : lane(lane_index), column(column_index)
    {}
    explicit constexpr TensorAddress(std::uint32_t bits) noexcept : lane(bits >> 16), column(bits & 0xFFFF) {}
    [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return lane << 16 | column; }
};

/// Any of the 128 lanes.
struct TensorLanes {
    std::array<std::uint64_t, 2> bits{};
    [[nodiscard]] static constexpr TensorLanes range(unsigned first, unsigned count) noexcept
    {
        TensorLanes result;
        for (unsigned lane = first; lane < first + count && lane < tensor_lanes; ++lane) {
            result.bits[lane / 64] |= std::uint64_t{1} << (lane % 64);
        }
        return result;
    }
    [[nodiscard]] constexpr bool any() const noexcept { return (bits[0] | bits[1]) != 0; }
    /// Bit i: some lane of 16i .. 16i+15 is in it.
    [[nodiscard]] constexpr unsigned groups() const noexcept
    {
        unsigned result = 0;
        for (unsigned group = 0; group < 8; ++group) {
            result |= (bits[group / 4] >> (16 * (group % 4)) & 0xFFFF) != 0 ? 1u << group : 0u;
        }
        return result;
    }
    [[nodiscard]] constexpr bool contains(const TensorLanes& other) const noexcept
    {
        return (other.bits[0] & ~bits[0]) == 0 && (other.bits[1] & ~bits[1]) == 0;
    }
    friend constexpr TensorLanes operator&(const TensorLanes& a, const TensorLanes& b) noexcept
    {
        return {{a.bits[0] & b.bits[0], a.bits[1] & b.bits[1]}};
    }
    friend constexpr TensorLanes operator|(const TensorLanes& a, const TensorLanes& b) noexcept
    {
        return {{a.bits[0] | b.bits[0], a.bits[1] | b.bits[1]}};
    }
};

/// Some lanes of consecutive columns.
struct TensorRegion {
    TensorLanes lanes;
    unsigned column = 0, columns = 0;
    [[nodiscard]] bool overlaps(const TensorRegion& other) const noexcept
    {
        return column < other.column + other.columns && other.column < column + columns && (lanes & other.lanes).any();
    }
};

/// What one operation does to the tensor memory of one CTA.
struct TensorFootprint {
    std::vector<TensorRegion> reads, writes;
    [[nodiscard]] bool conflicts(const TensorFootprint& later) const noexcept;
};

/// Who accesses tensor memory, for checks.
struct TensorAccess {
    enum class Kind : std::uint8_t {
        load,        ///< ld, and dealloc, which wants everything on its columns to be over
        store,       ///< st
        accumulate,  ///< D of an mma
        operand,     ///< A, scale factors or metadata of an mma
        copy,        ///< cp
        shift,       ///< shift
    };
    Kind kind = Kind::load;
    Agent agent = 0;
    Epoch issue;                    ///< moment of the issuing warp; only for work in the tensor core's pipeline
    std::uint64_t accumulator = 0;  ///< of an mma: place and shape of D
    const char* what = "";
    std::uint32_t line = 0;  ///< of the PTX text
    /// Work of the tensor core, which keeps the order of issue in some cases; not ld and st.
    [[nodiscard]] bool pipelined() const noexcept { return kind >= Kind::accumulate; }
};

/// Asynchronous work of the tensor core (mma, cp, shift) and the commits that wait for it. Work is ready when all that
/// it has to follow is done.
class TensorWork : public AsyncOperation {
public:
    [[nodiscard]] bool ready(const Cluster&) const override { return blockers == 0; }

    unsigned cta_group = 1;
    std::uint64_t thread = 0;  ///< who issued it: CTA, warp, lane
    Epoch issue;               ///< moment of the issuing warp
    bool is_commit = false;
    unsigned blockers = 0;               ///< earlier work that is not done
    std::vector<TensorWork*> followers;  ///< later work that waits for this
    std::array<Cta*, 2> ctas{};          ///< whose tensor memory it uses; the second for pairs
    std::array<TensorFootprint, 2> footprint;
    SyncPoint known;  ///< of a commit: what the work that it follows has done
};

class TensorMemory {
public:
    explicit TensorMemory(Cta& cta);

    // --- contents ---
    /// Words from one lane to the next: more than 512, so that the lanes do not fall into the same cache sets.
    static constexpr std::size_t lane_stride = tensor_columns + 16;
    [[nodiscard]] std::uint32_t* lane(unsigned index)
    {
        if (words_.empty()) {
            prepare();
        }
        return words_.data() + index * lane_stride;
    }
    [[nodiscard]] std::uint32_t* at(TensorAddress address) { return lane(address.lane) + address.column; }

    // --- allocation ---
    struct Allocation {
        unsigned column = 0, columns = 0;
        unsigned cta_group = 1;
        std::uint32_t warp = 0;
        const Operation* operation = nullptr;  ///< the alloc
    };
    /// First column of `columns` free ones; nothing if there are none.
    [[nodiscard]] std::optional<unsigned> find_free(unsigned columns) const noexcept;
    /// The same for columns that are free in both.
    [[nodiscard]] std::optional<unsigned> find_free(unsigned columns, const TensorMemory& peer) const noexcept;
    void allocate(const Allocation& allocation);
    /// Frees the allocation at `column`. Contents are forgotten.
    void release(unsigned column);
    [[nodiscard]] const Allocation* allocation_at(unsigned column) const noexcept;
    [[nodiscard]] const std::vector<Allocation>& allocations() const noexcept { return allocations_; }
    [[nodiscard]] unsigned allocated_columns() const noexcept;
    /// "columns 0 to 127 (warp 0, PTX line 20)", or "nothing"
    [[nodiscard]] std::string describe_allocations() const;
    /// The CTA has exited: what is still allocated ends the launch with error 721.
    void check_leaks();

    bool relinquished = false;  ///< the CTA gave up the right to allocate
    unsigned last_columns = 0;  ///< of the allocation before
    unsigned cta_group = 0;     ///< that the CTA's tcgen05 instructions use; 0: none so far

    /// Part of a pair's alloc, dealloc or relinquish whose other half has not come yet.
    struct PairRequest {
        enum class Kind : std::uint8_t { allocate, release } kind = Kind::allocate;
        std::uint32_t warp = 0;
        unsigned columns = 0;
        std::uint32_t column = 0;          ///< release: where; allocate: the result
        std::uint32_t result_address = 0;  ///< allocate: where in shared memory the result goes
        bool done = false;                 ///< by the other half
        const Operation* operation = nullptr;
        SyncPoint arriving{};  ///< what the requesting warp knew; when done, what the other one knew
    };
    std::map<std::uint32_t, PairRequest> requests;  ///< by warp

    // --- checks; with checks off they return nothing at once ---
    /// Is all of the region allocated? Else a finding.
    [[nodiscard]] std::optional<ShadowFinding> check_allocated(const TensorRegion& region, const char* what) const;
    /// Were the lanes ever written? `each_lane`: every lane of every column; else at least one of each column, as loads
    /// of whole warps take lanes along that a half-filled layout does not have.
    [[nodiscard]] std::optional<ShadowFinding> check_initialized(const TensorRegion& region, const char* what,
                                                                 bool each_lane) const;
    /// A load has read what nobody had written. If an MMA writes it later, write() says that the load came too early.
    void note_early_load(const TensorRegion& region, std::uint32_t line) { early_loads_.push_back({region, line}); }
    /// A read, a write or both: in order after the last write and, for a write, after the reads since then? Notes the
    /// access either way; a write marks the lanes as written.
    std::optional<ShadowFinding> read(const TensorRegion& region, const TensorAccess& access);
    std::optional<ShadowFinding> write(const TensorRegion& region, const TensorAccess& access);
    /// Notes that a load or store that was checked when it was issued is now known to be over.
    void happened(const TensorRegion& region, const TensorAccess& access);

    // --- loads and stores of warps. Loads read when they are issued, as PTX promises that the registers may be used
    // from then on; but until wait::ld they count as under way. Stores write at wait::st.
    struct OutstandingAccess {
        std::uint32_t warp = 0;
        bool is_store = false;
        std::vector<TensorRegion> regions;
        const Operation* operation = nullptr;
        std::uint32_t line = 0;
        TensorAddress address;              ///< st: where, and
        LaneMask lanes = 0;                 ///< for which lanes
        std::vector<std::uint32_t> values;  ///< what, register by register, 32 lanes each
    };
    std::vector<OutstandingAccess> outstanding;
    /// A finding if some warp's load or store of the region has not been waited for; `writes`: loads count too.
    [[nodiscard]] std::optional<ShadowFinding> check_outstanding(const TensorRegion& region, bool writes,
                                                                 const char* what) const;

    // --- work in the tensor core's pipeline ---
    /// Not done yet, in the order of issue.
    std::vector<TensorWork*> pending;
    /// Per issuing thread (and CTA group): its work that is done, for commits to come.
    std::map<std::uint64_t, SyncPoint> completed;
    /// Pending work that writes the region (or uses it, if `uses`).
    [[nodiscard]] const TensorWork* pending_on(const TensorRegion& region, bool uses) const noexcept;

private:
    struct Mark {  // who did something to a column, in 16 lanes: what the smallest layouts and loads take
        TensorAccess access;
        Epoch done;
    };
    struct Cell {  // places in marks_; 0: nobody
        std::uint32_t writer = 0, load = 0, operand = 0;
    };
    template <bool writes>
    std::optional<ShadowFinding> touch(const TensorRegion& region, const TensorAccess& access, bool check);
    [[nodiscard]] std::optional<ShadowFinding> check_mark(std::uint32_t mark, bool wrote, const TensorAccess& access,
                                                          bool writes, unsigned column) const;
    std::uint32_t add_mark(const TensorAccess& access);
    void prepare();

    Cta& cta_;
    std::vector<std::uint32_t> words_;  // made when first needed
    std::vector<Allocation> allocations_;
    std::array<bool, tensor_columns> allocated_{}, was_allocated_{};
    std::array<TensorLanes, tensor_columns> initialized_{};
    std::vector<Cell> cells_;  // lane / 16 * 512 + column
    std::vector<Mark> marks_;
    struct EarlyLoad {
        TensorRegion region;
        std::uint32_t line;
    };
    std::vector<EarlyLoad> early_loads_;
    bool checks_;
};

/// Hands work of the tensor core over to the cluster, issued by `lane` of `warp`, after it was given its footprints.
/// Work on one CTA's (or pair's) tensor memory keeps the order of issue where footprints conflict; a commit follows all
/// earlier work of its thread and CTA group.
void submit(Cluster& cluster, std::unique_ptr<TensorWork> work, Warp& warp, const Operation& operation, unsigned lane);
/// Called by the work's step() when it is done.
void complete(Cluster& cluster, TensorWork& work);

}  // namespace tessera::emulator
