// tcgen05.alloc, dealloc, relinquish_alloc_permit (PTX ISA "Tensor Memory Allocation and Management Instructions").
// With cta_group::2 a warp of each CTA of the pair takes part; the first waits for the second.

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "execute/tcgen05.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/memory_access.hpp"

namespace tessera::emulator::tcgen05 {
namespace {

using Request = TensorMemory::PairRequest;

struct Management : Payload {
    AddressRef result;  ///< alloc: where the address is written
    Ref columns = no_row;
    Ref address = no_row;  ///< dealloc
    unsigned cta_group = 1;
};

Step wait_here(Warp& warp, unsigned columns)
{
    warp.split().wait = {.kind = Wait::Kind::tensor_memory, .object = columns, .cta = warp.cta.rank};
    return Step::wait;
}

/// The value of an operand that must be the same in all lanes.
std::uint32_t uniform(Warp& warp, const Operation& operation, Ref ref, LaneMask active, const char* what)
{
    const auto* values = warp.row<std::uint32_t>(ref);
    const std::uint32_t value = values[std::countr_zero(active)];
    for_each_lane(active, [&](unsigned lane) {
        if (values[lane] != value) {
            warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, active,
                       fmt::format("{}: lane {} has {:#x}, others {:#x}; all lanes must agree", what, lane,
                                   values[lane], value));
        }
    });
    return value;
}

bool valid_size(std::uint32_t columns) noexcept
{
    return std::has_single_bit(columns) && columns >= 32 && columns <= tensor_columns;
}

void check_size(Warp& warp, const Operation& operation, LaneMask active, std::uint32_t columns)
{
    if (!valid_size(columns)) {
        warp.fault(
            operation, FindingKind::tmem_allocation, error_illegal_instruction, active,
            fmt::format("{} columns of tensor memory: the number must be a power of two from 32 to 512", columns));
    }
}

/// Address in the CTA's shared window that alloc writes to.
std::uint32_t result_address(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto lane = static_cast<unsigned>(std::countr_zero(active));
    const std::uint64_t address = warp.address(operation.as<Management>().result, lane);
    std::uint32_t shared = static_cast<std::uint32_t>(address);
    if (address >> 32 != 0 && !generic_to_shared(address, shared)) {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, active,
                   fmt::format("tcgen05.alloc writes its result to {:#x}, which is not in shared memory", address));
    }
    return shared;
}

/// The first warp of the pair gets its columns when the second arrives. Both write their address.
void write_result(Warp& warp, const Operation& operation, std::uint32_t address, unsigned column, LaneMask active)
{
    const auto lane = static_cast<unsigned>(std::countr_zero(active));
    const MemoryAccess access{
        .space = Space::shared, .direction = Direction::write, .what = "tcgen05.alloc", .whole_warp = true};
    const std::uint32_t result = TensorAddress(0u, column).bits();
    std::memcpy(locate(warp, operation, access, address, 4, 4, lane), &result, 4);
    warp.cluster.progress();
    warp.cluster.notify();
}

/// Checks the allocation itself. It is made even if a rule is broken.
void check_rules(Warp& warp, const Operation& operation, LaneMask active, unsigned columns)
{
    const TensorMemory& memory = *warp.cta.tensor_memory;
    if (memory.relinquished) {
        warp.report(
            operation, FindingKind::tmem_allocation, active,
            "tcgen05.alloc after a tcgen05.relinquish_alloc_permit of this CTA: relinquish after the last alloc");
    }
    if (memory.last_columns != 0 && columns > memory.last_columns) {
        warp.report(operation, FindingKind::tmem_allocation, active,
                    fmt::format("tcgen05.alloc of {} columns after one of {}: the number must not grow from one "
                                "allocation of a CTA to the next; allocate the largest first",
                                columns, memory.last_columns));
    }
}

void report_full(Warp& warp, const Operation& operation, LaneMask active, unsigned columns)
{
    warp.report(operation, FindingKind::tmem_allocation, active,
                fmt::format("tcgen05.alloc of {} columns blocks: this CTA itself holds {} of the 512, {}; allocate "
                            "once and split the columns, or free the others first",
                            columns, warp.cta.tensor_memory->allocated_columns(),
                            warp.cta.tensor_memory->describe_allocations()));
}

TensorMemory::Allocation make_allocation(const Warp& warp, const Operation& operation, unsigned column,
                                         unsigned columns)
{
    return {.column = column,
            .columns = columns,
            .cta_group = operation.as<Management>().cta_group,
            .warp = warp.index,
            .operation = &operation};
}

