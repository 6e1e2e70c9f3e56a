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
        for (std::uint32_t i = first / 64; i <= last / 64; ++i) {
            bits_[i] |= part(i, first, last);
        }
    }
    [[nodiscard]] bool has_any(std::uint32_t first, std::uint32_t last) const noexcept
    {
        for (std::uint32_t i = first / 64; i <= last / 64; ++i) {
            if ((bits_[i] & part(i, first, last)) != 0) {
                return true;
            }
        }
        return false;
    }
    [[nodiscard]] bool has_all(std::uint32_t first, std::uint32_t last) const noexcept
    {
        for (std::uint32_t i = first / 64; i <= last / 64; ++i) {
            if ((~bits_[i] & part(i, first, last)) != 0) {
                return false;
            }
        }
        return true;
    }
    void clear() noexcept { std::fill(bits_.begin(), bits_.end(), 0); }

private:
    /// The bits of the range in the word with this number.
    [[nodiscard]] static std::uint64_t part(std::uint32_t word, std::uint32_t first, std::uint32_t last) noexcept
    {
        const std::uint64_t from = word == first / 64 ? ~std::uint64_t{0} << (first % 64) : ~std::uint64_t{0};
        const std::uint64_t to = word == last / 64 ? ~std::uint64_t{0} >> (63 - last % 64) : ~std::uint64_t{0};
        return from & to;
    }

    std::vector<std::uint64_t> bits_;
};

}  // namespace tessera::emulator
