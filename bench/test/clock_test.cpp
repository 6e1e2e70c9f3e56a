/// Tests of reading clock and power. FAKE_NVML_LIBRARY is the path of the library of fake_nvml.cpp.

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "method/clock_sampler.hpp"
#include "method/nvml.hpp"
#include "report/gemm_summary.hpp"
#include "report/html.hpp"
#include "report/report.hpp"

namespace tessera::bench {
namespace {

using std::chrono::milliseconds;

constexpr const char* bus_id = "0000:1A:00.0";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The environment variable that the fake library reads, for one test.
class Fault {
public:
    explicit Fault(const char* name) { setenv("FAKE_NVML", name, 1); }
    ~Fault() { unsetenv("FAKE_NVML"); }
    Fault(const Fault&) = delete;
    Fault& operator=(const Fault&) = delete;
};

TEST_CASE("clock, power and what limits the clock are read through NVML")
{
    const NvmlDevice device(bus_id, FAKE_NVML_LIBRARY);
    const DeviceReading first = device.read();
    const DeviceReading second = device.read();
    CHECK(second.sm_mhz == first.sm_mhz + 100);
    CHECK(first.watts == doctest::Approx(698.5));
    CHECK(describe_throttle(first.throttle) == "power cap");
    CHECK(describe_throttle(0) == "none");
    CHECK(describe_throttle(0x24) == "power cap+thermal slowdown");
    CHECK(describe_throttle(0x10000004) == "power cap+reason 0x10000000");
}

TEST_CASE("a driver without the power of this moment gives the average")
{
    const Fault fault("no-instant-power");
    CHECK(NvmlDevice(bus_id, FAKE_NVML_LIBRARY).read().watts == doctest::Approx(333));
}

TEST_CASE("without NVML, or a device or clock that it knows, there is one sentence and nothing stays open")
{
    CHECK_THROWS_WITH_AS(NvmlDevice(bus_id, "libno-such-nvml.so.1"), "libno-such-nvml.so.1 cannot be loaded",
                         std::runtime_error);
    CHECK_THROWS_WITH_AS(NvmlDevice("0000:00:00.0", FAKE_NVML_LIBRARY),
                         "NVML does not know the device at 0000:00:00.0: it returned 6", std::runtime_error);
    {
        const Fault fault("no-clock");
        CHECK_THROWS_WITH_AS(NvmlDevice(bus_id, FAKE_NVML_LIBRARY),
                             "NVML does not tell the SM clock of the device at 0000:1A:00.0: it returned 3",
                             std::runtime_error);
    }
    void* const library = dlopen(FAKE_NVML_LIBRARY, RTLD_NOW);
    REQUIRE(library != nullptr);
    const auto users = reinterpret_cast<int (*)()>(dlsym(library, "fake_nvml_users"));
    CHECK(users() == 0);
    {
        const NvmlDevice device(bus_id, FAKE_NVML_LIBRARY);
        CHECK(users() == 1);
    }
    CHECK(users() == 0);
    dlclose(library);
}

TEST_CASE("a summary has the median clock, the highest power and all limits")
{
    const ClockSummary summary = summarize_clocks({{1500, 600, 0x4}, {1900, 700, 0}, {1700, 650, 0x20}});
    CHECK(summary.readings == 3);
    CHECK(summary.sm_mhz == 1700);
    CHECK(summary.watts == 700);
    CHECK(summary.throttle == 0x24);
    CHECK(summarize_clocks({}).readings == 0);
}

TEST_CASE("the sampler reads only between begin and end, and keeps contenders apart")
{
    std::atomic<double> clock = 1000;
    std::atomic<int> calls = 0;
    ClockSampler sampler(
        [&] {
            ++calls;
            return DeviceReading{clock, 100, 0};
        },
        milliseconds(1));
    sampler.restart(3);
    std::this_thread::sleep_for(milliseconds(20));
    CHECK(calls == 0);
    const auto time = [&](std::size_t contender, double mhz, int readings) {
        clock = mhz;
        const int before = calls;
        sampler.begin(contender);
        while (calls < before + readings) {
            std::this_thread::yield();
        }
        sampler.end(1700);
    };
    time(0, 1000, 4);
    time(2, 2000, 3);
    time(0, 1000, 4);
    const int after = calls;
    std::this_thread::sleep_for(milliseconds(20));
    CHECK(calls <= after + 1);  // one may have begun before the end
    const std::vector<ClockSummary> summaries = sampler.summaries();
    REQUIRE(summaries.size() == 3);
    // The last reading of each turn may have ended after it.
    CHECK(summaries[0].readings >= 6);
    CHECK(summaries[0].readings <= 10);
    CHECK(summaries[0].sm_mhz == 1000);
    CHECK(summaries[1].readings == 0);
    CHECK(summaries[2].readings >= 2);
    CHECK(summaries[2].sm_mhz == 2000);
    CHECK(summaries[0].samples_sm_mhz == std::vector<double>{1700, 1700});
    CHECK(summaries[1].samples_sm_mhz.empty());
    CHECK(summaries[2].samples_sm_mhz == std::vector<double>{1700});
    sampler.restart(1);
    CHECK(sampler.summaries().at(0).readings == 0);
}

TEST_CASE("a reading that ends after the timed work does not count, and one that fails ends the reading")
{
    std::atomic<bool> may_end = false;
    std::atomic<bool> has_begun = false;
    {
        ClockSampler sampler([&] {
            has_begun = true;
            while (!may_end) {
                std::this_thread::yield();
            }
            return DeviceReading{1, 1, 0};
        });
        sampler.restart(1);
        sampler.begin(0);
        while (!has_begun) {
            std::this_thread::yield();
        }
        sampler.end(1700);
        may_end = true;
        std::this_thread::sleep_for(milliseconds(20));
        CHECK(sampler.summaries()[0].readings == 0);
    }
    ClockSampler failing([]() -> DeviceReading { throw std::runtime_error("lost"); });
    failing.restart(1);
    failing.begin(0);
    std::this_thread::sleep_for(milliseconds(20));
    failing.end(1700);
    CHECK(failing.summaries()[0].readings == 0);
}

std::vector<ProblemReport> reports_with_clocks()
{
    ProblemReport report;
    report.problem = {{64, 64, 64}, ElementType::bf16, {}, ElementType::bf16};
    report.measurements = {{"tessera_automatic", false, Outcome::right, "", 0.5, {1e-6}, {9, 1755, 698.5, 0x4, {}}},
                           {"cublaslt_heuristic", false, Outcome::right, "", 0.5, {1e-6}, {8, 1980, 400, 0, {}}},
                           {"cublaslt_best_of_16", false, Outcome::right, "", 0.5, {1e-6}, {0, 0, 0, 0, {1700, 1650}}}};
    return {report};
}

TEST_CASE("all reports have clock, power and limits of each result, and empty fields where they were not read")
{
    const std::vector<ProblemReport> reports = reports_with_clocks();
    const std::string csv = csv_of({}, reports);
    CHECK(contains(csv, ",sm_mhz,max_watts,throttle,samples_us,samples_sm_mhz\n"));
    CHECK(contains(csv, ",0.5,1755,698.5,power cap,1,\n"));
    CHECK(contains(csv, ",0.5,1980,400,none,1,\n"));
    CHECK(contains(csv, ",0.5,,,,1,1700;1650\n"));
    const std::string json = json_of({}, reports, "gemm");
    CHECK(contains(json, R"("sm_mhz": 1755, "max_watts": 698.5, "throttle": "power cap", )"));
    CHECK(contains(json, R"("sm_mhz": null, "max_watts": null, "throttle": null, )"));
    const Environment environment;
    const std::string method;
    const std::string html = html_of({environment, method, reports, {}});
    CHECK(contains(html, "<td>1755</td><td>698</td><td class=\"left\">power cap</td>"));
    CHECK(contains(html, "<td></td><td></td><td class=\"left\"></td>"));
    CHECK(describe_clocks(reports) ==
          "SM clock median 1868 MHz (1755 to 1980), power up to 698 W, limited by: power cap");
    CHECK(describe_clocks({}) == "");
}

}  // namespace
}  // namespace tessera::bench
