#pragma once

// The fast path of memory accesses: all lanes of a warp at once. Each function returns false, and has done nothing, if
// something about the access is unusual; locate(), lane by lane, then does it or says what is wrong.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/windows.hpp"
#include "execute/lane_addresses.hpp"
#include "execute/memory_lanes.hpp"
#include "execute/row_copies.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {

/// What the checks of shared memory say about an access, and its synchronization. (execute/memory_lanes.cpp)
void check_shared(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active, Cta& cta,
                  const LaneAddresses<std::uint32_t>& offsets);
/// Order from accesses that are atomic or strong: see synchronize().
void synchronize_lanes(Warp& warp, const std::uint64_t* generic, LaneMask active, const MemoryAccess& access);
/// Checks accesses to global memory against bulk copies of the cluster. There is a Cluster::global_shadow.
void check_bulk_copies(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                       const LaneAddresses<std::uint64_t>& a);
/// Whether all bytes were written, and marks them as written, where the lanes are not regular.
[[nodiscard]] bool all_initialized(Allocation& allocation, unsigned bytes, LaneMask active,
                                   const LaneAddresses<std::uint64_t>& a);
void mark_initialized(Allocation& allocation, unsigned bytes, LaneMask active, const LaneAddresses<std::uint64_t>& a);

/// The addresses of a memory operand in 64 bits. Returns true.
inline bool find_addresses(const Warp& warp, const AddressRef& ref, LaneMask active, unsigned bytes,
                           LaneAddresses<std::uint64_t>& a)
{
    const auto offset = static_cast<std::uint64_t>(ref.offset);
    if (ref.base == no_row) {
        a.at.fill(offset);
    } else if (ref.wide) {
        add_offset(a.at, warp.row<std::uint64_t>(ref.base), offset, active);
    } else {
        LaneAddresses<std::uint32_t> narrow;
        add_offset(narrow.at, warp.row<std::uint32_t>(ref.base), static_cast<std::uint32_t>(offset), active);
        std::copy(narrow.at.begin(), narrow.at.end(), a.at.begin());  // 32-bit addresses wrap
    }
    find_shape(a, active, bytes);
    return true;
}

/// The same without `at`, if the addresses are regular.
template <typename A>
[[nodiscard]] inline bool find_regular(const Warp& warp, const AddressRef& ref, LaneMask active, unsigned bytes,
                                       LaneAddresses<A>& a)
{
    return active == all_lanes && ref.base != no_row && ref.wide == (sizeof(A) == 8) &&
           find_regular(a, warp.row<A>(ref.base), static_cast<A>(ref.offset), bytes);
}

/// The addresses of a memory operand in the window of shared memory. Returns false if one has more than 32 bits.
inline bool find_addresses(const Warp& warp, const AddressRef& ref, LaneMask active, unsigned bytes,
                           LaneAddresses<std::uint32_t>& a)
{
    const auto offset = static_cast<std::uint64_t>(ref.offset);
    if (ref.base == no_row) {
        if (offset >> 32 != 0) {
            return false;
        }
        a.at.fill(static_cast<std::uint32_t>(offset));
    } else if (ref.wide) {
        LaneAddresses<std::uint64_t> wide;
        add_offset(wide.at, warp.row<std::uint64_t>(ref.base), offset, active);
        std::uint64_t bits = 0;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            bits |= wide.at[lane];
            a.at[lane] = static_cast<std::uint32_t>(wide.at[lane]);
        }
        if (bits >> 32 != 0) {
            return false;
        }
    } else {
        add_offset(a.at, warp.row<std::uint32_t>(ref.base), static_cast<std::uint32_t>(offset), active);
    }
    find_shape(a, active, bytes);
    return true;
}

/// The words that lanes access, from the lowest address on: see LaneOffsets::near_words.
template <typename A>
[[nodiscard]] inline std::uint32_t words_near(const LaneAddresses<A>& a, unsigned bytes)
{
    if (bytes < 4 || a.high - a.low + bytes > 128) {
        return 0;
    }
    std::uint32_t words = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        words |= ((1U << bytes / 4) - 1) << ((a.at[lane] - a.low) / 4);
    }
    return words;
}

/// The address of an operation with an Operation::base, by the register that the base is about.
[[nodiscard]] inline AddressRef address_by_base(const Operation& operation, const MemoryPayload& payload)
{
    AddressRef ref = payload.address;
    if (!ref.wide && operation.base != 0) {
        ref.offset = operation.operand[1];
        ref.base = operation.operand[2];
    }
    return ref;
}

