#pragma once

/// @file
/// @ingroup device_tma
/// @brief `L2Policy`: which cache lines L2 evicts first.

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// A hint for L2: when it needs room, which of the lines that an access brings in go first. No result depends on it.
///
/// For data that is streamed, `evict_first` keeps data that is used again in L2, and keeps dirty lines from being
/// written to memory early.
///
/// Make it where it is used: its bits are the device's own and mean nothing on the host.
///
/// Source: PTX ISA, "createpolicy".
class L2Policy {
public:
    /// Evicts these lines before those of any other policy.
    __device__ static L2Policy evict_first()
    {
        L2Policy policy;
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy.bits_));  // not in cuda::ptx
        return policy;
    }
    /// Leaves the order of eviction as it is. On an H200 a program that only loads is as fast with this policy as
    /// without one.
    ///
    /// `evict_normal` is something else: with it for all loads, Hopper kernels whose CTAs read the same lines took a
    /// third longer or more.
    __device__ static L2Policy evict_unchanged()
    {
        L2Policy policy;
        asm("createpolicy.fractional.L2::evict_unchanged.b64 %0, 1.0;" : "=l"(policy.bits_));
        return policy;
    }

    /// Returns the operand of `.L2::cache_hint`.
    __device__ std::uint64_t bits() const { return bits_; }

private:
    __device__ L2Policy() {}

    std::uint64_t bits_;
};

}  // namespace tessera
