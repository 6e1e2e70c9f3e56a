#include "machine/memory_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>

#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {

namespace {

/// One access, with what its checks print.
struct Request {
    Warp& warp;
    const Operation& operation;
    const MemoryAccess& access;
    std::uint64_t address;
    unsigned size;
    unsigned lane;

    [[nodiscard]] bool reads() const noexcept { return access.direction != Direction::write; }
    [[nodiscard]] bool writes() const noexcept { return access.direction != Direction::read; }
    [[nodiscard]] bool strong() const noexcept { return access.atomic || access.order.strong(); }
    [[noreturn]] void outside(const std::string& why) const
    {
        warp.fault(operation, FindingKind::out_of_bounds, error_illegal_address, bit(lane),
                   fmt::format("{} of {} bytes at 0x{:x} by lane {}: {}", access.what, size, address, lane, why));
    }
    void report(FindingKind kind, FindingText text) const { warp.report(operation, kind, bit(lane), std::move(text)); }
    template <std::invocable Text>
    void report(FindingKind kind, Text&& text, std::uint64_t detail = 0) const
    {
        warp.report(operation, kind, bit(lane), text, detail);
    }
    /// Bytes were read that were never written. `written(offset, size)`: whether that part of the access was.
    template <typename Written, typename Message>
    void undefined(FindingKind kind, Written&& written, Message&& message, std::uint64_t detail = 0) const
    {
        if (access.ignores_value) {
            return;
        }
        if (access.registers.empty()) {
            report(kind, message, detail);
            return;
        }
        const auto part = static_cast<unsigned>(size / access.registers.size());
        for (unsigned i = 0; i < access.registers.size(); ++i) {
            if (!written(i * part, part)) {
                warp.follow(operation, access.registers[i], bit(lane), kind, message);
            }
        }
    }
};

std::byte* locate_parameter(const Request& r)
{
    const std::vector<std::byte>& parameters = r.warp.cluster.grid.request.parameters;
    const std::uint64_t offset = r.address >= parameter_window ? r.address - parameter_window : r.address;
    if (r.writes()) {
        r.outside("kernel parameters cannot be written");
    }
    if (offset > parameters.size() || r.size > parameters.size() - offset) {
        r.outside(fmt::format("the kernel's parameters are {} bytes", parameters.size()));
    }
    // Nobody writes through this pointer: see above.
    return const_cast<std::byte*>(parameters.data()) + offset;
}

std::byte* locate_local(const Request& r)
{
    Warp& warp = r.warp;
    const Frame& frame = *warp.split().frame;
    const std::uint64_t top =
        std::uint64_t{frame.local_base} + frame.function->local_bytes;  // no function above this one is active
    std::byte* const bytes = warp.local_bytes(r.lane, r.address, r.size);
    if (bytes == nullptr || r.address + r.size > top) {
        r.outside(fmt::format("outside of the thread's local memory of {} bytes", top));
    }
    if (warp.checks()) {
        if (r.reads() && (warp.local_shadow.any_written(r.address, r.size) & bit(r.lane)) == 0) {
            r.undefined(
                FindingKind::uninitialized_local, [](unsigned, unsigned) { return false; },
                [&] {
                    return fmt::format(
                        "{} reads {} bytes of local memory at 0x{:x} (lane {}) that the thread has not written",
                        r.access.what, r.size, r.address, r.lane);
                });
        }
        if (r.writes()) {
            warp.local_shadow.write(bit(r.lane), r.address, r.size);
        }
    }
    return bytes;
}

/// The values of a store of consecutive bytes.
class StoredRange final : public StoredBytes {
public:
    StoredRange(const void* bytes, std::uint32_t offset, std::uint32_t size, const Cta& cta)
        : bytes_(static_cast<const std::byte*>(bytes)), offset_(offset), size_(size), cta_(cta)
    {}
    [[nodiscard]] bool unchanged(std::uint32_t offset, std::uint8_t bytes) const override
    {
        bool same = true;
        for (std::uint32_t i = 0; i < 4; ++i) {
            const std::uint32_t place = offset + i - offset_;  // wraps around to a large value
            if ((bytes >> i & 1) != 0 && place < size_) {
                same = same && bytes_[place] == cta_.shared[offset + i];
            }
        }
        return same;
    }

private:
    const std::byte* bytes_;
    std::uint32_t offset_, size_;
    const Cta& cta_;
};

std::optional<ShadowFinding> check_shared_write(const Request& r, Cta& cta, std::uint32_t offset, std::uint32_t line,
                                                const KnownFindings& known)
{
    if (r.access.stored == nullptr) {
        const unsigned lane = r.access.whole_warp ? Clocks::any_lane : r.lane;
        return cta.shadow->write(r.warp.agent, offset, r.size, Proxy::generic, r.access.what, line, r.strong(), lane,
                                 &known);
    }
    const StoredRange stored(r.access.stored, offset, r.size, cta);
    std::array<std::uint32_t, warp_size> offsets{};
    offsets[r.lane] = offset;
    return cta.shadow->write_lanes(r.warp.agent, offsets.data(), bit(r.lane), r.size, r.access.what, line, r.strong(),
                                   &stored, &known);
}

std::byte* locate_shared(const Request& r)
{
    Warp& warp = r.warp;
    if (r.address >> 32 != 0) {
        r.outside("not an address of shared memory: these have 32 bits; convert generic ones with cvta.to.shared");
    }
    const auto address = static_cast<std::uint32_t>(r.address);
    const std::uint32_t rank = address >> shared_rank_shift;
    Cta* const cta = rank == warp.cta.rank ? &warp.cta : warp.cluster.cta_of(address);
    if (cta == nullptr) {
        r.outside(fmt::format("it names CTA {} of a cluster of {}", rank, warp.cluster.ctas.size()));
    }
    if (cta != &warp.cta) {
        if (!cta->started) {
            r.report(FindingKind::cluster_protocol,
                     fmt::format("{} at shared 0x{:x} of CTA {}, which may not have started: synchronize the cluster "
                                 "(barrier.cluster) before the first access to a peer",
                                 r.access.what, address, rank));
        } else if (cta->exited()) {
            r.report(FindingKind::cluster_protocol,
                     fmt::format("{} at shared 0x{:x} of CTA {}, which has exited: synchronize the cluster "
                                 "(barrier.cluster) before a CTA exits",
                                 r.access.what, address, rank));
        }
    }
    std::byte* const bytes = cta->shared_bytes(address, r.size);
    if (bytes == nullptr) {
        r.outside(fmt::format("CTA {} has {} bytes of shared memory, from 0x{:x} on", rank, cta->shared.size(),
                              (rank << shared_rank_shift) + shared_base));
    }
    const auto offset = static_cast<std::uint32_t>(bytes - cta->shared.data());
    if (cta != &warp.cta && cta->exit_order != nullptr && !cta->exited()) {
        cta->exit_order->accessed(warp.cluster.clocks.now(warp.agent),
                                  {&r.operation, warp.cta.rank, warp.index, bit(r.lane)});
    }
    if (r.strong()) {
        synchronize(warp, warp.split().mask, shared_window + address, r.access.direction, r.access.order);
    }
    if (r.access.direction == Direction::read && cta->responses.touches(offset, offset + std::uint64_t{r.size})) {
        cta->responses.read(offset, r.size, warp.cluster.clocks.now(warp.agent), bit(r.lane), &r.operation);
    }
    if (cta->shadow && warp.checks()) {
        const std::uint32_t line = line_of(r.operation);
        const KnownOfWarp known(warp, r.operation);
        std::optional<ShadowFinding> found;
        if (r.reads()) {
            bool unwritten = false;
            found = cta->shadow->read(warp.agent, offset, r.size, Proxy::generic, r.access.what, line, r.strong(),
                                      &unwritten, r.lane, &known);
            if (unwritten) {
                r.undefined(
                    FindingKind::uninitialized_shared,
                    [&](unsigned at, unsigned part) { return cta->shadow->initialized(offset + at, part); },
                    [&] {
                        return fmt::format(
                            "{} reads {} bytes of shared memory at 0x{:x} (lane {}) that were never written",
                            r.access.what, r.size, address, r.lane);
                    });
            }
        }
        if (r.writes()) {
            std::optional<ShadowFinding> second = check_shared_write(r, *cta, offset, line, known);
            found = found ? std::move(found) : std::move(second);
        }
        if (found) {
            r.report(found->kind, [&] { return found->message; }, found->other_line);
        }
    }
    return bytes;
}

/// What a finding about an access that continues in the padding says besides the place.
constexpr const char* overrun_note =
    "on a GPU it continues in the padding of the allocation, whose bytes have no defined value: check the index";

/// The bytes in an allocation's padding if the options allow the access; null if not.
Allocation* find_overrun(const Cluster& cluster, std::uint64_t address, std::uint64_t size)
{
    const Grid& grid = cluster.grid;
    return grid.options.overruns_continue ? grid.memory.find_with_padding(address, size) : nullptr;
}

/// Bytes of [offset, offset + size) before the allocation's end.
std::uint64_t bytes_inside(const Allocation& allocation, std::uint64_t offset, std::uint64_t size)
{
    return offset < allocation.size ? std::min(size, allocation.size - offset) : 0;
}

std::byte* locate_overrun(const Request& r, Allocation& allocation)
{
    Warp& warp = r.warp;
    r.report(FindingKind::out_of_bounds, [&] {
        return fmt::format("{} of {} bytes at 0x{:x} by lane {}: {}; {}", r.access.what, r.size, r.address, r.lane,
                           warp.cluster.grid.memory.describe(r.address + r.size - 1), overrun_note);
    });
    if (r.strong()) {
        synchronize(warp, warp.split().mask, r.address, r.access.direction, r.access.order);
    }
    const std::uint64_t offset = r.address - allocation.address;
    if (r.writes()) {
        allocation.mark_initialized(offset, bytes_inside(allocation, offset, r.size));
    }
    return allocation.bytes + offset;
}

std::byte* locate_in_allocation(const Request& r)
{
    Warp& warp = r.warp;
    const AddressSpace& memory = warp.cluster.grid.memory;
    const AllocationCache::Entry* const entry = warp.cluster.allocations->find(memory, r.address);
    if (entry == nullptr || r.size > entry->size - (r.address - entry->begin)) {
        if (Allocation* const allocation = find_overrun(warp.cluster, r.address, r.size)) {
            return locate_overrun(r, *allocation);
        }
        r.outside(memory.describe(entry == nullptr ? r.address : r.address + r.size - 1));
    }
    if (entry->allocation->constant && r.writes()) {
        r.outside(fmt::format("{} is constant memory, which kernels cannot write", entry->allocation->label));
    }
    if (r.strong()) {
        synchronize(warp, warp.split().mask, r.address, r.access.direction, r.access.order);
    }
    const std::uint64_t offset = r.address - entry->begin;
    if (r.reads() && warp.checks() && !entry->allocation->is_initialized(offset, r.size)) {
        r.undefined(
            FindingKind::uninitialized_global,
            [&](unsigned at, unsigned part) { return entry->allocation->is_initialized(offset + at, part); },
            [&] {
                return FindingText(fmt::format("{} reads {} bytes at 0x{:x} (lane {}) that were never written: {}",
                                               r.access.what, r.size, r.address, r.lane, memory.describe(r.address)),
                                   cause_of(*entry->allocation));
            },
            entry->allocation->id);
    }
    if (r.writes()) {
        entry->allocation->mark_initialized(offset, r.size);
        entry->allocation->note_kernel_write();
    }
    if (GlobalShadow* const global = warp.cluster.global_shadow.get()) {
        if (r.writes() && r.strong()) {
            check_flag(warp, r.operation, bit(r.lane), r.access.what);
        }
        const KnownOfWarp known(warp, r.operation);
        const auto found = r.writes() ? global->write(warp.agent, r.lane, r.address, r.size, r.strong(), r.access.what,
                                                      line_of(r.operation), &known)
                                      : global->read(warp.agent, r.address, r.size, r.strong(), r.access.what, &known);
        if (found) {
            r.report(found->kind, [&] { return found->message; }, found->other_line);
        }
    }
    return entry->allocation->bytes + offset;
}

}  // namespace