/// The same for the fast path: once for operations with the same Operation::base.
template <typename A>
[[nodiscard]] inline bool find_addresses_once(Warp& warp, const Operation& operation, const MemoryPayload& payload,
                                              LaneMask active, LaneAddresses<A>& a)
{
    const AddressRef ref = address_by_base(operation, payload);
    const auto offset = static_cast<A>(ref.offset);
    const bool fits = ref.wide == (sizeof(A) == 8);
    const auto find = [&] {
        if (find_regular(warp, ref, active, payload.bytes, a)) {
            return true;
        }
        const bool found = find_addresses(warp, ref, active, payload.bytes, a);
        if (sizeof(A) == 4 && found && fits && ref.base != no_row && active == all_lanes) {
            a.base = warp.row<A>(ref.base);
            a.base_low = a.low - offset;
        }
        return found;
    };
    if (operation.base == 0) {
        return find();
    }
    Warp::KnownBase& known = warp.known_base(operation.base);
    if (!operation.is_base_known) {
        const bool found = find();
        const bool scattered = a.shape == AccessShape::scattered;
        known.number =
            fits && (!scattered || (a.base != nullptr && (a.bits & (payload.bytes - 1)) == 0)) ? operation.base : 0;
        known.bytes = static_cast<std::uint8_t>(scattered ? payload.bytes : 0);
        known.active = active;
        known.first = static_cast<A>(a.low - offset);
        known.stride = scattered ? static_cast<A>(a.high - a.low) : a.stride;
        known.near_words = scattered && known.number != 0 ? words_near(a, payload.bytes) : 0;
        known.kept = {};
        return found;
    }
    const bool scattered = known.bytes != 0;
    const auto stride = static_cast<A>(known.stride);
    const A low = static_cast<A>(known.first) + offset;
    const A high = scattered ? low + stride : low + (warp_size - 1) * stride;
    if (!fits || known.number != operation.base || known.active != active || high < low ||
        (scattered && payload.bytes > known.bytes)) {
        return find();
    }
    a.low = low;
    a.high = high;
    a.is_spread = false;
    if (scattered) {
        a.bits = low;  // the differences are aligned
        a.shape = AccessShape::scattered;
        a.base = warp.row<A>(ref.base);
        a.base_low = static_cast<A>(known.first);
        return true;
    }
    a.bits = low | stride;
    a.stride = stride;
    a.shape = stride == 0 ? AccessShape::uniform : stride == payload.bytes ? AccessShape::row : AccessShape::strided;
    return true;
}

/// `base`: where address 0 would be.
template <typename A>
inline void set_pointers(LanePointers& pointers, const LaneAddresses<A>& a, std::uintptr_t base)
{
    pointers.shape = a.shape;
    pointers.first = reinterpret_cast<std::byte*>(base + a.low);
    pointers.stride = static_cast<std::ptrdiff_t>(a.stride);
    if (a.shape != AccessShape::scattered) {
        return;
    }
    if constexpr (sizeof(A) == 4) {
        pointers.base = a.base;
        pointers.base_low = a.base_low;
    }
    if (pointers.base == nullptr) {
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            pointers.at[lane] = base + a.at[lane];
        }
    }
}

/// Bytes that read_near() reads for an access that needs `needed`, and of which there are `available`.
inline std::uint32_t near_of(std::uint32_t needed, std::uint32_t available)
{
    const std::uint32_t window = needed <= near_bytes / 2 ? near_bytes / 2 : near_bytes;
    return needed <= window && window <= available ? window : 0;
}

/// Most loads need no more checks than this: see SharedShadow::read_early().
inline bool read_early(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active, Cta& cta,
                       const LaneAddresses<std::uint32_t>& offsets)
{
    const MemoryAccess& access = payload.access;
    if (access.direction != Direction::read || access.atomic || access.order.strong() || payload.site.what == nullptr ||
        &cta != &warp.cta || cta.responses.touches(offsets.low, std::uint64_t{offsets.high} + payload.bytes)) {
        return false;
    }
    LaneOffsets where{offsets.at.data(), offsets.low, offsets.high, offsets.stride, offsets.shape};
    if (offsets.shape == AccessShape::scattered && !offsets.is_spread) {  // so the base is known
        where.at = offsets.base;
        where.shift = offsets.low - offsets.base_low;
        where.kept = &warp.known_base(operation.base).kept;
    }
    return cta.shadow->read_early(warp.agent, where, active, payload.bytes, payload.site);
}

