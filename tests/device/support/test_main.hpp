#pragma once

/// Shared by all programs of the device tests: options, seeds, the check for a device, and the report of failures.
///
///     --seed N   (or the environment variable TESSERA_SEED) repeats a run; otherwise each run has a fresh seed
///     --quick    a small set that still runs every kernel, for runs under a sanitizer
///     --verbose  each problem is printed before it runs, to see where a run hangs
///
/// Exit codes: 0 success, 1 a test failed, 2 invalid command line, 77 no CUDA device. All other options are doctest's.

#include <cstdint>
#include <random>
#include <string>

namespace tessera::test {

enum class Needs : std::uint8_t { nothing, device };

/// Runs all test cases of the program.
int run_tests(int argc, char** argv, Needs needs);

std::uint64_t seed();
bool quick();

/// In a verbose run, prints `step` with the seconds since the start.
void trace(const std::string& step);

/// Returns an engine that depends on the run's seed and on `salt`, so that test cases can run alone.
std::mt19937_64 random_engine(std::uint64_t salt);

/// Returns a value that depends on all three numbers; for data generated in any order, by threads or kernels.
constexpr std::uint64_t hash(std::uint64_t seed, std::uint64_t salt, std::uint64_t index) noexcept
{
    std::uint64_t value = seed + 0x9E3779B97F4A7C15U * (index + 1) + 0xD1B54A32D192ED03U * salt;  // SplitMix64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
    return value ^ (value >> 31);
}

/// Fails the running test case and records the problem. The smallest failing problem is printed again at the end.
void report_failure(std::int64_t size, const std::string& problem, const std::string& what);

}  // namespace tessera::test
