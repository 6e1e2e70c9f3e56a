#include "tuning/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "gemm/backend.hpp"
#include "gemm/gemm_batches.hpp"
#include "gemm/gemm_operands.hpp"
#include "gemm/variant_chooser.hpp"
#include "tessera/event.hpp"
#include "tessera/gemm_tuner.hpp"
#include "tessera/graph.hpp"
#include "tuning/tuning_cache.hpp"
#include "tuning/tuning_scratch.hpp"
#include "tuning/tuning_table.hpp"

namespace tessera {
namespace {

using detail::KernelChoice;
using Clock = std::chrono::steady_clock;

constexpr std::string_view operation = "Gemm::tune";

/// A sample lasts at least this long, a thousand times the resolution of events, if the graph's limit of launches
/// permits.
constexpr double short_sample_seconds = 500e-6;
constexpr std::size_t most_launches = 256;
constexpr double most_replays = 256;
/// The first sample of a candidate is one launch and includes host time. It only rules out candidates slower by this.
constexpr double first_look_ratio = 3.0;
constexpr double first_look_slack_seconds = 20e-6;
/// After one sample each, noise is allowed for by this factor, in addition to the caller's.
constexpr double single_sample_slack = 1.2;
constexpr std::size_t quarterfinal_samples = 3;
constexpr std::size_t most_semifinalists = 8;
constexpr std::size_t semifinal_samples = 9;
constexpr std::size_t most_finalists = 4;
/// A smaller gain over the untuned choice may be chance.
constexpr double least_gain = 1.005;

struct Candidate {
    KernelChoice choice;
    std::vector<double> samples = {};
    double last = 0;  // of all samples taken
    TuningTrial::Outcome outcome = TuningTrial::Outcome::finalist;

    bool runs() const noexcept { return outcome == TuningTrial::Outcome::finalist; }
    double seconds() const
    {
        if (samples.empty()) {
            return 0;
        }
        std::vector<double> sorted = samples;
        std::sort(sorted.begin(), sorted.end());
        const std::size_t middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
};

class Measurement {
public:
    Measurement(const Device& device, const GemmProblem& problem, const TuningOptions& options,
                const std::source_location& caller)
        : device_(device),
          problem_(problem),
          options_(options),
          caller_(caller),
          stream_(device, caller),
          start_(device, EventKind::timing, caller),
          stop_(device, EventKind::timing, caller),
          scratch_(stream_, problem, options.seed, caller)
    {
        const Clock::time_point now = Clock::now();
        const std::chrono::duration<double> limit(options.time_limit_seconds);
        // A duration beyond the clock's range, or infinity, means no limit.
        if (limit.count() > 0 && limit < (Clock::time_point::max() - now) / 2) {
            deadline_ = now + std::chrono::duration_cast<Clock::duration>(limit);
        }
    }

    /// Times the candidates against each other and drops all but the fastest. The first one always stays.
    void run(std::vector<Candidate>& candidates)
    {
        look_once(candidates);
        const double fastest = fastest_of(candidates);
        const auto wanted = static_cast<std::size_t>(std::ceil(short_sample_seconds / std::max(fastest, 1e-9)));
        // Uses each set equally often, so that all samples move the same memory.
        const std::size_t passes = (std::min(wanted, most_launches) + scratch_.sets() - 1) / scratch_.sets();
        launches_ = std::max<std::size_t>(passes, 1) * scratch_.sets();
        for (Candidate& candidate : candidates) {
            if (candidate.runs()) {
                candidate.samples.clear();  // of the first sample
            }
        }
        take_rounds(candidates, 1, short_sample_seconds);
        prune(candidates, options_.prune_ratio * single_sample_slack, candidates.size());
        take_rounds(candidates, quarterfinal_samples - 1, short_sample_seconds);
        prune(candidates, options_.prune_ratio, most_semifinalists);
        take_rounds(candidates, semifinal_samples - quarterfinal_samples, short_sample_seconds);
        prune(candidates, options_.prune_ratio, most_finalists);
        for (Candidate& candidate : candidates) {
            if (candidate.runs()) {
                candidate.samples.clear();  // they were taken at another clock
            }
        }
        round_ = 0;  // one round is run whatever the time limit
        take_rounds(candidates, std::max<std::size_t>(options_.rounds, 1), options_.sample_seconds);
    }

