#pragma once

/// What was measured in this process or loaded from a file, by problem. Looked up at every automatic launch.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"

namespace tessera::detail {

/// Facts of a problem that speed depends on, beside its extents. Numbers are stable: they are written to files.
enum TuningFact : std::size_t {
    type_a,
    type_b,
    type_d,  // ElementType
    order_a,
    order_b,
    order_d,  // 1: row-major
    align_a,
    align_b,
    align_d,  // bytes, up to 16, that all of the operand's vectors are aligned to
    shared_a,
    shared_b,  // 1: one matrix serves the whole batch
    has_c,
    bias,
    activation,
    fp8_fast,
    tuning_facts
};

/// Problems with equal keys have the same fastest kernel.
struct TuningKey {
    std::uint64_t device = 0;  // `tuning_device`
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    std::int64_t batches = 0;
    std::array<std::uint8_t, tuning_facts> facts{};

    friend bool operator==(const TuningKey&, const TuningKey&) = default;
};

/// A number for the device's model: name, compute capability, count of SMs.
std::uint64_t tuning_device(const DeviceProperties& device) noexcept;
/// `problem` is resolved.
TuningKey tuning_key(const GemmProblem& problem, const DeviceProperties& device) noexcept;

struct TunedChoice {
    KernelChoice choice;
    double seconds = 0;          // per product
    double untuned_seconds = 0;  // of what the cost model chose, measured at the same time
    std::int64_t when = 0;       // seconds since 1970

    friend bool operator==(const TunedChoice&, const TunedChoice&) = default;
};

/// Seconds since 1970.
std::int64_t tuning_clock() noexcept;
/// When a measurement was made, for comparing it with others. What lies more than an hour in the future was written
/// while a clock was wrong; it counts as older than anything, or it could never be replaced.
std::int64_t believed_time(std::int64_t when, std::int64_t now) noexcept;

/// Neither waits nor allocates.
std::optional<TunedChoice> find_tuned(const TuningKey& key) noexcept;
/// Replaces what was known, unless that is newer.
void store_tuned(const TuningKey& key, const TunedChoice& tuned);
/// Replaces what was known by what has been measured just now, and dates it later than that: clocks differ.
void store_measured(const TuningKey& key, TunedChoice tuned);
/// Calls `visit` for each entry.
void for_each_tuned(const std::function<void(const TuningKey&, const TunedChoice&)>& visit);
std::size_t tuned_count() noexcept;
void clear_tuned() noexcept;

/// What is known of `problem` and can run it on `device`. Loads the file of the environment variable at the first call.
std::optional<TunedChoice> find_valid_tuned(const GemmProblem& problem, const DeviceProperties& device);

}  // namespace tessera::detail
