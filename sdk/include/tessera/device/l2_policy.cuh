#pragma once

/// What L2 does with the lines that an access brings there.

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// Which lines L2 gives up first when it needs their room. A hint: no result depends on it. Of data that is read once,
/// `evict_first` keeps what is read again in L2, and the lines that others wrote there from going to memory early.
///
/// Made where it is used: its bits are the device's own, and have no meaning on the host.
///
/// Source: PTX ISA, "createpolicy".
class L2Policy {
public:
    /// Its lines go before those of any other policy.
    __device__ static L2Policy evict_first()
    {
        L2Policy policy;
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy.bits_));  // not in cuda::ptx
        return policy;
    }
    /// Its lines go when they would without this access. A program that only loads is as fast with it on an H200 as
    /// without a policy. (`evict_normal` is not that: with it for all loads, Hopper kernels whose CTAs read the same
    /// lines took a third longer, and more.)
    __device__ static L2Policy evict_unchanged()
    {
        L2Policy policy;
        asm("createpolicy.fractional.L2::evict_unchanged.b64 %0, 1.0;" : "=l"(policy.bits_));
        return policy;
    }

    /// The operand of `.L2::cache_hint`.
    __device__ std::uint64_t bits() const { return bits_; }

private:
    __device__ L2Policy() {}

    std::uint64_t bits_;
};

}  // namespace tessera
