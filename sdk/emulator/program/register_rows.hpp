#pragma once

// Assigns a function's registers to rows. PTX names thousands of registers that live only for a few instructions.
// Registers that are never live together share a row, so that a warp's frame stays in the cache.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "program/operation.hpp"
#include "ptx/ast.hpp"

namespace tessera::emulator {

class RegisterRows {
public:
    explicit RegisterRows(const ptx::Function& function);

    /// Row of register number `number` of a declaration (0 if it is not parameterized); no_row if it is never used.
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
        Key key;
        std::uint32_t first = 0, last = 0;  // instructions that name it
        std::uint32_t block = 0;            // straight piece of code of the first instruction
        bool one_block = true, defined_first = false, pinned = false;
    };
    struct Loop {
        std::uint32_t first, last;
    };
    class Collector;
    void extend_over_loops(const std::vector<Loop>& loops);
    void assign();

    std::vector<Life> lives_;
    std::unordered_map<Key, Ref, Hash> rows_;
    std::vector<RegisterRow> layout_;
    std::uint32_t bytes_ = 0, peak_ = 0;
};

}  // namespace tessera::emulator
