#pragma once

/// A scenario is one job done in two ways: as a first version would do it (baseline), and with what the hardware and this library
/// offer (optimized). Both are timed, in named phases, and must give the same result.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <gsl/span>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/recorder.hpp"
#include "tessera/device.hpp"

namespace tessera::scenarios {

/// Where and how large the scenarios run.
struct Context {
    Device device;
    bool full = false;               ///< sizes for a GPU; otherwise for the emulated device
    std::size_t repetitions = 1;     ///< timed runs of each entry
    bool warm_up = false;            ///< one more run of each comes first
    std::uint64_t seed = 1;          ///< of random operands
    std::filesystem::path scratch;   ///< an existing folder for files; the scenario removes what it writes
    std::filesystem::path digits;    ///< the .npy files of examples/digits
    std::filesystem::path programs;  ///< the folder of the tile programs that are compiled at run time
};

/// Thrown by a scenario that this machine cannot run. what() is the reason, a clause for people: "it needs ...".
class Skip : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// How far a result is from what it must be.
struct Check {
    std::string what;             ///< which result, against what
    std::string bound;            ///< how the largest error allowed is derived
    double error_over_bound = 0;  ///< at most 1 for a right result

    bool passed() const noexcept { return error_over_bound <= 1; }
};

/// Returns the check of two results that must have the same bits.
Check equal_bits(std::string what, gsl::span<const std::byte> left, gsl::span<const std::byte> right);

/// A number that a scenario measures besides its times.
struct Figure {
    std::string name;
    double value = 0;
    std::string unit;
};

/// What a scenario found.
struct Outcome {
    std::string work;  ///< the job's size: "16 chunks of 4096x2048 bf16"
    EntryTimes baseline;
    EntryTimes optimized;
    std::vector<Check> checks;
    std::vector<Figure> figures = {};
    std::vector<std::string> notes = {};
};

struct Scenario {
    int number;
    std::string_view name;       ///< on the command line
    std::string_view title;      ///< for people
    std::string_view baseline;   ///< what the baseline does
    std::string_view optimized;  ///< what the optimized entry does
    /// @throws Skip, Error
    Outcome (*run)(const Context& context);
};

/// All scenarios, in order.
gsl::span<const Scenario> all_scenarios();

/// A scenario and what became of it on this machine.
struct Report {
    const Scenario* scenario;
    std::string skipped;  ///< why it did not run; empty if it did
    std::string failure;  ///< the error that ended it; empty if there was none
    Outcome outcome;

    bool ran() const noexcept { return skipped.empty() && failure.empty(); }
    /// Returns true if every check passed.
    bool agrees() const noexcept;
    /// Median time of the baseline over that of the optimized entry.
    double speedup() const;
};

/// Runs the baseline and the optimized entry in turn, so that both meet the same clocks, and stores their times. A run begins on an
/// idle device; its work ends when its result is complete.
void measure(const Context& context, Outcome& outcome, const std::function<void(Recorder&)>& baseline,
             const std::function<void(Recorder&)>& optimized);

// ---- the scenarios, a file each

Outcome run_transfers(const Context& context);
Outcome run_clusters(const Context& context);
Outcome run_npy_streaming(const Context& context);
Outcome run_ladder(const Context& context);
Outcome run_graphs(const Context& context);
Outcome run_compilation(const Context& context);
Outcome run_transformer(const Context& context);
Outcome run_low_precision(const Context& context);
Outcome run_training(const Context& context);

}  // namespace tessera::scenarios
