#pragma once

/// Counts in the emulated device's statistics, of which each launch has a line.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Returns the count with this name; -1 if the line has none.
inline std::int64_t figure(std::string_view line, std::string_view name)
{
    std::string key("\"");
    key.append(name).append("\": ");
    const auto at = line.find(key);
    return at == std::string_view::npos ? -1 : std::strtoll(line.data() + at + key.size(), nullptr, 10);
}

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }
