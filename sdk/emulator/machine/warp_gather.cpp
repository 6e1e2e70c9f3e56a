// Instructions that lanes of a warp must execute together: which splits belong together, and which can still come.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "machine/cluster.hpp"
#include "machine/grid.hpp"
#include "machine/warp.hpp"
#include "program/builder.hpp"

namespace tessera::emulator {

namespace {

/// The frames of a split, outermost first.
std::vector<Frame*> frames_of(const Split& split)
{
    std::vector<Frame*> frames;
    for (Frame* frame = split.frame; frame != nullptr; frame = frame->caller) {
        frames.push_back(frame);
    }
    std::ranges::reverse(frames);
    return frames;
}

/// Returns true if two frames with the same caller are of the same call, entered by some lanes before the others.
bool same_call(const Frame& a, const Frame& b) { return a.function == b.function && a.call == b.call; }

/// Returns true if the splits are at the same instruction of the same calls.
bool same_place(const Split& a, const Split& b)
{
    if (a.pc != b.pc) {
        return false;
    }
    const Frame* x = a.frame;
    const Frame* y = b.frame;
    while (x != y && x != nullptr && y != nullptr && same_call(*x, *y)) {
        x = x->caller;
        y = y->caller;
    }
    return x == y;
}

}  // namespace

bool Warp::gather(LaneMask members)
{
    Split& split = *current_;
    if (split.granted) {
        split.granted = false;
        return true;
    }
    const LaneMask needed = members & live();
    if ((needed & ~split.mask) == 0) {
        cluster.clocks.meet(agent);
        return true;
    }
    const auto is_warp_barrier = [&](std::uint32_t pc) {
        return cluster.grid.program.effects.of(pc).sync.object == SyncObject::lanes;
    };
    const bool any_place = is_warp_barrier(split.pc);
    const auto waits_here = [&](const Split& other) {
        if (&other == &split || other.wait.kind != Wait::Kind::lanes) {
            return false;
        }
        return same_place(other, split) || (any_place && is_warp_barrier(other.pc));
    };
    LaneMask here = split.mask;
    for (const auto& other : splits_) {
        here |= waits_here(*other) ? other->mask : 0;
    }
    if ((needed & ~here) != 0) {
        split.wait.kind = Wait::Kind::lanes;
        split.wait.lanes = needed & ~here;
        return false;
    }
    for (std::size_t i = 0; i < splits_.size();) {
        Split& other = *splits_[i];
        if (!waits_here(other)) {
            ++i;
        } else if (same_place(other, split)) {
            other.wait = {};
            absorb(split, other);
        } else {
            other.wait = {};
            other.granted = true;
            ++i;
        }
    }
    check_joins();
    if (any_place) {
        return true;  // bar.warp.sync has no lane-wise work
    }
    split.wait = {};  // more lanes than the handler was given: execute again at once
    return false;
}

bool Warp::gather_aligned(const Operation& operation)
{
    Split& split = *current_;
    if (split.mask == live()) {
        cluster.clocks.meet(agent);
        return true;
    }
    // Splits at the same place must join first, whatever divided them.
    for (const auto& other : splits_) {
        if (other.get() != &split && !other->parked && same_place(*other, split)) {
            other->wait = {};
            absorb(split, *other);
            check_joins();
            split.wait = {};
            return false;
        }
    }
    // What the other lanes can still do decides, not how long they take. Lanes that are about to exit are not missing.
    if (lanes_that_may_come(split) != 0 ||
        std::ranges::any_of(splits_, [&](const auto& other) { return exits_next(*other); })) {
        split.wait.kind = Wait::Kind::lanes;
        split.wait.lanes = live() & ~split.mask;
        return false;
    }
    if (cluster.options().check) {
        report(operation, FindingKind::divergent_aligned, split.mask,
               fmt::format("only lanes {:#010x} of the warp's {:#010x} execute this .aligned instruction together: "
                           "move it out of the divergent branch, or bring the lanes together with bar.warp.sync first",
                           split.mask, live()));
    }
    return true;
}

bool Warp::exits_next(const Split& split) const
{
    const Flow next = cluster.grid.program.effects.of(split.pc).control;
    return !split.parked && split.wait.kind == Wait::Kind::none && split.frame->caller == nullptr &&
           operation_at(split.pc).guard == no_row && (next == Flow::leave || next == Flow::end);
}

LaneMask Warp::awaited_lanes(const Split& split) const
{
    if (!split.parked) {
        return split.wait.kind == Wait::Kind::lanes ? split.wait.lanes & live() : 0;
    }
    LaneMask awaited = joins_[split.joins.back()].mask & live() & ~split.mask;
    for (const auto& other : splits_) {
        if (other->parked && other->joins.back() == split.joins.back()) {
            awaited &= ~other->mask;
        }
    }
    return awaited;
}

LaneMask Warp::lanes_that_may_come(const Split& split)
{
    // Splits that wait for this one, directly or through others, cannot come.
    LaneMask held = split.mask;
    for (bool again = true; again;) {
        again = false;
        for (const auto& other : splits_) {
            if ((other->mask & held) == 0 && (awaited_lanes(*other) & held) != 0) {
                held |= other->mask;
                again = true;
            }
        }
    }
    LaneMask coming = 0;
    for (const auto& other : splits_) {
        if ((other->mask & held) == 0 && may_reach(*other, split)) {
            coming |= other->mask;
        }
    }
    return coming;
}

bool Warp::may_reach(const Split& from, const Split& to)
{
    const auto leads = [&](std::uint32_t start, std::uint32_t end, const FunctionCode& function) {
        auto known = ways_to_.find(end);
        if (known == ways_to_.end()) {
            known =
                ways_to_.emplace(end, operations_before(cluster.grid.program, function.entry, function.end, end)).first;
        }
        return start == end || known->second[start - function.entry];
    };
    if (from.frame == to.frame && leads(from.pc, to.pc, *to.frame->function)) {  // the usual case
        return true;
    }
    const std::vector<Frame*> own = frames_of(from), target = frames_of(to);
    for (std::size_t i = 0; i < own.size() && i < target.size(); ++i) {
        if (own[i] != target[i] && !same_call(*own[i], *target[i])) {
            return false;
        }
        // In an outer function: from where the call returns to, to the call that leads to the target.
        const std::uint32_t start = i + 1 < own.size() ? own[i + 1]->return_pc : from.pc;
        const std::uint32_t end = i + 1 < target.size() ? target[i + 1]->return_pc - 1 : to.pc;
        if (leads(start, end, *own[i]->function)) {
            return true;
        }
    }
    return false;
}

}  // namespace tessera::emulator
