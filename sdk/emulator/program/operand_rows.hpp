#pragma once

// Which registers an operation reads and writes, and what it makes of a value that is not defined: for the check that
// follows such values until they are used.

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
    selected,     ///< selp: only if it is the one that is chosen
    conjunction,  ///< and: not if the other operand is 0
    disjunction,  ///< or: not if the other operand has all bits set
    shuffled,     ///< shfl: in the lanes that read it
    stored,       ///< st: the handler looks where to
};

class OperandRows {
public:
    struct Of {
        std::span<const Ref> addresses, reads, writes;  ///< `reads` also has constants, so that it is the text's order
        ValueFlow flow = ValueFlow::used;
    };

    /// For the operation with this number; those that were left out have no rows.
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

/// `computes`: the instruction makes its results of its operands lane by lane and does nothing else.
[[nodiscard]] ValueFlow value_flow(const ptx::Instruction& instruction, bool computes);

}  // namespace tessera::emulator
