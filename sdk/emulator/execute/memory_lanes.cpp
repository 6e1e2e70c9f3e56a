#include "execute/memory_lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <bitset>

#include "execute/lanewise.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "program/builder.hpp"

namespace tessera::emulator {

namespace {

using Addresses = std::array<std::uint64_t, warp_size>;

/// The largest and smallest address, all their bits, and the access pattern.
struct Extent {
    std::uint64_t low = ~std::uint64_t{0}, high = 0, bits = 0;
    LanePointers::Shape shape = LanePointers::Shape::scattered;
};

Extent extent_of(const Addresses& a, LaneMask active, unsigned bytes)
{
    Extent extent;
    if (active != all_lanes) {
        for_each_lane(active, [&](unsigned lane) {
            extent.low = std::min(extent.low, a[lane]);
            extent.high = std::max(extent.high, a[lane]);
            extent.bits |= a[lane];
        });
        return extent;
    }
    std::uint64_t unlike_row = 0, unlike_broadcast = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        unlike_row |= a[lane] ^ (a[0] + std::uint64_t{lane} * bytes);
        unlike_broadcast |= a[lane] ^ a[0];
    }
    if (unlike_row == 0 || unlike_broadcast == 0) {
        const bool row = unlike_row == 0;
        extent.shape = row ? LanePointers::Shape::row : LanePointers::Shape::broadcast;
        extent.low = a[0];
        extent.high = row ? a[0] + std::uint64_t{bytes} * (warp_size - 1) : a[0];
        extent.bits = row ? a[0] | bytes : a[0];  // `bytes` is a power of two: the other lanes only add higher bits
        return extent;
    }
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        extent.low = std::min(extent.low, a[lane]);
        extent.high = std::max(extent.high, a[lane]);
        extent.bits |= a[lane];
    }
    return extent;
}

void synchronize_lanes(Warp& warp, const Addresses& a, std::uint64_t window, LaneMask active, Direction direction)
{
    if (!warp.checks()) {
        return;
    }
    std::bitset<Clocks::memory_slots> done;
    for_each_lane(active, [&](unsigned lane) {
        const unsigned slot = Clocks::memory_slot(window + a[lane]);
        if (!done[slot]) {
            done[slot] = true;
            synchronize(warp, window + a[lane], direction);
        }
    });
}

void set_pointers(LanePointers& pointers, const Addresses& a, std::uintptr_t base)
{
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        pointers.at[lane] = static_cast<std::uintptr_t>(base + a[lane]);
    }
}

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

