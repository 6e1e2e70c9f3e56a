// cp.async: non-bulk asynchronous copies of single threads, and their groups (PTX ISA 9.7.9.25.3).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/spare_objects.hpp"
#include "execute/barrier_families.hpp"
#include "execute/copy_families.hpp"
#include "execute/lane_addresses.hpp"
#include "machine/async_operation.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/mbarrier_access.hpp"
#include "machine/memory_access.hpp"

namespace tessera::emulator {

namespace {

using ptx::Type;

constexpr const char* name = "cp.async";

/// The copies that one instruction started for the lanes of a warp.
class AsyncCopy : public AsyncOperation, public Spare<AsyncCopy> {
public:
    AsyncCopy(Warp& warp, LaneMask lanes, std::uint32_t bytes) : warp_(warp), left_(lanes), bytes_(bytes)
    {
        kind = Kind::load;
    }

    std::array<std::uint32_t, warp_size> offset;       ///< of the destination in the CTA's shared memory
    std::array<std::uint64_t, warp_size> source;       ///< lanes that copy nothing have another lane's
    std::array<std::uint8_t, warp_size> source_bytes;  ///< the rest is filled with zeros
    bool all_whole = false;                            ///< all read as many bytes as they write
    std::uint64_t first_source = 0, last_source = 0;   ///< if so: the least and the greatest
    CopyGroups::Sequence sequence = 0;

    void watch(std::uint32_t line)
    {
        SharedShadow* const shadow = warp_.cta.shadow.get();
        if (shadow == nullptr) {
            return;
        }
        shadow->begin_lanes(agent, offset.data(), left_, bytes_, name, line);
    }

    bool step(Cluster& cluster) override
    {
        LaneMask now = left_;
        if (cluster.options().schedule != Schedule::in_order && std::popcount(left_) > 1 &&
            cluster.choose(Choice::lanes, 2) == 0) {
            // Some of the lanes' copies complete first.
            const auto chosen = static_cast<LaneMask>(cluster.choose(Choice::lanes, 0xFFFF)) |
                                static_cast<LaneMask>(cluster.choose(Choice::lanes, 0xFFFF)) << 16U;
            now = (left_ & chosen) != 0 ? left_ & chosen : left_;
        }
        move(cluster, now);
        left_ &= ~now;
        if (left_ != 0) {
            return false;
        }
        if (warp_.cta.shadow != nullptr) {
            warp_.cta.shadow->end(agent);
        }
        SyncPoint& point = warp_.copies.reached(sequence, CopyGroups::Stage::complete, agent);
        if (cluster.options().check) {
            cluster.clocks.complete_async(agent, point);
        }
        cluster.notify();
        return true;
    }

    /// It will be read soon: what the lanes copy often lies far apart.
    void prefetch(Cluster& cluster) const
    {
        const AllocationCache::Entry* const from =
            all_whole ? cluster.allocations->find(cluster.grid.memory, first_source) : nullptr;
        if (from != nullptr && are_whole(*from)) {
            for (const std::uint64_t address : source) {
                __builtin_prefetch(from->allocation->bytes + (address - from->begin));
            }
        }
    }

