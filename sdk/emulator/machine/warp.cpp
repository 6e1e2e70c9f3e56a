#include "machine/warp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "execute/call.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {

namespace {

constexpr std::size_t row_alignment = 64;
/// Lanes that wait at a join for others that keep running go on alone after this many operations of the warp: the
/// others may spin until these have done something (independent thread scheduling).
constexpr std::uint64_t join_patience = 20'000;

[[nodiscard]] std::byte* aligned(std::vector<std::byte>& storage) noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    return storage.data() + ((row_alignment - address % row_alignment) % row_alignment);
}

}  // namespace

Warp::Warp(Cta& cta_, std::uint32_t index_, LaneMask lanes_)
    : cta(cta_),
      cluster(cta_.cluster),
      index(index_),
      agent(static_cast<Agent>(cta_.rank * ((cta_.threads + warp_size - 1) / warp_size) + index_)),
      lanes(lanes_)
{
    const Grid& grid = cluster.grid;
    constants_storage_.resize(grid.program.warp_constant_bytes + row_alignment);
    bases_[1] = const_cast<std::byte*>(grid.program.constants.data());  // rows of constants are only read
    bases_[2] = aligned(constants_storage_);
    initialize_constants();
    local_stride_ = 0;
    auto first = std::make_unique<Split>();
    first->mask = lanes;
    first->pc = grid.code.entry;
    first->frame = new_frame(grid.code, nullptr);
    first->frame->references = 1;
    current_ = first.get();
    splits_.push_back(std::move(first));
    select(*current_);
}

Warp::~Warp() = default;

void Warp::initialize_constants()
{
    const Grid& grid = cluster.grid;
    const LaunchRequest& request = grid.request;
    const Dim3 block = request.block;
    const Dim3 in_cluster = position(cta.rank, request.cluster);
    const std::uint32_t warps = (cta.threads + warp_size - 1) / warp_size;
    const auto own = (static_cast<std::uint32_t>(cta.rank) << shared_rank_shift) + shared_base;
    for (const WarpConstantRow& constant : grid.program.warp_constants) {
        std::byte* out = bases_[2] + (constant.row & 0x3FFFFFFF);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            const Dim3 thread = position(std::uint64_t{index} * warp_size + lane, block);
            const std::uint32_t bit = 1u << lane;
            // Dynamic shared memory follows the static part, at its alignment within the window.
            const std::uint32_t alignment = std::max(constant.offset, 1u);
            const std::uint32_t dynamic = (own + grid.dynamic_offset + alignment - 1) / alignment * alignment;
            std::uint64_t value = 0;
            switch (constant.what) {
                case WarpConstant::tid_x: value = thread.x; break;
                case WarpConstant::tid_y: value = thread.y; break;
                case WarpConstant::tid_z: value = thread.z; break;
                case WarpConstant::ntid_x: value = block.x; break;
                case WarpConstant::ntid_y: value = block.y; break;
                case WarpConstant::ntid_z: value = block.z; break;
                case WarpConstant::ctaid_x: value = cta.id.x; break;
                case WarpConstant::ctaid_y: value = cta.id.y; break;
                case WarpConstant::ctaid_z: value = cta.id.z; break;
                case WarpConstant::nctaid_x: value = request.grid.x; break;
                case WarpConstant::nctaid_y: value = request.grid.y; break;
                case WarpConstant::nctaid_z: value = request.grid.z; break;
                case WarpConstant::laneid: value = lane; break;
                case WarpConstant::warpid: value = index; break;
                case WarpConstant::nwarpid: value = warps; break;
                case WarpConstant::smid: value = cta.multiprocessor(); break;
                case WarpConstant::nsmid: value = grid.device.multiprocessors; break;
                case WarpConstant::gridid: value = grid.launch_id; break;
                case WarpConstant::lanemask_eq: value = bit; break;
                case WarpConstant::lanemask_le: value = bit | (bit - 1); break;
                case WarpConstant::lanemask_lt: value = bit - 1; break;
                case WarpConstant::lanemask_ge: value = ~(bit - 1); break;
                case WarpConstant::lanemask_gt: value = ~(bit | (bit - 1)); break;
                case WarpConstant::clusterid_x: value = cluster.id.x; break;
                case WarpConstant::clusterid_y: value = cluster.id.y; break;
                case WarpConstant::clusterid_z: value = cluster.id.z; break;
                case WarpConstant::nclusterid_x: value = grid.clusters.x; break;
                case WarpConstant::nclusterid_y: value = grid.clusters.y; break;
                case WarpConstant::nclusterid_z: value = grid.clusters.z; break;
                case WarpConstant::cluster_ctaid_x: value = in_cluster.x; break;
                case WarpConstant::cluster_ctaid_y: value = in_cluster.y; break;
                case WarpConstant::cluster_ctaid_z: value = in_cluster.z; break;
                case WarpConstant::cluster_nctaid_x: value = request.cluster.x; break;
                case WarpConstant::cluster_nctaid_y: value = request.cluster.y; break;
                case WarpConstant::cluster_nctaid_z: value = request.cluster.z; break;
                case WarpConstant::cluster_ctarank: value = cta.rank; break;
                case WarpConstant::cluster_nctarank: value = request.cluster.count(); break;
                case WarpConstant::is_explicit_cluster: value = request.explicit_cluster ? 1 : 0; break;
                case WarpConstant::total_smem_size: value = grid.shared_bytes; break;
                case WarpConstant::dynamic_smem_size: value = request.dynamic_shared; break;
                case WarpConstant::aggr_smem_size:
                    value = grid.shared_bytes + grid.device.reserved_shared_per_cta;
                    break;
                case WarpConstant::shared_address: value = own + constant.offset; break;
                case WarpConstant::dynamic_shared_address: value = dynamic; break;
            }
            std::memcpy(out + std::size_t{lane} * constant.bytes, &value, std::min(constant.bytes, 8u));
        }
    }
}