    /// Returns what `choice` computes from operands that are the same at every call.
    std::vector<float> result_of(const KernelChoice& choice)
    {
        scratch_.poison_result(stream_);
        enqueue(stream_, choice, 0);
        return scratch_.result(stream_);
    }

private:
    void enqueue(StreamRef stream, const KernelChoice& choice, std::size_t set)
    {
        detail::enqueue_gemm(stream, scratch_.operands(set), scratch_.epilogue(set), problem_, device_.properties(),
                             choice, operation, caller_);
    }

    template <class Work>
    double seconds_of(Work&& work)
    {
        start_.record(stream_, caller_);
        work();
        stop_.record(stream_, caller_);
        stop_.synchronize(caller_);
        return stop_.seconds_since(start_, caller_);
    }

    /// Runs `work` for a candidate. A candidate that cannot be launched drops out; a lost context ends everything.
    template <class Work>
    void attempt(Candidate& candidate, Work&& work)
    {
        try {
            work();
        } catch (const Error& error) {
            if (error.code() == ErrorCode::context_lost || &candidate == first_) {
                throw;
            }
            candidate.outcome = TuningTrial::Outcome::failed;
        }
    }

    /// Times one launch of each candidate, after one that loads the kernel.
    void look_once(std::vector<Candidate>& candidates)
    {
        first_ = candidates.data();
        for (Candidate& candidate : candidates) {
            attempt(candidate, [&] {
                enqueue(stream_, candidate.choice, 0);
                candidate.last = seconds_of([&] { enqueue(stream_, candidate.choice, scratch_.sets() - 1); });
                candidate.samples.push_back(candidate.last);
            });
        }
        const double limit = fastest_of(candidates) * first_look_ratio + first_look_slack_seconds;
        for (Candidate& candidate : candidates) {
            if (&candidate != first_ && candidate.runs() && candidate.seconds() > limit) {
                candidate.outcome = TuningTrial::Outcome::pruned;
            }
        }
    }

    Graph capture(const Candidate& candidate)
    {
        return Graph::capture(
            stream_,
            [&](StreamRef captured) {
                for (std::size_t i = 0; i < launches_; ++i) {
                    enqueue(captured, candidate.choice, i % scratch_.sets());
                }
            },
            caller_);
    }

    /// Takes samples of at least `seconds`, each after untimed launches of the same length. Then the host is ahead of
    /// the device, and the clock is the one that this candidate's power permits. Each round starts with another
    /// candidate, so that none always follows the same one.
    void take_rounds(std::vector<Candidate>& candidates, std::size_t rounds, double seconds)
    {
        for (std::size_t round = 0; round < rounds && (round_ == 0 || Clock::now() < deadline_); ++round, ++round_) {
            for (std::size_t i = 0; i < candidates.size(); ++i) {
                Candidate& candidate = candidates[(i + round_) % candidates.size()];
                if (!candidate.runs()) {
                    continue;
                }
                attempt(candidate, [&] {
                    // Made anew each time, because it owns a workspace and there are hundreds of candidates.
                    const Graph graph = capture(candidate);
                    const double replay_seconds = candidate.last * static_cast<double>(launches_);
                    const auto replays = static_cast<std::size_t>(
                        std::clamp(std::ceil(seconds / std::max(replay_seconds, 1e-9)), 1.0, most_replays));
                    const auto replay = [&] {
                        for (std::size_t i = 0; i < replays; ++i) {
                            graph.launch(stream_, caller_);
                        }
                    };
                    replay();
                    candidate.last = seconds_of(replay) / static_cast<double>(launches_ * replays);
                    candidate.samples.push_back(candidate.last);
                });
            }
        }
    }

    static double fastest_of(const std::vector<Candidate>& candidates)
    {
        double fastest = HUGE_VAL;
        for (const Candidate& candidate : candidates) {
            if (candidate.runs() && !candidate.samples.empty()) {
                fastest = std::min(fastest, candidate.seconds());
            }
        }
        return fastest;
    }