std::string cause_of(const Allocation& allocation) { return fmt::format("allocation {}", allocation.id); }

std::string cause_in(const Cluster& cluster, std::uint64_t address)
{
    const Allocation* allocation = cluster.grid.memory.find(address);
    return allocation == nullptr ? std::string() : cause_of(*allocation);
}

void check_flag(Warp& warp, const Operation& operation, LaneMask lanes, const char* what)
{
    if (warp.cluster.options().flags_before_stores && warp.checks() && warp.bulk_copies.unwaited(lanes)) {
        warp.report(
            operation, FindingKind::flag_before_store, lanes,
            fmt::format("{} writes global memory while the thread's bulk stores are not known to be complete: if "
                        "it is a flag for them, execute cp.async.bulk.wait_group 0 (without .read) first",
                        what));
    }
}

void synchronize(Warp& warp, LaneMask lanes, std::uint64_t generic_address, Direction direction, MemoryOrder order)
{
    if (!warp.checks()) {
        return;
    }
    Clocks& clocks = warp.cluster.clocks;
    const LanesOfWarp by{lanes, warp.live()};
    ScopedPoint& point = clocks.memory_point(generic_address);
    if (direction != Direction::write) {
        clocks.read_point(warp.agent, warp.cta.rank, order, point, warp.barriers.fences, by);
    }
    if (direction != Direction::read) {
        clocks.write_point(warp.agent, warp.cta.rank, order, point, warp.barriers.fences, by);
    }
}

