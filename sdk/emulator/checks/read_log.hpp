#pragma once

// Reads of shared memory that are not entered in its shadow yet.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/access_shape.hpp"
#include "base/agent.hpp"
#include "base/lanes.hpp"
#include "checks/line_set.hpp"

namespace tessera::emulator {

/// Where ReadLog has kept LaneOffsets::at, for the next read of the same `at`.
struct KeptOffsets {
    std::uint64_t clearing = 0;  ///< of the log: the number is of no use after the next one; 0: not kept yet
    std::uint32_t number = 0;
};

/// Where the lanes of a warp read. Aligned, and in bounds.
struct LaneOffsets {
    const std::uint32_t* at = nullptr;     ///< by lane, if scattered: lane i reads at at[i] + shift
    std::uint32_t low = 0, high = 0;       ///< least and greatest
    std::uint32_t stride = 0;              ///< between lanes, unless scattered
    AccessShape shape = AccessShape::row;  ///< `uniform` with any lanes, `row` and `strided` with all
    std::uint32_t shift = 0;
    std::uint32_t near_words = 0;  ///< if scattered in 128 bytes: a bit for each word from `low` on; 0: unknown
    KeptOffsets* kept = nullptr;   ///< of `at`; null: nobody reads with the same `at` again

    [[nodiscard]] std::uint32_t operator[](unsigned lane) const noexcept
    {
        return shape == AccessShape::scattered ? at[lane] + shift : low + lane * stride;
    }
};

/// An instruction that reads. It must outlive the log.
struct ReadSite {
    const char* what = nullptr;
    std::uint32_t line = 0;
};

/// In the order of time, and the lines where they may be.
class ReadLog {
public:
    /// When lanes of a warp read.
    struct Moment {
        std::uint64_t meeting = 0;   ///< of Clocks: the lanes have not waited for each other while this is the same
        std::uint32_t time = 0;      ///< of the warp
        std::uint32_t releases = 0;  ///< of Clocks, then
        LaneMask lanes = 0;
        Agent agent = 0;
    };
    struct Read {
        const ReadSite* site = nullptr;
        std::uint32_t low = 0;     ///< of LaneOffsets; if scattered, the number of what LaneOffsets::at was
        std::uint32_t stride = 0;  ///< if scattered, the shift
        std::uint32_t moment = 0;  ///< its number
        std::uint8_t size = 0;
        AccessShape shape = AccessShape::row;
    };
    using Offsets = std::array<std::uint32_t, warp_size>;

    explicit ReadLog(std::size_t lines) : lines_(lines) {}

    /// Returns true if begin() was called with this since the last clear().
    [[nodiscard]] bool is_now(Agent agent, LaneMask lanes, std::uint64_t changes) const noexcept
    {
        return changes == changes_ && agent == agent_ && lanes == lanes_;
    }
    /// The next reads are of this moment, until Clocks::changes() is another one.
    void begin(const Moment& moment, std::uint64_t changes)
    {
        moment_ = static_cast<std::uint32_t>(moments_.size());
        moments_.push_back(moment);
        agent_ = moment.agent;
        lanes_ = moment.lanes;
        changes_ = changes;
    }
    void add(const LaneOffsets& offsets, std::uint32_t first_line, std::uint32_t last_line, std::uint8_t size,
             const ReadSite& site)
    {
        if (count_ == reads_.size()) {
            reads_.resize(std::max<std::size_t>(2 * count_, 256));
            room_ = std::min(reads_.size(), limit);
        }
        const bool scattered = offsets.shape == AccessShape::scattered;
        const std::uint32_t low = scattered ? number_of(offsets) : offsets.low;
        const std::uint32_t stride = scattered ? offsets.shift : offsets.stride;
        lines_.add(first_line, last_line);
        append(low, stride, offsets.shape, size, site);
    }
    /// is_now() for all lanes, and there is room for another read.
    [[nodiscard]] bool takes(Agent agent, std::uint64_t changes) const noexcept
    {
        return changes == changes_ && agent == agent_ && lanes_ == all_lanes && count_ < room_;
    }
    /// Of all lanes at `low`, if takes().
    void add_uniform(std::uint32_t low, std::uint32_t line, std::uint8_t size, const ReadSite& site)
    {
        lines_.add(line);
        append(low, 0, AccessShape::uniform, size, site);
    }
    /// Of all lanes from `low` on, in one line or in two, if takes().
    [[gnu::always_inline]] void add_row(std::uint32_t low, std::uint32_t first_line, std::uint32_t last_line,
                                        std::uint8_t size, const ReadSite& site)
    {
        lines_.add(first_line);
        lines_.add(last_line);
        append(low, size, AccessShape::row, size, site);
    }
    [[nodiscard]] bool may_have(std::uint32_t first_line, std::uint32_t last_line) const noexcept
    {
        return lines_.has_any(first_line, last_line);
    }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    [[nodiscard]] bool full() const noexcept { return count_ >= limit; }
    [[nodiscard]] std::span<const Read> reads() const noexcept { return {reads_.data(), count_}; }
    [[nodiscard]] const Moment& moment(const Read& read) const noexcept { return moments_[read.moment]; }
    [[nodiscard]] Offsets offsets(const Read& read) const noexcept
    {
        Offsets result{};
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            result[lane] = read.shape == AccessShape::scattered ? scattered_[read.low][lane] + read.stride
                                                                : read.low + lane * read.stride;
        }
        return result;
    }
    void clear() noexcept
    {
        count_ = 0;
        moments_.clear();
        changes_ = 0;
        scattered_.clear();
        lines_.clear();
        ++clearings_;
    }

private:
    static constexpr std::size_t limit = 8192;

    /// Field by field in its place: a copy of a Read that was just made would wait for what made it.
    void append(std::uint32_t low, std::uint32_t stride, AccessShape shape, std::uint8_t size, const ReadSite& site)
    {
        Read& read = reads_[count_++];
        read.site = &site;
        read.low = low;
        read.stride = stride;
        read.moment = moment_;
        read.size = size;
        read.shape = shape;
    }
    [[nodiscard]] std::uint32_t number_of(const LaneOffsets& offsets)
    {
        if (offsets.kept != nullptr && offsets.kept->clearing == clearings_) {
            return offsets.kept->number;
        }
        const auto number = static_cast<std::uint32_t>(scattered_.size());
        std::copy_n(offsets.at, warp_size, scattered_.emplace_back().begin());
        if (offsets.kept != nullptr) {
            *offsets.kept = {clearings_, number};
        }
        return number;
    }

    std::uint64_t clearings_ = 1;
    std::uint64_t changes_ = 0;  // of Clocks, of the last moment; 0: there is none
    Agent agent_ = 0;            // of the last moment
    LaneMask lanes_ = 0;
    std::vector<Moment> moments_;
    std::uint32_t moment_ = 0;  // number of the last one
    LineSet lines_;
    std::size_t count_ = 0;
    std::vector<Read> reads_;  // so many of them
    std::size_t room_ = 0;     // for so many
    std::vector<Offsets> scattered_;
};

}  // namespace tessera::emulator
