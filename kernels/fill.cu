/// Fills device memory with a repeated value: one kernel that writes words of 4, 2 or 1 bytes. All threads do the same.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fill.hpp"

namespace tessera::kernels {
namespace {

template <class Word>
struct Pattern {
    Word words[max_fill_value_bytes / sizeof(Word)];
};

/// Writes words in a grid-stride loop, so that a grid of bounded size covers any length.
template <class Word>
__global__ void fill_words(Word* data, std::size_t word_count, const __grid_constant__ Pattern<Word> pattern,
                           unsigned pattern_words)
{
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < word_count; i += stride) {
        data[i] = pattern.words[i % pattern_words];
    }
}

template <class Word>
cudaError_t launch_fill(void* data, std::size_t bytes, const void* value, std::size_t value_bytes, cudaStream_t stream)
{
    Pattern<Word> pattern{};
    std::memcpy(pattern.words, value, value_bytes);
    constexpr unsigned threads = 256;
    constexpr std::size_t max_blocks = 4096;
    const std::size_t words = bytes / sizeof(Word);
    const auto blocks = static_cast<unsigned>(std::min((words + threads - 1) / threads, max_blocks));
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, fill_words<Word>, static_cast<Word*>(data), words, pattern,
                              static_cast<unsigned>(value_bytes / sizeof(Word)));
}

}  // namespace

cudaError_t fill(void* data, std::size_t count, const void* value, std::size_t value_bytes, cudaStream_t stream)
{
    if (count == 0) {
        return cudaSuccess;
    }
    const auto* bytes = static_cast<const unsigned char*>(value);
    if (std::all_of(bytes, bytes + value_bytes, [&](unsigned char byte) { return byte == bytes[0]; })) {
        return cudaMemsetAsync(data, bytes[0], count * value_bytes, stream);
    }
    const std::uintptr_t alignment = reinterpret_cast<std::uintptr_t>(data) | value_bytes;
    if (alignment % sizeof(std::uint32_t) == 0) {
        return launch_fill<std::uint32_t>(data, count * value_bytes, value, value_bytes, stream);
    }
    if (alignment % sizeof(std::uint16_t) == 0) {
        return launch_fill<std::uint16_t>(data, count * value_bytes, value, value_bytes, stream);
    }
    return launch_fill<std::uint8_t>(data, count * value_bytes, value, value_bytes, stream);
}

}  // namespace tessera::kernels
