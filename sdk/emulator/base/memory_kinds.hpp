#pragma once

// Kinds of memory accesses, in the words of PTX ISA 8, "Memory Consistency Model".

#include <cstdint>

namespace tessera::emulator {

enum class Space : std::uint8_t { generic, global, constant, shared, local, parameter, tensor };
enum class Direction : std::uint8_t { read, write, read_write };
enum class Proxy : std::uint8_t { generic, async };

/// `volatile_access`: as relaxed, and what a program uses for flags of any style, see synchronize().
enum class Semantics : std::uint8_t { weak, volatile_access, relaxed, acquire, release, acq_rel, sc };

/// The threads among which an access or a fence orders. Larger is wider. `none`: for weak accesses.
enum class Scope : std::uint8_t { none, cta, cluster, gpu, sys };

struct MemoryOrder {
    Semantics semantics = Semantics::weak;
    Scope scope = Scope::none;

    /// Returns true unless the access is weak: strong accesses do not race with each other.
    [[nodiscard]] constexpr bool strong() const noexcept { return semantics != Semantics::weak; }
    [[nodiscard]] constexpr bool releases() const noexcept
    {
        return semantics == Semantics::release || semantics == Semantics::acq_rel || semantics == Semantics::sc;
    }
    [[nodiscard]] constexpr bool acquires() const noexcept
    {
        return semantics == Semantics::acquire || semantics == Semantics::acq_rel || semantics == Semantics::sc;
    }
    /// Returns true if it orders the threads of one CTA at most.
    [[nodiscard]] constexpr bool within_cta() const noexcept { return scope == Scope::cta; }
    friend constexpr bool operator==(const MemoryOrder&, const MemoryOrder&) = default;
};

}  // namespace tessera::emulator
