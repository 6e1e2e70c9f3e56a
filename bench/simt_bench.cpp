#include "simt_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <type_traits>

#include "method/progress.hpp"
#include "method/timer.hpp"
#include "peers/cpu.hpp"
#include "peers/cublas.hpp"
#include "problem/input_ring.hpp"
#include "problem/reference.hpp"
#include "tessera/gemm.hpp"

namespace tessera::bench {
namespace {

/// A contender on the device, its accuracy, and its place in the report.
struct DeviceEntry {
    Contender contender;
    Accumulation accumulation;
    std::size_t measurement;
};

/// Calls `use` with the view of the matrix in an order that is known at run time.
template <class T, class Use>
void with_view(DeviceSpan<const T> elements, std::int64_t rows, std::int64_t columns, bool row_major, const Use& use)
{
    if (row_major) {
        use(elements.matrix(rows, columns, RowMajor{}));
    } else {
        use(elements.matrix(rows, columns, ColumnMajor{}));
    }
}

template <class T>
Contender variant_contender(const Problem& problem, InputRing<T>& ring, Variant variant)
{
    const auto launch = [&problem, &ring, variant](StreamRef stream, std::size_t set) {
        const auto [m, n, k] = problem.shape;
        with_view(ring.a(set), m, k, problem.orders.a_row_major, [&](auto a) {
            with_view(ring.b(set), k, n, problem.orders.b_row_major,
                      [&](auto b) { Gemm::launch(stream, a, b, ring.d(set).matrix(m, n), {}, variant); });
        });
    };
    return {std::string(to_string(variant)), launch};
}

template <class T>
Contender cublas_contender(std::string name, const Problem& problem, InputRing<T>& ring, const Cublas& cublas,
                           CublasMath math)
{
    const auto launch = [&problem, &ring, &cublas, math](StreamRef, std::size_t set) {
        cublas.multiply(problem, {ring.a(set).data(), ring.b(set).data(), ring.d(set).data()}, math);
    };
    return {std::move(name), launch};
}

/// Used only to divide the remaining time: rates of the slowest contenders, and a constant for the inputs.
double expected_seconds(const Problem& problem)
{
    const Shape& shape = problem.shape;
    const bool has_plain_loop =
        problem.input == ElementType::f32 && std::max({shape.m, shape.n, shape.k}) <= plain_loop_max_extent;
    return 0.5 + problem.flops() * 1e-10 + (has_plain_loop ? std::min(2.0, problem.flops() * 1e-9) : 0);
}

void record(const Verdict& verdict, Measurement& measurement)
{
    measurement.outcome = verdict.fault.empty() ? Outcome::right : Outcome::wrong;
    measurement.note = verdict.fault;
    measurement.error_over_bound = verdict.error_over_bound;
}

/// Runs `multiply` until there are `most_samples`, or two seconds have passed.
Measurement time_on_cpu(std::string name, bool is_rung, std::size_t most_samples, bool warm_up, const Problem& problem,
                        const SampledReference& reference, const std::function<void(gsl::span<float>)>& multiply)
{
    using Clock = std::chrono::steady_clock;
    std::vector<float> d(problem.d_size(), std::numeric_limits<float>::quiet_NaN());
    Measurement measurement{std::move(name), is_rung, Outcome::not_run, {}, 0, {}};
    if (warm_up) {
        multiply(d);
    }
    const auto begin = Clock::now();
    do {
        const auto start = Clock::now();
        multiply(d);
        measurement.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    } while (measurement.seconds.size() < most_samples && Clock::now() - begin < std::chrono::seconds(2));

    record(reference.judge(d, Accumulation::fp32), measurement);
    return measurement;
}

void measure_on_cpu(ProblemReport& report, gsl::span<const float> a, gsl::span<const float> b,
                    const SampledReference& reference, std::size_t rounds)
{
    const Problem& problem = report.problem;
    const auto [m, n, k] = problem.shape;
    if (std::max({m, n, k}) <= plain_loop_max_extent) {
        report.measurements.push_back(time_on_cpu("cpu_plain_loop", true, 3, false, problem, reference,
                                                  [&](gsl::span<float> d) { multiply_plain_loop(problem, a, b, d); }));
    } else {
        report.measurements.push_back({"cpu_plain_loop",
                                       true,
                                       Outcome::not_run,
                                       fmt::format("only run for extents up to {}", plain_loop_max_extent),
                                       0,
                                       {}});
    }
    if (has_openblas()) {
        report.measurements.push_back(time_on_cpu("cpu_openblas", false, rounds, true, problem, reference,
                                                  [&](gsl::span<float> d) { multiply_openblas(problem, a, b, d); }));
    } else {
        report.measurements.push_back({"cpu_openblas", false, Outcome::not_run, "not in this build", 0, {}});
    }
}

class SimtBench {
public:
    SimtBench(const Device& device, const SimtOptions& options)
        : device_(device), options_(options), stream_(device), cublas_(stream_), timer_(device)
    {}

