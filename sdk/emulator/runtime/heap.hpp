#pragma once

// What the program allocated, and by which call: decides which call may free it, and what is left at the end.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "machine/address_space.hpp"
#include "runtime/host_stack.hpp"

namespace tessera::emulator {

/// A memory pool, cudaMemPool_t. Pools share the device's memory; only their figures are kept apart.
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
    unsigned flags = 0;  ///< of cudaHostAlloc and its kin
    Pool* pool = nullptr;
    std::shared_ptr<const HostStack> host = nullptr;  ///< who allocated it; null without checks
    bool free_is_pending = false;                     ///< cudaFreeAsync was called; its stream is not there yet
};

/// May be used from several threads.
class Heap {
public:
    explicit Heap(AddressSpace& memory) : memory_(memory) {}

    /// Zero if `limit` bytes of the device would not suffice, or the host has no memory left.
    [[nodiscard]] std::uint64_t allocate(std::uint64_t size, HeapRecord record, std::uint64_t limit);
    void add_registered(void* bytes, std::uint64_t size, unsigned flags);

    /// The record of the allocation that starts at `address`.
    [[nodiscard]] std::optional<HeapRecord> find(std::uint64_t address) const;
    /// The record of the allocation that contains `address`.
    [[nodiscard]] std::optional<HeapRecord> find_containing(std::uint64_t address) const;
    /// Frees if the allocation that starts at `address` is of one of `origins` and not already being freed.
    bool free(std::uint64_t address, const std::set<Origin>& origins);
    /// True, once, if the allocation may be freed in stream order.
    bool begin_free(std::uint64_t address);
    /// The stream has reached the free.
    void finish_free(std::uint64_t address);

    /// Returns what pools hold beyond `keep` bytes and beyond their used bytes.
    void trim(Pool& pool, std::uint64_t keep);
    /// What a synchronization does to pools: everything beyond their thresholds is returned.
    void trim_all(const std::vector<Pool*>& pools);

    [[nodiscard]] std::map<std::uint64_t, HeapRecord> living() const;
    [[nodiscard]] std::mutex& mutex() const { return mutex_; }  ///< guards the figures of pools, too

private:
    void release(std::map<std::uint64_t, HeapRecord>::iterator record);

    AddressSpace& memory_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, HeapRecord> records_;
};

}  // namespace tessera::emulator
