/// The environment, fault injection, reports, error names, statistics.

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/statistics.hpp"
#include "checks/report_json.hpp"
#include "runtime/error_names.hpp"
#include "runtime/fault_injection.hpp"
#include "runtime/settings.hpp"

using namespace tessera::emulator;

namespace {

Settings read(std::map<std::string, std::string> variables)
{
    return read_settings([&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    });
}

}  // namespace

TEST_CASE("without variables the device is a b200 with checks")
{
    const Settings settings = read({});
    REQUIRE(settings.devices.size() == 1);
    CHECK(settings.devices[0]->key == "b200");
    CHECK(settings.options.check);
    CHECK_FALSE(settings.options.same_value_races);
    CHECK_FALSE(settings.options.exits_before_read);
    CHECK_FALSE(settings.options.strict_proxy_fences);
    CHECK_FALSE(settings.options.failed_calls);
    CHECK_FALSE(settings.options.overruns_continue);
    CHECK_FALSE(settings.options.strict);
    CHECK(settings.options.schedule == Schedule::in_order);
    CHECK(settings.errors.empty());
}

TEST_CASE("every variable is read")
{
    const Settings settings =
        read({{"TESSERA_EMU_DEVICE", "h200,t4"},
              {"TESSERA_EMU_SEED", "42"},
              {"TESSERA_EMU_SCHEDULE", "adversarial"},
              {"TESSERA_EMU_NUMERICS", "fast"},
              {"TESSERA_EMU_CHECK", "0"},
              {"TESSERA_EMU_ALSO", "exit-before-read,same-value-race,strict-proxy-fence,flag-before-store,failed-call"},
              {"TESSERA_EMU_OVERRUN", "continue"},
              {"TESSERA_EMU_STRICT", "1"},
              {"TESSERA_EMU_THREADS", "3"},
              {"TESSERA_EMU_REPORT", "json:emulator_settings.json"},
              {"TESSERA_EMU_STATISTICS", "text"},
              {"TESSERA_EMU_FAIL", "3=cudaErrorUnknown"}});
    CHECK(settings.errors.empty());
    REQUIRE(settings.devices.size() == 2);
    CHECK(settings.devices[1]->key == "t4");
    CHECK(settings.options.seed == 42);
    CHECK(settings.options.schedule == Schedule::adversarial);
    CHECK(settings.options.numerics == Numerics::fast);
    CHECK_FALSE(settings.options.check);
    CHECK(settings.options.same_value_races);
    CHECK(settings.options.exits_before_read);
    CHECK(settings.options.strict_proxy_fences);
    CHECK(settings.options.flags_before_stores);
    CHECK(settings.options.failed_calls);
    CHECK(settings.options.overruns_continue);
    CHECK(settings.options.strict);
    CHECK(settings.options.threads == 3);
    CHECK(settings.report_format == OutputFormat::json);
    CHECK(settings.report_path == std::filesystem::absolute("emulator_settings.json"));  // absolute
    CHECK(settings.statistics);
    CHECK(settings.statistics_path.empty());
    CHECK(settings.faults == "3=cudaErrorUnknown");
}

