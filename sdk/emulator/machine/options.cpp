#include "machine/options.hpp"

#include <fmt/format.h>

#include "machine/recording.hpp"

namespace tessera::emulator {

std::string_view name_of(Schedule schedule) noexcept
{
    switch (schedule) {
        case Schedule::in_order: return "in-order";
        case Schedule::random: return "random";
        case Schedule::adversarial: return "adversarial";
        case Schedule::pct: return "pct";
    }
    return "unknown";
}

std::optional<Schedule> find_schedule(std::string_view name) noexcept
{
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial, Schedule::pct}) {
        if (name == name_of(schedule)) {
            return schedule;
        }
    }
    return std::nullopt;
}

std::string shown_schedule(const Options& options)
{
    if (options.recording != nullptr) {
        return "replay:" + options.recording->path();
    }
    std::string text(name_of(options.schedule));
    if (options.schedule == Schedule::pct) {
        text += fmt::format(":{}", options.depth);
        text += options.depth_steps == 0 ? std::string() : fmt::format(":{}", options.depth_steps);
    }
    return text;
}

std::string_view name_of(Numerics numerics) noexcept { return numerics == Numerics::exact ? "exact" : "fast"; }

std::string_view name_of(Paths paths) noexcept
{
    switch (paths) {
        case Paths::fast: return "fast";
        case Paths::plain: return "plain";
        case Paths::both: return "both";
    }
    return "unknown";
}

}  // namespace tessera::emulator
