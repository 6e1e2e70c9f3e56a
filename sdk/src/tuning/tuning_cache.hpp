#pragma once

/// The file of tuned choices; docs/tuning.md describes it.

#include <chrono>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "tessera/gemm_tuner.hpp"
#include "tuning/tuning_table.hpp"

namespace tessera::detail {

inline constexpr const char* tuning_cache_variable = "TESSERA_TUNING_CACHE";

/// Identifies what a measurement depends on besides device and problem: driver, release, set of kernels. A measurement
/// under another build is ignored.
std::string tuning_build();

/// Formats one line without its end, checksum included.
std::string format_entry(const TuningKey& key, const TunedChoice& tuned, std::string_view build);

struct ParsedEntry {
    TuningKey key;
    TunedChoice tuned;
    std::string build;
};
/// Returns nothing if `format_entry` did not write the line, or if it names a kernel that this build lacks.
std::optional<ParsedEntry> parse_entry(std::string_view line);
/// Returns true if the line is unchanged since it was written, by whatever build.
bool has_valid_checksum(std::string_view line) noexcept;

/// At the first call of the process, loads the file that the environment variable names, if any.
void load_environment_cache_once();
/// The file that the environment variable names, if any. Problems with it are warnings, not errors: a file must not
/// cost a measurement.
class EnvironmentCache {
public:
    /// Warns if the file cannot be saved to, before there is something to lose.
    EnvironmentCache();
    /// Saves; if that fails, warns unless the constructor has.
    void save() const;

private:
    std::string path_;
    bool warned_ = false;
};

/// `GemmTuningCache::save` with a limit on how long it waits for other savers.
void save_tuning_cache(const std::string& path, std::chrono::milliseconds timeout, const std::source_location& caller);

}  // namespace tessera::detail
