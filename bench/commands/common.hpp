#pragma once

/// What commands share: common options, output files, the environment, and the exit code.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "method/clock_sampler.hpp"
#include "method/nvml.hpp"
#include "report/environment.hpp"
#include "report/report.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

struct CommonOptions {
    int device = 0;
    std::string csv;
    std::string json;
    bool quick = false;
    std::size_t rounds = 0;  ///< 0: the command's default
    std::uint64_t seed = 1;

    /// Returns the rounds to measure, of a command that measures `usual` ones.
    std::size_t rounds_of(std::size_t usual) const { return rounds != 0 ? rounds : quick ? usual / 4 : usual; }
};

void add_device_option(CLI::App& command, CommonOptions& common);
/// Adds the options of commands that write results to files.
void add_common_options(CLI::App& command, CommonOptions& common);
/// Adds --sample, in milliseconds.
void add_sample_option(CLI::App& command, int& sample, const std::string& description);

/// Opened before anything is measured, so that a path that cannot be written fails at once.
class OutputFile {
public:
    /// @param path  empty: nothing is written
    /// @throws std::invalid_argument if it cannot be written
    explicit OutputFile(const std::string& path);
    void write(const std::string& text);

private:
    std::string path_;
    std::ofstream file_;
};

/// @throws std::invalid_argument if there is no such device
Device require_device(int ordinal);

/// Prints a line, at once.
void print(const std::string& text);

/// Says so if a result is wrong, and returns failure if a contender with this prefix computed it.
int exit_code_of(const std::vector<ProblemReport>& reports, std::string_view prefix = {});

/// Clock and power of a device during a run, and what the environment says about them.
class Monitor {
public:
    explicit Monitor(const Device& device);

    /// Null if they cannot be read.
    ClockSampler* sampler() { return sampler_ ? &*sampler_ : nullptr; }

    /// Adds what was read to the environment, and prints it.
    void finish(Environment& environment, const std::vector<ProblemReport>& reports) const;

private:
    std::string refusal_;
    std::optional<NvmlDevice> nvml_;
    std::optional<ClockSampler> sampler_;  // after what it reads
};

}  // namespace tessera::bench
