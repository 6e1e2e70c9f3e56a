// Follows undefined values through a warp's registers, and reports those that are used.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/shuffle.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

namespace {

/// The lanes in which all bits of an operand are equal to `bit`.
LaneMask lanes_of_equal_bits(const Warp& warp, const OperandRole& role, bool bit)
{
    if (role.bytes == 0) {
        return warp.predicate(role.row) ^ (role.negated == bit ? all_lanes : 0);
    }
    const std::size_t bytes = role.bytes;
    const std::byte* const values = warp.row<std::byte>(role.row);
    LaneMask lanes = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        const bool equal = std::all_of(values + lane * bytes, values + (lane + 1) * bytes,
                                       [&](std::byte b) { return b == (bit ? std::byte{0xFF} : std::byte{0}); });
        lanes |= equal ? LaneMask{1} << lane : 0;
    }
    return lanes;
}

}  // namespace

const Operation* Warp::masked_origin(Ref row) const noexcept
{
    const UndefinedValues::Lanes found = undefined_.of(current_->frame, row);
    return found.masked ? undefined_.origin(found.origin).operation : nullptr;
}

void Warp::report_undefined(const Operation& operation, Ref row, LaneMask lanes_)
{
    const UndefinedValues::Lanes found = undefined_.of(current_->frame, row);
    const LaneMask used = found.mask & lanes_;
    if (used == 0) {
        return;
    }
    undefined_.write(current_->frame, row, used, {});  // report it once
    update_follows();
    const UndefinedValues::Origin& origin = undefined_.origin(found.origin);
    const ptx::Instruction& use = *operation.source;
    report(
        *origin.operation, origin.kind, used,
        [&] {
            return FindingText(fmt::format("{}; the value is used by \"{}\" (PTX line {})", origin.text.message,
                                           use.text, use.location.line),
                               origin.text.cause);
        },
        std::hash<std::string>{}(origin.text.cause));
}

void Warp::follow_in_flight(const Operation& wgmma, Ref row, std::uint64_t until)
{
    const UndefinedValues::OriginId origin =
        in_flight_.origin(wgmma, FindingKind::async_read_pending, [] { return FindingText{""}; });
    in_flight_.write(current_->frame, row, all_lanes, {all_lanes, origin, until});
    follows_ = true;
}

void Warp::end_in_flight(std::uint64_t wgmmas)
{
    if (!in_flight_.empty()) {
        in_flight_.waited(wgmmas);
        update_follows();
    }
}

void Warp::report_in_flight(const Operation& operation, Ref row, LaneMask lanes_)
{
    const UndefinedValues::Lanes found = in_flight_.of(current_->frame, row);
    const LaneMask used = found.mask & lanes_;
    if (used == 0) {
        return;
    }
    in_flight_.write(current_->frame, row, used, {});  // report it once
    const UndefinedValues::Origin& origin = in_flight_.origin(found.origin);
    report(operation, origin.kind, used,
           fmt::format("this instruction uses an accumulator of the wgmma at PTX line {}, for which this warp has not "
                       "waited; commit the wgmma (wgmma.commit_group) and wait for its group (wgmma.wait_group) first, "
                       "in each warp of the warpgroup",
                       origin.operation->source->location.line));
}

void Warp::pass_on_in_flight(const Operation& operation, ValueFlow flow, const OperandRoles& roles)
{
    const Frame* const frame = current_->frame;
    const LaneMask guard = operation.guard == no_row ? all_lanes : predicate(operation.guard);
    const LaneMask active = current_->mask & (operation.guard_negated ? ~guard : guard);
    UndefinedValues::Lanes moved;
    std::vector<UndefinedValues::Lanes> in_place;
    for (const OperandRole& role : roles.reads) {
        if (flow == ValueFlow::in_place) {
            in_place.push_back(in_flight_.of(frame, role.row));
            continue;
        }
        if (flow != ValueFlow::moved) {
            report_in_flight(operation, role.row, active);
            continue;
        }
        const UndefinedValues::Lanes lanes_ = in_flight_.of(frame, role.row);
        moved = {moved.mask | lanes_.mask, moved.until < lanes_.until ? lanes_.origin : moved.origin,
                 std::max(moved.until, lanes_.until)};
    }
    for (const OperandRole& role : roles.addresses) {
        report_in_flight(operation, role.row, active);
    }
    for (std::size_t i = 0; i < roles.writes.size(); ++i) {
        in_flight_.write(frame, roles.writes[i].row, active, in_place.empty() ? moved : in_place[i]);
    }
    update_follows();
}

