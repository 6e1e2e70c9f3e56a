#pragma once

// Addresses of shared, local and parameter memory: the windows of the generic address space, and places in a window.

#include <cstdint>

namespace tessera::emulator {

/// Start of the CTA's own variables in the shared window. The system uses what is below (observed on sm_90 to sm_120).
inline constexpr std::uint32_t shared_base = 0x400;
/// Number of address bits below the CTA's rank in a shared address.
inline constexpr unsigned shared_rank_shift = 24;
/// A shared address without the rank of its CTA.
[[nodiscard]] constexpr std::uint32_t offset_in_cta(std::uint32_t address) noexcept
{
    return address & ((1U << shared_rank_shift) - 1);
}
/// Start of the generic addresses of shared and local memory; bits 0-31 are the address in the window.
inline constexpr std::uint64_t shared_window = 0x00E0'0000'0000'0000;
inline constexpr std::uint64_t local_window = 0x00D0'0000'0000'0000;
inline constexpr std::uint64_t parameter_window = 0x00C0'0000'0000'0000;

}  // namespace tessera::emulator
