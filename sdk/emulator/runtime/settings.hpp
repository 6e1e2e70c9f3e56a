#pragma once

// The settings of the emulated device, from the environment.

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_model.hpp"
#include "machine/options.hpp"

namespace tessera::emulator {

enum class OutputFormat { text, json, html };

/// Findings that are only reported on request.
struct OptionalFinding {
    std::string_view name;
    bool Options::*option;
};
inline constexpr std::array optional_findings{
    OptionalFinding{"same-value-race", &Options::same_value_races},
    OptionalFinding{"exit-before-read", &Options::exits_before_read},
    OptionalFinding{"strict-proxy-fence", &Options::strict_proxy_fences},
    OptionalFinding{"flag-before-store", &Options::flags_before_stores},
    OptionalFinding{"failed-call", &Options::failed_calls},
};

/// The variables, all optional. TESSERA_EMU_...
/// - DEVICE: b200 (default), h200, t4; several separated by commas are several devices.
/// - SEED: a number.
/// - SCHEDULE: in-order (default), random, adversarial; pct, pct:DEPTH or pct:DEPTH:STEPS; replay:PATH.
/// - RECORD: PATH, which gets the choices of the schedule, for replay:PATH.
/// - NUMERICS: exact (default), fast.
/// - CHECK: 1 (default), 0.
/// - ALSO: optional findings to report, see optional_findings.
/// - OVERRUN: stop (default), continue: an access in an allocation's padding is reported and continues.
/// - STRICT: 0 (default), 1: a finding ends its launch with an error, and the process with exit status 86.
/// - THREADS: CPU threads; 0 (default): all cores.
/// - HANG_LIMIT: instructions of one cluster without a visible effect that count as a hang.
/// - REPORT: text (default), json, text:PATH, json:PATH, html:PATH; without a path to stderr.
/// - STATISTICS: the same without html, or 1 for text; one record per launch.
/// - TRACE: PATH, which gets a timeline of the launches as JSON.
/// - FAIL: see FaultInjection::plan.
struct Settings {
    std::vector<const DeviceModel*> devices;
    Options options;
    OutputFormat report_format = OutputFormat::text;
    std::string report_path;  ///< absolute; empty: stderr
    bool statistics = false;
    OutputFormat statistics_format = OutputFormat::text;
    std::string statistics_path;
    std::string trace_path;   ///< absolute; empty: no trace
    std::string record_path;  ///< absolute; empty: choices are not recorded
    std::string faults;
    /// Sentences about invalid values. If there are any, the process ends with refused_exit_status: a typo must not
    /// silently select another device, nor look like a machine without one.
    std::vector<std::string> errors;
};

/// The exit status of a process with wrong settings, or whose report or statistics could not be written.
inline constexpr int refused_exit_status = 2;

/// One setting: the option of tessera-emu and the variable.
struct Setting {
    const char* option;    ///< "--device"
    const char* variable;  ///< "TESSERA_EMU_DEVICE"
    std::string allowed;   ///< "a device, or several separated by commas: b200, h200, t4"
    std::string help;      ///< its purpose, and the default in brackets
    bool is_flag = false;  ///< the option has no value; it sets the variable to 1
};

/// All settings.
[[nodiscard]] const std::vector<Setting>& known_settings();

/// Reads the settings with `get`, which returns a variable's value or null. `shown` is the name of a variable in
/// messages: an option, if the value came from there.
[[nodiscard]] Settings read_settings(
    const std::function<const char*(const char*)>& get,
    const std::function<std::string(const char*)>& shown = [](const char* variable) { return std::string(variable); });

/// A sentence for each variable of `environment`, which ends with null, whose name begins with TESSERA_EMU_ and is none of
/// the known ones.
[[nodiscard]] std::vector<std::string> misnamed_variables(const char* const* environment);

/// Why the file cannot be written, e.g. "No such file or directory"; empty if it can. Leaves no new file behind.
[[nodiscard]] std::string output_problem(const std::string& path);

/// The word of `known` closest to a misspelled `word`; empty if none is close.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace tessera::emulator
