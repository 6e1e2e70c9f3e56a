#pragma once

// The state of each byte of a CTA's shared memory: whether it was written, by whom last, who has read it since, and
// which asynchronous operation still uses it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "checks/clocks.hpp"
#include "checks/report.hpp"

namespace tessera::emulator {

enum class Proxy : std::uint8_t { generic, async };

/// Result of a check: nothing, or a finding's kind and message. The caller adds the place.
struct ShadowFinding {
    FindingKind kind;
    std::string message;
};

/// The values of a store.
class StoredBytes {
public:
    /// Returns true if the store does not change these bytes of the word at `offset`. `bytes` has one bit for each.
    [[nodiscard]] virtual bool unchanged(std::uint32_t offset, std::uint8_t bytes) const = 0;

protected:
    ~StoredBytes() = default;
};

/// Finds races as FastTrack does (Flanagan and Freund, PLDI 2009): for each word of 4 bytes, the last write and the
/// reads since then, as times of agents. Bytes within a word are distinguished only as far as this gives no false
/// alarm: of several agents that access different bytes of one word, only the last is remembered. Lanes of one warp
/// never race with each other.
class SharedShadow {
public:
    /// `same_value_races`: unordered stores of equal values are findings, too.
    SharedShadow(std::uint32_t bytes, const Clocks& clocks, bool same_value_races = false);

    /// `agent` reads or writes [offset, offset + size) through `proxy`. `atomic` accesses do not race with each other.
    /// `what` names the access in messages of later conflicts ("st.shared", "bulk copy", "tcgen05.mma"); it must
    /// outlive the shadow. `lane` is the lane of the warp, if there is one: fence.proxy.async counts for each lane
    /// alone. With `unwritten`, bytes that were never written are no finding; the flag is set instead.
    std::optional<ShadowFinding> read(Agent agent, std::uint32_t offset, std::uint32_t size, Proxy proxy,
                                      const char* what, std::uint32_t ptx_line, bool atomic = false,
                                      bool* unwritten = nullptr);
    std::optional<ShadowFinding> write(Agent agent, std::uint32_t offset, std::uint32_t size, Proxy proxy,
                                       const char* what, std::uint32_t ptx_line, bool atomic = false,
                                       unsigned lane = Clocks::any_lane);
    /// The same for the lanes of a warp, through the generic proxy: lane i accesses `size` bytes at offsets[i]. Returns
    /// the first finding. With `stored`, stores of several warps that leave the same value are no race.
    std::optional<ShadowFinding> read_lanes(Agent warp, const std::uint32_t* offsets, LaneMask lanes,
                                            std::uint32_t size, const char* what, std::uint32_t ptx_line,
                                            bool atomic = false, bool* unwritten = nullptr);
    std::optional<ShadowFinding> write_lanes(Agent warp, const std::uint32_t* offsets, LaneMask lanes,
                                             std::uint32_t size, const char* what, std::uint32_t ptx_line,
                                             bool atomic = false, const StoredBytes* stored = nullptr);
    /// An asynchronous operation reads or writes this range from now until end(). Ordinary accesses in between are
    /// findings.
    void begin(Agent async, std::uint32_t offset, std::uint32_t size, bool writes, const char* what,
               std::uint32_t ptx_line);
    void end(Agent async);
    /// This memory holds an mbarrier: until inval, only mbarrier instructions may write it.
    void mark_barrier(std::uint32_t offset, bool is_barrier);
    [[nodiscard]] bool initialized(std::uint32_t offset, std::uint32_t size) const;
    void mark_initialized(std::uint32_t offset, std::uint32_t size);
    /// PTX line of the last write to the byte at `offset`, if it was one through the async proxy; else 0.
    [[nodiscard]] std::uint32_t async_writer_line(std::uint32_t offset) const noexcept;

private:
    // A time of an agent and its access: time in bits 32-63, agent in 16-31, proxy in 15, atomic in 14, index into
    // `sites_` in 0-13. The upper half of an access is never 0. A value with an empty upper half is 0 (nobody) or the
    // number of a reader set.
    using Mark = std::uint64_t;
    struct Cell {  // per 4 bytes
        Mark writer = 0;
        Mark reader = 0;               // of the last written contents: one agent, or a set of them
        std::uint8_t initialized = 0;  // these have one bit per byte
        std::uint8_t written = 0;      // by `writer`
        std::uint8_t read = 0;         // by `reader`
        std::uint8_t lane = 0;         // of the writer
        bool barrier = false;
    };
    struct Site {
        const char* what;
        std::uint32_t line;
    };
    struct Pending {
        Agent async;
        bool writes;
        std::uint32_t offset, size;
        const char* what;
        std::uint32_t line;
        std::uint64_t order;  // of begin()
    };
    struct Access;      // one access in progress, with what is already known about it
    struct Extension {  // a reader set plus one reader gives another set
        Mark before = 0, by = 0, after = 0;
    };

    Access start(Agent agent, Proxy proxy, const char* what, std::uint32_t line, bool atomic);
    template <bool writes>
    void touch(Access& access, std::uint32_t offset, std::uint32_t size, unsigned lane, unsigned bytes_per_lane);
    template <bool writes>
    std::optional<ShadowFinding> touch_lanes(Access access, const std::uint32_t* offsets, LaneMask lanes,
                                             std::uint32_t size);
    void check_writer(Access& access, const Cell& cell, std::uint32_t offset, std::uint8_t bytes, bool writes);
    void check_readers(Access& access, const Cell& cell, std::uint32_t offset);
    void check_pending(Access& access, std::uint32_t offset, std::uint32_t size, bool writes);
    Mark add_reader(Mark readers, const Access& access);
    void drop_unused_sets();
    template <bool writes>
    void touch_cell(Access& access, Cell& cell, std::uint32_t word, std::uint8_t bytes, unsigned lane);
    std::uint16_t site(const char* what, std::uint32_t line);
    static void find(Access& access, FindingKind kind, std::string message);
    [[nodiscard]] std::string name(const Access& access, std::uint32_t offset, bool writes) const;
    [[nodiscard]] std::string name(Mark mark, bool writes) const;

    static constexpr unsigned granule_bits = 8;  // asynchronous operations are looked up by blocks of 256 bytes

    const Clocks& clocks_;
    const bool same_value_races_;
    std::vector<Cell> cells_;
    std::vector<Site> sites_;
    std::array<std::uint16_t, 256> recent_sites_{};
    std::vector<std::vector<Mark>> reader_sets_;           // numbered from 1; members in ascending order
    std::unordered_map<std::uint64_t, Mark> set_numbers_;  // by a hash of the members
    std::size_t set_limit_ = 4096;
    std::array<Extension, 64> extensions_{};
    std::vector<Pending> pending_;
    std::vector<std::uint16_t> pending_in_;  // by granule
    std::uint64_t next_order_ = 0;
};

}  // namespace tessera::emulator
