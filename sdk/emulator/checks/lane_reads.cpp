#include "checks/lane_reads.hpp"

#include <utility>

#include "checks/word_bits.hpp"

namespace tessera::emulator {

void LaneReads::start(std::uint64_t meeting) noexcept
{
    meeting_ = meeting;
    count_ = entered_ = 0;
    ++stamp_;
}

/// Where the word is, or would be.
std::size_t LaneReads::place_of(std::uint32_t word) const noexcept
{
    const std::size_t mask = table_.size() - 1;
    std::size_t place = word & mask;  // neighbours side by side
    while (table_[place].stamp == stamp_ && table_[place].word != word) {
        place = (place + 1) & mask;
    }
    return place;
}

void LaneReads::grow()
{
    const std::vector<Word> before = std::exchange(table_, std::vector<Word>(table_.empty() ? 256 : 2 * table_.size()));
    for (const Word& word : before) {
        if (word.stamp == stamp_) {
            table_[place_of(word.word)] = word;
        }
    }
}

void LaneReads::enter(std::uint32_t word, std::uint8_t bytes, unsigned lane, std::uint16_t site)
{
    Word& at = table_[place_of(word)];
    const By by{site, static_cast<std::uint8_t>(lane), bytes};
    if (at.stamp != stamp_) {
        at = {stamp_, word, by, {}};
        if (2 * ++entered_ > table_.size()) {
            grow();
        }
    } else if (at.first.lane == lane) {
        at.first.bytes |= bytes;
    } else if (at.second.lane == warp_size) {
        at.second = by;
    } else if (at.second.lane == lane) {
        at.second.bytes |= bytes;
    }
}

void LaneReads::enter()
{
    if (table_.empty()) {
        grow();
    }
    for (std::size_t i = 0; i < count_; ++i) {
        const Read& read = reads_[i];
        for_each_lane(read.lanes, [&](unsigned lane) {
            const std::uint32_t begin = read.offsets[lane], end = begin + read.size;
            for (std::uint32_t word = begin / 4; word * 4 < end; ++word) {
                enter(word, static_cast<std::uint8_t>(bytes_of_word(word, begin, end)), lane, read.site);
            }
        });
    }
    count_ = 0;
}

LaneReads::Conflict LaneReads::conflict(std::uint32_t word, std::uint8_t bytes, unsigned lane) const noexcept
{
    if (const Word& at = table_[place_of(word)]; at.stamp == stamp_) {
        for (const By& by : {at.first, at.second}) {
            if (by.lane != lane && (by.bytes & bytes) != 0) {
                return {by.site, by.lane};
            }
        }
    }
    return {};
}

}  // namespace tessera::emulator
