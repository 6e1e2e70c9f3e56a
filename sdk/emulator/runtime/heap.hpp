#pragma once

// The program's allocations and the calls that made them: decides which call may free them, and what leaked at the end.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/address_space.hpp"
#include "runtime/host_stack.hpp"

namespace tessera::emulator {

/// A memory pool, cudaMemPool_t. Pools share the device's memory; only their statistics are separate.
struct Pool {
    int device = 0;
    bool is_default = false;
    std::uint64_t limit = 0;  ///< bytes, 0: none
    std::uint64_t release_threshold = 0;
    int reuse[3] = {1, 1, 1};  ///< follow event dependencies, opportunistic, internal dependencies
    std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
    std::map<int, int> access;  ///< device to cudaMemAccessFlags
};

enum class Origin : std::uint8_t { plain, pool, managed, host, registered, graph };

struct HeapRecord {
    Origin origin = Origin::plain;
    int device = 0;
    std::uint64_t size = 0;
    unsigned flags = 0;  ///< of cudaHostAlloc and similar calls
    Pool* pool = nullptr;
    std::shared_ptr<const HostStack> host = nullptr;  ///< who allocated it; null without checks
    bool free_is_pending = false;                     ///< cudaFreeAsync was called; its stream has not reached it
};

/// Thread-safe.
class Heap {
public:
    explicit Heap(AddressSpace& memory) : memory_(memory) {}

    /// Returns 0 if `limit` bytes of the device would be exceeded, or the host is out of memory.
    [[nodiscard]] std::uint64_t allocate(std::uint64_t size, HeapRecord record, std::uint64_t limit);
    void add_registered(void* bytes, std::uint64_t size, unsigned flags);

    /// The record of the allocation that starts at `address`.
    [[nodiscard]] std::optional<HeapRecord> find(std::uint64_t address) const;
    /// The record of the allocation that contains `address`.
    [[nodiscard]] std::optional<HeapRecord> find_containing(std::uint64_t address) const;
    /// Where that allocation starts.
    [[nodiscard]] std::optional<std::uint64_t> start_of(std::uint64_t address) const;
    /// Frees the allocation that starts at `address` if it is from one of `origins` and not already being freed.
    bool free(std::uint64_t address, const std::set<Origin>& origins);
    /// Returns true, once, if the allocation may be freed in stream order.
    bool begin_free(std::uint64_t address);
    /// The stream has reached the free.
    void finish_free(std::uint64_t address);

    /// Releases the memory that a pool holds beyond `keep` bytes and beyond its used bytes.
    void trim(Pool& pool, std::uint64_t keep);
    /// The effect of a synchronization on pools: releases everything beyond their thresholds.
    void trim_all(const std::vector<Pool*>& pools);

    [[nodiscard]] std::map<std::uint64_t, HeapRecord> living() const;
    [[nodiscard]] std::mutex& mutex() const { return mutex_; }  ///< also guards the statistics of pools

private:
    [[nodiscard]] std::map<std::uint64_t, HeapRecord>::const_iterator containing(std::uint64_t address) const;
    void release(std::map<std::uint64_t, HeapRecord>::iterator record);

    AddressSpace& memory_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, HeapRecord> records_;
};

}  // namespace tessera::emulator
