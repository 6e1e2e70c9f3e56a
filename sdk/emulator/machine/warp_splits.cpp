// Which lanes of a warp run together: how they separate at branches and calls, and where they join again.

#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/cluster.hpp"
#include "machine/warp.hpp"
#include "program/call.hpp"

namespace tessera::emulator {

namespace {

/// Lanes that wait at a join for running lanes continue alone after this many operations of the warp: the others may be
/// spinning until these have done something (independent thread scheduling). This only chooses a schedule. No finding
/// depends on it: before an .aligned instruction the lanes meet again, see gather_aligned().
constexpr std::uint64_t starvation_bound = 20'000;

}  // namespace

// ---- splits ----

void Warp::select(Split& split) noexcept
{
    current_ = &split;
    bases_[0] = split.frame->registers;
}

Split& Warp::new_split(const Split& like, LaneMask mask, std::uint32_t pc)
{
    auto split = std::make_unique<Split>();
    split->mask = mask;
    split->pc = pc;
    split->frame = like.frame;
    split->joins = like.joins;
    ++split->frame->references;
    splits_.push_back(std::move(split));
    return *splits_.back();
}

void Warp::remove(Split& split)
{
    if (split.parked) {
        --parked_;
    }
    release(split.frame);
    const auto found = std::ranges::find_if(splits_, [&](const auto& owned) { return owned.get() == &split; });
    const std::vector<std::uint32_t> joins = std::move(split.joins);
    if (current_ == &split) {
        current_ = nullptr;
    }
    *found = std::move(splits_.back());
    splits_.pop_back();
    for (const std::uint32_t join : joins) {
        free_unused_join(join);
    }
}

std::uint32_t Warp::add_join(std::uint32_t pc, Frame* frame, LaneMask mask)
{
    auto place = std::ranges::find_if(joins_, [](const Join& join) { return !join.in_use; });
    if (place == joins_.end()) {
        joins_.emplace_back();
        place = joins_.end() - 1;
    }
    *place = {pc, frame, mask, true, 0};
    return static_cast<std::uint32_t>(place - joins_.begin());
}

void Warp::free_unused_join(std::uint32_t join)
{
    for (const auto& split : splits_) {
        if (std::ranges::find(split->joins, join) != split->joins.end()) {
            return;
        }
    }
    joins_[join].in_use = false;
}

void Warp::absorb(Split& into, Split& from)
{
    // Joins that the two do not share no longer wait for the lanes of either.
    std::size_t common = 0;
    while (common < into.joins.size() && common < from.joins.size() && into.joins[common] == from.joins[common]) {
        ++common;
    }
    leave_joins(into, common);
    leave_joins(from, common);
    Frame* to = into.frame;
    for (Frame* frame = from.frame; frame != to; frame = frame->caller, to = to->caller) {
        move_lanes(*to, *frame, from.mask);
    }
    into.mask |= from.mask;
    from.mask = 0;
    remove(from);
}

void Warp::move_lanes(Frame& to, Frame& from, LaneMask moved)
{
    for (const RegisterRow& row : to.function->rows) {
        std::byte* const into = to.registers + row.offset;
        const std::byte* const values = from.registers + row.offset;
        if (row.bytes == 0) {
            LaneMask a = 0, b = 0;
            std::memcpy(&a, into, sizeof a);
            std::memcpy(&b, values, sizeof b);
            a = (a & ~moved) | (b & moved);
            std::memcpy(into, &a, sizeof a);
        } else {
            for_each_lane(moved, [&](unsigned lane) {
                std::memcpy(into + lane * row.bytes, values + lane * row.bytes, row.bytes);
            });
        }
    }
    const std::size_t parameter_bytes = to.function->parameter_bytes;
    for_each_lane(moved, [&](unsigned lane) {
        std::copy_n(from.parameters.data() + lane * parameter_bytes, parameter_bytes,
                    to.parameters.data() + lane * parameter_bytes);
    });
    undefined_.move(&from, &to, moved);
}

void Warp::leave_joins(Split& split, std::size_t keep)
{
    while (split.joins.size() > keep) {
        const std::uint32_t join = split.joins.back();
        joins_[join].mask &= ~split.mask;
        split.joins.pop_back();
        free_unused_join(join);
    }
}

bool Warp::arrive_at_join(Split& split)
{
    while (!split.joins.empty()) {
        const std::uint32_t number = split.joins.back();
        Join& join = joins_[number];
        if (join.pc != split.pc || join.frame != split.frame) {
            break;
        }
        LaneMask here = split.mask;
        for (const auto& other : splits_) {
            if (other.get() != &split && other->parked && other->joins.back() == number) {
                here |= other->mask;
            }
        }
        if ((join.mask & live() & ~here) != 0) {
            if (!split.parked) {
                split.parked = true;
                ++parked_;
                if (here == split.mask) {
                    join.since = executed_;
                }
            }
            return false;
        }
        for (std::size_t i = 0; i < splits_.size();) {
            Split& other = *splits_[i];
            if (&other != &split && other.parked && !other.joins.empty() && other.joins.back() == number) {
                split.mask |= other.mask;
                other.mask = 0;
                remove(other);  // moves the last one to position i
            } else {
                ++i;
            }
        }
        if (split.parked) {
            split.parked = false;
            --parked_;
        }
        split.joins.pop_back();
        free_unused_join(number);
    }
    return true;
}

void Warp::check_joins()
{
    for (bool again = parked_ > 0; again;) {
        again = false;
        for (const auto& split : splits_) {
            if (split->parked && arrive_at_join(*split)) {
                again = true;  // other splits may have been merged: start over
                break;
            }
        }
    }
}

bool Warp::release_parked()
{
    for (const auto& split : splits_) {
        if (split->parked) {
            split->parked = false;
            --parked_;
            leave_joins(*split, split->joins.size() - 1);
            check_joins();
            return true;
        }
    }
    return false;
}

Step Warp::branch(LaneMask taken, std::uint32_t target, std::uint32_t join)
{
    Split& split = *current_;
    if (taken == split.mask) {
        split.pc = target;
        return Step::jump;
    }
    if (join != no_join && (split.joins.empty() || joins_[split.joins.back()].pc != join ||
                            joins_[split.joins.back()].frame != split.frame)) {
        split.joins.push_back(add_join(join, split.frame, split.mask));
    }
    new_split(split, taken, target);
    split.mask &= ~taken;
    ++split.pc;
    return Step::jump;
}

Step Warp::branch_indexed(LaneMask active, const std::uint32_t* targets, std::uint32_t join)
{
    Split& split = *current_;
    const std::uint32_t next = split.pc + 1;
    const auto first = static_cast<unsigned>(std::countr_zero(active));
    LaneMask same = 0;
    for_each_lane(active, [&](unsigned lane) { same |= targets[lane] == targets[first] ? 1u << lane : 0; });
    if (same == split.mask) {
        split.pc = targets[first];
        return Step::jump;
    }
    if (join != no_join && (split.joins.empty() || joins_[split.joins.back()].pc != join ||
                            joins_[split.joins.back()].frame != split.frame)) {
        split.joins.push_back(add_join(join, split.frame, split.mask));
    }
    LaneMask rest = active & ~same;
    while (rest != 0) {
        const auto lane = static_cast<unsigned>(std::countr_zero(rest));
        LaneMask group = 0;
        for_each_lane(rest, [&](unsigned other) { group |= targets[other] == targets[lane] ? 1u << other : 0; });
        new_split(split, group, targets[lane]);
        rest &= ~group;
    }
    if (split.mask != active) {  // lanes whose guard is false continue
        new_split(split, split.mask & ~active, next);
    }
    split.mask = same;
    split.pc = targets[first];
    return Step::jump;
}

Step Warp::call(const Operation& operation, LaneMask active, const FunctionCode& callee, std::uint32_t return_pc,
                LaneMask again)
{
    Split& split = *current_;
    const auto& payload = operation.as<CallPayload>();
    const bool joined = !split.joins.empty() && joins_[split.joins.back()].pc == return_pc &&
                        joins_[split.joins.back()].frame == split.frame;
    if (!joined) {
        split.joins.push_back(add_join(return_pc, split.frame, split.mask));
    }
    const LaneMask others = split.mask & ~active & ~again;
    if (others != 0) {
        new_split(split, others, return_pc);
    }
    if (again != 0) {
        new_split(split, again, split.pc);
    }
    check_stack(operation, active, callee);
    Frame& caller = *split.frame;
    Frame* frame = new_frame(callee, &caller);
    frame->return_pc = return_pc;
    frame->call = &operation;
    local_shadow.forget(active, frame->local_base);
    for_each_lane(active, [&](unsigned lane) {
        for (std::size_t i = 0; i < payload.arguments.size(); ++i) {
            std::memcpy(
                frame->parameters.data() + std::size_t{lane} * callee.parameter_bytes + callee.parameters[i].offset,
                caller.parameters.data() + std::size_t{lane} * caller.function->parameter_bytes +
                    payload.arguments[i].offset,
                std::min(callee.parameters[i].size, payload.arguments[i].size));
        }
    });
    split.mask = active;
    frame->references = 1;
    split.frame = frame;
    release(&caller);  // the new frame holds it now
    split.pc = callee.entry;
    select(split);
    return Step::jump;
}

Step Warp::leave(LaneMask active)
{
    Split* split = current_;
    Frame* frame = split->frame;
    Frame* caller = frame->caller;
    if (caller == nullptr) {
        return exit(active);
    }
    if (active != split->mask) {
        Split& leaving = new_split(*split, active, split->pc);
        split->mask &= ~active;
        ++split->pc;
        split = &leaving;
    }
    const auto& payload = frame->call->as<CallPayload>();
    const FunctionCode& callee = *frame->function;
    for_each_lane(active, [&](unsigned lane) {
        for (std::size_t i = 0; i < payload.results.size(); ++i) {
            std::memcpy(
                caller->parameters.data() + std::size_t{lane} * caller->function->parameter_bytes +
                    payload.results[i].offset,
                frame->parameters.data() + std::size_t{lane} * callee.parameter_bytes + callee.results[i].offset,
                std::min(callee.results[i].size, payload.results[i].size));
        }
    });
    // The lanes no longer take part in joins of the frame that they leave.
    std::size_t keep = split->joins.size();
    while (keep > 0 && joins_[split->joins[keep - 1]].frame == frame) {
        --keep;
    }
    leave_joins(*split, keep);
    split->pc = frame->return_pc;
    ++caller->references;
    split->frame = caller;
    release(frame);
    check_joins();
    if (current_ != nullptr) {
        select(*current_);
    }
    return Step::jump;
}

Step Warp::exit(LaneMask active)
{
    Split& split = *current_;
    exited |= active;
    cta.exited_threads += static_cast<std::uint32_t>(std::popcount(active));
    split.mask &= ~active;
    if (split.mask == 0) {
        remove(split);
    } else {
        ++split.pc;
    }
    check_joins();
    if (finished()) {
        --cta.live_warps;
    }
    cluster.notify();
    cluster.progress();
    return Step::ended;
}

// ---- scheduling ----

bool Warp::waits(const Split& split) const
{
    if (split.parked) {
        return true;
    }
    if (split.wait.kind == Wait::Kind::none) {
        return false;
    }
    if (split.wait.kind == Wait::Kind::lanes && !split.granted && split.seen == executed_ + cluster.changes()) {
        return true;
    }
    return split.wait.kind != Wait::Kind::lanes && split.seen == cluster.changes();
}

bool Warp::runnable() const
{
    return std::ranges::any_of(splits_, [&](const auto& split) { return !waits(*split); });
}

Split* Warp::pick()
{
    if (splits_.size() == 1) [[likely]] {
        return waits(*splits_.front()) ? nullptr : splits_.front().get();
    }
    // Splits at the same place continue together.
    for (std::size_t i = 0; i < splits_.size(); ++i) {
        for (std::size_t j = i + 1; j < splits_.size();) {
            Split& a = *splits_[i];
            Split& b = *splits_[j];
            if (a.pc == b.pc && a.frame == b.frame && a.joins == b.joins && a.wait.kind == Wait::Kind::none &&
                b.wait.kind == Wait::Kind::none && !a.parked && !b.parked && !a.granted && !b.granted) {
                absorb(a, b);
            } else {
                ++j;
            }
        }
    }
    Split* best = nullptr;
    unsigned candidates = 0;
    for (const auto& split : splits_) {
        if (waits(*split)) {
            continue;
        }
        ++candidates;
        if (cluster.options().schedule == Schedule::in_order) {
            // The split that has waited longest, so that none starves.
            if (best == nullptr || split->last_run < best->last_run) {
                best = split.get();
            }
        } else if (cluster.choose(Choice::split, candidates) == 0) {
            best = split.get();
        }
    }
    if (parked_ > 0) {
        for (const auto& split : splits_) {
            if (split->parked && executed_ - joins_[split->joins.back()].since > starvation_bound) {
                split->parked = false;
                --parked_;
                leave_joins(*split, split->joins.size() - 1);
                check_joins();
                return pick();
            }
        }
    }
    return best;
}

}  // namespace tessera::emulator
