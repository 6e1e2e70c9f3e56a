#pragma once

/// @file
/// @brief `Divisor`: division of an index in a kernel by a number that is known before the launch. Private to the SDK.

#include <cstdint>

#include "tessera/detail/host_device.hpp"

namespace tessera::detail {

/// n / value for n below 2^31, as a multiplication and a shift by the rounded-up reciprocal (Granlund and Montgomery,
/// "Division by Invariant Integers using Multiplication", PLDI 1994, theorem 4.2 with N = 31). The compiler's own 32-bit
/// division by a run-time value is some forty instructions. Make it on the host and pass it to the kernel by value.
class Divisor {
public:
    Divisor() = default;
    /// @param value  from 1 to 2^31 - 1
    TESSERA_DETAIL_HOST_DEVICE explicit Divisor(std::uint32_t value)
        : value_(value),
          shift_(shift_of(value)),
          reciprocal_(static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + value - 1) / value))
    {}

    TESSERA_DETAIL_HOST_DEVICE std::uint32_t value() const { return value_; }
    TESSERA_DETAIL_HOST_DEVICE std::uint32_t quotient(std::uint32_t n) const
    {
        return static_cast<std::uint32_t>((std::uint64_t{n} * reciprocal_) >> shift_);
    }

private:
    /// 31 + log2(value), rounded up.
    TESSERA_DETAIL_HOST_DEVICE static std::uint32_t shift_of(std::uint32_t value)
    {
        std::uint32_t shift = 31;
        while ((std::uint64_t{1} << (shift - 31)) < value) {
            ++shift;
        }
        return shift;
    }

    std::uint32_t value_;
    std::uint32_t shift_;
    std::uint32_t reciprocal_;
};

}  // namespace tessera::detail