/// Returns true if all lanes access the shared memory of one CTA, aligned and in bounds. Otherwise locate() finds out
/// what is wrong.
bool resolve_shared(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                    const Addresses& a, const Extent& extent, LanePointers& pointers)
{
    const std::uint64_t rank = extent.low >> shared_rank_shift;
    if (rank != extent.high >> shared_rank_shift || (extent.bits & (payload.bytes - 1)) != 0) {
        return false;
    }
    Cta* cta = &warp.cta;
    if (rank != warp.cta.rank) {
        cta = extent.low >> 32 == 0 ? warp.cluster.cta_of(static_cast<std::uint32_t>(extent.low)) : nullptr;
        if (cta == nullptr || !cta->started || cta->exited() || payload.own_cta) {
            return false;
        }
    }
    const std::uint64_t origin = (rank << shared_rank_shift) + shared_base;
    if (extent.low < origin || extent.high + payload.bytes > origin + cta->shared.size()) {
        return false;
    }
    const MemoryAccess& access = payload.access;
    const bool strong = access.atomic || access.volatile_access;
    if (cta != &warp.cta && cta->exit_order != nullptr) {
        cta->exit_order->accessed(warp.cluster.clocks.now(warp.agent), {&operation, warp.cta.rank, warp.index, active});
    }
    if (strong) {
        synchronize_lanes(warp, a, shared_window, active, access.direction);
    }
    if (cta->responses.touches(extent.low - origin, extent.high - origin + payload.bytes) &&
        access.direction == Direction::read) {
        for_each_lane(active, [&](unsigned lane) {
            cta->responses.read(static_cast<std::uint32_t>(a[lane] - origin), payload.bytes,
                                warp.cluster.clocks.now(warp.agent), LaneMask{1} << lane, &operation);
        });
    }
    if (cta->shadow && warp.checks()) {
        std::array<std::uint32_t, warp_size> offsets;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            offsets[lane] = static_cast<std::uint32_t>(a[lane] - origin);
        }
        const std::uint32_t line = line_of(operation);
        std::optional<ShadowFinding> found, second;
        if (access.direction != Direction::write) {
            bool unwritten = false;
            const bool at_once = access.registers.empty() && !access.ignores_value;
            found = cta->shadow->read_lanes(warp.agent, offsets.data(), active, payload.bytes, access.what, line,
                                            strong, at_once ? nullptr : &unwritten);
            if (unwritten && !access.ignores_value) {
                follow_unwritten(warp, operation, payload, active, offsets.data(), *cta);
            }
        }
        if (access.direction != Direction::read) {
            const LaneStores stores(warp, payload, active, offsets.data(), *cta);
            second = cta->shadow->write_lanes(warp.agent, offsets.data(), active, payload.bytes, access.what, line,
                                              strong, payload.row_bytes == 0 ? nullptr : &stores);
        }
        if (found || second) {
            const ShadowFinding& finding = found ? *found : *second;
            warp.report(operation, finding.kind, active, finding.message);
        }
    }
    set_pointers(pointers, a,
                 reinterpret_cast<std::uintptr_t>(cta->shared.data()) - static_cast<std::uintptr_t>(origin));
    pointers.shape = extent.shape;
    return true;
}

/// Calls `word(bits, mask)` for what each lane accesses of an allocation's initialized bits, until it returns false. A
/// lane's bytes are aligned and at most 32, so they are in one word of bits.
template <typename Word>
bool for_each_lanes_bits(Allocation& allocation, unsigned bytes, LaneMask active, const Addresses& a, Word&& word)
{
    const std::uint64_t ones = (std::uint64_t{1} << bytes) - 1;
    for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
        const std::uint64_t offset = a[static_cast<unsigned>(std::countr_zero(rest))] - allocation.address;
        if (!word(allocation.initialized[offset / 64], ones << (offset % 64))) {
            return false;
        }
    }
    return true;
}

bool all_initialized(Allocation& allocation, unsigned bytes, LaneMask active, const Addresses& a, const Extent& extent)
{
    if (extent.shape != LanePointers::Shape::scattered) {
        return allocation.is_initialized(extent.low - allocation.address, extent.high - extent.low + bytes);
    }
    return allocation.initialized == nullptr ||
           for_each_lanes_bits(allocation, bytes, active, a, [](std::atomic<std::uint64_t>& word, std::uint64_t mask) {
               return (word.load(std::memory_order_relaxed) & mask) == mask;
           });
}

void mark_initialized(Allocation& allocation, unsigned bytes, LaneMask active, const Addresses& a, const Extent& extent)
{
    if (extent.shape != LanePointers::Shape::scattered) {
        allocation.mark_initialized(extent.low - allocation.address, extent.high - extent.low + bytes);
    } else if (allocation.initialized != nullptr) {
        for_each_lanes_bits(allocation, bytes, active, a, [](std::atomic<std::uint64_t>& word, std::uint64_t mask) {
            if ((word.load(std::memory_order_relaxed) & mask) != mask) {
                word.fetch_or(mask, std::memory_order_relaxed);
            }
            return true;
        });
    }
}

