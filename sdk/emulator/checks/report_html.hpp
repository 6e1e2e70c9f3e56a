#pragma once

// Findings as one self-contained HTML page: for a browser, an e-mail, or the artifacts of a CI job.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/statistics.hpp"
#include "checks/report_json.hpp"

namespace tessera::emulator {

/// Totals of all launches of a kernel.
struct KernelTotals {
    std::string kernel;  ///< mangled
    std::uint64_t launches = 0;
    Statistics statistics;
};

/// `text` escaped for HTML, also in attributes. Control characters and invalid UTF-8 become U+FFFD.
[[nodiscard]] std::string html_text(std::string_view text);

/// The page. Reads source lines from the files where possible.
[[nodiscard]] std::string report_html(std::span<const Finding> findings, const RunFacts& run,
                                      std::span<const KernelTotals> totals);

}  // namespace tessera::emulator