void Warp::pass_on_undefined(const Operation& operation)
{
    if (operation.source == nullptr) {
        return;
    }
    const Program& program = cluster.grid.program;
    const Effects& effects = program.effects.of(current_->pc);
    const OperandRoles roles = program.effects.roles(current_->pc);
    if (!in_flight_.empty()) {
        pass_on_in_flight(operation, effects.flow, roles);
    }
    if (undefined_.empty()) {
        return;
    }
    const Frame* const frame = current_->frame;
    LaneMask active = current_->mask;
    UndefinedValues::Lanes result;
    const auto add = [&](const UndefinedValues::Lanes& lanes_, LaneMask of = all_lanes) {
        if ((lanes_.mask & of) != 0) {
            const bool first = result.mask == 0;
            result = {result.mask | (lanes_.mask & of), first ? lanes_.origin : result.origin, 0,
                      lanes_.masked && (first || result.masked)};
        }
    };
    const bool leaves_registers = effects.flow == ValueFlow::used || effects.flow == ValueFlow::stored;
    if (operation.guard != no_row) {
        UndefinedValues::Lanes guard = undefined_.of(frame, operation.guard);
        guard.mask &= active;
        const LaneMask yes = predicate(operation.guard);
        active &= operation.guard_negated ? ~yes : yes;
        if (leaves_registers) {
            report_undefined(operation, operation.guard, guard.mask);
        } else {
            add(guard);  // it is undefined whether the registers are written
            active |= guard.mask;
        }
    }
    for (const OperandRole& role : roles.addresses) {
        report_undefined(operation, role.row, active);
    }
    const auto read = [&](std::size_t i) { return undefined_.of(frame, roles.reads[i].row); };
    switch (effects.flow) {
        case ValueFlow::used:
            for (const OperandRole& role : roles.reads) {
                report_undefined(operation, role.row, active & role.lanes);
            }
            break;
        case ValueFlow::stored: break;  // see the store's handler
        case ValueFlow::passed_on:
        case ValueFlow::moved:
            for (std::size_t i = 0; i < roles.reads.size(); ++i) {
                add(read(i));
            }
            break;
        case ValueFlow::in_place: {
            std::vector<UndefinedValues::Lanes> sources(roles.reads.size());  // all are read before any is written
            for (std::size_t i = 0; i < sources.size(); ++i) {
                sources[i] = read(i);
                sources[i].origin = sources[i].mask != 0 ? sources[i].origin : result.origin;
                sources[i].masked &= result.mask == 0;
                sources[i].mask |= result.mask;
            }
            for (std::size_t i = 0; i < roles.writes.size(); ++i) {
                undefined_.write(frame, roles.writes[i].row, active, sources[i]);
            }
            update_follows();
            return;
        }
        case ValueFlow::selected: {
            const LaneMask first = predicate(roles.reads[2].row) ^ (roles.reads[2].negated ? all_lanes : 0);
            add(read(2));
            add(read(0), first);
            add(read(1), ~first);
            break;
        }
        case ValueFlow::conjunction:
        case ValueFlow::disjunction:
            for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
                const std::size_t other = 1 - i;
                const bool conjunction = effects.flow == ValueFlow::conjunction;
                const LaneMask decided =
                    lanes_of_equal_bits(*this, roles.reads[other], !conjunction) & ~read(other).mask;
                UndefinedValues::Lanes lanes_ = read(i);
                const LaneMask undefined = lanes_.mask & ~decided;
                lanes_.masked |= conjunction && (read(other).mask & undefined) == 0 &&
                                 (lanes_of_equal_bits(*this, roles.reads[other], true) & undefined) == 0;
                add(lanes_, undefined);
            }
            break;
        case ValueFlow::inserted: {
            UndefinedValues::Lanes into = read(1);
            into.masked = true;
            add(read(0));
            add(into);
            add(read(2));
            add(read(3));
            break;
        }
        case ValueFlow::shuffled: {
            // The handler waits until all lanes have arrived; then this is called again.
            const std::uint32_t* const members = row<std::uint32_t>(roles.reads[3].row);
            LaneMask named = 0;
            for_each_lane(active, [&](unsigned lane) { named |= members[lane]; });
            if ((named & live() & ~current_->mask) != 0) {
                return;
            }
            for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
                report_undefined(operation, roles.reads[i].row, active);
            }
            const std::uint32_t* const b = row<std::uint32_t>(roles.reads[1].row);
            const std::uint32_t* const c = row<std::uint32_t>(roles.reads[2].row);
            LaneMask shuffled = 0;
            for_each_lane(active, [&](unsigned lane) {
                const unsigned source = shuffle_source(*effects.shuffle, lane, b[lane], c[lane]).lane;
                shuffled |= (read(0).mask >> source & 1) << lane;
            });
            add({shuffled, read(0).origin});
            break;
        }
    }
    for (const OperandRole& role : roles.writes) {
        undefined_.write(frame, role.row, active, result);
    }
    update_follows();
}

}  // namespace tessera::emulator
