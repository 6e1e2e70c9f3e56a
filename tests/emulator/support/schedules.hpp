#pragma once

// Runs a test under every schedule: once in order, and with several seeds of the other schedules.

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "run_ptx.hpp"

namespace tessera::emulator::test {

[[nodiscard]] inline std::string findings_text(const PtxRun& run) { return run.report.text(); }

/// Calls body(run) with a fresh machine for each schedule and seed.
template <typename Body>
void under_every_schedule(std::string_view ptx, std::string_view device, Body&& body, unsigned seeds = 12)
{
    const auto once = [&](Schedule schedule, std::uint64_t seed) {
        CAPTURE(static_cast<int>(schedule));
        CAPTURE(seed);
        PtxRun run(ptx, device);
        run.options.schedule = schedule;
        run.options.seed = seed;
        body(run);
    };
    if (const char* more = std::getenv("TESSERA_TEST_SEEDS"); more != nullptr) {  // for a long search
        seeds = static_cast<unsigned>(std::strtoul(more, nullptr, 10));
    }
    once(Schedule::in_order, 1);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        once(Schedule::random, seed);
        once(Schedule::adversarial, seed);
    }
}

/// Requires that the launch succeeded and nothing was reported.
#define REQUIRE_CLEAN(run, result)                \
    do {                                          \
        INFO(findings_text(run));                 \
        INFO((result).message);                   \
        REQUIRE((result).code == 0);              \
        REQUIRE((run).report.findings().empty()); \
    } while (false)

/// Checks that findings of this kind were reported; shows the report if not.
#define CHECK_FOUND(run, kind)        \
    do {                              \
        INFO(findings_text(run));     \
        CHECK((run).count(kind) > 0); \
    } while (false)

}  // namespace tessera::emulator::test
