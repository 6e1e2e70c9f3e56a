#include "problem/random.hpp"

#include <algorithm>
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

template void fill_normal(gsl::span<f32>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<f16>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<bf16>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<tf32>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<f8e4m3>, std::uint64_t, std::uint64_t);
template void fill_normal(gsl::span<f8e5m2>, std::uint64_t, std::uint64_t);

}  // namespace tessera::bench
