#pragma once

// Decoders of barrier instructions that have their own files, and what they share.

#include "machine/cluster.hpp"
#include "machine/mbarrier.hpp"
#include "machine/warp.hpp"
#include "program/decoder.hpp"

namespace tessera::emulator {

void decode_mbarrier(Decoder& decoder, Operation& operation);  // execute/mbarrier.cpp
void decode_fence(Decoder& decoder, Operation& operation);     // execute/fence.cpp
void decode_membar(Decoder& decoder, Operation& operation);    // execute/fence.cpp

/// The mbarrier that an instruction names.
struct BarrierSite {
    Mbarrier* barrier = nullptr;  ///< null if there is none; already reported
    Cta* cta = nullptr;           ///< the CTA that has the barrier
    std::uint32_t address = 0;    ///< in the shared::cluster window, rank included

    explicit operator bool() const noexcept { return barrier != nullptr; }
};

/// The mbarrier at `address`, which is in the shared window or generic. Reports or faults if there is none, or if its
/// initialization is not known to be complete.
[[nodiscard]] BarrierSite barrier_at(Warp& warp, const Operation& operation, std::uint64_t address, unsigned lane);

/// A shared address (in the shared window, or generic) with the rank of its CTA; faults if it is neither.
[[nodiscard]] std::uint32_t to_shared_window(Warp& warp, const Operation& operation, std::uint64_t address,
                                             unsigned lane);

/// Reports what is wrong with an operation on a barrier: `problem` if not empty, and copies that a completed phase did
/// not wait for.
void report_barrier_problems(Warp& warp, const Operation& operation, unsigned lane, const BarrierSite& site,
                             FindingKind kind, const std::string& problem);

}  // namespace tessera::emulator
