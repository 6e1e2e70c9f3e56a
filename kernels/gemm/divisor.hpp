#pragma once

/// Division of a kernel index by a number that only the host knows: a multiplication and a shift. The compiler's own
/// 32-bit division by a run-time value is some forty instructions, and a kernel pays for it at its start.

#include <bit>
#include <cstdint>

#include "tessera/detail/host_device.hpp"

namespace tessera::kernels {

/// n / value for n below 2^31, by the rounded-up reciprocal (Granlund and Montgomery, "Division by Invariant Integers
/// using Multiplication", PLDI 1994, theorem 4.2 with N = 31). Made on the host, passed to the kernel by value.
class Divisor {
public:
    Divisor() = default;
    /// @param value  from 1 to 2^31 - 1
    explicit Divisor(std::uint32_t value)
        : value_(value),
          shift_(31 + static_cast<std::uint32_t>(std::bit_width(value - 1))),
          reciprocal_(static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + value - 1) / value))
    {}

    TESSERA_DETAIL_HOST_DEVICE std::uint32_t value() const { return value_; }
    TESSERA_DETAIL_HOST_DEVICE std::uint32_t quotient(std::uint32_t n) const
    {
        return static_cast<std::uint32_t>((std::uint64_t{n} * reciprocal_) >> shift_);
    }

private:
    std::uint32_t value_;
    std::uint32_t shift_;
    std::uint32_t reciprocal_;
};

}  // namespace tessera::kernels
