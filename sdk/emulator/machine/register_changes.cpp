#include "machine/register_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "machine/cluster.hpp"
#include "machine/cta.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {
namespace {

constexpr std::uint32_t warps_per_group = 4;
/// Instructions of a warp that does nothing more than end, and of one that works.
constexpr std::uint64_t nothing_more = 32, some_work = 512;

using Changes = std::vector<const RegisterChange*>;

Changes changes_of(const Cta& cta, std::uint32_t warp)
{
    Changes changes;
    for (const RegisterChange& change : cta.register_changes) {
        if (change.warp == warp) {
            changes.push_back(&change);
        }
    }
    return changes;
}

std::uint64_t executed_since(const Cta& cta, const RegisterChange& change)
{
    return cta.warps[change.warp]->executed() - change.executed;
}

/// A warp without work gives its registers away and ends, with another number than the warps that work. Public kernels
/// do this (CUTLASS's example 77), and it is of no consequence.
bool gives_away(const Cta& cta, const Changes& changes)
{
    if (changes.size() != 1 || changes[0]->increase || executed_since(cta, *changes[0]) > nothing_more) {
        return false;
    }
    const std::uint32_t group = changes[0]->warp / warps_per_group;
    return std::ranges::any_of(cta.register_changes, [&](const RegisterChange& other) {
        return other.warp / warps_per_group == group && executed_since(cta, other) >= some_work;
    });
}

void report(Cta& cta, const RegisterChange& at, FindingKind kind, std::string text)
{
    cta.cluster.report_at(at.operation, cta.rank, at.warp, all_lanes, kind, std::move(text), false);
}

std::string name_of(const RegisterChange& change)
{
    return fmt::format("setmaxnreg.{} {}", change.increase ? "inc" : "dec", change.count);
}

void check_group(Cta& cta, std::uint32_t first)
{
    const auto end = std::min<std::uint32_t>(first + warps_per_group, static_cast<std::uint32_t>(cta.warps.size()));
    constexpr const char* rule =
        "all four warps of a warpgroup must execute the same setmaxnreg, and synchronize before the next";
    std::uint32_t known = end;
    Changes expected;
    for (std::uint32_t warp = first; warp < end; ++warp) {
        Changes changes = changes_of(cta, warp);
        if (gives_away(cta, changes)) {
            continue;
        }
        if (known == end) {
            known = warp;
            expected = std::move(changes);
            continue;
        }
        const std::size_t both = std::min(expected.size(), changes.size());
        for (std::size_t i = 0; i < both; ++i) {
            if (expected[i]->count != changes[i]->count || expected[i]->increase != changes[i]->increase) {
                report(cta, *changes[i], FindingKind::divergent_aligned,
                       fmt::format("warp {} executes {} where warp {} of its warpgroup executes {} (PTX line {}): {}",
                                   warp, name_of(*changes[i]), known, name_of(*expected[i]),
                                   expected[i]->operation->source->location.line, rule));
                return;
            }
        }
        if (expected.size() != changes.size()) {
            const bool more = changes.size() > both;
            const RegisterChange& extra = more ? *changes[both] : *expected[both];
            report(cta, extra, FindingKind::divergent_aligned,
                   fmt::format("warp {} executes {}, which warp {} of its warpgroup never executes: {}", extra.warp,
                               name_of(extra), more ? known : warp, rule));
            return;
        }
    }
}

void check_sum(Cta& cta)
{
    std::uint64_t held = 0;
    const RegisterChange* last_increase = nullptr;
    for (std::uint32_t warp = 0; warp < cta.warps.size(); ++warp) {
        const Changes changes = changes_of(cta, warp);
        held += changes.empty() ? cta.registers_at_entry : changes.back()->count;
    }
    for (const RegisterChange& change : cta.register_changes) {
        last_increase = change.increase ? &change : last_increase;
    }
    const std::uint64_t available = std::uint64_t{cta.registers_at_entry} * cta.warps.size();
    if (held > available && last_increase != nullptr) {
        report(cta, *last_increase, FindingKind::invalid_operand,
               fmt::format("the warps of the CTA took {} registers per lane together, but it has {} ({} for each of {} "
                           "warps): this {} had to wait until other warps ended, and would wait forever if they did "
                           "not; lower the numbers",
                           held, available, cta.registers_at_entry, cta.warps.size(), name_of(*last_increase)));
    }
}

}  // namespace

void check_register_changes(Cta& cta)
{
    if (cta.register_changes.empty()) {
        return;
    }
    for (std::uint32_t first = 0; first < cta.warps.size(); first += warps_per_group) {
        check_group(cta, first);
    }
    check_sum(cta);
}

}  // namespace tessera::emulator