/// Checks accesses of lanes to global memory against bulk copies of the cluster.
void check_bulk_copies(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                       const Addresses& a)
{
    GlobalShadow& global = *warp.cluster.global_shadow;
    const MemoryAccess& access = payload.access;
    const bool strong = access.atomic || access.volatile_access;
    std::optional<ShadowFinding> found;
    for_each_lane(active, [&](unsigned lane) {
        auto problem =
            access.direction == Direction::read
                ? global.read(warp.agent, a[lane], payload.bytes, strong, access.what)
                : global.write(warp.agent, lane, a[lane], payload.bytes, strong, access.what, line_of(operation));
        if (!found) {
            found = std::move(problem);
        }
    });
    if (found) {
        warp.report(operation, found->kind, active, std::move(found->message));
    }
}

/// Returns true if all lanes access one allocation, aligned and in bounds.
bool resolve_global(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                    const Addresses& a, const Extent& extent, LanePointers& pointers)
{
    Cluster& cluster = warp.cluster;
    if ((extent.bits & (payload.bytes - 1)) != 0) {
        return false;
    }
    const AllocationCache::Entry* const entry =
        cluster.allocations.find(cluster.grid.memory, cluster.grid.program, extent.low);
    if (entry == nullptr || extent.high - entry->begin > entry->size - payload.bytes || entry->size < payload.bytes ||
        (payload.access.direction != Direction::read && entry->constant)) {
        return false;
    }
    Allocation& allocation = *entry->allocation;
    if (entry->begin % 32 != 0 && allocation.initialized != nullptr) {
        return false;  // a lane's bits would not be in one word
    }
    const MemoryAccess& access = payload.access;
    if (access.direction != Direction::write && warp.checks() &&
        !all_initialized(allocation, payload.bytes, active, a, extent)) {
        return false;  // locate() finds the lane
    }
    if (access.direction != Direction::read) {
        mark_initialized(allocation, payload.bytes, active, a, extent);
    }
    if (access.atomic || access.volatile_access) {
        synchronize_lanes(warp, a, 0, active, access.direction);
    }
    if (cluster.global_shadow != nullptr &&
        (access.direction != Direction::read || cluster.global_shadow->bulk_stored())) {
        check_bulk_copies(warp, operation, payload, active, a);
    }
    set_pointers(pointers, a,
                 reinterpret_cast<std::uintptr_t>(allocation.bytes) - static_cast<std::uintptr_t>(entry->begin));
    pointers.shape = extent.shape;
    return true;
}

