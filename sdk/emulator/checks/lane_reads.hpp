#pragma once

// What the lanes of one warp have read since they last waited for each other, to find a store of another lane over it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/lanes.hpp"

namespace tessera::emulator {

/// Of one warp and one CTA's shared memory. A read costs little: a few are kept, and a write enters them into a table by
/// word. Of each word the first two lanes are remembered.
class LaneReads {
public:
    /// The lanes `lanes` read `size` bytes at offsets[lane]. `meeting` changes when lanes wait for each other.
    void read(std::uint64_t meeting, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size,
              std::uint16_t site)
    {
        if (meeting != meeting_) {
            start(meeting);
        } else if (count_ == reads_.size()) {
            enter();
        }
        Read& read = reads_[count_++];
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            read.offsets[lane] = offsets[lane];
        }
        read.lanes = lanes;
        read.size = size;
        read.site = site;
    }
    /// Returns true if conflict() may find something.
    [[nodiscard]] bool any(std::uint64_t meeting) const noexcept
    {
        return meeting == meeting_ && (count_ != 0 || entered_ != 0);
    }
    struct Conflict {
        std::uint16_t site = 0;
        std::uint8_t lane = warp_size;  ///< which read it; warp_size: nobody
    };
    /// Enters the kept reads into the table.
    void enter();
    /// A read of these bytes of a word, a bit for each, by another lane than `lane`.
    [[nodiscard]] Conflict conflict(std::uint32_t word, std::uint8_t bytes, unsigned lane) const noexcept;

private:
    struct Read {
        std::array<std::uint32_t, warp_size> offsets;
        LaneMask lanes;
        std::uint32_t size;
        std::uint16_t site;
    };
    struct By {
        std::uint16_t site = 0;
        std::uint8_t lane = warp_size, bytes = 0;
    };
    struct Word {
        std::uint32_t stamp = 0, word = 0;
        By first, second;
    };
    void start(std::uint64_t meeting) noexcept;
    void grow();
    [[nodiscard]] std::size_t place_of(std::uint32_t word) const noexcept;
    void enter(std::uint32_t word, std::uint8_t bytes, unsigned lane, std::uint16_t site);

    std::uint64_t meeting_ = ~std::uint64_t{0};
    std::size_t count_ = 0, entered_ = 0;  // of reads_; words in the table
    std::uint32_t stamp_ = 1;              // of these words
    std::array<Read, 16> reads_;
    std::vector<Word> table_;  // a power of two, at most half full; by hash, then the next free place
};

}  // namespace tessera::emulator
