#pragma once

// The addresses of a warp's lanes, and their shape: found once per instruction, in loops that compilers vectorize.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/access_shape.hpp"
#include "base/lanes.hpp"

namespace tessera::emulator {

/// Addresses in 32 bits (shared memory) or 64 bits.
template <typename A>
struct LaneAddresses {
    /// Lanes that are not active have the address of the first that is. Only after spread(), unless scattered.
    alignas(64) std::array<A, warp_size> at;
    A low;     ///< least
    A bits;    ///< its low bits are those of all addresses, or-ed
    A high;    ///< greatest; not beside `low`: compilers would load both at once, and wait until both stores are done
    A stride;  ///< between lanes, modulo 2^n, unless scattered
    AccessShape shape;
    bool is_spread = true;
    /// If not null, and scattered with all lanes: at[lane] = low + (base[lane] - base_low).
    const A* base = nullptr;
    A base_low = 0;

    void spread() noexcept
    {
        if (is_spread) {
            return;
        }
        if (shape == AccessShape::scattered) {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                at[lane] = low + (base[lane] - base_low);
            }
        } else {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                at[lane] = low + static_cast<A>(lane * stride);
            }
        }
        is_spread = true;
    }
};

/// Finds everything but `at` from at[lane] = base[lane] + offset, if these are regular and all lanes are active.
template <typename A>
[[nodiscard]] inline bool find_regular(LaneAddresses<A>& a, const A* base, A offset, unsigned bytes)
{
    const A first = base[0], stride = base[1] - base[0], span = static_cast<A>((warp_size - 1) * stride);
    if (base[warp_size - 1] - first != span) {
        return false;  // most irregular ones, such as those of blocks that are 16 threads wide
    }
    A irregular = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        irregular |= base[lane] ^ static_cast<A>(first + static_cast<A>(lane * stride));
    }
    const A low = first + offset, high = low + span;
    if (irregular != 0 || stride > static_cast<A>(~A{0} / warp_size) || high < low) {
        return false;
    }
    a.low = low;
    a.high = high;
    a.bits = low | stride;
    a.stride = stride;
    a.shape = stride == 0 ? AccessShape::uniform : stride == bytes ? AccessShape::row : AccessShape::strided;
    a.is_spread = false;
    return true;
}

/// Finds everything else from `at`. `bytes`: what a lane accesses, a power of two.
template <typename A>
inline void find_shape(LaneAddresses<A>& a, LaneMask active, unsigned bytes)
{
    const A first = a.at[0];
    const A stride = a.at[1] - first;
    const A last = a.at[warp_size - 1];
    const A span = static_cast<A>((warp_size - 1) * stride);
    A irregular = (last - first) ^ span;
    if (irregular == 0) {
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            irregular |= a.at[lane] ^ static_cast<A>(first + static_cast<A>(lane * stride));
        }
    }
    a.stride = stride;
    if (irregular == 0 && stride == 0) {
        a.low = a.high = a.bits = first;
        a.shape = AccessShape::uniform;
        return;
    }
    const bool rises = stride <= static_cast<A>(~A{0} / warp_size) && last >= first;
    if (irregular == 0 && active == all_lanes && rises) {
        a.low = first;
        a.high = last;
        a.bits = first | stride;
        a.shape = stride == bytes ? AccessShape::row : AccessShape::strided;
        return;
    }
    A low = first, high = first, bits = first;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        low = std::min(low, a.at[lane]);
        high = std::max(high, a.at[lane]);
        bits |= a.at[lane];
    }
    a.low = low;
    a.high = high;
    a.bits = bits;
    a.shape = AccessShape::scattered;
}

/// at[lane] = base[lane] + offset, modulo 2^n. Lanes that are not active have the address of the first that is.
template <typename A, typename Base>
inline void add_offset(std::array<A, warp_size>& at, const Base* base, A offset, LaneMask active)
{
    if (active == all_lanes) {
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            at[lane] = static_cast<A>(base[lane]) + offset;
        }
        return;
    }
    const Base first = base[static_cast<unsigned>(std::countr_zero(active))];
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        at[lane] = static_cast<A>((active >> lane & 1) != 0 ? base[lane] : first) + offset;
    }
}

}  // namespace tessera::emulator
