#pragma once

// The choices of a cluster's scheduler: all of them have a kind, are made in one place, and can be recorded and replayed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "machine/options.hpp"

namespace tessera::emulator {

/// What is chosen. The first ones are what a cluster does next; the others are numbers below a bound.
enum class Choice : std::uint8_t {
    warp,         ///< a warp runs: its position in the cluster, and the most operations that it executes
    work,         ///< asynchronous work makes a step: its number in the cluster's order of issue
    idle,         ///< nothing can go on: each waiting warp tries a last time
    hang,         ///< the cluster is reported to hang
    standstill,   ///< all clusters are reported to wait for each other
    split,        ///< which of a warp's diverged lanes run
    portion,      ///< how many pieces of a copy move in one step
    receiver,     ///< which CTA of a multicast receives next
    lanes,        ///< which lanes' cp.async complete first
    spurious,     ///< whether a try_wait gives up
    turn_order,   ///< the rank of a cluster in a round of turns
    turn_length,  ///< the steps of its turn
    starvation,   ///< how many turns it misses
    residents,    ///< how many clusters are resident
    refusal,      ///< whether cluster launch control refuses a request
    count
};

[[nodiscard]] std::string_view name_of(Choice kind) noexcept;
[[nodiscard]] std::optional<Choice> find_choice(std::string_view name) noexcept;
/// Returns true if the choice is what a cluster does next; false if it is a number below a bound.
[[nodiscard]] constexpr bool is_action(Choice kind) noexcept { return kind < Choice::split; }

/// One choice that was made.
struct Decision {
    Choice kind = Choice::idle;
    std::uint32_t value = 0;  ///< the warp, the work or the number
    std::uint32_t bound = 0;  ///< of the number; warp: the most operations
    std::uint32_t line = 0;   ///< of the recording
    std::uint64_t steps = 0;  ///< actions: what the cluster had executed before, to notice that a program has changed
};

/// How the choices of a cluster ended.
enum class Ending : std::uint8_t {
    finished,
    failed,   ///< by a fault of this cluster
    stopped,  ///< because another cluster had failed
};

/// The recorded choices of one cluster, or those of the launch.
struct RecordedChoices;
/// Where the choices of a launch are written.
class LaunchRecorder;

/// splitmix64. Small, because each cluster has one.
class Random {
public:
    /// Different streams of one seed are independent.
    Random(std::uint64_t seed, std::uint64_t stream) noexcept;
    [[nodiscard]] std::uint64_t next() noexcept;
    /// In [0, bound); bound is at least 1.
    [[nodiscard]] std::uint32_t below(std::uint32_t bound) noexcept;

private:
    std::uint64_t state_;
};

/// The stream of choices of one cluster; or of a launch, for what concerns all its clusters.
class Choices {
public:
    /// Number of the stream of a launch.
    static constexpr std::uint64_t of_launch = ~std::uint64_t{0};

    /// `recorder` and `recorded` may be null. `recorded` decides, if it is there.
    Choices(const Options& options, std::uint64_t cluster, LaunchRecorder* recorder, const RecordedChoices* recorded);
    /// Hands what was recorded to the recorder.
    ~Choices();
    Choices(const Choices&) = delete;
    Choices& operator=(const Choices&) = delete;

    /// Chooses a number in [0, bound).
    /// @throws ScheduleMisfit, or ReplayEnded
    std::uint32_t pick(Choice kind, std::uint32_t bound)
    {
        return bound <= 1 ? 0
                          : (recorded_ == nullptr && recorder_ == nullptr ? random_.below(bound) : take(kind, bound));
    }
    /// A random number for a scheduler that decides on an action. It is not recorded; the action is.
    [[nodiscard]] std::uint32_t draw(std::uint32_t bound) { return bound <= 1 ? 0 : random_.below(bound); }
    [[nodiscard]] std::uint64_t draw() noexcept { return random_.next(); }

    /// Notes an action that the scheduler has chosen. `steps` were executed before.
    void note(Choice action, std::uint64_t steps, std::uint32_t value = 0, std::uint32_t bound = 0)
    {
        if (recorder_ != nullptr) [[unlikely]] {
            write({action, value, bound, 0, steps});
        }
    }
    /// The choices end so. Without it: `stopped`.
    void end(Ending ending) noexcept { ending_ = ending; }

    [[nodiscard]] bool replays() const noexcept { return recorded_ != nullptr; }
    /// Replay: the next choice; null at the end.
    [[nodiscard]] const Decision* peek() const noexcept;
    [[nodiscard]] bool next_is(Choice kind) const noexcept
    {
        const Decision* const decision = peek();
        return decision != nullptr && decision->kind == kind;
    }
    /// Replay: takes the next action of a cluster that has executed `steps`. Null at the end of one that finished.
    /// @throws ScheduleMisfit, or ReplayEnded
    const Decision* next(std::uint64_t steps);
    /// Replay: the recorded cluster has finished here, and this one has not.
    [[noreturn]] void continues() const { ended("another step of the scheduler"); }
    /// The recorded choice does not fit what can happen here; `why` continues the sentence "..., but".
    [[noreturn]] void misfit(const Decision& decision, const std::string& why) const;

private:
    std::uint32_t take(Choice kind, std::uint32_t bound);
    void write(const Decision& decision);
    [[noreturn]] void ended(const std::string& wanted) const;
    [[nodiscard]] std::string place(std::uint32_t line) const;

    Random random_;
    std::uint64_t cluster_;
    LaunchRecorder* recorder_;
    const RecordedChoices* recorded_;
    std::size_t position_ = 0;
    Ending ending_ = Ending::stopped;
    std::uint64_t written_ = 0;
    std::string text_;
};

}  // namespace tessera::emulator