    [[nodiscard]] std::string describe() const override
    {
        const auto lane = static_cast<unsigned>(std::countr_zero(left_ == 0 ? 1U : left_));
        return fmt::format("{} of {} bytes per lane, the first to shared {:#x} of CTA {}", name, bytes_,
                           (warp_.cta.rank << shared_rank_shift) + shared_base + offset[lane], warp_.cta.rank);
    }

private:
    void move(Cluster& cluster, LaneMask now)
    {
        if (warp_.cta.shadow != nullptr) {
            const std::uint32_t line = line_of(operation);
            const KnownOfWork known(cluster, *this);
            if (const auto found = warp_.cta.shadow->write_lanes(agent, offset.data(), now, bytes_, name, line, false,
                                                                 nullptr, &known)) {
                cluster.report(*this, *found);
            }
        }
        const AllocationCache::Entry* const found =
            cluster.allocations->find(cluster.grid.memory, source[static_cast<unsigned>(std::countr_zero(now))]);
        const AllocationCache::Entry usual = found == nullptr ? AllocationCache::Entry{} : *found;
        const bool all_defined = !cluster.options().check ||
                                 (found != nullptr && usual.allocation->complete.load(std::memory_order_relaxed));
        cluster.statistics.async_copy_bytes += std::uint64_t{bytes_} * static_cast<unsigned>(std::popcount(now));
        cluster.progress();
        if (found != nullptr && all_defined && are_whole(usual)) {
            switch (bytes_) {
                case 4: copy_whole<4>(now, usual); break;
                case 8: copy_whole<8>(now, usual); break;
                default: copy_whole<16>(now, usual); break;
            }
            return;
        }
        for_each_lane(now, [&](unsigned lane) {
            std::byte* const target = warp_.cta.shared.data() + offset[lane];
            const std::uint32_t read = source_bytes[lane];
            if (const std::uint64_t from = source[lane] - usual.begin;
                read == bytes_ && from < usual.size && read <= usual.size - from &&
                (all_defined || usual.allocation->is_initialized(from, read))) {
                copy_one(target, usual.allocation->bytes + from);
                return;
            }
            if (read != 0) {
                GlobalProblem problem;
                const std::byte* const bytes = locate_global(cluster, source[lane], read, Direction::read, problem);
                if (bytes == nullptr) {
                    cluster.fault(*this, problem.kind, error_illegal_address,
                                  fmt::format("{} by lane {}: {}", name, lane, problem.text));
                }
                if (!problem.text.empty()) {
                    cluster.report(
                        *this, problem.kind,
                        {fmt::format("{} by lane {}: {}", name, lane, problem.text), cause_in(cluster, source[lane])});
                }
                std::memcpy(target, bytes, read);
            }
            std::memset(target + read, 0, bytes_ - read);
        });
    }

    /// Returns true if all lanes read all their bytes from this allocation.
    [[nodiscard]] bool are_whole(const AllocationCache::Entry& from) const
    {
        return all_whole && from.size >= bytes_ && first_source >= from.begin &&
               last_source - from.begin <= from.size - bytes_;
    }

    template <unsigned bytes>
    void copy_whole(LaneMask now, const AllocationCache::Entry& from) const
    {
        std::byte* const to = warp_.cta.shared.data();
        const std::byte* const bytes_of_source = from.allocation->bytes;
        const auto copy = [&](unsigned lane) {
            std::memcpy(to + offset[lane], bytes_of_source + (source[lane] - from.begin), bytes);
        };
        if (now == all_lanes) {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                copy(lane);
            }
        } else {
            for_each_lane(now, copy);
        }
    }

    void copy_one(std::byte* to, const std::byte* from) const
    {
        switch (bytes_) {
            case 4: std::memcpy(to, from, 4); break;
            case 8: std::memcpy(to, from, 8); break;
            default: std::memcpy(to, from, 16); break;
        }
    }

