// tcgen05.ld, tcgen05.st and their waits (PTX ISA "Tensor Memory and Register Load/Store Instructions").

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "execute/tcgen05.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"

namespace tessera::emulator::tcgen05 {
namespace {

enum class Shape : std::uint8_t { l32x32b, l16x64b, l16x128b, l16x256b, l16x32bx2 };

struct ShapeInfo {
    std::string_view name;
    Shape shape;
    unsigned registers;  ///< for .x1
    unsigned columns;    ///< for .x1
    unsigned largest;    ///< largest multiplier
};
constexpr std::array<ShapeInfo, 5> shapes{{{"32x32b", Shape::l32x32b, 1, 1, 128},
                                           {"16x64b", Shape::l16x64b, 1, 2, 128},
                                           {"16x128b", Shape::l16x128b, 2, 4, 64},
                                           {"16x256b", Shape::l16x256b, 4, 8, 32},
                                           {"16x32bx2", Shape::l16x32bx2, 1, 1, 128}}};

struct LoadStore : Payload {
    Shape shape = Shape::l32x32b;
    unsigned number = 1;
    bool is_store = false;
    bool packed = false;      ///< two 16-bit elements of neighbouring columns in one register
    std::uint32_t split = 0;  ///< 16x32bx2: distance in columns between the two halves
    AddressRef address;
    std::vector<Ref> registers;
    const char* what = "tcgen05.ld";
};

struct Place {
    unsigned lane, column;
};

/// The place of register `r` of thread `t`, relative to the address (PTX ISA "Data Movement Shape"), in columns of the
/// packed form.
template <Shape shape>
constexpr Place place_of(unsigned t, unsigned r) noexcept
{
    switch (shape) {
        case Shape::l32x32b: return {t, r};
        case Shape::l16x64b: return {t / 4 + 8 * (t % 2), 2 * r + t / 2 % 2};
        case Shape::l16x128b: return {t / 4 + 8 * (r % 2), 4 * (r / 2) + t % 4};
        case Shape::l16x256b: return {t / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (t % 4) + r % 2};
        case Shape::l16x32bx2: return {t % 16, r};
    }
    return {0, 0};
}

/// Calls body(register index, thread, place in tensor memory) for all words. With `packed`, it is the first of two.
template <Shape shape, typename Body>
void for_each_place(const LoadStore& access, TensorAddress base, LaneMask lanes, Body&& body)
{
    const unsigned scale = access.packed ? 2 : 1;
    const auto count = static_cast<unsigned>(access.registers.size());
    for_each_lane(lanes, [&](unsigned t) {
        const unsigned column = base.column + (shape == Shape::l16x32bx2 && t >= 16 ? access.split : 0);
        for (unsigned r = 0; r < count; ++r) {
            const Place place = place_of<shape>(t, r);
            body(r, t, TensorAddress(base.lane + place.lane, column + place.column * scale));
        }
    });
}

template <typename Body>
void for_each_place(const LoadStore& access, TensorAddress base, LaneMask lanes, Body&& body)
{
    switch (access.shape) {
        case Shape::l32x32b: return for_each_place<Shape::l32x32b>(access, base, lanes, body);
        case Shape::l16x64b: return for_each_place<Shape::l16x64b>(access, base, lanes, body);
        case Shape::l16x128b: return for_each_place<Shape::l16x128b>(access, base, lanes, body);
        case Shape::l16x256b: return for_each_place<Shape::l16x256b>(access, base, lanes, body);
        case Shape::l16x32bx2: return for_each_place<Shape::l16x32bx2>(access, base, lanes, body);
    }
}

/// Calls body(register index, thread, word of tensor memory) for all words. With `packed`, the word is the first of
/// two.
template <typename Body>
void for_each_word(TensorMemory& memory, const LoadStore& access, TensorAddress base, LaneMask lanes, Body&& body)
{
    for_each_place(access, base, lanes,
                   [&](unsigned r, unsigned t, TensorAddress place) { body(r, t, memory.at(place)); });
}

std::vector<TensorRegion> regions_of(const LoadStore& access, TensorAddress base)
{
    const auto info = std::ranges::find(shapes, access.shape, &ShapeInfo::shape);
    const unsigned columns = info->columns * access.number * (access.packed ? 2 : 1);
    const TensorLanes lanes = TensorLanes::range(base.lane, access.shape == Shape::l32x32b ? 32 : 16);
    std::vector<TensorRegion> regions{{lanes, base.column, columns}};
    if (access.shape == Shape::l16x32bx2) {
        regions.push_back({lanes, base.column + access.split, columns});
    }
    return regions;
}

/// The address with the lane that the warp really accesses. A warp accesses the quarter of the lanes given by its index
/// modulo 4.
TensorAddress own_address(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& access = operation.as<LoadStore>();
    const auto first = static_cast<unsigned>(std::countr_zero(active));
    const auto bits = static_cast<std::uint32_t>(warp.address(access.address, first));
    for_each_lane(active, [&](unsigned lane) {
        if (static_cast<std::uint32_t>(warp.address(access.address, lane)) != bits) {
            warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, active,
                       fmt::format("{}: lane {} has tensor memory address {:#x}, lane {} has {:#x}; all lanes of the "
                                   "warp must have the same",
                                   access.what, lane, static_cast<std::uint32_t>(warp.address(access.address, lane)),
                                   first, bits));
        }
    });
    TensorAddress address(bits);
    const unsigned quarter = warp.index % 4;
    if (address.lane >= tensor_lanes || (address.lane / 32 != 0 && address.lane / 32 != quarter)) {
        warp.report(
            operation, FindingKind::tmem_lanes, active,
            fmt::format("{} of warp {} with lane {} in its address {:#x}: warp {} of a warpgroup can access only "
                        "lanes {} to {}, and accesses those",
                        access.what, warp.index, address.lane, bits, quarter, 32 * quarter, 32 * quarter + 31));
    }
    const unsigned offset = address.lane % 32;
    const bool whole = access.shape == Shape::l32x32b;
    if (offset != 0 && (whole || offset != 16)) {
        warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, active,
                   fmt::format("{} with lane {} in its address {:#x}: it must be a multiple of {}", access.what,
                               address.lane, bits, whole ? 32 : 16));
    }
    address.lane = 32 * quarter + offset;
    return address;
}

