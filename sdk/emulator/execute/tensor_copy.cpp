// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and the prefetch of tensors (PTX ISA 9.7.9.27).

#include <fmt/ranges.h>

#include <algorithm>

#include "execute/bulk_transfer.hpp"
#include "execute/copy_families.hpp"
#include "execute/tensor_map_access.hpp"
#include "machine/fault.hpp"

namespace tessera::emulator {

namespace {

using ptx::Type;

constexpr std::uint32_t tensor_alignment = 128;

struct TensorPayload : Payload {
    const char* what = "cp.async.bulk.tensor";
    AddressRef shared, map, barrier;
    BoxMode mode = BoxMode::tile;
    unsigned dimensions = 0;
    std::vector<Ref> coordinates, offsets;
    Ref cta_mask = no_row;
    unsigned cta_group = 1;
    std::string reduction;  ///< empty: a copy
};

BoxRequest request_of(const Warp& warp, const TensorPayload& payload, unsigned lane)
{
    BoxRequest request;
    request.mode = payload.mode;
    request.dimensions = payload.dimensions;
    for (std::size_t i = 0; i < payload.coordinates.size(); ++i) {
        request.coordinates[i] = warp.row<std::int32_t>(payload.coordinates[i])[lane];
    }
    for (std::size_t i = 0; i < payload.offsets.size(); ++i) {
        request.offsets[i] = warp.row<std::uint16_t>(payload.offsets[i])[lane];
    }
    return request;
}

/// The lanes that store: of those with the same operands, the first. ptxas makes one store of equal ones, since that changes no
/// result, and CUTLASS's epilogues let whole warps store. Loads and reductions are executed for each lane (SASS of CUDA 13.0,
/// sm_90a and sm_100a).
LaneMask distinct_stores(const Warp& warp, const TensorPayload& payload, LaneMask active)
{
    const auto same = [&](unsigned a, unsigned b) {
        return warp.address(payload.shared, a) == warp.address(payload.shared, b) &&
               warp.address(payload.map, a) == warp.address(payload.map, b) &&
               std::ranges::all_of(payload.coordinates, [&](Ref row) {
                   return warp.row<std::int32_t>(row)[a] == warp.row<std::int32_t>(row)[b];
               });
    };
    LaneMask stores = 0;
    for_each_lane(active, [&](unsigned lane) {
        bool is_new = true;
        for_each_lane(stores, [&](unsigned other) { is_new = is_new && !same(lane, other); });
        stores |= is_new ? bit(lane) : 0;
    });
    return stores;
}

/// The tensor map that an instruction names, checked together with its coordinates. Faults if they are not valid.
TensorMap checked_map(Warp& warp, const Operation& operation, const TensorPayload& payload, const BoxRequest& request,
                      unsigned lane, bool is_store)
{
    const TensorMap map = tensor_map_at(warp, operation, payload.map, lane, payload.what);
    if (warp.cluster.global_shadow != nullptr) {
        const KnownOfWarp known(warp, operation);
        if (const auto found = warp.cluster.global_shadow->use_map(warp.agent, warp.address(payload.map, lane),
                                                                   payload.what, &known)) {
            warp.report(operation, found->kind, bit(lane), [&] { return found->message; }, found->other_line);
        }
    }
    if (map.interleave != TensorInterleave::none) {
        warp.fault(operation, FindingKind::not_emulated, error_illegal_instruction, bit(lane),
                   fmt::format("{}: interleaved tensors are not emulated", payload.what));
    }
    if (std::string problem = problem_of(map, request, is_store); !problem.empty()) {
        warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, bit(lane),
                   fmt::format("{}: {}", payload.what, problem));
    }
    return map;
}

SharedBox box_of(const TensorMap& map, const BoxRequest& request)
{
    return {box_bytes(map, request), map.swizzle, box_runs(map, request)};
}

Step execute_load(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<TensorPayload>();
    for_each_lane(active, [&](unsigned lane) {
        const BoxRequest request = request_of(warp, payload, lane);
        const TensorMap map = checked_map(warp, operation, payload, request, lane, false);
        SharedBox box = box_of(map, request);
        std::optional<std::uint16_t> mask;
        if (payload.cta_mask != no_row) {
            mask = warp.row<std::uint16_t>(payload.cta_mask)[lane];
        }
        auto targets = load_targets(warp, operation, lane, payload.what,
                                    static_cast<std::uint32_t>(warp.address(payload.shared, lane)),
                                    static_cast<std::uint32_t>(warp.address(payload.barrier, lane)), box.bytes,
                                    tensor_alignment, mask, payload.cta_group);
        start(warp, operation, lane,
              std::make_unique<LoadTransfer>(payload.what, warp, std::move(box), std::move(targets), map));
    });
    return Step::next;
}

/// An H200 silently writes, or reduces into, the whole last 16-byte chunk of a row (docs/notes/emulator-h200.md).
void report_row_overrun(Warp& warp, const Operation& operation, const TensorPayload& payload, const TensorMap& map,
                        const BoxRequest& request, const SharedBox& box, unsigned lane)
{
    const auto found = std::ranges::find_if(box.runs, [](const BoxRun& run) { return run.overrun_bytes != 0; });
    if (found == box.runs.end()) {
        return;
    }
    const unsigned bits = global_bits(map.element);
    warp.report(
        operation, FindingKind::row_overrun, bit(lane),
        fmt::format(
            "{}: the box at {{{}}} covers the end of the tensor's rows, which have {} elements of {} bits, {} "
            "bytes: hardware writes the whole last 16-byte chunk of a row, {} bytes beyond its end: make extent * "
            "element size a multiple of 16 bytes, or write such rows without TMA",
            payload.what,
            fmt::join(request.coordinates.begin(), request.coordinates.begin() + payload.coordinates.size(), ", "),
            map.extents[0], bits, map.extents[0] * bits / 8, found->overrun_bytes));
}

/// Stores and reductions.
Step execute_store(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<TensorPayload>();
    const LaneMask lanes = payload.reduction.empty() ? distinct_stores(warp, payload, active) : active;
    for_each_lane(lanes, [&](unsigned lane) {
        const BoxRequest request = request_of(warp, payload, lane);
        const TensorMap map = checked_map(warp, operation, payload, request, lane, true);
        for (std::size_t i = 0; i < payload.coordinates.size(); ++i) {
            if (request.coordinates[i] < 0) {
                warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, bit(lane),
                           fmt::format("{}: coordinate {} is {}: a store must not begin at negative coordinates",
                                       payload.what, i, request.coordinates[i]));
            }
        }
        Reduce reduce = nullptr;
        if (!payload.reduction.empty()) {
            reduce = find_reduction(payload.reduction, map.element);
            if (reduce == nullptr) {
                warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, bit(lane),
                           fmt::format("{}: .{} does not exist for the tensor map's element type {}", payload.what,
                                       payload.reduction, static_cast<unsigned>(map.element)));
            }
        }
        SharedBox box = box_of(map, request);
        const auto source = static_cast<std::uint32_t>(warp.address(payload.shared, lane));
        if (&check_shared_range(warp, operation, lane, payload.what, source, box.bytes, tensor_alignment) !=
            &warp.cta) {
            warp.report(
                operation, FindingKind::invalid_operand, bit(lane),
                fmt::format("{}: the source, shared {:#x}, is another CTA's; it must be the executing CTA's own",
                            payload.what, source));
        }
        report_row_overrun(warp, operation, payload, map, request, box, lane);
        start(warp, operation, lane,
              std::make_unique<StoreTransfer>(payload.what, warp, std::move(box), source,
                                              warp.bulk_copies.add(bit(lane)), reduce));
    });
    return Step::next;
}