    Warp& warp_;
    LaneMask left_;
    std::uint32_t bytes_;  ///< 4, 8 or 16
};

struct CopyPayload : Payload {
    AddressRef destination, source;
    std::uint32_t bytes = 0;
    Ref source_bytes = no_row;
    Decoder::Predicate ignore_source;
};

/// Lanes that are not active have the address of the first that is.
template <typename A>
void find_addresses_of(const Warp& warp, const AddressRef& ref, LaneMask active, std::array<A, warp_size>& addresses)
{
    const auto offset = static_cast<A>(ref.offset);
    if (ref.base == no_row) {
        addresses.fill(offset);
    } else if (ref.wide) {
        add_offset(addresses, warp.row<std::uint64_t>(ref.base), offset, active);
    } else {
        add_offset(addresses, warp.row<std::uint32_t>(ref.base), offset, active);
    }
}

/// Sets where the lanes read and write. Returns false if one of them needs a closer look.
bool set_usual_places(Warp& warp, const CopyPayload& payload, LaneMask active, LaneMask ignored, AsyncCopy& copy)
{
    std::array<std::uint32_t, warp_size> destination;
    find_addresses_of(warp, payload.destination, active, destination);
    find_addresses_of(warp, payload.source, active, copy.source);
    const std::uint32_t origin = (warp.cta.rank << shared_rank_shift) + shared_base, low_bits = payload.bytes - 1;
    std::uint32_t last_offset = 0, low = 0;  // or-ed: the low bits
    std::uint64_t first_source = ~std::uint64_t{0}, last_source = 0, source_low = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        copy.offset[lane] = destination[lane] - origin;  // wraps around to a large value
        last_offset = std::max(last_offset, copy.offset[lane]);
        low |= destination[lane];
    }
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        first_source = std::min(first_source, copy.source[lane]);
        last_source = std::max(last_source, copy.source[lane]);
        source_low |= copy.source[lane];
    }
    copy.first_source = first_source;
    copy.last_source = last_source;
    copy.all_whole = true;
    copy.source_bytes.fill(static_cast<std::uint8_t>(payload.bytes));
    bool too_many = false;
    const auto reads_less = [&] {
        const std::uint32_t* const read = warp.row<std::uint32_t>(payload.source_bytes);
        std::uint32_t differing = 0;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            differing |= read[lane] ^ payload.bytes;
        }
        return differing != 0;
    };
    if ((ignored & active) != 0 || (payload.source_bytes != no_row && reads_less())) {
        for_each_lane(active, [&](unsigned lane) {
            const std::uint32_t bytes = (ignored >> lane & 1) != 0 ? 0
                                        : payload.source_bytes == no_row
                                            ? payload.bytes
                                            : warp.row<std::uint32_t>(payload.source_bytes)[lane];
            copy.all_whole = copy.all_whole && bytes == payload.bytes;
            too_many = too_many || bytes > payload.bytes;
            copy.source_bytes[lane] = static_cast<std::uint8_t>(bytes);
        });
    }
    const std::size_t size = warp.cta.shared.size();
    return size >= payload.bytes && last_offset <= size - payload.bytes && !too_many &&
           ((low | source_low) & low_bits) == 0;
}

/// The same lane by lane, with a report of what is wrong; not AsyncCopy::all_whole.
void set_places(Warp& warp, const Operation& operation, const CopyPayload& payload, LaneMask active, LaneMask ignored,
                AsyncCopy& copy)
{
    for_each_lane(active, [&](unsigned lane) {
        const std::uint32_t destination =
            to_shared_window(warp, operation, warp.address(payload.destination, lane) & 0xFFFF'FFFFU, lane);
        const std::uint64_t source = warp.address(payload.source, lane);
        std::uint32_t read =
            payload.source_bytes == no_row ? payload.bytes : warp.row<std::uint32_t>(payload.source_bytes)[lane];
        if (read > payload.bytes) {
            warp.report(
                operation, FindingKind::invalid_operand, bit(lane),
                fmt::format("{}: the source size is {} bytes, more than the {} to copy", name, read, payload.bytes));
            read = payload.bytes;
        }
        if ((ignored & bit(lane)) != 0) {
            read = 0;
        }
        const std::uint32_t low_bits = payload.bytes - 1;  // of a power of two
        if ((destination & low_bits) != 0 || (read != 0 && (source & low_bits) != 0)) {
            warp.fault(operation, FindingKind::misaligned, error_misaligned_address, bit(lane),
                       fmt::format("{} of {} bytes to shared {:#x} from {:#x}: both addresses must be multiples of {}",
                                   name, payload.bytes, destination, source, payload.bytes));
        }
        if (warp.cluster.cta_of(destination) != &warp.cta ||
            warp.cta.shared_bytes(destination, payload.bytes) == nullptr) {
            warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit(lane),
                       fmt::format("{} of {} bytes to shared {:#x}: outside of the CTA's {} bytes of shared memory",
                                   name, payload.bytes, destination, warp.cta.shared.size()));
        }
        copy.offset[lane] = destination - (warp.cta.rank << shared_rank_shift) - shared_base;
        copy.source[lane] = source;
        copy.source_bytes[lane] = static_cast<std::uint8_t>(read);
    });
}

