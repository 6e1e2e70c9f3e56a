#pragma once

/// Random inputs, and random numbers for problems: reproducible from a seed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <gsl/span>

#include "tessera/element.hpp"

namespace tessera::bench {

/// Fills `elements` with standard normal numbers, rounded to T. Equal (seed, sequence) give equal numbers, however many
/// threads the machine has; another sequence gives other numbers.
template <class T>
void fill_normal(gsl::span<T> elements, std::uint64_t seed, std::uint64_t sequence);

/// A generator whose numbers depend on seed and sequence alone: the same with every compiler and standard library
/// (SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
class RandomNumbers {
public:
    /// Sequences of one seed are independent: number i of a list can be made without those before it.
    explicit RandomNumbers(std::uint64_t seed, std::uint64_t sequence = 0);

    /// Any 64 bits.
    std::uint64_t next();
    /// From 0 to count - 1; `count` is not 0.
    std::uint64_t below(std::uint64_t count);
    /// True once in `count`, on average.
    bool one_in(std::uint64_t count) { return below(count) == 0; }
    /// From `low` to `high`, both at least 1. The logarithm is uniform: as many from 1 to 10 as from 10 to 100.
    std::int64_t log_uniform(std::int64_t low, std::int64_t high);
    /// One of the values.
    template <class T, std::size_t size>
    const T& pick(const std::array<T, size>& values)
    {
        return values[static_cast<std::size_t>(below(size))];
    }

private:
    std::uint64_t state_;
};

extern template void fill_normal(gsl::span<f32>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<f16>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<bf16>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<tf32>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<f8e4m3>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<f8e5m2>, std::uint64_t, std::uint64_t);

}  // namespace tessera::bench