Step execute_prefetch(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<TensorPayload>();
    for_each_lane(active, [&](unsigned lane) {
        static_cast<void>(checked_map(warp, operation, payload, request_of(warp, payload, lane), lane, false));
    });
    return Step::next;
}

// --- decoding ---

/// .1d to .5d and the mode.
void take_shape(Decoder& decoder, TensorPayload& payload, bool is_store)
{
    const std::string_view dimensions = decoder.take_one_of({"1d", "2d", "3d", "4d", "5d"});
    if (dimensions.empty()) {
        decoder.fail("the number of dimensions is missing: .1d to .5d");
    }
    payload.dimensions = static_cast<unsigned>(dimensions[0] - '0');
    const std::string_view mode = decoder.take_one_of(
        {"tile", "tile::gather4", "tile::scatter4", "im2col", "im2col_no_offs", "im2col::w", "im2col::w::128"});
    if (mode.starts_with("im2col::w")) {
        decoder.fail(fmt::format("'.{}' is not emulated", mode));
    }
    if (mode == (is_store ? "tile::gather4" : "tile::scatter4") || mode == (is_store ? "im2col" : "im2col_no_offs")) {
        decoder.fail(fmt::format("'.{}' is not for this direction", mode));
    }
    const bool four_rows = mode == "tile::gather4" || mode == "tile::scatter4";
    payload.mode = four_rows ? BoxMode::four_rows : mode.starts_with("im2col") ? BoxMode::im2col : BoxMode::tile;
    if (four_rows && payload.dimensions != 2) {
        decoder.fail("gather4 and scatter4 are .2d");
    }
    if (payload.mode == BoxMode::im2col && payload.dimensions < 3) {
        decoder.fail("im2col copies are .3d to .5d");
    }
}

/// [map, {coordinates}]
void read_tensor(Decoder& decoder, TensorPayload& payload, std::size_t index)
{
    const ptx::Operand& tensor = decoder.operand(index);
    if (tensor.kind != ptx::Operand::Kind::bracket || tensor.elements.size() != 2) {
        decoder.fail("the tensor is written [map, {coordinates}]");
    }
    payload.map = decoder.address(tensor.elements[0]);
    const ptx::Operand& list = tensor.elements[1];
    const bool single = list.kind != ptx::Operand::Kind::vector;
    const std::size_t count = single ? 1 : list.elements.size();
    const std::size_t needed = payload.mode == BoxMode::four_rows ? 5 : payload.dimensions;
    if (count != needed) {
        decoder.fail(fmt::format("{} coordinates are given, {} are needed", count, needed));
    }
    for (std::size_t i = 0; i < count; ++i) {
        payload.coordinates.push_back(decoder.read(single ? list : list.elements[i], Type::s32));
    }
}

