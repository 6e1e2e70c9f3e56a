#include "execute/memory_lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <bitset>
#include <cstring>
#include <vector>

#include "execute/compare_paths.hpp"
#include "execute/lane_access.hpp"
#include "execute/lanewise.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "program/builder.hpp"

namespace tessera::emulator {

namespace {

/// The values that a store of plain registers writes, by lane.
class LaneStores final : public StoredBytes {
public:
    LaneStores(const Warp& warp, const MemoryPayload& payload, LaneMask active, const std::uint32_t* offsets,
               const Cta& cta)
        : warp_(warp), payload_(payload), active_(active), offsets_(offsets), cta_(cta)
    {}
    [[nodiscard]] bool unchanged(std::uint32_t offset, std::uint8_t bytes) const override
    {
        bool same = true;
        const std::uint32_t element_bytes = payload_.bytes / payload_.elements;
        for (std::uint32_t at = offset; at < offset + 4; ++at) {
            if ((bytes >> (at - offset) & 1) == 0) {
                continue;
            }
            for_each_lane(active_, [&](unsigned lane) {
                const std::uint32_t place = at - offsets_[lane];  // wraps around to a large value
                if (place < payload_.bytes) {
                    const std::byte* const row = warp_.row<std::byte>(payload_.rows[place / element_bytes]);
                    same = same && row[lane * payload_.row_bytes + place % element_bytes] == cta_.shared[at];
                }
            });
        }
        return same;
    }

private:
    const Warp& warp_;
    const MemoryPayload& payload_;
    LaneMask active_;
    const std::uint32_t* offsets_;
    const Cta& cta_;
};

/// Lanes have read shared memory that was never written.
void follow_unwritten(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                      const std::uint32_t* offsets, const Cta& cta)
{
    const unsigned element_bytes = payload.bytes / payload.elements;
    for (unsigned k = 0; k < payload.elements; ++k) {
        LaneMask undefined = 0;
        for_each_lane(active, [&](unsigned lane) {
            const bool written = cta.shadow->initialized(offsets[lane] + k * element_bytes, element_bytes);
            undefined |= written ? 0 : LaneMask{1} << lane;
        });
        if (undefined != 0) {
            warp.follow(operation, payload.rows[k], undefined, FindingKind::uninitialized_shared, [&] {
                const auto lane = static_cast<unsigned>(std::countr_zero(undefined));
                return fmt::format("{} reads {} bytes of shared memory at 0x{:x} (lane {}) that were never written",
                                   payload.what, payload.bytes, shared_base + offsets[lane], lane);
            });
        }
    }
}

/// Calls `word(bits, mask)` for what each lane accesses of an allocation's initialized bits, until it returns false. A
/// lane's bytes are aligned and at most 32, so they are in one word of bits.
template <typename Word>
bool for_each_lanes_bits(Allocation& allocation, unsigned bytes, LaneMask active, const LaneAddresses<std::uint64_t>& a,
                         Word&& word)
{
    const std::uint64_t ones = (std::uint64_t{1} << bytes) - 1;
    for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
        const std::uint64_t offset = a.at[static_cast<unsigned>(std::countr_zero(rest))] - allocation.address;
        if (!word(allocation.initialized[offset / 64], ones << (offset % 64))) {
            return false;
        }
    }
    return true;
}

/// The bytes between the first and the last address, with the last lane's.
struct Range {
    std::uint64_t offset, size;
};
Range range_of(const Allocation& allocation, unsigned bytes, const LaneAddresses<std::uint64_t>& a)
{
    return {a.low - allocation.address, a.high - a.low + bytes};
}

/// Below it, looking at all bits of a range is faster than looking at those of each lane.
constexpr std::uint64_t short_range = 1024;

/// Local memory: all lanes at the same address, each in its own.
bool resolve_local(Warp& warp, const MemoryPayload& payload, LaneMask active, const LaneAddresses<std::uint64_t>& a,
                   LanePointers& pointers)
{
    const Frame& frame = *warp.split().frame;
    const std::uint64_t top = std::uint64_t{frame.local_base} + frame.function->local_bytes;
    std::byte* const first = warp.local_bytes(0, a.low, payload.bytes);
    if (a.shape != AccessShape::uniform || a.low % payload.bytes != 0 || first == nullptr ||
        a.low + payload.bytes > top) {
        return false;
    }
    if (warp.checks()) {
        if (payload.access.direction != Direction::write &&
            (active & ~warp.local_shadow.any_written(a.low, payload.bytes)) != 0) {
            return false;
        }
        if (payload.access.direction != Direction::read) {
            warp.local_shadow.write(active, a.low, payload.bytes);
        }
    }
    pointers.shape = AccessShape::strided;
    pointers.first = first;
    pointers.stride = warp.local_stride();
    return true;
}

void resolve_frame_parameter(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                             const LaneAddresses<std::uint64_t>& a, LanePointers& pointers)
{
    Frame& frame = *warp.split().frame;
    const std::uint64_t stride = frame.function->parameter_bytes;
    for_each_lane(active, [&](unsigned lane) {
        if (a.at[lane] > stride || payload.bytes > stride - a.at[lane]) {
            warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit(lane),
                       fmt::format("{} at byte {} of {} bytes of .param variables", payload.what, a.at[lane], stride));
        }
        pointers.at[lane] = reinterpret_cast<std::uintptr_t>(frame.parameters.data() + lane * stride + a.at[lane]);
    });
}

