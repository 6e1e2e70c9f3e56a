#include "runtime/report_output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <system_error>

#include "runtime/state.hpp"

namespace tessera::emulator {

namespace {

constexpr std::string_view heading = "tessera-emu: ";

/// `word` quoted for a shell.
std::string shell_word(const std::string& word)
{
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
        return word;
    }
    std::string quoted = "'";
    for (const char c : word) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

std::string read_file(const char* path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The program and its arguments.
std::string command_line()
{
    std::string command;
    const std::string words = read_file("/proc/self/cmdline");
    for (std::size_t start = 0; start < words.size();) {
        const std::size_t end = words.find('\0', start);
        command += " " + shell_word(words.substr(start, end - start));
        start = end == std::string::npos ? words.size() : end + 1;
    }
    return command;
}

std::string report_text(const Settings& settings, const std::vector<Finding>& findings)
{
    std::string text;
    for (const Finding& finding : findings) {
        text += to_text(finding);
    }
    return text + summary_text(findings, settings.options.strict);
}

struct Totals {
    std::mutex mutex;
    std::vector<KernelTotals> kernels;  // in the order of their first launches

    static Totals& get()
    {
        static auto* const totals = new Totals;  // launches may end while the process exits
        return *totals;
    }
};

std::string in_format(const Settings& settings, const Report& report)
{
    const std::vector<Finding> findings = report.findings();
    switch (settings.report_format) {
        case OutputFormat::json: return report_json(findings, run_facts(settings));
        case OutputFormat::html: {
            const std::scoped_lock lock(Totals::get().mutex);
            return report_html(findings, run_facts(settings), Totals::get().kernels);
        }
        case OutputFormat::text: break;
    }
    return report_text(settings, findings);
}

}  // namespace

TextStyle terminal_style()
{
    if (::isatty(STDERR_FILENO) == 0) {
        return {};
    }
    const char* const no_colour = std::getenv("NO_COLOR");
    const char* const terminal = std::getenv("TERM");
    const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
    winsize size{};
    const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    return {.colour = (no_colour == nullptr || *no_colour == '\0') && !is_dumb,
            .width = is_known ? std::size_t{size.ws_col} : 0};  // 0 columns: unknown to the terminal
}

RunFacts run_facts(const Settings& settings)
{
    RunFacts facts;
    facts.version = TESSERA_EMULATOR_VERSION;
    for (const DeviceModel* device : settings.devices) {
        facts.devices += (facts.devices.empty() ? "" : ",") + device->key;
    }
    facts.schedule = shown_schedule(settings.options);
    facts.numerics = name_of(settings.options.numerics);
    facts.seed = settings.options.seed;
    facts.strict = settings.options.strict;
    std::error_code error;
    facts.folder = std::filesystem::current_path(error).string();
    facts.command =
        fmt::format("tessera-emu --device {} --schedule {} --seed {}", facts.devices, facts.schedule, facts.seed);
    const Options& options = settings.options;
    facts.command += options.numerics == Numerics::fast ? " --numerics fast" : "";
    facts.command += options.check ? "" : " --check 0";
    const char* separator = " --also ";
    for (const OptionalFinding& finding : optional_findings) {
        if (options.*(finding.option)) {
            facts.command += separator;
            facts.command += finding.name;
            separator = ",";
        }
    }
    facts.command += options.overruns_continue ? " --overrun continue" : "";
    facts.command += settings.faults.empty() ? "" : " --fail " + shell_word(settings.faults);
    facts.command += options.strict ? " --strict" : "";
    facts.command += " --" + command_line();
    return facts;
}

bool write_report_file(const std::string& path, const std::string& text)
{
    std::FILE* const file = std::fopen(path.c_str(), "w");
    bool is_written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    int reason = is_written ? 0 : errno;
    if (file != nullptr && std::fclose(file) != 0 && is_written) {
        is_written = false;
        reason = errno;
    }
    static std::atomic<bool> is_said{false};
    if (!is_written && !is_said.exchange(true)) {
        say(fmt::format("the report cannot be written to {}: {}", path, std::strerror(reason)));
    }
    return is_written;
}

void count_launch(const std::string& kernel, const Statistics& statistics)
{
    Totals& totals = Totals::get();
    const std::scoped_lock lock(totals.mutex);
    auto found =
        std::ranges::find_if(totals.kernels, [&](const KernelTotals& known) { return known.kernel == kernel; });
    if (found == totals.kernels.end()) {
        totals.kernels.push_back({kernel, 0, {}});
        found = totals.kernels.end() - 1;
    }
    ++found->launches;
    found->statistics += statistics;
}

void publish(const Settings& settings, const Report& report, const Finding& finding)
{
    if (!settings.report_path.empty()) {
        static std::mutex mutex;
        const std::scoped_lock lock(mutex);
        // Early, in case the program does not end by itself. A pipe or a terminal cannot be written again.
        std::error_code error;
        const auto kind = std::filesystem::status(settings.report_path, error).type();
        if (kind == std::filesystem::file_type::regular || kind == std::filesystem::file_type::not_found) {
            write_report_file(settings.report_path, in_format(settings, report));
        }
    } else if (settings.report_format == OutputFormat::text) {
        const std::string text = to_text(finding, terminal_style(), heading);
        std::fwrite(text.data(), 1, text.size(), stderr);
    }
}

bool publish_all(const Settings& settings, const Report& report)
{
    bool is_written = true;
    if (!settings.report_path.empty()) {
        is_written = write_report_file(settings.report_path, in_format(settings, report));
    } else if (settings.report_format == OutputFormat::json) {
        const std::string text = in_format(settings, report);
        std::fwrite(text.data(), 1, text.size(), stderr);
    }
    if (settings.report_format != OutputFormat::json) {
        const std::vector<Finding> findings = report.findings();
        if (std::string text = summary_text(findings, settings.options.strict, terminal_style()); !text.empty()) {
            text.pop_back();
            say(text);
        }
    }
    return is_written;
}

}  // namespace tessera::emulator
