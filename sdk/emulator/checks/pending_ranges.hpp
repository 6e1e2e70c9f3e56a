#pragma once

// Parts of shared memory that asynchronous operations use now.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/agent.hpp"

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
    void end(Agent async);

    /// True if a range may overlap [begin, end), which is not empty.
    [[nodiscard]] bool may_overlap(std::uint32_t begin, std::uint32_t end) const noexcept
    {
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
    [[nodiscard]] const Range* first_conflict(Agent agent, std::uint32_t begin, std::uint32_t end, bool writes) const;
    /// Returns true if all of the agent's own ranges began after `range`; also if it has none.
    [[nodiscard]] bool began_before(const Range& range, Agent agent) const;

private:
    static constexpr unsigned granule_bits = 7;
    using Slot = std::uint32_t;

    std::vector<std::vector<Slot>> in_granule_;
    std::vector<Range> ranges_;
    std::vector<Slot> free_;
    std::vector<std::vector<Slot>> of_agent_;
    std::size_t count_ = 0;
    std::uint64_t next_order_ = 0;
};

}  // namespace tessera::emulator
