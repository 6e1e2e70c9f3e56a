#pragma once

/// The products whose bits are compared between an H200 and the emulated one, and their data. Nothing depends on the
/// machine: only integers, no floating-point arithmetic of the host, no standard distribution.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tessera/gemm_problem.hpp"

namespace tessera::ladder {

/// splitmix64 (Steele, Lea, Flood 2014).
class Random {
public:
    using result_type = std::uint64_t;

    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()();
    /// In [0, bound).
    std::uint64_t below(std::uint64_t bound) { return (*this)() % bound; }
    template <class Values>
    auto pick(const Values& values)
    {
        return values[below(values.size())];
    }

private:
    std::uint64_t state_;
};

/// Contents of A, B, C and the bias.
enum class Data : std::uint8_t {
    near_one,    ///< magnitudes of 1/16 to 4
    wide,        ///< 2^-60 to 2^60 (f16: every finite exponent), so that sums lose small addends
    tiny,        ///< A subnormal or nearly so: products and sums around the smallest numbers
    cancelling,  ///< each odd k nearly cancels the addend of the even k before it
    special,     ///< wide, with zeros of both signs, infinities, NaN and the largest finite number
};

/// Where C comes from.
enum class Addend : std::uint8_t { none, separate, in_place };

/// One product. The order of the members is the order of their description.
struct Problem {
    std::int64_t m = 1;
    std::int64_t n = 1;
    std::int64_t k = 1;
    std::int64_t batches = 1;
    bool inputs_shared = false;  ///< by the whole batch
    ElementType input = ElementType::f32;
    ElementType output = ElementType::f32;
    std::array<bool, 4> row_major{true, true, true, true};  ///< of A, B, C, D
    std::int64_t padding = 0;                               ///< of every leading dimension, in elements
    float alpha = 1;
    float beta = 0;
    Addend addend = Addend::none;
    BiasAxis bias = BiasAxis::none;
    ElementType bias_type = ElementType::f32;
    Activation activation = Activation::none;
    Data data = Data::near_one;
    std::uint64_t seed = 0;
    bool only_register_blocked = false;  ///< the other rungs have one tile size: large batches show nothing new there

    std::string describe() const;
};

/// All products except GELU and SiLU, which use an instruction whose result the ISA only bounds.
std::vector<Problem> problems();

/// D = act(A) with A of `arguments()` and B = 1, for GELU and SiLU: the values that are compared within a bound.
std::vector<Problem> activation_problems();

/// For activation_problems: m arguments from -16 to 16, and magnitudes from the subnormals to 2^60.
std::vector<std::uint32_t> activation_arguments();

/// Matrices of a batch in host memory. Everything outside of the elements is NaN, so that a read of it shows.
struct HostBatch {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t count = 1;
    bool row_major = true;
    ElementType type = ElementType::f32;
    std::int64_t leading_dimension = 1;
    std::int64_t batch_stride = 0;  ///< in elements; 0: one matrix for all
    std::vector<std::byte> bytes;
};

/// The operands of a problem. C is empty unless it is separate, the bias unless there is one.
struct HostOperands {
    HostBatch a;
    HostBatch b;
    HostBatch c;
    HostBatch d;  ///< before the launch: has elements only if C is in place
    std::vector<std::byte> bias;

    explicit HostOperands(const Problem& problem);
};

}  // namespace tessera::ladder
