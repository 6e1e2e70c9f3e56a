#pragma once

/// A matrix product to test, its data, and the expected D.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "error_bound.hpp"
#include "host_matrix.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::test {

/// Poison before and after each operand: a multiple of 256 bytes, which keeps the alignment.
inline constexpr std::int64_t guard_elements = 256;

/// Every pair of element types that A and B can have.
inline constexpr std::array input_types{InputTypes(ElementType::f32),
                                        InputTypes(ElementType::f16),
                                        InputTypes(ElementType::bf16),
                                        InputTypes(ElementType::tf32),
                                        InputTypes(ElementType::f8e4m3),
                                        InputTypes(ElementType::f8e5m2),
                                        InputTypes(ElementType::f8e4m3, ElementType::f8e5m2),
                                        InputTypes(ElementType::f8e5m2, ElementType::f8e4m3)};

/// Every type that C and a bias can have.
inline constexpr std::array addend_types{ElementType::f32, ElementType::f16, ElementType::bf16};
/// Every type that D can have.
inline constexpr std::array output_types{ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f8e4m3,
                                         ElementType::f8e5m2};

/// Memory layout of a test's operand.
struct Layout {
    bool row_major = true;
    std::int64_t padding = 0;    // leading dimension minus extent
    std::int64_t offset = 0;     // elements from a 256-byte aligned address to the first element
    std::int64_t batch_gap = 0;  // elements between matrices
    bool shared = false;         // inputs: batch stride 0
};

/// Where C comes from.
enum class Addend : std::uint8_t { none, separate, in_place };

/// The kind of input data.
enum class Data : std::uint8_t {
    random,      // between -1 and 1
    signature,   // small integers that make D exact; see signature.hpp
    non_finite,  // random with some NaN and infinities
    one_large,   // ones, but 128 at k = 0: a sum with 14 bits loses the ones
};

struct GemmCase {
    std::int64_t m = 1;
    std::int64_t n = 1;
    std::int64_t k = 1;
    std::int64_t batches = 1;
    InputTypes input = {};
    ElementType output = ElementType::f32;
    ElementType bias_type = ElementType::f32;
    Layout a;
    Layout b;
    Layout c;
    Layout d;
    float alpha = 1;
    std::optional<float> scale_a = {};
    std::optional<float> scale_b = {};
    bool row_scales = false;     // scale_a is that of row 0; the others are its multiples
    bool column_scales = false;  // the same for scale_b and columns
    float beta = 0;
    Addend addend = Addend::none;
    BiasAxis bias = BiasAxis::none;
    std::int64_t bias_offset = 0;
    Activation activation = Activation::none;
    Gating gating = Gating::none;  // n is even then, and D has n / 2 columns
    /// Where the pre-activation is stored, in D's order; nothing if it is not.
    std::optional<Layout> pre_activation = {};
    std::optional<float> scale_d = {};  // for a D of 8 bits
    std::optional<float> amax_d = {};   // the value before the launch; for a D of 8 bits
    Fp8Accumulation fp8_accumulation = Fp8Accumulation::two_level;
    F16Accumulation f16_accumulation = F16Accumulation::in_f32;
    Data data = Data::random;

    /// Used to find the smallest failing case.
    std::int64_t size() const { return m * n + m * k + k * n + batches; }
    /// True if all matrices of D are equal, because all inputs are shared.
    bool replicated() const { return a.shared && b.shared && (addend != Addend::separate || c.shared); }
    /// Number of matrices of D that are not copies of earlier ones.
    std::int64_t distinct() const { return replicated() && batches > 1 ? 1 : batches; }
    /// Type of C and the pre-activation: that of D, or one of 16 bits beside a D of 8 bits.
    ElementType addend_type() const
    {
        return !is_float8(output) ? output : bias_type == ElementType::f16 ? ElementType::f16 : ElementType::bf16;
    }
    std::int64_t d_columns() const { return gating == Gating::none ? n : n / 2; }
    /// Number of products per element of A * B.
    std::int64_t depth() const { return alpha == 0 ? 0 : k; }
    /// True if a kernel may sum in f16.
    bool allows_f16_sums() const
    {
        return input == InputTypes(ElementType::f16) && f16_accumulation == F16Accumulation::in_f16;
    }
    bool has_row_scales() const { return row_scales && scale_a; }
    bool has_column_scales() const { return column_scales && scale_b; }
    std::string describe() const;
};

/// Memory around an operand.
enum class Guards : std::uint8_t {
    both_sides,
    /// The array ends with the operand, so that a memory checker finds each access beyond it.
    front_only,
};

/// Returns where a matrix or batch with `layout` lies in an array. @param first  elements before its offset
Placement place(const Layout& layout, std::int64_t rows, std::int64_t columns, std::int64_t batches,
                std::int64_t first = guard_elements);

/// The operands of a case in host memory. Everything outside of an operand's elements is poison. Operands that must not
/// be read are NaN: A and B if alpha is 0, C if beta is 0.
struct GemmData {
    static constexpr std::int64_t first_scale_vector = 4;

    Placement a_place;
    Placement b_place;
    Placement c_place;
    Placement d_place;
    HostArray a;
    HostArray b;
    HostArray c;     // empty if there is no C, or if C is D
    HostArray bias;  // empty if there is none
    // Of A, B and D, and the largest magnitude of D; from `first_scale_vector`, those of A's rows and of B's columns. NaN
    // where there is none, of A and B also if alpha is 0.
    HostArray scales;
    HostArray d;  // before the launch
    Placement pre_activation_place;
    HostArray pre_activation;  // before the launch; empty if it is not stored

    static GemmData make(const GemmCase& gemm, Guards guards, std::uint64_t seed);
};

/// The expected D, computed once for the results of all kernels with the same data. Refers to both arguments as long as
/// it exists.
class Reference {
public:
    Reference(const GemmCase& gemm, const GemmData& data);

    /// Checks the array with D after the launch: each element against the float64 reference (exactly, if the data allow
    /// it), and everything else bit by bit for changes. Returns nothing if all is right. `summation` is the kernel's.
    std::optional<std::string> find_wrong_element(const HostArray& result, const Summation& summation = {}) const;
    /// Checks the largest magnitude of D after the launch.
    std::optional<std::string> find_wrong_amax(float result, const Summation& summation = {}) const;
    /// Checks the array with the pre-activation in the same way as D.
    std::optional<std::string> find_wrong_pre_activation(const HostArray& result,
                                                         const Summation& summation = {}) const;

private:
    struct Output;
    std::optional<std::string> find_wrong_element(const Output& output, const HostArray& result,
                                                  const Summation& summation) const;

    const GemmCase& gemm_;
    const GemmData& data_;
    std::vector<SumOfProducts> sums_;  // (batches without copies, m, n)
};

/// The same for one result.
std::optional<std::string> find_wrong_element(const GemmCase& gemm, const GemmData& data, const HostArray& result,
                                              const Summation& summation = {});

/// Checks that D has the bits of one fp32 chain of fused multiply-adds in ascending k from +0, with the epilogue's
/// operations each rounded once. For epilogues without transcendental functions.
std::optional<std::string> find_other_than_fma_chain(const GemmCase& gemm, const GemmData& data,
                                                     const HostArray& result);

/// Returns true if the used addresses and strides of A and B are multiples of `alignment` bytes.
bool inputs_are_aligned(const GemmCase& gemm, const GemmData& data, std::size_t alignment);

}  // namespace tessera::test