    /// `on_round` is called with the number of finished rounds.
    ProblemReport measure(const Problem& problem, const std::function<void(std::size_t)>& on_round) const
    {
        switch (problem.input) {
            case ElementType::f16: return measure_as<f16>(problem, on_round);
            case ElementType::bf16: return measure_as<bf16>(problem, on_round);
            default: break;
        }
        return measure_as<f32>(problem, on_round);
    }

private:
    template <class T>
    ProblemReport measure_as(const Problem& problem, const std::function<void(std::size_t)>& on_round) const
    {
        const RingSize size = RingSize::for_problem(problem, device_.properties().l2_cache_bytes, max_graph_launches);
        InputRing<T> ring(stream_, problem, size.sets, options_.seed);
        const SampledReference reference(problem, ring.host_a(), ring.host_b(), options_.seed);

        ProblemReport report;
        report.problem = problem;
        report.input_sets = size.sets;
        report.exceeds_cache = size.exceeds_cache;
        if constexpr (std::is_same_v<T, f32>) {
            measure_on_cpu(report, ring.host_a(), ring.host_b(), reference, options_.rounds);
        }
        measure_on_device(report, entries_of(report, ring), ring, reference, on_round);
        return report;
    }

    /// Returns the rungs that can run the problem, then cuBLAS, with the baseline last. All get a place in the report;
    /// refused rungs with the reason.
    template <class T>
    std::vector<DeviceEntry> entries_of(ProblemReport& report, InputRing<T>& ring) const
    {
        const Problem& problem = report.problem;
        std::vector<DeviceEntry> entries;
        for (const Variant variant : all_variants()) {
            if (!to_string(variant).starts_with("simt_")) {
                continue;
            }
            std::string refusal = GemmPlan::refusal(problem.gemm_problem(), device_.properties(), variant);
            if (refusal.empty()) {
                entries.push_back(
                    {variant_contender(problem, ring, variant), Accumulation::fp32, report.measurements.size()});
            }
            report.measurements.push_back(
                {std::string(to_string(variant)), true, Outcome::not_run, std::move(refusal), 0, {}});
        }
        const auto add_cublas = [&](const char* name, CublasMath math, Accumulation accumulation) {
            entries.push_back(
                {cublas_contender(name, problem, ring, cublas_, math), accumulation, report.measurements.size()});
            report.measurements.push_back({name, false, Outcome::not_run, {}, 0, {}});
            report.baseline = name;
        };
        if constexpr (std::is_same_v<T, f32>) {
            add_cublas("cublas_fp32_default", CublasMath::fp32_default, Accumulation::fp32);
            add_cublas("cublas_fp32_pedantic", CublasMath::fp32_pedantic, Accumulation::fp32);
        } else {
            add_cublas("cublas_tensor_core", CublasMath::fp32_default, Accumulation::tensor_core);
        }
        return entries;
    }

