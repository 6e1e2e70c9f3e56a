#pragma once

// Findings as JSON, for programs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "checks/report.hpp"

namespace tessera::emulator {

/// How the program was run: what is needed to reproduce it.
struct RunFacts {
    std::string version;  ///< of the emulator
    std::string devices;  ///< "b200,h200"
    std::string schedule, numerics;
    std::uint64_t seed = 0;
    bool strict = false;
    std::string command;  ///< for a shell; empty: unknown
    std::string folder;   ///< the current directory of the program
};

/// Bytes of the UTF-8 sequence at the beginning of `text`, which is not empty; 0 if there is none.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

/// `text` as a JSON string, in quotation marks. Invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

/// One object: `run`, `findings`, `total` (occurrences), `kinds`.
[[nodiscard]] std::string report_json(std::span<const Finding> findings, const RunFacts& run);

}  // namespace tessera::emulator
