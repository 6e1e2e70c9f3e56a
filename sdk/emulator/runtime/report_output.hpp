#pragma once

// Where findings are written while the program runs, and at its end.

#include <string>

#include "checks/report_html.hpp"
#include "checks/report_text.hpp"
#include "runtime/settings.hpp"

namespace tessera::emulator {

/// How to write to stderr: colours and the width of a terminal, neither for a file or a pipe. No colours if NO_COLOR is
/// set (https://no-color.org).
[[nodiscard]] TextStyle terminal_style();

/// How this process was run, from the settings and /proc.
[[nodiscard]] RunFacts run_facts(const Settings& settings);

/// Replaces the contents of the file. If this fails, prints it once to stderr and returns false.
bool write_report_file(const std::string& path, const std::string& text);

/// Adds the counts of a launch, for reports with a table of them.
void count_launch(const std::string& kernel, const Statistics& statistics);

/// Writes a new finding at once: a program that aborts has no end at which to write it.
void publish(const Settings& settings, const Report& report, const Finding& finding);

/// Writes the report at the end of the process. Returns false if this fails.
[[nodiscard]] bool publish_all(const Settings& settings, const Report& report);

}  // namespace tessera::emulator
