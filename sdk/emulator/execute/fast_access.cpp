// Loads and stores of the common types and spaces, without branches that the launch or the PTX has decided before.

#include "execute/fast_access.hpp"

#include <bit>
#include <cstring>

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
        return (find_regular(warp, payload.address, active, payload.bytes, a) ||
                find_addresses(warp, payload.address, active, payload.bytes, a)) &&
               resolve_shared<checked>(warp, operation, payload, active, a, pointers);
    } else {
        LaneAddresses<std::uint64_t> a;
        if (!find_regular(warp, payload.address, active, payload.bytes, a)) {
            find_addresses(warp, payload.address, active, payload.bytes, a);
        }
        return resolve_global<checked>(warp, operation, payload, active, a, pointers);
    }
}

/// A weak load or store of elements of type T, to or from registers of the same size.
template <typename T, Space space, bool loads, Handlers set>
Step access(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MemoryPayload>();
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

/// The same kernel parameter in all lanes.
template <typename T>
Step load_parameter(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MemoryPayload>();
    const std::span<const std::byte> parameters = warp.parameters;
    auto offset = static_cast<std::uint64_t>(payload.address.offset);
    if (payload.address.base != no_row) {
        LaneAddresses<std::uint64_t> a;
        find_addresses(warp, payload.address, active, payload.bytes, a);
        offset = a.low;
        if (a.shape != AccessShape::uniform || offset % payload.bytes != 0) [[unlikely]] {
            return payload.any(warp, operation, active);
        }
    }
    if (offset > parameters.size() || payload.bytes > parameters.size() - offset) [[unlikely]] {
        return payload.any(warp, operation, active);
    }
    const std::byte* from = parameters.data() + offset;
    for (unsigned k = 0; k < payload.elements; ++k, from += sizeof(T)) {
        fill_row(warp.row<T>(payload.rows[k]), active, value_at<T>(from));
    }
    return Step::next;
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

FastHandlers fast_parameter_load(unsigned element_bytes)
{
    const auto same = [](Execute handler) { return FastHandlers{handler, handler, handler}; };
    switch (element_bytes) {
        case 2: return same(load_parameter<std::uint16_t>);
        case 4: return same(load_parameter<std::uint32_t>);
        case 8: return same(load_parameter<std::uint64_t>);
        default: return {};
    }
}

}  // namespace tessera::emulator
