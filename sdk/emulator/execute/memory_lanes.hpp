#pragma once

// What ld, st, atom, red and similar instructions share: reading their operands from the PTX, and turning the addresses
// of a warp's lanes into pointers, all at once where possible.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/access_shape.hpp"
#include "machine/memory_access.hpp"
#include "program/decoder.hpp"

namespace tessera::emulator {

inline constexpr unsigned max_vector = 8;

/// An instruction that accesses memory at one address per lane.
struct MemoryPayload : Payload {
    // What most loads need comes first.
    AddressRef address;
    unsigned bytes = 0;  ///< per lane: all elements
    unsigned elements = 1;
    std::array<Ref, max_vector> rows{};  ///< data, by element
    std::uint32_t line = 0;              ///< of the PTX
    ReadSite site;                       ///< of a load
    MemoryAccess access;
    std::string what;                  ///< "ld.shared.v4.f32": `access.what` points here
    bool own_cta = false;              ///< .shared or .shared::cta: the address must be in the executing CTA's memory
    unsigned row_bytes = 0;            ///< per lane, in a row of a store
    std::uint8_t allocation_site = 0;  ///< for AllocationCache
    /// By Handlers: faster than Operation::execute, which each of them calls for what it cannot do. Null: there is none.
    std::array<Execute, handler_sets> handlers{};
    Execute any = nullptr;       ///< Operation::execute, for all accesses
    Execute compared = nullptr;  ///< what execute_compared() compares
    unsigned register_bytes = 0;
    bool extends_sign = false;  ///< of what is loaded into a wider register

    [[nodiscard]] Execute handler(Handlers set) const noexcept override
    {
        return handlers[static_cast<std::size_t>(set)];
    }
};

/// Where the lanes' bytes are.
struct LanePointers {
    AccessShape shape;      ///< not as the program sees it: lanes at one local address are strided
    std::byte* first;       ///< of lane 0; if scattered, the least
    std::ptrdiff_t stride;  ///< between lanes, unless scattered
    /// By lane, if scattered without a base, or after spread(). Only entries of active lanes are meaningful.
    alignas(64) std::array<std::uintptr_t, warp_size> at;
    /// If not null: scattered, all lanes, and lane i's bytes are at first + (base[i] - base_low). A register's row.
    const std::uint32_t* base = nullptr;
    std::uint32_t base_low = 0;
    /// So many bytes from `first` on may be read, and have the bytes of all lanes. 0: unknown.
    std::uint32_t near = 0;

    [[nodiscard]] std::byte* operator[](unsigned lane) const noexcept
    {
        return base != nullptr ? first + (base[lane] - base_low) : reinterpret_cast<std::byte*>(at[lane]);
    }
    void spread() noexcept
    {
        if (shape != AccessShape::scattered) {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                at[lane] = reinterpret_cast<std::uintptr_t>(first) + lane * static_cast<std::uintptr_t>(stride);
            }
        }
    }
};

/// Resolves the addresses of the active lanes with all checks, marks written bytes as initialized, and counts the
/// bytes. `pointers` are spread.
void resolve(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
             LanePointers& pointers);

/// Returns true unless all active lanes access shared memory. Global accesses that synchronize clusters wait for the
/// cluster's turn: see Cluster::may_meet.
[[nodiscard]] bool reaches_global(const Warp& warp, const MemoryPayload& payload, LaneMask active);

/// For a store, after resolve(): undefined registers make local memory undefined, and are reported for other memory.
void store_undefined(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active);

/// Takes the state space of a load, store or atomic and sets `own_cta`. No state space means generic.
[[nodiscard]] Space take_space(Decoder& decoder, bool& own_cta);
/// Reads the address operand `index` into the payload and checks that its anchor agrees with the space.
void take_address(Decoder& decoder, std::size_t index, MemoryPayload& payload);
/// Takes .weak, .volatile, .relaxed, .acquire (`loads`) or .release, .mmio and the scope.
[[nodiscard]] MemoryOrder take_order(Decoder& decoder, bool loads);
/// Adds the payload's access to the effects.
void note_access(Decoder& decoder, const MemoryPayload& payload);
/// Takes the cache and eviction hints and, for .L2::cache_hint, the policy in operand `index`.
/// @return the number of operands that the instruction must have: `index`, or one more
[[nodiscard]] std::size_t take_hints_and_policy(Decoder& decoder, std::size_t index);
/// "ld.shared.v4.f32": opcode and modifiers, without hints.
[[nodiscard]] std::string short_name(const ptx::Instruction& instruction);

/// The rows of a data operand, which may be a vector, and the size of their values: at least that of `type`, more if
/// the registers are wider. Constants have rows of the same width as the other registers.
struct DataRows {
    std::vector<Ref> rows;
    unsigned row_bytes = 0;
};
[[nodiscard]] DataRows read_data(Decoder& decoder, std::size_t index, ptx::Type type);
[[nodiscard]] DataRows write_data(Decoder& decoder, std::size_t index, ptx::Type type);

// Decoders with their own files.
void decode_ld(Decoder& decoder, Operation& operation);                  // execute/load_store.cpp
void decode_st(Decoder& decoder, Operation& operation);                  // execute/load_store.cpp
void decode_st_async(Decoder& decoder, Operation& operation);            // execute/async_store.cpp
void decode_st_bulk(Decoder& decoder, Operation& operation);             // execute/async_store.cpp
void decode_red_async(Decoder& decoder, Operation& operation);           // execute/async_store.cpp
void decode_atom(Decoder& decoder, Operation& operation);                // execute/atomics.cpp
void decode_red(Decoder& decoder, Operation& operation);                 // execute/atomics.cpp
[[nodiscard]] std::span<const InstructionEntry> address_instructions();  // execute/addressing.cpp

}  // namespace tessera::emulator
