// The reports of tessera-scenarios, and the checks that results go through.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "scenarios/report.hpp"
#include "scenarios/training.hpp"

using namespace tessera;
using namespace tessera::scenarios;

namespace {

const double infinity = std::numeric_limits<double>::infinity();

Report some_report()
{
    Report report{.scenario = &all_scenarios()[0], .skipped = {}, .failure = {}, .outcome = {}};
    report.outcome.work = "a \"small\" job";
    report.outcome.baseline = {.seconds = {3e-3, 5e-3, 4e-3}, .phases = {{"read", 4e-3, 0, false}}};
    report.outcome.optimized = {.seconds = {2e-3}, .phases = {{"copy", 1e-6, 1e-3, true}}};
    report.outcome.checks = {{"both", "the same bits", 0}};
    return report;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("scenarios have the numbers 1 to 9 and names of their own")
{
    REQUIRE(all_scenarios().size() == 9);
    for (std::size_t i = 0; i < all_scenarios().size(); ++i) {
        CHECK(all_scenarios()[i].number == static_cast<int>(i) + 1);
        for (std::size_t j = 0; j < i; ++j) {
            CHECK(all_scenarios()[i].name != all_scenarios()[j].name);
        }
    }
}

TEST_CASE("a speed-up is the ratio of the medians") { CHECK(some_report().speedup() == doctest::Approx(2)); }

TEST_CASE("one check that fails is a wrong result, in every report")
{
    Report report = some_report();
    CHECK(report.agrees());
    CHECK(contains(json_of({}, {report}), R"("outcome": "agrees")"));
    for (const double error : {1.001, infinity, std::numeric_limits<double>::quiet_NaN()}) {
        report.outcome.checks.back().error_over_bound = error;
        CHECK(!report.agrees());
        CHECK(contains(text_of(report), "WRONG"));
        CHECK(contains(json_of({}, {report}), R"("outcome": "wrong")"));
        CHECK(contains(html_of({}, {report}, false), "WRONG"));
    }
}

TEST_CASE("texts are escaped, and phases without work on the device have no time there")
{
    const std::string json = json_of({{"CPU", "a\\b"}}, {some_report()});
    CHECK(contains(json, R"("a \"small\" job")"));
    CHECK(contains(json, R"("CPU": "a\\b")"));
    CHECK(contains(json, R"({"name": "read", "host_seconds": 0.004, "device_seconds": null})"));
    CHECK(contains(json, R"({"name": "copy", "host_seconds": 1e-06, "device_seconds": 0.001})"));
    CHECK(contains(html_of({}, {some_report()}, false), "a &quot;small&quot; job"));
}

TEST_CASE("a skipped scenario and a failed one give their reason")
{
    for (const bool skipped : {true, false}) {
        Report report{.scenario = &all_scenarios()[1],
                      .skipped = skipped ? "it needs <TMA>" : "",
                      .failure = skipped ? "" : "it needs <TMA>",
                      .outcome = {}};
        CHECK(!report.ran());
        CHECK(contains(text_of(report), skipped ? "skipped: it needs <TMA>" : "FAILED: it needs <TMA>"));
        CHECK(contains(json_of({}, {report}), skipped ? R"("outcome": "skipped", "reason": "it needs <TMA>")"
                                                      : R"("outcome": "failed", "reason": "it needs <TMA>")"));
        CHECK(contains(html_of({}, {report}, false), "it needs &lt;TMA&gt;"));
    }
}

TEST_CASE("a page says that times are those of an emulated device")
{
    CHECK(contains(html_of({}, {some_report()}, true), "say nothing about a GPU"));
    CHECK(!contains(html_of({}, {some_report()}, false), "say nothing about a GPU"));
}

TEST_CASE("times are written in a unit that fits")
{
    CHECK(time_text(2.5) == "2.500 s");
    CHECK(time_text(2.5e-3) == "2.500 ms");
    CHECK(time_text(2.5e-6) == "2.5 us");
}

TEST_CASE("results have equal bits only if they have the same length and bytes")
{
    const std::vector<std::byte> one{std::byte{1}, std::byte{2}}, other{std::byte{1}, std::byte{3}},
        longer{std::byte{1}, std::byte{2}, std::byte{0}};
    CHECK(equal_bits("", one, one).passed());
    CHECK(!equal_bits("", one, other).passed());
    CHECK(!equal_bits("", one, longer).passed());
}

TEST_CASE("phases of several runs have their medians")
{
    const auto run = [](double host, double device) { return std::vector<Phase>{{"a", host, device, true}}; };
    const auto medians = medians_of({run(1, 30), run(3, 10), run(2, 20)});
    REQUIRE(medians.size() == 1);
    CHECK(medians[0].host_seconds == 2);
    CHECK(medians[0].device_seconds == 20);
}

TEST_CASE("training in float64 is what the gradient says: a step lowers the cross entropy by rate * |gradient|^2")
{
    const Network network{{4, 6, 5, 3}};
    const Samples samples{{0.1F, 0.9F, 0.3F, 0.5F, 0.8F, 0.2F, 0.6F, 0.4F}, {2, 0}};
    std::vector<float> start(network.size());
    for (std::size_t i = 0; i < start.size(); ++i) {
        start[i] = 0.3F * static_cast<float>(static_cast<int>(i * 7 % 11) - 4);
    }
    // The cross entropy by itself, so that the gradient is not checked against its own code.
    const auto loss = [&](const std::vector<double>& parameters) {
        double total = 0;
        for (std::size_t sample = 0; sample < 2; ++sample) {
            std::vector<double> x(samples.images.begin() + static_cast<std::ptrdiff_t>(4 * sample),
                                  samples.images.begin() + static_cast<std::ptrdiff_t>(4 * sample + 4));
            for (std::size_t layer = 0; layer < layers; ++layer) {
                const auto outputs = static_cast<std::size_t>(network.widths[layer + 1]);
                std::vector<double> y(outputs);
                for (std::size_t j = 0; j < outputs; ++j) {
                    y[j] = parameters[network.bias_offset(layer) + j];
                    for (std::size_t i = 0; i < x.size(); ++i) {
                        y[j] += x[i] * parameters[network.weight_offset(layer) + i * outputs + j];
                    }
                    y[j] = layer + 1 < layers ? std::max(y[j], 0.0) : y[j];
                }
                x = y;
            }
            double sum = 0;
            for (const double value : x) {
                sum += std::exp(value);
            }
            total += std::log(sum) - x[static_cast<std::size_t>(samples.labels[sample])];
        }
        return total / 2;
    };
    const float rate = 1e-4F;
    const std::vector<double> before(start.begin(), start.end());
    const std::vector<double> after = train_in_float64({network, samples, start, 1, rate});
    double squares = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
        squares += (after[i] - before[i]) * (after[i] - before[i]) / (double{rate} * double{rate});
    }
    CHECK(squares > 0.01);
    CHECK((loss(before) - loss(after)) / (double{rate} * squares) == doctest::Approx(1).epsilon(0.01));

    const Training training{network, samples, start, 1, rate};
    std::vector<float> found(after.begin(), after.end());
    CHECK(check_parameters("", training, found, after).passed());
    found[3] += 1e-4F;
    CHECK(!check_parameters("", training, found, after).passed());
    found[3] = std::numeric_limits<float>::quiet_NaN();
    CHECK(!check_parameters("", training, found, after).passed());
}
