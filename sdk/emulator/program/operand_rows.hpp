#pragma once

// Which registers an operation reads and writes, and what it does with an undefined value: for the check that follows
// such values until they are used.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "program/operation.hpp"
#include "ptx/ast.hpp"

namespace tessera::emulator {

/// What becomes of an undefined value that an operation reads.
enum class ValueFlow : std::uint8_t {
    used,         ///< it decides something, or leaves the registers
    passed_on,    ///< the results are undefined, too
    moved,        ///< mov: the same, and a value that is not there yet may be moved
    selected,     ///< selp: only if it is selected
    conjunction,  ///< and: not if the other operand is 0
    disjunction,  ///< or: not if the other operand has all bits set
    shuffled,     ///< shfl: in the lanes that read it
    in_place,     ///< mov.v2, mov.v4: each result comes from the operand at its place
    stored,       ///< st: depends on the destination, see the handler
};

class OperandRows {
public:
    struct Of {
        std::span<const Ref> addresses, reads, writes;  ///< `reads` includes constants and keeps the order of the text
        ValueFlow flow = ValueFlow::used;
    };

    /// Adds the operation with this number; skipped operations have no rows.
    void add(std::uint32_t operation, std::span<const Ref> addresses, std::span<const Ref> reads,
             std::span<const Ref> writes, ValueFlow flow);
    [[nodiscard]] Of of(std::uint32_t operation) const noexcept;

private:
    struct Place {
        std::uint32_t first = 0;
        std::uint16_t addresses = 0, reads = 0, writes = 0;
        ValueFlow flow = ValueFlow::used;
    };
    std::vector<Place> places_;
    std::vector<Ref> rows_;
};

/// `computes`: the instruction only computes its results from its operands, lane by lane.
[[nodiscard]] ValueFlow value_flow(const ptx::Instruction& instruction, bool computes);

}  // namespace tessera::emulator