std::byte* locate(Warp& warp, const Operation& operation, const MemoryAccess& access, std::uint64_t address,
                  unsigned size, unsigned alignment, unsigned lane)
{
    Request r{warp, operation, access, address, size, lane};
    if (alignment > 1 && address % alignment != 0) {
        warp.fault(operation, FindingKind::misaligned, error_misaligned_address, bit(lane),
                   fmt::format("{} of {} bytes at 0x{:x} by lane {}: the address must be a multiple of {}", access.what,
                               size, address, lane, alignment));
    }
    switch (access.space) {
        case Space::parameter: return locate_parameter(r);
        case Space::local: return locate_local(r);
        case Space::shared: return locate_shared(r);
        case Space::global:
        case Space::constant: return locate_in_allocation(r);
        case Space::generic:
        case Space::tensor: break;
    }
    constexpr std::uint64_t window_bytes = std::uint64_t{1} << 32;
    if (address - shared_window < window_bytes) {
        r.address = address - shared_window;
        return locate_shared(r);
    }
    if (address - local_window < window_bytes) {
        r.address = address - local_window;
        return locate_local(r);
    }
    if (address - parameter_window < window_bytes) {
        return locate_parameter(r);
    }
    return locate_in_allocation(r);
}

std::byte* place_without_effects(Warp& warp, const MemoryAccess& access, std::uint64_t address, unsigned size,
                                 unsigned alignment, unsigned lane)
{
    const bool reads = access.direction != Direction::write;
    if (address % alignment != 0) {
        return nullptr;
    }
    const auto in_window = [&](std::uint64_t window) {
        return access.space == Space::generic && address - window < (std::uint64_t{1} << 32);
    };
    if (access.space == Space::parameter || in_window(parameter_window)) {
        const std::uint64_t offset = address >= parameter_window ? address - parameter_window : address;
        const bool inside = offset + size <= warp.parameters.size() && access.direction == Direction::read;
        return inside ? const_cast<std::byte*>(warp.parameters.data()) + offset : nullptr;
    }
    if (access.space == Space::local || in_window(local_window)) {
        const std::uint64_t inside = access.space == Space::local ? address : address - local_window;
        const Frame& frame = *warp.split().frame;
        if (inside + size > std::uint64_t{frame.local_base} + frame.function->local_bytes ||
            (reads && warp.checks() && (warp.local_shadow.any_written(inside, size) & bit(lane)) == 0)) {
            return nullptr;
        }
        return warp.local_bytes(lane, inside, size);
    }
    if (access.space == Space::shared || in_window(shared_window)) {
        const std::uint64_t inside = access.space == Space::shared ? address : address - shared_window;
        Cta* const cta = inside >> 32 != 0 ? nullptr : warp.cluster.cta_of(static_cast<std::uint32_t>(inside));
        if (cta == nullptr || (cta != &warp.cta && (!cta->started || cta->exited()))) {
            return nullptr;
        }
        return cta->shared_bytes(static_cast<std::uint32_t>(inside), size);  // its shadow compares itself
    }
    Allocation* const allocation = warp.cluster.grid.memory.find(address);
    const std::uint64_t offset = allocation == nullptr ? 0 : address - allocation->address;
    if (allocation == nullptr || offset + size > allocation->size ||
        (allocation->constant && access.direction != Direction::read)) {
        return nullptr;
    }
    for (std::uint64_t i = offset; i < offset + size && reads && warp.checks() && allocation->initialized != nullptr;
         ++i) {
        if ((allocation->initialized[i / 64].load() >> (i % 64) & 1) == 0) {
            return nullptr;
        }
    }
    return allocation->bytes + offset;
}

