/// Tests of `tessera-bench gemm` that need no device: problems, means, ratios, and the reports.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "gemm/presets.hpp"
#include "method/statistics.hpp"
#include "problem/problem.hpp"
#include "problem/random.hpp"
#include "problem/reference.hpp"
#include "report/gemm_summary.hpp"
#include "report/html.hpp"
#include "report/svg.hpp"

namespace tessera::bench {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Measurement measured(std::string_view contender, double seconds)
{
    return {std::string(contender), false, Outcome::right, {}, 0.5, {0.9 * seconds, seconds, 1.1 * seconds}};
}

ProblemReport cube(std::int64_t extent, double ours, double heuristic, double best)
{
    ProblemReport report;
    report.problem = {{extent, extent, extent}, ElementType::bf16, k_contiguous, ElementType::bf16};
    report.measurements = {measured("tessera_automatic", ours), measured(heuristic_name, heuristic),
                           measured(best_name, best)};
    return report;
}

/// Tessera is twice as fast as the heuristic on the first problem and half as fast on the second.
std::vector<ProblemReport> example_reports()
{
    return {cube(1024, 1e-6, 2e-6, 1e-6), cube(2048, 4e-6, 2e-6, 2e-6), cube(4096, 8e-6, 8e-6, 8e-6)};
}

std::string example_html(const std::vector<ProblemReport>& reports)
{
    const Environment environment{{"device", "a <device> & \"more\""}, {"date", "2000-01-01"}};
    const std::string method = "a < b";
    return html_of({environment, method, reports, completed({{}, 4e12, "measured"}, reports)});
}

/// Returns the first fault in the nesting of elements, or nothing. Stricter than HTML: the writer closes every element,
/// even those that HTML lets stay open.
std::string find_markup_fault(const std::string& html)
{
    std::vector<std::string> open;
    std::size_t position = html.find("<html");
    while ((position = html.find('<', position)) != std::string::npos) {
        const std::size_t end = html.find('>', position);
        if (end == std::string::npos) {
            return "a tag without an end";
        }
        const std::string tag = html.substr(position + 1, end - position - 1);
        position = end;
        if (tag.find('<') != std::string::npos) {
            return "a < inside of a tag: " + tag;
        }
        if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) {
            return "an odd number of quotes: " + tag;
        }
        const std::string name =
            tag.substr(tag.front() == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag.front() == '/'));
        if (tag.front() == '/') {
            if (open.empty() || open.back() != tag.substr(1)) {
                return "closed out of turn: " + tag;
            }
            open.pop_back();
        } else if (tag.back() != '/') {
            open.push_back(name);
        }
        if (name == "style" && tag.front() != '/') {
            position = html.find("</style", position);
        }
    }
    return open.empty() ? std::string() : "never closed: " + open.back();
}

TEST_CASE("the geometric mean of ratios and of their inverses agree")
{
    CHECK(geometric_mean({2, 0.5}) == doctest::Approx(1));
    CHECK(geometric_mean({3}) == doctest::Approx(3));
    CHECK(geometric_mean({1, 10, 100}) == doctest::Approx(10));
    CHECK(geometric_mean({0.5, 0.25, 0.7}) == doctest::Approx(1 / geometric_mean({2, 4, 1 / 0.7})));
}

TEST_CASE("types are written input:output, and impossible types of D are refused")
{
    CHECK(parse_types("bf16") == Types{ElementType::bf16, ElementType::bf16});
    CHECK(parse_types("f16:f32") == Types{ElementType::f16, ElementType::f32});
    CHECK(parse_types("f8e4m3") == Types{ElementType::f8e4m3, ElementType::bf16});
    CHECK(parse_types("tf32") == Types{ElementType::tf32, ElementType::f32});
    for (const char* text : {"", ":", "bf16:", ":bf16", "bf16:f8e4m3", "f32:tf32", "bf16:bf16:bf16", "BF16"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_types(text), std::invalid_argument);
    }
}

