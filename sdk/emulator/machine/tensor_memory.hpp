#pragma once

// Tensor memory of one CTA (PTX ISA "Tensor Memory"): 128 lanes of 512 columns of 32 bits, its allocations, and the
// state of each column: which lanes were written, by whom last, who has read them since, and which work on them is not
// complete.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lanes.hpp"
#include "base/spare_objects.hpp"
#include "checks/clocks.hpp"
#include "checks/shared_shadow.hpp"
#include "machine/async_operation.hpp"

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

/// A set of the 128 lanes.
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
    /// Bit i is set if the set has one of the lanes 16i .. 16i+15.
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
    [[nodiscard]] constexpr TensorLanes without(const TensorLanes& other) const noexcept
    {
        return {{bits[0] & ~other.bits[0], bits[1] & ~other.bits[1]}};
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

/// What one operation reads and writes in the tensor memory of one CTA.
struct TensorFootprint {
    std::vector<TensorRegion> reads, writes;
    [[nodiscard]] bool conflicts(const TensorFootprint& later) const noexcept;
};

/// An access to tensor memory, for checks.
struct TensorAccess {
    enum class Kind : std::uint8_t {
        load,        ///< ld; also dealloc, which needs all work on its columns to be complete
        store,       ///< st
        accumulate,  ///< D of an mma
        operand,     ///< A, scale factors or metadata of an mma
        copy,        ///< cp
        shift,       ///< shift
    };
    Kind kind = Kind::load;
    Agent agent = 0;
    Epoch issue;                    ///< time of the issuing warp; only for work of the tensor core
    std::uint64_t accumulator = 0;  ///< for an mma: place and shape of D
    bool starts_anew = false;       ///< for an mma: D's old contents do not matter
    const char* what = "";
    std::uint32_t line = 0;  ///< of the PTX text
    /// Returns true for work of the tensor core, which keeps the order of issue in some cases; not ld and st.
    [[nodiscard]] bool pipelined() const noexcept { return kind >= Kind::accumulate; }
};

/// Asynchronous work of the tensor core (mma, cp, shift) and the commits that wait for it. Work is ready when
/// everything that it must follow is complete.
class TensorWork : public AsyncOperation {
public:
    [[nodiscard]] bool ready(const Cluster&) const override { return blockers == 0; }

    unsigned cta_group = 1;
    std::uint64_t thread = 0;  ///< the issuer: CTA, warp, lane
    Epoch issue;               ///< time of the issuing warp
    bool is_commit = false;
    unsigned blockers = 0;               ///< number of earlier operations that are not complete
    std::vector<TensorWork*> followers;  ///< later work that waits for this
    std::array<Cta*, 2> ctas{};          ///< CTAs whose tensor memory it uses; the second for pairs
    std::array<TensorFootprint, 2> footprint;
    SyncPoint known;  ///< for a commit: what the work before it has done
};

class TensorMemory : public Spare<TensorMemory> {
public:
    explicit TensorMemory(Cta& cta);

    // --- contents ---
    /// Words from one lane to the next: more than 512, so that lanes do not share cache sets.
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
    /// First of `columns` free columns; nothing if there are none.
    [[nodiscard]] std::optional<unsigned> find_free(unsigned columns) const noexcept;
    /// The same for columns that are free in both CTAs.
    [[nodiscard]] std::optional<unsigned> find_free(unsigned columns, const TensorMemory& peer) const noexcept;
    void allocate(const Allocation& allocation);
    /// Frees the allocation at `column`. Contents are forgotten.
    void release(unsigned column);
    [[nodiscard]] const Allocation* allocation_at(unsigned column) const noexcept;
    [[nodiscard]] const std::vector<Allocation>& allocations() const noexcept { return allocations_; }
    [[nodiscard]] unsigned allocated_columns() const noexcept;
    /// "columns 0 to 127 (warp 0, PTX line 20)", or "nothing"
    [[nodiscard]] std::string describe_allocations() const;
    /// Called when the CTA has exited: remaining allocations end the launch with error 721.
    void check_leaks();

    bool relinquished = false;  ///< the CTA gave up the right to allocate
    unsigned last_columns = 0;  ///< of the previous allocation
    unsigned cta_group = 0;     ///< of the CTA's tcgen05 instructions; 0: none so far

    /// One half of a pair's alloc, dealloc or relinquish whose other half has not arrived.
    struct PairRequest {
        enum class Kind : std::uint8_t { allocate, release } kind = Kind::allocate;
        std::uint32_t warp = 0;
        unsigned columns = 0;
        std::uint32_t column = 0;          ///< release: where; allocate: the result
        std::uint32_t result_address = 0;  ///< allocate: address in shared memory for the result
        bool done = false;                 ///< the other half has arrived
        const Operation* operation = nullptr;
        SyncPoint arriving{};  ///< what the requesting warp knew; when done, what the other warp knew
    };
    std::map<std::uint32_t, PairRequest> requests;  ///< by warp

    // --- checks; they return nothing if checks are off ---
    // Returns a finding unless all of the region is allocated.
    [[nodiscard]] std::optional<ShadowFinding> check_allocated(const TensorRegion& region, const char* what) const;
    /// Returns a finding unless all lanes of all columns were written since their allocation.
    [[nodiscard]] std::optional<ShadowFinding> check_initialized(const TensorRegion& region, const char* what) const;
    [[nodiscard]] bool written(TensorAddress place) const noexcept
    {
        return (initialized_[place.column].bits[place.lane / 64] >> (place.lane % 64) & 1) != 0;
    }
    [[nodiscard]] bool all_written(const TensorRegion& region) const noexcept;
    [[nodiscard]] bool any_written(const TensorRegion& region) const noexcept;
    /// A load has read the region, which is not all written. If an MMA writes columns of it that no one has written yet,
    /// write() reports that the load came too early.
    void note_early_load(const TensorRegion& region, std::uint32_t line);
    /// Checks that a read, a write or both come in order after the last write and, for a write, after the reads since
    /// then. Records the access in any case; a write marks the lanes as written.
    std::optional<ShadowFinding> read(const TensorRegion& region, const TensorAccess& access);
    std::optional<ShadowFinding> write(const TensorRegion& region, const TensorAccess& access);
    /// Records that a load or store, checked when it was issued, is now known to be complete.
    void happened(const TensorRegion& region, const TensorAccess& access);

    // --- loads and stores of warps. Loads read when they are issued, because PTX allows using the registers from then
    // on; until wait::ld they count as in flight. Stores write when they are issued in the schedule in_order, else at
    // wait::st, as late as PTX allows.
    struct OutstandingAccess {
        std::uint32_t warp = 0;
        bool is_store = false;
        std::vector<TensorRegion> regions;
        const Operation* operation = nullptr;
        std::uint32_t line = 0;
        TensorAddress address;              ///< st: where
        LaneMask lanes = 0;                 ///< and for which lanes
        std::vector<std::uint32_t> values;  ///< still to be written: register by register, 32 lanes each
    };
    std::vector<OutstandingAccess> outstanding;
    /// Returns a finding if a warp's load or store of the region was not waited for. `writes`: loads count, too.
    [[nodiscard]] std::optional<ShadowFinding> check_outstanding(const TensorRegion& region, bool writes,
                                                                 const char* what) const;

    // --- work of the tensor core ---
    // Incomplete work, in the order of issue.
    std::vector<TensorWork*> pending;
    /// Per issuing thread (and CTA group): its completed work, for later commits.
    std::map<std::uint64_t, SyncPoint> completed;
    /// Pending work that writes the region or, if `uses`, uses it.
    [[nodiscard]] const TensorWork* pending_on(const TensorRegion& region, bool uses) const noexcept;

private:
    struct Mark {  // an access to a column, in 16 lanes: the granularity of the smallest layouts and loads
        TensorAccess access;
        Epoch done;
        TensorRegion region;
    };
    struct Cell {  // indices into marks_; 0: none
        std::uint32_t writer = 0, load = 0, operand = 0;
    };
    template <bool writes>
    std::optional<ShadowFinding> touch(const TensorRegion& region, const TensorAccess& access, bool check);
    [[nodiscard]] std::optional<ShadowFinding> check_mark(std::uint32_t mark, bool wrote, const TensorAccess& access,
                                                          bool writes, unsigned column) const;
    /// An accumulator that the write destroys in part, although nothing has read what it destroys.
    [[nodiscard]] std::optional<ShadowFinding> check_lost(const Cell& cell, const TensorRegion& region,
                                                          const TensorAccess& access) const;
    std::uint32_t add_mark(const TensorAccess& access, const TensorRegion& region);
    void prepare();

    Cta& cta_;
    std::vector<std::uint32_t> words_;  // allocated when first needed
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

/// Submits work of the tensor core to the cluster, issued by `lane` of `warp`. Its footprints must be set. Work on the
/// tensor memory of one CTA (or pair) keeps the order of issue where footprints conflict. A commit follows all earlier
/// work of its thread and CTA group.
void submit(Cluster& cluster, std::unique_ptr<TensorWork> work, Warp& warp, const Operation& operation, unsigned lane);
/// Called by the work's step() when it is complete.
void complete(Cluster& cluster, TensorWork& work);

}  // namespace tessera::emulator
