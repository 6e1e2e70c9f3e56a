#pragma once

/// The latest launches of a plan, for launches with the same operands: these need no checks and encode nothing.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "gemm/encoded_launch.hpp"
#include "gemm/workspace.hpp"
#include "tessera/gemm.hpp"

namespace tessera::detail {

/// Returns true if all values that a launch takes are the same, bit by bit.
bool same_operands(const GemmOperands& one, const Epilogue& one_epilogue, const GemmOperands& other,
                   const Epilogue& other_epilogue) noexcept;

/// Keeps the launches of the plan's latest `capacity` operand sets. Never waits: a launch that finds no free entry is
/// not kept.
///
/// @par Thread safety
/// All functions may be called at once.
class SeenLaunches {
public:
    static constexpr std::size_t capacity = 8;

    struct Entry {
        std::atomic<std::uint64_t> hash{0};   // of the operands, so that few entries are compared; 0: empty
        std::atomic<std::uint32_t> users{0};  // threads that read the entry; or `writer`
        GemmOperands operands;                // as the caller gave them
        Epilogue epilogue;
        GemmProblem problem;  // of the launch
        WorkspaceNeed need;
        WorkspaceMemory memory;  // that the arguments refer to
        EncodedLaunch launch;
    };

    /// A launch that was found. While it exists, its entry does not change.
    class Hit {
    public:
        Hit() = default;
        explicit Hit(Entry* entry) noexcept : entry_(entry) {}
        Hit(Hit&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
        Hit& operator=(Hit&& other) noexcept
        {
            std::swap(entry_, other.entry_);
            return *this;
        }
        ~Hit();

        explicit operator bool() const noexcept { return entry_ != nullptr; }
        const Entry* operator->() const noexcept { return entry_; }

    private:
        Entry* entry_ = nullptr;
    };

    SeenLaunches() = default;
    SeenLaunches(const SeenLaunches&) = delete;
    SeenLaunches& operator=(const SeenLaunches&) = delete;

    /// Returns a launch of the same operands; with `memory`, one that uses this workspace.
    Hit find(const GemmOperands& operands, const Epilogue& epilogue, const WorkspaceMemory* memory = nullptr) noexcept;

    /// Keeps a launch in the place of the one that was kept first.
    void keep(const GemmOperands& operands, const Epilogue& epilogue, const GemmProblem& problem, WorkspaceNeed need,
              const WorkspaceMemory& memory, const EncodedLaunch& launch) noexcept;

private:
    friend class SeenLaunchesRef;

    static constexpr std::uint32_t writer = 0x8000'0000U;

    std::array<Entry, capacity> entries_;
    std::atomic<std::uint32_t> next_{0};
    std::atomic<std::uint32_t> owners_{1};  // plans that are copies of each other
};

}  // namespace tessera::detail
