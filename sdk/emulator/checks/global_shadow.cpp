#include "checks/global_shadow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace tessera::emulator {

namespace {

constexpr unsigned map_bytes = 128;

}  // namespace

GlobalShadow::GlobalShadow(const Clocks& clocks, unsigned warps_per_cta, bool alone)
    : clocks_(clocks), warps_per_cta_(warps_per_cta), alone_(alone)
{}

template <typename Body>
void GlobalShadow::for_each_granule(std::uint64_t address, std::uint64_t size, Body&& body)
{
    const std::uint64_t end = address + size;
    for (std::uint64_t at = address / granule * granule; at < end; at += granule) {
        const unsigned first = at < address ? static_cast<unsigned>(address - at) : 0;
        const unsigned last = static_cast<unsigned>(std::min<std::uint64_t>(end - at, granule));
        if (!body(at, static_cast<std::uint16_t>((0xFFFFU << first) & (0xFFFFU >> (granule - last))))) {
            return;
        }
    }
}

const GlobalShadow::Cell* GlobalShadow::find(std::uint64_t address) const
{
    const std::uint64_t number = address / page_bytes;
    if (number != recent_number_) {
        const auto found = pages_.find(number);
        recent_number_ = number;
        recent_ = found == pages_.end() ? nullptr : found->second.get();
    }
    return recent_ == nullptr ? nullptr : &(*recent_)[address % page_bytes / granule];
}

GlobalShadow::Cell& GlobalShadow::cell(std::uint64_t address)
{
    if (find(address) == nullptr) {
        recent_ = pages_.emplace(address / page_bytes, std::make_unique<Page>()).first->second.get();
    }
    return (*recent_)[address % page_bytes / granule];
}

std::uint16_t GlobalShadow::site(const char* what, std::uint32_t line)
{
    const auto is = [&](const Site& site) { return site.line == line && site.what == what; };
    if (recent_site_ < sites_.size() && is(sites_[recent_site_])) {
        return recent_site_;
    }
    const auto found = std::ranges::find_if(sites_, is);
    if (found == sites_.end()) {
        if (sites_.size() > std::numeric_limits<std::uint16_t>::max()) {
            return 0;
        }
        sites_.push_back({what, line});
        return recent_site_ = static_cast<std::uint16_t>(sites_.size() - 1);
    }
    return recent_site_ = static_cast<std::uint16_t>(found - sites_.begin());
}

std::string GlobalShadow::name(const Cell& cell) const
{
    const Site& site = sites_[cell.site];
    return cell.bulk ? fmt::format("{} (PTX line {})", site.what, site.line)
                     : fmt::format("{} (warp {} of the cluster, PTX line {})", site.what, cell.agent, site.line);
}

bool GlobalShadow::in_flight(const Cell& cell, Agent warp) const
{
    return cell.bulk && (alone_ || cell.rank == warp / warps_per_cta_) &&
           !clocks_.ordered({cell.agent, cell.time}, warp);
}

std::optional<ShadowFinding> GlobalShadow::read(Agent warp, std::uint64_t address, std::uint32_t size, bool strong,
                                                const char* what, const KnownFindings* known) const
{
    if (strong || address >= high_ || address + size <= low_) {
        return std::nullopt;
    }
    std::optional<ShadowFinding> found;
    for_each_granule(address, size, [&](std::uint64_t at, std::uint16_t bytes) {
        const Cell* const cell = find(at);
        if (cell != nullptr && (cell->bytes & bytes) != 0 && in_flight(*cell, warp)) {
            found = conflict(FindingKind::async_read_pending, *cell, known, [&] {
                return fmt::format(
                    "{} reads global 0x{:x}, which {} writes and is not known to have written: execute "
                    "cp.async.bulk.wait_group (without .read) in the thread that issued it first",
                    what, std::max(address, at), name(*cell));
            });
        }
        return !found;
    });
    return found;
}

std::optional<ShadowFinding> GlobalShadow::write(Agent warp, unsigned lane, std::uint64_t address, std::uint32_t size,
                                                 bool strong, const char* what, std::uint32_t ptx_line,
                                                 const KnownFindings* known)
{
    std::optional<ShadowFinding> found;
    const std::uint32_t time = clocks_.now(warp).time;
    const std::uint16_t here = site(what, ptx_line);
    written_low_ = std::min(written_low_, address);
    written_high_ = std::max(written_high_, address + size);
    for_each_granule(address, size, [&](std::uint64_t at, std::uint16_t bytes) {
        Cell& cell = this->cell(at);
        if (cell.time == time && cell.agent == warp && !cell.bulk) {
            cell.bytes |= bytes;
            cell.lane = cell.lane == lane ? cell.lane : static_cast<std::uint8_t>(Clocks::any_lane);
            cell.site = here;
            return true;
        }
        if (!strong && !found && (cell.bytes & bytes) != 0 && in_flight(cell, warp)) {
            found = conflict(FindingKind::stage_overwritten, cell, known, [&] {
                return fmt::format(
                    "{} writes global 0x{:x}, which {} writes, too, and is not known to have written: execute "
                    "cp.async.bulk.wait_group (without .read) in the thread that issued it first",
                    what, std::max(address, at), name(cell));
            });
        }
        cell = {time, warp, bytes, here, static_cast<std::uint8_t>(lane), 0, false};
        return true;
    });
    return found;
}

