#include "execute/tcgen05.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {
namespace tcgen05 {

namespace {

/// fence::before_thread_sync and fence::after_thread_sync order the issuing thread's operations around a
/// synchronization. Commits, wait::ld, wait::st and the synchronization itself already give all the order that is
/// modelled here, so the fences do nothing.
Step execute_fence(Warp&, const Operation&, LaneMask) { return Step::next; }

void decode(Decoder& decoder, Operation& operation)
{
    if (!decoder.device().tensor_memory) {
        decoder.fail(
            "tcgen05 instructions need tensor memory (compute capability 10.x), which this device does not have");
    }
    operation.kind = InstructionClass::tensor;
    using Entry = std::pair<std::string_view, Decode>;
    static constexpr std::array<Entry, 13> instructions{{{"alloc", decode_alloc},
                                                         {"dealloc", decode_dealloc},
                                                         {"relinquish_alloc_permit", decode_relinquish},
                                                         {"ld", decode_load_store},
                                                         {"st", decode_load_store},
                                                         {"wait::ld", decode_wait},
                                                         {"wait::st", decode_wait},
                                                         {"cp", decode_copy},
                                                         {"shift", decode_shift},
                                                         {"mma", decode_mma},
                                                         {"commit", decode_commit},
                                                         {"fence::before_thread_sync", nullptr},
                                                         {"fence::after_thread_sync", nullptr}}};
    for (const auto& [name, decode_instruction] : instructions) {
        if (decoder.instruction().modifiers.empty() || decoder.instruction().modifiers.front() != name) {
            continue;
        }
        if (decode_instruction == nullptr) {
            decoder.take(name);
            operation.execute = execute_fence;
            decoder.effects().sync = {.object = SyncObject::tensor_memory, .fences = true};
            operation.kind = InstructionClass::barrier;
            return;
        }
        decode_instruction(decoder, operation);
        return;
    }
    decoder.fail(
        "unknown tcgen05 instruction; the known ones are alloc, dealloc, relinquish_alloc_permit, ld, st, wait, cp, "
        "shift, mma, commit, fence");
}

}  // namespace

unsigned take_cta_group(Decoder& decoder)
{
    const auto group = decoder.take_prefixed("cta_group::");
    if (!group) {
        decoder.fail("tcgen05 instructions need .cta_group::1 or .cta_group::2");
    }
    if (*group != "1" && *group != "2") {
        decoder.fail(fmt::format(".cta_group::{} does not exist; it is 1 or 2", *group));
    }
    return *group == "1" ? 1 : 2;
}

void take_sync_aligned(Decoder& decoder)
{
    if (!decoder.take("sync") || !decoder.take("aligned")) {
        decoder.fail("this tcgen05 instruction needs .sync.aligned");
    }
    decoder.mark_aligned();
}

void report(Warp& warp, const Operation& operation, LaneMask lanes, const std::optional<ShadowFinding>& finding)
{
    if (finding) {
        warp.report(operation, finding->kind, lanes, finding->message);
    }
}

void report(Cluster& cluster, const AsyncOperation& work, const std::optional<ShadowFinding>& finding)
{
    if (finding) {
        cluster.report(work, *finding);
    }
}

Cta* peer_of(Cta& cta) noexcept
{
    const std::uint32_t rank = cta.rank ^ 1;
    return rank < cta.cluster.ctas.size() ? cta.cluster.ctas[rank].get() : nullptr;
}

Cta& require_peer(Warp& warp, const Operation& operation, LaneMask lanes)
{
    Cta* const peer = peer_of(warp.cta);
    if (peer == nullptr) {
        warp.fault(operation, FindingKind::cta_group, error_illegal_instruction, lanes,
                   fmt::format("cta_group::2 in CTA {} of a cluster of {}: the pair has no second CTA; launch clusters "
                               "with an even number of CTAs",
                               warp.cta.rank, warp.cluster.ctas.size()));
    }
    if (peer->exited()) {
        warp.report(
            operation, FindingKind::cluster_protocol, lanes,
            fmt::format("cta_group::2 instruction, but the other CTA of the pair (rank {}) has exited: keep it until "
                        "all work of the pair is done, with barrier.cluster for instance",
                        peer->rank));
    } else if (warp.cluster.options().check) {
        bool known = warp.barriers.cluster_has_started;
        for (const auto& other : peer->warps) {
            known = known || warp.cluster.clocks.ordered({other->agent, 1}, warp.agent);
        }
        if (!known) {
            warp.report(
                operation, FindingKind::cluster_protocol, lanes,
                fmt::format(
                    "cta_group::2 instruction before this warp knows that the other CTA of the pair (rank {}) has "
                    "started: synchronize the cluster (barrier.cluster) first",
                    peer->rank));
        }
    }
    return *peer;
}

void note_cta_group(Warp& warp, const Operation& operation, LaneMask lanes, unsigned cta_group)
{
    unsigned& known = warp.cta.tensor_memory->cta_group;
    if (known == 0) {
        known = cta_group;
    } else if (known != cta_group) {
        warp.report(operation, FindingKind::cta_group, lanes,
                    fmt::format("cta_group::{} in a CTA whose earlier tcgen05 instructions have cta_group::{}: use the "
                                "same group in the whole kernel",
                                cta_group, known));
    }
}

void check_single_lane(Warp& warp, const Operation& operation, LaneMask active, const char* what)
{
    if ((active & (active - 1)) != 0 && warp.checks()) {
        warp.report(operation, FindingKind::invalid_operand, active,
                    fmt::format("{} lanes execute {}, and each issues its own: let one elected lane execute it",
                                std::popcount(active), what));
    }
}

void check_region(Warp& warp, const Operation& operation, LaneMask lanes, Cta& cta, const TensorRegion& region,
                  bool writes, const char* what)
{
    if (region.column + region.columns > tensor_columns) {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, lanes,
                   fmt::format("{} uses columns {} to {} of tensor memory, which has {}", what, region.column,
                               region.column + region.columns - 1, tensor_columns));
    }
    TensorMemory& memory = *cta.tensor_memory;
    if (auto finding = memory.check_allocated(region, what)) {
        if (&cta != &warp.cta) {
            finding->message += fmt::format(" (in the other CTA of the pair, rank {})", cta.rank);
        }
        report(warp, operation, lanes, finding);
    }
    report(warp, operation, lanes, memory.check_outstanding(region, writes, what));
}

