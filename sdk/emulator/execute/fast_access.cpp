// Loads and stores of the common types and spaces, without branches that the launch or the PTX has decided before.

#include "execute/fast_access.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "execute/compare_paths.hpp"
#include "execute/lane_access.hpp"
#include "execute/row_copies.hpp"

namespace tessera::emulator {

namespace {

template <Space space, bool checked>
bool resolve_at_once(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                     LanePointers& pointers)
{
    if constexpr (space == Space::shared) {
        LaneAddresses<std::uint32_t> a;
        return find_addresses_once(warp, operation, payload, active, a) &&
               resolve_shared<checked>(warp, operation, payload, active, a, pointers);
    } else {
        LaneAddresses<std::uint64_t> a;
        return find_addresses_once(warp, operation, payload, active, a) &&
               resolve_global<checked>(warp, operation, payload, active, a, pointers);
    }
}

/// A load from the CTA's own shared memory, through a register whose addresses an earlier access has found: see
/// Operation::base. Returns false, and has done nothing, if something is unusual.
template <typename T, bool checked>
inline bool load_from_known_base(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active)
{
    Warp::KnownBase& known = warp.known_base(operation.base);
    if (known.number != operation.base || known.active != active || payload.address.wide) {
        return false;
    }
    Cta& cta = warp.cta;
    const bool scattered = known.bytes != 0;
    const auto stride = static_cast<std::uint32_t>(known.stride), bytes = std::uint32_t{payload.bytes};
    const std::uint32_t span = scattered ? stride : (warp_size - 1) * stride;
    const std::uint32_t origin = (static_cast<std::uint32_t>(cta.rank) << shared_rank_shift) + shared_base;
    const auto base_low = static_cast<std::uint32_t>(known.first);
    const std::uint32_t low = base_low + operation.operand[1] - origin, high = low + span;
    const auto size = static_cast<std::uint32_t>(cta.shared.size());
    // Addresses below the origin wrap to large offsets.
    if (((scattered ? low : low | stride) & (bytes - 1)) != 0 || (scattered && bytes > known.bytes) || high < low ||
        bytes > size || high > size - bytes) {
        return false;
    }
    const AccessShape shape = scattered         ? AccessShape::scattered
                              : stride == 0     ? AccessShape::uniform
                              : stride == bytes ? AccessShape::row
                                                : AccessShape::strided;
    const std::uint32_t* const base = warp.row<std::uint32_t>(operation.operand[2]);
    if constexpr (checked) {
        if (cta.responses.touches(low, std::uint64_t{high} + bytes) ||
            !cta.shadow->read_early(warp.agent,
                                    {.at = base,
                                     .low = low,
                                     .high = high,
                                     .stride = stride,
                                     .shape = shape,
                                     .shift = low - base_low,
                                     .near_words = scattered && bytes == known.bytes ? known.near_words : 0,
                                     .kept = &known.kept},
                                    active, bytes, payload.site)) {
            return false;
        }
    }
    LanePointers pointers;
    pointers.shape = shape;
    pointers.first = cta.shared.data() + low;
    pointers.stride = static_cast<std::ptrdiff_t>(stride);
    if (scattered) {
        pointers.base = base;
        pointers.base_low = base_low;
        pointers.near = near_of(span + bytes, size - low);
    }
    read_rows<T>(warp, payload, active, pointers);
    warp.cluster.statistics.shared_read_bytes += std::uint64_t{bytes} * static_cast<unsigned>(std::popcount(active));
    return true;
}

/// In vectors, whatever the compiler thinks of a loop: who reads the row next would wait for 32 single stores. 64 bytes: nor
/// may they be smaller than what is read.
template <typename T>
inline void broadcast(T* row, T value)
{
    using Vector [[gnu::vector_size(64)]] = T;
    const Vector same = value - Vector{};
    for (unsigned lane = 0; lane < warp_size; lane += sizeof same / sizeof value) {
        std::memcpy(row + lane, &same, sizeof same);
    }
}

/// The same for the most frequent loads: of one element in each of all lanes, from one place or from a row. A launch of
/// SIMT code is full of them, so it reads nothing but the operation: see decode_access(). It calls nothing either, so
/// that it needs few registers.
template <typename T, bool checked>
inline bool load_row(Warp& warp, const Operation& operation)
{
    const Ref to = operation.operand[0];
    const Warp::KnownBase& known = warp.known_base(operation.base);
    const bool uniform = known.stride == 0;
    if (!operation.is_base_known || to == no_row || known.number != operation.base || known.bytes != 0 ||
        known.active != all_lanes || (!uniform && known.stride != sizeof(T))) {
        return false;
    }
    Cta& cta = warp.cta;
    const std::uint32_t origin = (static_cast<std::uint32_t>(cta.rank) << shared_rank_shift) + shared_base;
    const std::uint32_t low = static_cast<std::uint32_t>(known.first) + operation.operand[1] - origin;
    const std::size_t bytes = uniform ? sizeof(T) : warp_size * sizeof(T);
    // Addresses below the origin wrap to large offsets.
    if (const std::size_t size = cta.shared.size(); low % sizeof(T) != 0 || low >= size || size - low < bytes) {
        return false;
    }
    if constexpr (checked) {
        const ReadSite& site = operation.as<MemoryPayload>().site;
        if (cta.responses.touches(low, low + bytes) ||
            !(uniform ? cta.shadow->read_early_again<sizeof(T)>(warp.agent, low, site)
                      : cta.shadow->read_early_row<sizeof(T)>(warp.agent, low, site))) {
            return false;
        }
    }
    const std::byte* const from = cta.shared.data() + low;
    T* const row = warp.row<T>(to);
    if (uniform) {
        broadcast(row, value_at<T>(from));
    } else {
        std::memcpy(row, from, warp_size * sizeof(T));
    }
    warp.cluster.statistics.shared_read_bytes += warp_size * sizeof(T);
    return true;
}

/// A weak load or store of elements of type T, to or from registers of the same size.
template <typename T, Space space, bool loads, Handlers set>
[[gnu::noinline]] Step access_any(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MemoryPayload>();
    if constexpr (space == Space::shared && loads && set != Handlers::compared) {
        if (operation.is_base_known &&
            load_from_known_base<T, set == Handlers::checked>(warp, operation, payload, active)) [[likely]] {
            return Step::next;
        }
    }
    LanePointers pointers;
    const bool checked = set == Handlers::compared ? warp.checks() : set == Handlers::checked;
    if (!(checked ? resolve_at_once<space, true>(warp, operation, payload, active, pointers)
                  : resolve_at_once<space, false>(warp, operation, payload, active, pointers))) [[unlikely]] {
        return payload.any(warp, operation, active);
    }
    if constexpr (set == Handlers::compared) {
        compare_pointers(warp, operation, payload, active, pointers);
    }
    if constexpr (loads) {
        read_rows<T>(warp, payload, active, pointers);
    } else {
        if (checked && warp.follows_undefined()) [[unlikely]] {
            store_undefined(warp, operation, payload, active);
        }
        write_rows<T>(warp, payload, active, pointers);
        warp.cluster.progress();
    }
    return Step::next;
}

template <typename T, Space space, bool loads, Handlers set>
Step access(Warp& warp, const Operation& operation, LaneMask active)
{
    if constexpr (space == Space::shared && loads && set != Handlers::compared) {
        if (active == all_lanes) [[likely]] {
            return load_row<T, set == Handlers::checked>(warp, operation)
                       ? Step::next
                       : access_any<T, space, loads, set>(warp, operation, all_lanes);
        }
    }
    return access_any<T, space, loads, set>(warp, operation, active);
}

template <typename T, Space space, bool loads>
FastHandlers all_sets()
{
    return {access<T, space, loads, Handlers::checked>, access<T, space, loads, Handlers::unchecked>,
            access<T, space, loads, Handlers::compared>};
}

template <typename T>
FastHandlers choose(Space space, bool loads)
{
    if (space == Space::shared) {
        return loads ? all_sets<T, Space::shared, true>() : all_sets<T, Space::shared, false>();
    }
    return loads ? all_sets<T, Space::global, true>() : all_sets<T, Space::global, false>();
}

[[nodiscard]] bool is_uniform(const std::uint64_t* row) noexcept
{
    const std::uint64_t first = row[0];
    std::uint64_t other = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        other |= row[lane] ^ first;
    }
    return other == 0;
}

/// Reads the same kernel parameter, of type M, into registers of type R in all lanes.
template <typename M, typename R>
Step load_parameter(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MemoryPayload>();
    const std::span<const std::byte> parameters = warp.parameters;
    auto offset = static_cast<std::uint64_t>(payload.address.offset);
    if (payload.address.base != no_row) {
        if (payload.address.wide && active == all_lanes && is_uniform(warp.row<std::uint64_t>(payload.address.base)))
            [[likely]] {
            offset += *warp.row<std::uint64_t>(payload.address.base);
        } else {
            LaneAddresses<std::uint64_t> a;
            find_addresses(warp, payload.address, active, payload.bytes, a);
            if (a.shape != AccessShape::uniform) {
                return payload.any(warp, operation, active);
            }
            offset = a.low;
        }
        if (offset % payload.bytes != 0) [[unlikely]] {
            return payload.any(warp, operation, active);
        }
    }
    if (offset > parameters.size() || payload.bytes > parameters.size() - offset) [[unlikely]] {
        return payload.any(warp, operation, active);
    }
    const std::byte* from = parameters.data() + offset;
    for (unsigned k = 0; k < payload.elements; ++k, from += sizeof(M)) {
        fill_row(warp.row<R>(payload.rows[k]), active, static_cast<R>(value_at<M>(from)));
    }
    return Step::next;
}

/// R1, R2, R4 and R8 are registers of so many bytes, with the sign of M.
template <typename M, typename R1, typename R2, typename R4, typename R8>
Execute parameter_load(unsigned register_bytes)
{
    switch (register_bytes) {
        case 1:
            if constexpr (sizeof(M) <= 1) {
                return load_parameter<M, R1>;
            }
            break;
        case 2:
            if constexpr (sizeof(M) <= 2) {
                return load_parameter<M, R2>;
            }
            break;
        case 4:
            if constexpr (sizeof(M) <= 4) {
                return load_parameter<M, R4>;
            }
            break;
        case 8: return load_parameter<M, R8>;
        default: break;
    }
    return nullptr;
}

template <typename M>
Execute parameter_load(unsigned register_bytes)
{
    if constexpr (std::is_signed_v<M>) {
        return parameter_load<M, std::int8_t, std::int16_t, std::int32_t, std::int64_t>(register_bytes);
    } else {
        return parameter_load<M, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(register_bytes);
    }
}

}  // namespace

FastHandlers fast_access(Space space, unsigned element_bytes, bool loads)
{
    if (space != Space::shared && space != Space::global) {
        return {};
    }
    switch (element_bytes) {
        case 2: return choose<std::uint16_t>(space, loads);
        case 4: return choose<std::uint32_t>(space, loads);
        case 8: return choose<std::uint64_t>(space, loads);
        default: return {};
    }
}

FastHandlers fast_parameter_load(unsigned element_bytes, unsigned register_bytes, bool extends_sign)
{
    const auto handler = [&]() -> Execute {
        switch (element_bytes) {
            case 1:
                return extends_sign ? parameter_load<std::int8_t>(register_bytes)
                                    : parameter_load<std::uint8_t>(register_bytes);
            case 2:
                return extends_sign ? parameter_load<std::int16_t>(register_bytes)
                                    : parameter_load<std::uint16_t>(register_bytes);
            case 4:
                return extends_sign ? parameter_load<std::int32_t>(register_bytes)
                                    : parameter_load<std::uint32_t>(register_bytes);
            case 8: return parameter_load<std::uint64_t>(register_bytes);
            default: return nullptr;
        }
    }();
    return {handler, handler, handler};
}

}  // namespace tessera::emulator
