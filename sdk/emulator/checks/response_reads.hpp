#pragma once

// Reads of the answers of cluster launch control.
//
// PTX ISA "clusterlaunchcontrol.try_cancel": the answer is written through the async proxy, and read with ordinary loads. A
// fence.proxy.async is needed between such a load and the next request that writes its answer to the same place, as in the
// example of that section: otherwise the load may return the next answer.

#include <cstdint>
#include <vector>

#include "base/lanes.hpp"
#include "checks/clocks.hpp"

namespace tessera::emulator {

struct Operation;

/// The places of answers in one CTA's shared memory, and who has read the last answer there.
class ResponseReads {
public:
    static constexpr std::uint32_t response_bytes = 16;
    struct Read {
        Epoch at;
        LaneMask lanes = 0;
        const Operation* operation = nullptr;
    };

    /// A request that writes its answer at `offset` was issued: forgets the reads of the last one.
    void request(std::uint32_t offset);
    /// Lanes of a warp have read [offset, offset + size).
    void read(std::uint32_t offset, std::uint32_t size, Epoch at, LaneMask lanes, const Operation* operation);
    /// Reads of the last answer at `offset`.
    [[nodiscard]] const std::vector<Read>* reads(std::uint32_t offset) const;

    /// Returns true if an answer may be in [begin, end).
    [[nodiscard]] bool touches(std::uint64_t begin, std::uint64_t end) const noexcept
    {
        return begin < high_ && end > low_;
    }

private:
    struct Place {
        std::uint32_t offset = 0;
        std::vector<Read> reads;
    };
    std::vector<Place> places_;
    std::uint64_t low_ = ~std::uint64_t{0}, high_ = 0;
};

}  // namespace tessera::emulator
