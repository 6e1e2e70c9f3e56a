#pragma once

// Where findings go while the program runs, and at its end.

#include <string>

#include "checks/report_html.hpp"
#include "checks/report_text.hpp"
#include "runtime/settings.hpp"

namespace tessera::emulator {

/// How to write to stderr: colours and the width of a terminal; neither for a file or a pipe, and no colours if NO_COLOR
/// is set (https://no-color.org).
[[nodiscard]] TextStyle terminal_style();

/// How this process is run, from the settings and /proc.
[[nodiscard]] RunFacts run_facts(const Settings& settings);

/// Replaces the contents of the file; false, and said once on stderr, if that is not possible.
bool write_report_file(const std::string& path, const std::string& text);

/// Counts what a launch did, for reports that have a table of it.
void count_launch(const std::string& kernel, const Statistics& statistics);

/// Writes a finding that is new: a program that aborts has no end at which to write it.
void publish(const Settings& settings, const Report& report, const Finding& finding);

/// Writes the report at the end of the process. False if it could not be written.
[[nodiscard]] bool publish_all(const Settings& settings, const Report& report);

}  // namespace tessera::emulator