TEST_CASE("the sizes of A and B include gaps, the size of D does not")
{
    Problem problem{{5, 7, 3}, ElementType::bf16, {true, false}, ElementType::f32, 2};
    CHECK(problem.a_size() == 5 * (3 + 2));
    CHECK(problem.b_size() == 7 * (3 + 2));
    CHECK(problem.d_size() == 35);
    CHECK(problem.bytes() == 2 * (25 + 35) + 4 * 35);
    problem.orders = {false, true};
    CHECK(problem.a_size() == 3 * (5 + 2));
    CHECK(problem.b_size() == 3 * (7 + 2));
    CHECK(problem.gemm_problem().a.leading_dimension == 7);
    CHECK(problem.gemm_problem().b.leading_dimension == 9);
}

/// Computes D by fp32 sums from operands with gaps, rounded to `Output`.
template <class Output>
std::vector<Output> product(const Problem& problem, const std::vector<float>& a, const std::vector<float>& b)
{
    const auto [m, n, k] = problem.shape;
    const std::int64_t lda = problem.a_leading_dimension();
    const std::int64_t ldb = problem.b_leading_dimension();
    std::vector<Output> d;
    for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t column = 0; column < n; ++column) {
            float sum = 0;
            for (std::int64_t i = 0; i < k; ++i) {
                sum += a[static_cast<std::size_t>(problem.orders.a_row_major ? row * lda + i : i * lda + row)] *
                       b[static_cast<std::size_t>(problem.orders.b_row_major ? i * ldb + column : column * ldb + i)];
            }
            d.push_back(Output(sum));
        }
    }
    return d;
}

TEST_CASE("the bound of a 16-bit result includes its own rounding, for operands with gaps in every order")
{
    for (const bool a_rows : {true, false}) {
        for (const bool b_rows : {true, false}) {
            const Problem problem{{70, 65, 40}, ElementType::f32, {a_rows, b_rows}, ElementType::bf16, 3};
            CAPTURE(name_of(problem));
            std::vector<float> a(problem.a_size());
            std::vector<float> b(problem.b_size());
            fill_normal<float>(a, 3, 0);
            fill_normal<float>(b, 3, 1);
            const SampledReference reference(problem, gsl::span<const float>(a), gsl::span<const float>(b), 3);
            std::vector<bf16> d = product<bf16>(problem, a, b);
            CHECK(reference.judge(gsl::span<const bf16>(d), Accumulation::fp32).fault == "");
            d.front() = bf16(static_cast<float>(d.front()) * 1.02F);  // a step of bf16 is at most 1/128
            CHECK(reference.judge(gsl::span<const bf16>(d), Accumulation::fp32).fault != "");
        }
    }
}

TEST_CASE("the judge checks all parts of an epilogue, and finds a missing one")
{
    for (const Fusion fusion : {Fusion::bias, Fusion::bias_relu, Fusion::bias_gelu, Fusion::bias_gelu_tanh,
                                Fusion::bias_silu, Fusion::residual}) {
        for (const GeluForm gelu : {GeluForm::erf, GeluForm::tanh}) {
            Problem problem{{70, 65, 40}, ElementType::f32, {true, true}, ElementType::bf16};
            problem.fusion = fusion;
            CAPTURE(name_of(problem));
            std::vector<float> a(problem.a_size());
            std::vector<float> b(problem.b_size());
            std::vector<float> added(problem.d_size());
            fill_normal<float>(a, 3, 0);
            fill_normal<float>(b, 3, 1);
            fill_normal<float>(added, 3, 2);
            const auto addend = [&](std::int64_t row, std::int64_t column) {
                return 6.0 *
                       static_cast<double>(added[static_cast<std::size_t>(has_c(fusion) ? row * 65 + column : column)]);
            };
            const SampledReference reference(problem, gsl::span<const float>(a), gsl::span<const float>(b), 3, addend);
            const std::vector<float> sums = product<float>(problem, a, b);
            const auto result = [&](bool adds, bool applies) {
                std::vector<bf16> d;
                for (std::int64_t row = 0; row < 70; ++row) {
                    for (std::int64_t column = 0; column < 65; ++column) {
                        const double sum = static_cast<double>(sums[static_cast<std::size_t>(row * 65 + column)]) +
                                           (adds ? addend(row, column) : 0);
                        d.push_back(bf16(static_cast<float>(applies ? activate(fusion, gelu, sum) : sum)));
                    }
                }
                return d;
            };
            const auto fault = [&](const std::vector<bf16>& d) {
                return reference.judge(gsl::span<const bf16>(d), Accumulation::fp32, {gelu}).fault;
            };
            CHECK(fault(result(true, true)).empty());
            CHECK(!fault(result(false, true)).empty());
            const std::vector<bf16> argument = result(true, false);
            CHECK(fault(argument).empty() == (fusion == Fusion::bias || fusion == Fusion::residual));
        }
    }
}

