/// tessera-bench: measures this library and its peers on the machine that it runs on. See README.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "commands/command.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {
namespace {

int run(int argc, char** argv)
{
    CLI::App app("Compares Tessera with cuBLASLt, cuBLAS, OpenBLAS and raw launches on this machine.", "tessera-bench");
    app.require_subcommand(0, 1);
    app.footer(
        "The default command is simt.\n"
        "Exit codes: 0 success, 1 wrong result or failure, 2 invalid command line, 77 no CUDA device.");
    const std::array commands{add_gemm_command(app), add_tune_command(app), add_tiles_command(app),
                              add_simt_command(app), add_launch_command(app)};

    // simt is the default: its options may be given without the command's name.
    std::vector<std::string> arguments(argv + 1, argv + argc);
    const bool asks_for_help = !arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h");
    if (arguments.empty() || (arguments[0].starts_with('-') && !asks_for_help)) {
        arguments.insert(arguments.begin(), "simt");
    }
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects the vector in reverse
    try {
        app.parse(arguments);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? success : bad_usage;
    }

    for (const Command& command : commands) {
        if (command.parser->parsed()) {
            const std::function<int()> measure = command.prepare();
            if (Device::count() == 0) {
                fmt::print(stderr, "tessera-bench: no CUDA device found (or no driver for it); nothing was measured\n");
                return no_device;
            }
            return measure();
        }
    }
    return bad_usage;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv)  // NOLINT(bugprone-exception-escape): only if stderr is broken
{
    using namespace tessera::bench;
    try {
        return run(argc, argv);
    } catch (const std::invalid_argument& error) {  // the command line asks for something impossible
        fmt::print(stderr, "tessera-bench: {}\n", error.what());
        return bad_usage;
    } catch (const std::exception& error) {
        fmt::print(stderr, "tessera-bench: {}\n", error.what());
        return failure;
    }
}
