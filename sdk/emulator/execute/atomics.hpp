#pragma once

// One atomic read-modify-write of one lane: used by atom, red, red.async and reducing bulk copies.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ptx/ast.hpp"

namespace tessera::emulator {

enum class AtomicKind : std::uint8_t {
    add,
    minimum,
    maximum,
    increment,
    decrement,
    bit_and,
    bit_or,
    bit_xor,
    exchange,
    compare_and_swap
};

/// "add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas".
[[nodiscard]] std::optional<AtomicKind> atomic_named(std::string_view name) noexcept;
/// Returns true if atom or red supports the operation for the scalar `type`. `vector`: as an element of a vector.
[[nodiscard]] bool has_atomic(AtomicKind kind, ptx::Type type, bool vector) noexcept;

/// Replaces the value at the aligned address `at` by f(value, b[, c]); operands and result are bits of the type. In
/// global memory it is atomic with respect to other CPU threads, and f32 additions flush subnormals (PTX ISA "atom").
/// Shared memory belongs to one CPU thread, and additions keep subnormals. Not for 128-bit types. @return the old value
using AtomicUpdate = std::uint64_t (*)(std::byte* at, std::uint64_t b, std::uint64_t c, bool in_shared);
[[nodiscard]] AtomicUpdate atomic_update(AtomicKind kind, ptx::Type type);

}  // namespace tessera::emulator
