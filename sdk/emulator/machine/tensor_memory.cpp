#include "machine/tensor_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/options.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

namespace {

/// Contents of columns before the first write: a NaN in f32, and easy to recognize.
constexpr std::uint32_t unwritten = 0xFFFFBAAD;
/// Unused marks are collected at this many.
constexpr std::size_t mark_limit = 8192;

std::uint64_t thread_of(const Warp& warp, unsigned lane, unsigned cta_group) noexcept
{
    return std::uint64_t{warp.cta.rank} << 32 | std::uint64_t{warp.index} << 16 | std::uint64_t{lane} << 8 | cta_group;
}

bool any_overlap(const std::vector<TensorRegion>& a, const std::vector<TensorRegion>& b) noexcept
{
    return std::ranges::any_of(a, [&](const TensorRegion& x) {
        return std::ranges::any_of(b, [&](const TensorRegion& y) { return x.overlaps(y); });
    });
}

std::string columns_text(unsigned column, unsigned columns)
{
    return columns == 1 ? fmt::format("column {}", column)
                        : fmt::format("columns {} to {}", column, column + columns - 1);
}

}  // namespace

bool TensorFootprint::conflicts(const TensorFootprint& later) const noexcept
{
    return any_overlap(writes, later.writes) || any_overlap(writes, later.reads) || any_overlap(reads, later.writes);
}

TensorMemory::TensorMemory(Cta& cta) : cta_(cta), marks_(1), checks_(cta.cluster.options().check) {}

void TensorMemory::prepare()
{
    words_.assign(tensor_lanes * lane_stride, unwritten);
    if (checks_) {
        cells_.resize(tensor_lanes / 16 * std::size_t{tensor_columns});
    }
}

// ---- allocation ----

std::optional<unsigned> TensorMemory::find_free(unsigned columns) const noexcept
{
    for (unsigned first = 0; columns != 0 && first + columns <= tensor_columns; first += columns) {
        if (std::none_of(allocated_.begin() + first, allocated_.begin() + first + columns,
                         [](bool taken) { return taken; })) {
            return first;
        }
    }
    return std::nullopt;
}

std::optional<unsigned> TensorMemory::find_free(unsigned columns, const TensorMemory& peer) const noexcept
{
    for (unsigned first = 0; columns != 0 && first + columns <= tensor_columns; first += columns) {
        bool free = true;
        for (unsigned column = first; column < first + columns; ++column) {
            free = free && !allocated_[column] && !peer.allocated_[column];
        }
        if (free) {
            return first;
        }
    }
    return std::nullopt;
}

void TensorMemory::allocate(const Allocation& allocation)
{
    if (words_.empty()) {
        prepare();
    }
    allocations_.push_back(allocation);
    last_columns = allocation.columns;
    for (unsigned column = allocation.column; column < allocation.column + allocation.columns; ++column) {
        allocated_[column] = was_allocated_[column] = true;
        initialized_[column] = {};
    }
    for (unsigned index = 0; index < tensor_lanes; ++index) {
        std::fill_n(lane(index) + allocation.column, allocation.columns, unwritten);
    }
}

void TensorMemory::release(unsigned column)
{
    const auto found = std::ranges::find(allocations_, column, &Allocation::column);
    if (found == allocations_.end()) {
        return;
    }
    std::fill_n(allocated_.begin() + found->column, found->columns, false);
    early_loads_.clear();
    allocations_.erase(found);
}

const TensorMemory::Allocation* TensorMemory::allocation_at(unsigned column) const noexcept
{
    const auto found = std::ranges::find(allocations_, column, &Allocation::column);
    return found == allocations_.end() ? nullptr : &*found;
}

unsigned TensorMemory::allocated_columns() const noexcept
{
    unsigned columns = 0;
    for (const Allocation& allocation : allocations_) {
        columns += allocation.columns;
    }
    return columns;
}

std::string TensorMemory::describe_allocations() const
{
    std::string text;
    for (const Allocation& a : allocations_) {
        text += fmt::format("{}{} (allocated by warp {}{})", text.empty() ? "" : ", ",
                            columns_text(a.column, a.columns), a.warp,
                            a.operation != nullptr && a.operation->source != nullptr
                                ? fmt::format(" at PTX line {}", a.operation->source->location.line)
                                : std::string{});
    }
    return text.empty() ? "nothing" : text;
}

void TensorMemory::check_leaks()
{
    if (allocations_.empty()) {
        return;
    }
    const Allocation first = allocations_.front();
    const std::string message = fmt::format(
        "the CTA has ended without tcgen05.dealloc of {}: free them, with the same number of columns, on every path "
        "before the kernel ends",
        describe_allocations());
    allocations_.clear();
    cta_.cluster.report_at(first.operation, cta_.rank, first.warp, 0, FindingKind::tmem_leak, message, true);
    throw Fault(error_tensor_memory_leak, message);
}