/// Loads of whole warps include lanes that an MMA with M = 64 does not write, and columns behind a narrower
/// accumulator. That is no fault as long as nothing uses the values.
void follow_unwritten(Warp& warp, const Operation& operation, const TensorMemory& memory, TensorAddress address,
                      LaneMask active)
{
    const auto& load = operation.as<LoadStore>();
    std::vector<LaneMask> undefined(load.registers.size());
    std::vector<TensorAddress> first(load.registers.size());
    for_each_place(load, address, active, [&](unsigned r, unsigned t, TensorAddress place) {
        if (!memory.written(place) || (load.packed && !memory.written({place.lane, place.column + 1}))) {
            first[r] = undefined[r] == 0 ? place : first[r];
            undefined[r] |= LaneMask{1} << t;
        }
    });
    for (std::size_t r = 0; r < undefined.size(); ++r) {
        if (undefined[r] != 0) {
            warp.follow(operation, load.registers[r], undefined[r], FindingKind::uninitialized_tmem, [&] {
                return FindingText{fmt::format(
                    "tcgen05.ld reads column {}, lane {} of tensor memory, which was never written since it was "
                    "allocated{}",
                    first[r].column, first[r].lane,
                    memory.any_written({TensorLanes::range(0, tensor_lanes), first[r].column, 1})
                        ? " (other lanes of the column were; M decides which lanes an MMA writes)"
                        : "")};
            });
        }
    }
}

