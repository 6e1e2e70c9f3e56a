#pragma once

// Which operations of a function may follow which.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "program/builder.hpp"

namespace tessera::emulator {

[[nodiscard]] inline bool is_branch(const Program& program, std::uint32_t operation)
{
    return program.effects.of(operation).control == Flow::branch;
}

/// Returns true if the operation leaves the function or ends the thread.
[[nodiscard]] inline bool ends_flow(const Program& program, std::uint32_t operation)
{
    const Flow control = program.effects.of(operation).control;
    return control == Flow::leave || control == Flow::end;
}

/// Returns true if the next operation may follow: also after a guarded branch or exit.
[[nodiscard]] inline bool falls_through(const Program& program, std::uint32_t operation)
{
    return program.operations[operation].guard != no_row ||
           !(ends_flow(program, operation) || is_branch(program, operation));
}

[[nodiscard]] inline const std::vector<std::uint32_t>& targets_of(const Program& program, std::uint32_t branch)
{
    return program.operations[branch].as<BranchPayload>().targets;
}

/// Calls body(next) for each operation that may follow `operation`; one past the function's last is its end.
template <typename Body>
void for_each_successor(const Program& program, std::uint32_t operation, Body&& body)
{
    if (is_branch(program, operation)) {
        std::ranges::for_each(targets_of(program, operation), body);
    }
    if (falls_through(program, operation)) {
        body(operation + 1);
    }
}

}  // namespace tessera::emulator
