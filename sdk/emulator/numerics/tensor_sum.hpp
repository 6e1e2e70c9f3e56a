#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats.hpp"

/// The dot products of the tensor cores: D[m][n] = D[m][n] + sum over k of A[m][k] * B[k][n], block-wise.
///
/// Two paths with the same kind of arguments:
///
/// - multiply_exact: the bits of the hardware. In each sum, all products and the accumulator are aligned to the largest
///   exponent among them (at least `SumModel::smallest_exponent`; a zero has none), cut toward zero to
///   `SumModel::fraction_bits` fraction bits and added exactly. The result is cut to f32 or rounded to f16; overflow gives infinity, a zero result is +0.
///   Models: Microsoft's MMA-Sim (arXiv 2511.10909), checked here against an H200 by
///   tests/emulator/hardware/wgmma_probe.cu; tests/emulator/numerics has the checksums.
/// - multiply_fast: f32 fused multiply-adds in the order of k, round to nearest. With P = |D| + sum of |A*B|, the
///   result is within (K + 1) * 2^-24 * P of the exact sum. Hardware is within (K + 2) * 2^-23 * P (or, for fp8 on
///   Hopper, (K + 2) * 2^-13 * P). The two paths agree bit for bit if no partial sum needs more than 24 bits, as with
///   small integers.
///
/// Throws only std::bad_alloc and, for combinations that no tensor core has, std::invalid_argument.
namespace tessera::emulator::numerics {

/// The unit that executes the instruction; their arithmetic differs.
enum class TensorUnit : std::uint8_t {
    volta_mma,
    turing_mma,
    ampere_mma,
    ada_mma,
    hopper_mma,
    hopper_wgmma,
    blackwell
};

enum class Accumulator : std::uint8_t { f32, f16 };

/// How one unit adds. See sum_model.
struct SumModel {
    enum class Result : std::uint8_t {
        f32_cut,        ///< toward zero to f32
        f32_cut_to_13,  ///< toward zero to 13 fraction bits, as an f32
        f16_nearest,    ///< to nearest even in f16
    };
    int fraction_bits = 25;                  ///< kept below the largest exponent, at most 25
    int smallest_exponent = -133;            ///< of the common exponent
    std::size_t products_per_sum = 1 << 20;  ///< a longer K is a chain of sums, each rounded
    Result result = Result::f32_cut;
    /// fp8 `mma.sync` on Hopper, which has no such unit: ptxas widens to f16, multiplies first the elements with k % 4
    /// < 2, then the others, both from zero, and adds the accumulator with an ordinary add.rn.
    bool through_f16 = false;
};

/// The model of `unit` for operands of format `a` (B's format does not matter) and an accumulator type, for an
/// instruction with `k` elements. Not for the 4-bit block-scaled kinds; see multiply_exact_mxf4.
///
/// Checked on an H200: hopper_wgmma and hopper_mma, every type. Not checked here: the others, from MMA-Sim, and their
/// smallest exponents from Khattak and Mikaitis (arXiv 2512.07004). Volta's
/// m8n8k4 is a chain of sums of 4; on Ampere and Ada the halves of K are a chain.
SumModel sum_model(TensorUnit unit, Format a, Accumulator accumulator, std::size_t k);

/// One operand's codes after gathering. Element (outer, k) is the cell at outer * outer_stride + k * k_stride. A cell
/// has 1 byte for 8-, 6- and 4-bit formats, 2 for f16 and bf16, 4 for tf32. Strides count cells.
struct CodeView {
    Format format = Format::f16;
    const void* codes = nullptr;
    std::ptrdiff_t outer_stride = 0;
    std::ptrdiff_t k_stride = 1;
    bool negate = false;  ///< imm-scale -1 of wgmma, the negate bits of a tcgen05 instruction descriptor
};

/// Numbers decoded for the exact path: values as floats, which hold every operand format exactly, and the exponents
/// that hardware aligns by. Those of subnormal numbers are the smallest of their format; see exact_number.hpp for zeros,
/// infinities and NaN.
struct ExactNumbers {
    std::vector<float> values;
    std::vector<std::int16_t> exponents;

    void resize(std::size_t count)
    {
        values.resize(count);
        exponents.resize(count);
    }
};

/// A decoded for the exact path: M x K. assign() reuses the memory.
class ExactA {
public:
    ExactA() = default;
    ExactA(const CodeView& codes, std::size_t m, std::size_t k) { assign(codes, m, k); }
    void assign(const CodeView& codes, std::size_t m, std::size_t k);

    [[nodiscard]] std::size_t m() const { return m_; }
    [[nodiscard]] std::size_t k() const { return k_; }
    /// [k] of one row
    [[nodiscard]] const float* values(std::size_t row) const { return numbers_.values.data() + row * k_; }
    [[nodiscard]] const std::int16_t* exponents(std::size_t row) const { return numbers_.exponents.data() + row * k_; }
    [[nodiscard]] std::int16_t largest_exponent(std::size_t row) const { return largest_[row]; }

private:
    std::size_t m_ = 0;
    std::size_t k_ = 0;
    ExactNumbers numbers_;               ///< [m][k]
    std::vector<std::int16_t> largest_;  ///< exponent of each row
    std::vector<std::byte> transposed_;
};

/// B decoded for the exact path: K rows of N. A whole group of columns can be read at the end of each row; what
/// lies behind column N does not matter.
class ExactB {
public:
    ExactB() = default;
    ExactB(const CodeView& codes, std::size_t n, std::size_t k) { assign(codes, n, k); }
    void assign(const CodeView& codes, std::size_t n, std::size_t k);