Step allocate_alone(Warp& warp, const Operation& operation, LaneMask active, unsigned columns)
{
    TensorMemory& memory = *warp.cta.tensor_memory;
    const auto waiting = memory.requests.find(warp.index);
    const bool first_try = waiting == memory.requests.end();
    if (first_try) {
        check_rules(warp, operation, active, columns);
    }
    const auto column = memory.find_free(columns);
    if (!column) {
        if (first_try) {
            report_full(warp, operation, active, columns);
            memory.requests[warp.index] = {.kind = Request::Kind::allocate, .warp = warp.index, .columns = columns};
        }
        return wait_here(warp, columns);
    }
    memory.requests.erase(warp.index);
    memory.allocate(make_allocation(warp, operation, *column, columns));
    write_result(warp, operation, result_address(warp, operation, active), *column, active);
    return Step::next;
}

/// The open request of this kind of the other CTA of the pair; null if there is none.
Request* open_request(Cta& peer, Request::Kind kind)
{
    for (auto& [warp, request] : peer.tensor_memory->requests) {
        if (request.kind == kind && !request.done) {
            return &request;
        }
    }
    return nullptr;
}

/// Makes this warp's request, if not made yet.
Request& own_request(Warp& warp, const Operation& operation, Request wanted)
{
    auto& requests = warp.cta.tensor_memory->requests;
    const auto [place, is_new] = requests.try_emplace(warp.index, std::move(wanted));
    if (is_new) {
        place->second.warp = warp.index;
        place->second.operation = &operation;
        if (warp.cluster.options().check) {
            warp.cluster.clocks.release(warp.agent, place->second.arriving);
        }
        warp.cluster.notify();
    }
    return place->second;
}

/// Both warps have arrived: each learns what the other knew. The other's request is complete.
void meet(Warp& warp, Request& own, Request& other)
{
    if (warp.cluster.options().check) {
        warp.cluster.clocks.acquire(warp.agent, other.arriving);
        other.arriving = own.arriving;
    }
    other.done = true;
    warp.cluster.notify();
}

void finish_request(Warp& warp, const Request& own)
{
    if (warp.cluster.options().check) {
        warp.cluster.clocks.acquire(warp.agent, own.arriving);
    }
    warp.cta.tensor_memory->requests.erase(warp.index);
}

Step allocate_pair(Warp& warp, const Operation& operation, LaneMask active, unsigned columns)
{
    TensorMemory& memory = *warp.cta.tensor_memory;
    const bool first_try = !memory.requests.contains(warp.index);
    if (first_try) {
        check_rules(warp, operation, active, columns);
        static_cast<void>(require_peer(warp, operation, active));
    }
    Cta& peer = *peer_of(warp.cta);
    Request& own = own_request(warp, operation,
                               {.kind = Request::Kind::allocate,
                                .columns = columns,
                                .result_address = result_address(warp, operation, active)});
    if (own.done) {
        write_result(warp, operation, own.result_address, own.column, active);
        finish_request(warp, own);
        return Step::next;
    }
    Request* const other = open_request(peer, Request::Kind::allocate);
    if (other == nullptr) {
        return wait_here(warp, columns);
    }
    if (other->columns != columns && first_try) {
        warp.report(operation, FindingKind::tmem_allocation, active,
                    fmt::format("tcgen05.alloc with cta_group::2 of {} columns here and of {} in CTA {}: both CTAs of "
                                "a pair must allocate the same number",
                                columns, other->columns, peer.rank));
    }
    if (other->result_address % (1u << shared_rank_shift) != own.result_address % (1u << shared_rank_shift) &&
        first_try) {
        warp.report(operation, FindingKind::tmem_allocation, active,
                    fmt::format("tcgen05.alloc with cta_group::2 writes its result to {:#x} here and to {:#x} in CTA "
                                "{}: use the same place in both CTAs of a pair",
                                own.result_address, other->result_address, peer.rank));
    }
    const auto column = memory.find_free(std::max(columns, other->columns), *peer.tensor_memory);
    if (!column) {
        if (first_try) {
            report_full(warp, operation, active, columns);
        }
        return wait_here(warp, columns);
    }
    memory.allocate(make_allocation(warp, operation, *column, columns));
    TensorMemory::Allocation theirs = make_allocation(warp, operation, *column, other->columns);
    theirs.warp = other->warp;
    theirs.operation = other->operation;
    peer.tensor_memory->allocate(theirs);
    other->column = *column;
    write_result(warp, operation, own.result_address, *column, active);
    meet(warp, own, *other);
    memory.requests.erase(warp.index);
    return Step::next;
}