// ---- frames ----

Frame* Warp::new_frame(const FunctionCode& function, Frame* caller)
{
    std::unique_ptr<Frame> frame;
    if (spare_frames_.empty()) {
        frame = std::make_unique<Frame>();
    } else {
        frame = std::move(spare_frames_.back());
        spare_frames_.pop_back();
    }
    frame->function = &function;
    frame->caller = caller;
    frame->call = nullptr;
    frame->references = 0;
    const std::size_t bytes = function.register_bytes + row_alignment;
    if (frame->storage.size() < bytes) {
        frame->storage.resize(bytes);
    }
    frame->registers = aligned(frame->storage);
    frame->parameters.resize(std::size_t{function.parameter_bytes} * warp_size);
    frame->local_base = caller == nullptr ? 0 : caller->local_base + caller->function->local_bytes;
    frame->local_base = (frame->local_base + 15) / 16 * 16;
    const std::uint32_t top = frame->local_base + function.local_bytes;
    if (top > local_stride_) {  // deeper than ever: each lane's local memory grows
        const std::uint32_t stride = std::max(top, 2 * local_stride_);
        std::vector<std::byte> grown(std::size_t{stride} * warp_size);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            std::copy_n(local_.data() + std::size_t{lane} * local_stride_, local_stride_,
                        grown.data() + std::size_t{lane} * stride);
        }
        local_ = std::move(grown);
        local_stride_ = stride;
    }
    if (caller != nullptr) {
        ++caller->references;
    }
    frames_.push_back(std::move(frame));
    return frames_.back().get();
}

void Warp::release(Frame* frame)
{
    while (frame != nullptr && --frame->references == 0) {
        Frame* caller = frame->caller;
        const auto found = std::ranges::find_if(frames_, [&](const auto& owned) { return owned.get() == frame; });
        spare_frames_.push_back(std::move(*found));
        *found = std::move(frames_.back());
        frames_.pop_back();
        frame = caller;
    }
}