TEST_CASE("the judge expects gated pairs, and finds halves that are exchanged or not multiplied")
{
    Problem problem{{70, 132, 40}, ElementType::f32, {true, true}, ElementType::bf16};
    problem.fusion = Fusion::swiglu;
    std::vector<float> a(problem.a_size());
    std::vector<float> b(problem.b_size());
    fill_normal<float>(a, 3, 0);
    fill_normal<float>(b, 3, 1);
    const SampledReference reference(problem, gsl::span<const float>(a), gsl::span<const float>(b), 3);
    Problem both_halves = problem;
    both_halves.fusion = Fusion::none;
    const std::vector<float> sums = product<float>(both_halves, a, b);
    CHECK(problem.d_size() == 70U * 66U);
    const auto fault = [&](auto&& of_pair, EpilogueArithmetic arithmetic) {
        std::vector<bf16> d;
        for (std::size_t row = 0; row < 70; ++row) {
            for (std::size_t column = 0; column < 66; ++column) {
                d.push_back(bf16(static_cast<float>(of_pair(sums[row * 132 + column], sums[row * 132 + 66 + column]))));
            }
        }
        return reference.judge(gsl::span<const bf16>(d), Accumulation::fp32, arithmetic).fault;
    };
    const auto silu = [](float x) { return activate(Fusion::swiglu, GeluForm::erf, static_cast<double>(x)); };
    const auto rounded = [](float x) { return static_cast<float>(bf16(x)); };
    const auto right = [&](float gate, float up) { return silu(gate) * static_cast<double>(up); };
    CHECK(fault(right, {}).empty());
    CHECK_FALSE(fault([&](float gate, float up) { return right(up, gate); }, {}).empty());
    CHECK_FALSE(fault([&](float gate, float) { return silu(gate); }, {}).empty());
    const auto through_memory = [&](float gate, float up) { return right(rounded(gate), rounded(up)); };
    CHECK(fault(through_memory, {.rounds_arguments = true}).empty());
    CHECK_FALSE(fault(through_memory, {}).empty());
    CHECK_FALSE(
        fault([&](float gate, float up) { return 1.03 * right(gate, up); }, {.rounds_arguments = true}).empty());
}

TEST_CASE("the epilogue is a part of the library's problem and of the problem's name")
{
    Problem problem{{5, 7, 3}, ElementType::bf16, {true, false}, ElementType::bf16};
    CHECK(name_of(problem) == "5x7x3 bf16:bf16 rc");
    for (const std::string_view name : fusion_names()) {
        CHECK(to_string(parse_fusion(name)) == name);
    }
    CHECK_THROWS_WITH_AS(parse_fusion("gelu"),
                         "'gelu' is not an epilogue: write one of none, bias, bias+relu, bias+gelu, "
                         "bias+gelu_tanh, bias+silu, swiglu, residual, scaled",
                         std::invalid_argument);
    problem.fusion = Fusion::bias_gelu;
    CHECK(name_of(problem) == "5x7x3 bf16:bf16 rc bias+gelu");
    CHECK(problem.gemm_problem().bias == BiasAxis::per_column);
    CHECK(problem.gemm_problem().activation == Activation::gelu);
    problem.fusion = Fusion::bias_gelu_tanh;
    CHECK(problem.gemm_problem().activation == Activation::gelu_tanh);
    problem.fusion = Fusion::bias_silu;
    CHECK(problem.gemm_problem().activation == Activation::silu);
    CHECK(problem.gemm_problem().bias == BiasAxis::per_column);
    problem.fusion = Fusion::swiglu;
    CHECK(problem.gemm_problem().activation == Activation::silu);
    CHECK(problem.gemm_problem().gating == Gating::side_by_side);
    CHECK(problem.gemm_problem().bias == BiasAxis::none);
    problem.fusion = Fusion::bias;
    const std::size_t without_c = problem.bytes();
    problem.fusion = Fusion::residual;
    CHECK(problem.gemm_problem().has_c);
    CHECK(problem.gemm_problem().bias == BiasAxis::none);
    CHECK(problem.bytes() == without_c + 2 * std::size_t{35});
}

