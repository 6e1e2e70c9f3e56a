#pragma once

// A set of lines of shared memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::emulator {

class LineSet {
public:
    explicit LineSet(std::size_t lines) : bits_(lines / 64 + 1) {}

    /// From `first` to `last`, both included.
    void add(std::uint32_t first, std::uint32_t last) noexcept
    {
        each_part_of(bits_, first, last, [](std::uint64_t& bits, std::uint64_t part) {
            bits |= part;
            return true;
        });
    }
    void add(std::uint32_t line) noexcept { bits_[line / 64] |= std::uint64_t{1} << (line % 64); }
    /// The lines 64 * word + i for each bit i.
    void add_bits(std::uint32_t word, std::uint64_t bits) noexcept { bits_[word] |= bits; }
    [[nodiscard]] bool has_any(std::uint32_t first, std::uint32_t last) const noexcept
    {
        return !each_part_of(bits_, first, last,
                             [](std::uint64_t bits, std::uint64_t part) { return (bits & part) == 0; });
    }
    [[nodiscard]] bool has_all(std::uint32_t first, std::uint32_t last) const noexcept
    {
        return each_part_of(bits_, first, last,
                            [](std::uint64_t bits, std::uint64_t part) { return (~bits & part) == 0; });
    }
    void clear() noexcept { std::fill(bits_.begin(), bits_.end(), 0); }

private:
    /// Calls body(word, the range's bits of it) until it returns false, and returns whether it never did.
    template <typename Self, typename Body>
    static bool each_part_of(Self& bits, std::uint32_t first, std::uint32_t last, Body&& body) noexcept
    {
        const std::uint64_t from = ~std::uint64_t{0} << (first % 64), to = ~std::uint64_t{0} >> (63 - last % 64);
        const std::uint32_t first_word = first / 64, last_word = last / 64;
        if (first_word == last_word) [[likely]] {
            return body(bits[first_word], from & to);
        }
        for (std::uint32_t i = first_word + 1; i < last_word; ++i) {
            if (!body(bits[i], ~std::uint64_t{0})) {
                return false;
            }
        }
        return body(bits[first_word], from) && body(bits[last_word], to);
    }
    std::vector<std::uint64_t> bits_;
};

}  // namespace tessera::emulator
