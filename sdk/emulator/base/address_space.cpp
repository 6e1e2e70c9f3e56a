#include "base/address_space.hpp"
#include "base/rounding.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

namespace tessera::emulator {

namespace {

constexpr std::uint64_t largest_arena = std::uint64_t{8} << 40U;   // of virtual addresses; unused pages cost nothing
constexpr std::uint64_t smallest_arena = std::uint64_t{1} << 30U;  // for processes with few virtual addresses
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t guard = page;          // between allocations, so that an overrun is out of bounds
constexpr std::uint64_t small_size = 1 << 20;  // below it, addresses are aligned to exactly small_alignment
constexpr std::uint64_t small_alignment = AddressSpace::granularity;  // as cudaMalloc's
constexpr std::uint64_t large_alignment = 2 << 20;
constexpr std::uint64_t patterned_bytes = 4 << 20;  // at the start of each allocation
constexpr int pattern = 0xFF;                       // a NaN in every floating-point format
constexpr std::size_t remembered_frees = 4096;

std::byte* map_pages(std::uint64_t bytes, int protection)
{
    void* address = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

std::string_view name_of(MemoryKind kind)
{
    switch (kind) {
        case MemoryKind::device: return "device";
        case MemoryKind::managed: return "managed";
        case MemoryKind::pinned: return "pinned host";
        case MemoryKind::module: return "module variable";
    }
    return "unknown";
}

std::string describe(const Allocation& allocation)
{
    std::string text = fmt::format("{} allocation of {} bytes at {:#x}", name_of(allocation.kind), allocation.size,
                                   allocation.address);
    if (!allocation.label.empty()) {
        text += fmt::format(" ({})", allocation.label);
    }
    return text;
}

std::uint64_t next_generation() noexcept
{
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

/// Calls `body(word, mask)` for the words whose bits represent `count` bytes from `offset`. Ends early if it returns
/// false.
template <typename Body>
bool for_each_word(std::uint64_t offset, std::uint64_t count, Body&& body)
{
    const std::uint64_t end = offset + count;
    while (offset < end) {
        const unsigned bit = static_cast<unsigned>(offset % 64);
        const std::uint64_t bits = std::min<std::uint64_t>(64 - bit, end - offset);
        const std::uint64_t mask = (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1) << bit;
        if (!body(offset / 64, mask)) {
            return false;
        }
        offset += bits;
    }
    return true;
}

}  // namespace

void Allocation::mark_initialized(std::uint64_t offset, std::uint64_t count) noexcept
{
    if (initialized == nullptr || complete.load(std::memory_order_relaxed)) {
        return;
    }
    for_each_word(offset, count, [this](std::uint64_t word, std::uint64_t mask) {
        // Most writes hit bytes that were written before: skip the locked instruction for them.
        if ((initialized[word].load(std::memory_order_relaxed) & mask) != mask) {
            initialized[word].fetch_or(mask, std::memory_order_relaxed);
        }
        return true;
    });
    if (offset == 0 && count >= size) {
        complete.store(true, std::memory_order_relaxed);
    }
}

bool Allocation::is_initialized(std::uint64_t offset, std::uint64_t count) const noexcept
{
    return initialized == nullptr || complete.load(std::memory_order_relaxed) ||
           for_each_word(offset, count, [this](std::uint64_t word, std::uint64_t mask) {
               return (initialized[word].load(std::memory_order_relaxed) & mask) == mask;
           });
}

void Allocation::mark_uninitialized(std::uint64_t offset, std::uint64_t count) noexcept
{
    if (initialized == nullptr) {
        return;
    }
    complete.store(false, std::memory_order_relaxed);
    for_each_word(offset, count, [this](std::uint64_t word, std::uint64_t mask) {
        if ((initialized[word].load(std::memory_order_relaxed) & mask) != 0) {  // spares untouched pages
            initialized[word].fetch_and(~mask, std::memory_order_relaxed);
        }
        return true;
    });
}

/// The process may have fewer virtual addresses than the smallest arena needs: two of its size, and an eighth.
class TooFewAddresses final : public std::bad_alloc {
public:
    [[nodiscard]] const char* what() const noexcept override
    {
        return "it needs at least 2.125 GiB of virtual addresses";
    }
};
static_assert(smallest_arena == std::uint64_t{1} << 30U);

/// Device memory uses three ranges of virtual addresses of equal size: the addresses that programs see, which nobody
/// can access; the bytes; and the bits for initialized bytes. Pages are committed at the first access.
struct AddressSpace::Arena {
    std::uint64_t size = 0;
    std::byte* visible = nullptr;
    std::byte* bytes = nullptr;
    std::byte* shadow = nullptr;
    std::map<std::uint64_t, std::uint64_t> blocks;  // in use: offset to length with guard
    std::uint64_t cursor = 0;                       // addresses are reused late, so that stale pointers are found

    Arena()
    {
        for (size = largest_arena; size >= smallest_arena; size /= 2) {
            visible = map_pages(size, PROT_NONE);
            bytes = map_pages(size, PROT_READ | PROT_WRITE);
            shadow = map_pages(size / 8, PROT_READ | PROT_WRITE);
            if (visible != nullptr && bytes != nullptr && shadow != nullptr) {
                ::madvise(bytes, size, MADV_DONTDUMP);
                ::madvise(shadow, size / 8, MADV_DONTDUMP);
                return;
            }
            unmap();
        }
        throw TooFewAddresses();
    }
    ~Arena() { unmap(); }
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    void unmap() noexcept
    {
        for (auto [start, length] : {std::pair{visible, size}, {bytes, size}, {shadow, size / 8}}) {
            if (start != nullptr) {
                ::munmap(start, length);
            }
        }
        visible = bytes = shadow = nullptr;
    }

    [[nodiscard]] std::uint64_t base() const noexcept { return reinterpret_cast<std::uint64_t>(visible); }

    /// Offset of `length` free bytes, or `size` if there are none. Searches after the cursor first, then from the
    /// start.
    std::uint64_t take(std::uint64_t length, std::uint64_t alignment)
    {
        for (const std::uint64_t start : {cursor, std::uint64_t{0}}) {
            std::uint64_t candidate = start;
            while (true) {
                const std::uint64_t visible_base = base();
                candidate = round_up(visible_base + candidate, alignment) - visible_base;
                if (candidate + length > size || candidate + length < candidate) {
                    break;
                }
                auto next = blocks.upper_bound(candidate);
                if (next != blocks.begin()) {
                    const auto previous = std::prev(next);
                    if (previous->first + previous->second > candidate) {
                        candidate = previous->first + previous->second;
                        continue;
                    }
                }
                if (next != blocks.end() && candidate + length > next->first) {
                    candidate = next->first + next->second;
                    continue;
                }
                blocks.emplace(candidate, length);
                cursor = candidate + length;
                return candidate;
            }
        }
        return size;
    }

    /// Returns the pages of a block to the system. For its next owner no byte is marked as written.
    void give_back(std::uint64_t offset)
    {
        const auto block = blocks.find(offset);
        ::madvise(bytes + offset, block->second, MADV_DONTNEED);
        const std::uint64_t shadow_start = offset / 8;
        const std::uint64_t shadow_end = (offset + block->second) / 8;
        const std::uint64_t whole_start = std::min(round_up(shadow_start, page), shadow_end);
        const std::uint64_t whole_end = std::max(shadow_end / page * page, whole_start);
        std::memset(shadow + shadow_start, 0, whole_start - shadow_start);
        if (whole_end > whole_start) {
            ::madvise(shadow + whole_start, whole_end - whole_start, MADV_DONTNEED);
        }
        std::memset(shadow + whole_end, 0, shadow_end - whole_end);
        blocks.erase(block);
    }
};

AddressSpace::AddressSpace() : arena_(std::make_unique<Arena>()), generation_(next_generation()) {}

AddressSpace::~AddressSpace()
{
    for (const auto& [address, allocation] : allocations_) {
        if (allocation->mapped_bytes != 0) {
            ::munmap(allocation->bytes, allocation->mapped_bytes);
        }
    }
}

std::uint64_t AddressSpace::allocate(std::uint64_t size, MemoryKind kind, int device, std::string label)
{
    auto allocation = std::make_unique<Allocation>();
    allocation->size = size;
    allocation->kind = kind;
    allocation->device = device;
    allocation->label = std::move(label);

    const std::scoped_lock lock(mutex_);
    if (kind == MemoryKind::managed || kind == MemoryKind::pinned) {
        const std::uint64_t length = round_up(size, page) + guard;
        if (length < size) {
            return 0;
        }
        allocation->bytes = map_pages(length, PROT_READ | PROT_WRITE);
        if (allocation->bytes == nullptr) {
            return 0;
        }
        ::mprotect(allocation->bytes + (length - guard), guard, PROT_NONE);
        allocation->mapped_bytes = length;
        allocation->address = reinterpret_cast<std::uint64_t>(allocation->bytes);
    } else {
        if (size > arena_->size) {
            return 0;
        }
        const bool is_small = size < small_size;
        const std::uint64_t lead = is_small ? small_alignment : 0;
        const std::uint64_t length = round_up(lead + size, page) + guard;
        const std::uint64_t offset = arena_->take(length, is_small ? page : large_alignment);
        if (offset == arena_->size) {
            return 0;
        }
        allocation->address = arena_->base() + offset + lead;
        allocation->bytes = arena_->bytes + offset + lead;
        if (kind == MemoryKind::device) {
            allocation->initialized =
                reinterpret_cast<std::atomic<std::uint64_t>*>(arena_->shadow + (offset + lead) / 8);
            std::memset(allocation->bytes, pattern, std::min(round_up(size, granularity), patterned_bytes));
        }
    }
    allocation->id = next_id_++;
    used_[device] += kind == MemoryKind::pinned ? 0 : size;
    freed_.erase(allocation->address);
    const std::uint64_t address = allocation->address;
    allocations_[address] = std::move(allocation);
    generation_.store(next_generation(), std::memory_order_release);
    return address;
}

std::uint64_t AddressSpace::allocate_on_heap(std::uint64_t size, int device, std::uint64_t limit)
{
    {
        const std::scoped_lock lock(mutex_);
        std::uint64_t& used = heap_used_[device];
        if (used > limit || size > limit - used) {
            return 0;
        }
        used += size;
    }
    const std::uint64_t address = allocate(size, MemoryKind::device, device, "device heap");
    const std::scoped_lock lock(mutex_);
    if (address == 0) {
        heap_used_[device] -= size;
    } else {
        heap_blocks_[address] = device;
    }
    return address;
}

bool AddressSpace::free_on_heap(std::uint64_t address)
{
    {
        const std::scoped_lock lock(mutex_);
        const auto block = heap_blocks_.find(address);
        if (block == heap_blocks_.end()) {
            return false;
        }
        heap_used_[block->second] -= allocations_.at(address)->size;
        heap_blocks_.erase(block);
    }
    return free(address);
}

void AddressSpace::free_heap(int device)
{
    std::vector<std::uint64_t> blocks;
    {
        const std::shared_lock lock(mutex_);
        for (const auto& [address, owner] : heap_blocks_) {
            if (owner == device) {
                blocks.push_back(address);
            }
        }
    }
    for (const std::uint64_t address : blocks) {
        free_on_heap(address);
    }
}

void AddressSpace::add_host(void* bytes, std::uint64_t size)
{
    auto allocation = std::make_unique<Allocation>();
    allocation->address = reinterpret_cast<std::uint64_t>(bytes);
    allocation->size = size;
    allocation->kind = MemoryKind::pinned;
    allocation->bytes = static_cast<std::byte*>(bytes);
    const std::scoped_lock lock(mutex_);
    allocation->id = next_id_++;
    freed_.erase(allocation->address);
    allocations_[allocation->address] = std::move(allocation);
    generation_.store(next_generation(), std::memory_order_release);
}

bool AddressSpace::free(std::uint64_t address)
{
    const std::scoped_lock lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) {
        return false;
    }
    std::unique_ptr<Allocation> allocation = std::move(found->second);
    allocations_.erase(found);
    generation_.store(next_generation(), std::memory_order_release);
    if (allocation->kind != MemoryKind::pinned) {
        used_[allocation->device] -= allocation->size;
    }
    if (allocation->mapped_bytes != 0) {
        ::munmap(allocation->bytes, allocation->mapped_bytes);
    } else if (is_device_address(address)) {
        const std::uint64_t lead = allocation->size < small_size ? small_alignment : 0;
        arena_->give_back(address - arena_->base() - lead);
    }
    if (freed_.size() >= remembered_frees) {
        freed_.erase(freed_.begin());
    }
    freed_[address] = allocation->size;
    graves_.push_back(std::move(allocation));
    if (graves_.size() > remembered_frees) {
        graves_.pop_front();
    }
    return true;
}

Allocation* AddressSpace::find(std::uint64_t address) const
{
    const std::shared_lock lock(mutex_);
    auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) {
        return nullptr;
    }
    const auto& allocation = std::prev(next)->second;
    return address - allocation->address < allocation->size ? allocation.get() : nullptr;
}

Allocation* AddressSpace::find_with_padding(std::uint64_t address, std::uint64_t size) const
{
    const std::shared_lock lock(mutex_);
    const auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) {
        return nullptr;
    }
    Allocation* const allocation = std::prev(next)->second.get();
    const bool is_own = is_device_address(allocation->address) || allocation->mapped_bytes != 0;
    const std::uint64_t offset = address - allocation->address;
    const std::uint64_t end = round_up(allocation->size, granularity);
    return is_own && allocation->kind != MemoryKind::module && offset < end && size <= end - offset ? allocation
                                                                                                    : nullptr;
}

