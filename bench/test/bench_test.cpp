/// Tests of everything in the benchmark that needs no device: statistics, the judge of results, names, reports.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "method/statistics.hpp"
#include "peers/cpu.hpp"
#include "problem/problem.hpp"
#include "problem/random.hpp"
#include "problem/reference.hpp"
#include "report/report.hpp"

namespace tessera::bench {
namespace {

constexpr std::array all_orders{Orders{true, true}, Orders{true, false}, Orders{false, true}, Orders{false, false}};

struct HostProblem {
    explicit HostProblem(const Problem& given)
        : problem(given),
          a(given.a_size()),
          b(given.b_size()),
          d(given.d_size(), std::numeric_limits<float>::quiet_NaN())
    {
        fill_normal<float>(a, 7, 0);
        fill_normal<float>(b, 7, 1);
    }
    SampledReference reference() const { return {problem, gsl::span<const float>(a), gsl::span<const float>(b), 7}; }

    Problem problem;
    std::vector<float> a;
    std::vector<float> b;
    std::vector<float> d;
};

Measurement rung(const char* name, double seconds) { return {name, true, Outcome::right, "", 0.25, {seconds}}; }

ProblemReport example_report()
{
    ProblemReport report;
    report.problem = {{100, 50, 1000}, ElementType::f32, {}};  // 10 MFLOP
    report.input_sets = 3;
    report.launches_per_sample = 6;
    report.graph_replay = true;
    report.baseline = "peer";
    report.measurements = {rung("first", 4e-6),
                           {"refused", true, Outcome::not_run, "says \"why\", and", 0, {}},
                           rung("slower", 5e-6),
                           rung("faster", 2e-6),
                           {"peer", false, Outcome::right, "", 0, {1e-6}}};
    return report;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("percentiles are interpolated linearly between neighbouring samples")
{
    const Summary odd = summarize({5, 1, 3});
    CHECK(odd.median == 3);
    CHECK(odd.minimum == 1);
    CHECK(odd.maximum == 5);
    CHECK(odd.count == 3);
    CHECK(summarize({4, 1, 3, 2}).median == 2.5);
    const Summary eleven = summarize({10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
    CHECK(eleven.percentile_10 == 1);
    CHECK(eleven.percentile_90 == 9);
    CHECK(summarize({42}).percentile_90 == 42);
    CHECK(summarize({}).count == 0);
}

TEST_CASE("a size is MxNxK or a cube; anything else is refused")
{
    CHECK(parse_shape("16x14336x4096") == Shape{16, 14336, 4096});
    CHECK(parse_shape("1000") == Shape{1000, 1000, 1000});
    for (const char* text : {"", "x", "4x", "4x5", "4x5x", "4x5x6x", "4x5x6x7", "0", "4x0x5", "-4", "4 ", " 4", "4X5X6",
                             "16777217", "99999999999999999999"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_shape(text), std::invalid_argument);
    }
}

TEST_CASE("unknown names of types and orders are refused")
{
    CHECK(parse_type("bf16") == ElementType::bf16);
    CHECK_THROWS_AS(parse_type("f64"), std::invalid_argument);
    for (const Orders& orders : all_orders) {
        CHECK(parse_orders(to_string(orders)) == orders);
    }
    CHECK(parse_orders("rc") == Orders{true, false});
    for (const char* text : {"", "r", "rrr", "nt"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_orders(text), std::invalid_argument);
    }
}

TEST_CASE("random inputs are standard normal and depend on seed and sequence")
{
    std::vector<float> values(1 << 19);
    fill_normal<float>(values, 1, 0);
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
        sum += value;
        squares += static_cast<double>(value) * value;
    }
    const auto count = static_cast<double>(values.size());
    // The mean of n has standard deviation 1/sqrt(n), the mean square sqrt(2/n): six of them, for one fixed seed.
    CHECK(std::abs(sum / count) < 6 / std::sqrt(count));
    CHECK(std::abs(squares / count - 1) < 6 * std::sqrt(2 / count));

    std::vector<float> again(values.size());
    fill_normal<float>(again, 1, 0);
    CHECK(again == values);
    fill_normal<float>(again, 1, 1);
    CHECK(again != values);
    fill_normal<float>(again, 2, 0);
    CHECK(again != values);
}

TEST_CASE("the CPU's products are within the bound in every order")
{
    for (const Orders& orders : all_orders) {
        CAPTURE(to_string(orders));
        HostProblem host({{130, 67, 65}, ElementType::f32, orders});
        const SampledReference reference = host.reference();
        multiply_plain_loop(host.problem, host.a, host.b, host.d);
        const Verdict plain = reference.judge(host.d, Accumulation::fp32);
        CHECK(plain.fault == "");
        CHECK(plain.error_over_bound > 0);
        CHECK(plain.error_over_bound <= 1);
        if (has_openblas()) {
            multiply_openblas(host.problem, host.a, host.b, host.d);
            CHECK(reference.judge(host.d, Accumulation::fp32).fault == "");
        }
    }
}

TEST_CASE("the judge finds an element that was not written, wherever it is")
{
    HostProblem host({{130, 129, 8}, ElementType::f32, {}});
    multiply_plain_loop(host.problem, host.a, host.b, host.d);
    for (std::size_t i = 0; i < host.d.size(); ++i) {
        const float right = std::exchange(host.d[i], std::numeric_limits<float>::quiet_NaN());
        if (i % 997 == 0) {  // only some: each check computes a reference
            CHECK(host.reference().judge(host.d, Accumulation::fp32).fault != "");
        }
        host.d[i] = right;
    }
}

TEST_CASE("the judge finds an error just above the bound in any element of a small product")
{
    HostProblem host({{5, 4, 100}, ElementType::f32, {false, true}});
    multiply_plain_loop(host.problem, host.a, host.b, host.d);
    const SampledReference reference = host.reference();
    for (std::size_t i = 0; i < host.d.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i) / 4;
        const auto column = static_cast<std::int64_t>(i) % 4;
        double magnitude = 0;
        for (std::int64_t k = 0; k < 100; ++k) {
            magnitude += std::abs(static_cast<double>(host.a[static_cast<std::size_t>(k * 5 + row)]) *
                                  host.b[static_cast<std::size_t>(k * 4 + column)]);
        }
        const double bound = 100 * 0x1p-24 / (1 - 100 * 0x1p-24) * magnitude;
        // The right value may itself be off by up to the bound, so an error of twice the bound is certainly outside.
        // The tensor cores' bound is four times as wide.
        const float right = host.d[i];
        host.d[i] = right + static_cast<float>(2.1 * bound);
        CHECK(reference.judge(host.d, Accumulation::fp32).fault != "");
        CHECK(reference.judge(host.d, Accumulation::tensor_core).fault == "");
        host.d[i] = right + static_cast<float>(8.5 * bound);
        CHECK(reference.judge(host.d, Accumulation::tensor_core).fault != "");
        host.d[i] = right;
    }
    CHECK(reference.judge(host.d, Accumulation::fp32).fault == "");
}

TEST_CASE("a rung slower than the nearest measured rung below it is marked")
{
    const ProblemReport report = example_report();
    CHECK_FALSE(is_slower_than_rung_below(report, 0));
    CHECK_FALSE(is_slower_than_rung_below(report, 1));
    CHECK(is_slower_than_rung_below(report, 2));
    CHECK_FALSE(is_slower_than_rung_below(report, 3));
    CHECK_FALSE(is_slower_than_rung_below(report, 4));
    CHECK(speed_ratio(report, report.measurements[3]) == 0.5);
    CHECK(speed_ratio(report, report.measurements[1]) == 0);
    const std::string table = table_of(report);
    CHECK(contains(table, "! slower"));
    CHECK_FALSE(contains(table, "! faster"));
    CHECK_FALSE(contains(table, "WRONG"));
}

TEST_CASE("every report marks a wrong result")
{
    ProblemReport report = example_report();
    report.measurements[3].outcome = Outcome::wrong;
    report.measurements[3].note = "D(1, 2) is 3";
    report.measurements[3].error_over_bound = std::numeric_limits<double>::infinity();
    CHECK(contains(table_of(report), "WRONG: D(1, 2) is 3"));
    CHECK(contains(csv_of({}, {report}), "WRONG"));
    const std::string json = json_of({}, {report});
    CHECK(contains(json, "\"outcome\": \"WRONG\""));
    CHECK(contains(json, "\"error_over_bound\": null"));
    CHECK(has_wrong_result({example_report(), report}, {}));
    CHECK(has_wrong_result({example_report(), report}, report.measurements[3].contender));
    CHECK_FALSE(has_wrong_result({example_report(), report}, report.measurements[1].contender));
    CHECK_FALSE(has_wrong_result({example_report()}, {}));
}

TEST_CASE("CSV rows have the header's columns, and special characters are quoted")
{
    const std::string csv = csv_of({{"device", "a\nb"}}, {example_report()});
    CHECK(csv.starts_with("# device: a b\nm,n,k,"));
    CHECK(contains(csv, ",not run,\"says \"\"why\"\", and\","));
    CHECK(contains(
        csv,
        "100,50,1000,f32,f32,rr,0,none,,,,3,false,6,true,faster,right,,2,2,2,2,2,5000,peer,0.5,false,0.25,,,,2,\n"));
    std::size_t expected = 0;
    std::size_t start = csv.find('\n') + 1;
    for (std::size_t end = csv.find('\n', start); end != std::string::npos; end = csv.find('\n', start)) {
        bool inside_quotes = false;
        std::size_t columns = 1;
        for (const char character : csv.substr(start, end - start)) {
            inside_quotes = inside_quotes != (character == '"');
            columns += character == ',' && !inside_quotes ? 1U : 0U;
        }
        expected = expected == 0 ? columns : expected;
        CHECK(columns == expected);
        start = end + 1;
    }
    CHECK(expected == 33);
}

TEST_CASE("JSON is escaped and has all samples")
{
    ProblemReport report = example_report();
    report.measurements[0].seconds = {1e-6, 3e-6};
    const std::string json = json_of({{"driver", "a\"b\\c\n"}}, {report});
    CHECK(contains(json, R"("driver": "a\"b\\c\u000a")"));
    CHECK(contains(json, R"("samples_us": [1, 3])"));
    CHECK(contains(json, R"("median_us": 2,)"));
}

TEST_CASE("launch reports give times relative to the raw launch")
{
    LaunchReport report;
    report.problem.shape = {32, 32, 32};
    report.launches_per_sample = 256;
    report.kernel = "tiled";
    report.measurements = {{"raw", {2e-6}, 0}, {"ours", {2.5e-6}, 1}};
    CHECK(time_ratio(report, report.measurements[1]) == doctest::Approx(1.25));
    CHECK(contains(table_of(report), "1.250            1"));
    CHECK(contains(csv_of({}, {report}), "tiled,32,32,32,256,ours,2500,2500,2500,2500,2500,1.25,1,2500\n"));
    CHECK(contains(json_of({}, {report}), R"("kernel": "tiled", "m": 32)"));
    CHECK(contains(json_of({}, {report}), R"("ratio": 1.25, "heap_allocations": 1,)"));
}

}  // namespace
}  // namespace tessera::bench
