#include "problem/random.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "problem/parallel.hpp"

namespace tessera::bench {
namespace {

// Every chunk has its own generator, so that threads can fill chunks in any order.
constexpr std::size_t chunk_size = std::size_t{1} << 18;

template <class T>
void fill_chunk(gsl::span<T> chunk, std::uint64_t seed, std::uint64_t sequence, std::uint64_t number)
{
    const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
    const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); };
    std::seed_seq seeds{low(seed), high(seed), low(sequence), high(sequence), low(number), high(number)};
    std::mt19937 generator(seeds);
    std::normal_distribution<float> normal;
    for (T& element : chunk) {
        element = T(normal(generator));
    }
}

}  // namespace

template <class T>
void fill_normal(gsl::span<T> elements, std::uint64_t seed, std::uint64_t sequence)
{
    const std::size_t chunks = (elements.size() + chunk_size - 1) / chunk_size;
    for_each_in_parallel(chunks, [&](std::size_t i) {
        const std::size_t offset = i * chunk_size;
        fill_chunk(elements.subspan(offset, std::min(chunk_size, elements.size() - offset)), seed, sequence, i);
    });
}

namespace {

/// Every bit of the result depends on every bit of `value`.
std::uint64_t mixed(std::uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
    return value ^ (value >> 31);
}

constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15U;  // 2^64 / phi: the step between two states

}  // namespace

RandomNumbers::RandomNumbers(std::uint64_t seed, std::uint64_t sequence)
    : state_(mixed(mixed(seed + golden_ratio) + sequence))
{}

std::uint64_t RandomNumbers::next() { return mixed(state_ += golden_ratio); }

std::uint64_t RandomNumbers::below(std::uint64_t count) { return next() % count; }

std::int64_t RandomNumbers::log_uniform(std::int64_t low, std::int64_t high)
{
    // low * (high / low)^fraction, one bit of the fraction after the other. Square roots and products are exactly
    // rounded everywhere, powers and logarithms are not.
    constexpr int bits = 24;
    const std::uint64_t fraction = next();
    double value = static_cast<double>(low);
    double root = static_cast<double>(high + 1) / static_cast<double>(low);
    for (int bit = 0; bit < bits; ++bit) {
        root = std::sqrt(root);
        if ((fraction >> bit & 1U) != 0) {
            value *= root;
        }
    }
    return std::clamp(static_cast<std::int64_t>(value), low, high);
}

template void fill_normal(gsl::span<f32>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<f16>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<bf16>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<tf32>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<f8e4m3>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<f8e5m2>, std::uint64_t, std::uint64_t);

}  // namespace tessera::bench