TEST_CASE("how 8-bit products are added is a part of the problem, of its name, and of the library's problem")
{
    Problem problem{{5, 7, 3}, ElementType::f8e4m3, {true, false}, ElementType::bf16};
    CHECK(name_of(problem) == "5x7x3 f8e4m3:bf16 rc");
    CHECK(problem.gemm_problem().fp8_accumulation == Fp8Accumulation::fast);
    Problem two_level = problem;
    two_level.accumulation = parse_accumulation("two-level");
    CHECK_FALSE(two_level == problem);
    CHECK(name_of(two_level) == "5x7x3 f8e4m3:bf16 two-level rc");
    CHECK(two_level.gemm_problem().fp8_accumulation == Fp8Accumulation::two_level);
    CHECK(to_string(parse_accumulation("fast")) == "fast");
    CHECK_THROWS_AS(parse_accumulation("slow"), std::invalid_argument);
    two_level.input = ElementType::bf16;
    CHECK(name_of(two_level) == "5x7x3 bf16:bf16 rc");
}

TEST_CASE("in what f16 products are added is a part of the problem, of its name, and of the library's problem")
{
    Problem problem{{5, 7, 3}, ElementType::f16, {true, false}, ElementType::f16};
    CHECK(name_of(problem) == "5x7x3 f16:f16 rc");
    CHECK(problem.gemm_problem().f16_accumulation == F16Accumulation::in_f32);
    Problem in_f16 = problem;
    in_f16.sums = parse_sums("f16");
    CHECK_FALSE(in_f16 == problem);
    CHECK(name_of(in_f16) == "5x7x3 f16:f16 f16-sums rc");
    CHECK(in_f16.gemm_problem().f16_accumulation == F16Accumulation::in_f16);
    CHECK(to_string(parse_sums("f32")) == "f32");
    CHECK_THROWS_AS(parse_sums("bf16"), std::invalid_argument);
    in_f16.input = ElementType::bf16;
    CHECK(name_of(in_f16) == "5x7x3 bf16:f16 rc");
}

TEST_CASE("the judge expects the factors of A and B, and finds them missing")
{
    Problem problem{{70, 65, 40}, ElementType::f32, {true, true}, ElementType::f32};
    problem.fusion = Fusion::scaled;
    std::vector<float> a(problem.a_size());
    std::vector<float> b(problem.b_size());
    fill_normal<float>(a, 3, 0);
    fill_normal<float>(b, 3, 1);
    const SampledReference reference(problem, gsl::span<const float>(a), gsl::span<const float>(b), 3);
    std::vector<float> d = product<float>(problem, a, b);
    CHECK(reference.judge(d, Accumulation::fp32).fault != "");
    for (float& element : d) {
        element *= scale_of_a * scale_of_b;
    }
    CHECK(reference.judge(d, Accumulation::fp32).fault == "");
}

TEST_CASE("GELU is x for large x, 0 for very negative x, and its two forms differ by less than a thousandth")
{
    for (int i = -600; i <= 600; ++i) {
        const double x = 0.01 * i;
        const double exact = activate(Fusion::bias_gelu, GeluForm::erf, x);
        CHECK(std::abs(exact - activate(Fusion::bias_gelu, GeluForm::tanh, x)) < 1e-3);
        CHECK(exact <= std::max(x, 0.0));
        CHECK(exact >= -0.17);
    }
    CHECK(activate(Fusion::bias_gelu, GeluForm::erf, 6) == doctest::Approx(6));
    CHECK(activate(Fusion::bias_relu, GeluForm::erf, -2) == 0);
}

