/// Random products, each compared element by element with a float64 reference on the device. Everything that a launch
/// takes varies: types, storage orders, gaps, offsets, batches, epilogues, empty extents, workspaces, and the kernel's
/// configuration. Nothing outside of D may be written, and the same launch must give the same bits.
///
///     tessera-stress --count 100000 --seed 7           every product of a seed
///     tessera-stress --seed 7 --only 4711              one of them again, as the report of a failure says
///     tessera-stress --variant hopper --candidates 8   only this variant, with more of its configurations
///     tessera-stress --self-test --count 100           damages results, and expects each damage to be found
///
/// Exit codes: 0 all right, 1 a wrong product, 2 invalid command line, 77 no CUDA device.

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "stress_run.hpp"
#include "tessera/device.hpp"

namespace {

using namespace tessera;
using namespace tessera::test;

enum ExitCode : int { success = 0, failure = 1, bad_usage = 2, no_device = 77 };

constexpr const char* usage =
    "usage: tessera-stress [options]\n"
    "  --count N          products (1000)\n"
    "  --seed N           of the products (1)\n"
    "  --only INDEX       one product of the seed\n"
    "  --variant NAME     launched by each product (automatic); others than automatic are its only candidates\n"
    "  --candidates N     more kernels and configurations per product, at random (3)\n"
    "  --work N           most multiply-adds of a product (67108864)\n"
    "  --time-limit N     seconds; no product begins later\n"
    "  --failures N       end after this many (10)\n"
    "  --self-test        damage the results, and expect each damage to be found\n";

template <class Number>
bool parse_number(std::string_view text, Number& number)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

/// Returns nothing if the command line is invalid.
std::optional<StressOptions> options_of(int argc, char** argv)
{
    StressOptions options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        if (name == "--self-test") {
            options.self_test = true;
            continue;
        }
        const std::string_view value = i + 1 < argc ? argv[++i] : "";
        std::uint64_t only = 0;
        bool right = false;
        if (name == "--count") {
            right = parse_number(value, options.count);
        } else if (name == "--seed") {
            right = parse_number(value, options.seed);
        } else if (name == "--only") {
            right = parse_number(value, only);
            options.only = only;
        } else if (name == "--variant") {
            right = true;
            options.variant = variant_from_string(value);
        } else if (name == "--candidates") {
            right = parse_number(value, options.candidates);
        } else if (name == "--work") {
            right = parse_number(value, options.limits.multiply_adds);
        } else if (name == "--time-limit") {
            right = parse_number(value, options.time_limit_seconds);
        } else if (name == "--failures") {
            right = parse_number(value, options.most_failures) && options.most_failures > 0;
        }
        if (!right) {
            fmt::print(stderr, "tessera-stress: '{} {}' is not an option\n{}", name, value, usage);
            return std::nullopt;
        }
    }
    return options;
}

}  // namespace

int main(int argc, char** argv)  // NOLINT(bugprone-exception-escape): only if stderr is broken
{
    try {
        const std::optional<StressOptions> options = options_of(argc, argv);
        if (!options) {
            return bad_usage;
        }
        if (Device::count() == 0) {
            fmt::print("skipped: this test needs a CUDA device\n");
            return no_device;
        }
        return run_stress(*options) ? success : failure;
    } catch (const std::exception& error) {
        fmt::print(stderr, "tessera-stress: {}\n", error.what());
        return failure;
    }
}
