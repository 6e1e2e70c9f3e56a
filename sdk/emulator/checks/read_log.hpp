#pragma once

// Reads of shared memory that are not entered in its shadow yet.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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
    KeptOffsets* kept = nullptr;  ///< of `at`; null: nobody reads with the same `at` again

    [[nodiscard]] std::uint32_t operator[](unsigned lane) const noexcept
    {
        return shape == AccessShape::scattered ? at[lane] + shift : low + lane * stride;
    }
};

/// In the order of time, and the lines where they may be.
class ReadLog {
public:
    struct Read {
        const char* what = nullptr;
        std::uint32_t line = 0;
        std::uint32_t time = 0;      ///< of the warp
        std::uint32_t releases = 0;  ///< of Clocks, then
        std::uint32_t low = 0;       ///< of LaneOffsets; if scattered, the number of what LaneOffsets::at was
        std::uint32_t stride = 0;    ///< if scattered, the shift
        std::uint64_t meeting = 0;   ///< of Clocks: the lanes have not waited for each other while this is the same
        LaneMask lanes = 0;
        Agent agent = 0;
        std::uint8_t size = 0;
        AccessShape shape = AccessShape::row;
    };
    using Offsets = std::array<std::uint32_t, warp_size>;

    explicit ReadLog(std::size_t lines) : lines_(lines) {}

    /// `read` has everything but where.
    void add(const LaneOffsets& offsets, std::uint32_t first_line, std::uint32_t last_line, Read read)
    {
        lines_.add(first_line, last_line);
        const bool scattered = offsets.shape == AccessShape::scattered;
        read.low = scattered ? number_of(offsets) : offsets.low;
        read.stride = scattered ? offsets.shift : offsets.stride;
        read.shape = offsets.shape;
        reads_.push_back(read);
    }
    [[nodiscard]] bool may_have(std::uint32_t first_line, std::uint32_t last_line) const noexcept
    {
        return lines_.has_any(first_line, last_line);
    }
    [[nodiscard]] bool empty() const noexcept { return reads_.empty(); }
    [[nodiscard]] bool full() const noexcept { return reads_.size() >= limit; }
    [[nodiscard]] const std::vector<Read>& reads() const noexcept { return reads_; }
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
        reads_.clear();
        scattered_.clear();
        lines_.clear();
        ++clearings_;
    }

private:
    static constexpr std::size_t limit = 8192;

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
    LineSet lines_;
    std::vector<Read> reads_;
    std::vector<Offsets> scattered_;
};

}  // namespace tessera::emulator
