#include "test_main.hpp"

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <string_view>

#include "tessera/device.hpp"

namespace tessera::test {
namespace {

constexpr int exit_usage = 2;
constexpr int exit_no_device = 77;

struct State {
    std::uint64_t seed = 0;
    bool quick = false;
    bool verbose = false;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    std::mutex mutex;
    std::int64_t smallest_size = std::numeric_limits<std::int64_t>::max();
    std::string smallest;
    int failures = 0;
};

State& state()
{
    static State instance;
    return instance;
}

bool parse_seed(std::string_view text)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), state().seed);
    if (error != std::errc() || end != text.data() + text.size()) {
        std::fprintf(stderr, "the seed '%.*s' is not a number\n", static_cast<int>(text.size()), text.data());
        return false;
    }
    return true;
}

bool parse_options(int argc, char** argv)
{
    std::random_device fresh;
    state().seed = (std::uint64_t{fresh()} << 32U) | fresh();
    if (const char* text = std::getenv("TESSERA_SEED"); text != nullptr && !parse_seed(text)) {
        return false;
    }
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--quick") {
            state().quick = true;
        } else if (argument == "--verbose") {
            state().verbose = true;
        } else if (argument == "--seed") {
            if (++i == argc || !parse_seed(argv[i])) {
                std::fprintf(stderr, "usage: %s [--seed N] [--quick] [--verbose] [doctest's options]\n", argv[0]);
                return false;
            }
        } else if (argument.starts_with("--seed=")) {
            if (!parse_seed(argument.substr(std::strlen("--seed=")))) {
                return false;
            }
        }
    }
    return true;
}

/// Keeps freed memory in the pool: the tests allocate a lot, and the driver is slow.
void keep_pool_memory()
{
    cudaMemPool_t pool = nullptr;
    std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();
    if (Device::current().properties().has_memory_pools && cudaDeviceGetMemPool(&pool, 0) == cudaSuccess) {
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything);
    }
}

}  // namespace

std::uint64_t seed() { return state().seed; }

bool quick() { return state().quick; }

void trace(const std::string& step)
{
    if (state().verbose) {
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - state().start;
        std::fprintf(stderr, "%.1f s: %s\n", elapsed.count(), step.c_str());
    }
}

std::mt19937_64 random_engine(std::uint64_t salt) { return std::mt19937_64(hash(seed(), salt, 0)); }

void report_failure(std::int64_t size, const std::string& problem, const std::string& what)
{
    constexpr int shown = 20;
    const std::scoped_lock lock(state().mutex);
    if (size < state().smallest_size) {
        state().smallest_size = size;
        state().smallest = problem + "\n  " + what;
    }
    if (++state().failures <= shown) {
        FAIL_CHECK(problem << "\n  " << what);
    } else {
        ADD_FAIL_CHECK_AT(__FILE__, __LINE__, "one more failing problem");
    }
}

int run_tests(int argc, char** argv, Needs needs)
{
    if (!parse_options(argc, argv)) {
        return exit_usage;
    }
    // A kernel that is loaded at its first launch may wait for running kernels, and tests hold some of these on
    // purpose.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    doctest::Context context(argc, argv);
    if (needs == Needs::device && Device::count() == 0 && !context.shouldExit()) {
        std::printf("skipped: this test needs a CUDA device\n");
        return exit_no_device;
    }
    if (needs == Needs::device && !quick()) {
        keep_pool_memory();
    }
    std::printf("seed %llu (repeat this run with --seed %llu)\n", static_cast<unsigned long long>(seed()),
                static_cast<unsigned long long>(seed()));
    const int result = context.run();
    if (!state().smallest.empty()) {
        std::printf("smallest failing problem: %s\n", state().smallest.c_str());
    }
    if (result != 0) {
        std::printf("failed with seed %llu\n", static_cast<unsigned long long>(seed()));
    }
    return result;
}

}  // namespace tessera::test
