#pragma once

// The allocations that a CPU thread used last. Avoids a search in the address space, and its lock, for most accesses.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/address_space.hpp"

namespace tessera::emulator {

class AllocationCache {
public:
    struct Entry {
        std::uint64_t begin = 0, size = 0;
        Allocation* allocation = nullptr;
    };
    static constexpr std::size_t sites = 256;

    /// The allocation that contains `address`; null if there is none. Valid until the next call. `site` is a number of
    /// the instruction: usually an instruction accesses the same allocation again.
    [[nodiscard]] const Entry* find(const AddressSpace& memory, std::uint64_t address, std::uint8_t site = 0)
    {
        if (const std::uint64_t generation = memory.generation(); generation != generation_) [[unlikely]] {
            entries_ = {};
            generation_ = generation;
        }
        const Entry& usual = entries_[usual_[site]];
        if (address - usual.begin < usual.size) [[likely]] {
            return &usual;
        }
        return search(memory, address, site);
    }

private:
    const Entry* search(const AddressSpace& memory, std::uint64_t address, std::uint8_t site)
    {
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            if (address - entries_[i].begin < entries_[i].size) {
                usual_[site] = static_cast<std::uint8_t>(i);
                return &entries_[i];
            }
        }
        Allocation* const allocation = memory.find(address);
        if (allocation == nullptr) {
            return nullptr;
        }
        usual_[site] = static_cast<std::uint8_t>(next_++ % entries_.size());
        return &(entries_[usual_[site]] = {allocation->address, allocation->size, allocation});
    }

    std::array<Entry, 32> entries_{};
    std::array<std::uint8_t, sites> usual_{};
    std::uint64_t generation_ = 0;
    std::size_t next_ = 0;
};

}  // namespace tessera::emulator
