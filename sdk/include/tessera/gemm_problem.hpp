#pragma once

/// A matrix product as plain facts: what a kernel variant is chosen by. Knows no memory and no device, so that choosing
/// and explaining work anywhere.
///
/// Thread safety: everything here is a value, or a function of its arguments alone.

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/element.hpp"
#include "tessera/epilogue_kind.hpp"

namespace tessera {

/// A compiled kernel configuration that can be asked for by name. Numbers are stable: they appear in plans and caches.
enum class Variant : std::uint8_t {
    automatic = 0,              ///< the library's choice among the eligible ones
    simt_naive = 1,             ///< one thread per element of D, operands straight from global memory
    simt_tiled = 2,             ///< operands staged in shared memory
    simt_vectorized = 3,        ///< staged with 16-byte accesses
    simt_coarsened = 4,         ///< several elements of D per thread, along one dimension
    simt_register_blocked = 5,  ///< a two-dimensional register tile per thread, double-buffered asynchronous staging
    hopper = 16,                ///< wgmma, TMA, clusters and a persistent grid (compute capability 9.0)
    // Compute capability 10: tcgen05, tensor memory and TMA. docs/blackwell-ladder.md walks through the rungs.
    blackwell_tiled = 32,             ///< 128x128 tiles, one stage
    blackwell_swizzled = 33,          ///< stages in the swizzle that TMA and the tensor core share
    blackwell_pipelined = 34,         ///< loads ahead of the products
    blackwell_warp_specialized = 35,  ///< a warp that loads, one that multiplies, four that store
    blackwell_persistent = 36,        ///< many tiles per CTA, one stored under the next one's products
    blackwell_clc = 37,               ///< tiles handed out by cluster launch control
    blackwell_clc_multicast = 38,     ///< B multicast to two CTAs
    blackwell_cta_pair = 39,          ///< 256x128 per pair of CTAs, which share B
    blackwell_cta_pair_256 = 40,      ///< 256x256 per pair
    blackwell_cta_pair_512 = 41,      ///< 512x256 per pair
};

/// "automatic", "simt_naive", ...
std::string_view to_string(Variant variant) noexcept;

/// The inverse. @throws Error `invalid_argument` listing all names
Variant variant_from_string(std::string_view name, std::source_location caller = std::source_location::current());

/// All variants but `automatic`, lowest rung first.
std::vector<Variant> all_variants();

/// How an operand lies in memory.
struct MatrixLayout {
    bool row_major = true;  ///< the storage order
    /// In elements; 0 stands for "no gaps".
    std::int64_t leading_dimension = 0;
    /// Elements between the matrices of a batch; ignored for a single one.
    std::int64_t batch_stride = 0;
    /// What the address of the first element is a multiple of, in bytes.
    std::size_t address_alignment = 256;
    /// Elements between the batches of the outer level, see `GemmProblem::outer_batches`; ignored for a single one.
    std::int64_t outer_stride = 0;
};

/// How Hopper's tensor cores add up products of 8-bit elements: their own accumulator keeps about 14 bits of a sum that
/// has 24 in fp32. Inputs of 16 bits and more, and all other kernels, are not concerned and ignore it.
enum class Fp8Accumulation : std::uint8_t {
    two_level = 0,  ///< every 128 of K, what the tensor core has added up is added to an fp32 sum
    fast = 1,       ///< all of K in the tensor core's accumulator; what "fast accumulation" is elsewhere
};

/// D = act(alpha * A*B + beta * C + bias): A is m x k, B is k x n, C and D are m x n. Any extent may be 0.
struct GemmProblem {
    std::int64_t m = 0;                                             ///< rows of A and D
    std::int64_t n = 0;                                             ///< columns of B and D
    std::int64_t k = 0;                                             ///< columns of A, rows of B
    std::int64_t batches = 1;                                       ///< how many products of these extents
    std::int64_t outer_batches = 1;                                 ///< how many such batches: the second level
    InputTypes input = {};                                          ///< of A and B; one ElementType if they are equal
    ElementType output = ElementType::f32;                          ///< of C and D
    MatrixLayout a = {};                                            ///< of A, m x k
    MatrixLayout b = {};                                            ///< of B, k x n
    MatrixLayout d = {};                                            ///< of D, m x n
    MatrixLayout c = {};                                            ///< of C: its two strides matter, and only those
    bool has_c = false;                                             ///< whether beta * C is added
    BiasAxis bias = BiasAxis::none;                                 ///< which bias is added
    Activation activation = Activation::none;                       ///< what is applied last
    Fp8Accumulation fp8_accumulation = Fp8Accumulation::two_level;  ///< for 8-bit inputs

    /// One line for people: extents, types, orders, epilogue.
    std::string describe() const;
};

}  // namespace tessera
