// What SharedShadow compares, and what it says.

#include <fmt/format.h>

#include "base/windows.hpp"
#include "checks/shared_shadow.hpp"

namespace tessera::emulator {

std::uint16_t SharedShadow::site(const char* what, std::uint32_t line)
{
    std::uint16_t& recent = recent_sites_[(line ^ reinterpret_cast<std::uintptr_t>(what) >> 4) % recent_sites_.size()];
    if (sites_[recent].line == line && sites_[recent].what == what) {
        return recent;
    }
    for (std::size_t i = 1; i < sites_.size(); ++i) {
        if (sites_[i].line == line && sites_[i].what == what) {
            return recent = static_cast<std::uint16_t>(i);
        }
    }
    if (sites_.size() >> site_bits != 0) {
        return 0;
    }
    sites_.push_back({what, line});
    return recent = static_cast<std::uint16_t>(sites_.size() - 1);
}

std::string SharedShadow::name(const Access& access, std::uint32_t offset, bool writes) const
{
    const std::string who = clocks_.is_async(access.agent) ? std::string{"asynchronous work"}
                                                           : fmt::format("warp {} of the cluster", access.agent);
    return fmt::format("{} ({}) {} shared 0x{:x}", access.what, who, writes ? "writes" : "reads", shared_base + offset);
}

std::string SharedShadow::name(Mark mark, bool writes) const
{
    const Site& at = sites_[site_of(mark)];
    const Agent agent = epoch_of(mark).agent;
    const std::string who =
        clocks_.is_async(agent) ? std::string{"asynchronous work"} : fmt::format("warp {} of the cluster", agent);
    return fmt::format("{} ({}, PTX line {}) {}", at.what, who, at.line, writes ? "wrote it" : "read it");
}

void SharedShadow::check_writer(Access& access, const State& state, std::uint32_t word, std::uint16_t bytes,
                                bool writes)
{
    const std::uint32_t offset = word * 4;
    const unsigned lane = lanes_[word];
    const Epoch written = epoch_of(state.writer);
    if (!clocks_.ordered(written, access.agent)) {
        if (access.atomic && is_atomic(state.writer)) {
            return;
        }
        if (clocks_.is_async(written.agent)) {
            find(access, writes ? FindingKind::stage_overwritten : FindingKind::async_read_pending, state.writer, [&] {
                return fmt::format("{}, but {} and is not known to be complete: wait for its mbarrier or group first",
                                   name(access, offset, writes), name(state.writer, true));
            });
        } else if (access.stored != nullptr && !access.atomic && !is_atomic(state.writer) &&
                   access.stored->unchanged(offset, static_cast<std::uint8_t>(bytes))) {
            if (same_value_races_) {
                find(access, FindingKind::same_value_race, state.writer, [&] {
                    return fmt::format(
                        "{}, but {} the same value, with no barrier or other synchronization between the two",
                        name(access, offset, writes), name(state.writer, true));
                });
            }
        } else {
            find(access, FindingKind::shared_race, state.writer, [&] {
                return fmt::format("{}, but {}, with no barrier or other synchronization between the two",
                                   name(access, offset, writes), name(state.writer, true));
            });
        }
        return;
    }
    if (!clocks_.released(written, lane, access.agent) && !(access.atomic && is_atomic(state.writer))) {
        const FindingKind kind = !clocks_.is_async(written.agent) ? FindingKind::shared_race
                                 : writes                         ? FindingKind::stage_overwritten
                                                                  : FindingKind::async_read_pending;
        find(access, kind, state.writer, [&] {
            return fmt::format(
                "{}, but {} by lane {}, which has not synchronized since, only other lanes of its warp have: execute "
                "__syncwarp() before one lane arrives, sets a flag or issues work for all",
                name(access, offset, writes), name(state.writer, true), lane);
        });
        return;
    }
    // A completed asynchronous operation needs no fence; nor does a generic write over a generic one. An async write
    // over a generic one only needs order: every pipeline that reuses its stages does this.
    if (!writes && access.proxy == Proxy::async && !is_async_proxy(state.writer) &&
        !clocks_.ordered_for_async(written, access.agent, lane)) {
        find(access, FindingKind::missing_proxy_fence, state.writer, [&] {
            return fmt::format(
                "{} through the async proxy, but {} through the generic proxy and lane {} executed no "
                "fence.proxy.async before the synchronization: each writing thread needs one",
                name(access, offset, writes), name(state.writer, true),
                lane < warp_size ? fmt::format("{}", lane) : std::string{"of the writer"});
        });
        return;
    }
    if (strict_fences_ && writes && access.proxy == Proxy::async && !is_async_proxy(state.writer) &&
        !clocks_.ordered_for_async(written, access.agent, lane)) {
        find(access, FindingKind::strict_proxy_fence, state.writer, [&] {
            return fmt::format(
                "{} through the async proxy, but {} through the generic proxy, with no fence.proxy.async of that "
                "thread in between: by PTX's letter the ordinary write may come last",
                name(access, offset, writes), name(state.writer, true));
        });
        return;
    }
    if (access.good_writer != state.writer) {
        access.good_writer = state.writer;
        access.good_lanes = 0;
    }
    access.good_lanes |= access.proxy == Proxy::async || clocks_.releases_by_lane(written.agent)
                             ? std::uint64_t{1} << lane
                             : ~std::uint64_t{0};
}

void SharedShadow::check_readers(Access& access, const State& state, std::uint32_t offset)
{
    const Mark read = reader_sets_.first_conflict(state.readers, [&](Mark mark) {
        return !(access.atomic && is_atomic(mark)) && !clocks_.ordered(epoch_of(mark), access.agent);
    });
    if (read == 0) {
        access.good_readers = state.readers;
    } else if (clocks_.is_async(epoch_of(read).agent)) {
        find(access, FindingKind::stage_overwritten, read, [&] {
            return fmt::format("{}, but {} and is not known to be complete: wait for its commit or group first",
                               name(access, offset, true), name(read, false));
        });
    } else {
        find(access, FindingKind::shared_race, read, [&] {
            return fmt::format("{}, but {}, with no barrier or other synchronization between the two",
                               name(access, offset, true), name(read, false));
        });
    }
}

void SharedShadow::check_pending(Access& access, std::uint32_t begin, std::uint32_t end, bool writes)
{
    const PendingRanges::Range* const range = pending_.first_conflict(access.agent, begin, end, writes);
    if (range == nullptr) {
        return;
    }
    // A read of data that is still being written. If the read was issued after the write, the read is too early; else
    // the write is.
    const bool too_early = !writes && pending_.began_before(*range, access.agent);
    find_at(access, too_early ? FindingKind::async_read_pending : FindingKind::stage_overwritten, range->line, [&] {
        return fmt::format("{} while {} (PTX line {}) still {} 0x{:x} to 0x{:x}: wait until it is complete",
                           name(access, std::max(begin, range->begin), writes), range->what, range->line,
                           range->writes ? "writes" : "reads", shared_base + range->begin, shared_base + range->end);
    });
}

void SharedShadow::compare(const std::optional<ShadowFinding>& fast, const std::optional<ShadowFinding>& plain)
{
    const auto text = [](const std::optional<ShadowFinding>& found) {
        return found ? fmt::format("{}: {}", name_of(found->kind), found->message) : std::string{"nothing"};
    };
    if (text(fast) != text(plain)) {
        throw PathsDiffer(
            fmt::format("the shadow of shared memory found {}; word by word it found {}", text(fast), text(plain)));
    }
}

}  // namespace tessera::emulator