    [[nodiscard]] std::size_t n() const { return n_; }
    [[nodiscard]] std::size_t k() const { return k_; }
    [[nodiscard]] std::size_t stride() const { return stride_; }
    /// [k][stride]
    [[nodiscard]] const float* values() const { return numbers_.values.data(); }
    [[nodiscard]] const std::int16_t* exponents() const { return numbers_.exponents.data(); }
    /// Of the group of columns.
    [[nodiscard]] std::int16_t largest_exponent(std::size_t group) const { return largest_[group]; }
    /// The values as integers, value * 2^(10 - exponent), computed when first needed.
    [[nodiscard]] const std::int16_t* significands() const;

private:
    std::size_t n_ = 0;
    std::size_t k_ = 0;
    std::size_t stride_ = 0;
    ExactNumbers numbers_;
    std::vector<std::int16_t> largest_;
    std::vector<std::byte> transposed_;
    mutable std::vector<std::int16_t> significands_;
};

/// What is done with the accumulator before the sum.
struct Accumulation {
    bool accumulate = true;  ///< false: the old D is ignored
    int scale_shift = 0;     ///< scale_input_d of tcgen05.mma: D * 2^-scale_shift enters the sum
};

/// D is M x N floats with row stride `ldd`. With an f16 accumulator its values are f16 values in floats. NaN results
/// are 0x7FFFFFFF (encode them with f16_from_float for f16: 0x7FFF).
void multiply_exact(const SumModel& model, const ExactA& a, const ExactB& b, float* d, std::size_t ldd,
                    const Accumulation& how = {});

/// `kind::mxf8f6f4`: one UE8M0 scale per row of A and per column of B for the K = 32 of an instruction.
void multiply_exact_mxf8(const SumModel& model, const ExactA& a, const ExactB& b, const std::uint8_t* scale_a,
                         const std::uint8_t* scale_b, float* d, std::size_t ldd, const Accumulation& how = {});

/// The scale factors of `kind::mxf4` and `kind::mxf4nvf4`: `per_row` of them for K elements, [m][per_row] and
/// [n][per_row].
struct BlockScales {
    Format format = Format::ue8m0;  ///< or ue4m3
    std::size_t per_row = 2;        ///< K / 32 or K / 16
    const std::uint8_t* a = nullptr;
    const std::uint8_t* b = nullptr;
};

/// `kind::mxf4` and `kind::mxf4nvf4` on E2M1 codes, one per byte: A [m][k], B [n][k], K a multiple of 16. Each group of
/// 16 products is summed exactly, multiplied by both scales' significands, and enters one sum of 35 fraction bits. Its
/// exponent is that of its scales, even if its products cancel; if all of them are zero, or a scale is, it has none.
void multiply_exact_mxf4(std::size_t m, std::size_t n, std::size_t k, const std::uint8_t* a, const std::uint8_t* b,
                         const BlockScales& scales, float* d, std::size_t ldd, bool accumulate = true,
                         bool negate = false);

/// Decodes an operand to floats for the fast path; element (outer, k) is at outer * outer_stride + k * k_stride of
/// `values`.
void decode_tile(const CodeView& codes, std::size_t outer, std::size_t k, float* values, std::size_t outer_stride,
                 std::size_t k_stride);
/// Multiplies a decoded tile by block scales: element (outer, k) by scale [outer][k / block].
void scale_tile(float* values, std::size_t outer, std::size_t k, std::size_t outer_stride, std::size_t k_stride,
                Format scale_format, const std::uint8_t* scales, std::size_t per_row);

/// The fast path: A [m][k] with lda, B [k][n] with ldb, D [m][n] with ldd. For an f16 accumulator call
/// round_tile_to_f16 afterwards.
void multiply_fast(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t lda, const float* b,
                   std::size_t ldb, float* d, std::size_t ldd, bool accumulate = true);
void round_tile_to_f16(std::size_t m, std::size_t n, float* d, std::size_t ldd);
/// Multiplies D by 2^-shift (scale_input_d).
void scale_accumulator(std::size_t m, std::size_t n, float* d, std::size_t ldd, int shift);

/// Integer kinds (s8, u8, s4, u4 widened to 16 bits): A [m][k], B [k][n]. Exact; the result wraps at 32 bits, or is
/// clamped once if `saturate`.
void multiply_integer(std::size_t m, std::size_t n, std::size_t k, const std::int16_t* a, const std::int16_t* b,
                      std::int32_t* d, std::size_t ldd, bool accumulate = true, bool saturate = false);

enum class BitOperation : std::uint8_t { bit_and, bit_xor };
/// Single-bit kinds: A [m][words], B [n][words] of 32 bits each; D += popcount(A op B).
void multiply_bits(std::size_t m, std::size_t n, std::size_t words, const std::uint32_t* a, const std::uint32_t* b,
                   BitOperation operation, std::int32_t* d, std::size_t ldd, bool accumulate = true);

/// `mma.sync` of f64: a chain of fused multiply-adds in the order of k. A [m][k], B [k][n].
void multiply_f64(std::size_t m, std::size_t n, std::size_t k, const double* a, const double* b, double* d,
                  std::size_t ldd);

}  // namespace tessera::emulator::numerics
