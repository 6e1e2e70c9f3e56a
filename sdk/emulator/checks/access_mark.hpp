#pragma once

// One access to shared memory, in 64 bits: who made it, when, how, and at which instruction.

#include <cstddef>
#include <cstdint>

#include "base/agent.hpp"
#include "checks/clocks.hpp"

namespace tessera::emulator {

/// Time in bits 32-63, agent in 16-31, async proxy in 15, atomic in 14, number of the instruction in 0-13. 0 is nobody;
/// the time of an access is never 0.
using Mark = std::uint64_t;

constexpr unsigned site_bits = 14;
constexpr Mark atomic_bit = Mark{1} << site_bits, proxy_bit = atomic_bit << 1;

[[nodiscard]] constexpr Epoch epoch_of(Mark mark) noexcept
{
    return {static_cast<Agent>(mark >> 16), static_cast<std::uint32_t>(mark >> 32)};
}
[[nodiscard]] constexpr std::size_t site_of(Mark mark) noexcept { return mark & (atomic_bit - 1); }
[[nodiscard]] constexpr bool is_atomic(Mark mark) noexcept { return (mark & atomic_bit) != 0; }
[[nodiscard]] constexpr bool is_async_proxy(Mark mark) noexcept { return (mark & proxy_bit) != 0; }
/// True for the same agent at the same time in the same way, perhaps by another instruction.
[[nodiscard]] constexpr bool alike(Mark a, Mark b) noexcept { return (a ^ b) >> site_bits == 0; }

}  // namespace tessera::emulator
