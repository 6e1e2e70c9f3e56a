#pragma once

/// Device memory for one problem: several sets of A, B and D that are used in turn, so that a product does not find its
/// operands in L2.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gsl/span>
#include <limits>
#include <vector>

#include "problem/problem.hpp"
#include "problem/random.hpp"
#include "tessera/device_buffer.hpp"

namespace tessera::bench {

/// Number of sets. Between two uses of a set, the others move at least twice the size of L2; but there are at most as
/// many sets as a graph has launches.
struct RingSize {
    std::size_t sets;
    bool exceeds_cache;  // false if the limit was reached first: tiny problems

    static RingSize for_problem(const Problem& problem, std::size_t l2_cache_bytes, std::size_t max_sets)
    {
        const std::size_t others = (2 * l2_cache_bytes + problem.bytes() - 1) / problem.bytes();
        return {std::min(1 + others, max_sets), 1 + others <= max_sets};
    }
};

template <class T>
class InputRing {
public:
    InputRing(StreamRef stream, const Problem& problem, std::size_t sets, std::uint64_t seed)
        : a_size_(problem.a_size()),
          b_size_(problem.b_size()),
          d_size_(problem.d_size()),
          a_(stream, sets * aligned<T>(a_size_)),
          b_(stream, sets * aligned<T>(b_size_)),
          d_(stream, sets * aligned<float>(d_size_)),
          host_a_(a_size_),
          host_b_(b_size_)
    {
        // Backwards, so that the host keeps set 0.
        for (std::size_t set = sets; set-- > 0;) {
            fill_normal(gsl::span<T>(host_a_), seed, 2 * set);
            fill_normal(gsl::span<T>(host_b_), seed, 2 * set + 1);
            a_.copy_from(host_a_, set * aligned<T>(a_size_));
            b_.copy_from(host_b_, set * aligned<T>(b_size_));
        }
    }

    DeviceSpan<const T> a(std::size_t set) const { return a_.subspan(set * aligned<T>(a_size_), a_size_); }
    DeviceSpan<const T> b(std::size_t set) const { return b_.subspan(set * aligned<T>(b_size_), b_size_); }
    DeviceSpan<float> d(std::size_t set) { return d_.subspan(set * aligned<float>(d_size_), d_size_); }

    /// Fills every D with NaN, so that an element that a product does not write is detected.
    void poison_outputs(StreamRef stream) { d_.fill(stream, std::numeric_limits<float>::quiet_NaN()); }

    /// The first set, on the host.
    gsl::span<const T> host_a() const { return host_a_; }
    gsl::span<const T> host_b() const { return host_b_; }
    void copy_first_output_to(gsl::span<float> target) const { d_.copy_to(target); }

private:
    /// Elements of a set, rounded up so that each set has the alignment of an allocation.
    template <class Element>
    static std::size_t aligned(std::size_t size)
    {
        constexpr std::size_t step = 256 / sizeof(Element);
        return (size + step - 1) / step * step;
    }

    std::size_t a_size_;
    std::size_t b_size_;
    std::size_t d_size_;
    DeviceBuffer<T> a_;
    DeviceBuffer<T> b_;
    DeviceBuffer<float> d_;
    std::vector<T> host_a_;
    std::vector<T> host_b_;
};

}  // namespace tessera::bench
