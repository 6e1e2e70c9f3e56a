#pragma once

/// Choices that were measured in this process or loaded from a file, by problem. Every automatic launch looks here.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"

namespace tessera::detail {

/// Properties of a problem that affect its speed, besides its extents. The numbers are stable: files contain them.
enum TuningFact : std::size_t {
    type_a,
    type_b,
    type_d,  // ElementType
    order_a,
    order_b,
    order_d,  // 1: row-major
    align_a,
    align_b,
    align_d,  // bytes, up to 16: the alignment of all of the operand's vectors
    shared_a,
    shared_b,  // 1: one matrix serves the whole batch
    has_c,
    bias,
    activation,
    fp8_fast,
    pre_activation,  // 1: stored. Entries of older files lack what follows fp8_fast; it is 0 there
    scale_vectors,   // 1: one scale per row of A, 2: one per column of B, 3: both
    gating,
    f16_sums,  // 1: allowed
    tuning_facts
};

/// Identifies problems with the same fastest kernel.
struct TuningKey {
    std::uint64_t device = 0;  // `tuning_device`
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    std::int64_t batches = 0;
    std::array<std::uint8_t, tuning_facts> facts{};

    friend bool operator==(const TuningKey&, const TuningKey&) = default;
};

/// A number for the device's model: its name, compute capability and number of SMs.
std::uint64_t tuning_device(const DeviceProperties& device) noexcept;
/// `problem` must be resolved.
TuningKey tuning_key(const GemmProblem& problem, const DeviceProperties& device) noexcept;

struct TunedChoice {
    KernelChoice choice;
    double seconds = 0;          // per product
    double untuned_seconds = 0;  // of the cost model's choice, measured at the same time
    std::int64_t when = 0;       // seconds since 1970

    friend bool operator==(const TunedChoice&, const TunedChoice&) = default;
};

/// Seconds since 1970.
std::int64_t tuning_clock() noexcept;
/// Returns when a measurement was made, for comparison with others. A time more than an hour in the future came from a
/// wrong clock; it counts as older than anything, because the entry could otherwise never be replaced.
std::int64_t believed_time(std::int64_t when, std::int64_t now) noexcept;

/// Neither waits nor allocates.
std::optional<TunedChoice> find_tuned(const TuningKey& key) noexcept;
/// Replaces the known choice, unless that is newer.
void store_tuned(const TuningKey& key, const TunedChoice& tuned);
/// Replaces the known choice by one measured just now, and dates it later than the old one, because clocks differ.
void store_measured(const TuningKey& key, TunedChoice tuned);
/// Calls `visit` for each entry.
void for_each_tuned(const std::function<void(const TuningKey&, const TunedChoice&)>& visit);
std::size_t tuned_count() noexcept;
void clear_tuned() noexcept;
/// A number that changes whenever a choice is stored or forgotten.
std::uint64_t tuning_generation() noexcept;

/// Returns the known choice for `problem` if it can run on `device`. The first call loads the environment variable's
/// file.
std::optional<TunedChoice> find_valid_tuned(const GemmProblem& problem, const DeviceProperties& device);

}  // namespace tessera::detail