TEST_CASE("at least one element of each tile of 64 x 64 is judged, wherever the tile is")
{
    const Problem problem{{320, 5000, 4}, ElementType::f32, k_contiguous, ElementType::f32};
    std::vector<float> a(problem.a_size());
    std::vector<float> b(problem.b_size());
    fill_normal<float>(a, 5, 0);
    fill_normal<float>(b, 5, 1);
    const SampledReference reference(problem, gsl::span<const float>(a), gsl::span<const float>(b), 5);
    const std::vector<float> right = product<float>(problem, a, b);
    CHECK(reference.judge(right, Accumulation::fp32).fault == "");
    const auto [m, n, k] = problem.shape;
    for (const std::int64_t first_row : {0, 64, 256}) {
        for (const std::int64_t first_column : {0, 2048, 4928}) {
            // Twice 64, because sampled groups do not begin where tiles do: one whole group is inside.
            std::vector<float> d = right;
            for (std::int64_t row = first_row; row < std::min(first_row + 64, m); ++row) {
                for (std::int64_t column = first_column; column < std::min(first_column + 128, n); ++column) {
                    d[static_cast<std::size_t>(row * n + column)] += 1;
                }
            }
            CHECK(reference.judge(d, Accumulation::fp32).fault != "");
        }
    }
}

TEST_CASE("all zeros fail as the result of a long sum, however it was accumulated")
{
    const Problem problem{{4, 4, 65536}, ElementType::f32, k_contiguous, ElementType::f32};
    std::vector<float> a(problem.a_size());
    std::vector<float> b(problem.b_size());
    fill_normal<float>(a, 7, 0);
    fill_normal<float>(b, 7, 1);
    const SampledReference reference(problem, gsl::span<const float>(a), gsl::span<const float>(b), 7);
    const std::vector<float> zeros(16, 0.0F);
    CHECK(reference.judge(product<float>(problem, a, b), Accumulation::fp32).fault == "");
    for (const Accumulation accumulation :
         {Accumulation::fp32, Accumulation::tensor_core, Accumulation::hopper_fp8, Accumulation::f16_sums}) {
        CHECK(reference.judge(zeros, accumulation).fault != "");
    }
}

TEST_CASE("wrong or missing results do not count in ratios")
{
    std::vector<ProblemReport> reports = example_reports();
    CHECK(speed_ratio(reports[0], "tessera_automatic", heuristic_name) == doctest::Approx(2));
    std::vector<RatioSummary> summaries = summarize_ratios(reports);
    REQUIRE(summaries.size() == 2);
    CHECK(summaries[0].geometric_mean == doctest::Approx(1));
    CHECK(summaries[0].lowest == doctest::Approx(0.5));
    CHECK(contains(summaries[0].lowest_problem, "2048x2048x2048"));
    CHECK(summaries[0].problems == 3);

    reports[1].measurements[0].outcome = Outcome::wrong;
    summaries = summarize_ratios(reports);
    CHECK(summaries[0].problems == 2);
    CHECK(summaries[0].geometric_mean == doctest::Approx(std::sqrt(2.0)));
    CHECK(speed_ratio(reports[1], "tessera_automatic", heuristic_name) == 0);
    CHECK(speed_ratio(reports[1], "nobody", heuristic_name) == 0);
    for (ProblemReport& report : reports) {
        report.measurements.erase(report.measurements.begin() + 1, report.measurements.end());
    }
    CHECK(summarize_ratios(reports).empty());
}

/// Ten ratios to the best of 16 from 0.1 to 1.0: bf16 has the odd ones, f16 the even ones; the last two have a bias.
std::vector<ProblemReport> mixed_reports()
{
    std::vector<ProblemReport> reports;
    for (int i = 1; i <= 10; ++i) {
        reports.push_back(cube(std::int64_t{256} * i, 1e-6, 1e-6, 1e-7 * i));
        Problem& problem = reports.back().problem;
        problem.input = problem.output = i % 2 == 1 ? ElementType::bf16 : ElementType::f16;
        problem.fusion = i > 8 ? Fusion::bias : Fusion::none;
        problem.layer = i == 2 ? "GPT-2 QKV" : "";
    }
    return reports;
}