Step execute_alloc(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.gather_aligned(operation)) {
        return Step::wait;
    }
    const auto& payload = operation.as<Management>();
    const std::uint32_t columns = uniform(warp, operation, payload.columns, active, "tcgen05.alloc");
    check_size(warp, operation, active, columns);
    note_cta_group(warp, operation, active, payload.cta_group);
    return payload.cta_group == 1 ? allocate_alone(warp, operation, active, columns)
                                  : allocate_pair(warp, operation, active, columns);
}

/// Checks freeing `columns` at `address`. Returns true if there is something to free.
bool check_release(Warp& warp, const Operation& operation, LaneMask active, TensorAddress address, unsigned columns)
{
    TensorMemory& memory = *warp.cta.tensor_memory;
    const auto* allocation = memory.allocation_at(address.column);
    if (allocation == nullptr || address.lane != 0) {
        warp.report(operation, FindingKind::tmem_allocation, active,
                    fmt::format("tcgen05.dealloc of tensor memory {:#x}, where no allocation starts (freed twice, or "
                                "not the address that tcgen05.alloc returned); allocated: {}",
                                address.bits(), memory.describe_allocations()));
        return allocation != nullptr;
    }
    if (allocation->columns != columns) {
        warp.report(operation, FindingKind::tmem_allocation, active,
                    fmt::format("tcgen05.dealloc of {} columns at column {}, but {} were allocated there: free exactly "
                                "what was allocated",
                                columns, address.column, allocation->columns));
    }
    if (allocation->cta_group != operation.as<Management>().cta_group) {
        warp.report(operation, FindingKind::cta_group, active,
                    fmt::format("tcgen05.dealloc with cta_group::{} of columns that were allocated with cta_group::{}",
                                operation.as<Management>().cta_group, allocation->cta_group));
    }
    if (!warp.cluster.options().check) {
        return true;
    }
    const TensorRegion region{TensorLanes::range(0, tensor_lanes), allocation->column, allocation->columns};
    if (const TensorWork* work = memory.pending_on(region, true)) {
        warp.report(
            operation, FindingKind::accumulator_before_commit, active,
            fmt::format(
                "tcgen05.dealloc of columns that the {} (PTX line {}) still uses: wait for a tcgen05.commit after it",
                work->describe(), line_of(work->operation)));
        return true;
    }
    report(warp, operation, active, memory.check_outstanding(region, true, "tcgen05.dealloc"));
    const TensorAccess access{.kind = TensorAccess::Kind::load,
                              .agent = warp.agent,
                              .issue = {},
                              .what = "tcgen05.dealloc",
                              .line = line_of(operation)};
    report(warp, operation, active, memory.write(region, access));
    return true;
}

Step execute_dealloc(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.gather_aligned(operation)) {
        return Step::wait;
    }
    const auto& payload = operation.as<Management>();
    TensorMemory& memory = *warp.cta.tensor_memory;
    const TensorAddress address(uniform(warp, operation, payload.address, active, "tcgen05.dealloc"));
    const std::uint32_t columns = uniform(warp, operation, payload.columns, active, "tcgen05.dealloc");
    if (payload.cta_group == 1) {
        check_size(warp, operation, active, columns);
        note_cta_group(warp, operation, active, 1);
        if (check_release(warp, operation, active, address, columns)) {
            memory.release(address.column);
        }
        warp.cluster.notify();
        return Step::next;
    }
    if (!memory.requests.contains(warp.index)) {
        check_size(warp, operation, active, columns);
        note_cta_group(warp, operation, active, 2);
        const Cta& peer = require_peer(warp, operation, active);
        if (check_release(warp, operation, active, address, columns) &&
            peer.tensor_memory->allocation_at(address.column) == nullptr) {
            warp.report(operation, FindingKind::tmem_allocation, active,
                        fmt::format("tcgen05.dealloc with cta_group::2 at column {}, but the other CTA of the pair "
                                    "(rank {}) has no allocation there: it has not allocated yet, or has already freed",
                                    address.column, peer.rank));
        }
    }
    Cta& peer = *peer_of(warp.cta);
    Request& own =
        own_request(warp, operation, {.kind = Request::Kind::release, .columns = columns, .column = address.column});
    if (own.done) {
        finish_request(warp, own);
        return Step::next;
    }
    Request* const other = open_request(peer, Request::Kind::release);
    if (other == nullptr && !peer.exited() && !warp.cluster.idle()) {
        return wait_here(warp, columns);
    }
    memory.release(address.column);
    if (other == nullptr) {
        // Hardware may or may not block here. Continue, so that later faults are found, too.
        warp.report(operation, FindingKind::tmem_allocation, active,
                    fmt::format("tcgen05.dealloc with cta_group::2, but the other CTA of the pair (rank {}) {}: both "
                                "must execute it, and hardware may block until they do",
                                peer.rank,
                                peer.exited() ? "has exited without its own"
                                              : "waits for something else and does not reach its own"));
    } else {
        peer.tensor_memory->release(other->column);
        meet(warp, own, *other);
    }
    memory.requests.erase(warp.index);
    warp.cluster.notify();
    return Step::next;
}

