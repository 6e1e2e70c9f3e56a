#include "gemm_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "gemm/contender.hpp"
#include "gemm/hopper_configs.hpp"
#include "gemm/ours.hpp"
#include "method/progress.hpp"
#include "method/timer.hpp"
#include "peers/cublaslt.hpp"
#include "peers/reader.hpp"
#include "problem/input_ring.hpp"
#include "problem/operand_ring.hpp"
#include "problem/reference.hpp"
#include "problem/with_element.hpp"
#include "report/gemm_summary.hpp"

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;

// For each candidate in the race for the best of 16: enough samples for a median, each shorter than a reported one.
constexpr std::size_t race_rounds = 5;
constexpr double race_sample_fraction = 0.25;

double seconds_of(std::chrono::milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

/// A contender that is ready for the problem, and its place in the report.
struct Entry {
    Contender contender;
    Accumulation accumulation;
    bool computes;
    EpilogueArithmetic epilogue;
    std::size_t measurement;
};

/// The matrices of one problem as bytes on the host.
struct HostInputs {
    std::vector<unsigned char> a;
    std::vector<unsigned char> b;
    std::vector<unsigned char> c;            // empty, or of D's size
    std::vector<float> bias;                 // empty, or one per column of D
    std::vector<unsigned char> narrow_bias;  // the same numbers in D's type
};

/// The epilogue's addend, about as large as the sums of k products: standard normal, rounded to D's type, times a power
/// of two. A missing addend is then detected.
template <class Output>
std::vector<Output> random_addends(std::size_t size, std::int64_t k, std::uint64_t seed, std::uint64_t sequence)
{
    std::vector<Output> elements(size);
    fill_normal(gsl::span<Output>(elements), seed, sequence);
    const float scale = std::exp2(std::round(0.5F * std::log2(static_cast<float>(k))));
    for (Output& element : elements) {
        element = Output(static_cast<float>(element) * scale);
    }
    return elements;
}

template <class T>
std::vector<unsigned char> bytes_of(const std::vector<T>& elements)
{
    const auto* bytes = reinterpret_cast<const unsigned char*>(elements.data());
    return {bytes, bytes + elements.size() * sizeof(T)};
}

/// Makes the epilogue's addends, and the function that gives them to the reference.
template <class Output>
SampledReference::Addend add_addends(HostInputs& inputs, const Problem& problem, std::uint64_t seed)
{
    const auto columns = static_cast<std::size_t>(problem.shape.n);
    if (has_bias(problem.fusion)) {
        const std::vector<Output> bias = random_addends<Output>(columns, problem.shape.k, seed, 2);
        inputs.narrow_bias = bytes_of(bias);
        inputs.bias.assign(bias.begin(), bias.end());
        return [bias](std::int64_t, std::int64_t column) {
            return static_cast<double>(static_cast<float>(bias[static_cast<std::size_t>(column)]));
        };
    }
    if (has_c(problem.fusion)) {
        std::vector<Output> c = random_addends<Output>(problem.d_size(), problem.shape.k, seed, 3);
        inputs.c = bytes_of(c);
        return [c = std::move(c), columns](std::int64_t row, std::int64_t column) {
            return static_cast<double>(
                static_cast<float>(c[static_cast<std::size_t>(row) * columns + static_cast<std::size_t>(column)]));
        };
    }
    return {};
}

template <class T>
std::vector<unsigned char> random_bytes(std::size_t size, std::uint64_t seed, std::uint64_t sequence,
                                        std::vector<T>& elements)
{
    elements.resize(size);
    fill_normal(gsl::span<T>(elements), seed, sequence);
    return bytes_of(elements);
}

/// Used only to divide the remaining time: a rate that good kernels reach, a constant for inputs and checks, the
/// pauses.
double expected_seconds(const Problem& problem, const GemmOptions& options)
{
    constexpr double usual_rate = 5e14;
    constexpr double contenders = 3;
    const double sample = std::max(seconds_of(options.sample), 3 * problem.flops() / usual_rate);
    return 0.3 + static_cast<double>(problem.bytes()) * 2e-9 +
           contenders * static_cast<double>(options.rounds) * (2 * sample + seconds_of(options.pause));
}

class GemmBench {
public:
    GemmBench(const Device& device, const GemmOptions& options)
        : device_(device),
          options_(options),
          stream_(device),
          timer_(device),
          contenders_(our_contenders(options.variants))
    {
        if (options.config) {
            for (GemmContender& contender : hopper_config_contenders(
                     *options.config, options.shortlist, options.finalists,
                     options.candidates_file.empty() ? nullptr
                                                     : std::make_shared<CandidateFile>(options.candidates_file))) {
                contenders_.push_back(std::move(contender));
            }
        }
        if (options.tuning.wanted()) {
            contenders_.push_back(tuned_contender(options.tuning));
        }
        if (options.peers) {
            add_cublaslt();
        }
        if (options.reader) {
            contenders_.push_back(reader_contender());
        }
    }

    std::vector<std::string> names(bool ours) const
    {
        std::vector<std::string> names;
        for (const GemmContender& contender : contenders_) {
            if (contender.name.starts_with(our_prefix) == ours) {
                names.push_back(contender.name);
            }
        }
        return names;
    }

    /// Called with the current activity and the fraction of the problem's time that has passed.
    using OnStep = std::function<void(const std::string& what, double fraction)>;

    ProblemReport measure(const Problem& problem, Clock::time_point deadline, const OnStep& on_step) const
    {
        return with_element(problem.input, [&]<class Input>(std::type_identity<Input>) {
            on_step("inputs and reference", 0);
            std::vector<Input> a;
            std::vector<Input> b;
            HostInputs bytes{random_bytes(problem.a_size(), options_.seed, 0, a),
                             random_bytes(problem.b_size(), options_.seed, 1, b),
                             {},
                             {},
                             {}};
            const SampledReference::Addend addend =
                with_output_element(problem.output, [&]<class Output>(std::type_identity<Output>) {
                    return add_addends<Output>(bytes, problem, options_.seed);
                });
            const SampledReference reference(problem, gsl::span<const Input>(a), gsl::span<const Input>(b),
                                             options_.seed, addend);
            return measure(problem, bytes, reference, deadline, on_step);
        });
    }

private:
    void add_cublaslt()
    {
        try {
            cublaslt_ = std::make_unique<CublasLt>(stream_);
        } catch (const std::runtime_error&) {
            return;  // environment_of_gemm_peers has reported it
        }
        for (GemmContender& contender : cublaslt_contenders(*cublaslt_)) {
            contenders_.push_back(std::move(contender));
        }
    }

    ProblemReport measure(const Problem& problem, const HostInputs& inputs, const SampledReference& reference,
                          Clock::time_point deadline, const OnStep& on_step) const
    {
        const RingSize size = RingSize::for_problem(problem, device_.properties().l2_cache_bytes, options_.most_sets);
        OperandRing ring(stream_, problem, size.sets, inputs.a, inputs.b, inputs.c);
        DeviceBuffer<float> bias(stream_, inputs.bias.size());
        bias.copy_from(inputs.bias);
        DeviceBuffer<unsigned char> narrow_bias(stream_, inputs.narrow_bias.size());
        narrow_bias.copy_from(inputs.narrow_bias);
        const DeviceBuffer<float> scales = DeviceBuffer<float>::from_host(stream_, std::array{scale_of_a, scale_of_b});
        ProblemReport report;
        report.problem = problem;
        report.input_sets = size.sets;
        report.exceeds_cache = size.exceeds_cache;

        const Task task{device_,
                        stream_,
                        problem,
                        ring.sets(),
                        {bias.data(), narrow_bias.data()},
                        {scales.data(), scales.data() + 1},
                        [&](const std::vector<Enqueue>& products) { return race(products, size.sets); }};
        std::vector<Entry> entries;
        for (const GemmContender& contender : contenders_) {
            on_step(contender.name + ": choosing an algorithm", 0.1);
            Prepared prepared = contender.prepare(task);
            if (prepared.enqueue) {
                entries.push_back({{contender.name, std::move(prepared.enqueue)},
                                   prepared.accumulation,
                                   prepared.computes,
                                   prepared.epilogue,
                                   report.measurements.size()});
            }
            report.measurements.push_back({contender.name, false, Outcome::not_run, std::move(prepared.remark), 0, {}});
            if (!contender.name.starts_with(our_prefix) && report.baseline.empty()) {
                report.baseline = contender.name;
            }
        }
        if (!entries.empty()) {
            time_and_judge(report, entries, ring, reference, deadline, on_step);
        }
        return report;
    }

    /// Seconds per product over all sets, after an untimed run.
    double first_estimate(const Contender& contender, std::size_t sets) const
    {
        const Batch once(stream_, contender, {sets});
        once.enqueue(stream_);  // loads modules
        return timer_.seconds_per_product(stream_, once);
    }

    std::vector<double> race(const std::vector<Enqueue>& products, std::size_t sets) const
    {
        std::vector<Contender> racers;
        std::vector<std::size_t> places;
        double fastest = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < products.size(); ++i) {
            Contender racer{{}, products[i]};
            try {
                fastest = std::min(fastest, first_estimate(racer, sets));
            } catch (const std::runtime_error&) {
                continue;  // proposed but cannot run: its time stays infinite
            }
            racers.push_back(std::move(racer));
            places.push_back(i);
        }
        const BatchShape shape =
            BatchShape::for_product_time(sets, fastest, race_sample_fraction * seconds_of(options_.sample));
        std::vector<Batch> batches;
        for (const Contender& racer : racers) {
            batches.emplace_back(stream_, racer, shape);
        }
        const auto samples =
            time_in_rounds(timer_, stream_, batches, {race_rounds, options_.pause}, [](std::size_t) {});
        std::vector<double> medians(products.size(), std::numeric_limits<double>::infinity());
        for (std::size_t i = 0; i < places.size(); ++i) {
            medians[places[i]] = summarize(samples[i]).median;
        }
        return medians;
    }

    void time_and_judge(ProblemReport& report, const std::vector<Entry>& entries, OperandRing& ring,
                        const SampledReference& reference, Clock::time_point deadline, const OnStep& on_step) const
    {
        double fastest = std::numeric_limits<double>::infinity();
        for (const Entry& entry : entries) {
            fastest = std::min(fastest, first_estimate(entry.contender, report.input_sets));
        }
        const BatchShape shape = BatchShape::for_product_time(report.input_sets, fastest, seconds_of(options_.sample));
        report.launches_per_sample = shape.launches();
        report.graph_replay = shape.graph_replay;

        // The check is the warm-up: the batch that is judged is the one that is timed.
        std::vector<Batch> batches;
        for (const Entry& entry : entries) {
            on_step(entry.contender.name + ": checking", 0.2);
            batches.emplace_back(stream_, entry.contender, shape);
            ring.poison_outputs(stream_);
            batches.back().enqueue(stream_);
            judge(report, entry, ring, reference);
        }
        auto samples =
            time_in_rounds(timer_, stream_, batches, {options_.rounds, options_.pause, deadline, options_.clocks},
                           [&](std::size_t round) {
                               on_step(fmt::format("round {} of {}", round + 1, options_.rounds),
                                       0.3 + 0.7 * static_cast<double>(round) / static_cast<double>(options_.rounds));
                           });
        for (std::size_t i = 0; i < samples.size(); ++i) {
            report.measurements[entries[i].measurement].seconds = std::move(samples[i]);
        }
        if (options_.clocks != nullptr) {
            const std::vector<ClockSummary> clocks = options_.clocks->summaries();
            for (std::size_t i = 0; i < clocks.size(); ++i) {
                report.measurements[entries[i].measurement].clocks = clocks[i];
            }
        }
        settle_best(report);
    }

    /// Judges D of the first set and of the last.
    static void judge(ProblemReport& report, const Entry& entry, const OperandRing& ring,
                      const SampledReference& reference)
    {
        Measurement& measurement = report.measurements[entry.measurement];
        measurement.outcome = Outcome::right;
        if (!entry.computes) {
            return;
        }
        with_output_element(report.problem.output, [&]<class Output>(std::type_identity<Output>) {
            std::vector<Output> d(report.problem.d_size());
            const gsl::span<unsigned char> bytes(reinterpret_cast<unsigned char*>(d.data()), d.size() * sizeof(Output));
            for (std::size_t set = 0; set < report.input_sets; set += std::max<std::size_t>(report.input_sets - 1, 1)) {
                ring.copy_output_to(set, bytes);
                const Verdict verdict = reference.judge(gsl::span<const Output>(d), entry.accumulation, entry.epilogue);
                measurement.error_over_bound = std::max(measurement.error_over_bound, verdict.error_over_bound);
                if (!verdict.fault.empty()) {
                    measurement.outcome = Outcome::wrong;
                    measurement.note = verdict.fault;
                }
            }
        });
    }

    Device device_;
    const GemmOptions& options_;
    Stream stream_;
    DeviceTimer timer_;
    std::unique_ptr<CublasLt> cublaslt_;
    std::vector<GemmContender> contenders_;
};