Step execute_copy(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<CopyPayload>();
    const LaneMask ignored = payload.ignore_source.row == no_row ? 0 : warp.predicate(payload.ignore_source);
    auto copy = std::make_unique<AsyncCopy>(warp, active, payload.bytes);
    if (!set_usual_places(warp, payload, active, ignored, *copy)) {
        copy->all_whole = false;
        set_places(warp, operation, payload, active, ignored, *copy);
    }
    copy->sequence = warp.copies.add(active);
    AsyncCopy& started = *copy;
    warp.cluster.submit(std::move(copy), warp, operation, active);
    started.prefetch(warp.cluster);
    started.watch(line_of(operation));
    return Step::next;
}

Step execute_commit(Warp& warp, const Operation&, LaneMask active)
{
    warp.copies.commit(active);
    return Step::next;
}

struct WaitPayload : Payload {
    std::uint64_t keep = 0;
};

Step execute_wait_group(Warp& warp, const Operation& operation, LaneMask active)
{
    const std::uint64_t keep = operation.as<WaitPayload>().keep;
    if (!warp.copies.have_reached(active, keep, CopyGroups::Stage::complete)) {
        warp.split().wait = {Wait::Kind::async_group, 0, warp.cta.rank, keep, active};
        return Step::wait;
    }
    warp.copies.acquire(active, keep, CopyGroups::Stage::complete, warp.cluster.clocks, warp.agent, warp.live());
    return Step::next;
}

Step execute_wait_all(Warp& warp, const Operation&, LaneMask active)
{
    if (!warp.copies.all_reached(active, CopyGroups::Stage::complete)) {
        warp.split().wait = {Wait::Kind::async_group, 0, warp.cta.rank, 0, active};
        return Step::wait;
    }
    warp.copies.acquire_all(active, warp.cluster.clocks, warp.agent, warp.live());
    return Step::next;
}

/// cp.async.mbarrier.arrive: arrives for each lane when the copies that it has issued so far are complete.
class CopyArrival : public AsyncOperation {
public:
    CopyArrival(Warp& warp, LaneMask lanes)
        : warp_(warp), left_(lanes), end_(warp.copies.next()), waits_(warp.copies.waits())
    {}

    std::array<std::uint32_t, warp_size> barrier{};

    [[nodiscard]] bool ready(const Cluster&) const override { return reached() != 0; }

    bool step(Cluster& cluster) override
    {
        const LaneMask now = reached();
        if (cluster.options().check) {
            warp_.copies.pass(now, end_, cluster.clocks, agent);
            if (warp_.copies.waits() !=
                waits_) {  // the warp has waited for the copies itself since: it knows what they did
                SyncPoint seen;
                cluster.clocks.release(warp_.agent, seen);
                cluster.clocks.acquire(agent, seen);
            }
        }
        for_each_lane(now, [&](unsigned lane) { async_arrive(cluster, *this, barrier[lane], 1, 0); });
        left_ &= ~now;
        return left_ == 0;
    }

    [[nodiscard]] std::string describe() const override
    {
        const auto lane = static_cast<unsigned>(std::countr_zero(left_ == 0 ? 1U : left_));
        return fmt::format("cp.async.mbarrier.arrive on shared {:#x} for lanes {:#010x}", barrier[lane], left_);
    }

private:
    [[nodiscard]] LaneMask reached() const
    {
        if (warp_.copies.reached_before(left_, end_, CopyGroups::Stage::complete)) {
            return left_;
        }
        LaneMask lanes = 0;
        for_each_lane(left_, [&](unsigned lane) {
            lanes |= warp_.copies.reached_before(bit(lane), end_, CopyGroups::Stage::complete) ? bit(lane) : 0;
        });
        return lanes;
    }

    Warp& warp_;
    LaneMask left_;
    CopyGroups::Sequence end_;
    std::uint64_t waits_;
};

struct ArrivalPayload : Payload {
    AddressRef address;
    bool generic = false, counted = false;  ///< counted: .noinc, the barrier's count includes this arrival
};

