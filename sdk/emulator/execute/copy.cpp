// The table of asynchronous copies: distinguishes the forms of cp, and executes prefetches, which are only hints.

#include "execute/copy_families.hpp"

#include <fmt/format.h>

#include <array>

#include "base/device_model.hpp"

namespace tessera::emulator {

namespace {

void decode_cp(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::copy;
    const bool reduces = decoder.take("reduce");
    // Several clusters may add: keep the order independent of timing.
    decoder.effects().depends_on_clusters = reduces;
    if (!decoder.take("async")) {
        decoder.fail("the forms are cp.async and cp.reduce.async");
    }
    if (!decoder.take("bulk")) {
        expect_capability(decoder, 80, "this copy");
        if (reduces) {
            decoder.fail("reductions are .bulk");
        }
        decode_async_copy(decoder, operation);
        return;
    }
    expect_capability(decoder, 90, "this copy");
    const bool prefetches = decoder.take("prefetch");
    const bool is_tensor = decoder.take("tensor");
    if (prefetches && is_tensor) {
        decode_tensor_prefetch(decoder, operation);
    } else if (prefetches) {
        if (!decoder.take("L2") || !decoder.take("global")) {
            decoder.fail("the form is cp.async.bulk.prefetch.L2.global");
        }
        const bool policy = decoder.take("L2::cache_hint");
        if (decoder.operands() != (policy ? 3U : 2U)) {
            decoder.fail("the operands are [address], size, and with .L2::cache_hint a policy");
        }
        if (policy) {
            decoder.read(2, ptx::Type::b64);
        }
        decoder.address(0);
        decoder.read(1, ptx::Type::u32);
        operation.execute = execute_nothing;
    } else if (is_tensor) {
        reduces ? decode_tensor_reduce(decoder, operation) : decode_tensor_copy(decoder, operation);
    } else {
        reduces ? decode_bulk_reduce(decoder, operation) : decode_bulk_copy(decoder, operation);
    }
}

void note_bulk_copy_access(Decoder& decoder, Space space, Direction direction)
{
    decoder.effects().access({.space = space, .direction = direction, .proxy = Proxy::async, .later = true});
}

}  // namespace

void note_bulk_copy(Decoder& decoder, Space from, Space to, bool reduces, bool by_barrier)
{
    decoder.effects().unit = AsyncUnit::tma;
    note_bulk_copy_access(decoder, from, Direction::read);
    note_bulk_copy_access(decoder, to, reduces ? Direction::read_write : Direction::write);
    if (by_barrier) {
        decoder.effects().sync = {.object = SyncObject::mbarrier,
                                  .arrives = true,
                                  .later = true,
                                  .order = {Semantics::release, Scope::cluster}};
    }
}

Step execute_nothing(Warp&, const Operation&, LaneMask) { return Step::next; }

std::span<const InstructionEntry> copy_instructions()
{
    static constexpr std::array entries{
        InstructionEntry{"cp", decode_cp},
        InstructionEntry{"tensormap", decode_tensormap},
    };
    return entries;
}

}  // namespace tessera::emulator