// ---- checks ----

std::optional<ShadowFinding> TensorMemory::check_allocated(const TensorRegion& region, const char* what) const
{
    if (!checks_) {
        return std::nullopt;
    }
    for (unsigned column = region.column; column < region.column + region.columns; ++column) {
        if (!allocated_[column]) {
            return ShadowFinding{
                FindingKind::tmem_after_release,
                fmt::format("{} uses {} of tensor memory, but column {} {}; allocated now: {}", what,
                            columns_text(region.column, region.columns), column,
                            was_allocated_[column] ? "has been freed" : "was never allocated", describe_allocations())};
        }
    }
    return std::nullopt;
}

bool TensorMemory::all_written(const TensorRegion& region) const noexcept
{
    return std::all_of(initialized_.begin() + region.column, initialized_.begin() + region.column + region.columns,
                       [&](const TensorLanes& written) { return written.contains(region.lanes); });
}

bool TensorMemory::any_written(const TensorRegion& region) const noexcept
{
    return std::any_of(initialized_.begin() + region.column, initialized_.begin() + region.column + region.columns,
                       [&](const TensorLanes& written) { return (written & region.lanes).any(); });
}

void TensorMemory::note_early_load(const TensorRegion& region, std::uint32_t line)
{
    for (unsigned column = region.column; column < region.column + region.columns; ++column) {
        const TensorRegion one{region.lanes, column, 1};
        if (any_written(one)) {
            continue;
        }
        if (!early_loads_.empty() && early_loads_.back().line == line &&
            early_loads_.back().region.column + early_loads_.back().region.columns == column) {
            ++early_loads_.back().region.columns;
        } else {
            early_loads_.push_back({one, line});
        }
    }
}

std::optional<ShadowFinding> TensorMemory::check_initialized(const TensorRegion& region, const char* what) const
{
    if (!checks_) {
        return std::nullopt;
    }
    for (unsigned column = region.column; column < region.column + region.columns; ++column) {
        if (const TensorLanes missing = region.lanes.without(initialized_[column]); missing.any()) {
            const int lane =
                missing.bits[0] != 0 ? std::countr_zero(missing.bits[0]) : 64 + std::countr_zero(missing.bits[1]);
            return ShadowFinding{FindingKind::uninitialized_tmem,
                                 fmt::format("{} reads column {}, lane {} of tensor memory, which was never written "
                                             "since it was allocated (of {})",
                                             what, column, lane, columns_text(region.column, region.columns))};
        }
    }
    return std::nullopt;
}

std::uint32_t TensorMemory::add_mark(const TensorAccess& access, const TensorRegion& region)
{
    if (marks_.size() >= mark_limit) {
        std::vector<Mark> kept(1);
        std::vector<std::uint32_t> place(marks_.size(), 0);
        const auto keep = [&](std::uint32_t& mark) {
            if (mark != 0 && place[mark] == 0) {
                place[mark] = static_cast<std::uint32_t>(kept.size());
                kept.push_back(marks_[mark]);
            }
            mark = place[mark];
        };
        for (Cell& cell : cells_) {
            keep(cell.writer), keep(cell.load), keep(cell.operand);
        }
        marks_ = std::move(kept);
    }
    marks_.push_back({access, cta_.cluster.clocks.now(access.agent), region});
    return static_cast<std::uint32_t>(marks_.size() - 1);
}

