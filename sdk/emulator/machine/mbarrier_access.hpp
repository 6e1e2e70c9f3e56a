#pragma once

// Finds mbarriers, for instructions and for asynchronous work that arrives on them.

#include <cstdint>

#include "machine/async_operation.hpp"
#include "machine/mbarrier.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

/// The mbarrier at a shared::cta or shared::cluster address (or a generic one, if above 32 bits), for an operation of
/// `warp`. Faults or reports if it is not initialized or misaligned, or if its CTA is not in the cluster or has exited.
/// Returns null if reported without fault.
[[nodiscard]] Mbarrier* find_mbarrier(Warp& warp, const Operation& operation, std::uint64_t address, unsigned lane);

/// arrive or complete_tx by asynchronous work, at cluster scope, with clocks, wake-up and reports.
void async_arrive(Cluster& cluster, const AsyncOperation& by, std::uint32_t shared_address, std::int64_t count,
                  std::int64_t completed_bytes);

}  // namespace tessera::emulator