TEST_CASE("ratios are summarized over all problems, by type and by epilogue, with median, p10 and the lowest")
{
    const std::vector<ProblemReport> reports = mixed_reports();
    const RatioSummary all = summarize_ratios(reports).at(1);
    CHECK(all.peer == best_name);
    CHECK(all.group == "");
    CHECK(all.problems == 10);
    CHECK(all.median == doctest::Approx(0.55));
    CHECK(all.percentile_10 == doctest::Approx(0.19));
    CHECK(all.lowest == doctest::Approx(0.1));
    std::vector<std::string> names;
    for (const RatioSummary& group : summarize_groups(reports)) {
        if (group.peer == best_name) {
            names.push_back(group.group + ": " + describe(group));
        }
    }
    CHECK(names == std::vector<std::string>{
                       "bf16:bf16: geometric mean 0.394 over 5 problems, median 0.500, p10 0.180, lowest 0.100 at "
                       "256x256x256 bf16:bf16 rc",
                       "f16:f16: geometric mean 0.521 over 5 problems, median 0.600, p10 0.280, lowest 0.200 at "
                       "512x512x512 f16:f16 rc (GPT-2 QKV)",
                       "none: geometric mean 0.376 over 8 problems, median 0.450, p10 0.170, lowest 0.100 at "
                       "256x256x256 bf16:bf16 rc",
                       "bias: geometric mean 0.949 over 2 problems, median 0.950, p10 0.910, lowest 0.900 at "
                       "2304x2304x2304 bf16:bf16 rc bias"});
    CHECK(summarize_groups(example_reports()).empty());
}

