#pragma once

/// @file
/// @ingroup host_gemm
/// @brief Tuning: `Gemm::tune` measures which kernel is the fastest for a problem, and `GemmTuningCache` stores the
/// result.
///
/// @code{.cpp}
/// Gemm::tune(device, {.m = 4096, .n = 4096, .k = 4096, .input = ElementType::bf16});
/// Gemm::launch(stream, a16, b16, d16);   // this kind of product now runs the measured choice
/// GemmTuningCache::save("gemm.tuning");  // for the next process
/// @endcode
///
/// Nothing is measured unless `tune` is called. No file is touched unless it is named: here, or in the environment
/// variable TESSERA_TUNING_CACHE. That file is loaded at the first automatic choice and saved after each `tune`. If it
/// cannot be read or written, that is a warning, and this process still uses what it measured.
///
/// docs/tuning.md describes the method and the file.

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/gemm.hpp"

namespace tessera {

/// How thorough a measurement is.
struct TuningOptions {
    std::size_t rounds = 5;         ///< samples of each finalist; their median counts
    double sample_seconds = 50e-3;  ///< length of a finalist's sample: a power limit takes tens of milliseconds to act
    double prune_ratio = 1.15;      ///< candidates slower than the best by more than this factor are dropped; >= 1
    double time_limit_seconds = 0;  ///< after this time there are fewer rounds; 0 or infinity for no limit
    std::uint64_t seed = 1;         ///< seed of the random operands
};

/// One measured candidate.
struct TuningTrial {
    /// How a candidate ended.
    enum class Outcome : std::uint8_t {
        finalist,  ///< timed in all rounds, in samples of full length
        pruned,    ///< dropped as too slow; timed in short samples, at another clock
        wrong,     ///< its result differs from the untuned choice's by more than rounding; never used
        failed     ///< could not be launched
    };
    Variant variant = Variant::automatic;  ///< the kernel variant; never `automatic` in a result
    std::string configuration;             ///< for people; empty for variants that have only one
    double seconds = 0;                    ///< median of the samples, per product; 0 if it failed
    std::size_t samples = 0;               ///< number of samples
    Outcome outcome = Outcome::finalist;   ///< how the candidate ended
};

/// Returns "finalist", "pruned", "wrong" or "failed".
std::string_view to_string(TuningTrial::Outcome outcome) noexcept;

/// What `Gemm::tune` found.
struct TuningResult {
    GemmProblem problem;              ///< with leading dimensions filled in; of one launch if there are several
    TuningTrial best;                 ///< what automatic launches of the problem run from now on
    TuningTrial untuned;              ///< what they ran before, by the cost model
    std::vector<TuningTrial> trials;  ///< finalists, then pruned, then failed candidates, each group fastest first
};

/// The measured choices, in this process and in files.
///
/// @par Thread safety
/// All functions may be called from several threads at once. Launches that look something up meanwhile neither wait nor
/// allocate.
class GemmTuningCache {
public:
    /// How the entries of a file were treated.
    struct Loaded {
        std::size_t used = 0;     ///< entries that are known from now on; a newer entry in the process wins
        std::size_t skipped = 0;  ///< entries for another driver, release or kernel table
        std::size_t damaged = 0;  ///< entries that this library did not write; a warning was given
    };

    /// Reads a file. A missing file counts as empty; a file that is no tuning cache of this format is ignored with a
    /// warning, and so are entries if all are skipped. No entry is trusted: a launch passes over a choice that cannot run
    /// its problem.
    /// @param path  the file
    /// @return how many entries were used, skipped and damaged
    static Loaded load(const std::string& path);

    /// Writes the known choices to a file, and keeps the entries that are in the file already. Other processes may do
    /// the same at the same time: nothing is lost, and a reader sees the old file or the new one.
    ///
    /// Creates `path` and a lock file, `path`.lock. Follows symbolic links and keeps the mode of an existing file.
    /// Waits up to 20 seconds for other processes that save.
    /// @throws Error  `invalid_argument` if the file cannot be written or locked, or exists and is no tuning cache. The
    ///                choices stay known to this process.
    static void save(const std::string& path, std::source_location caller = std::source_location::current());

    /// Returns how many problems are known.
    static std::size_t size() noexcept;
    /// Forgets all choices of this process. Files stay.
    static void clear() noexcept;

    /// A function that is called with each warning about a file, one sentence each.
    using WarningHandler = void (*)(std::string_view sentence);
    /// Sets the function for warnings; null drops them. At first they go to standard error.
    /// @return the previous handler
    static WarningHandler set_warning_handler(WarningHandler handler) noexcept;
};

}  // namespace tessera