Step execute_arrival(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<ArrivalPayload>();
    LaneMask valid = 0;
    auto arrival = std::make_unique<CopyArrival>(warp, active);
    for_each_lane(active, [&](unsigned lane) {
        const std::uint64_t address = warp.address(payload.address, lane);
        const BarrierSite site = barrier_at(warp, operation, payload.generic ? address : address & 0xFFFF'FFFFU, lane);
        if (!site) {
            return;
        }
        valid |= bit(lane);
        arrival->barrier[lane] = site.address;
        if (!payload.counted) {
            report_barrier_problems(warp, operation, lane, site, FindingKind::barrier_misuse,
                                    site.barrier->add_pending(1));
        }
    });
    if (valid != 0) {
        if (valid != active) {
            auto some = std::make_unique<CopyArrival>(warp, valid);
            some->barrier = arrival->barrier;
            arrival = std::move(some);
        }
        warp.cluster.submit(std::move(arrival), warp, operation, valid);
    }
    return Step::next;
}

void decode_arrival(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<ArrivalPayload>();
    if (!decoder.take("arrive") || !decoder.take("b64") || decoder.operands() != 1) {
        decoder.fail("the form is cp.async.mbarrier.arrive{.noinc}{.shared}.b64 [address]");
    }
    payload.counted = decoder.take("noinc");
    payload.generic = decoder.take_one_of({"shared", "shared::cta"}).empty();
    payload.address = decoder.address(0);
    operation.execute = execute_arrival;
    decoder.effects().unit = AsyncUnit::load_store;
    decoder.effects().sync = {.object = SyncObject::mbarrier, .arrives = true, .later = true};
}

}  // namespace

void decode_async_copy(Decoder& decoder, Operation& operation)
{
    if (decoder.take("commit_group")) {
        operation.execute = execute_commit;
        decoder.effects().sync = {.object = SyncObject::async_groups, .commits = true};
        return;
    }
    if (decoder.take("wait_all")) {
        operation.execute = execute_wait_all;
        decoder.effects().may_wait = true;
        decoder.effects().sync = {.object = SyncObject::async_groups, .waits = true};
        return;
    }
    if (decoder.take("wait_group")) {
        const std::optional<std::int64_t> keep = decoder.operands() == 1 ? decoder.constant(0) : std::nullopt;
        if (!keep || *keep < 0) {
            decoder.fail("the number of groups that may be pending is a constant");
        }
        decoder.emplace_payload<WaitPayload>().keep = static_cast<std::uint64_t>(*keep);
        operation.execute = execute_wait_group;
        decoder.effects().may_wait = true;
        decoder.effects().sync = {.object = SyncObject::async_groups, .waits = true};
        return;
    }
    if (decoder.take("mbarrier")) {
        decode_arrival(decoder, operation);
        return;
    }
    auto& payload = decoder.emplace_payload<CopyPayload>();
    const std::string_view level = decoder.take_one_of({"ca", "cg"});
    if (level.empty() || decoder.take_one_of({"shared", "shared::cta"}).empty() || !decoder.take("global")) {
        decoder.fail("the form is cp.async.{ca,cg}.shared.global");
    }
    const std::size_t policy = decoder.take("L2::cache_hint") ? 1 : 0;
    decoder.take_cache_hints();
    if (decoder.operands() < 3 + policy || decoder.operands() > 4 + policy) {
        decoder.fail("the operands are [destination], [source], size, and optionally the source's size or a predicate");
    }
    const std::int64_t bytes = decoder.constant(2).value_or(0);
    if (bytes != 16 && (level == "cg" || (bytes != 4 && bytes != 8))) {
        decoder.fail(fmt::format("the size is {}; it must be 16{}", bytes, level == "cg" ? " with .cg" : ", 8 or 4"));
    }
    payload.bytes = static_cast<std::uint32_t>(bytes);
    payload.destination = decoder.address(0);
    payload.source = decoder.address(1);
    if (decoder.operands() == 4 + policy) {  // the policy is last
        if (decoder.declared_type(3) == Type::pred) {
            payload.ignore_source = decoder.read_predicate(3);
        } else {
            payload.source_bytes = decoder.read(3, Type::u32);
        }
    }
    if (policy != 0) {
        decoder.read(decoder.operands() - 1, Type::b64);  // no effect on results
    }
    operation.execute = execute_copy;
    Effects& effects = decoder.effects();
    effects.unit = AsyncUnit::load_store;
    effects.access({.space = Space::global, .bytes = payload.bytes, .later = true});
    effects.access({.space = Space::shared, .direction = Direction::write, .bytes = payload.bytes, .later = true});
}

}  // namespace tessera::emulator
