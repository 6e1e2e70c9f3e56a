#pragma once

// Numbers of the form integer * 2^-600, in 1280 bits: sums, products and comparisons of any f32 values are exact.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace tessera::slow {

class ExactInteger {
public:
    static constexpr int point = 600;

    ExactInteger() = default;

    /// (-1)^negative * significand * 2^exponent
    ExactInteger(bool negative, std::uint64_t significand, int exponent)
    {
        for (int bit = 0; bit < 64; ++bit) {
            if (((significand >> bit) & 1U) != 0) {
                const int at = exponent + bit + point;
                limbs_.at(static_cast<std::size_t>(at / 64)) |= std::uint64_t{1} << (at % 64);
            }
        }
        if (negative) {
            *this = -*this;
        }
    }
    static ExactInteger of(float value) { return product(value, 1.0F); }
    static ExactInteger product(float a, float b)
    {
        const auto [sa, ea] = parts(a);
        const auto [sb, eb] = parts(b);
        const bool negative = (std::bit_cast<std::uint32_t>(a) ^ std::bit_cast<std::uint32_t>(b)) >> 31 != 0;
        return {negative, sa * sb, ea + eb};
    }

    friend ExactInteger operator+(const ExactInteger& x, const ExactInteger& y)
    {
        ExactInteger out;
        unsigned carry = 0;
        for (std::size_t i = 0; i < limbs; ++i) {
            const std::uint64_t partial = x.limbs_[i] + y.limbs_[i];
            out.limbs_[i] = partial + carry;
            carry = (partial < x.limbs_[i] ? 1U : 0U) + (out.limbs_[i] < partial ? 1U : 0U);
        }
        return out;
    }
    ExactInteger operator-() const
    {
        ExactInteger inverted;
        for (std::size_t i = 0; i < limbs; ++i) {
            inverted.limbs_[i] = ~limbs_[i];
        }
        ExactInteger one;
        one.limbs_[0] = 1;
        return inverted + one;
    }
    /// -1, 0, 1
    [[nodiscard]] int sign() const
    {
        if ((limbs_.back() >> 63) != 0) {
            return -1;
        }
        return std::any_of(limbs_.begin(), limbs_.end(), [](std::uint64_t limb) { return limb != 0; }) ? 1 : 0;
    }
    friend int compare(const ExactInteger& x, const ExactInteger& y) { return (x + -y).sign(); }

private:
    static constexpr std::size_t limbs = 20;

    struct Parts {
        std::uint64_t significand;
        int exponent;
    };
    static Parts parts(float value)
    {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        const int field = static_cast<int>((bits >> 23) & 0xFF);
        return {(bits & 0x7F'FFFFU) | (field == 0 ? 0U : 0x80'0000U), std::max(field, 1) - 150};
    }

    std::array<std::uint64_t, limbs> limbs_{};
};

}  // namespace tessera::slow
