#pragma once

/// The latest launches, for launches with the same operands: these need no checks and encode nothing. Each plan keeps its
/// own, and Gemm::launch those of all threads.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "gemm/encoded_launch.hpp"
#include "gemm/workspace.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/gemm.hpp"

namespace tessera::detail {

/// Returns true if all values that a launch takes are the same, bit by bit.
bool same_operands(const GemmOperands& one, const Epilogue& one_epilogue, const GemmOperands& other,
                   const Epilogue& other_epilogue) noexcept;

/// What a choice depends on besides operands. It is the same for all launches of a plan.
struct ChoiceContext {
    int device = -1;
    Variant wanted = Variant::automatic;
    std::size_t workspace_limit = 0;
    std::uint64_t tuning = 0;  // `tuning_generation`

    friend bool operator==(const ChoiceContext&, const ChoiceContext&) = default;
};

/// Distinguishes the operand sets of a usual program, which differ in their addresses and extents. Never 0.
std::uint64_t hash_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept;

/// Keeps the launches of the latest `capacity` operand sets. Never waits: a launch that finds no free entry is not kept.
///
/// @par Thread safety
/// All functions may be called at once.
class SeenLaunches {
public:
    static constexpr std::size_t capacity = 8;

    struct Entry {
        std::atomic<std::uint32_t> users{0};  // threads that read the entry; or `writer`
        ChoiceContext context;
        GemmOperands operands;  // as the caller gave them
        Epilogue epilogue;
        GemmProblem problem;  // of the launch
        KernelChoice choice;
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
        const Entry& operator*() const noexcept { return *entry_; }

    private:
        Entry* entry_ = nullptr;
    };

    SeenLaunches() = default;
    SeenLaunches(const SeenLaunches&) = delete;
    SeenLaunches& operator=(const SeenLaunches&) = delete;

    /// Returns a launch of the same operands; with `memory`, one that uses this workspace.
    /// @param hash  of the operands
    Hit find(std::uint64_t hash, const GemmOperands& operands, const Epilogue& epilogue, const ChoiceContext& context,
             const WorkspaceMemory* memory = nullptr) noexcept;

    /// Returns true if this was called with the same hash a short time ago: the operands may come a third time.
    bool has_missed_before(std::uint64_t hash) noexcept;

    /// Keeps a launch in the place of the one that was kept first.
    void keep(std::uint64_t hash, const GemmOperands& operands, const Epilogue& epilogue, const ChoiceContext& context,
              const GemmProblem& problem, const KernelChoice& choice, WorkspaceNeed need, const WorkspaceMemory& memory,
              const EncodedLaunch& launch) noexcept;

private:
    friend class SeenLaunchesRef;

    static constexpr std::uint32_t writer = 0x8000'0000U;

    // Of each entry, so that few are compared; 0: empty. Together, because entries are large.
    alignas(64) std::array<std::atomic<std::uint64_t>, capacity> hashes_{};
    std::array<std::atomic<std::uint64_t>, capacity> missed_{};
    std::array<Entry, capacity> entries_;
    std::atomic<std::uint32_t> next_{0};
    std::atomic<std::uint32_t> next_missed_{0};
    std::atomic<std::uint32_t> owners_{1};  // plans that are copies of each other
};

/// Returns where launches without a plan whose operands have this hash are kept. All of them make room for 256.
SeenLaunches& seen_without_plan(std::uint64_t hash);

}  // namespace tessera::detail
