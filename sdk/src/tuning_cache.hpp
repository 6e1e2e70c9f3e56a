#pragma once

/// The file of tuned choices: docs/tuning.md describes it.

#include <chrono>
#include <optional>
#include <source_location>
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
/// The file that the environment names, if any. What is wrong with it is a warning, not an error: a measurement must
/// not be lost for a file's sake.
class EnvironmentCache {
public:
    /// Warns if the file cannot be saved to, before there is something to lose.
    EnvironmentCache();
    /// Saves, or warns unless the constructor has.
    void save() const;

private:
    std::string path_;
    bool warned_ = false;
};

/// `GemmTuningCache::save`, which waits so long for others that save.
void save_tuning_cache(const std::string& path, std::chrono::milliseconds timeout, const std::source_location& caller);

}  // namespace tessera::detail
