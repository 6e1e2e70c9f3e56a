#pragma once

// Memory of every state space for instructions: from address to bytes, with all checks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/address_space.hpp"
#include "base/memory_kinds.hpp"
#include "checks/shared_shadow.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

/// The findings of an instruction of a warp.
class KnownOfWarp final : public KnownFindings {
public:
    KnownOfWarp(const Warp& warp, const Operation& operation) : warp_(warp), operation_(operation) {}
    [[nodiscard]] bool knows(FindingKind kind, std::uint32_t other_line) const override
    {
        return warp_.is_known(operation_, kind, other_line);
    }

private:
    const Warp& warp_;
    const Operation& operation_;
};

/// One access of one lane.
struct MemoryAccess {
    Space space = Space::generic;
    Direction direction = Direction::read;
    bool atomic = false;
    MemoryOrder order{};
    const char* what = "ld";     ///< must live as long as the program
    bool ignores_value = false;  ///< the value is not used
    /// The registers that receive the value, one for each of the equal parts of the access, if nothing else does. An
    /// undefined value is then reported when it is used. If empty, it is reported at once.
    std::span<const Ref> registers{};
    /// The bytes that the access is about to write, if known: stores of several warps that leave the same value are no
    /// race.
    const void* stored = nullptr;
    /// One access of all lanes together, as of an .aligned instruction: none of them races with it.
    bool whole_warp = false;
};

/// The `size` bytes at `address`. Checks alignment, bounds, initialization and races; reports or faults. Use the
/// pointer for this access only. Atomic and volatile accesses synchronize, see synchronize(). Addresses of
/// Space::parameter are in the kernel's parameter block, with or without `parameter_window`.
[[nodiscard]] std::byte* locate(Warp& warp, const Operation& operation, const MemoryAccess& access,
                                std::uint64_t address, unsigned size, unsigned alignment, unsigned lane);

/// The bytes that locate() returns, found without the fast paths and with no effect; null if locate() has something to
/// report.
[[nodiscard]] std::byte* place_without_effects(Warp& warp, const MemoryAccess& access, std::uint64_t address,
                                               unsigned size, unsigned alignment, unsigned lane);

/// Order between agents from strong accesses to memory, through the point of their (generic) address: acquiring and
/// releasing ones by themselves, relaxed ones together with fences, both within their scopes (PTX ISA 8.8). Volatile
/// ones, which PTX calls relaxed, acquire and release here: a flag of the old style is then no false alarm. Does nothing
/// if checks are off.
void synchronize(Warp& warp, LaneMask lanes, std::uint64_t generic_address, Direction direction, MemoryOrder order);

/// `lanes` write global memory with an access that others may wait for. With Options::flags_before_stores, reports it if
/// they have not waited for their bulk stores: another thread that sees the write may not see what they store.
void check_flag(Warp& warp, const Operation& operation, LaneMask lanes, const char* what);

/// What is wrong with an access; `text` is empty if nothing is.
struct GlobalProblem {
    FindingKind kind = FindingKind::out_of_bounds;
    std::string text;
};

/// Like locate(), for asynchronous operations and others that are not an access of a lane: bytes in global memory or,
/// when reading, of the kernel's parameters. Returns null outside of every allocation, or when writing constant memory;
/// the caller decides if that is a fault. `problem` is also set, with a pointer returned, if bytes were read that were
/// never written, or if Options::overruns_continue allows an access out of bounds: the caller then reports it.
[[nodiscard]] std::byte* locate_global(Cluster& cluster, std::uint64_t address, std::uint64_t size, Direction direction,
                                       GlobalProblem& problem);

/// Finding::cause of a finding about a whole allocation, or about the one that contains `address`.
[[nodiscard]] std::string cause_of(const Allocation& allocation);
[[nodiscard]] std::string cause_in(const Cluster& cluster, std::uint64_t address);

/// Converts a generic address to the shared window's 32 bits; returns false if it is not in the window.
[[nodiscard]] inline bool generic_to_shared(std::uint64_t address, std::uint32_t& shared) noexcept
{
    if (address >= shared_window && address < shared_window + (1ull << 32)) {
        shared = static_cast<std::uint32_t>(address - shared_window);
        return true;
    }
    return false;
}

}  // namespace tessera::emulator
