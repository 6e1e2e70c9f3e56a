#pragma once

// Which bytes of the threads' local memory were written.

#include <array>
#include <cstdint>
#include <vector>

#include "base/lanes.hpp"

namespace tessera::emulator {

class LocalShadow {
public:
    void write(unsigned lane, std::uint64_t address, std::uint64_t size)
    {
        std::vector<bool>& bytes = written_[lane];
        if (bytes.size() < address + size) {
            bytes.resize(address + size);
        }
        for (std::uint64_t i = 0; i < size; ++i) {
            bytes[address + i] = true;
        }
    }
    /// The bytes have no value any more.
    void erase(unsigned lane, std::uint64_t address, std::uint64_t size)
    {
        std::vector<bool>& bytes = written_[lane];
        for (std::uint64_t i = address; i < address + size && i < bytes.size(); ++i) {
            bytes[i] = false;
        }
    }
    /// Returns true if at least one of the bytes was written. Not all need be: compilers copy the padding of
    /// structures.
    [[nodiscard]] bool any_written(unsigned lane, std::uint64_t address, std::uint64_t size) const
    {
        const std::vector<bool>& bytes = written_[lane];
        for (std::uint64_t i = address; i < address + size && i < bytes.size(); ++i) {
            if (bytes[i]) {
                return true;
            }
        }
        return false;
    }
    /// A function starts: its variables, from `begin` on, have no value yet.
    void forget(LaneMask lanes, std::uint64_t begin)
    {
        for_each_lane(lanes, [&](unsigned lane) {
            if (written_[lane].size() > begin) {
                written_[lane].resize(begin);
            }
        });
    }

private:
    std::array<std::vector<bool>, warp_size> written_;
};

}  // namespace tessera::emulator