void check_tile_bounds(Warp& warp, const Operation& operation, LaneMask lanes, const Cta& cta, const OperandTile& tile,
                       const char* what)
{
    for (const OperandTile::Range& range : tile.cover()) {
        if (range.begin < shared_base || range.end > shared_base + cta.shared.size()) {
            warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, lanes,
                       fmt::format("{}: its descriptor (start {:#x}, leading offset {}, stride offset {}) reaches "
                                   "{:#x} to {:#x}, outside of the shared memory of CTA {}, {:#x} to {:#x}",
                                   what, tile.descriptor.start, tile.descriptor.leading, tile.descriptor.stride,
                                   range.begin, range.end, cta.rank, shared_base, shared_base + cta.shared.size()));
        }
    }
}

void begin_reading(TensorWork& work, Cta& cta, const OperandTile& tile, const char* what)
{
    if (cta.shadow == nullptr) {
        return;
    }
    for (const OperandTile::Range& range : tile.cover()) {
        cta.shadow->begin(work.agent, range.begin - shared_base, range.end - range.begin, false, what,
                          line_of(work.operation));
    }
}

void check_reading(Cluster& cluster, TensorWork& work, Cta& cta, const OperandTile& tile, const char* what,
                   unsigned data_bytes)
{
    if (cta.shadow == nullptr) {
        return;
    }
    const std::uint32_t line = line_of(work.operation);
    const KnownOfWork known(cluster, work);
    std::optional<ShadowFinding> found;
    const auto read = [&](std::uint32_t address, std::uint32_t size) {
        auto finding = cta.shadow->read(work.agent, address - shared_base, size, Proxy::async, what, line, false,
                                        nullptr, Clocks::any_lane, &known);
        if (finding && !found) {
            found = std::move(finding);
        }
    };
    tile.for_each_piece([&](std::uint32_t address, std::uint32_t size) {
        if (data_bytes == OperandTile::chunk_bytes) {
            read(address, size);
            return;
        }
        for (std::uint32_t chunk = 0; chunk < size; chunk += OperandTile::chunk_bytes) {
            read(address + chunk, data_bytes);
        }
    });
    report(cluster, work, found);
}

void check_reading(Cluster& cluster, TensorWork& work, Cta& cta, const OperandTile& tile, const TileUse& use,
                   unsigned data_bytes)
{
    check_reading(cluster, work, cta, tile, use.what, data_bytes);
    if (cta.tiles != nullptr) {
        const bool known = cluster.is_known(work, FindingKind::layout_mismatch, 0);
        if (auto problem = cta.tiles->check(tile, use, *cta.shadow, known)) {
            cluster.report(work, ShadowFinding{FindingKind::layout_mismatch, std::move(*problem)});
        }
    }
}

void gather(const Cta& cta, const OperandTile& tile, std::byte* out, std::size_t pitch)
{
    const std::byte* const shared = cta.shared.data();
    const std::uint32_t chunks = tile.chunks_per_line();
    for (std::uint32_t line = 0; line < tile.lines; ++line) {
        std::byte* target = out + line * pitch;
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk, target += OperandTile::chunk_bytes) {
            std::memcpy(target, shared + (tile.chunk_address(line, chunk) - shared_base), OperandTile::chunk_bytes);
        }
    }
}

void unpack_padded(std::byte* data, std::size_t bytes, unsigned bits)
{
    for (std::byte* slot = data; slot < data + bytes; slot += 16) {
        std::array<std::uint8_t, 16> codes{};
        std::array<std::uint8_t, 17> packed{};
        std::memcpy(packed.data(), slot, 16);
        for (unsigned i = 0; i < 16; ++i) {
            const unsigned first = i * bits;
            const unsigned two_bytes = packed[first / 8] | static_cast<unsigned>(packed[first / 8 + 1]) << 8;
            codes[i] = static_cast<std::uint8_t>((two_bytes >> (first % 8)) & ((1u << bits) - 1));
        }
        std::memcpy(slot, codes.data(), 16);
    }
}

}  // namespace tcgen05

std::span<const InstructionEntry> tcgen05_instructions()
{
    static constexpr std::array<InstructionEntry, 1> table{{{"tcgen05", tcgen05::decode}}};
    return table;
}

}  // namespace tessera::emulator