std::optional<ShadowFinding> TensorMemory::check_mark(std::uint32_t mark, bool wrote, const TensorAccess& access,
                                                      bool writes, unsigned column) const
{
    const Clocks& clocks = cta_.cluster.clocks;
    const Mark& before = marks_[mark];
    if (clocks.ordered(before.done, access.agent)) {
        return std::nullopt;
    }
    using Kind = TensorAccess::Kind;
    const std::string now =
        fmt::format("{} {} column {} of tensor memory", access.what, writes ? "writes" : "reads", column);
    const std::string then = fmt::format("{} at PTX line {}", before.access.what, before.access.line);
    if (!before.access.pipelined()) {
        // An unordered load and MMA on the same accumulator get the same kind of finding, whichever came first.
        const bool accumulator = before.access.kind == Kind::load && access.kind == Kind::accumulate;
        return ShadowFinding{accumulator ? FindingKind::accumulator_before_commit : FindingKind::async_read_pending,
                             fmt::format("{}, but the {} of another warp that {} it is not known to be complete: after "
                                         "tcgen05.wait::{} that warp must synchronize with this one",
                                         now, then, wrote ? "writes" : "reads", wrote ? "st" : "ld")};
    }
    if (!access.pipelined()) {
        return ShadowFinding{
            FindingKind::accumulator_before_commit,
            fmt::format("{}, but the {} that {} it is not known to be complete: wait for the mbarrier of a "
                        "tcgen05.commit after it",
                        now, then, wrote ? "writes" : "reads")};
    }
    if (!clocks.ordered(before.access.issue, access.agent)) {
        return ShadowFinding{
            FindingKind::accumulator_before_commit,
            fmt::format(
                "{}, but the {} that {} it was issued by another thread, with no synchronization between the two", now,
                then, wrote ? "writes" : "reads")};
    }
    // The tensor core keeps the order of issue here: mma after mma on one accumulator, mma after cp or shift, shift
    // after mma. It also keeps it where work overwrites operands of earlier work, and programs rely on that.
    if (wrote && before.access.kind == Kind::accumulate && access.kind != Kind::shift &&
        !(access.kind == Kind::accumulate && access.accumulator == before.access.accumulator)) {
        return ShadowFinding{
            FindingKind::accumulator_before_commit,
            fmt::format(
                "{}, but the {} that writes it has another accumulator or shape, so the two are not ordered: wait for "
                "a tcgen05.commit in between",
                now, then)};
    }
    return std::nullopt;
}

// An accumulator that is replaced as a whole may be of no use any more: a tile that is skipped, a benchmark. If a part of
// it remains, somebody still wants it.
std::optional<ShadowFinding> TensorMemory::check_lost(const Cell& cell, const TensorRegion& region,
                                                      const TensorAccess& access) const
{
    const Mark& before = marks_[cell.writer];
    if (!access.starts_anew || before.access.kind != TensorAccess::Kind::accumulate || cell.load != 0 ||
        cell.operand != 0 || before.access.accumulator == access.accumulator) {
        return std::nullopt;
    }
    const TensorRegion& old = before.region;
    if (old.column >= region.column && old.column + old.columns <= region.column + region.columns &&
        region.lanes.contains(old.lanes)) {
        return std::nullopt;
    }
    return ShadowFinding{
        FindingKind::stage_overwritten,
        fmt::format("{} starts a new accumulator in {} of tensor memory, over a part of the one that "
                    "the {} at PTX line {} wrote to {} and nothing has read: use other columns, or load "
                    "the old accumulator first",
                    access.what, columns_text(region.column, region.columns), before.access.what, before.access.line,
                    columns_text(old.column, old.columns))};
}

template <bool writes>
std::optional<ShadowFinding> TensorMemory::touch(const TensorRegion& region, const TensorAccess& access, bool check)
{
    if (!checks_) {
        return std::nullopt;
    }
    if (words_.empty()) {
        prepare();
    }
    std::optional<ShadowFinding> found;
    const std::uint32_t own = add_mark(access, region);
    // Neighbouring columns usually have the same history: do not check again what was in order.
    std::uint32_t good_writer = 0, good_load = 0, good_operand = 0;
    bool some_read = false;
    std::optional<ShadowFinding> lost;
    const unsigned groups = region.lanes.groups();
    for (unsigned group = 0; group < tensor_lanes / 16; ++group) {
        if ((groups >> group & 1) == 0) {
            continue;
        }
        Cell* const cells = cells_.data() + group * tensor_columns;
        for (unsigned column = region.column; column < region.column + region.columns; ++column) {
            Cell& cell = cells[column];
            const auto look = [&](std::uint32_t mark, std::uint32_t& good, bool wrote) {
                if (check && mark != 0 && mark != good && !found) {
                    found = check_mark(mark, wrote, access, writes, column);
                    good = mark;
                }
            };
            look(cell.writer, good_writer, true);
            if constexpr (writes) {
                if (check && access.starts_anew && cell.writer != 0) {
                    some_read = some_read || cell.load != 0 || cell.operand != 0;
                    lost = lost ? lost : check_lost(cell, region, access);
                }
                look(cell.load, good_load, false);
                look(cell.operand, good_operand, false);
                cell = {own, 0, 0};
            } else {
                (access.pipelined() ? cell.operand : cell.load) = own;
            }
        }
    }
    if constexpr (writes) {
        for (unsigned column = region.column; column < region.column + region.columns; ++column) {
            initialized_[column] = initialized_[column] | region.lanes;
        }
    }
    return found || some_read ? found : lost;
}

std::optional<ShadowFinding> TensorMemory::read(const TensorRegion& region, const TensorAccess& access)
{
    return touch<false>(region, access, true);
}