/// All lanes access the shared memory of one CTA, aligned and in bounds. `a` are addresses in the window, and are
/// offsets in the CTA's memory afterwards.
template <bool checked>
inline bool resolve_shared(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                           LaneAddresses<std::uint32_t>& a, LanePointers& pointers)
{
    Cta* cta = &warp.cta;
    const std::uint32_t rank = a.low >> shared_rank_shift;
    if (rank != warp.cta.rank) [[unlikely]] {
        cta = warp.cluster.cta_of(a.low);
        if (cta == nullptr || !cta->started || cta->exited() || payload.own_cta) {
            return false;
        }
    }
    const std::uint32_t origin = (rank << shared_rank_shift) + shared_base;
    const auto size = static_cast<std::uint32_t>(cta->shared.size());
    // Addresses below the origin wrap to large offsets.
    if ((a.bits & (payload.bytes - 1)) != 0 || payload.bytes > size || a.low - origin > size - payload.bytes ||
        a.high - origin > size - payload.bytes) {
        return false;
    }
    a.low -= origin;
    a.high -= origin;
    if (a.is_spread) {
        for (std::uint32_t& address : a.at) {
            address -= origin;
        }
    }
    if constexpr (checked) {
        if (!read_early(warp, operation, payload, active, *cta, a)) {
            a.spread();
            check_shared(warp, operation, payload, active, *cta, a);
        }
    }
    set_pointers(pointers, a, reinterpret_cast<std::uintptr_t>(cta->shared.data()));
    pointers.near = near_of(a.high - a.low + payload.bytes, size - a.low);
    Statistics& statistics = warp.cluster.statistics;
    const std::uint64_t bytes = std::uint64_t{payload.bytes} * static_cast<unsigned>(std::popcount(active));
    statistics.shared_read_bytes += payload.access.direction != Direction::write ? bytes : 0;
    statistics.shared_write_bytes += payload.access.direction != Direction::read ? bytes : 0;
    return true;
}

/// All lanes access one allocation, aligned and in bounds.
template <bool checked>
inline bool resolve_global(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                           LaneAddresses<std::uint64_t>& a, LanePointers& pointers)
{
    Cluster& cluster = warp.cluster;
    if ((a.bits & (payload.bytes - 1)) != 0) {
        return false;
    }
    const AllocationCache::Entry* const entry =
        cluster.allocations->find(cluster.grid.memory, a.low, payload.allocation_site);
    if (entry == nullptr || entry->size < payload.bytes || a.high - entry->begin > entry->size - payload.bytes) {
        return false;
    }
    Allocation& allocation = *entry->allocation;
    const MemoryAccess& access = payload.access;
    const bool reads = access.direction != Direction::write, writes = access.direction != Direction::read;
    if (writes && allocation.constant) {
        return false;
    }
    if (allocation.initialized != nullptr && !allocation.complete.load(std::memory_order_relaxed)) {
        if (entry->begin % 32 != 0) {
            return false;  // a lane's bits would not be in one word
        }
        a.spread();
        if (checked && reads && !all_initialized(allocation, payload.bytes, active, a)) {
            return false;  // locate() finds the lane
        }
        if (writes) {
            mark_initialized(allocation, payload.bytes, active, a);
        }
    }
    if constexpr (checked) {
        if (writes) {
            allocation.note_kernel_write();
        }
        if (access.atomic || access.order.strong()) {
            a.spread();
            synchronize_lanes(warp, a.at.data(), active, access);
        }
        if (cluster.global_shadow != nullptr && (writes || cluster.global_shadow->bulk_stored())) {
            a.spread();
            check_bulk_copies(warp, operation, payload, active, a);
        }
    }
    set_pointers(pointers, a,
                 reinterpret_cast<std::uintptr_t>(allocation.bytes) - static_cast<std::uintptr_t>(entry->begin));
    Statistics& statistics = cluster.statistics;
    const std::uint64_t bytes = std::uint64_t{payload.bytes} * static_cast<unsigned>(std::popcount(active));
    statistics.global_read_bytes += reads ? bytes : 0;
    statistics.global_write_bytes += writes ? bytes : 0;
    return true;
}

}  // namespace tessera::emulator
