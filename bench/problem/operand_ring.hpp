#pragma once

/// Device memory for one product of any types: several sets of A, B, C and D that are used in turn, so that a product
/// does not find its operands in L2. All sets hold the same numbers, which are made once; a cache distinguishes
/// addresses only.

#include <cstddef>
#include <cstdint>
#include <gsl/span>
#include <vector>

#include "gemm/contender.hpp"
#include "problem/problem.hpp"
#include "tessera/device_buffer.hpp"

namespace tessera::bench {

class OperandRing {
public:
    /// Allocates `sets` sets; A, B and C are copies of the given elements, gaps included. `c` is empty if the problem
    /// has no C. Blocks.
    OperandRing(StreamRef stream, const Problem& problem, std::size_t sets, gsl::span<const unsigned char> a,
                gsl::span<const unsigned char> b, gsl::span<const unsigned char> c)
        : a_step_(aligned(a.size())),
          b_step_(aligned(b.size())),
          c_step_(aligned(c.size())),
          d_bytes_(problem.d_size() * size_of(problem.output)),
          a_(stream, sets * a_step_),
          b_(stream, sets * b_step_),
          c_(stream, sets * c_step_),
          d_(stream, sets * aligned(d_bytes_))
    {
        for (std::size_t set = 0; set < sets; ++set) {
            a_.copy_from(a, set * a_step_);
            b_.copy_from(b, set * b_step_);
            sets_.push_back(
                {a_.data() + set * a_step_, b_.data() + set * b_step_, d_.data() + set * aligned(d_bytes_)});
            if (!c.empty()) {
                c_.copy_from(c, set * c_step_);
                sets_.back().c = c_.data() + set * c_step_;
            }
        }
    }

    const std::vector<Operands>& sets() const noexcept { return sets_; }

    /// Fills every D with bytes of ones, NaN in each element type, so that an element that is not written is detected.
    void poison_outputs(StreamRef stream) { d_.fill(stream, 0xFF); }

    /// Copies D of one set to the host. Blocks.
    void copy_output_to(std::size_t set, gsl::span<unsigned char> target) const
    {
        d_.copy_to(target.first(d_bytes_), set * aligned(d_bytes_));
    }

private:
    /// Each matrix has the alignment of an allocation.
    static std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

    std::size_t a_step_;
    std::size_t b_step_;
    std::size_t c_step_;
    std::size_t d_bytes_;
    DeviceBuffer<unsigned char> a_;
    DeviceBuffer<unsigned char> b_;
    DeviceBuffer<unsigned char> c_;
    DeviceBuffer<unsigned char> d_;
    std::vector<Operands> sets_;
};

}  // namespace tessera::bench
