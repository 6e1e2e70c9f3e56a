// Waits whose result decides nothing. mbarrier.try_wait and test_wait return false when the phase is not complete, so a
// program that does not look at the result has not waited, whatever happened this time.

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "program/control_flow.hpp"

namespace tessera::emulator {

namespace {

/// Returns true if the operation only makes other register values from the one that it reads.
bool only_computes(const Effects& effects)
{
    return effects.flow != ValueFlow::used && effects.flow != ValueFlow::stored && effects.is_local();
}

bool has(std::span<const OperandRole> roles, Ref row)
{
    return std::ranges::find(roles, row, &OperandRole::row) != roles.end();
}

/// Follows the result of the wait forward, through values computed from it, until something depends on one of them.
bool is_tested(const Program& program, std::uint32_t wait, std::uint32_t end)
{
    std::set<std::pair<std::uint32_t, Ref>> seen;
    std::vector<std::pair<std::uint32_t, Ref>> open;
    const auto follow = [&](std::uint32_t from, Ref row) {
        for_each_successor(program, from, [&](std::uint32_t next) {
            if (next < end && seen.emplace(next, row).second) {
                open.emplace_back(next, row);
            }
        });
    };
    for (const OperandRole& result : program.effects.roles(wait).writes) {
        follow(wait, result.row);
    }
    while (!open.empty()) {
        const auto [at, row] = open.back();
        open.pop_back();
        const OperandRoles roles = program.effects.roles(at);
        const bool guarded = program.operations[at].guard != no_row;
        if (program.operations[at].guard == row || has(roles.addresses, row)) {
            return true;
        }
        if (has(roles.reads, row)) {
            if (!only_computes(program.effects.of(at))) {
                return true;
            }
            for (const OperandRole& written : roles.writes) {
                follow(at, written.row);
            }
        }
        if (guarded || !has(roles.writes, row)) {
            follow(at, row);
        }
    }
    return false;
}

}  // namespace

void mark_untested_waits(Program& program, std::uint32_t first, std::uint32_t last)
{
    for (std::uint32_t at = first; at < last; ++at) {
        const SyncEffect& sync = program.effects.of(at).sync;
        if (sync.object == SyncObject::mbarrier && sync.waits && !program.effects.roles(at).writes.empty()) {
            program.operations[at].untested = !is_tested(program, at, last);
        }
    }
}

}  // namespace tessera::emulator
