// tessera-emu: runs a program on the emulated device.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/device_model.hpp"
#include "tool/elf_file.hpp"

namespace {

namespace fs = std::filesystem;
using tessera::emulator::ElfFile;

constexpr const char* library_name = "libcudart.so.13";
constexpr int exit_usage = 2;
constexpr int exit_cannot_execute = 126;
constexpr int exit_not_found = 127;

/// An option that is handed on as an environment variable.
struct Handed {
    const char* variable;
    std::string value;
};

/// The folder of the emulated libraries, from where this executable lies: in the build tree or in an installation.
std::optional<fs::path> find_library_folder()
{
    std::error_code error;
    const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const char* relative : {TESSERA_EMULATOR_BUILD_FOLDER, TESSERA_EMULATOR_INSTALLED_FOLDER}) {
        const fs::path folder = own / relative;
        if (fs::exists(folder / library_name, error)) {
            return fs::weakly_canonical(folder);
        }
    }
    return std::nullopt;
}

/// The file that execvp would take.
std::optional<std::string> find_program(const std::string& name)
{
    if (name.find('/') != std::string::npos) {
        return fs::exists(name) ? std::optional(name) : std::nullopt;
    }
    const char* path = std::getenv("PATH");
    std::string_view rest = path == nullptr ? "" : path;
    while (!rest.empty()) {
        const std::size_t colon = rest.find(':');
        const fs::path candidate = fs::path(rest.substr(0, colon)) / name;
        if (::access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate)) {
            return candidate.string();
        }
        rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    }
    return std::nullopt;
}

void put_in_front(const char* variable, const std::string& value, const char* separator)
{
    const char* old = std::getenv(variable);
    const std::string joined = old == nullptr || *old == '\0' ? value : value + separator + old;
    ::setenv(variable, joined.c_str(), 1);
}

bool needs(const ElfFile& file, std::string_view library)
{
    return std::ranges::find(file.needed, library) != file.needed.end();
}

/// Why the program would not run on the emulated device; empty if nothing speaks against it.
std::string refusal(const std::string& path, const ElfFile& file)
{
    if (!file.is_elf || needs(file, library_name)) {
        return {};
    }
    for (const std::string& library : file.needed) {
        if (library.starts_with("libcudart.so.")) {
            return fmt::format("{} needs {}; the emulated device is a {}. Compile with CUDA 13", path, library,
                               library_name);
        }
    }
    if (file.has_fatbin) {
        return fmt::format(
            "{} has device code, but the CUDA runtime is linked into it statically (nvcc's default), so nothing can "
            "take "
            "its place. Link again with nvcc --cudart shared (CMake: CMAKE_CUDA_RUNTIME_LIBRARY=Shared)",
            path);
    }
    return {};
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app(
        "Runs a CUDA program on an emulated device: its kernels are executed from their PTX by the CPU.\n"
        "Usage: tessera-emu [options] -- program [arguments]");
    std::vector<Handed> handed;
    handed.reserve(16);
    const auto hand_on = [&](const char* option, const char* variable, const char* help) {
        handed.push_back({variable, {}});
        return app.add_option(option, handed.back().value, help);
    };
    std::string devices;
    for (const auto& model : tessera::emulator::device_models()) {
        devices += (devices.empty() ? "" : ", ") + model.key;
    }
    hand_on("--device", "TESSERA_EMU_DEVICE", "")
        ->description(fmt::format("{}; several separated by commas are several devices [b200]", devices));
    hand_on("--seed", "TESSERA_EMU_SEED", "of the scheduler's choices [1]");
    hand_on("--schedule", "TESSERA_EMU_SCHEDULE", "how warps and asynchronous work are ordered [in-order]")
        ->check(CLI::IsMember({"in-order", "random", "adversarial"}));
    hand_on("--check", "TESSERA_EMU_CHECK", "0: no search for races, uninitialized reads, protocol faults [1]")
        ->check(CLI::IsMember({"0", "1"}));
    hand_on("--also", "TESSERA_EMU_ALSO",
            "report these, too: same-value-race, exit-before-read; several with commas [none]");
    hand_on("--report", "TESSERA_EMU_REPORT", "text, json, text:FILE or json:FILE [text, to stderr]");
    hand_on("--fail", "TESSERA_EMU_FAIL",
            "fail calls on purpose: NAME:N=ERROR or N=ERROR, for example cudaMalloc:3=cudaErrorMemoryAllocation");
    hand_on("--threads", "TESSERA_EMU_THREADS", "CPU threads; results do not depend on it [all cores]")
        ->check(CLI::NonNegativeNumber);
    hand_on("--numerics", "TESSERA_EMU_NUMERICS", "exact: tensor cores' sums bit by bit; fast: with vectors [exact]")
        ->check(CLI::IsMember({"exact", "fast"}));
    hand_on("--statistics", "TESSERA_EMU_STATISTICS", "per launch: text, json, text:FILE or json:FILE");
    hand_on("--hang-limit", "TESSERA_EMU_HANG_LIMIT",
            "instructions of a cluster without progress that count as a hang");
    bool strict = false;
    app.add_flag("--strict", strict, "a finding ends its launch with an error, and the program with exit status 86");
    std::vector<std::string> command;
    app.add_option("program", command, "the program and its arguments");
    app.prefix_command();
    app.positionals_at_end();
    // What follows the first "--" is not for CLI11, some versions of which would hand the "--" itself on to the
    // program.
    char** const end = argv + argc;
    char** const separator = std::find(argv, end, std::string_view("--"));
    CLI11_PARSE(app, static_cast<int>(separator - argv), argv);
    const std::vector<std::string> rest = app.remaining();
    command.insert(command.end(), rest.begin(), rest.end());
    command.insert(command.end(), command.empty() && separator != end ? separator + 1 : separator, end);
    if (command.empty()) {
        fmt::print(stderr, "tessera-emu: which program? tessera-emu [options] -- program [arguments]\n");
        return exit_usage;
    }

    const auto folder = find_library_folder();
    if (!folder) {
        fmt::print(stderr, "tessera-emu: {} is not where it belongs, relative to this executable: {} or {}\n",
                   library_name, TESSERA_EMULATOR_BUILD_FOLDER, TESSERA_EMULATOR_INSTALLED_FOLDER);
        return exit_usage;
    }
    const auto program = find_program(command.front());
    if (!program) {
        fmt::print(stderr, "tessera-emu: {}: not found\n", command.front());
        return exit_not_found;
    }
    try {
        const ElfFile file = tessera::emulator::read_elf(*program);
        if (const std::string why = refusal(*program, file); !why.empty()) {
            fmt::print(stderr, "tessera-emu: {}\n", why);
            return exit_usage;
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "tessera-emu: {}\n", error.what());
        return exit_cannot_execute;
    }
    for (const Handed& option : handed) {
        if (!option.value.empty()) {
            ::setenv(option.variable, option.value.c_str(), 1);
        }
    }
    if (strict) {
        ::setenv("TESSERA_EMU_STRICT", "1", 1);
    }
    // The path is for what programs load later; an RPATH of the program would beat it, but nothing beats a preload.
    put_in_front("LD_LIBRARY_PATH", folder->string(), ":");
    put_in_front("LD_PRELOAD", (*folder / library_name).string(), ":");
    std::vector<char*> arguments;
    for (std::string& argument : command) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    ::execvp(program->c_str(), arguments.data());
    fmt::print(stderr, "tessera-emu: {}: {}\n", *program, std::strerror(errno));
    return exit_cannot_execute;
}