std::optional<ShadowFinding> TensorMemory::write(const TensorRegion& region, const TensorAccess& access)
{
    std::optional<ShadowFinding> found = touch<true>(region, access, true);
    if (early_loads_.empty() || access.kind != TensorAccess::Kind::accumulate) {
        return found;
    }
    const auto early =
        std::ranges::find_if(early_loads_, [&](const EarlyLoad& load) { return load.region.overlaps(region); });
    if (early != early_loads_.end() && !found) {
        found =
            ShadowFinding{FindingKind::accumulator_before_commit,
                          fmt::format("{} writes {} of tensor memory, which the tcgen05.ld at PTX line {} has already "
                                      "read: wait for the mbarrier of a tcgen05.commit after the MMA before the load",
                                      access.what, columns_text(region.column, region.columns), early->line)};
    }
    std::erase_if(early_loads_, [&](const EarlyLoad& load) { return load.region.overlaps(region); });
    return found;
}

void TensorMemory::happened(const TensorRegion& region, const TensorAccess& access)
{
    if (access.kind == TensorAccess::Kind::store) {
        touch<true>(region, access, false);
    } else {
        touch<false>(region, access, false);
    }
}

std::optional<ShadowFinding> TensorMemory::check_outstanding(const TensorRegion& region, bool writes,
                                                             const char* what) const
{
    if (!checks_) {
        return std::nullopt;
    }
    for (const OutstandingAccess& access : outstanding) {
        if ((writes || access.is_store) && any_overlap(access.regions, {region})) {
            return ShadowFinding{
                FindingKind::async_read_pending,
                fmt::format("{} {} {} of tensor memory while the tcgen05.{} of warp {} at PTX line {} is in flight "
                            "there: that warp must execute tcgen05.wait::{} first",
                            what, writes ? "writes" : "reads", columns_text(region.column, region.columns),
                            access.is_store ? "st" : "ld", access.warp, access.line, access.is_store ? "st" : "ld")};
        }
    }
    return std::nullopt;
}

const TensorWork* TensorMemory::pending_on(const TensorRegion& region, bool uses) const noexcept
{
    for (const TensorWork* work : pending) {
        for (std::size_t i = 0; i < work->ctas.size(); ++i) {
            if (work->ctas[i] != &cta_) {
                continue;
            }
            const TensorFootprint& print = work->footprint[i];
            if (any_overlap(print.writes, {region}) || (uses && any_overlap(print.reads, {region}))) {
                return work;
            }
        }
    }
    return nullptr;
}

// ---- work of the tensor core ----

void submit(Cluster& cluster, std::unique_ptr<TensorWork> owned, Warp& warp, const Operation& operation, unsigned lane)
{
    TensorWork& work = *owned;
    TensorMemory& home = *warp.cta.tensor_memory;
    work.thread = thread_of(warp, lane, work.cta_group);
    work.issue = cluster.clocks.now(warp.agent);
    const auto follow = [&](TensorWork& earlier) {
        if (std::ranges::find(earlier.followers, &work) == earlier.followers.end()) {
            earlier.followers.push_back(&work);
            ++work.blockers;
        }
    };
    if (work.is_commit) {
        for (TensorWork* earlier : home.pending) {
            if (earlier->thread == work.thread) {
                follow(*earlier);
            }
        }
        if (const auto done = home.completed.find(work.thread); done != home.completed.end()) {
            work.known = done->second;
        }
    } else {
        for (std::size_t i = 0; i < work.ctas.size(); ++i) {
            if (work.ctas[i] == nullptr) {
                continue;
            }
            TensorMemory& memory = *work.ctas[i]->tensor_memory;
            for (TensorWork* earlier : memory.pending) {
                for (std::size_t j = 0; j < earlier->ctas.size(); ++j) {
                    if (earlier->ctas[j] == work.ctas[i] && earlier->footprint[j].conflicts(work.footprint[i])) {
                        follow(*earlier);
                    }
                }
            }
        }
        for (Cta* cta : work.ctas) {
            if (cta != nullptr) {
                cta->tensor_memory->pending.push_back(&work);
            }
        }
    }
    cluster.submit(std::move(owned), warp, operation, LaneMask{1} << lane);
}

void complete(Cluster& cluster, TensorWork& work)
{
    for (Cta* cta : work.ctas) {
        if (cta != nullptr) {
            std::erase(cta->tensor_memory->pending, &work);
        }
    }
    const bool checks = cluster.options().check;
    if (checks) {
        cluster.clocks.complete_async(work.agent, cluster.ctas[work.cta_rank]->tensor_memory->completed[work.thread]);
    }
    for (TensorWork* follower : work.followers) {
        --follower->blockers;
        if (checks && follower->is_commit) {
            cluster.clocks.complete_async(work.agent, follower->known);
        }
    }
}

}  // namespace tessera::emulator
