#pragma once

/// The file of tuned choices: docs/tuning.md describes it.

#include <optional>
#include <string>
#include <string_view>

#include "tessera/gemm_tuner.hpp"
#include "tuning_table.hpp"

namespace tessera::detail {

inline constexpr const char* tuning_cache_variable = "TESSERA_TUNING_CACHE";

/// What a measurement depends on besides device and problem: of another driver, release or set of kernels it says
/// nothing.
std::string tuning_build();

/// One line without its end, checksum included.
std::string format_entry(const TuningKey& key, const TunedChoice& tuned, std::string_view build);

struct ParsedEntry {
    TuningKey key;
    TunedChoice tuned;
    std::string build;
};
/// Nothing if the line is not one of `format_entry`, or names a kernel that is not in this build's table.
std::optional<ParsedEntry> parse_entry(std::string_view line);
/// Whether the line is as it was written, by whatever build.
bool has_valid_checksum(std::string_view line) noexcept;

/// Loads the file that the environment names, if any, at the first call of the process.
void load_environment_cache_once();
/// Saves to the file that the environment names, if any.
void save_environment_cache(const std::source_location& caller);

}  // namespace tessera::detail
