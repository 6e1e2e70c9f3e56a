#pragma once

// What the environment asks of the emulated device.

#include <functional>
#include <string>
#include <vector>

#include "machine/device_model.hpp"
#include "machine/options.hpp"

namespace tessera::emulator {

enum class OutputFormat { text, json };

/// The variables, all optional. TESSERA_EMU_...
/// - DEVICE: b200 (default), h200, t4; several separated by commas are several devices.
/// - SEED: a number.
/// - SCHEDULE: in-order (default), random, adversarial.
/// - NUMERICS: exact (default), fast.
/// - CHECK: 1 (default), 0.
/// - ALSO: findings to report that are left out otherwise: same-value-race, exit-before-read.
/// - STRICT: 0 (default), 1: a finding ends its launch with an error, and the process with exit status 86.
/// - THREADS: CPU threads; 0 (default): as many as there are cores.
/// - HANG_LIMIT: instructions of one cluster without progress that count as a hang.
/// - REPORT: text (default), json, text:PATH, json:PATH; without a path to stderr.
/// - STATISTICS: the same, or 1 for text; one record per launch.
/// - FAIL: see FaultInjection::plan.
struct Settings {
    std::vector<const DeviceModel*> devices;
    Options options;
    OutputFormat report_format = OutputFormat::text;
    std::string report_path;  ///< empty: stderr
    bool statistics = false;
    OutputFormat statistics_format = OutputFormat::text;
    std::string statistics_path;
    std::string faults;
    /// Sentences about what could not be understood. If there are any, no CUDA call works: a typo must not select
    /// another device in silence.
    std::vector<std::string> errors;
};

/// Reads the settings with `get`, which gives a variable's value or null.
[[nodiscard]] Settings read_settings(const std::function<const char*(const char*)>& get);

}  // namespace tessera::emulator
