#pragma once

// Holds each operation that a test executes against its effects (program/effects.hpp).

#include <string>

#include "machine/launch.hpp"

namespace tessera::emulator::test {

/// From now on, operations of the module are executed with these checks:
/// - registers that it does not name as sources hold garbage, so that a test goes wrong if the operation reads one;
/// - registers that it does not name as destinations do not change, and destinations are written in every lane;
/// - it waits, jumps, takes its turn among the clusters, accesses memory and starts asynchronous work only if its
///   effects say so.
void audit(const LoadedModule& module);

/// What was found since the last call, a line for each; empty if nothing.
[[nodiscard]] std::string take_audit_problems();

}  // namespace tessera::emulator::test
