#pragma once

// Assigns a function's registers to rows. PTX names thousands of registers that live only for a few instructions.
// Registers that are never live together share a row, so that a warp's frame stays in the cache.
//
// A function is decoded twice. The first time, registers have numbers instead of rows, and the roles of the operands say
// where each is used. Then rows are assigned, and the second time is the real one.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "program/effects.hpp"
#include "program/operation.hpp"
#include "ptx/ast.hpp"

namespace tessera::emulator {

class RegisterRows {
public:
    // --- the first time ---
    /// The number of register `number` of a declaration (0 if it is not parameterized), in place of its row.
    [[nodiscard]] Ref number_of(const ptx::Variable& declaration, std::uint32_t number);
    /// Stands for the row of a temporary value, which is not shared.
    static constexpr Ref temporary = in_constants - 1;
    /// Notes the registers of the next operation.
    void note(const OperandRoles& roles, Ref guard, Flow control);
    /// A label is here: the next operation. @return its position
    std::uint32_t note_label();
    /// The position of the next operation.
    [[nodiscard]] std::uint32_t position() const noexcept { return position_; }
    /// The operations from `first` to `last` may be repeated.
    void note_loop(std::uint32_t first, std::uint32_t last) { loops_.push_back({first, last}); }
    void assign();

    // --- after assign() ---
    /// Row of a register; no_row if it is never used.
    [[nodiscard]] Ref row(const ptx::Variable& declaration, std::uint32_t number) const;
    /// Bytes of all rows.
    [[nodiscard]] std::uint32_t bytes() const noexcept { return bytes_; }
    /// All rows.
    [[nodiscard]] const std::vector<RegisterRow>& layout() const noexcept { return layout_; }
    /// Largest number of 32-bit registers live at the same time, by the same conservative measure.
    [[nodiscard]] std::uint32_t peak() const noexcept { return peak_; }

private:
    struct Key {
        const ptx::Variable* declaration;
        std::uint32_t number;
        friend bool operator==(const Key&, const Key&) = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept;
    };
    struct Life {
        ptx::Type type;
        std::uint32_t first = 0, last = 0;  // operations that name it
        std::uint32_t piece = 0;            // straight piece of code of the first operation
        bool used = false, one_piece = true, defined_first = false, pinned = false;
        Ref row = no_row;
    };
    struct Loop {
        std::uint32_t first, last;
    };
    void note(Ref register_number, bool defines, bool later);
    void extend_over_loops();

    std::unordered_map<Key, Ref, Hash> numbers_;
    std::vector<Life> lives_;  // by number
    std::vector<Loop> loops_;
    std::uint32_t position_ = 0, piece_ = 0;
    std::vector<RegisterRow> layout_;
    std::uint32_t bytes_ = 0, peak_ = 0;
};

}  // namespace tessera::emulator