bool AddressSpace::is_device_address(std::uint64_t address) const noexcept
{
    return address - arena_->base() < arena_->size;
}

std::string AddressSpace::describe(std::uint64_t address) const
{
    const std::shared_lock lock(mutex_);
    const auto next = allocations_.upper_bound(address);
    const Allocation* before = next == allocations_.begin() ? nullptr : std::prev(next)->second.get();
    if (before != nullptr && address - before->address < before->size) {
        return fmt::format("{:#x} is byte {} of the {}", address, address - before->address,
                           emulator::describe(*before));
    }
    const auto freed_next = freed_.upper_bound(address);
    if (freed_next != freed_.begin()) {
        const auto& [start, size] = *std::prev(freed_next);
        if (address - start < size) {
            return fmt::format("{:#x} is byte {} of an allocation of {} bytes at {:#x} that was freed", address,
                               address - start, size, start);
        }
    }
    constexpr std::uint64_t near = std::uint64_t{256} << 20U;
    if (before != nullptr && address - (before->address + before->size) < near) {
        return fmt::format("{:#x} is {} bytes after the end of the {}", address,
                           address - (before->address + before->size), emulator::describe(*before));
    }
    if (next != allocations_.end() && next->first - address < near) {
        return fmt::format("{:#x} is {} bytes before the {}", address, next->first - address,
                           emulator::describe(*next->second));
    }
    if (address == 0) {
        return "the address is null";
    }
    return fmt::format("{:#x} is not near any allocation{}", address,
                       is_device_address(address) ? "" : "; a kernel can use host memory only if it is pinned");
}

std::uint64_t AddressSpace::used(int device) const
{
    const std::shared_lock lock(mutex_);
    const auto found = used_.find(device);
    return found == used_.end() ? 0 : found->second;
}

std::vector<const Allocation*> AddressSpace::allocations() const
{
    const std::shared_lock lock(mutex_);
    std::vector<const Allocation*> all;
    all.reserve(allocations_.size());
    for (const auto& [address, allocation] : allocations_) {
        all.push_back(allocation.get());
    }
    return all;
}

}  // namespace tessera::emulator
