#include "checks/response_reads.hpp"

#include <algorithm>

namespace tessera::emulator {

void ResponseReads::request(std::uint32_t offset)
{
    const auto known = std::ranges::find(places_, offset, &Place::offset);
    if (known != places_.end()) {
        known->reads.clear();
        return;
    }
    places_.push_back({offset, {}});
    low_ = std::min<std::uint64_t>(low_, offset);
    high_ = std::max<std::uint64_t>(high_, offset + response_bytes);
}

void ResponseReads::read(std::uint32_t offset, std::uint32_t size, Epoch at, LaneMask lanes, const Operation* operation)
{
    for (Place& place : places_) {
        if (offset >= place.offset + response_bytes || place.offset >= offset + size) {
            continue;
        }
        const auto known = std::ranges::find_if(
            place.reads, [&](const Read& read) { return read.at.agent == at.agent && read.at.time == at.time; });
        if (known == place.reads.end()) {
            place.reads.push_back({at, lanes, operation});
        } else {
            known->lanes |= lanes;
            known->operation = operation;
        }
    }
}

const std::vector<ResponseReads::Read>* ResponseReads::reads(std::uint32_t offset) const
{
    const auto known = std::ranges::find(places_, offset, &Place::offset);
    return known == places_.end() ? nullptr : &known->reads;
}

}  // namespace tessera::emulator
