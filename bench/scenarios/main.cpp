/// tessera-scenarios: full-stack scenarios, each a baseline and an optimized entry with one result. See docs/scenarios.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "commands/command.hpp"
#include "commands/common.hpp"
#include "report/environment.hpp"
#include "scenarios/report.hpp"
#include "scenarios/scenario.hpp"
#include "tessera/error.hpp"

namespace tessera::scenarios {
namespace {

using bench::OutputFile;

struct Options {
    std::vector<std::string> names;
    int device = 0;
    bool small = false;
    bool full = false;
    std::size_t repetitions = 0;  // 0: 7 on a GPU, 1 on an emulated device
    std::uint64_t seed = 1;
    std::string json;
    std::string html;
    std::string scratch = std::filesystem::temp_directory_path().string();
    std::string digits = SCENARIOS_DIGITS_FOLDER;
    std::string programs = SCENARIOS_PROGRAMS_FOLDER;
};

/// Returns the scenarios of these names, in the order of their numbers. None, or "all", stand for all.
std::vector<const Scenario*> chosen(const std::vector<std::string>& names)
{
    std::vector<const Scenario*> scenarios;
    const auto is_named = [&](std::string_view name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const Scenario& scenario : all_scenarios()) {
        if (names.empty() || is_named("all") || is_named(scenario.name)) {
            scenarios.push_back(&scenario);
        }
    }
    return scenarios;
}

/// Checks that a name is a scenario's.
std::string refusal_of_name(const std::string& name)
{
    std::string known = "all";
    for (const Scenario& scenario : all_scenarios()) {
        if (name == scenario.name || name == "all") {
            return {};
        }
        known += fmt::format(", {}", scenario.name);
    }
    return fmt::format("there is no scenario '{}'; there are: {}", name, known);
}

int list()
{
    for (const Scenario& scenario : all_scenarios()) {
        fmt::print("{}. {:<15} {}\n   baseline:  {}\n   optimized: {}\n", scenario.number, scenario.name,
                   scenario.title, scenario.baseline, scenario.optimized);
    }
    return bench::success;
}

bool is_emulated(const Device& device) { return device.properties().name.find("(emulated)") != std::string::npos; }

/// Runs a scenario; what it throws becomes the report's reason.
Report run(const Scenario& scenario, const Context& context)
{
    Report report{.scenario = &scenario, .skipped = {}, .failure = {}, .outcome = {}};
    try {
        report.outcome = scenario.run(context);
    } catch (const Skip& reason) {
        report.skipped = reason.what();
    } catch (const std::exception& error) {
        report.failure = error.what();
    }
    return report;
}

std::vector<Report> run_all(const std::vector<const Scenario*>& scenarios, const Options& options, const Device& device)
{
    const bool emulated = is_emulated(device);
    Context context{.device = device,
                    .full = options.full || (!options.small && !emulated),
                    .repetitions = options.repetitions != 0 ? options.repetitions
                                   : emulated               ? 1U
                                                            : 7U,
                    .warm_up = !emulated,
                    .seed = options.seed,
                    .scratch = options.scratch,
                    .digits = options.digits,
                    .programs = options.programs};
    device.make_current();
    std::vector<Report> reports;
    for (const Scenario* scenario : scenarios) {
        reports.push_back(run(*scenario, context));
        bench::print(text_of(reports.back()));
    }
    return reports;
}

/// Returns a report of each scenario that says why none runs here.
std::vector<Report> without_device(const std::vector<const Scenario*>& scenarios)
{
    std::vector<Report> reports;
    for (const Scenario* scenario : scenarios) {
        reports.push_back(
            {.scenario = scenario,
             .skipped = "this machine has no CUDA device (or no driver for it); tessera-emu has emulated ones",
             .failure = {},
             .outcome = {}});
        bench::print(text_of(reports.back()));
    }
    return reports;
}

int run_command(const Options& options)
{
    const std::vector<const Scenario*> scenarios = chosen(options.names);
    if (!std::filesystem::is_directory(options.scratch)) {
        throw std::invalid_argument(fmt::format("--scratch {}: there is no such folder", options.scratch));
    }
    OutputFile json(options.json);
    OutputFile html(options.html);
    bench::Environment environment;
    std::vector<Report> reports;
    bool emulated = false;
    if (Device::count() == 0) {
        reports = without_device(scenarios);
    } else {
        const Device device = bench::require_device(options.device);
        emulated = is_emulated(device);
        environment = bench::environment_of(device);
        environment.emplace_back("devices", fmt::format("{}", Device::count()));
        if (emulated) {
            bench::print("An emulated device: the results are real, the times say nothing about a GPU.\n");
        }
        reports = run_all(scenarios, options, device);
    }
    json.write(json_of(environment, reports));
    html.write(html_of(environment, reports, emulated));
    const auto count = [&](auto&& matches) { return std::count_if(reports.begin(), reports.end(), matches); };
    const auto ran = count([](const Report& report) { return report.ran(); });
    const auto skipped = count([](const Report& report) { return !report.skipped.empty(); });
    const auto bad =
        count([](const Report& report) { return !report.failure.empty() || (report.ran() && !report.agrees()); });
    bench::print(
        fmt::format("{} of {} scenarios ran, {} skipped, {} failed or disagreed", ran, reports.size(), skipped, bad));
    return bad != 0 ? bench::failure : ran != 0 ? bench::success : bench::no_device;
}

int parse_and_run(int argc, char** argv)
{
    CLI::App app("Runs full-stack scenarios: each is one job done in two ways, with one result.", "tessera-scenarios");
    app.require_subcommand(1);
    app.footer(
        "Exit codes: 0 success, 1 a wrong result or a failure, 2 invalid command line, 77 nothing could run on this "
        "machine.");
    const CLI::App* const list_command = app.add_subcommand("list", "List the scenarios");
    CLI::App* const run_command_options = app.add_subcommand("run", "Run scenarios");
    Options options;
    run_command_options->add_option("NAME", options.names, "scenarios to run [all]")
        ->check(CLI::Validator(refusal_of_name, "NAME"));
    CLI::Option* const small =
        run_command_options->add_flag("--small", options.small, "small sizes [on an emulated device]");
    run_command_options->add_flag("--full", options.full, "sizes for a data-center GPU [on a GPU]")->excludes(small);
    run_command_options->add_option("--json", options.json, "write all results to this file as JSON");
    run_command_options->add_option("--html", options.html, "write a page with tables and charts to this file");
    run_command_options->add_option("--device", options.device, "CUDA device number")->check(CLI::Range(0, 1023));
    run_command_options->add_option("--repetitions", options.repetitions, "timed runs of each entry [7; emulated: 1]")
        ->check(CLI::Range(1, 100000));
    run_command_options->add_option("--seed", options.seed, "seed of the random operands")->capture_default_str();
    run_command_options->add_option("--scratch", options.scratch, "folder for temporary files")->capture_default_str();
    run_command_options->add_option("--digits", options.digits, "folder of the digits example's data")
        ->capture_default_str();
    run_command_options->add_option("--programs", options.programs, "folder of the tile programs")
        ->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? bench::success : bench::bad_usage;
    }
    return list_command->parsed() ? list() : run_command(options);
}

}  // namespace
}  // namespace tessera::scenarios

int main(int argc, char** argv)  // NOLINT(bugprone-exception-escape): only if stderr is broken
{
    try {
        return tessera::scenarios::parse_and_run(argc, argv);
    } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "tessera-scenarios: {}\n", error.what());
        return tessera::bench::bad_usage;
    } catch (const std::exception& error) {
        fmt::print(stderr, "tessera-scenarios: {}\n", error.what());
        return tessera::bench::failure;
    }
}
