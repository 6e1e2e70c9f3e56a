// tessera-emu: runs a program on the emulated device.

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_model.hpp"
#include "runtime/settings.hpp"
#include "tool/elf_file.hpp"

namespace {

namespace fs = std::filesystem;
using tessera::emulator::ElfFile;
using tessera::emulator::Setting;

constexpr const char* library_name = "libcudart.so.13";
constexpr int exit_usage = tessera::emulator::refused_exit_status;
constexpr int exit_cannot_execute = 126;
constexpr int exit_not_found = 127;
const std::array<std::string, 3> questions{"--help", "--version", "--list-devices"};

/// The folder of the emulated libraries, relative to this executable: in the build tree or in an installation.
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

/// The file that execvp would execute.
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

/// Why the program cannot run on the emulated device; empty if it can.
std::string refusal(const std::string& path, const ElfFile& file)
{
    if (!file.is_elf || needs(file, library_name)) {
        return {};
    }
    for (const std::string& library : file.needed) {
        if (library.starts_with("libcudart.so.")) {
            return fmt::format("{} needs {}, but the emulated device replaces {}. Compile with CUDA 13", path, library,
                               library_name);
        }
    }
    if (file.has_fatbin) {
        return fmt::format(
            "{} has device code, but the CUDA runtime is linked into it statically (nvcc's default), which cannot be "
            "replaced. Link again with nvcc --cudart shared (CMake: CMAKE_CUDA_RUNTIME_LIBRARY=Shared)",
            path);
    }
    return {};
}

/// Why the loader would ignore LD_PRELOAD; empty if it would not. The program would then run on the machine's own
/// devices.
std::string secure_execution(const std::string& path)
{
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        return {};
    }
    const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid();
    const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid();
    const bool capabilities = ::geteuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
    if (!other_user && !other_group && !capabilities) {
        return {};
    }
    return fmt::format("{} is {}, so the loader would not replace its CUDA runtime. Run a copy without these rights",
                       path,
                       other_user    ? "a setuid program"
                       : other_group ? "a setgid program"
                                     : "a program with capabilities");
}

constexpr const char* white_space = " \t\n";

/// The loader treats a ':' as the end of a name, and would run the program without the emulated device. So it does with a
/// ';' in LD_LIBRARY_PATH, and it replaces $LIB and other names that begin with '$'. White space ends a name in
/// LD_PRELOAD. A bare name is found by LD_LIBRARY_PATH instead, unless the program has an RPATH.
std::string folder_problem(const std::string& folder, const ElfFile& program)
{
    const std::size_t special = folder.find_first_of(":;$");
    const bool is_special = special != std::string::npos;
    if (!is_special && (folder.find_first_of(white_space) == std::string::npos || program.rpath.empty())) {
        return {};
    }
    return fmt::format(
        "its own folder is \"{}\", and the loader cannot preload a library from a folder with {} in its name{}. "
        "Install or build tessera-emu in another folder",
        folder, is_special ? fmt::format("a '{}'", folder[special]) : "white space",
        is_special ? "" : " for a program that has an RPATH (" + program.rpath + ")");
}

/// Prints the sentence; returns the exit status for it.
int refuse(const std::string& sentence)
{
    fmt::print(stderr, "tessera-emu: {}\n", sentence);
    return exit_usage;
}

void list_devices()
{
    fmt::print("{:<8}{:<36}{:>10}{:>6}{:>9}{:>16}  {}\n", "device", "name", "capability", "SMs", "memory",
               "shared per CTA", "has");
    for (const auto& model : tessera::emulator::device_models()) {
        std::string has = model.max_cluster != 0 ? fmt::format("clusters up to {}", model.max_cluster) : "";
        has += model.tensor_memory ? ", tensor memory" : "";
        has += model.cluster_launch_control ? ", cluster launch control" : "";
        fmt::print("{:<8}{:<36}{:>10}{:>6}{:>5} GiB{:>12} KiB  {}\n", model.key, model.name,
                   fmt::format("{}.{}", model.major, model.minor), model.multiprocessors, model.memory >> 30U,
                   model.shared_per_cta_optin >> 10U, has);
    }
}

/// The command line in three parts.
struct CommandLine {
    std::map<std::string, std::string> values;  ///< by option; a flag's is "1"
    std::set<std::string> asked;                ///< --help, --version, --list-devices
    std::vector<std::string> program;           ///< with its arguments
    std::string error;                          ///< a sentence if the command line is wrong
};

const Setting* find_setting(std::string_view option)
{
    const auto& settings = tessera::emulator::known_settings();
    const auto found = std::ranges::find_if(settings, [&](const Setting& s) { return s.option == option; });
    return found == settings.end() ? nullptr : &*found;
}

std::string unknown_option(const std::string& option)
{
    std::vector<std::string> known(questions.begin(), questions.end());
    for (const Setting& setting : tessera::emulator::known_settings()) {
        known.emplace_back(setting.option);
    }
    const std::string meant = tessera::emulator::nearest(option, known);
    return fmt::format("{} is not an option{}; the options are {}", option,
                       meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant), fmt::join(known, ", "));
}