void resolve_frame_parameter(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                             const Addresses& a, LanePointers& pointers)
{
    Frame& frame = *warp.split().frame;
    const std::uint64_t stride = frame.function->parameter_bytes;
    for_each_lane(active, [&](unsigned lane) {
        if (a[lane] > stride || payload.bytes > stride - a[lane]) {
            warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, LaneMask{1} << lane,
                       fmt::format("{} at byte {} of {} bytes of .param variables", payload.what, a[lane], stride));
        }
        pointers.at[lane] = reinterpret_cast<std::uintptr_t>(frame.parameters.data() + lane * stride + a[lane]);
    });
}

}  // namespace

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
    Addresses a;
    const auto offset = static_cast<std::uint64_t>(ref.offset);
    if (ref.base == no_row) {
        a.fill(offset);
    } else if (ref.wide) {
        const std::uint64_t* const base = warp.row<std::uint64_t>(ref.base);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            a[lane] = base[lane] + offset;
        }
    } else {
        const std::uint32_t* const base = warp.row<std::uint32_t>(ref.base);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            a[lane] = static_cast<std::uint32_t>(base[lane] + offset);  // 32-bit addresses wrap
        }
    }
    pointers.shape = LanePointers::Shape::scattered;
    if (ref.anchor == AddressRef::Anchor::frame_parameter) {
        resolve_frame_parameter(warp, operation, payload, active, a, pointers);
        return;
    }
    if (ref.anchor == AddressRef::Anchor::frame_local) {
        for (std::uint64_t& address : a) {
            address += warp.split().frame->local_base;
        }
    }
    Space space = payload.access.space;
    const unsigned first = static_cast<unsigned>(std::countr_zero(active));
    if (space == Space::parameter && ref.base == no_row) {
        const std::byte* const bytes = locate(warp, operation, payload.access, a[first], payload.bytes, 1, first);
        pointers.at.fill(reinterpret_cast<std::uintptr_t>(bytes));
        pointers.shape = active == all_lanes ? LanePointers::Shape::broadcast : LanePointers::Shape::scattered;
        return;
    }
    const Extent extent = extent_of(a, active, payload.bytes);
    Statistics& statistics = warp.cluster.statistics;
    const std::uint64_t bytes = std::uint64_t{payload.bytes} * static_cast<unsigned>(std::popcount(active));
    const bool reads = payload.access.direction != Direction::write;
    const bool writes = payload.access.direction != Direction::read;
    std::uint64_t window = 0;
    if (space == Space::generic) {
        // Lanes that access different spaces are resolved one by one below.
        if (extent.low >= shared_window && extent.high < shared_window + (std::uint64_t{1} << 32)) {
            space = Space::shared;
            window = shared_window;
        } else if (extent.high < parameter_window || extent.low >= shared_window + (std::uint64_t{1} << 32)) {
            space = Space::global;
        }
    }
    bool done = false;
    const bool lane_by_lane = warp.cluster.options().paths == Paths::plain;
    if (space == Space::shared) {
        statistics.shared_read_bytes += reads ? bytes : 0;
        statistics.shared_write_bytes += writes ? bytes : 0;
        if (lane_by_lane) {
            // below
        } else if (window != 0) {
            Addresses inside;
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                inside[lane] = a[lane] - window;
            }
            const Extent moved{extent.low - window, extent.high - window, extent.bits, extent.shape};
            done = resolve_shared(warp, operation, payload, active, inside, moved, pointers);
        } else {
            done = resolve_shared(warp, operation, payload, active, a, extent, pointers);
        }
    } else if (space == Space::global || space == Space::constant) {
        statistics.global_read_bytes += reads ? bytes : 0;
        statistics.global_write_bytes += writes ? bytes : 0;
        done = !lane_by_lane && resolve_global(warp, operation, payload, active, a, extent, pointers);
    }
    if (done) {
        return;
    }
    for_each_lane(active, [&](unsigned lane) {
        if (payload.own_cta && a[lane] >> shared_rank_shift != warp.cta.rank) {
            warp.report(operation, FindingKind::invalid_operand, LaneMask{1} << lane,
                        fmt::format("0x{:x} is in the shared memory of CTA {} of the cluster, but {} can access only "
                                    "the shared memory of its own CTA ({}): use .shared::cluster",
                                    a[lane], a[lane] >> shared_rank_shift, payload.what, warp.cta.rank));
        }
        pointers.at[lane] = reinterpret_cast<std::uintptr_t>(
            locate(warp, operation, payload.access, a[lane], payload.bytes, payload.bytes, lane));
    });
}

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
                warp.local_shadow.erase(lane, address + k * element_bytes, element_bytes);
            } else {
                elsewhere |= LaneMask{1} << lane;
            }
        });
        warp.report_undefined(operation, payload.rows[k], elsewhere);
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

bool take_strength(Decoder& decoder, std::string_view strongest)
{
    const bool mmio = decoder.take("mmio");
    const std::string_view sem = decoder.take_one_of({"weak", "volatile", "relaxed", strongest});
    const bool scope = !decoder.take_one_of({"cta", "cluster", "gpu", "sys"}).empty();
    const bool needs_scope = sem == "relaxed" || sem == strongest;
    if (needs_scope && !scope) {
        decoder.fail(fmt::format(".{} needs a scope: .cta, .cluster, .gpu or .sys", sem));
    }
    if (scope && !needs_scope) {
        decoder.fail(fmt::format("a scope is for .relaxed and .{}", strongest));
    }
    if (mmio && sem != "relaxed" && sem != "release") {
        decoder.fail(".mmio goes with .relaxed");
    }
    return needs_scope || sem == "volatile";
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