void read_offsets(Decoder& decoder, TensorPayload& payload, std::size_t index)
{
    payload.offsets = decoder.read_vector(index, Type::u16);
    if (payload.offsets.size() != payload.dimensions - 2) {
        decoder.fail(
            fmt::format("{} im2col offsets are given, {} are needed", payload.offsets.size(), payload.dimensions - 2));
    }
}

void decode_load(Decoder& decoder, Operation& operation, TensorPayload& payload)
{
    take_shape(decoder, payload, false);
    if (!decoder.take("global") || !decoder.take("mbarrier::complete_tx::bytes")) {
        decoder.fail("a load is .shared::cluster.global and completes by .mbarrier::complete_tx::bytes");
    }
    payload.shared = decoder.address(0);
    read_tensor(decoder, payload, 1);
    payload.barrier = decoder.address(2);
    std::size_t next = 3;
    if (payload.mode == BoxMode::im2col) {
        read_offsets(decoder, payload, next++);
    }
    if (decoder.take("multicast::cluster")) {
        payload.cta_mask = decoder.read(next++, Type::u16);
    }
    if (const std::string_view group = decoder.take_one_of({"cta_group::1", "cta_group::2"}); !group.empty()) {
        payload.cta_group = group.back() == '2' ? 2 : 1;
        if (!decoder.device().tensor_memory) {
            decoder.fail(fmt::format("'.cta_group' needs compute capability 10.0, {} has {}.{}", decoder.device().name,
                                     decoder.device().major, decoder.device().minor));
        }
    }
    if (decoder.take("L2::cache_hint")) {
        decoder.read(next++, ptx::Type::b64);  // no effect on results
    }
    expect_operands(decoder, next);
    operation.execute = execute_load;
    note_bulk_copy(decoder, Space::global, Space::shared, false, true);
}

void decode_store(Decoder& decoder, Operation& operation, TensorPayload& payload)
{
    take_shape(decoder, payload, true);
    if (!decoder.take("shared::cta") || !decoder.take("bulk_group")) {
        decoder.fail("a store is .global.shared::cta and completes by .bulk_group");
    }
    read_tensor(decoder, payload, 0);
    payload.shared = decoder.address(1);
    const bool policy = decoder.take("L2::cache_hint");
    expect_operands(decoder, policy ? 3 : 2);
    if (policy) {
        decoder.read(2, ptx::Type::b64);  // no effect on results
    }
    operation.execute = execute_store;
    note_bulk_copy(decoder, Space::shared, Space::global, !payload.reduction.empty(), false);
}

}  // namespace

void decode_tensor_copy(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<TensorPayload>();
    // The destination is first: a store has "global" before the space of its source.
    bool is_store = false;
    for (const std::string& modifier : decoder.remaining()) {
        if (modifier == "global" || modifier == "shared::cluster" || modifier == "shared::cta") {
            is_store = modifier == "global";
            break;
        }
    }
    if (is_store) {
        decoder.take("global");
        decode_store(decoder, operation, payload);
        return;
    }
    if (decoder.take_one_of({"shared::cluster", "shared::cta"}).empty()) {
        decoder.fail("the state spaces are missing");
    }
    decode_load(decoder, operation, payload);
}

void decode_tensor_reduce(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<TensorPayload>();
    payload.what = "cp.reduce.async.bulk.tensor";
    payload.reduction = decoder.take_one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
    if (payload.reduction.empty() || !decoder.take("global")) {
        decoder.fail("the form is cp.reduce.async.bulk.tensor.{1d-5d}.global.shared::cta.{operation}.bulk_group");
    }
    decode_store(decoder, operation, payload);
    if (payload.mode == BoxMode::four_rows) {
        decoder.fail("there is no reduction with scatter4");
    }
}

void decode_tensor_prefetch(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<TensorPayload>();
    payload.what = "cp.async.bulk.prefetch.tensor";
    take_shape(decoder, payload, false);
    if (!decoder.take("L2") || !decoder.take("global")) {
        decoder.fail("the form is cp.async.bulk.prefetch.tensor.{1d-5d}.L2.global");
    }
    read_tensor(decoder, payload, 0);
    std::size_t next = 1;
    if (payload.mode == BoxMode::im2col) {
        read_offsets(decoder, payload, next++);
    }
    if (decoder.take("L2::cache_hint")) {
        decoder.read(next++, ptx::Type::b64);  // no effect on results
    }
    expect_operands(decoder, next);
    operation.execute = execute_prefetch;
}

}  // namespace tessera::emulator
