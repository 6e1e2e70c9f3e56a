#include "execute/compare_paths.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <vector>

#include "machine/cluster.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {

namespace {

std::uint64_t address_of(Warp& warp, const MemoryPayload& payload, unsigned lane)
{
    const AddressRef& ref = payload.address;
    const std::uint64_t address = warp.address(ref, lane);
    if (ref.anchor == AddressRef::Anchor::frame_local) {
        return address + warp.split().frame->local_base;
    }
    return ref.base != no_row && !ref.wide ? static_cast<std::uint32_t>(address) : address;
}

/// The bytes that `lane` accesses; null if locate() has something to say about the access.
std::byte* place_of(Warp& warp, const MemoryPayload& payload, unsigned lane)
{
    const std::uint64_t address = address_of(warp, payload, lane);
    if (payload.address.anchor == AddressRef::Anchor::frame_parameter) {
        Frame& frame = *warp.split().frame;
        const std::uint64_t stride = frame.function->parameter_bytes;
        return address + payload.bytes > stride ? nullptr : frame.parameters.data() + lane * stride + address;
    }
    const bool any_alignment = payload.access.space == Space::parameter && payload.address.base == no_row;
    if (payload.own_cta && address >> shared_rank_shift != warp.cta.rank) {
        return nullptr;
    }
    return place_without_effects(warp, payload.access, address, payload.bytes, any_alignment ? 1 : payload.bytes, lane);
}

[[noreturn]] void differ(const Warp& warp, const Operation& operation, unsigned lane, const std::string& how)
{
    throw PathsDiffer(fmt::format("PTX line {}, CTA {} of cluster {}, warp {}, lane {}: {}", line_of(operation),
                                  warp.cta.rank, warp.cluster.index, warp.index, lane, how));
}

struct Before {
    std::array<std::byte*, warp_size> places{};
    std::vector<std::vector<std::byte>> rows;  // of a load, as they must be
    std::map<std::byte*, std::byte> memory;    // of a store, as it must be
};

std::span<std::byte> bytes_of_row(Warp& warp, const MemoryPayload& payload, unsigned element)
{
    return {warp.row<std::byte>(payload.rows[element]), std::size_t{warp_size} * payload.register_bytes};
}

Before expect(Warp& warp, const MemoryPayload& payload, LaneMask active)
{
    Before before;
    for_each_lane(active, [&](unsigned lane) { before.places[lane] = place_of(warp, payload, lane); });
    const std::size_t memory_bytes = payload.bytes / payload.elements;
    for (unsigned k = 0; k < payload.elements; ++k) {
        const std::span<std::byte> row = bytes_of_row(warp, payload, k);
        if (payload.access.direction == Direction::write) {
            for_each_lane(active, [&](unsigned lane) {
                for (std::size_t i = 0; i < memory_bytes && before.places[lane] != nullptr; ++i) {
                    before.memory[before.places[lane] + k * memory_bytes + i] = row[lane * payload.register_bytes + i];
                }
            });
            continue;
        }
        std::vector<std::byte>& expected = before.rows.emplace_back(row.begin(), row.end());
        for_each_lane(active, [&](unsigned lane) {
            if (before.places[lane] == nullptr) {
                return;
            }
            const std::byte* const from = before.places[lane] + k * memory_bytes;
            const bool negative = payload.extends_sign && (from[memory_bytes - 1] & std::byte{0x80}) != std::byte{0};
            for (std::size_t i = 0; i < payload.register_bytes; ++i) {
                expected[lane * payload.register_bytes + i] = i < memory_bytes ? from[i]
                                                              : negative       ? std::byte{0xFF}
                                                                               : std::byte{0};
            }
        });
    }
    return before;
}

}  // namespace

void compare_pointers(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                      const LanePointers& pointers)
{
    for_each_lane(active, [&](unsigned lane) {
        const std::byte* const fast = pointers.shape == AccessShape::scattered
                                          ? pointers[lane]
                                          : pointers.first + static_cast<std::ptrdiff_t>(lane) * pointers.stride;
        const std::byte* const plain = place_of(warp, payload, lane);
        if (plain == nullptr) {
            differ(warp, operation, lane,
                   fmt::format("the fast path accepts {} at 0x{:x}, the plain path does not", payload.what,
                               address_of(warp, payload, lane)));
        }
        if (fast != plain) {
            differ(warp, operation, lane,
                   fmt::format("{} at 0x{:x}: the fast path finds it {} bytes off", payload.what,
                               address_of(warp, payload, lane), fast - plain));
        }
    });
}

Step execute_compared(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<MemoryPayload>();
    const Before before = expect(warp, payload, active);
    const Step step = payload.compared(warp, operation, active);
    if (step != Step::next && step != Step::yield) {
        return step;
    }
    for (const auto& [place, value] : before.memory) {
        if (*place != value) {
            differ(warp, operation, static_cast<unsigned>(std::countr_zero(active)),
                   fmt::format("{} leaves a byte 0x{:02x} in memory, not 0x{:02x}", payload.what,
                               std::to_integer<unsigned>(*place), std::to_integer<unsigned>(value)));
        }
    }
    for (unsigned k = 0; k < before.rows.size(); ++k) {
        const std::span<std::byte> row = bytes_of_row(warp, payload, k);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            const bool unknown = (active >> lane & 1) != 0 && before.places[lane] == nullptr;
            const std::size_t at = std::size_t{lane} * payload.register_bytes;
            if (!unknown && std::memcmp(&row[at], &before.rows[k][at], payload.register_bytes) != 0) {
                differ(warp, operation, lane, fmt::format("{} loads a wrong value into register {}", payload.what, k));
            }
        }
    }
    return step;
}

}  // namespace tessera::emulator