std::optional<ShadowFinding> GlobalShadow::bulk_load(Agent issuer, std::uint64_t address, std::uint64_t size,
                                                     const char* what, const KnownFindings* known) const
{
    const bool elsewhere =
        (address >= high_ || address + size <= low_) && (address >= written_high_ || address + size <= written_low_);
    if (elsewhere) {
        return std::nullopt;
    }
    std::optional<ShadowFinding> found;
    for_each_granule(address, size, [&](std::uint64_t at, std::uint16_t bytes) {
        const Cell* const cell = find(at);
        if (cell == nullptr || (cell->bytes & bytes) == 0) {
            return true;
        }
        if (in_flight(*cell, issuer)) {
            found = conflict(FindingKind::async_read_pending, *cell, known, [&] {
                return fmt::format(
                    "{} reads global 0x{:x}, which {} writes and is not known to have written: execute "
                    "cp.async.bulk.wait_group (without .read) in the thread that issued it first",
                    what, std::max(address, at), name(*cell));
            });
        }
        const Epoch write{cell->agent, cell->time};
        if (!cell->bulk && clocks_.ordered(write, issuer) && !clocks_.fenced_by_reader(write, issuer, fences_global) &&
            !clocks_.fenced(write, issuer, cell->lane, fences_global)) {
            found = conflict(FindingKind::missing_proxy_fence, *cell, known, [&] {
                return fmt::format(
                    "{} reads global 0x{:x} through the async proxy, but {} wrote it through the generic "
                    "proxy, with no fence.proxy.async in between: execute one after the write",
                    what, std::max(address, at), name(*cell));
            });
        }
        return !found;
    });
    return found;
}

void GlobalShadow::bulk_store(Agent async, std::uint32_t rank, std::uint64_t address, std::uint64_t size,
                              std::uint16_t byte_mask, const char* what, std::uint32_t ptx_line)
{
    // The operation passes its first time on when it has read its source, and the next when it has written.
    const std::uint32_t time = clocks_.now(async).time + 1;
    const std::uint16_t here = site(what, ptx_line);
    for_each_granule(address, size, [&](std::uint64_t at, std::uint16_t bytes) {
        if ((bytes & byte_mask) != 0) {
            cell(at) = {time,
                        async,
                        static_cast<std::uint16_t>(bytes & byte_mask),
                        here,
                        Clocks::any_lane,
                        static_cast<std::uint8_t>(rank),
                        true};
        }
        return true;
    });
    if (size != 0) {
        low_ = std::min(low_, address);
        high_ = std::max(high_, address + size);
    }
}

void GlobalShadow::acquire_map(Agent warp, std::uint64_t address)
{
    Acquired acquired;
    acquired.fence = clocks_.now(warp);
    bool written = false;
    for (std::size_t i = 0; i < acquired.writes.size(); ++i) {
        if (const Cell* const cell = find(address + i * granule); cell != nullptr && !cell->bulk) {
            const Epoch write{cell->agent, cell->time};
            acquired.writes[i] = clocks_.ordered(write, warp) ? write : Epoch{};
            written = written || cell->time != 0;
        }
    }
    if (!written) {
        return;
    }
    std::vector<Acquired>& known = acquired_[address];
    std::erase_if(known, [&](const Acquired& a) { return a.fence.agent == warp; });
    known.push_back(acquired);
}

std::optional<ShadowFinding> GlobalShadow::use_map(Agent warp, std::uint64_t address, const char* what,
                                                   const KnownFindings* known) const
{
    const Cell* unfenced = nullptr;
    const auto acquisitions = acquired_.find(address);
    for (std::size_t i = 0; i < map_bytes / granule; ++i) {
        const Cell* const cell = find(address + i * granule);
        if (cell == nullptr || cell->time == 0 || cell->bulk) {
            continue;
        }
        const Epoch write{cell->agent, cell->time};
        if (!clocks_.ordered(write, warp)) {
            continue;  // perhaps ordered through another cluster
        }
        // The writer's fence, or that of another warp which had seen the write.
        bool released = clocks_.fenced(write, warp, Clocks::any_lane, fences_tensormap);
        for (Agent other = 0; !released && !clocks_.is_async(other); ++other) {
            released = clocks_.fenced_by_reader(write, other, fences_tensormap);
        }
        if (!released) {
            return conflict(FindingKind::missing_proxy_fence, *cell, known, [&] {
                return fmt::format(
                    "{} uses the tensor map at 0x{:x}, which {} wrote through the generic proxy, with no "
                    "fence.proxy.tensormap::generic.release after the write: execute one, or write the map with "
                    "tensormap.cp_fenceproxy",
                    what, address, name(*cell));
            });
        }
        const bool acquired =
            acquisitions != acquired_.end() && std::ranges::any_of(acquisitions->second, [&](const Acquired& a) {
                return a.writes[i].agent == write.agent && a.writes[i].time == write.time &&
                       clocks_.ordered(a.fence, warp);
            });
        unfenced = acquired ? unfenced : cell;
    }
    if (unfenced == nullptr) {
        return std::nullopt;
    }
    return conflict(FindingKind::missing_proxy_fence, *unfenced, known, [&] {
        return fmt::format(
            "{} uses the tensor map at 0x{:x}, which {} wrote in this kernel, with no "
            "fence.proxy.tensormap::generic.acquire of this address since: execute one before "
            "the copy",
            what, address, name(*unfenced));
    });
}

}  // namespace tessera::emulator