void locate_lanes(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                  const LaneAddresses<std::uint64_t>& a, LanePointers& pointers)
{
    pointers.shape = AccessShape::scattered;
    const bool any_alignment = payload.access.space == Space::parameter && payload.address.base == no_row;
    MemoryAccess access = payload.access;
    std::vector<std::byte> stored(payload.row_bytes == 0 ? 0 : payload.bytes);
    access.stored = stored.empty() ? access.stored : stored.data();
    const std::size_t element_bytes = payload.bytes / payload.elements;
    for_each_lane(active, [&](unsigned lane) {
        for (std::size_t k = 0; k * element_bytes < stored.size(); ++k) {
            std::memcpy(stored.data() + k * element_bytes,
                        warp.row<std::byte>(payload.rows[k]) + std::size_t{lane} * payload.row_bytes, element_bytes);
        }
        const std::uint64_t address = a.at[lane];
        if (payload.own_cta && address >> shared_rank_shift != warp.cta.rank) {
            warp.report(operation, FindingKind::invalid_operand, bit(lane),
                        fmt::format("0x{:x} is in the shared memory of CTA {} of the cluster, but {} can access only "
                                    "the shared memory of its own CTA ({}): use .shared::cluster",
                                    address, address >> shared_rank_shift, payload.what, warp.cta.rank));
        }
        pointers.at[lane] = reinterpret_cast<std::uintptr_t>(
            locate(warp, operation, access, address, payload.bytes, any_alignment ? 1 : payload.bytes, lane));
    });
}

constexpr std::uint64_t window_bytes = std::uint64_t{1} << 32;

/// The space of an access, if all lanes access the same: generic ones may not.
Space space_of(const MemoryPayload& payload, const LaneAddresses<std::uint64_t>& a)
{
    if (payload.access.space != Space::generic) {
        return payload.access.space;
    }
    const auto all_in = [&](std::uint64_t window) { return a.low >= window && a.high < window + window_bytes; };
    return all_in(shared_window)                                                ? Space::shared
           : all_in(local_window)                                               ? Space::local
           : a.high < parameter_window || a.low >= shared_window + window_bytes ? Space::global
                                                                                : Space::generic;
}

