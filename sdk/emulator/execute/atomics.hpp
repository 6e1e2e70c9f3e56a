#pragma once

// One atomic read-modify-write of one lane, as atom, red, red.async and reducing bulk copies do it.

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
/// Does atom or red have the operation for the scalar `type`? `vector`: as an element of a vector.
[[nodiscard]] bool has_atomic(AtomicKind kind, ptx::Type type, bool vector) noexcept;

/// Replaces the value of the type at `at` (aligned) by f(value, b[, c]); operands and result are its bits. In global
/// memory it is atomic towards other CPU threads, and f32 additions flush subnormals (PTX ISA "atom"); shared memory
/// belongs to one CPU thread, and keeps subnormals. Not for 128-bit types. @return the value before
using AtomicUpdate = std::uint64_t (*)(std::byte* at, std::uint64_t b, std::uint64_t c, bool in_shared);
[[nodiscard]] AtomicUpdate atomic_update(AtomicKind kind, ptx::Type type);

}  // namespace tessera::emulator
