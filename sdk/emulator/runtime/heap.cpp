#include "runtime/heap.hpp"

#include <algorithm>

namespace tessera::emulator {

namespace {

constexpr std::uint64_t pool_granularity = 32 << 20;  // growth of a pool's reserved memory

std::uint64_t pool_rounded(std::uint64_t bytes)
{
    return (bytes + pool_granularity - 1) / pool_granularity * pool_granularity;
}

MemoryKind kind_of(Origin origin)
{
    switch (origin) {
        case Origin::managed: return MemoryKind::managed;
        case Origin::host:
        case Origin::registered: return MemoryKind::pinned;
        default: return MemoryKind::device;
    }
}

}  // namespace

std::uint64_t Heap::allocate(std::uint64_t size, HeapRecord record, std::uint64_t limit)
{
    const std::scoped_lock lock(mutex_);
    const std::uint64_t used = memory_.used(record.device);
    const bool is_on_device = record.origin != Origin::host && record.origin != Origin::managed;
    if (is_on_device && (size > limit || used > limit - size)) {
        return 0;
    }
    if (record.pool != nullptr && record.pool->limit != 0 && record.pool->used + size > record.pool->limit) {
        return 0;
    }
    const std::uint64_t address = memory_.allocate(size, kind_of(record.origin), record.device);
    if (address == 0) {
        return 0;
    }
    record.size = size;
    if (Pool* pool = record.pool; pool != nullptr) {
        pool->used += size;
        pool->used_high = std::max(pool->used_high, pool->used);
        pool->reserved = std::max(pool->reserved, pool_rounded(pool->used));
        pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
    }
    records_[address] = record;
    return address;
}

void Heap::add_registered(void* bytes, std::uint64_t size, unsigned flags)
{
    const std::scoped_lock lock(mutex_);
    memory_.add_host(bytes, size);
    records_[reinterpret_cast<std::uint64_t>(bytes)] = {.origin = Origin::registered, .size = size, .flags = flags};
}

std::optional<HeapRecord> Heap::find(std::uint64_t address) const
{
    const std::scoped_lock lock(mutex_);
    const auto found = records_.find(address);
    return found == records_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<HeapRecord> Heap::find_containing(std::uint64_t address) const
{
    const std::scoped_lock lock(mutex_);
    const auto found = containing(address);
    return found == records_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint64_t> Heap::start_of(std::uint64_t address) const
{
    const std::scoped_lock lock(mutex_);
    const auto found = containing(address);
    return found == records_.end() ? std::nullopt : std::optional(found->first);
}

std::map<std::uint64_t, HeapRecord>::const_iterator Heap::containing(std::uint64_t address) const
{
    const auto next = records_.upper_bound(address);
    if (next == records_.begin()) {
        return records_.end();
    }
    const auto found = std::prev(next);
    return address - found->first < found->second.size ? found : records_.end();
}

void Heap::release(std::map<std::uint64_t, HeapRecord>::iterator record)
{
    if (Pool* pool = record->second.pool; pool != nullptr) {
        pool->used -= record->second.size;
    }
    memory_.free(record->first);
    records_.erase(record);
}

bool Heap::free(std::uint64_t address, const std::set<Origin>& origins)
{
    const std::scoped_lock lock(mutex_);
    const auto found = records_.find(address);
    if (found == records_.end() || !origins.contains(found->second.origin) || found->second.free_is_pending) {
        return false;
    }
    release(found);
    return true;
}

bool Heap::begin_free(std::uint64_t address)
{
    const std::scoped_lock lock(mutex_);
    const auto found = records_.find(address);
    if (found == records_.end() || found->second.free_is_pending ||
        kind_of(found->second.origin) != MemoryKind::device) {
        return false;
    }
    found->second.free_is_pending = true;
    return true;
}

void Heap::finish_free(std::uint64_t address)
{
    const std::scoped_lock lock(mutex_);
    if (const auto found = records_.find(address); found != records_.end()) {
        release(found);
    }
}

void Heap::trim(Pool& pool, std::uint64_t keep)
{
    const std::scoped_lock lock(mutex_);
    pool.reserved = std::min(pool.reserved, std::max(pool_rounded(pool.used), keep));
}

void Heap::trim_all(const std::vector<Pool*>& pools)
{
    for (Pool* pool : pools) {
        trim(*pool, pool->release_threshold);
    }
}

std::map<std::uint64_t, HeapRecord> Heap::living() const
{
    const std::scoped_lock lock(mutex_);
    return records_;
}

}  // namespace tessera::emulator
