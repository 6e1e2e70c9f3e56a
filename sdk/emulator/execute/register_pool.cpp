// setmaxnreg (PTX ISA 9.7.19.5): warps return registers to the CTA's pool, or take registers from it. Register values
// do not change.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "execute/wgmma_state.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {
namespace {

struct RegisterPayload final : Payload {
    bool increase = false;
    std::uint32_t count = 0;  ///< per thread
};

/// Registers per thread at kernel start: from .maxnreg, or the most that its launch bounds allow. 0 if the kernel has
/// neither: ptxas then ignores setmaxnreg.
std::uint32_t registers_at_entry(const Warp& warp)
{
    constexpr std::uint32_t step = 8, largest = 255;
    const ptx::Function& kernel = *warp.cluster.grid.code.source;
    if (kernel.max_registers) {
        return *kernel.max_registers / step * step;
    }
    const auto& bounds = kernel.required_threads ? kernel.required_threads : kernel.max_threads;
    if (!bounds) {
        return 0;
    }
    std::uint32_t threads = 1;
    for (const std::uint32_t extent : *bounds) {
        threads *= std::max(extent, 1U);
    }
    const std::uint32_t whole_warps = (threads + warp_size - 1) / warp_size * warp_size;
    const std::uint32_t share = warp.cluster.grid.device.registers_per_multiprocessor /
                                (whole_warps * std::max(kernel.min_ctas_per_sm.value_or(1), 1U));
    return std::min(share, largest) / step * step;
}

std::uint32_t limit_of(const Warp& warp, std::uint32_t at_entry)
{
    return warp.warpgroup == nullptr || warp.warpgroup->register_limit == 0 ? at_entry : warp.warpgroup->register_limit;
}

/// Free registers of the CTA, counted per thread of a warp. Warps that have exited hold none.
std::int64_t free_registers(const Cta& cta, std::uint32_t at_entry)
{
    std::int64_t free = 0;
    for (const auto& warp : cta.warps) {
        free += std::int64_t{at_entry} - (warp->finished() ? 0 : limit_of(*warp, at_entry));
    }
    return free;
}

Step execute_setmaxnreg(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    const auto& payload = operation.as<RegisterPayload>();
    const std::uint32_t at_entry = registers_at_entry(warp);
    if (at_entry == 0) {
        return Step::next;
    }
    WarpgroupState& state = warpgroup_state(warp);
    const std::uint32_t current = limit_of(warp, at_entry);
    if (payload.increase ? payload.count < current : payload.count > current) {
        warp.report(operation, FindingKind::invalid_operand, active,
                    fmt::format("setmaxnreg.{} to {} registers, but the warp has {}: {} may only {} the number",
                                payload.increase ? "inc" : "dec", payload.count, current,
                                payload.increase ? ".inc" : ".dec", payload.increase ? "raise" : "lower"));
        return Step::next;
    }
    if (payload.increase && std::int64_t{payload.count} - current > free_registers(warp.cta, at_entry)) {
        warp.split().wait = {.kind = Wait::Kind::registers, .object = payload.count};
        return Step::wait;
    }
    state.register_limit = payload.count;
    if (warp.checks()) {
        warp.cta.registers_at_entry = at_entry;
        warp.cta.register_changes.push_back({warp.index, payload.count, payload.increase, &operation, warp.executed()});
    }
    if (!payload.increase) {
        warp.cluster.notify();
    }
    return Step::next;
}

}  // namespace

void decode_setmaxnreg(Decoder& decoder, Operation& operation)
{
    constexpr std::int64_t smallest = 24, largest = 256, step = 8;
    const std::string_view direction = decoder.take_one_of({"inc", "dec"});
    const bool sync = decoder.take("sync");
    if (direction.empty() || !decoder.take("aligned") || !sync || !decoder.take("u32")) {
        decoder.fail("the forms are setmaxnreg.inc.sync.aligned.u32 and setmaxnreg.dec.sync.aligned.u32");
    }
    if (decoder.device().major < 9) {
        decoder.fail("needs a device of compute capability 9.0 or higher");
    }
    const std::optional<std::int64_t> count = decoder.constant(0);
    if (!count || *count < smallest || *count > largest || *count % step != 0) {
        decoder.fail(fmt::format("needs a constant from {} to {} that is a multiple of {}", smallest, largest, step));
    }
    auto& payload = decoder.emplace_payload<RegisterPayload>();
    payload.increase = direction == "inc";
    payload.count = static_cast<std::uint32_t>(*count);
    operation.execute = execute_setmaxnreg;
    decoder.mark_aligned();
    decoder.effects().sync = {
        .object = SyncObject::register_pool, .arrives = !payload.increase, .waits = payload.increase, .manages = true};
    operation.kind = InstructionClass::other;
}

}  // namespace tessera::emulator
