#pragma once

/// The random products of the stress test. Product i of a seed is always the same, whatever was drawn before it.

#include <cstdint>
#include <string>

#include "support/gemm_case.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::test {

/// How large products are. Inputs are windows of one array of random numbers per type, so arrays have a limit, too.
struct ProductLimits {
    std::int64_t multiply_adds = std::int64_t{1} << 26;  ///< of all matrices of a batch

    /// Most elements of an operand, gaps included.
    std::int64_t elements() const;
    /// Elements of an array that holds every window.
    std::int64_t pool() const;
    /// Elements of an array that holds every D, with guards on both sides.
    std::int64_t written() const { return elements() + 4 * guard_elements; }
};

enum class WorkspaceKind : std::uint8_t {
    library,  ///< the library's own
    none,     ///< none is permitted
    callers,  ///< the caller's, of a random size
};

/// A product, and where its operands are: `first` counts from the beginning of the array that holds the operand.
struct RandomProduct {
    GemmCase gemm;
    Placement a;
    Placement b;
    Placement c;  ///< also the source of D's values before a product in place
    Placement d;
    Placement pre_activation;  ///< as `d`, in an array of its own; without rows if there is none
    std::int64_t bias_first = 0;
    bool counts_shared = false;  ///< shared operands are batches with a stride of 0; otherwise single matrices
    WorkspaceKind workspace = WorkspaceKind::library;
    std::int64_t workspace_bytes = 0;  ///< of the caller's

    std::string describe() const;
};

/// A few numbers that depend on seed and index alone.
class Draw {
public:
    Draw(std::uint64_t seed, std::uint64_t index) : seed_(seed), index_(index) {}

    /// From 0 to count - 1; `count` is not 0.
    std::int64_t below(std::int64_t count);
    /// True once in `count`, on average.
    bool one_in(std::int64_t count) { return below(count) == 0; }
    /// From 1 to `high`: every power of two is as likely.
    std::int64_t extent(std::int64_t high);
    /// One of the values.
    template <class Values>
    auto pick(const Values& values)
    {
        return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(values))))];
    }

private:
    std::uint64_t seed_;
    std::uint64_t index_;
    std::uint64_t drawn_ = 0;
};

RandomProduct random_product(std::uint64_t seed, std::uint64_t index, const ProductLimits& limits);

}  // namespace tessera::test