Step execute_relinquish(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.gather_aligned(operation)) {
        return Step::wait;
    }
    const auto& payload = operation.as<Management>();
    note_cta_group(warp, operation, active, payload.cta_group);
    TensorMemory& memory = *warp.cta.tensor_memory;
    if (payload.cta_group == 2) {
        const Cta& peer = require_peer(warp, operation, active);
        for (const auto& [index, request] : peer.tensor_memory->requests) {
            if (request.kind == Request::Kind::allocate && !request.done) {
                warp.report(operation, FindingKind::tmem_allocation, active,
                            fmt::format("tcgen05.relinquish_alloc_permit with cta_group::2 while warp {} of CTA {} "
                                        "waits in tcgen05.alloc for this CTA",
                                        index, peer.rank));
            }
        }
    }
    for (const auto& [index, request] : memory.requests) {
        if (request.kind == Request::Kind::allocate && !request.done) {
            warp.report(
                operation, FindingKind::tmem_allocation, active,
                fmt::format("tcgen05.relinquish_alloc_permit while warp {} of this CTA still waits in tcgen05.alloc",
                            index));
        }
    }
    memory.relinquished = true;
    return Step::next;
}

/// Immediate columns are checked when the program is loaded, as ptxas does.
Ref read_columns(Decoder& decoder, std::size_t index)
{
    if (const auto columns = decoder.constant(index); columns && !valid_size(static_cast<std::uint32_t>(*columns))) {
        decoder.fail(fmt::format("{} columns: the number must be a power of two from 32 to 512", *columns));
    }
    return decoder.read(index, ptx::Type::b32);
}

}  // namespace

void decode_alloc(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<Management>();
    decoder.take("alloc");
    payload.cta_group = take_cta_group(decoder);
    take_sync_aligned(decoder);
    decoder.take("shared::cta");
    if (!decoder.take("b32") || decoder.operands() != 2) {
        decoder.fail(
            "tcgen05.alloc has the form tcgen05.alloc.cta_group::N.sync.aligned{.shared::cta}.b32 [address], columns");
    }
    payload.result = decoder.address(std::size_t{0});
    payload.columns = read_columns(decoder, 1);
    operation.execute = execute_alloc;
    decoder.effects().access({.space = Space::shared, .direction = Direction::write, .bytes = 4});
    decoder.effects().sync = {.object = SyncObject::tensor_memory, .waits = true, .manages = true};
}

void decode_dealloc(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<Management>();
    decoder.take("dealloc");
    payload.cta_group = take_cta_group(decoder);
    take_sync_aligned(decoder);
    if (!decoder.take("b32") || decoder.operands() != 2) {
        decoder.fail("tcgen05.dealloc has the form tcgen05.dealloc.cta_group::N.sync.aligned.b32 address, columns");
    }
    payload.address = decoder.read(0, ptx::Type::b32);
    payload.columns = read_columns(decoder, 1);
    operation.execute = execute_dealloc;
    decoder.effects().sync = {.object = SyncObject::tensor_memory, .arrives = true, .waits = true, .manages = true};
}

void decode_relinquish(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<Management>();
    decoder.take("relinquish_alloc_permit");
    payload.cta_group = take_cta_group(decoder);
    take_sync_aligned(decoder);
    if (decoder.operands() != 0) {
        decoder.fail("tcgen05.relinquish_alloc_permit has no operands");
    }
    operation.execute = execute_relinquish;
    decoder.effects().sync = {.object = SyncObject::tensor_memory, .arrives = true, .manages = true};
}

}  // namespace tessera::emulator::tcgen05
