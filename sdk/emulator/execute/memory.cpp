// The opcodes of memory access and addressing.

#include <vector>

#include "execute/memory_lanes.hpp"

namespace tessera::emulator {

std::span<const InstructionEntry> memory_instructions()
{
    static const std::vector<InstructionEntry> entries = [] {
        std::vector<InstructionEntry> all{
            {"ld", decode_ld}, {"ldu", decode_ld}, {"st", decode_st}, {"atom", decode_atom}, {"red", decode_red},
        };
        const std::span<const InstructionEntry> addresses = address_instructions();
        all.insert(all.end(), addresses.begin(), addresses.end());
        return all;
    }();
    return entries;
}

}  // namespace tessera::emulator