TEST_CASE("a wrong value is named, with the allowed values and a likely correction")
{
    for (const auto& [name, value, expected] :
         {std::tuple{"TESSERA_EMU_DEVICE", "b100",
                     "b200, b300, thor, h200, h100, a100, a10, l40s, rtx5090, gb10, t4 (did you mean \"b200\"?)"},
          {"TESSERA_EMU_DEVICE", "b200,", "it must be a device"},
          {"TESSERA_EMU_SEED", "12x", "a whole number from 0"},
          {"TESSERA_EMU_SEED", "-1", "a whole number from 0"},
          {"TESSERA_EMU_THREADS", "NaN", "a whole number from 0"},
          {"TESSERA_EMU_THREADS", "4097", "to 4096"},
          {"TESSERA_EMU_HANG_LIMIT", "0", "a whole number from 1"},
          {"TESSERA_EMU_SCHEDULE", "advers", "replay:FILE (did you mean \"adversarial\"?)"},
          {"TESSERA_EMU_SCHEDULE", "pct:0", "a depth from 1 to 16"},
          {"TESSERA_EMU_SCHEDULE", "pct:17", "a depth from 1 to 16"},
          {"TESSERA_EMU_SCHEDULE", "pct:3:0", "steps from 1"},
          {"TESSERA_EMU_SCHEDULE", "pct:3:9x", "steps from 1"},
          {"TESSERA_EMU_SCHEDULE", "replay:", "replay:FILE"},
          {"TESSERA_EMU_RECORD", "/no/folder/a", "cannot be written: No such file"},
          {"TESSERA_EMU_TRACE", "/no/folder/a", "cannot be written: No such file"},
          {"TESSERA_EMU_NUMERICS", "exakt", "exact, fast (did you mean \"exact\"?)"},
          {"TESSERA_EMU_CHECK", "2", "0 or 1"},
          {"TESSERA_EMU_STRICT", "yes", "0 or 1"},
          {"TESSERA_EMU_ALSO", "same-race", "exit-before-read"},
          {"TESSERA_EMU_REPORT", "xml", "html:FILE"},
          {"TESSERA_EMU_REPORT", "html", "html:FILE"},
          {"TESSERA_EMU_REPORT", "json:", "json:FILE"},
          {"TESSERA_EMU_REPORT", "jsn:x", "(did you mean \"json:x\"?)"},
          {"TESSERA_EMU_REPORT", "text:/no/folder/a", "and /no/folder/a cannot be written: No such file"},
          {"TESSERA_EMU_STATISTICS", "html:x", "text, json, text:FILE or json:FILE"},
          {"TESSERA_EMU_STATISTICS", "json:/no/folder/a", "cannot be written: No such file"},
          {"TESSERA_EMU_FAIL", "cudaMalloc:1=9999", "there is no error"}}) {
        INFO(name << ": " << value);
        const Settings settings = read({{name, value}});
        REQUIRE(settings.errors.size() == 1);
        CHECK(settings.errors[0].find(name) != std::string::npos);
        CHECK(settings.errors[0].find(value) != std::string::npos);
        CHECK(settings.errors[0].find(expected) != std::string::npos);
    }
    CHECK(read({{"TESSERA_EMU_SCHEDULE", "replay:/no/file"}}).errors ==
          std::vector<std::string>{"TESSERA_EMU_SCHEDULE: /no/file cannot be read: No such file or directory"});
    CHECK(read({{"TESSERA_EMU_FAIL", "cudaMaloc:1=cudaErrorUnknown"}}).errors[0].find("did you mean \"cudaMalloc\"?") !=
          std::string::npos);
}

TEST_CASE("in the name of a file, %p is the number of the process")
{
    const std::string process = std::to_string(::getpid());
    const Settings settings =
        read({{"TESSERA_EMU_REPORT", "json:%p.emulator_%p_report"}, {"TESSERA_EMU_TRACE", "trace_%p"}});
    CHECK(settings.errors.empty());
    CHECK(settings.report_path == std::filesystem::absolute(process + ".emulator_" + process + "_report"));
    CHECK(settings.trace_path == std::filesystem::absolute("trace_" + process));
}

TEST_CASE("each output has a file of its own, however its path is written")
{
    const std::vector<std::pair<std::string, std::string>> outputs = {{"TESSERA_EMU_REPORT", "json:"},
                                                                      {"TESSERA_EMU_STATISTICS", "text:"},
                                                                      {"TESSERA_EMU_RECORD", ""},
                                                                      {"TESSERA_EMU_TRACE", ""}};
    for (std::size_t second = 1; second < outputs.size(); ++second) {
        for (std::size_t first = 0; first < second; ++first) {
            CAPTURE(outputs[first].first);
            CAPTURE(outputs[second].first);
            const auto both = [&](const std::string& path) {
                return read({{outputs[first].first, outputs[first].second + "emulator_output"},
                             {outputs[second].first, outputs[second].second + path}})
                    .errors;
            };
            REQUIRE(both("./emulator_output").size() == 1);
            CHECK(both("./emulator_output")[0].starts_with(outputs[second].first + ": the "));
            CHECK(both("./emulator_output")[0].ends_with("is written to the same file; choose another one"));
            CHECK(both("other_emulator_output").empty());
        }
    }
}

