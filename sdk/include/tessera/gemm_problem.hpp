#pragma once

/// @file
/// @ingroup host_gemm
/// @brief A matrix product as plain facts, from which a kernel variant is chosen.
///
/// Knows no memory and no device, so that choosing and explaining work on any machine.

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/element.hpp"
#include "tessera/epilogue_kind.hpp"

namespace tessera {

/// A compiled kernel configuration that can be requested by name. The numbers are stable: they appear in plans and
/// caches.
enum class Variant : std::uint8_t {
    automatic = 0,              ///< the library's choice among the eligible variants
    simt_naive = 1,             ///< one thread per element of D, which reads its operands from global memory
    simt_tiled = 2,             ///< operands staged in shared memory
    simt_vectorized = 3,        ///< staged with 16-byte accesses
    simt_coarsened = 4,         ///< several elements of D per thread, along one dimension
    simt_register_blocked = 5,  ///< a two-dimensional register tile per thread; double-buffered asynchronous staging
    mma_sync = 8,               ///< tensor cores by mma.sync: from compute capability 7.5 on
    hopper = 16,                ///< wgmma, TMA, clusters and a persistent grid (compute capability 9.0)
    blackwell = 32,  ///< tcgen05, tensor memory, TMA and cluster launch control (compute capability 10.x and 11.0)
};

/// Returns the variant's name: "automatic", "simt_naive", and so on.
std::string_view to_string(Variant variant) noexcept;

/// Returns the variant with this name: the inverse of `to_string`.
/// @throws Error  `invalid_argument`, which lists all names
Variant variant_from_string(std::string_view name, std::source_location caller = std::source_location::current());

/// Returns all variants but `automatic`, the simplest first.
std::vector<Variant> all_variants();

/// How an operand is stored.
struct MatrixLayout {
    bool row_major = true;  ///< true for row-major, false for column-major
    /// In elements; 0 means that there are no gaps.
    std::int64_t leading_dimension = 0;
    /// Elements from one matrix of a batch to the next; ignored for a single matrix.
    std::int64_t batch_stride = 0;
    /// The address of the first element is a multiple of this, in bytes. A power of two.
    std::size_t address_alignment = 256;
    /// Elements from one batch of the outer level to the next, see `GemmProblem::outer_batches`; ignored for a single
    /// one.
    std::int64_t outer_stride = 0;
};

/// How Hopper's tensor cores add up products of 8-bit elements. Their own accumulator keeps about 14 bits of a sum,
/// where fp32 has 24. Wider inputs and all other kernels ignore this.
enum class Fp8Accumulation : std::uint8_t {
    two_level = 0,  ///< the tensor core's sum is added to an fp32 sum after every 128 of K
    fast = 1,       ///< all of K is summed in the tensor core; other libraries call it "fast accumulation"
};

/// In what `Variant::mma_sync` may add up products of f16. It is a permission: sums in f32 are always allowed. Other types and all
/// other kernels ignore it. So do products of operands that are not aligned to 16 bytes, and those of at most 32 rows or columns
/// may; `GemmPlan::explain` says which sums a product has. NVIDIA's data sheets of GPUs for graphics say twice the rate of sums in
/// f32. GPUs for data centers have one rate, and only more to add.
///
/// With `in_f16`, the sum of each 64 products along K is in f16, and is then added to an f32 sum. Tensor cores round the sum in f16
/// after every 8 products, or 16 from compute capability 9.0 on (arXiv 2511.10909; PTX promises nothing): 8 roundings, each by at
/// most 2^-11 of the sum so far. So A*B is off by at most 1/255 of the sum of |a| * |b| more than with sums in f32, however
/// large K is. Below 2^-14 the steps of f16 are fixed, and a rounding is off by up to 2^-25: by another 2^-22 for each 64
/// products.
///
/// A sum of up to 64 products that exceeds 65504, the largest f16, is infinite, and so is A*B then, or NaN if sums of both signs
/// are. Scale operands that come near to that, and undo it with `alpha`, which is applied in f32.
enum class F16Accumulation : std::uint8_t {
    in_f32 = 0,  ///< all of K is summed in f32
    in_f16 = 1,  ///< 64 products may be summed in f16; their sums are added in f32
};

/// A product D = act(alpha * A*B + beta * C + bias): A is m x k, B is k x n, C and D are m x n. Any extent may be 0.
/// With `gating`, D is m x n/2.
///
/// @code{.cpp}
/// const GemmProblem problem{.m = 4096, .n = 4096, .k = 1024, .input = ElementType::bf16};
/// const auto blackwell = DeviceProperties::of_compute_capability(10, 0);
/// std::puts(GemmPlan::explain(problem, blackwell).c_str());
/// @endcode
///
/// @par Thread safety
/// A value.
struct GemmProblem {
    std::int64_t m = 0;                                             ///< rows of A and D
    std::int64_t n = 0;                                             ///< columns of B; D has `d_columns()`
    std::int64_t k = 0;                                             ///< columns of A, rows of B
    std::int64_t batches = 1;                                       ///< number of products of these extents
    std::int64_t outer_batches = 1;                                 ///< number of these batches: the second level
    InputTypes input = {};                                          ///< types of A and B; one ElementType if equal
    ElementType output = ElementType::f32;                          ///< type of D, and of C unless D has 8 bits
    MatrixLayout a = {};                                            ///< how A is stored, m x k
    MatrixLayout b = {};                                            ///< how B is stored, k x n
    MatrixLayout d = {};                                            ///< how D is stored, m x n
    MatrixLayout c = {};                                            ///< how C is stored; only its batch strides matter
    bool has_c = false;                                             ///< true if beta * C is added
    BiasAxis bias = BiasAxis::none;                                 ///< the bias that is added
    Activation activation = Activation::none;                       ///< the function that is applied last
    bool has_pre_activation = false;                                ///< true if the argument of act is stored, too
    MatrixLayout pre_activation = {};                               ///< where to; only its batch strides matter
    Fp8Accumulation fp8_accumulation = Fp8Accumulation::two_level;  ///< for 8-bit inputs on Hopper
    F16Accumulation f16_accumulation = F16Accumulation::in_f32;     ///< for f16 inputs of `mma_sync`
    bool row_scales = false;                                        ///< true if each row of A has a scale of its own
    bool column_scales = false;                                     ///< true if each column of B has one
    Gating gating = Gating::none;                                   ///< how columns of A*B form pairs
    /// A plan's kernel is chosen for this many SMs, or for all if 0. Kernels whose grid is as large as the device (Hopper's)
    /// leave the other SMs to kernels of other streams; the rest have a CTA for each tile, on any SM that is free.
    int max_sms = 0;

    /// Columns of D: those of B, or half of them if they form pairs.
    std::int64_t d_columns() const noexcept { return gating == Gating::none ? n : n / 2; }

    /// Returns one line for people: extents, types, orders, epilogue.
    std::string describe() const;
};

}  // namespace tessera