Step execute_load(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.gather_aligned(operation)) {
        return Step::wait;
    }
    const auto& load = operation.as<LoadStore>();
    TensorMemory& memory = *warp.cta.tensor_memory;
    const TensorAddress address = own_address(warp, operation, active);
    std::vector<TensorRegion> regions = regions_of(load, address);
    const bool checks = warp.cluster.options().check;
    bool pending = false, written = true;
    for (const TensorRegion& region : regions) {
        check_region(warp, operation, active, warp.cta, region, false, load.what);
        if (!checks) {
            continue;
        }
        if (const TensorWork* work = memory.pending_on(region, false)) {
            warp.report(operation, FindingKind::accumulator_before_commit, active,
                        fmt::format("tcgen05.ld reads columns {} to {} of tensor memory, which the {} (PTX line {}) "
                                    "has not finished writing: wait for the mbarrier of a "
                                    "tcgen05.commit after it",
                                    region.column, region.column + region.columns - 1, work->describe(),
                                    line_of(work->operation)));
            pending = true;
            continue;
        }
        if (!memory.all_written(region)) {
            written = false;
            memory.note_early_load(region, line_of(operation));
        }
        report(warp, operation, active,
               memory.read(region, {.kind = TensorAccess::Kind::load,
                                    .agent = warp.agent,
                                    .issue = {},
                                    .what = load.what,
                                    .line = line_of(operation)}));
    }
    std::vector<std::uint32_t*> rows(load.registers.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
        rows[r] = warp.row<std::uint32_t>(load.registers[r]);
    }
    if (load.packed) {
        for_each_word(memory, load, address, active, [&](unsigned r, unsigned t, const std::uint32_t* word) {
            rows[r][t] = (word[0] & 0xFFFF) | word[1] << 16;
        });
    } else {
        for_each_word(memory, load, address, active,
                      [&](unsigned r, unsigned t, const std::uint32_t* word) { rows[r][t] = *word; });
    }
    if (!written && !pending) {
        follow_unwritten(warp, operation, memory, address, active);
    }
    if (checks) {
        memory.outstanding.push_back({.warp = warp.index,
                                      .regions = std::move(regions),
                                      .operation = &operation,
                                      .line = line_of(operation),
                                      .address = address,
                                      .lanes = active,
                                      .values = {}});
    }
    return Step::next;
}

void write_stored(TensorMemory& memory, const TensorMemory::OutstandingAccess& access)
{
    const auto& store = access.operation->as<LoadStore>();
    if (store.packed) {
        // The upper halves of the words are undocumented: zero here.
        for_each_word(memory, store, access.address, access.lanes, [&](unsigned r, unsigned t, std::uint32_t* word) {
            const std::uint32_t value = access.values[r * warp_size + t];
            word[0] = value & 0xFFFF;
            word[1] = value >> 16;
        });
    } else {
        for_each_word(memory, store, access.address, access.lanes,
                      [&](unsigned r, unsigned t, std::uint32_t* word) { *word = access.values[r * warp_size + t]; });
    }
}

Step execute_store(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.gather_aligned(operation)) {
        return Step::wait;
    }
    const auto& store = operation.as<LoadStore>();
    TensorMemory& memory = *warp.cta.tensor_memory;
    const TensorAddress address = own_address(warp, operation, active);
    std::vector<TensorRegion> regions = regions_of(store, address);
    for (const TensorRegion& region : regions) {
        check_region(warp, operation, active, warp.cta, region, false, store.what);
        if (!warp.cluster.options().check) {
            continue;
        }
        if (const TensorWork* work = memory.pending_on(region, true)) {
            warp.report(operation, FindingKind::accumulator_before_commit, active,
                        fmt::format("tcgen05.st writes columns {} to {} of tensor memory, which the {} (PTX line {}) "
                                    "still uses: wait for the mbarrier of a tcgen05.commit after it",
                                    region.column, region.column + region.columns - 1, work->describe(),
                                    line_of(work->operation)));
            continue;
        }
        report(warp, operation, active,
               memory.write(region, {.kind = TensorAccess::Kind::store,
                                     .agent = warp.agent,
                                     .issue = {},
                                     .what = store.what,
                                     .line = line_of(operation)}));
    }
    TensorMemory::OutstandingAccess access{.warp = warp.index,
                                           .is_store = true,
                                           .regions = std::move(regions),
                                           .operation = &operation,
                                           .line = line_of(operation),
                                           .address = address,
                                           .lanes = active,
                                           .values = {}};
    access.values.reserve(store.registers.size() * warp_size);
    for (const Ref ref : store.registers) {
        const auto* row = warp.row<std::uint32_t>(ref);
        access.values.insert(access.values.end(), row, row + warp_size);
    }
    if (warp.cluster.options().schedule == Schedule::in_order) {  // soon, as on a GPU; the wait is needed all the same
        write_stored(memory, access);
        access.values.clear();
    }
    memory.outstanding.push_back(std::move(access));
    return Step::next;
}

