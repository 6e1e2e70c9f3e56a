#pragma once

// Global memory: every address that a kernel may access, its bounds, and which of its bytes were ever written.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace tessera::emulator {

enum class MemoryKind : std::uint8_t {
    device,   ///< cudaMalloc and pools
    managed,  ///< cudaMallocManaged
    pinned,   ///< cudaMallocHost, cudaHostRegister: the host's own addresses
    module,   ///< .global and .const variables of a loaded module
};

/// One allocation. Objects live until freed; kernels see them through AddressSpace::find.
struct Allocation {
    std::uint64_t address = 0;  ///< as programs see it
    std::uint64_t size = 0;     ///< as requested; an access beyond it is out of bounds
    MemoryKind kind = MemoryKind::device;
    int device = 0;
    /// The bytes. For device memory this is another mapping of the same pages: the host cannot access the addresses
    /// that programs hold, so a host program that dereferences one is stopped, as with a GPU.
    std::byte* bytes = nullptr;
    /// One bit per byte, set when the byte is first written; null if everything counts as initialized.
    std::atomic<std::uint64_t>* initialized = nullptr;
    std::string label;  ///< name of a module's variable, else empty
    /// A kernel has written pinned memory, of any allocation, since this was last reset.
    inline static std::atomic<bool> host_memory_written{false};
    /// Call when a kernel writes.
    void note_kernel_write() const noexcept
    {
        if (kind == MemoryKind::pinned && !host_memory_written.load(std::memory_order_relaxed)) {
            host_memory_written.store(true, std::memory_order_relaxed);
        }
    }
    std::uint64_t mapped_bytes = 0;  ///< size of its own mapping, which free() removes; 0: none
    std::uint64_t id = 0;
    bool constant = false;  ///< a .const variable: kernels cannot write it
    /// All bytes count as initialized: saves looking at the bits.
    std::atomic<bool> complete{false};

    /// Offsets are relative to `address`; the range must be in bounds.
    void mark_initialized(std::uint64_t offset, std::uint64_t count) noexcept;
    [[nodiscard]] bool is_initialized(std::uint64_t offset, std::uint64_t count) const noexcept;
    /// Makes the bytes undefined again: the memory has a new owner, or was overwritten with undefined bytes.
    void mark_uninitialized(std::uint64_t offset, std::uint64_t count) noexcept;
};

/// The devices' memory and the pinned host memory of one process. All functions are thread-safe.
class AddressSpace {
public:
    AddressSpace();
    ~AddressSpace();
    AddressSpace(const AddressSpace&) = delete;
    AddressSpace& operator=(const AddressSpace&) = delete;

    /// Allocates memory, aligned to at least 256 bytes, with undefined contents (a pattern). Returns 0 if the limit or
    /// the host's memory is exhausted. `size` > 0.
    [[nodiscard]] std::uint64_t allocate(std::uint64_t size, MemoryKind kind, int device, std::string label = {});
    /// Memory for device malloc. Returns 0 also if the heap of `device` would have more than `limit` bytes in use.
    [[nodiscard]] std::uint64_t allocate_on_heap(std::uint64_t size, int device, std::uint64_t limit);
    /// Returns false if `address` is not the start of living memory of a heap.
    bool free_on_heap(std::uint64_t address);
    /// Frees all of the heap of `device`.
    void free_heap(int device);
    /// Makes existing host memory accessible to kernels.
    void add_host(void* bytes, std::uint64_t size);
    /// Returns false if `address` is not the start of a living allocation.
    bool free(std::uint64_t address);

    /// The allocation that contains `address`; null if there is none. The pointer stays valid until the allocation is
    /// freed, and a while longer for kernels that are still running.
    [[nodiscard]] Allocation* find(std::uint64_t address) const;

    /// The allocation that contains all of [address, address + size) when it is rounded up to a multiple of
    /// `granularity`; null if there is none. No other allocation uses the padding. Variables of modules have none, because
    /// on a GPU they are next to each other, nor has host memory that was registered.
    [[nodiscard]] Allocation* find_with_padding(std::uint64_t address, std::uint64_t size) const;
    static constexpr std::uint64_t granularity = 512;  ///< of a GPU's allocations

    /// Returns true if `address` is in the range of device memory. If find() is then null, it was never allocated or
    /// was freed; otherwise the address is the host's own.
    [[nodiscard]] bool is_device_address(std::uint64_t address) const noexcept;

    /// "0x7f.. is 16 bytes after a device allocation of 1024 bytes at 0x7f..", for messages.
    [[nodiscard]] std::string describe(std::uint64_t address) const;

    /// Changes with each allocate and free, so that a reader may keep the result of find(). No two address spaces of
    /// the process have the same number, at any time.
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

    /// Bytes in use by `device`.
    [[nodiscard]] std::uint64_t used(int device) const;
    /// Every living allocation, by address.
    [[nodiscard]] std::vector<const Allocation*> allocations() const;

private:
    struct Arena;
    std::unique_ptr<Arena> arena_;
    mutable std::shared_mutex mutex_;
    std::map<std::uint64_t, std::unique_ptr<Allocation>> allocations_;
    std::map<std::uint64_t, std::uint64_t> freed_;    ///< recently freed: address to size, for messages
    std::deque<std::unique_ptr<Allocation>> graves_;  ///< recently freed: a kernel may still hold a pointer
    std::map<int, std::uint64_t> used_;
    std::map<int, std::uint64_t> heap_used_;
    std::map<std::uint64_t, int> heap_blocks_;  ///< living memory of device malloc: address to device
    std::atomic<std::uint64_t> generation_;
    std::uint64_t next_id_ = 1;
};

}  // namespace tessera::emulator
