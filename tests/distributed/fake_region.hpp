#pragma once

// Memory that the ranks of a stand-in communicator share.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fake_nccl {

inline constexpr int most_ranks = 8;
inline constexpr std::uint64_t most_windows = 64;
inline constexpr int most_splits = 16;
inline constexpr std::size_t slot_bytes = std::size_t{256} << 10;

/// One message at a time from one rank to another, or to itself.
struct Channel {
    std::atomic<std::uint64_t> written;
    std::atomic<std::uint64_t> read;
};

/// What each rank asks for when a communicator is divided.
struct Split {
    std::atomic<int> arrived;
    std::atomic<int> color[most_ranks];
    std::atomic<int> key[most_ranks];
};

struct Shared {
    std::atomic<int> joined;
    std::atomic<int> left;
    std::atomic<std::uint64_t> windows[most_ranks];
    std::atomic<std::byte*> window_begin[most_windows][most_ranks];  // where this process has it
    std::atomic<int> process[most_ranks];
    std::atomic<std::uint64_t> ready[most_ranks];     // copies that a rank has begun, and that others may write for
    std::atomic<std::uint64_t> complete[most_ranks];  // copies that a rank has ended
    Split splits[most_splits];
    Channel channels[most_ranks][most_ranks];
};

class Region {
public:
    explicit Region(std::string path);
    ~Region();
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

    Shared& shared() const { return *static_cast<Shared*>(memory_); }
    std::byte* slot(int from, int to) const;
    /// Where a rank's sums are until they are copied to the device.
    std::byte* result(int rank) const;
    void remove_file() const;
    const std::string& path() const { return path_; }

private:
    std::string path_;
    void* memory_ = nullptr;
};

}  // namespace fake_nccl
