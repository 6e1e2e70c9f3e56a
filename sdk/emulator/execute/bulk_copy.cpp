// cp.async.bulk and cp.reduce.async.bulk without tensor maps, and bulk groups (PTX ISA 9.7.9.25.4-5).

#include <fmt/format.h>

#include "execute/bulk_transfer.hpp"
#include "execute/copy_families.hpp"
#include "machine/fault.hpp"
#include "machine/memory_access.hpp"

namespace tessera::emulator {

namespace {

using ptx::Type;

enum class Route : std::uint8_t { load, store, shared };

struct BulkPayload : Payload {
    const char* what = "cp.async.bulk";
    AddressRef destination, source, barrier;
    Ref bytes = no_row;
    Ref cta_mask = no_row, byte_mask = no_row;
    Reduce reduce = nullptr;
    std::uint32_t element_bytes = 1;
};

/// The size in bytes, checked.
std::uint32_t size_of_copy(Warp& warp, const Operation& operation, const BulkPayload& payload, unsigned lane)
{
    const std::uint32_t bytes = warp.row<std::uint32_t>(payload.bytes)[lane];
    if (bytes % 16 != 0) {
        warp.fault(operation, FindingKind::misaligned, error_misaligned_address, bit(lane),
                   fmt::format("{}: the size is {} bytes; it must be a multiple of 16", payload.what, bytes));
    }
    return bytes;
}

std::uint64_t global_address(Warp& warp, const Operation& operation, const BulkPayload& payload,
                             const AddressRef& reference, unsigned lane)
{
    const std::uint64_t address = warp.address(reference, lane);
    if (address % 16 != 0) {
        warp.fault(operation, FindingKind::misaligned, error_misaligned_address, bit(lane),
                   fmt::format("{}: global address {:#x} must be a multiple of 16", payload.what, address));
    }
    return address;
}

std::uint32_t shared_address(const Warp& warp, const AddressRef& reference, unsigned lane)
{
    return static_cast<std::uint32_t>(warp.address(reference, lane));
}

/// One piece of memory, in blocks of at most 4 KiB so that they can arrive separately.
SharedBox plain_box(std::uint32_t bytes, std::uint64_t global)
{
    constexpr std::uint32_t block = 4096;
    SharedBox box;
    box.bytes = bytes;
    for (std::uint32_t at = 0; at < bytes; at += block) {
        BoxRun run;
        run.linear = at;
        run.global = global + at;
        run.shared_bytes = run.global_bytes = std::min(block, bytes - at);
        box.runs.push_back(run);
    }
    return box;
}

Step execute_load(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<BulkPayload>();
    for_each_lane(active, [&](unsigned lane) {
        const std::uint32_t bytes = size_of_copy(warp, operation, payload, lane);
        const std::uint64_t source = global_address(warp, operation, payload, payload.source, lane);
        std::optional<std::uint16_t> mask;
        if (payload.cta_mask != no_row) {
            mask = warp.row<std::uint16_t>(payload.cta_mask)[lane];
        }
        auto targets =
            load_targets(warp, operation, lane, payload.what, shared_address(warp, payload.destination, lane),
                         shared_address(warp, payload.barrier, lane), bytes, 16, mask, 1);
        start(warp, operation, lane,
              std::make_unique<LoadTransfer>(payload.what, warp, plain_box(bytes, source), std::move(targets)));
    });
    return Step::next;
}

std::uint32_t own_source(Warp& warp, const Operation& operation, const BulkPayload& payload, unsigned lane,
                         std::uint32_t bytes)
{
    const std::uint32_t source = shared_address(warp, payload.source, lane);
    if (&check_shared_range(warp, operation, lane, payload.what, source, bytes, 16) != &warp.cta) {
        warp.report(operation, FindingKind::invalid_operand, bit(lane),
                    fmt::format("{}: the source, shared {:#x}, is another CTA's; it must be the executing CTA's own",
                                payload.what, source));
    }
    return source;
}

Step execute_store(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<BulkPayload>();
    for_each_lane(active, [&](unsigned lane) {
        const std::uint32_t bytes = size_of_copy(warp, operation, payload, lane);
        const std::uint64_t target = global_address(warp, operation, payload, payload.destination, lane);
        const std::uint32_t source = own_source(warp, operation, payload, lane, bytes);
        const std::uint16_t byte_mask =
            payload.byte_mask == no_row ? std::uint16_t{0xFFFF} : warp.row<std::uint16_t>(payload.byte_mask)[lane];
        start(warp, operation, lane,
              std::make_unique<StoreTransfer>(payload.what, warp, plain_box(bytes, target), source,
                                              warp.bulk_copies.add(bit(lane)), payload.reduce, byte_mask));
    });
    return Step::next;
}

Step execute_shared(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<BulkPayload>();
    for_each_lane(active, [&](unsigned lane) {
        const std::uint32_t bytes = size_of_copy(warp, operation, payload, lane);
        const std::uint32_t source = own_source(warp, operation, payload, lane, bytes);
        const std::vector<LoadTarget> targets =
            load_targets(warp, operation, lane, payload.what, shared_address(warp, payload.destination, lane),
                         shared_address(warp, payload.barrier, lane), bytes, 16, std::nullopt, 1);
        start(warp, operation, lane,
              std::make_unique<SharedTransfer>(payload.what, warp, plain_box(bytes, 0), source, targets.front(),
                                               payload.reduce));
    });
    return Step::next;
}

Step execute_commit(Warp& warp, const Operation&, LaneMask active)
{
    warp.bulk_copies.commit(active);
    return Step::next;
}

struct WaitPayload : Payload {
    std::uint64_t keep = 0;
    CopyGroups::Stage stage = CopyGroups::Stage::complete;
};

Step execute_wait(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<WaitPayload>();
    if (!warp.bulk_copies.have_reached(active, payload.keep, payload.stage)) {
        warp.split().wait = {Wait::Kind::async_group, 1, warp.cta.rank, payload.keep, active};
        return Step::wait;
    }
    warp.bulk_copies.acquire(active, payload.keep, payload.stage, warp.cluster.clocks, warp.agent, warp.live());
    return Step::next;
}

/// The direction of the copy: takes the state spaces and the completion mechanism.
Route take_direction(Decoder& decoder)
{
    // In the order of the text: the first space is the destination's.
    std::vector<std::string> spaces;
    for (const std::string& modifier : decoder.remaining()) {
        if (modifier == "global" || modifier.starts_with("shared")) {
            spaces.push_back(modifier);
        }
    }
    if (spaces.size() != 2) {
        decoder.fail("the state spaces of destination and source are needed");
    }
    for (const std::string& space : spaces) {
        decoder.take(space);
    }
    const std::string& to = spaces[0];
    const std::string& from = spaces[1];
    if ((to == "shared::cluster" || to == "shared::cta") && from == "global") {
        return Route::load;
    }
    if (to == "global" && from == "shared::cta") {
        return Route::store;
    }
    if (to == "shared::cluster" && from == "shared::cta") {
        return Route::shared;
    }
    decoder.fail(fmt::format("a bulk copy from .{} to .{} does not exist", from, to));
}

void decode_transfer(Decoder& decoder, Operation& operation, BulkPayload& payload, Route direction)
{
    const bool by_groups = decoder.take("bulk_group");
    const bool by_barrier = decoder.take("mbarrier::complete_tx::bytes");
    if (by_groups != (direction == Route::store) || by_barrier == by_groups) {
        decoder.fail(direction == Route::store ? "a copy to global memory completes by .bulk_group"
                                               : "a copy to shared memory completes by .mbarrier::complete_tx::bytes");
    }
    payload.destination = decoder.address(0);
    payload.source = decoder.address(1);
    payload.bytes = decoder.read(2, Type::u32);
    std::size_t next = 3;
    if (by_barrier) {
        payload.barrier = decoder.address(next++);
    }
    if (decoder.take("multicast::cluster")) {
        if (direction != Route::load) {
            decoder.fail("only copies from global memory can be multicast");
        }
        payload.cta_mask = decoder.read(next++, Type::u16);
    }
    if (decoder.take("L2::cache_hint")) {
        decoder.read(next++, Type::b64);  // no effect on results
    }
    if (decoder.take("cp_mask")) {
        if (direction != Route::store) {
            decoder.fail("'.cp_mask' is for copies to global memory");
        }
        payload.byte_mask = decoder.read(next++, Type::u16);
    }
    if (decoder.operands() != next) {
        decoder.fail(fmt::format("{} operands are given, {} are needed", decoder.operands(), next));
    }
    operation.execute = direction == Route::load    ? execute_load
                        : direction == Route::store ? execute_store
                                                    : execute_shared;
    note_bulk_copy(decoder, direction == Route::load ? Space::global : Space::shared,
                   direction == Route::store ? Space::global : Space::shared, payload.reduce != nullptr, by_barrier);
}

}  // namespace

void decode_bulk_copy(Decoder& decoder, Operation& operation)
{
    if (decoder.take("commit_group")) {
        operation.execute = execute_commit;
        decoder.effects().sync = {.object = SyncObject::async_groups, .commits = true};
        return;
    }
    if (decoder.take("wait_group")) {
        auto& payload = decoder.emplace_payload<WaitPayload>();
        const std::optional<std::int64_t> keep = decoder.operands() == 1 ? decoder.constant(0) : std::nullopt;
        if (!keep || *keep < 0) {
            decoder.fail("the number of groups that may be pending is a constant");
        }
        payload.keep = static_cast<std::uint64_t>(*keep);
        payload.stage = decoder.take("read") ? CopyGroups::Stage::source_read : CopyGroups::Stage::complete;
        operation.execute = execute_wait;
        decoder.effects().may_wait = true;
        decoder.effects().sync = {.object = SyncObject::async_groups, .waits = true};
        return;
    }
    auto& payload = decoder.emplace_payload<BulkPayload>();
    const Route direction = take_direction(decoder);
    decode_transfer(decoder, operation, payload, direction);
}

void decode_bulk_reduce(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<BulkPayload>();
    payload.what = "cp.reduce.async.bulk";
    const Route direction = take_direction(decoder);
    if (direction == Route::load) {
        decoder.fail("reductions go from shared memory to global memory or to shared memory of the cluster");
    }
    const std::string_view name = decoder.take_one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
    const bool noftz = decoder.take("noftz");
    const Type type = decoder.require_type();
    payload.reduce = find_reduction(name, type);
    const bool half = type == Type::f16 || type == Type::bf16;
    const bool integer32 = type == Type::u32 || type == Type::s32 || type == Type::b32;
    const bool allowed = direction == Route::store || integer32 || (name == "add" && type == Type::u64);
    if (payload.reduce == nullptr || !allowed || noftz != (half && name == "add")) {
        decoder.fail(fmt::format("the reduction .{}{}.{} does not exist for this destination", name,
                                 noftz ? ".noftz" : "", ptx::name_of(type)));
    }
    decode_transfer(decoder, operation, payload, direction);
}

}  // namespace tessera::emulator
