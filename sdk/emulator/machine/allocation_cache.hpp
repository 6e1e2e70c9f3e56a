#pragma once

// The allocations that a cluster used last. Avoids a search in the address space, and its lock, for most accesses.

#include <array>
#include <cstdint>

#include "base/address_space.hpp"
#include "program/program.hpp"

namespace tessera::emulator {

class AllocationCache {
public:
    struct Entry {
        std::uint64_t begin = 0, size = 0;
        Allocation* allocation = nullptr;
        bool constant = false;  ///< a .const variable of the program
    };

    /// The allocation that contains `address`; null if there is none. Valid until the next call.
    [[nodiscard]] const Entry* find(const AddressSpace& memory, const Program& program, std::uint64_t address)
    {
        const std::uint64_t generation = memory.generation();
        if (generation != generation_) {
            entries_ = {};
            generation_ = generation;
        }
        for (const Entry& entry : entries_) {
            if (address - entry.begin < entry.size) {
                return &entry;
            }
        }
        Allocation* allocation = memory.find(address);
        if (allocation == nullptr) {
            return nullptr;
        }
        Entry& entry = entries_[next_++ % entries_.size()];
        entry = {allocation->address, allocation->size, allocation, false};
        if (allocation->kind == MemoryKind::module) {
            const auto variable = program.variables.find(allocation->label);
            entry.constant = variable != program.variables.end() && variable->second.constant &&
                             variable->second.address == allocation->address;
        }
        return &entry;
    }

private:
    std::array<Entry, 4> entries_{};
    std::uint64_t generation_ = 0;
    std::size_t next_ = 0;
};

}  // namespace tessera::emulator