ProblemReport left_out(const Problem& problem, const std::vector<std::string>& ours)
{
    ProblemReport report;
    report.problem = problem;
    for (const std::string& name : ours) {
        report.measurements.push_back({name, false, Outcome::not_run, "time limit reached", 0, {}});
    }
    return report;
}

void print(const std::string& text)
{
    fmt::print("{}\n", text);
    std::fflush(stdout);
}

}  // namespace

std::string describe_gemm_method(const GemmOptions& options)
{
    return fmt::format(
        "A sample is the device time (events) of a batch of products, at least {} ms, divided by their\n"
        "number. Operand sets rotate: between two uses of a set, the others move twice the size of L2. There\n"
        "are up to {} rounds. A round takes one sample of each contender, in rotating order, each after a\n"
        "pause of {} ms and an untimed run of the same length and contender. Products shorter than {:.0f} us\n"
        "are replayed from a graph. Clock and power are read every {} ms of timed work, where NVML is there.\n"
        "Inputs are standard normal, seed {}. cuBLASLt has a workspace of 64 MiB. Its best of {} is the\n"
        "fastest in a short race of all candidates, then measured again, or the heuristic's first choice if\n"
        "that is faster. Each timed batch first ran on outputs full of NaN and was checked: all elements of\n"
        "the first and the last D must be written, and those where one row in 64 (or more) crosses one column\n"
        "in 64 must be within the error bound of a float64 reference. Orders: A, then B; r is row-major.\n",
        options.sample.count(), options.rounds, options.pause.count(), 1e6 * graph_below_seconds,
        ClockSampler::usual_interval.count(), options.seed, cublaslt_candidates);
}

