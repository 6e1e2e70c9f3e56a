#pragma once

// Which bytes of the threads' local memory were written.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/lanes.hpp"

namespace tessera::emulator {

class LocalShadow {
public:
    /// The lanes in `lanes` write the same bytes, each of its own memory.
    void write(LaneMask lanes, std::uint64_t address, std::uint64_t size)
    {
        if (written_.size() < address + size) {
            written_.resize(address + size);
        }
        for (std::uint64_t i = address; i < address + size; ++i) {
            written_[i] |= lanes;
        }
    }
    /// The bytes have no value any more.
    void erase(LaneMask lanes, std::uint64_t address, std::uint64_t size)
    {
        for (std::uint64_t i = address; i < address + size && i < written_.size(); ++i) {
            written_[i] &= ~lanes;
        }
    }
    /// The lanes that have written at least one of the bytes. Not all need be written: compilers copy the padding of
    /// structures.
    [[nodiscard]] LaneMask any_written(std::uint64_t address, std::uint64_t size) const
    {
        LaneMask lanes = 0;
        for (std::uint64_t i = address; i < address + size && i < written_.size(); ++i) {
            lanes |= written_[i];
        }
        return lanes;
    }
    /// A function starts: its variables, from `begin` on, have no value yet.
    void forget(LaneMask lanes, std::uint64_t begin) { erase(lanes, begin, written_.size() - std::min(begin, end())); }

private:
    [[nodiscard]] std::uint64_t end() const noexcept { return written_.size(); }

    std::vector<LaneMask> written_;  // by address
};

}  // namespace tessera::emulator
