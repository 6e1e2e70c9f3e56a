#pragma once

// Memory that is free again, of blocks of one size.

#include <cstddef>
#include <new>

namespace tessera::emulator {

/// Blocks from ::operator new, each large and aligned enough for a pointer. For `thread_local` objects: what is added after the
/// destructor is not kept.
class FreeList {
public:
    FreeList() = default;
    FreeList(const FreeList&) = delete;
    FreeList& operator=(const FreeList&) = delete;
    ~FreeList()
    {
        is_closed_ = true;
        while (void* const block = take()) {
            ::operator delete(block);
        }
    }

    /// Returns a block, or null if there is none.
    [[nodiscard]] void* take() noexcept
    {
        Block* const taken = first_;
        if (taken != nullptr) {
            first_ = taken->next;
            --count_;
        }
        return taken;
    }
    /// Keeps the block, or frees it if there are `most` already.
    void add(void* block, std::size_t most) noexcept
    {
        if (is_closed_ || count_ >= most) {
            ::operator delete(block);
            return;
        }
        first_ = new (block) Block{first_};
        ++count_;
    }

private:
    struct Block {
        Block* next;
    };
    Block* first_ = nullptr;
    std::size_t count_ = 0;
    bool is_closed_ = false;
};

}  // namespace tessera::emulator
