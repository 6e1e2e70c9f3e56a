#pragma once

// Memory of clusters that have ended, for the next ones: a grid has thousands, and each needs registers and shared
// memory for a moment.

#include <cstddef>
#include <utility>
#include <vector>

namespace tessera::emulator {

/// Of one CPU thread.
class SpareBuffers {
public:
    static SpareBuffers& of_thread()
    {
        thread_local SpareBuffers buffers;
        return buffers;
    }

    /// `bytes` of them, with this value.
    [[nodiscard]] std::vector<std::byte> take(std::size_t bytes, std::byte value)
    {
        std::vector<std::byte> buffer;
        for (std::size_t i = spare_.size(); i > 0 && i + looked_at > spare_.size(); --i) {
            if (spare_[i - 1].capacity() >= bytes && spare_[i - 1].capacity() / 4 <= bytes) {
                std::swap(spare_[i - 1], spare_.back());
                buffer = std::move(spare_.back());
                spare_.pop_back();
                spare_bytes_ -= buffer.capacity();
                break;
            }
        }
        buffer.assign(bytes, value);
        return buffer;
    }
    void give_back(std::vector<std::byte> buffer)
    {
        if (buffer.capacity() != 0 && spare_bytes_ + buffer.capacity() <= most_bytes) {
            spare_bytes_ += buffer.capacity();
            spare_.push_back(std::move(buffer));
        }
    }

private:
    static constexpr std::size_t looked_at = 8, most_bytes = std::size_t{16} << 20;
    std::vector<std::vector<std::byte>> spare_;
    std::size_t spare_bytes_ = 0;
};

}  // namespace tessera::emulator
