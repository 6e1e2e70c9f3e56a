#pragma once

// A kernel of one warp in which each lane has 64 bytes of input and 64 bytes of output.

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../support/run_ptx.hpp"

namespace tessera::emulator::test {

inline constexpr std::size_t slot_bytes = 64;

using Slot = std::array<std::uint8_t, slot_bytes>;

template <typename T>
[[nodiscard]] T get(const Slot& slot, std::size_t offset = 0)
{
    T value;
    std::memcpy(&value, slot.data() + offset, sizeof(T));
    return value;
}

template <typename T>
void put(Slot& slot, T value, std::size_t offset = 0)
{
    std::memcpy(slot.data() + offset, &value, sizeof(T));
}

/// `body` has the addresses of the lane's input and output in %in and %out, its number in %lane, and the input of lane
/// 0 in %all. Registers %h (16 bits), %r, %d, %f, %e (f64), %q (128), %p are free from number 1 on. `module_scope`
/// comes before the kernel.
[[nodiscard]] inline std::string lane_kernel(std::string_view body, std::string_view module_scope = "",
                                             std::string_view target = "sm_100a")
{
    return module_text(target, std::string(module_scope) + R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .b16 %h<40>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<40>; .reg .f64 %e<40>; .reg .b128 %q<8>;
    .reg .pred %p<8>;
    .reg .b64 %in, %out, %all, %slot; .reg .b32 %lane;
    ld.param.u64 %all, [in];
    ld.param.u64 %out, [out];
    mov.u32 %lane, %tid.x;
    mul.wide.u32 %slot, %lane, 64;
    add.s64 %in, %all, %slot;
    add.s64 %out, %out, %slot;
)" + std::string(body) + "\n    ret;\n}\n");
}

/// Irregular bytes, the same in each run.
[[nodiscard]] inline std::vector<Slot> lane_input()
{
    std::vector<Slot> input(32);
    std::uint32_t state = 12345;
    for (Slot& slot : input) {
        for (std::uint8_t& byte : slot) {
            state = state * 1664525 + 1013904223;
            byte = static_cast<std::uint8_t>(state >> 24);
        }
    }
    return input;
}

struct LaneResult {
    std::vector<Slot> input, output;
    LaunchResult launch;
    std::string report;
    std::vector<Finding> findings;
};

[[nodiscard]] inline LaneResult run_lanes(const std::string& ptx, std::vector<Slot> input = lane_input(),
                                          std::string_view device = "b200", bool checks = true,
                                          Schedule schedule = Schedule::in_order)
{
    PtxRun run(ptx, device);
    run.options.check = checks;
    run.options.schedule = schedule;
    LaneResult result;
    Slot empty;
    empty.fill(0xEE);
    const std::uint64_t in = run.buffer(input);
    const std::uint64_t out = run.buffer(std::vector<Slot>(32, empty));
    INFO(run.module().find_kernel("k")->load_error);
    REQUIRE(run.module().find_kernel("k")->load_error.empty());
    result.launch = run.launch("k", {}, in, out);
    result.input = run.read<Slot>(in, 32);
    result.output = run.read<Slot>(out, 32);
    result.report = run.report.text();
    result.findings = run.report.findings();
    return result;
}

/// Runs `body` and compares each lane's output with `expected` of its input (unwritten output is 0xEE).
inline void check_lanes(std::string_view body,
                        const std::function<void(unsigned lane, const Slot& in, Slot& out)>& expected,
                        std::string_view module_scope = "", std::string_view device = "b200",
                        std::string_view target = "sm_100a", bool clean = true)
{
    CAPTURE(body);
    for (const bool checks : {true, false}) {
        const std::vector<Slot> input = lane_input();
        const LaneResult result = run_lanes(lane_kernel(body, module_scope, target), input, device, checks);
        INFO(result.launch.message, result.report);
        REQUIRE(result.launch.code == 0);
        CHECK((!clean || result.findings.empty()));
        for (unsigned lane = 0; lane < 32; ++lane) {
            CAPTURE(lane);
            Slot out;
            out.fill(0xEE);
            expected(lane, input[lane], out);
            CHECK(result.output[lane] == out);
        }
    }
}

/// Why the kernel with this body cannot be loaded; empty if it can.
[[nodiscard]] inline std::string load_error(std::string_view body, std::string_view module_scope = "",
                                            std::string_view device = "b200", std::string_view target = "sm_100a")
{
    return PtxRun(lane_kernel(body, module_scope, target), device).module().find_kernel("k")->load_error;
}

}  // namespace tessera::emulator::test