std::byte* Warp::local_bytes(unsigned lane, std::uint64_t address, std::uint64_t size)
{
    if (size > local_stride_ || address > local_stride_ - size) {
        return nullptr;
    }
    return local_.data() + std::size_t{lane} * local_stride_ + address;
}

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
    // Joins that they do not share no longer wait for the lanes of either.
    std::size_t common = 0;
    while (common < into.joins.size() && common < from.joins.size() && into.joins[common] == from.joins[common]) {
        ++common;
    }
    leave_joins(into, common);
    leave_joins(from, common);
    into.mask |= from.mask;
    from.mask = 0;
    remove(from);
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
                again = true;  // others may have been merged into it: start over
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
    if (split.mask != active) {  // lanes whose guard is false go on
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
    // Joins of the frame that is left are no longer theirs.
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

// ---- lanes that must come together ----

bool Warp::gather(LaneMask members)
{
    Split& split = *current_;
    if (split.granted) {
        split.granted = false;
        return true;
    }
    const LaneMask needed = members & live();
    if ((needed & ~split.mask) == 0) {
        return true;
    }
    const Operation& operation = operation_at(split.pc);
    const auto is_warp_barrier = [](const Operation& other) {
        return other.source != nullptr && (other.source->opcode == "bar" || other.source->opcode == "barrier") &&
               !other.source->modifiers.empty() && other.source->modifiers.front() == "warp";
    };
    const bool any_place = is_warp_barrier(operation);
    const auto waits_here = [&](const Split& other) {
        if (&other == &split || other.wait.kind != Wait::Kind::lanes) {
            return false;
        }
        return (other.pc == split.pc && other.frame == split.frame) ||
               (any_place && is_warp_barrier(operation_at(other.pc)));
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
        } else if (other.pc == split.pc && other.frame == split.frame) {
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
    split.wait = {};  // with more lanes than the handler was given: executed again at once
    return false;
}

bool Warp::gather_aligned(const Operation& operation)
{
    Split& split = *current_;
    if (split.mask == live()) {
        return true;
    }
    // Others at the same place have to join first, whatever split them.
    for (std::size_t i = 0; i < splits_.size(); ++i) {
        Split& other = *splits_[i];
        if (&other != &split && other.pc == split.pc && other.frame == split.frame && !other.parked) {
            other.wait = {};
            absorb(split, other);
            check_joins();
            split.wait = {};
            return false;
        }
    }
    if (!cluster.options().check) {
        return true;
    }
    LaneMask may_come = 0;
    for (const auto& other : splits_) {
        if (other.get() != &split && !other->parked && !(other->wait.kind != Wait::Kind::none && cluster.idle())) {
            may_come |= other->mask;
        }
    }
    if (may_come != 0 && executed_ - split.last_run < join_patience) {
        split.wait.kind = Wait::Kind::lanes;
        split.wait.lanes = may_come;
        return false;
    }
    report(
        operation, FindingKind::divergent_aligned, split.mask,
        fmt::format(
            "only lanes {:#010x} of the warp's {:#010x} execute this .aligned instruction together: move it out of the "
            "divergent branch, or bring the lanes together with bar.warp.sync first",
            split.mask, live()));
    return true;
}

// ---- reports ----

bool Warp::checks() const noexcept { return cluster.options().check; }

void Warp::report(const Operation& operation, FindingKind kind, LaneMask lanes_, std::string message, bool error)
{
    cluster.report_at(&operation, cta.rank, index, lanes_, kind, std::move(message), error);
}

void Warp::fault(const Operation& operation, FindingKind kind, int code, LaneMask lanes_, std::string message)
{
    report(operation, kind, lanes_, message, true);
    throw Fault(code, message);
}

// ---- execution ----

const Operation& Warp::operation_at(std::uint32_t pc) const noexcept { return cluster.grid.program.operations[pc]; }

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
    // Splits at the same place go on together.
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
            // The one that has waited longest, so that none starves.
            if (best == nullptr || split->last_run < best->last_run) {
                best = split.get();
            }
        } else if (cluster.choose(candidates) == 0) {
            best = split.get();
        }
    }
    if (parked_ > 0) {
        for (const auto& split : splits_) {
            if (split->parked && executed_ - joins_[split->joins.back()].since > join_patience) {
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

unsigned Warp::run(unsigned budget)
{
    const Operation* const operations = cluster.grid.program.operations.data();
    auto& counts = cluster.statistics.warp_instructions;
    unsigned done = 0;
    while (done < budget && !finished()) {
        Split* split = pick();
        if (split == nullptr) {
            break;
        }
        select(*split);
        while (done < budget) {
            const Operation& operation = operations[split->pc];
            if (operation.join && !split->joins.empty() && split->wait.kind == Wait::Kind::none &&
                !arrive_at_join(*split)) {
                break;
            }
            LaneMask active = split->mask;
            if (operation.guard != no_row) {
                const LaneMask guard = predicate(operation.guard);
                active &= operation.guard_negated ? ~guard : guard;
            }
            ++done;
            ++executed_;
            if (active == 0) {
                ++split->pc;
                continue;
            }
            const Step step = operation.execute(*this, operation, active);
            if (step == Step::next) [[likely]] {
                ++counts[static_cast<std::size_t>(operation.kind)];
                split->wait.kind = Wait::Kind::none;
                ++split->pc;
                continue;
            }
            if (step == Step::wait) {
                --done;
                if (split->wait.kind == Wait::Kind::none) {
                    continue;  // lanes have joined: at once again
                }
                --executed_;  // nothing was executed: else two splits that wait for lanes would wake each other for
                              // ever
                split->seen = split->wait.kind == Wait::Kind::lanes ? executed_ + cluster.changes() : cluster.changes();
                break;
            }
            ++counts[static_cast<std::size_t>(operation.kind)];
            if (step == Step::yield) {
                split->wait.kind = Wait::Kind::none;
                ++split->pc;
                split->last_run = executed_;
                return done;
            }
            if (step == Step::ended) {
                if (current_ == nullptr) {  // all its lanes have left
                    split = nullptr;
                    break;
                }
                continue;
            }
            // jump: the split goes on elsewhere, or other lanes have their turn
            split->wait.kind = Wait::Kind::none;
            if (splits_.size() > 1) {
                break;
            }
        }
        if (split != nullptr && split->wait.kind != Wait::Kind::lanes) {
            split->last_run = executed_;  // one that waits for lanes loses patience after a while, see gather_aligned()
        }
    }
    return done;
}

}  // namespace tessera::emulator