/// Returns true if the fast path could do it.
bool resolve_at_once(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active, Space space,
                     LaneAddresses<std::uint64_t>& a, LanePointers& pointers)
{
    const std::uint64_t window = payload.access.space != Space::generic ? 0
                                 : space == Space::shared               ? shared_window
                                 : space == Space::local                ? local_window
                                                                        : 0;
    switch (space) {
        case Space::shared: {
            if (a.high - window >= window_bytes) {
                return false;
            }
            LaneAddresses<std::uint32_t> narrow;
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                narrow.at[lane] = static_cast<std::uint32_t>(a.at[lane]);
            }
            narrow.low = static_cast<std::uint32_t>(a.low);
            narrow.high = static_cast<std::uint32_t>(a.high);
            narrow.bits = static_cast<std::uint32_t>(a.bits);
            narrow.stride = static_cast<std::uint32_t>(a.stride);
            narrow.shape = a.shape;
            return warp.checks() ? resolve_shared<true>(warp, operation, payload, active, narrow, pointers)
                                 : resolve_shared<false>(warp, operation, payload, active, narrow, pointers);
        }
        case Space::global:
        case Space::constant:
            return warp.checks() ? resolve_global<true>(warp, operation, payload, active, a, pointers)
                                 : resolve_global<false>(warp, operation, payload, active, a, pointers);
        case Space::local: {
            LaneAddresses<std::uint64_t> inside = a;
            inside.low -= window;
            return resolve_local(warp, payload, active, inside, pointers);
        }
        default: return false;
    }
}

void count_bytes(Warp& warp, const MemoryPayload& payload, LaneMask active, Space space)
{
    Statistics& statistics = warp.cluster.statistics;
    const std::uint64_t bytes = std::uint64_t{payload.bytes} * static_cast<unsigned>(std::popcount(active));
    const bool reads = payload.access.direction != Direction::write;
    const bool writes = payload.access.direction != Direction::read;
    if (space == Space::shared) {
        statistics.shared_read_bytes += reads ? bytes : 0;
        statistics.shared_write_bytes += writes ? bytes : 0;
    } else if (space == Space::global || space == Space::constant) {
        statistics.global_read_bytes += reads ? bytes : 0;
        statistics.global_write_bytes += writes ? bytes : 0;
    }
}

}  // namespace

void synchronize_lanes(Warp& warp, const std::uint64_t* generic, LaneMask active, const MemoryAccess& access)
{
    std::bitset<Clocks::memory_slots> done;
    for_each_lane(active, [&](unsigned lane) {
        const unsigned slot = Clocks::memory_slot(generic[lane]);
        if (!done[slot]) {
            done[slot] = true;
            synchronize(warp, active, generic[lane], access.direction, access.order);
        }
    });
}

void check_shared(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active, Cta& cta,
                  const LaneAddresses<std::uint32_t>& offsets)
{
    const MemoryAccess& access = payload.access;
    const bool strong = access.atomic || access.order.strong();
    if (&cta != &warp.cta && cta.exit_order != nullptr) {
        cta.exit_order->accessed(warp.cluster.clocks.now(warp.agent), {&operation, warp.cta.rank, warp.index, active});
    }
    if (strong) {
        LaneAddresses<std::uint64_t> generic;
        const std::uint64_t origin = shared_window + (std::uint64_t{cta.rank} << shared_rank_shift) + shared_base;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            generic.at[lane] = origin + offsets.at[lane];
        }
        synchronize_lanes(warp, generic.at.data(), active, access);
    }
    if (cta.responses.touches(offsets.low, std::uint64_t{offsets.high} + payload.bytes) &&
        access.direction == Direction::read) {
        for_each_lane(active, [&](unsigned lane) {
            cta.responses.read(offsets.at[lane], payload.bytes, warp.cluster.clocks.now(warp.agent), bit(lane),
                               &operation);
        });
    }
    const std::uint32_t line = line_of(operation);
    const KnownOfWarp known(warp, operation);
    std::optional<ShadowFinding> found, second;
    if (access.direction != Direction::write) {
        bool unwritten = false;
        const bool at_once = access.registers.empty() && !access.ignores_value;
        found = cta.shadow->read_lanes(warp.agent, offsets.at.data(), active, payload.bytes, access.what, line, strong,
                                       at_once ? nullptr : &unwritten, &known);
        if (unwritten && !access.ignores_value) {
            follow_unwritten(warp, operation, payload, active, offsets.at.data(), cta);
        }
    }
    if (access.direction != Direction::read) {
        const LaneStores stores(warp, payload, active, offsets.at.data(), cta);
        second = cta.shadow->write_lanes(warp.agent, offsets.at.data(), active, payload.bytes, access.what, line,
                                         strong, payload.row_bytes == 0 ? nullptr : &stores, &known);
    }
    if (found || second) {
        const ShadowFinding& finding = found ? *found : *second;
        warp.report(operation, finding.kind, active, [&] { return finding.message; }, finding.other_line);
    }
}