TEST_CASE("a variable with a wrong name is named, with a likely correction")
{
    const auto sentences = [](std::vector<const char*> environment) {
        environment.push_back(nullptr);
        return misnamed_variables(environment.data());
    };
    CHECK(sentences({}).empty());
    CHECK(sentences({"TESSERA_EMU_SCHEDULE=random", "TESSERA_EMU_PATHS=", "TESSERA_EMU_SHEDULE=", "TESSERA=1", "A"})
              .empty());
    CHECK(sentences({"TESSERA_EMU_SEED=1", "TESSERA_EMU_SHEDULE=random", "HOME=/"}) ==
          std::vector<std::string>{
              "TESSERA_EMU_SHEDULE is set, which is no variable of the emulated device (did you mean "
              "TESSERA_EMU_SCHEDULE?)"});
    const auto far = sentences({"TESSERA_EMU_QQQQQQ=1"});
    REQUIRE(far.size() == 1);
    CHECK(far[0].starts_with("TESSERA_EMU_QQQQQQ is set, which is none of the variables TESSERA_EMU_DEVICE, "));
}

TEST_CASE("the schedule pct has a depth, and perhaps a number of steps")
{
    const auto options = [](const char* value) { return read({{"TESSERA_EMU_SCHEDULE", value}}).options; };
    CHECK(options("pct").schedule == Schedule::pct);
    CHECK(options("pct").depth == 3);
    CHECK(options("pct").depth_steps == 0);
    CHECK(options("pct:2").depth == 2);
    CHECK(options("pct:5:480").depth == 5);
    CHECK(options("pct:5:480").depth_steps == 480);
    CHECK(shown_schedule(options("pct:5:480")) == "pct:5:480");
    CHECK(shown_schedule(options("pct:2")) == "pct:2");
    CHECK(shown_schedule(options("random")) == "random");
}

TEST_CASE("a refusal uses the option or variable that set the value")
{
    CHECK(known_settings().size() == 16);
    for (const Setting& setting : known_settings()) {
        // A word that is none of the allowed ones; where any file is allowed, one that cannot be written.
        const char* const wrong = setting.allowed == "a FILE" ? "/" : "?";
        const auto get = [&](const char* name) { return std::string_view(name) == setting.variable ? wrong : nullptr; };
        const Settings settings = read_settings(get, [&](const char*) { return std::string(setting.option); });
        CAPTURE(setting.option);
        REQUIRE(settings.errors.size() == 1);
        CHECK(settings.errors[0].starts_with(setting.option));
    }
}

TEST_CASE("testing whether a file can be written leaves no file behind")
{
    const std::string path = "output_problem_test.txt";
    CHECK(output_problem(path).empty());
    CHECK_FALSE(std::filesystem::exists(path));
    CHECK(output_problem("/dev/null").empty());
    CHECK_FALSE(output_problem("/").empty());
}

TEST_CASE("the n-th call fails, of one name or of all")
{
    FaultInjection faults;
    faults.plan("cudaMalloc:2=cudaErrorMemoryAllocation,4=999");
    CHECK(faults.next("cudaMalloc") == 0);
    CHECK(faults.next("cudaFree") == 0);
    CHECK(faults.next("cudaMalloc") == 2);
    CHECK(faults.next("cudaFree") == 999);
    CHECK(faults.next("cudaMalloc") == 0);
    CHECK(faults.calls() == 5);
    faults.fail("", 1, 700);
    CHECK(faults.next("cudaMemcpy") == 700);
    faults.fail("cudaFree", 1, 700);
    faults.clear();
    CHECK(faults.next("cudaFree") == 0);
}

