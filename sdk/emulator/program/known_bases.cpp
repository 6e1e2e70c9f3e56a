// Unrolled loops access memory at many offsets from one register. Only the first access has to find out how the lanes'
// addresses lie. Compilers add a constant to such a register again and again: what they get is another offset.

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "program/builder.hpp"

namespace tessera::emulator {

namespace {

struct Known {
    Ref row;
    std::uint8_t number;
};

/// A register with the sum of another one and a constant.
struct Sum {
    Ref row, of;
    std::uint32_t constant;
};

/// Registers with sums, of 32 bits, in a straight piece of code.
class Sums {
public:
    [[nodiscard]] Sum of(Ref row) const
    {
        const auto found = std::ranges::find(sums_, row, &Sum::row);
        return found == sums_.end() ? Sum{row, row, 0} : *found;
    }
    void add(const Sum& sum)
    {
        if (sums_.size() == most) {
            sums_.erase(sums_.begin());
        }
        sums_.push_back(sum);
    }
    void written(Ref row)
    {
        std::erase_if(sums_, [&](const Sum& sum) { return sum.row == row || sum.of == row; });
    }
    void clear() { sums_.clear(); }

private:
    static constexpr std::size_t most = 16;
    std::vector<Sum> sums_;
};

[[nodiscard]] bool is_register(Ref row) { return row < in_constants; }
[[nodiscard]] bool is_constant(Ref row) { return row >= in_constants && row < in_warp; }

/// The sum that an operation computes, of 32 bits and without saturation: add.u32 or add.s32, register and constant.
std::optional<Sum> sum_of(const Program& program, const Operation& operation, const OperandRoles& roles)
{
    const ptx::Instruction* const source = operation.source;
    if (source == nullptr || source->opcode != "add" || source->modifiers.size() != 1 ||
        (source->modifiers[0] != "u32" && source->modifiers[0] != "s32") || operation.guard != no_row) {
        return std::nullopt;
    }
    Sum sum{roles.writes[0].row, roles.reads[0].row, 0};
    Ref constant = roles.reads[1].row;
    if (is_constant(sum.of)) {
        std::swap(sum.of, constant);
    }
    if (!is_constant(constant) || !is_register(sum.of)) {
        return std::nullopt;
    }
    std::memcpy(&sum.constant, program.constants.data() + (constant - in_constants), sizeof sum.constant);
    return sum;
}

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
    Sums sums;
    std::uint8_t previous = 0;
    for (std::uint32_t i = first; i < last; ++i) {
        Operation& operation = program.operations[i];
        const Effects& effects = program.effects.of(i);
        const OperandRoles roles = program.effects.roles(i);
        if (is_target[i - first]) {
            known.clear();
            sums.clear();
        }
        if (looks_addresses_up(operation, effects) && roles.addresses.size() == 1) {
            const Sum address = sums.of(roles.addresses.front().row);
            const Ref row = address.of;
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
            if (operation.base != 0 && address.row != row) {
                operation.operand[1] += address.constant;
                operation.operand[2] = row;
            }
        }
        std::optional<Sum> sum = sum_of(program, operation, roles);
        if (sum) {
            const Sum before = sums.of(sum->of);
            sum->of = before.of;
            sum->constant += before.constant;
        }
        for (const OperandRole& role : roles.writes) {
            std::erase_if(known, [&](const Known& other) { return other.row == role.row; });
            sums.written(role.row);
        }
        if (sum && sum->row != sum->of) {
            sums.add(*sum);
        }
        if (effects.control != Flow::next || effects.may_wait || effects.lanes != Convergence::any) {
            known.clear();  // other lanes may come here, or join
            sums.clear();
        }
    }
}

}  // namespace tessera::emulator
