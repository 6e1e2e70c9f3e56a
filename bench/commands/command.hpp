#pragma once

/// The commands of tessera-bench. Each file beside this one adds one of them to the command line.

#include <CLI/CLI.hpp>
#include <functional>

namespace tessera::bench {

enum ExitCode : int { success = 0, failure = 1, bad_usage = 2, no_device = 77 };

struct Command {
    CLI::App* parser;  ///< of its options
    /// Called when the command line has been parsed: checks the options, before a device is needed, and returns what to run,
    /// which measures and returns an exit code.
    /// @throws std::invalid_argument if they ask for something impossible
    std::function<std::function<int()>()> prepare;
};

Command add_gemm_command(CLI::App& app);
Command add_tune_command(CLI::App& app);
Command add_tiles_command(CLI::App& app);
Command add_simt_command(CLI::App& app);
Command add_launch_command(CLI::App& app);

}  // namespace tessera::bench