TEST_CASE("invalid plans of failing calls are refused")
{
    for (const char* plan : {"cudaMalloc", "cudaMalloc:x=cudaErrorUnknown", "cudaMalloc:0=cudaErrorUnknown",
                             "1=cudaErrorNoSuchThing", "1=0", "1=cudaSuccess", "=cudaErrorUnknown"}) {
        CAPTURE(plan);
        FaultInjection faults;
        CHECK_THROWS_AS(faults.plan(plan), std::invalid_argument);
    }
}

TEST_CASE("error names and codes convert both ways")
{
    CHECK(std::string_view(error_name(700)) == "cudaErrorIllegalAddress");
    CHECK(find_error("cudaErrorTensorMemoryLeak") == 721);
    CHECK(error_name(12345) == nullptr);
    CHECK(error_text(12345) == nullptr);
    CHECK_FALSE(find_error("cudaErrorNothing").has_value());
    CHECK(std::string_view(error_text(2)) == "out of memory");
}

TEST_CASE("a repeated finding is counted, not added")
{
    Report report;
    int news = 0;
    report.on_new = [&](const Finding&) { ++news; };
    Finding finding;
    finding.kind = FindingKind::shared_race;
    finding.kernel = "k";
    finding.ptx_line = 12;
    finding.ptx_text = "st.shared.b32 [%r1], %r2;";
    finding.cta = {0, 0, 0};
    finding.message = "first";
    finding.lanes = 4;
    CHECK(report.add(finding));
    finding.message = "second";
    CHECK_FALSE(report.add(finding));
    finding.ptx_line = 13;
    CHECK(report.add(finding));
    finding.kind = FindingKind::deadlock;
    CHECK(report.add(finding));
    CHECK(news == 3);
    CHECK(report.total() == 4);
    REQUIRE(report.findings().size() == 3);
    CHECK(report.findings()[0].count == 2);
    CHECK(
        report.text().starts_with("shared-race: first\n  in kernel k\n  2 times: 2 accesses in 1 CTA; first by CTA "
                                  "(0, 0, 0), warp 0, lane 2\n  PTX line 12: st.shared"));
    report.clear();
    CHECK(report.total() == 0);
}

TEST_CASE("findings without a place are told apart by their messages")
{
    Report report;
    Finding leak;
    leak.kind = FindingKind::resource_leak;
    leak.message = "a";
    CHECK(report.add(leak));
    CHECK_FALSE(report.add(leak));
    leak.message = "b";
    CHECK(report.add(leak));
}

TEST_CASE("JSON escapes what must be escaped")
{
    Report report;
    Finding finding;
    finding.kind = FindingKind::trap;
    finding.error = true;
    finding.message = "a \"quoted\" \\ word\nand a line";
    report.add(finding);
    const std::string json = report_json(report.findings(), {});
    CHECK(
        json.find(R"("kind": "trap", "error": true, "count": 1, "message": "a \"quoted\" \\ word\u000aand a line")") !=
        std::string::npos);
    CHECK(json.find("\"total\": 1,") != std::string::npos);
}

TEST_CASE("every kind of finding has its own name")
{
    std::map<std::string_view, int> names;
    for (int kind = 0; kind <= static_cast<int>(FindingKind::not_emulated); ++kind) {
        ++names[name_of(static_cast<FindingKind>(kind))];
    }
    CHECK(names.size() == static_cast<std::size_t>(FindingKind::not_emulated) + 1);
    CHECK(names.contains("missing-proxy-fence"));
}

TEST_CASE("statistics add up and are written")
{
    Statistics a;
    a.mma_issued = 3;
    a.warp_instructions[0] = 10;
    a.overlap_steps[6] = 5;
    Statistics b = a;
    b += a;
    CHECK(b.mma_issued == 6);
    CHECK(b.warp_instructions[0] == 20);
    CHECK(b.overlap_steps[6] == 10);
    CHECK(to_json(b).find("\"mma_issued\": 6") != std::string::npos);
    CHECK(to_json(b).find("\"loads+mmas\": 10") != std::string::npos);
    CHECK(to_text(b).find("warp_instructions.integer") != std::string::npos);
}
