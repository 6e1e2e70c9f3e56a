#pragma once

// Parts of shared memory that asynchronous operations use now.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/agent.hpp"
#include "base/lanes.hpp"

namespace tessera::emulator {

/// The ranges from begin() to end() of an operation, found by the granules that they touch.
class PendingRanges {
public:
    struct Range {
        Agent async = 0;
        bool writes = false;
        std::uint32_t begin = 0, end = 0;
        const char* what = nullptr;
        std::uint32_t line = 0;
        std::uint64_t order = 0;  // of begin()
    };

    explicit PendingRanges(std::uint32_t bytes) : in_granule_((bytes >> granule_bits) + std::size_t{1}) {}

    void begin(Agent async, std::uint32_t begin, std::uint32_t end, bool writes, const char* what, std::uint32_t line);
    /// The same for `lanes`, each of which writes `size` bytes at its offset. These are whole words. Lanes that continue
    /// each other are one range.
    void begin_lanes(Agent async, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size, const char* what,
                     std::uint32_t line);
    void end(Agent async);

    /// True if a range may overlap [begin, end), which is not empty.
    [[nodiscard]] bool may_overlap(std::uint32_t begin, std::uint32_t end) const noexcept
    {
        if (pieces_ != 0) {
            return true;
        }
        if (count_ == 0) {
            return false;
        }
        for (std::uint32_t g = begin >> granule_bits; g <= (end - 1) >> granule_bits; ++g) {
            if (!in_granule_[g].empty()) {
                return true;
            }
        }
        return false;
    }
    /// The range that began first of those that overlap [begin, end) and conflict with an access by `agent`, or null.
    /// Valid until the next call.
    [[nodiscard]] const Range* first_conflict(Agent agent, std::uint32_t begin, std::uint32_t end, bool writes) const;
    /// Returns true if there is one for a lane of `lanes`, which accesses `size` bytes, whole words, at its offset.
    [[nodiscard]] bool conflicts(Agent agent, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size,
                                 bool writes) const;
    /// Returns true if all of the agent's own ranges began after `range`; also if it has none.
    [[nodiscard]] bool began_before(const Range& range, Agent agent) const;

private:
    static constexpr unsigned granule_bits = 7;
    using Slot = std::uint32_t;

    /// Of begin_lanes(). Copies of 4 bytes in each lane are frequent: they have no list entry for each lane, but are found
    /// by word.
    struct Pieces {
        Agent async = 0;
        LaneMask lanes = 0;
        std::uint32_t size = 0;
        std::uint32_t line = 0;
        const char* what = nullptr;
        std::uint64_t order = 0;  // of the first range
        std::array<std::uint32_t, warp_size> offsets{};
    };
    /// The agent whose piece has this word, plus one; 0: none.
    using Owner = std::uint32_t;
    static constexpr Owner several = ~Owner{0};
    static std::vector<Range> ranges_of(const Pieces& pieces);
    [[nodiscard]] const Pieces* pieces_of(Agent agent) const noexcept;
    template <typename Body>
    static void for_each_word(const Pieces& pieces, LaneMask lanes, Body&& body);
    void end_pieces(const Pieces& pieces);
    [[nodiscard]] bool has_foreign_piece(Agent agent, std::uint32_t begin, std::uint32_t end) const noexcept;
    [[nodiscard]] Owner owner_of(std::uint32_t word) const noexcept;

    std::vector<Pieces> lane_ranges_;    // in no order; without lanes where there is none
    std::vector<Slot> free_pieces_;      // of these
    std::size_t pieces_ = 0;             // number of the others
    std::vector<Slot> pieces_of_agent_;  // plus one; 0: none
    std::vector<Owner> owners_;          // by word; empty until needed
    mutable Range found_;                // of lane_ranges_

    std::vector<std::vector<Slot>> in_granule_;
    std::vector<Range> ranges_;
    std::vector<Slot> free_;
    std::vector<std::vector<Slot>> of_agent_;
    std::size_t count_ = 0;
    std::uint64_t next_order_ = 0;
};

}  // namespace tessera::emulator
