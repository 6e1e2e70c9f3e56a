#pragma once

// Findings of the emulated device: what is wrong, where, and how often.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/lanes.hpp"
#include "base/source_place.hpp"

namespace tessera::emulator {

/// Kinds of findings. name_of() gives the name that reports print and tests expect ("shared-race").
enum class FindingKind : std::uint8_t {
    out_of_bounds,  ///< memory access outside of every allocation or of the CTA's shared memory
    row_overrun,    ///< a tensor store or reduction that writes beyond the tensor's rows, to the end of a 16-byte chunk
    misaligned,     ///< an address that the instruction does not allow
    uninitialized_global,
    uninitialized_shared,
    uninitialized_local,
    uninitialized_tmem,
    shared_race,          ///< two warps, or a warp and asynchronous work, without order between them
    same_value_race,      ///< the same between stores of equal values; optional
    strict_proxy_fence,   ///< a fence that common code leaves out; optional
    missing_proxy_fence,  ///< generic writes read by the async proxy without fence.proxy.async
    stage_overwritten,  ///< shared memory written while asynchronous work still reads it, or read before it is complete
    flag_before_store,  ///< a write that others may wait for, while the thread's bulk stores are in flight; optional
    async_read_pending,         ///< registers or memory used before the asynchronous work that writes them is complete
    accumulator_before_commit,  ///< tensor memory read or written with an MMA on it not known to be complete
    tmem_leak,
    tmem_after_release,  ///< use of columns that are not allocated
    tmem_allocation,     ///< allocation rules: relinquish, order, size, pair
    tmem_lanes,          ///< a warp accesses lanes of another warp
    invalid_descriptor,  ///< instruction, matrix or tensor-map descriptor
    layout_mismatch,     ///< operands read in another layout or type than the tensor copy gave them
    invalid_operand,     ///< anything else that PTX leaves undefined
    cta_mask,            ///< multicast or commit mask names CTAs that do not exist or do not wait
    barrier_misuse,      ///< mbarrier not initialized, reused without inval, count out of range
    transaction_count,   ///< expect_tx and complete_tx do not match
    cta_group,           ///< commit or mma of different CTA groups mixed
    cluster_protocol,    ///< peer's memory used before it has started or after it has exited
    exit_before_read,    ///< a CTA exits while its own bulk stores read its shared memory; optional
    divergent_aligned,   ///< .aligned instruction executed by a part of a warp
    deadlock,
    stack_overflow,  ///< recursion that needs more stack than a thread has
    trap,
    assertion,
    launch_control,       ///< cluster launch control protocol
    resource_leak,        ///< memory, streams, events, graphs at exit
    host_memory_changed,  ///< pinned memory changed while a copy may read it
    failed_call,          ///< a launch whose error the program ignored; optional: any call that fails
    not_emulated,
};

[[nodiscard]] std::string_view name_of(FindingKind kind) noexcept;

/// What is wrong, for the functions that report it.
struct FindingText {
    std::string message;
    std::string cause;  ///< see Finding::cause

    FindingText(std::string text, std::string common_cause = {})
        : message(std::move(text)), cause(std::move(common_cause))
    {}
    FindingText(const char* text) : message(text) {}
};

struct Finding {
    FindingKind kind = FindingKind::invalid_operand;
    bool error = false;        ///< hardware would stop the kernel here
    std::string message;       ///< what, with the values, and the cure
    std::string kernel;        ///< mangled; empty: no kernel is concerned
    bool not_started = false;  ///< the kernel did not run: no CTA and no warp are concerned
    Dim3 cta{0, 0, 0};         ///< %ctaid of the first occurrence
    std::uint32_t warp = 0;
    LaneMask lanes = 0;  ///< lanes concerned; 0: no lanes are concerned
    std::uint32_t ptx_line = 0;
    std::string ptx_text;
    std::vector<SourceFrame> frames;  ///< of the instruction, innermost first; empty if the PTX has no .loc
    /// Later findings of the same kind, kernel and cause are counted with this one. An allocation, for example. If
    /// empty: the instruction's opcode and source line or, without one, its PTX line.
    std::string cause;

    // Report::add fills in what follows.
    // "file.cu:12", or "file.cuh:9 (in f(int)), inlined at file.cu:12"; empty if the PTX has no .loc.
    std::string source;
    std::vector<SourceFrame> host;  ///< where the host launched the kernel, or made the call; innermost first

    std::uint64_t count = 1;         ///< occurrences
    std::uint64_t accesses = 0;      ///< the same, counting each lane
    std::uint64_t ctas = 0;          ///< number of CTAs with this finding; at most Report::counted_ctas are told apart
    std::uint64_t instructions = 0;  ///< number of PTX instructions with this finding
};

/// Collects the findings of a process. Thread-safe.
class Report {
public:
    static constexpr std::size_t counted_ctas = 1 << 16;

    /// A finding of this report, for count().
    struct Known {
        std::size_t entry = 0;
        std::uint64_t clears = 0;  ///< number of clear() before
    };

    /// Adds `finding`, or counts it if one of the same kind, kernel and cause is known. Returns true if it is new.
    /// `complete` is called for a new finding, to add what is slow to find out. `known` receives where it is counted.
    bool add(Finding finding, const std::function<void(Finding&)>& complete = {}, Known* known = nullptr);
    /// The finding has occurred again, in a CTA and by an instruction with which it was added before. Does nothing after
    /// clear().
    void count(Known known, std::uint64_t count, std::uint64_t accesses);
    [[nodiscard]] std::vector<Finding> findings() const;
    [[nodiscard]] std::uint64_t total() const;
    void clear();
    /// Called for each new finding, outside of the lock. Set it before the first launch.
    std::function<void(const Finding&)> on_new;

    [[nodiscard]] std::string text() const;

private:
    struct Entry {
        Finding finding;
        std::unordered_set<std::uint64_t> ctas;
        std::set<std::uint32_t> lines;
    };

    mutable std::mutex mutex_;
    std::vector<Entry> entries_;
    std::map<std::string, std::size_t> index_;
    std::uint64_t clears_ = 0;
};

}  // namespace tessera::emulator
