#pragma once

/// Measuring which kernel is the fastest for a problem on this machine: `Gemm::tune`, and the cache that keeps what was
/// found.
///
///     Gemm::tune(device, {.m = 4096, .n = 4096, .k = 4096, .input = ElementType::bf16});
///     Gemm::launch(stream, a, b, d);             // a product of that kind now runs the measured choice
///     GemmTuningCache::save("gemm.tuning");      // for the next process
///
/// Nothing is measured unless `tune` is called, and no file is touched unless one is named: here, or in the environment
/// variable TESSERA_TUNING_CACHE, which is loaded at the first automatic choice and saved after each `tune`. What is
/// wrong with that file is a warning; the measured choice is used in this process all the same.
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
    double sample_seconds = 50e-3;  ///< of a finalist: a power limit takes tens of milliseconds to answer
    double prune_ratio = 1.15;      ///< a candidate that is slower than the best by more than this factor leaves; >= 1
    double time_limit_seconds = 0;  ///< fewer rounds after this; 0 or infinity: none
    std::uint64_t seed = 1;         ///< of the random operands
};

/// One candidate.
struct TuningTrial {
    /// How it ended.
    enum class Outcome : std::uint8_t {
        finalist,  ///< timed in all rounds, in samples of the wanted length
        pruned,    ///< too slow to go on with; timed in short samples, at another clock
        wrong,     ///< fast, but its result differs from the untuned choice's by more than rounding: never used
        failed     ///< could not be launched
    };
    Variant variant = Variant::automatic;  ///< never automatic in a result
    std::string configuration;             ///< for people; empty for variants that have one only
    double seconds = 0;                    ///< median of its samples, per product; 0 if it failed
    std::size_t samples = 0;               ///< that the median is of
    Outcome outcome = Outcome::finalist;   ///< how it ended
};

/// "finalist", "pruned", "wrong" or "failed".
std::string_view to_string(TuningTrial::Outcome outcome) noexcept;

/// What `Gemm::tune` found.
struct TuningResult {
    GemmProblem problem;              ///< leading dimensions filled in; of one launch, if there are several
    TuningTrial best;                 ///< what automatic launches of the problem run from now on
    TuningTrial untuned;              ///< what they ran before, by the cost model
    std::vector<TuningTrial> trials;  ///< finalists, pruned and failed ones, each fastest first
};

/// What has been measured, in this process and in files. All functions are thread-safe; launches that look something
/// up meanwhile neither wait nor allocate.
class GemmTuningCache {
public:
    /// What became of the entries of a file.
    struct Loaded {
        std::size_t used = 0;     ///< known from now on, where nothing newer was
        std::size_t skipped = 0;  ///< for another driver, release or kernel table
        std::size_t damaged = 0;  ///< not as this library writes them; a warning has been given
    };

    /// Reads a file. One that is missing is empty; one that is no tuning cache of this format is ignored with a
    /// warning. No entry is trusted: a choice that cannot run the problem at hand is passed over at its launch.
    static Loaded load(const std::string& path);

    /// Writes what is known, and keeps what is in the file besides. Other processes may do the same at the same time:
    /// nothing is lost, and a reader sees the old file or the new one. Makes `path` and a lock file, `path`.lock;
    /// follows symbolic links; keeps the mode of a file that is there. Waits for others that save, for 20 seconds at
    /// most.
    /// @throws Error `invalid_argument` if the file cannot be written or locked, or is there and is no tuning cache.
    /// What was measured stays known to this process.
    static void save(const std::string& path, std::source_location caller = std::source_location::current());

    /// How many problems are known.
    static std::size_t size() noexcept;
    /// Forgets everything. Files stay.
    static void clear() noexcept;

    /// Where warnings about files go, one sentence each: to standard error at first, nowhere for null.
    using WarningHandler = void (*)(std::string_view sentence);
    /// Returns the previous one.
    static WarningHandler set_warning_handler(WarningHandler handler) noexcept;
};

}  // namespace tessera
