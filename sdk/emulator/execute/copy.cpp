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
    if (reduces) {
        decoder.mark_synchronizes_clusters();  // several clusters may add: keep the order independent of timing
    }
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
        const std::size_t operands = decoder.take("L2::cache_hint") ? 3 : 2;
        if (decoder.operands() != operands) {
            decoder.fail("the operands are [address], size, and with .L2::cache_hint a policy");
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

/// prefetch and prefetchu: hints, even for invalid addresses.
void decode_prefetch(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::copy;
    operation.execute = execute_nothing;
    decoder.take_one_of({"global", "local", "param", "const"});
    if (decoder.take_one_of({"tensormap", "L1", "L2", "L2::evict_last", "L2::evict_normal"}).empty()) {
        decoder.fail("the level is missing: .L1, .L2 or .tensormap");
    }
    if (decoder.operands() != 1) {
        decoder.fail("a prefetch has one operand, the address");
    }
    decoder.address(0);
}

}  // namespace

Step execute_nothing(Warp&, const Operation&, LaneMask) { return Step::next; }

std::span<const InstructionEntry> copy_instructions()
{
    static constexpr std::array entries{
        InstructionEntry{"cp", decode_cp},
        InstructionEntry{"prefetch", decode_prefetch},
        InstructionEntry{"prefetchu", decode_prefetch},
        InstructionEntry{"tensormap", decode_tensormap},
    };
    return entries;
}

}  // namespace tessera::emulator
