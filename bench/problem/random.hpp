#pragma once

/// Random inputs: standard normal, reproducible from a seed.

#include <cstddef>
#include <cstdint>
#include <gsl/span>

#include "tessera/element.hpp"

namespace tessera::bench {

/// Fills `elements` with standard normal numbers, rounded to T. Equal (seed, sequence) give equal numbers, however many
/// threads the machine has; another sequence gives other numbers.
template <class T>
void fill_normal(gsl::span<T> elements, std::uint64_t seed, std::uint64_t sequence);

extern template void fill_normal(gsl::span<f32>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<f16>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<bf16>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<tf32>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<f8e4m3>, std::uint64_t, std::uint64_t);
extern template void fill_normal(gsl::span<f8e5m2>, std::uint64_t, std::uint64_t);

}  // namespace tessera::bench
