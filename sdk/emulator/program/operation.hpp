#pragma once

// One PTX instruction, ready to execute: a function, the rows of its operands, and its other settings.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/lanes.hpp"
#include "base/registers.hpp"
#include "base/statistics.hpp"
#include "ptx/ast.hpp"

namespace tessera::emulator {

class Warp;
struct Operation;

/// The result of an execution.
enum class Step : std::uint8_t {
    next,   ///< done; continue with the next operation
    jump,   ///< done; the function has set the pc of the current split
    wait,   ///< not done: Split::wait has the reason. Executed again, with the same lanes, after a change
    yield,  ///< done, but let others run before the next operation
    later,  ///< not done: it has to happen in the cluster's turn among the clusters, and is executed again then
    ended,  ///< lanes of the current split have exited; it may be empty
};

/// Executes `operation` for the lanes in `active` (never empty): the lanes of the current split whose guard is true.
using Execute = Step (*)(Warp& warp, const Operation& operation, LaneMask active);

/// A row of a function's registers.
struct RegisterRow {
    Ref offset = 0;
    unsigned bytes = 0;  ///< of a lane's value; 0: predicates, a bit for each lane
};

/// Sets of handlers: which of them a launch needs depends on its options.
enum class Handlers : std::uint8_t {
    checked,
    unchecked,
    plain,     ///< Paths::plain
    compared,  ///< Paths::both
};
inline constexpr std::size_t handler_sets = 4;

/// Base class for settings of an instruction beyond its operands.
struct Payload {
    virtual ~Payload() = default;
    /// The handler of this set; null if it is Operation::execute, as in the other sets.
    [[nodiscard]] virtual Execute handler(Handlers) const noexcept { return nullptr; }
};

/// Registers with addresses that a warp remembers: see Operation::base.
inline constexpr std::size_t most_known_bases = 8;

struct Operation {
    Execute execute = nullptr;
    const Payload* payload = nullptr;          ///< owned by the Program
    const ptx::Instruction* source = nullptr;  ///< for messages; null for operations that the builder added
    std::array<Ref, 6> operand{no_row, no_row, no_row, no_row, no_row, no_row};
    Ref guard = no_row;
    bool guard_negated = false;
    bool join = false;                  ///< diverged lanes may wait here for each other
    bool untested = false;              ///< a wait for an mbarrier whose result decides nothing
    bool names_late_registers = false;  ///< registers that a wgmma of the function uses after it was issued
    bool visible = false;               ///< see Effects::is_visible()
    /// Number of the register that holds the addresses of a load or store; 0: it has none. An earlier operation of the same
    /// straight piece of code has the same number if the register was not written in between: see mark_known_bases(). If it
    /// has 32 bits, operand 2 is its row, and operand 1 what is added to it.
    std::uint8_t base = 0;
    bool is_base_known = false;  ///< there is such an earlier operation
    bool straight = false;       ///< no guard, no join, and no such registers: all lanes of a split execute it
    InstructionClass kind = InstructionClass::other;

    template <typename P>
    [[nodiscard]] const P& as() const noexcept
    {
        return static_cast<const P&>(*payload);
    }
};

/// The PTX line of an operation; 0 for operations that no instruction of the module gave.
[[nodiscard]] inline std::uint32_t line_of(const Operation* operation) noexcept
{
    return operation == nullptr || operation->source == nullptr ? 0 : operation->source->location.line;
}
[[nodiscard]] inline std::uint32_t line_of(const Operation& operation) noexcept { return line_of(&operation); }

}  // namespace tessera::emulator
