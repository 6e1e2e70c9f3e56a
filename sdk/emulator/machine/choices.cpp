#include "machine/choices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "machine/recording.hpp"

namespace tessera::emulator {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Choice::count)> names{
    "warp",  "work",  "idle", "hang",       "standstill",  "split",     "portion", "receiver",
    "lanes", "retry", "turn", "turn-steps", "turn-missed", "residents", "refusal"};

[[nodiscard]] std::uint64_t mix(std::uint64_t x) noexcept
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

constexpr std::uint64_t golden = 0x9E3779B97F4A7C15;

[[nodiscard]] std::string shown(const Decision& decision)
{
    if (!is_action(decision.kind)) {
        return fmt::format("{} {} of {}", name_of(decision.kind), decision.value, decision.bound);
    }
    return decision.kind == Choice::warp || decision.kind == Choice::work
               ? fmt::format("{} {}", name_of(decision.kind), decision.value)
               : std::string(name_of(decision.kind));
}

}  // namespace

std::string_view name_of(Choice kind) noexcept { return names[static_cast<std::size_t>(kind)]; }

std::optional<Choice> find_choice(std::string_view name) noexcept
{
    const auto found = std::ranges::find(names, name);
    return found == names.end() ? std::nullopt : std::optional(static_cast<Choice>(found - names.begin()));
}

Random::Random(std::uint64_t seed, std::uint64_t stream) noexcept : state_(mix(seed * golden + mix(stream + golden))) {}

std::uint64_t Random::next() noexcept { return mix(state_ += golden); }

std::uint32_t Random::below(std::uint32_t bound) noexcept
{
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
}

Choices::Choices(const Options& options, std::uint64_t cluster, LaunchRecorder* recorder,
                 const RecordedChoices* recorded)
    : random_(options.seed, cluster), cluster_(cluster), recorder_(recorder), recorded_(recorded)
{}

Choices::~Choices()
{
    if (recorder_ != nullptr) {
        recorder_->add(cluster_, std::move(text_), written_, ending_);
    }
}

void Choices::write(const Decision& decision)
{
    ++written_;
    text_ += to_line(decision);
}

std::uint32_t Choices::take(Choice kind, std::uint32_t bound)
{
    if (recorded_ == nullptr) {
        const std::uint32_t value = random_.below(bound);
        write({kind, value, bound, 0, 0});
        return value;
    }
    const Decision* const decision = peek();
    if (decision == nullptr) {
        ended(fmt::format("the choice of a number \"{}\"", name_of(kind)));
    }
    if (decision->kind != kind || decision->bound != bound) {
        misfit(*decision, fmt::format("the choice here is {} of {}", name_of(kind), bound));
    }
    ++position_;
    if (recorder_ != nullptr) {
        write(*decision);
    }
    return decision->value;
}

const Decision* Choices::peek() const noexcept
{
    return recorded_ != nullptr && position_ < recorded_->decisions.size() ? &recorded_->decisions[position_] : nullptr;
}

const Decision* Choices::next(std::uint64_t steps)
{
    const Decision* const decision = peek();
    if (decision == nullptr) {
        if (recorded_->ending == Ending::finished) {
            return nullptr;
        }
        ended("another step of the scheduler");
    }
    if (!is_action(decision->kind)) {
        misfit(*decision, "the scheduler has to run a warp or asynchronous work here");
    }
    if (decision->steps != steps) {
        misfit(*decision, fmt::format("the cluster has executed {} operations here, and {} when it was recorded", steps,
                                      decision->steps));
    }
    ++position_;
    return decision;
}

std::string Choices::place(std::uint32_t line) const
{
    return fmt::format("{}, line {} ({} of launch {} of {})", recorded_->path, line,
                       cluster_ == of_launch ? std::string("choices") : fmt::format("cluster {}", cluster_),
                       recorded_->launch, recorded_->kernel);
}

void Choices::misfit(const Decision& decision, const std::string& why) const
{
    throw ScheduleMisfit(fmt::format(
        "the recorded schedule does not fit. The first choice that does not is \"{}\" in {}: {}. Replay it with the "
        "program, the input and the options with which it was recorded",
        shown(decision), place(decision.line), why));
}

void Choices::ended(const std::string& wanted) const
{
    if (recorded_->ending == Ending::stopped) {
        throw ReplayEnded();
    }
    throw ScheduleMisfit(
        fmt::format("the recorded schedule does not fit: it ends at {}, where the recorded run {}, but this run needs "
                    "{}. Replay it "
                    "with the program, the input and the options with which it was recorded",
                    place(recorded_->last_line), recorded_->ending == Ending::failed ? "failed" : "finished", wanted));
}

}  // namespace tessera::emulator