template <bool stores>
Step execute_wait(Warp& warp, const Operation& operation, LaneMask)
{
    if (!warp.gather_aligned(operation)) {
        return Step::wait;
    }
    TensorMemory& memory = *warp.cta.tensor_memory;
    bool any = false;
    for (const TensorMemory::OutstandingAccess& access : memory.outstanding) {
        if (access.warp != warp.index || access.is_store != stores) {
            continue;
        }
        any = true;
        if (!access.values.empty()) {
            write_stored(memory, access);
        }
        for (const TensorRegion& region : access.regions) {
            memory.happened(region, {.kind = stores ? TensorAccess::Kind::store : TensorAccess::Kind::load,
                                     .agent = warp.agent,
                                     .issue = {},
                                     .what = stores ? "tcgen05.st" : "tcgen05.ld",
                                     .line = access.line});
        }
    }
    if (any) {
        std::erase_if(memory.outstanding, [&](const TensorMemory::OutstandingAccess& access) {
            return access.warp == warp.index && access.is_store == stores;
        });
        warp.cluster.progress();
    }
    return Step::next;
}

}  // namespace

void decode_load_store(Decoder& decoder, Operation& operation)
{
    auto& access = decoder.emplace_payload<LoadStore>();
    access.is_store = !decoder.take("ld") && decoder.take("st");
    access.what = access.is_store ? "tcgen05.st" : "tcgen05.ld";
    if (decoder.take("red")) {
        decoder.fail("tcgen05.ld.red exists on sm_103 and sm_110 only");
    }
    take_sync_aligned(decoder);
    const std::string_view name = decoder.take_one_of({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"});
    const auto info = std::ranges::find(shapes, name, &ShapeInfo::name);
    if (info == shapes.end()) {
        decoder.fail("tcgen05.ld and tcgen05.st need a shape: .32x32b, .16x64b, .16x128b, .16x256b or .16x32bx2");
    }
    access.shape = info->shape;
    const auto number = decoder.take_prefixed("x");
    access.number = 0;
    for (unsigned candidate = 1; number && candidate <= info->largest; candidate *= 2) {
        if (*number == std::to_string(candidate)) {
            access.number = candidate;
        }
    }
    if (access.number == 0) {
        decoder.fail(fmt::format("shape .{} needs a number .x1 to .x{}, a power of two", name, info->largest));
    }
    access.packed = decoder.take(access.is_store ? "unpack::16b" : "pack::16b");
    const bool has_split = access.shape == Shape::l16x32bx2;
    if (!decoder.take("b32") || decoder.operands() != (has_split ? 3u : 2u)) {
        decoder.fail(fmt::format("tcgen05.{} needs .b32, an address and a vector of registers{}",
                                 access.is_store ? "st" : "ld",
                                 has_split ? ", and with .16x32bx2 an immediate split offset after the address" : ""));
    }
    const std::size_t address = access.is_store ? 0 : 1;
    const std::size_t vector = access.is_store ? (has_split ? 2 : 1) : 0;
    access.address = decoder.address(address);
    if (has_split) {
        const auto split = decoder.constant(address + 1);
        if (!split || *split < 0 || *split >= tensor_columns) {
            decoder.fail("the split offset of .16x32bx2 must be an immediate number of columns");
        }
        access.split = static_cast<std::uint32_t>(*split);
    }
    access.registers =
        access.is_store ? decoder.read_vector(vector, ptx::Type::b32) : decoder.write_vector(vector, ptx::Type::b32);
    if (access.registers.size() != std::size_t{info->registers} * access.number) {
        decoder.fail(fmt::format(".{}.x{} takes {} registers, not {}", name, access.number,
                                 info->registers * access.number, access.registers.size()));
    }
    operation.execute = access.is_store ? execute_store : execute_load;
    decoder.effects().access({.space = Space::tensor,
                              .direction = access.is_store ? Direction::write : Direction::read,
                              .bytes = static_cast<std::uint32_t>(4 * access.registers.size()),
                              .later = access.is_store});
}

void decode_wait(Decoder& decoder, Operation& operation)
{
    const bool loads = decoder.take("wait::ld");
    if (!loads) {
        decoder.take("wait::st");
    }
    take_sync_aligned(decoder);
    operation.execute = loads ? execute_wait<false> : execute_wait<true>;
    decoder.effects().sync = {.object = SyncObject::tensor_memory, .waits = true};
}

}  // namespace tessera::emulator::tcgen05
