#pragma once

// Findings as text: for a terminal, or for a file.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "checks/report.hpp"

namespace tessera::emulator {

struct TextStyle {
    bool colour = false;
    std::size_t width = 0;  ///< columns to wrap at; 0: no wrapping
};

/// One finding: what, where in the source, by whom, and where it was launched. `heading` comes first. Ends with a
/// newline.
[[nodiscard]] std::string to_text(const Finding& finding, const TextStyle& style = {}, std::string_view heading = {});

/// The summary: totals, a line for each finding, and what the exit status says. Ends with a newline; empty if there are
/// no findings.
[[nodiscard]] std::string summary_text(std::span<const Finding> findings, bool strict, const TextStyle& style = {});

/// "48 times, by 1536 accesses of 16 CTAs, 4 instructions"; empty for a single occurrence.
[[nodiscard]] std::string count_text(const Finding& finding);

/// The line that a report leads with: a line of the kernel or, if the kernel is a library's, of the host; null if
/// unknown.
[[nodiscard]] const SourceFrame* leading_place(const Finding& finding);

/// What the host did at Finding::host: "launched", "called" or, for a leak, "allocated" (the first leaked allocation).
[[nodiscard]] std::string_view host_verb(const Finding& finding);

/// "CTA (0, 0, 0), warp 4, lanes 0x0000ffff".
[[nodiscard]] std::string agent_text(const Finding& finding);

/// `text` wrapped between words at `width` columns. Lines after the first begin with `indent` blanks.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace tessera::emulator