    void prune(std::vector<Candidate>& candidates, double ratio, std::size_t most)
    {
        std::vector<double> times;
        for (const Candidate& candidate : candidates) {
            if (candidate.runs()) {
                times.push_back(candidate.seconds());
            }
        }
        std::sort(times.begin(), times.end());
        const double limit = std::min(times.front() * ratio, times[std::min(most, times.size()) - 1]);
        for (Candidate& candidate : candidates) {
            if (&candidate != first_ && candidate.runs() && candidate.seconds() > limit) {
                candidate.outcome = TuningTrial::Outcome::pruned;
            }
        }
    }

    const Device& device_;
    const GemmProblem& problem_;
    const TuningOptions& options_;
    const std::source_location& caller_;
    Stream stream_;
    Event start_;
    Event stop_;
    detail::TuningScratch scratch_;
    const Candidate* first_ = nullptr;
    std::size_t launches_ = 1;
    std::size_t round_ = 0;
    Clock::time_point deadline_ = Clock::time_point::max();
};

bool agree(const GemmProblem& problem, const std::vector<float>& expected, const std::vector<float>& found)
{
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double value = expected[i];
        // False for NaN, the value of an element that was never written.
        if (!(std::abs(value - found[i]) <= detail::result_bound(problem, value))) {
            return false;
        }
    }
    return expected.size() == found.size();
}

TuningTrial trial_of(const GemmProblem& problem, const Candidate& candidate)
{
    return {candidate.choice.variant,
            detail::backend_of(candidate.choice.variant).describe_config(problem, candidate.choice),
            candidate.seconds(), candidate.samples.size(), candidate.outcome};
}

void require_valid(const TuningOptions& options, const std::source_location& caller)
{
    // Each comparison is false for NaN, too.
    const auto require = [&](bool valid, const char* name, double value, const char* cure) {
        if (!valid) {
            detail::raise(ErrorCode::invalid_argument, operation, caller,
                          fmt::format("TuningOptions::{} is {}", name, value), cure);
        }
    };
    require(options.sample_seconds >= 0, "sample_seconds", options.sample_seconds, "0 or more seconds");
    require(options.prune_ratio >= 1, "prune_ratio", options.prune_ratio,
            "1 or more: candidates slower than this factor times the fastest are dropped");
    require(options.time_limit_seconds >= 0, "time_limit_seconds", options.time_limit_seconds,
            "0 for no limit, or more than 0 seconds");
}

/// Returns the problem in a form that can be timed: D's matrices do not overlap, and there is something to compute.
GemmProblem measurable(const GemmProblem& given, const std::source_location& caller)
{
    detail::require_valid(given, operation, caller);
    GemmProblem problem = detail::one_launch(detail::resolved(given));  // what its launches look up
    if (problem.m == 0 || problem.n == 0 || problem.batches == 0) {
        detail::raise(ErrorCode::invalid_argument, operation, caller,
                      fmt::format("{} has an empty D: there is nothing to measure", problem.describe()));
    }
    if (problem.batches > 1 && problem.d.batch_stride == 0) {
        const std::int64_t vectors = problem.d.row_major ? problem.m : problem.n;
        if (__builtin_mul_overflow(problem.d.leading_dimension, vectors, &problem.d.batch_stride)) {
            problem.d.batch_stride = INT64_MAX;  // this is refused
        }
        detail::require_valid(problem, operation, caller);
    }
    return problem;
}

}  // namespace

namespace detail {

std::vector<KernelChoice> all_candidates(const GemmProblem& problem, const DeviceProperties& device)
{
    std::vector<KernelChoice> candidates;
    for (const Variant variant : all_variants()) {
        if (!find_refusal(variant, problem, device)) {
            backend_of(variant).add_candidates(variant, {problem, device}, candidates);
        }
    }
    return candidates;
}

double result_bound(const GemmProblem& problem, double value) noexcept
{
    // A tensor core adds 16 or more products at a time to a sum that is truncated to fp32, or to 14 bits for 8-bit
    // inputs. Sums of K products of numbers uniform in [-1, 1] have a standard deviation of sqrt(K) / 3. The error of
    // each of the K / 16 additions is at most the roundoff of the sum at that point.
    const auto k = static_cast<double>(problem.k);
    const double unit = is_float8(problem.input) ? 0x1p-13 : 0x1p-23;
    const double accumulated = 4 * unit * (k / 16 + 1) * (std::sqrt(k) / 3 + 1);
    // Half the spacing of values: relative to normal numbers, absolute for subnormal 8-bit ones.
    const auto [rounded, smallest] = [&]() -> std::pair<double, double> {
        switch (problem.output) {
            case ElementType::f16: return {0x1p-11, 0};
            case ElementType::bf16: return {0x1p-8, 0};
            case ElementType::f8e4m3: return {0x1p-4, 0x1p-10};
            case ElementType::f8e5m2: return {0x1p-3, 0x1p-17};
            default: return {0x1p-24, 0};
        }
    }();
    return accumulated + 2 * (rounded * std::abs(value) + smallest);
}

}  // namespace detail

std::string_view to_string(TuningTrial::Outcome outcome) noexcept
{
    switch (outcome) {
        case TuningTrial::Outcome::finalist: return "finalist";
        case TuningTrial::Outcome::pruned: return "pruned";
        case TuningTrial::Outcome::wrong: return "wrong";
        case TuningTrial::Outcome::failed: return "failed";
    }
    return "unknown";
}

TuningResult Gemm::tune(const Device& device, const GemmProblem& given, std::source_location caller)
{
    return tune(device, given, TuningOptions(), caller);
}

TuningResult Gemm::tune(const Device& device, const GemmProblem& given, const TuningOptions& options,
                        std::source_location caller)
{
    const GemmProblem problem = measurable(given, caller);
    require_valid(options, caller);
    const detail::EnvironmentCache cache;
    const detail::CurrentDevice current(device.ordinal(), operation, caller);
    const KernelChoice untuned =
        detail::choose_untuned(problem, device.properties(), Variant::automatic, operation, caller);
    std::vector<Candidate> candidates;
    candidates.push_back({untuned});
    for (const KernelChoice& choice : detail::all_candidates(problem, device.properties())) {
        if (!(choice == untuned)) {
            candidates.push_back({choice});
        }
    }
    Measurement measurement(device, problem, options, caller);
    measurement.run(candidates);

    // Only a candidate that agrees with the untuned choice may win, and only by more than chance.
    const std::vector<float> expected = measurement.result_of(untuned);
    Candidate* best = nullptr;
    while (best == nullptr) {
        for (Candidate& candidate : candidates) {
            if (candidate.runs() && (best == nullptr || candidate.seconds() < best->seconds())) {
                best = &candidate;
            }
        }
        if (candidates.front().seconds() < best->seconds() * least_gain) {
            best = candidates.data();
        }
        if (best != candidates.data() && !agree(problem, expected, measurement.result_of(best->choice))) {
            best->outcome = TuningTrial::Outcome::wrong;
            best = nullptr;
        }
    }
    detail::load_environment_cache_once();  // before the new measurement, which must win over the file's
    detail::store_measured(detail::tuning_key(problem, device.properties()),
                           {best->choice, best->seconds(), candidates.front().seconds()});
    cache.save();

    TuningResult result{problem, trial_of(problem, *best), trial_of(problem, candidates.front()), {}};
    for (const Candidate& candidate : candidates) {
        result.trials.push_back(trial_of(problem, candidate));
    }
    const auto key = [](const TuningTrial& trial) {
        const int group = trial.outcome == TuningTrial::Outcome::failed   ? 2
                          : trial.outcome == TuningTrial::Outcome::pruned ? 1
                                                                          : 0;
        return std::pair(group, trial.seconds);
    };
    std::stable_sort(result.trials.begin(), result.trials.end(),
                     [&](const TuningTrial& a, const TuningTrial& b) { return key(a) < key(b); });
    return result;
}

}  // namespace tessera