Environment environment_of_gemm_peers(const Device& device, const GemmOptions& options)
{
    if (!options.peers) {
        return {{"cuBLASLt", "not measured (--peers none)"}};
    }
    device.make_current();
    try {
        const Stream stream(device);
        const CublasLt cublaslt(stream);
        return {{"cuBLASLt", CublasLt::version()}};
    } catch (const std::runtime_error& error) {
        return {{"cuBLASLt", fmt::format("not available on this device ({}); only Tessera is measured", error.what())}};
    }
}

std::vector<ProblemReport> run_gemm(const Device& device, const GemmOptions& options)
{
    device.make_current();  // cuBLASLt uses the current device
    const GemmBench bench(device, options);
    const GemmTable table(bench.names(true), bench.names(false), options.remarks);
    print(table.header());

    double expected_left = 0;
    for (const Problem& problem : options.problems) {
        expected_left += expected_seconds(problem, options);
    }
    const Clock::time_point start = Clock::now();
    const auto after = [](double seconds) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    Progress progress(expected_left);
    double done = 0;
    std::vector<ProblemReport> reports;
    for (const Problem& problem : options.problems) {
        const double expected = expected_seconds(problem, options);
        // Each problem gets its share of the remaining time.
        Clock::time_point deadline = Clock::time_point::max();
        if (options.time_limit_seconds > 0) {
            const double left =
                options.time_limit_seconds - std::chrono::duration<double>(Clock::now() - start).count();
            if (left <= 0) {
                reports.push_back(left_out(problem, bench.names(true)));
                print(table.row(reports.back()));
                continue;
            }
            deadline = Clock::now() + after(left * expected / expected_left);
        }
        const std::string name = name_of(problem);
        reports.push_back(bench.measure(problem, deadline, [&](const std::string& what, double fraction) {
            progress.show(done + expected * fraction, fmt::format("{}: {}", name, what));
        }));
        done += expected;
        expected_left -= expected;
        progress.clear();
        print(table.row(reports.back()));
    }
    print("\n" + GemmTable::footer(reports));
    return reports;
}

}  // namespace tessera::bench
