#include "machine/options.hpp"

namespace tessera::emulator {

std::string_view name_of(Schedule schedule) noexcept
{
    switch (schedule) {
        case Schedule::in_order: return "in-order";
        case Schedule::random: return "random";
        case Schedule::adversarial: return "adversarial";
    }
    return "unknown";
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
