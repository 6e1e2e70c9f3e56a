#pragma once

// Findings as one HTML page that needs nothing else: for a browser, an e-mail, or the artifacts of a CI job.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "checks/report_json.hpp"
#include "machine/statistics.hpp"

namespace tessera::emulator {

/// What all launches of a kernel did together.
struct KernelTotals {
    std::string kernel;  ///< mangled
    std::uint64_t launches = 0;
    Statistics statistics;
};

/// `text` as HTML shows it, also in attributes. Control characters and what is no UTF-8 become U+FFFD.
[[nodiscard]] std::string html_text(std::string_view text);

/// The page. Lines of source are read from the files, where they are readable.
[[nodiscard]] std::string report_html(std::span<const Finding> findings, const RunFacts& run,
                                      std::span<const KernelTotals> totals);

}  // namespace tessera::emulator