std::byte* locate_global(Cluster& cluster, std::uint64_t address, std::uint64_t size, Direction direction,
                         GlobalProblem& problem)
{
    const Grid& grid = cluster.grid;
    if (address - parameter_window < (std::uint64_t{1} << 32)) {
        const std::vector<std::byte>& parameters = grid.request.parameters;
        const std::uint64_t offset = address - parameter_window;
        if (direction != Direction::read) {
            problem.text = fmt::format("0x{:x} is a kernel parameter, which cannot be written", address);
            return nullptr;
        }
        if (offset > parameters.size() || size > parameters.size() - offset) {
            problem.text = fmt::format("{} bytes at 0x{:x} are beyond the kernel's parameters of {} bytes", size,
                                       address, parameters.size());
            return nullptr;
        }
        return const_cast<std::byte*>(parameters.data()) + offset;
    }
    const AllocationCache::Entry* const entry = cluster.allocations->find(grid.memory, address);
    if (entry == nullptr || size > entry->size - (address - entry->begin)) {
        if (Allocation* const allocation = find_overrun(cluster, address, size)) {
            const std::uint64_t offset = address - allocation->address;
            problem.text = fmt::format("{} bytes at 0x{:x}: {}; {}", size, address,
                                       grid.memory.describe(address + size - 1), overrun_note);
            if (direction != Direction::read) {
                allocation->mark_initialized(offset, bytes_inside(*allocation, offset, size));
            }
            return allocation->bytes + offset;
        }
        problem.text = fmt::format("{} bytes at 0x{:x}: {}", size, address,
                                   grid.memory.describe(entry == nullptr ? address : address + size - 1));
        return nullptr;
    }
    if (entry->allocation->constant && direction != Direction::read) {
        problem.text = fmt::format("0x{:x} is in {}, constant memory, which kernels cannot write", address,
                                   entry->allocation->label);
        return nullptr;
    }
    const std::uint64_t offset = address - entry->begin;
    if (direction != Direction::write && grid.options.check && !entry->allocation->is_initialized(offset, size)) {
        problem.kind = FindingKind::uninitialized_global;
        problem.text = fmt::format("some of the {} bytes at 0x{:x} were never written: {}", size, address,
                                   grid.memory.describe(address));
    }
    if (direction != Direction::read) {
        entry->allocation->mark_initialized(offset, size);
        entry->allocation->note_kernel_write();
    }
    return entry->allocation->bytes + offset;
}

}  // namespace tessera::emulator
