#include "program/visible.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tessera::emulator {

bool is_visible(const ptx::Instruction& instruction, InstructionClass kind)
{
    switch (kind) {
        case InstructionClass::barrier:
        case InstructionClass::copy: return true;
        case InstructionClass::tensor: return instruction.opcode == "wgmma" || instruction.opcode == "tcgen05";
        default: break;
    }
    if (instruction.opcode == "atom" || instruction.opcode == "red" || instruction.opcode == "setmaxnreg") {
        return true;
    }
    constexpr std::array<std::string_view, 6> strong{"volatile", "relaxed", "acquire", "release", "mmio", "async"};
    return std::ranges::any_of(instruction.modifiers, [&](const std::string& modifier) {
        return std::ranges::find(strong, modifier) != strong.end();
    });
}

}  // namespace tessera::emulator