/// Our options come before the program: up to "--", or up to the first word that is not an option.
CommandLine read_command_line(const std::vector<std::string>& words)
{
    CommandLine line;
    std::size_t i = 0;
    for (; i < words.size() && words[i] != "--" && words[i].starts_with("-"); ++i) {
        const std::size_t equals = words[i].find('=');
        const std::string option = words[i].substr(0, equals);
        if (option == "-h" || std::ranges::find(questions, option) != questions.end()) {
            line.asked.insert(option == "-h" ? "--help" : option);
            continue;
        }
        const Setting* const setting = find_setting(option);
        if (setting == nullptr) {
            line.error = unknown_option(option);
            return line;
        }
        std::string value = "1";
        if (equals != std::string::npos) {
            value = words[i].substr(equals + 1);
        } else if (!setting->is_flag) {
            value = i + 1 < words.size() && words[i + 1] != "--" ? words[++i] : "";
        }
        if (value.empty()) {
            line.error = fmt::format("{} needs a value: {}", option, setting->allowed);
            return line;
        }
        if (!line.values.emplace(option, value).second) {
            line.error = fmt::format("{} is given twice; give it once", option);
            return line;
        }
    }
    const std::size_t program = i < words.size() && words[i] == "--" ? i + 1 : i;
    line.program.assign(words.begin() + static_cast<std::ptrdiff_t>(program), words.end());
    return line;
}

void print_help()
{
    fmt::print(
        "Runs a CUDA program on an emulated device: its kernels are executed from their PTX by the CPU.\n"
        "Usage: tessera-emu [options] [--] program [arguments]\n\n");
    for (const Setting& setting : tessera::emulator::known_settings()) {
        fmt::print("  {:<14} {}\n", setting.option, setting.help);
    }
    fmt::print("  {:<14} {}\n  {:<14} {}\n  {:<14} {}\n\n", "--list-devices", "list the devices that can be emulated",
               "--version", "print the version", "--help", "print this text");
    fmt::print(
        "Each option can also be set by a variable: --device by TESSERA_EMU_DEVICE.\n"
        "In a FILE, %p becomes the number of the process, so that child processes have files of their own.\n"
        "Exit status: the program's own; 86 with --strict and a finding; 2 if the command line or a setting is "
        "wrong,\nif the program cannot run emulated, or if a report cannot be written; 126 or 127 if the program "
        "cannot be executed or found.\n");
}

/// Replaces this process with the program. Returns only if that fails.
int run(const std::vector<std::string>& command, const std::string& path, const std::string& folder)
{
    // LD_LIBRARY_PATH is for libraries that programs load later. A program's RPATH would precede it, but not
    // LD_PRELOAD.
    put_in_front("LD_LIBRARY_PATH", folder, ":");
    const bool bare = folder.find_first_of(white_space) != std::string::npos;
    put_in_front("LD_PRELOAD", bare ? library_name : folder + "/" + library_name, ":");
    // Triton assembles its kernels itself. Kept as PTX they can run here; the program's own choice is left alone.
    for (const char* variable : {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"}) {
        ::setenv(variable, (folder + "/ptxas").c_str(), 0);
    }
    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    ::execvp(path.c_str(), arguments.data());
    // The file exists, so what does not is the program that its first line, or its header, names.
    fmt::print(stderr, "tessera-emu: {}: {}\n", path,
               errno == ENOENT ? "its interpreter or loader was not found" : std::strerror(errno));
    return exit_cannot_execute;
}

}  // namespace

int main(int argc, char** argv)
{
    const CommandLine line = read_command_line({argv + std::min(argc, 1), argv + argc});
    if (!line.error.empty()) {
        return refuse(line.error);
    }
    if (line.asked.contains("--help")) {
        print_help();
        return 0;
    }
    if (line.asked.contains("--version")) {
        fmt::print("tessera-emu {}\n", TESSERA_EMULATOR_VERSION);
        return 0;
    }
    if (line.asked.contains("--list-devices")) {
        list_devices();
        return 0;
    }
    if (line.program.empty()) {
        return refuse("no program is given: tessera-emu [options] -- program [arguments]");
    }
    // Read here as the program will read them, so that nothing runs with wrong settings.
    std::map<std::string, std::string> shown;
    for (const auto& [option, value] : line.values) {
        const char* const variable = find_setting(option)->variable;
        shown[variable] = option;
        ::setenv(variable, value.c_str(), 1);
    }
    const auto settings = tessera::emulator::read_settings([](const char* name) { return std::getenv(name); },
                                                           [&](const char* variable) {
                                                               const auto option = shown.find(variable);
                                                               return option == shown.end() ? variable : option->second;
                                                           });
    if (!settings.errors.empty()) {
        return refuse(settings.errors.front());
    }
    if (const auto misnamed = tessera::emulator::misnamed_variables(environ); !misnamed.empty()) {
        return refuse(misnamed.front());
    }
    const auto folder = find_library_folder();
    if (!folder) {
        return refuse(fmt::format("{} was not found; expected it in {} or {}, relative to this executable",
                                  library_name, TESSERA_EMULATOR_BUILD_FOLDER, TESSERA_EMULATOR_INSTALLED_FOLDER));
    }
    const auto program = find_program(line.program.front());
    if (!program) {
        fmt::print(stderr, "tessera-emu: {}: not found\n", line.program.front());
        return exit_not_found;
    }
    if (std::error_code error; fs::is_directory(*program, error)) {
        fmt::print(stderr, "tessera-emu: {} is a folder; name a program in it\n", *program);
        return exit_cannot_execute;
    }
    try {
        const ElfFile file = tessera::emulator::read_elf(*program);
        for (const std::string& why : {folder_problem(folder->string(), file), refusal(*program, file)}) {
            if (!why.empty()) {
                return refuse(why);
            }
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "tessera-emu: {}\n", error.what());
        return exit_cannot_execute;
    }
    if (const std::string why = secure_execution(*program); !why.empty()) {
        return refuse(why);
    }
    return run(line.program, *program, folder->string());
}