    template <class T>
    void measure_on_device(ProblemReport& report, const std::vector<DeviceEntry>& entries, InputRing<T>& ring,
                           const SampledReference& reference, const std::function<void(std::size_t)>& on_round) const
    {
        double fastest = std::numeric_limits<double>::infinity();
        for (const DeviceEntry& entry : entries) {
            const Batch once(stream_, entry.contender, {report.input_sets});
            fastest = std::min(fastest, timer_.seconds_per_product(stream_, once));
        }
        const BatchShape shape = BatchShape::for_product_time(report.input_sets, fastest);
        report.launches_per_sample = shape.launches();
        report.graph_replay = shape.graph_replay;

        // The check is the warm-up: the batch that is judged is the one that is timed.
        std::vector<Batch> batches;
        std::vector<float> d(report.problem.d_size());
        for (const DeviceEntry& entry : entries) {
            batches.emplace_back(stream_, entry.contender, shape);
            ring.poison_outputs(stream_);
            batches.back().enqueue(stream_);
            ring.copy_first_output_to(d);
            record(reference.judge(d, entry.accumulation), report.measurements[entry.measurement]);
        }
        std::vector<std::vector<double>> samples =
            time_in_rounds(timer_, stream_, batches, {.count = options_.rounds, .clocks = options_.clocks}, on_round);
        for (std::size_t i = 0; i < samples.size(); ++i) {
            report.measurements[entries[i].measurement].seconds = std::move(samples[i]);
        }
        if (options_.clocks != nullptr) {
            const std::vector<ClockSummary> clocks = options_.clocks->summaries();
            for (std::size_t i = 0; i < clocks.size(); ++i) {
                report.measurements[entries[i].measurement].clocks = clocks[i];
            }
        }
    }

    Device device_;
    const SimtOptions& options_;
    Stream stream_;
    Cublas cublas_;
    DeviceTimer timer_;
};

}  // namespace

std::string describe_simt_method(const SimtOptions& options)
{
    return fmt::format(
        "A sample is the device time (events) of a batch of products, divided by their number. Input sets\n"
        "rotate: between two uses of a set, the others move twice the size of L2. {} rounds; a round takes\n"
        "one sample of each contender, in rotating order, each after an untimed run of the same length and\n"
        "contender. Products shorter than {:.0f} us are replayed from a graph. Inputs are standard normal,\n"
        "seed {}. Each timed batch first ran on outputs full of NaN and was checked: all elements must be\n"
        "written, and those where 64 rows cross 64 columns must be within gamma_k * |A||B| of a float64\n"
        "reference. cublas_fp32_pedantic is CUBLAS_COMPUTE_32F_PEDANTIC: true fp32, no TF32.\n"
        "cublas_tensor_core (16-bit inputs) uses the tensor cores, which the SIMT rungs do not.\n",
        options.rounds, 1e6 * graph_below_seconds, options.seed);
}

std::vector<ProblemReport> run_simt(const Device& device, const SimtOptions& options,
                                    const std::function<void(const ProblemReport&)>& on_report)
{
    device.make_current();  // cuBLAS uses the current device
    const SimtBench bench(device, options);
    double total = 0;
    for (const Problem& problem : options.problems) {
        total += expected_seconds(problem);
    }
    Progress progress(total);
    double done = 0;
    std::vector<ProblemReport> reports;
    for (const Problem& problem : options.problems) {
        const double expected = expected_seconds(problem);
        const std::string name = fmt::format("{} {} {}", to_string(problem.shape), tessera::to_string(problem.input),
                                             to_string(problem.orders));
        progress.show(done, name + ": inputs, reference, CPU");
        reports.push_back(bench.measure(problem, [&](std::size_t round) {
            const double fraction = static_cast<double>(round) / static_cast<double>(options.rounds);
            progress.show(done + expected * (0.3 + 0.7 * fraction),
                          fmt::format("{}: round {} of {}", name, round + 1, options.rounds));
        }));
        done += expected;
        progress.clear();
        on_report(reports.back());
    }
    return reports;
}

Environment environment_of_peers(const Device& device)
{
    device.make_current();
    const Stream stream(device);
    return {{"cuBLAS", Cublas(stream).version()}, {"OpenBLAS", describe_openblas()}};
}

}  // namespace tessera::bench