void check_bulk_copies(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                       const LaneAddresses<std::uint64_t>& a)
{
    GlobalShadow& global = *warp.cluster.global_shadow;
    const MemoryAccess& access = payload.access;
    const bool strong = access.atomic || access.order.strong();
    if (strong && access.direction != Direction::read) {
        check_flag(warp, operation, active, access.what);
    }
    const KnownOfWarp known(warp, operation);
    std::optional<ShadowFinding> found;
    for_each_lane(active, [&](unsigned lane) {
        auto problem = access.direction == Direction::read
                           ? global.read(warp.agent, a.at[lane], payload.bytes, strong, access.what, &known)
                           : global.write(warp.agent, lane, a.at[lane], payload.bytes, strong, access.what,
                                          line_of(operation), &known);
        if (!found) {
            found = std::move(problem);
        }
    });
    if (found) {
        warp.report(operation, found->kind, active, [&] { return found->message; }, found->other_line);
    }
}

bool all_initialized(Allocation& allocation, unsigned bytes, LaneMask active, const LaneAddresses<std::uint64_t>& a)
{
    const Range range = range_of(allocation, bytes, a);
    if (range.size <= short_range && allocation.is_initialized(range.offset, range.size)) {
        return true;
    }
    return for_each_lanes_bits(allocation, bytes, active, a, [](std::atomic<std::uint64_t>& word, std::uint64_t mask) {
        return (word.load(std::memory_order_relaxed) & mask) == mask;
    });
}

void mark_initialized(Allocation& allocation, unsigned bytes, LaneMask active, const LaneAddresses<std::uint64_t>& a)
{
    const Range range = range_of(allocation, bytes, a);
    if (a.shape == AccessShape::row || a.shape == AccessShape::uniform) {
        allocation.mark_initialized(range.offset, range.size);
    } else if (range.size > short_range || !allocation.is_initialized(range.offset, range.size)) {
        for_each_lanes_bits(allocation, bytes, active, a, [](std::atomic<std::uint64_t>& word, std::uint64_t mask) {
            if ((word.load(std::memory_order_relaxed) & mask) != mask) {
                word.fetch_or(mask, std::memory_order_relaxed);
            }
            return true;
        });
    }
}

bool reaches_global(const Warp& warp, const MemoryPayload& payload, LaneMask active)
{
    bool global = payload.access.space == Space::global;
    if (payload.access.space == Space::generic) {
        for_each_lane(active, [&](unsigned lane) {
            std::uint32_t shared = 0;
            global = global || !generic_to_shared(warp.address(payload.address, lane), shared);
        });
    }
    return global;
}

void resolve(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
             LanePointers& pointers)
{
    const AddressRef& ref = payload.address;
    const Paths paths = warp.cluster.options().paths;
    LaneAddresses<std::uint64_t> a;
    find_addresses(warp, ref, active, payload.bytes, a);
    pointers.shape = AccessShape::scattered;
    if (ref.anchor == AddressRef::Anchor::frame_parameter) {
        resolve_frame_parameter(warp, operation, payload, active, a, pointers);
        return;
    }
    if (ref.anchor == AddressRef::Anchor::frame_local) {
        const std::uint32_t base = warp.split().frame->local_base;
        for (std::uint64_t& address : a.at) {
            address += base;
        }
        a.low += base;
        a.high += base;
    }
    if (payload.access.space == Space::parameter && ref.base == no_row && paths != Paths::plain) {
        const auto lane = static_cast<unsigned>(std::countr_zero(active));
        pointers.shape = AccessShape::uniform;
        pointers.first = locate(warp, operation, payload.access, a.low, payload.bytes, 1, lane);
        pointers.stride = 0;
        pointers.spread();
        return;
    }
    const Space space = space_of(payload, a);
    if (paths == Paths::plain || !resolve_at_once(warp, operation, payload, active, space, a, pointers)) {
        count_bytes(warp, payload, active, space);
        locate_lanes(warp, operation, payload, active, a, pointers);
        return;
    }
    if (paths == Paths::both) [[unlikely]] {
        compare_pointers(warp, operation, payload, active, pointers);
    }
    pointers.spread();
}

