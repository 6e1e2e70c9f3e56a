#pragma once

// Memory of every state space, as instructions reach it: address to bytes, with all checks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "checks/shared_shadow.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

class AsyncOperation;

enum class Space : std::uint8_t { generic, global, constant, shared, local, parameter };
enum class Direction : std::uint8_t { read, write, read_write };

/// One access of one lane.
struct MemoryAccess {
    Space space = Space::generic;
    Direction direction = Direction::read;
    bool atomic = false;
    bool volatile_access = false;  ///< .volatile, .relaxed and stronger: not a data race
    const char* what = "ld";       ///< must live as long as the program, as the texts of literals and payloads do
    bool ignores_value = false;    ///< what is read goes nowhere
    /// What is read goes to these registers, one for each of the equal parts of the access, and nowhere else: a value
    /// that nobody wrote is reported when it is used. If there are none, it is reported at once.
    std::span<const Ref> registers{};
};

/// The `size` bytes at `address`; checks alignment to `alignment`, bounds, initialization, races; reports or faults.
/// The pointer may be used for this access only. Atomic and volatile accesses synchronize as synchronize() says.
/// Addresses of Space::parameter are those of the kernel's parameter block, with or without `parameter_window`.
[[nodiscard]] std::byte* locate(Warp& warp, const Operation& operation, const MemoryAccess& access,
                                std::uint64_t address, unsigned size, unsigned alignment, unsigned lane);

/// The rules by which accesses to memory give order between agents: what is volatile, relaxed or stronger, or atomic
/// acquires from and releases to the point of its (generic) address. PTX asks for more (an acquire pattern on the one
/// side, a release pattern on the other); this gives no false alarm on spin flags of any style. Nothing if checks are
/// off.
void synchronize(Warp& warp, std::uint64_t generic_address, Direction direction);

/// The same as locate() for asynchronous operations and others that are not an access of a lane: bytes in global
/// memory, or of the kernel's parameters when reading. Null if it is outside of every allocation, or constant when
/// writing; the caller decides if that is a fault. `problem` says what is wrong; it is also set, with a pointer
/// returned, if bytes were read that nobody wrote.
[[nodiscard]] std::byte* locate_global(Cluster& cluster, std::uint64_t address, std::uint64_t size, Direction direction,
                                       std::string& problem);

/// Finding::cause of what concerns an allocation as a whole, or the one that contains `address`.
[[nodiscard]] std::string cause_of(const Allocation& allocation);
[[nodiscard]] std::string cause_in(const Cluster& cluster, std::uint64_t address);

/// A generic address as the shared window's 32 bits; false if it is not in the window.
[[nodiscard]] inline bool generic_to_shared(std::uint64_t address, std::uint32_t& shared) noexcept
{
    if (address >= shared_window && address < shared_window + (1ull << 32)) {
        shared = static_cast<std::uint32_t>(address - shared_window);
        return true;
    }
    return false;
}

/// The mbarrier at a shared::cta or shared::cluster address (or a generic one, if it is above 32 bits), for an
/// operation of `warp`. Faults or reports if nothing is there: not initialized, misaligned, CTA not in the cluster or
/// gone. Null if reported without fault.
[[nodiscard]] Mbarrier* find_mbarrier(Warp& warp, const Operation& operation, std::uint64_t address, unsigned lane);

/// arrive / complete_tx by asynchronous work at cluster scope, with clocks, wake-up and reports.
void async_arrive(Cluster& cluster, const AsyncOperation& by, std::uint32_t shared_address, std::int64_t count,
                  std::int64_t completed_bytes);

}  // namespace tessera::emulator
