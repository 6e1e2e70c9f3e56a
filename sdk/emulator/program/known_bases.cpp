// Unrolled loops access memory at many offsets from one register. Only the first access has to find out how the lanes'
// addresses lie.

#include <algorithm>
#include <vector>

#include "program/builder.hpp"

namespace tessera::emulator {

namespace {

struct Known {
    Ref row;
    std::uint8_t number;
};

/// The operations in [first, last) that a branch leads to.
std::vector<bool> branch_targets(const Program& program, std::uint32_t first, std::uint32_t last)
{
    std::vector<bool> is_target(last - first);
    for (std::uint32_t i = first; i < last; ++i) {
        if (program.effects.of(i).control == Flow::branch) {
            for (const std::uint32_t target : program.operations[i].as<BranchPayload>().targets) {
                is_target[target - first] = true;
            }
        }
    }
    return is_target;
}

/// Returns true for the loads and stores whose fast path uses Operation::base.
bool looks_addresses_up(const Operation& operation, const Effects& effects)
{
    return operation.payload != nullptr && operation.payload->handler(Handlers::checked) != nullptr &&
           !operation.names_late_registers &&
           std::ranges::any_of(effects.memory_effects(), [](const MemoryEffect& effect) {
               return effect.space == Space::shared || effect.space == Space::global;
           });
}

}  // namespace

void mark_known_bases(Program& program, std::uint32_t first, std::uint32_t last)
{
    const std::vector<bool> is_target = branch_targets(program, first, last);
    std::vector<Known> known;  // at most as many as a warp remembers, so that no two of them have one place there
    std::uint8_t previous = 0;
    for (std::uint32_t i = first; i < last; ++i) {
        Operation& operation = program.operations[i];
        const Effects& effects = program.effects.of(i);
        const OperandRoles roles = program.effects.roles(i);
        if (is_target[i - first]) {
            known.clear();
        }
        if (looks_addresses_up(operation, effects) && roles.addresses.size() == 1) {
            const Ref row = roles.addresses.front().row;
            if (const auto found = std::ranges::find(known, row, &Known::row); found != known.end()) {
                operation.base = found->number;
                operation.is_base_known = true;
            } else if (operation.guard == no_row) {  // with a guard, it may be that no lane executes it
                previous = static_cast<std::uint8_t>(previous == 0xFF ? most_known_bases : previous + 1U);
                operation.base = previous;
                known.push_back({row, previous});
                if (known.size() > most_known_bases) {
                    known.erase(known.begin());
                }
            }
        }
        for (const OperandRole& role : roles.writes) {
            std::erase_if(known, [&](const Known& other) { return other.row == role.row; });
        }
        if (effects.control != Flow::next || effects.may_wait || effects.lanes != Convergence::any) {
            known.clear();  // other lanes may come here, or join
        }
    }
}

}  // namespace tessera::emulator
