#pragma once

// Runs the test programs: PTX from nvcc at build time, launched many times on one emulated device.

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "run_ptx.hpp"

namespace tessera::emulator::test {

/// Seeds of the schedules `random` and `adversarial`, for programs that must have no findings: --seeds N.
[[nodiscard]] unsigned clean_seeds();
void set_clean_seeds(unsigned seeds);

/// The result of one launch. Its buffers are freed; D was copied.
struct Outcome {
    LaunchResult result;
    std::vector<Finding> findings;
    std::string text;  ///< of the findings, as people read them
    std::vector<double> d;
};

/// A place in a program, as a finding names it.
struct Place {
    std::string file;
    std::uint32_t line = 0;
};

/// One file of PTX on one emulated device.
class TestProgram {
public:
    /// `name`: of the .cu file, without the suffix.
    explicit TestProgram(const std::string& name, std::string_view device = "b200");

    /// The kernel `name<arguments..., fault>`; `arguments` may be empty, else it ends in a comma: "1,".
    [[nodiscard]] std::string kernel(const std::string& name, const std::string& arguments, int fault) const;

    /// Where the instruction of this PTX line comes from: the innermost place first, then where that was inlined.
    [[nodiscard]] std::vector<Place> places(std::uint32_t ptx_line) const;

    [[nodiscard]] const std::string& line(std::uint32_t number) const { return lines_.at(number - 1); }

    PtxRun run;

private:
    std::vector<std::string> lines_;
};

/// Product of row-major A (m x k) and B^T (B is n x k) in double, and the allowed error of a result.
struct Reference {
    std::vector<double> d, bound;
};
[[nodiscard]] Reference reference(const std::vector<double>& a, const std::vector<double>& b, int m, int n, int k,
                                  double result_epsilon);

/// Values that bf16 (f16, f32) hold exactly.
[[nodiscard]] std::vector<double> random_values(std::size_t count, unsigned seed);

[[nodiscard]] std::vector<std::uint16_t> to_bf16(const std::vector<double>& values);
[[nodiscard]] std::vector<double> from_bf16(const std::vector<std::uint16_t>& bits);

/// Calls launch(run, a, b, d) with the addresses of A, B and room for `count` results in the program's memory, and
/// frees them. Result: float, or std::uint16_t for bf16.
template <typename Result, typename Element, typename Launch>
[[nodiscard]] Outcome run_with(TestProgram& program, const std::vector<Element>& a, const std::vector<Element>& b,
                               std::size_t count, Launch&& launch);

/// A row-major matrix of bf16 for tensor copies in boxes with the 128-byte swizzle.
[[nodiscard]] std::array<std::byte, tensor_map_bytes> bf16_map(std::uint64_t address, int rows, int columns,
                                                               int box_rows, int box_columns);

/// Where a fault is reported.
struct FaultPlace {
    const char* ptx = "";     ///< in the PTX text of the finding
    const char* source = "";  ///< in a source line that the instruction comes from
};

/// One planted fault, and how it must be reported.
struct PlantedFault {
    const char* name;
    int fault;
    std::vector<FindingKind> kinds;  ///< at least one of these
    std::vector<FaultPlace> places;  ///< one of these: of two unordered accesses the later one is reported
    int k = 0;                       ///< 0: the program's own
    /// 1: every seed finds it; else one of so many seeds of each schedule does.
    unsigned within_seeds = 1;
};

/// Calls launch(fault, k) under each schedule, checks the findings, and prints them.
template <typename Launch>
void check_planted(TestProgram& program, const std::string& family, const PlantedFault& planted, Launch&& launch);

/// Calls launch() with several seeds of each schedule: there is no finding, and D equals the reference.
template <typename Launch>
void check_clean(TestProgram& program, const Reference& expected, Launch&& launch);

void check_outcome(const TestProgram& program, const std::string& family, const PlantedFault& planted,
                   const Outcome& outcome, bool& found);
void check_clean_outcome(const Outcome& outcome, const Reference& expected);

[[nodiscard]] std::string missed(const std::string& family, const PlantedFault& planted, Schedule schedule);
void report_missed(const std::string& text);

template <typename Result, typename Element, typename Launch>
Outcome run_with(TestProgram& program, const std::vector<Element>& a, const std::vector<Element>& b, std::size_t count,
                 Launch&& launch)
{
    PtxRun& run = program.run;
    run.report.clear();
    const std::uint64_t a_address = run.buffer(a);
    const std::uint64_t b_address = run.buffer(b);
    const std::uint64_t d_address = run.uninitialized(count * sizeof(Result));
    Outcome outcome;
    outcome.result = launch(run, a_address, b_address, d_address);
    outcome.findings = run.report.findings();
    outcome.text = run.report.text();
    const std::vector<Result> d = run.template read<Result>(d_address, count);
    if constexpr (std::is_same_v<Result, std::uint16_t>) {
        outcome.d = from_bf16(d);
    } else {
        outcome.d.assign(d.begin(), d.end());
    }
    for (const std::uint64_t address : {a_address, b_address, d_address}) {
        if (!run.memory.free(address)) {
            throw std::logic_error("the launch has freed an operand");
        }
    }
    return outcome;
}

template <typename Launch>
void check_planted(TestProgram& program, const std::string& family, const PlantedFault& planted, Launch&& launch)
{
    program.run.options.hang_seconds = 0.2;
    program.run.options.hang_limit = 50'000;
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        constexpr unsigned seeds_that_all_find = 3;
        bool found = false;
        const unsigned seeds = planted.within_seeds == 1 ? seeds_that_all_find : planted.within_seeds;
        for (unsigned seed = 1; seed <= (schedule == Schedule::in_order ? 1 : seeds); ++seed) {
            program.run.options.schedule = schedule;
            program.run.options.seed = seed;
            bool found_now = false;
            check_outcome(program, family, planted, launch(planted), found_now);
            found = found || found_now;
            if (planted.within_seeds == 1 && !found_now) {
                report_missed(missed(family, planted, schedule));
            } else if (planted.within_seeds != 1 && found_now) {
                break;
            }
        }
        if (planted.within_seeds != 1 && !found && schedule != Schedule::in_order) {
            report_missed(missed(family, planted, schedule));
        }
    }
}

template <typename Launch>
void check_clean(TestProgram& program, const Reference& expected, Launch&& launch)
{
    const auto once = [&](Schedule schedule, unsigned seed) {
        program.run.options.schedule = schedule;
        program.run.options.seed = seed;
        check_clean_outcome(launch(), expected);
    };
    once(Schedule::in_order, 1);
    for (unsigned seed = 1; seed <= clean_seeds(); ++seed) {
        once(Schedule::random, seed);
        once(Schedule::adversarial, seed);
    }
}

}  // namespace tessera::emulator::test