namespace {

/// Whether the undefined bits of data that is to be stored were loaded from the same place, and `and` or `bfi` has defined
/// the others. So bit-fields and elements of less than a byte are written, before memory has a value: the bits that come
/// back do not matter yet.
bool puts_back(const Warp& warp, const MemoryPayload& payload, Ref row)
{
    const Operation* const load = warp.masked_origin(row);
    const auto* const from = load != nullptr ? dynamic_cast<const MemoryPayload*>(load->payload) : nullptr;
    return from != nullptr && from->address == payload.address && from->bytes == payload.bytes;
}

}  // namespace

void store_undefined(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active)
{
    const unsigned element_bytes = payload.bytes / payload.elements;
    const bool own_local = payload.address.anchor == AddressRef::Anchor::frame_local;
    for (unsigned k = 0; k < payload.elements; ++k) {
        LaneMask elsewhere = 0;
        for_each_lane(warp.undefined_lanes(payload.rows[k]) & active, [&](unsigned lane) {
            std::uint64_t address = warp.address(payload.address, lane);
            address += own_local ? warp.split().frame->local_base : 0;
            const bool generic_local =
                payload.access.space == Space::generic && address - local_window < (std::uint64_t{1} << 32);
            if (generic_local || payload.access.space == Space::local) {
                address -= generic_local ? local_window : 0;
                warp.local_shadow.erase(bit(lane), address + k * element_bytes, element_bytes);
            } else {
                elsewhere |= LaneMask{1} << lane;
            }
        });
        if (elsewhere != 0 && !puts_back(warp, payload, payload.rows[k])) {
            warp.report_undefined(operation, payload.rows[k], elsewhere);
        }
    }
}

// ---- decoding ----

Space take_space(Decoder& decoder, bool& own_cta)
{
    const std::string_view name = decoder.take_one_of({"global", "shared", "shared::cta", "shared::cluster", "local",
                                                       "param", "param::entry", "param::func", "const"});
    own_cta = name == "shared" || name == "shared::cta";
    return name.empty()                 ? Space::generic
           : name == "global"           ? Space::global
           : name == "local"            ? Space::local
           : name == "const"            ? Space::constant
           : name.starts_with("shared") ? Space::shared
                                        : Space::parameter;
}

void take_address(Decoder& decoder, std::size_t index, MemoryPayload& payload)
{
    using Anchor = AddressRef::Anchor;
    payload.address = decoder.address(index);
    payload.line = decoder.instruction().location.line;
    payload.allocation_site = static_cast<std::uint8_t>(payload.line);
    AddressRef& address = payload.address;
    const Space space = payload.access.space;
    const bool parameter = address.anchor == Anchor::kernel_parameter || address.anchor == Anchor::frame_parameter;
    if (parameter && space != Space::parameter) {
        decoder.fail("the address is a .param variable: the instruction needs .param");
    }
    if (address.anchor == Anchor::frame_local && space != Space::local) {
        decoder.fail("the address is a .local variable: the instruction needs .local");
    }
    if (space == Space::parameter && address.anchor == Anchor::absolute) {
        // A register that holds an address of the parameter space: the kernel's parameters or the function's own.
        address.anchor = decoder.function().source.kernel ? Anchor::kernel_parameter : Anchor::frame_parameter;
    }
}