TEST_CASE("no report has a mean of ratios without the worst case")
{
    const std::vector<ProblemReport> reports = mixed_reports();
    const std::string footer = GemmTable::footer(reports);
    CHECK(std::count(footer.begin(), footer.end(), '\n') == 2 + 8);
    CHECK(contains(footer, "\n    f16:f16: geometric mean 0.521"));
    const std::string csv = csv_of({}, reports);
    CHECK(contains(csv, "# tessera_automatic / cublaslt_best_of_16: geometric mean "));
    CHECK(contains(csv, "# tessera_automatic / cublaslt_best_of_16, bias: geometric mean 0.949 over 2 problems"));
    const std::string json = json_of({}, reports, "gemm");
    CHECK(contains(json, R"("peer": "cublaslt_best_of_16", "group": null, "problems": 10, )"));
    CHECK(contains(json,
                   R"("group": "f16:f16", "problems": 5, "geometric_mean": 0.521034, "median": 0.6, "p10": 0.28, )"
                   R"("lowest": 0.2, "lowest_problem": "512x512x512 f16:f16 rc )"));
    const std::string html = example_html(reports);
    CHECK(find_markup_fault(html) == "");
    CHECK(contains(html, "Ratios by type and by epilogue"));
    for (const std::string& text : {footer, csv, json, html}) {
        std::size_t means = 0;
        for (std::size_t at = text.find("eometric"); at != std::string::npos; at = text.find("eometric", at + 1)) {
            CHECK(text.find("lowest", at) < at + 150);
            ++means;
        }
        CHECK(means >= 2);
    }
}

TEST_CASE("the best of 16 is never slower than the heuristic, which is one of the 16")
{
    ProblemReport report = cube(512, 1e-6, 2e-6, 3e-6);
    settle_best(report);
    CHECK(flops_per_second(report, best_name) == flops_per_second(report, heuristic_name));
    CHECK(report.measurements[2].contender == best_name);
    report = cube(512, 1e-6, 3e-6, 2e-6);
    settle_best(report);
    CHECK(flops_per_second(report, best_name) > flops_per_second(report, heuristic_name));
}

TEST_CASE("the table has a cell for each contender and pair, and names wrong results")
{
    std::vector<ProblemReport> reports = example_reports();
    const GemmTable table({"tessera_automatic"}, {std::string(heuristic_name), std::string(best_name)});
    CHECK(contains(table.header(), "automatic / best of 16"));
    CHECK(contains(table.row(reports[0]), "2.000"));
    CHECK(table.row(reports[0]).size() == table.header().size() - table.header().find('\n') - 1);
    CHECK(contains(GemmTable::footer(reports),
                   "geometric mean 1.000 over 3 problems, median 1.000, p10 0.600, lowest 0.500 at 2048x2048x2048"));
    reports[0].measurements[0].outcome = Outcome::wrong;
    reports[0].measurements[0].note = "D(1, 2) is 3";
    CHECK(contains(table.row(reports[0]), "WRONG"));
    CHECK(contains(table.row(reports[0]), "tessera automatic: D(1, 2) is 3"));
}

TEST_CASE("the markup checker of these tests finds faults")
{
    CHECK(find_markup_fault("<html><p>a</p><br/></html>") == "");
    CHECK(find_markup_fault("<html><p>a</html></p>") != "");
    CHECK(find_markup_fault("<html><p>a</p>") != "");
    CHECK(find_markup_fault("<html><p class=\"a>b</p></html>") != "");
    CHECK(find_markup_fault("<html><p a<b>c</p></html>") != "");
}

TEST_CASE("the HTML report is well-formed and self-contained, and has all charts")
{
    std::vector<ProblemReport> reports = example_reports();
    reports[1].measurements[0].outcome = Outcome::not_run;
    reports[1].measurements[0].seconds.clear();
    reports[1].measurements[0].note = "a reason with <angles>";
    const std::string html = example_html(reports);
    CHECK(find_markup_fault(html) == "");
    for (const char* outside : {"http:", "https:", "//", "src=", "href=", "url(", "@import", "<script", "<link"}) {
        CAPTURE(outside);
        CHECK_FALSE(contains(html, outside));
    }
    CHECK(contains(html, "a &lt;device&gt; &amp; &quot;more&quot;"));
    CHECK(contains(html, "a reason with &lt;angles&gt;"));
    CHECK(contains(html, "prefers-color-scheme: dark"));
    for (const char* drawing : {"Speed relative to cuBLASLt, per problem", "Roofline", "Rate by size"}) {
        CHECK(contains(html, drawing));
    }
    CHECK_FALSE(contains(html, "nan"));
    CHECK_FALSE(contains(html, "inf\""));
}

TEST_CASE("an HTML report without peers, right results or problems is well-formed")
{
    std::vector<ProblemReport> reports = example_reports();
    for (ProblemReport& report : reports) {
        report.measurements.erase(report.measurements.begin() + 1, report.measurements.end());
    }
    CHECK(find_markup_fault(example_html(reports)) == "");
    CHECK(ratio_chart(reports).empty());
    CHECK_FALSE(sweep_chart(reports, ElementType::bf16).empty());
    for (ProblemReport& report : reports) {
        report.measurements[0].outcome = Outcome::wrong;
    }
    CHECK(find_markup_fault(example_html(reports)) == "");
    CHECK(contains(example_html(reports), "WRONG"));
    CHECK(find_markup_fault(example_html({})) == "");
}

TEST_CASE("a missing ceiling is the rate of the fastest product of its type")
{
    const Ceilings ceilings = completed({}, example_reports());
    REQUIRE(ceilings.find(ElementType::bf16) != nullptr);
    CHECK(ceilings.find(ElementType::bf16)->flops_per_second == doctest::Approx(2.0 * std::pow(4096.0, 3) / 8e-6));
    CHECK(ceilings.find(ElementType::f16) == nullptr);
    const Ceilings given = completed({{{ElementType::bf16, 1e15, "given"}}, 0, {}}, example_reports());
    CHECK(given.find(ElementType::bf16)->flops_per_second == 1e15);
}

TEST_CASE("scales map ends to ends and clamp values outside")
{
    const Scale linear = Scale::linear(10, 20, 100, 0);
    CHECK(linear(10) == 100);
    CHECK(linear(15) == 50);
    CHECK(linear(30) == 0);
    const Scale logarithmic = Scale::logarithmic(1, 100, 0, 10);
    CHECK(logarithmic(10) == doctest::Approx(5));
    CHECK(logarithmic(0.5) == 0);
}

}  // namespace
}  // namespace tessera::bench