MemoryOrder take_order(Decoder& decoder, bool loads)
{
    const std::string_view strongest = loads ? "acquire" : "release";
    const bool mmio = decoder.take("mmio");
    const std::string_view sem = decoder.take_one_of({"weak", "volatile", "relaxed", strongest});
    const Scope scope = decoder.take_scope();
    const bool needs_scope = sem == "relaxed" || sem == strongest;
    if (needs_scope && scope == Scope::none) {
        decoder.fail(fmt::format(".{} needs a scope: .cta, .cluster, .gpu or .sys", sem));
    }
    if (scope != Scope::none && !needs_scope) {
        decoder.fail(fmt::format("a scope is for .relaxed and .{}", strongest));
    }
    if (mmio && sem != "relaxed" && sem != "release") {
        decoder.fail(".mmio goes with .relaxed");
    }
    if (sem == "volatile") {
        return {Semantics::volatile_access, Scope::sys};  // PTX ISA 8.4: as relaxed, with system scope
    }
    if (!needs_scope) {
        return {};
    }
    return {sem == "relaxed" ? Semantics::relaxed : loads ? Semantics::acquire : Semantics::release, scope};
}

void note_access(Decoder& decoder, const MemoryPayload& payload)
{
    decoder.effects().access({.space = payload.access.space,
                              .direction = payload.access.direction,
                              .bytes = payload.bytes,
                              .atomic = payload.access.atomic,
                              .order = payload.access.order});
}

std::size_t take_hints_and_policy(Decoder& decoder, std::size_t index)
{
    const bool policy = decoder.take("L2::cache_hint");
    decoder.take_cache_hints();
    if (!policy) {
        return index;
    }
    (void)decoder.read(index, ptx::Type::b64);  // must exist; which lines stay cached does not change results
    return index + 1;
}

std::string short_name(const ptx::Instruction& instruction)
{
    std::string name = instruction.opcode;
    for (const std::string& modifier : instruction.modifiers) {
        if (!modifier.starts_with("L1::") && !modifier.starts_with("L2::")) {
            name += '.' + modifier;
        }
    }
    return name;
}

namespace {

template <typename Row>
DataRows data_rows(Decoder& decoder, std::size_t index, ptx::Type type, Row&& row)
{
    const ptx::Operand& whole = decoder.operand(index);
    const bool vector = whole.kind == ptx::Operand::Kind::vector;
    const std::size_t count = vector ? whole.elements.size() : 1;
    const auto element = [&](std::size_t i) -> const ptx::Operand& { return vector ? whole.elements[i] : whole; };
    DataRows result;
    bool wider = false;
    for (std::size_t i = 0; i < count; ++i) {
        const ptx::Operand& operand = element(i);
        const Symbol* const symbol =
            operand.kind == ptx::Operand::Kind::identifier ? decoder.function().find(operand.name) : nullptr;
        if (symbol == nullptr || symbol->kind != Symbol::Kind::reg || symbol->type == ptx::Type::pred) {
            continue;
        }
        const auto bytes = static_cast<unsigned>(ptx::size_of(symbol->type));
        if (result.row_bytes != 0 && result.row_bytes != bytes) {
            decoder.fail("the registers of a vector must have the same size");
        }
        result.row_bytes = bytes;
    }
    wider = result.row_bytes > ptx::size_of(type);
    const ptx::Type row_type = wider ? bits_of_size(result.row_bytes) : type;
    for (std::size_t i = 0; i < count; ++i) {
        const ptx::Operand& operand = element(i);
        // A constant has the instruction's type, whatever the width of its row.
        result.rows.push_back(row(operand, row_type));
    }
    result.row_bytes = static_cast<unsigned>(ptx::size_of(row_type));
    return result;
}

}  // namespace

DataRows read_data(Decoder& decoder, std::size_t index, ptx::Type type)
{
    return data_rows(decoder, index, type,
                     [&](const ptx::Operand& operand, ptx::Type row_type) { return decoder.read(operand, row_type); });
}

DataRows write_data(Decoder& decoder, std::size_t index, ptx::Type type)
{
    return data_rows(decoder, index, type,
                     [&](const ptx::Operand& operand, ptx::Type row_type) { return decoder.write(operand, row_type); });
}

}  // namespace tessera::emulator
