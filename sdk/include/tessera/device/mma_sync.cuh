#pragma once

/// @file
/// @ingroup device_mma
/// @brief Matrix instructions of a warp (mma.sync) and the loads of their operands (ldmatrix), on every GPU from compute
/// capability 7.5 on.
///
/// An instruction computes D (16, 8) += A (16, K) * B (K, 8). All three are spread over the registers of a warp; a fragment
/// is one thread's part. `load_matrix` reads fragments of A and B from a `SharedTile`.
///
/// @code{.cpp}
/// FragmentC<float, 16, 8> sums{};                                   // D: zeros
/// for (unsigned k = 0; k < 64; k += 16) {
///     const auto a_part = load_matrix<FragmentA<bf16, 16, 16>>(a[0], row, k);
///     const auto b_part = load_matrix<FragmentB<bf16, 8, 16>>(b[0], column, k);
///     mma(sums, a_part, b_part);
/// }
/// @endcode
///
/// | T | K | from compute capability |
/// |---|---|---|
/// | `f16` | 8 | 7.5 |
/// | `f16`, `bf16` | 16 | 8.0 |
/// | `tf32` | 8 | 8.0 |
/// | `f8e4m3`, `f8e5m2`, mixed | 32 | 8.9 |
///
/// Sums are in f32, of f16 operands also in f16. Floats of 6 and 4 bits, and block scales, are in mma_sync_scaled.cuh, a
/// sparse A in mma_sync_sparse.cuh. All threads of a warp call everything here, converged.
///
/// Source: PTX ISA 9.0, "mma", "ldmatrix" and the layouts of their matrices.

#include <cstdint>
#include <type_traits>

#include "tessera/device/smem_descriptor.hpp"
#include "tessera/device/tma.cuh"
#include "tessera/element.hpp"
#include "tessera/float8.hpp"
#include "tessera/tf32.hpp"

namespace tessera {

namespace detail {

/// K of a float of fewer than 8 bits, and how many of them an object of T has: see mma_sync_scaled.cuh.
template <class T>
inline constexpr unsigned small_float_k = 0;
template <class T>
inline constexpr unsigned small_floats_in = 1;
template <class T>
inline constexpr bool is_small_float = small_float_k<T> != 0;
template <class T>
inline constexpr bool is_float_8 = std::is_same_v<T, f8e4m3> || std::is_same_v<T, f8e5m2>;

/// The elements of a tile that has T: bytes for small floats, as for tensor maps.
template <class T>
using tile_element = std::conditional_t<is_small_float<T>, std::uint8_t, T>;

/// True if there is an instruction for elements T with this K.
template <class T, unsigned K>
inline constexpr bool is_mma_operand =
    (std::is_same_v<T, f16> && (K == 8 || K == 16)) || (std::is_same_v<T, bf16> && K == 16) ||
    (std::is_same_v<T, tf32> && K == 8) || (is_float_8<T> && K == 32) || (is_small_float<T> && K == small_float_k<T>);

/// Bytes of a row of K elements.
template <class T, unsigned K>
inline constexpr unsigned mma_row_bytes = K / small_floats_in<T> * sizeof(T);

}  // namespace detail

/// A thread's part of A in one instruction: (16, K) elements in a warp.
///
/// Lane t has rows t / 4 and t / 4 + 8. Of each, word i has the 4 bytes that begin at byte 4 * (t % 4) of the i-th 16 bytes
/// along K; words are in the order (row, 0), (row + 8, 0), (row, 1), (row + 8, 1).
/// @tparam T  f16, bf16, tf32, f8e4m3, f8e5m2 or a type of mma_sync_scaled.cuh
/// @tparam M  16
/// @tparam K  see the table in mma_sync.cuh
template <class T, unsigned M, unsigned K>
struct FragmentA {
    static_assert(
        M == 16 && detail::is_mma_operand<T, K>,
        "tessera: mma.sync multiplies 16 rows of A: K is 8 or 16 for f16, 16 for bf16, 8 for tf32, 32 for f8e4m3 "
        "and f8e5m2; mma_sync_scaled.cuh has smaller floats");
    using element_type = T;              ///< of A
    static constexpr unsigned k = K;     ///< elements along K
    static constexpr unsigned rows = M;  ///< rows of A
    /// Pieces of 16 bytes along K.
    static constexpr unsigned chunks = detail::mma_row_bytes<T, K> / 16;

    std::uint32_t words[2 * chunks];  ///< as the instruction takes them
};

/// A thread's part of B in one instruction: (K, 8) elements in a warp.
///
/// Lane t has column t / 4. Word i has the 4 bytes that begin at byte 4 * (t % 4) of the i-th 16 bytes along K.
/// @tparam T  f16, bf16, tf32, f8e4m3, f8e5m2 or a type of mma_sync_scaled.cuh
/// @tparam N  8
/// @tparam K  see the table in mma_sync.cuh; with a sparse A, that in mma_sync_sparse.cuh
template <class T, unsigned N, unsigned K>
struct FragmentB {
    static_assert(N == 8 && (detail::is_mma_operand<T, K> || (K % 2 == 0 && detail::is_mma_operand<T, K / 2>)),
                  "tessera: mma.sync multiplies 8 columns of B: K is 8 or 16 for f16, 16 for bf16, 8 for tf32, 32 for "
                  "f8e4m3 and f8e5m2, and twice that with a sparse A; mma_sync_scaled.cuh has smaller floats");
    using element_type = T;              ///< of B
    static constexpr unsigned k = K;     ///< elements along K
    static constexpr unsigned rows = N;  ///< columns of B: rows of a K-major tile
    /// Pieces of 16 bytes along K.
    static constexpr unsigned chunks = detail::mma_row_bytes<T, K> / 16;

    std::uint32_t words[chunks];  ///< as the instruction takes them
};

/// A thread's part of the sums of one instruction: (16, 8) elements in a warp.
///
/// Lane t has value 2 * i + j of row t / 4 + 8 * i, column 2 * (t % 4) + j.
/// @tparam T  float, or f16 for products of f16
/// @tparam M  16
/// @tparam N  8
template <class T, unsigned M, unsigned N>
struct FragmentC {
    static_assert(M == 16 && N == 8 && (std::is_same_v<T, float> || std::is_same_v<T, f16>),
                  "tessera: mma.sync adds up (16, 8) sums in float or f16");

    T values[4];  ///< two of each of the lane's rows

    /// Returns value i.
    __device__ T& operator[](unsigned i) { return values[i]; }
    /// Returns value i, for reading.
    __device__ const T& operator[](unsigned i) const { return values[i]; }
    /// Returns the row of value `i` in the calling thread.
    __device__ static unsigned row(unsigned i) { return threadIdx.x % 32 / 4 + 8 * (i / 2); }
    /// Returns the column of value `i` in the calling thread.
    __device__ static unsigned column(unsigned i) { return 2 * (threadIdx.x % 4) + i % 2; }
};

namespace detail {

/// Loads 8 rows of 16 bytes for each of `Count` words. Lane t gives the address of row t % 8 of matrix t / 8.
template <bool Transposed, unsigned Count>
__device__ __forceinline__ void load_matrices(std::uint32_t (&words)[Count], std::uint32_t address)
{
    static_assert(Count == 1 || Count == 2 || Count == 4);
    if constexpr (Count == 4 && Transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                     : "r"(address)
                     : "memory");
    } else if constexpr (Count == 4) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                     : "r"(address)
                     : "memory");
    } else if constexpr (Count == 2 && Transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(words[0]), "=r"(words[1])
                     : "r"(address)
                     : "memory");
    } else if constexpr (Count == 2) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(words[0]), "=r"(words[1])
                     : "r"(address)
                     : "memory");
    } else if constexpr (Transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                     : "=r"(words[0])
                     : "r"(address)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(words[0]) : "r"(address) : "memory");
    }
}

template <class Fragment>
struct fragment_facts;
template <class T, unsigned M, unsigned K>
struct fragment_facts<FragmentA<T, M, K>> {
    static constexpr unsigned row_matrices = 2;  // of eight rows each
};
template <class T, unsigned N, unsigned K>
struct fragment_facts<FragmentB<T, N, K>> {
    static constexpr unsigned row_matrices = 1;
};

}  // namespace detail

/// Loads a fragment from a tile in shared memory: rows [row, row + 16) of A or [row, row + 8) of B, elements [k, k + K) along
/// K. Called by the whole, converged warp.
///
/// @tparam Fragment   a FragmentA or FragmentB
/// @tparam MajorAxis  Major::k if the tile's rows are contiguous along K, as (rows, K). Major::mn if they are contiguous along
///                    M or N, as (K, rows): elements of 16 bits only
/// @param tile        of the fragment's elements; of std::uint8_t for those of mma_sync_scaled.cuh
/// @param row         the first row of A, or column of B: a multiple of 8
/// @param k           a multiple of 16 bytes, in elements of the tile
/// @pre The fragment is inside of the tile. That is not checked: the loop over K would pay for it.
template <class Fragment, Major MajorAxis = Major::k, class T, std::uint32_t Contiguous, std::uint32_t Lines,
          Swizzle Pattern>
__device__ __forceinline__ Fragment load_matrix(const SharedTile<T, Box<Contiguous, Lines>, Pattern>& tile,
                                                unsigned row, unsigned k)
{
    using Facts = detail::fragment_facts<Fragment>;
    constexpr bool transposed = MajorAxis == Major::mn;
    static_assert(std::is_same_v<T, detail::tile_element<typename Fragment::element_type>>,
                  "tessera: the tile's elements are not the fragment's");
    static_assert(!transposed || sizeof(T) == 2,
                  "tessera: ldmatrix transposes 16-bit elements only: a tile of other elements must be K-major");
    static_assert(Fragment::rows <= (transposed ? Contiguous : Lines) &&
                      Fragment::chunks * 16 <= sizeof(T) * (transposed ? Lines : Contiguous),
                  "tessera: the tile is smaller than the fragment");
    static_assert(Contiguous * sizeof(T) % 16 == 0,
                  "tessera: ldmatrix reads rows of 16 bytes: the tile's rows must divide "
                  "into them");
    // Matrix i has rows 8 * (i % row_matrices) on and the chunk i / row_matrices along K.
    const unsigned matrix = threadIdx.x % 32 / 8;
    const unsigned line = threadIdx.x % 8;
    const unsigned rows = 8 * (matrix % Facts::row_matrices);
    const unsigned chunk = matrix / Facts::row_matrices % Fragment::chunks;  // lanes beyond the last repeat one
    constexpr unsigned in_chunk = 16 / sizeof(T);
    const std::uint32_t offset =
        transposed
            ? SharedTile<T, Box<Contiguous, Lines>, Pattern>::offset_bytes(k + in_chunk * chunk + line, row + rows)
            : SharedTile<T, Box<Contiguous, Lines>, Pattern>::offset_bytes(row + rows + line, k + in_chunk * chunk);
    Fragment fragment;
    detail::load_matrices<transposed>(fragment.words, detail::shared_address(tile.raw_swizzled_bytes()) + offset);
    return fragment;
}

namespace detail {

/// Compiles only for devices of this compute capability and later.
template <int Capability>
__device__ constexpr void require_capability()
{
#ifdef __CUDA_ARCH__
    static_assert(
        Capability != 80 || __CUDA_ARCH__ >= 800,
        "tessera: mma.sync of bf16, of tf32 and of f16 with K = 16 needs compute capability 8.0; on 7.5 f16 has "
        "K = 8");
    static_assert(Capability != 89 || __CUDA_ARCH__ >= 890,
                  "tessera: mma.sync of 8-bit floats needs compute capability 8.9");
#endif
}

/// Sums in f16 as the instruction takes them: the two of a row in a word.
struct PackedSums {
    std::uint32_t rows[2];

    __device__ explicit PackedSums(const FragmentC<f16, 16, 8>& sums)
    {
#pragma unroll
        for (unsigned i = 0; i < 2; ++i) {
            rows[i] = sums[2 * i].bits | static_cast<std::uint32_t>(sums[2 * i + 1].bits) << 16;
        }
    }
    __device__ void unpack(FragmentC<f16, 16, 8>& to) const
    {
#pragma unroll
        for (unsigned i = 0; i < 2; ++i) {
            to[2 * i] = f16::from_bits(static_cast<std::uint16_t>(rows[i]));
            to[2 * i + 1] = f16::from_bits(static_cast<std::uint16_t>(rows[i] >> 16));
        }
    }
};

/// Compiles only if B has the K of a dense A.
template <unsigned K, unsigned KOfB>
__device__ constexpr void require_dense_k()
{
    static_assert(KOfB == K, "tessera: B must have the K of A; a FragmentB of twice that is for a sparse A");
}

// The instruction's name is text, which a template cannot make: hence macros, of this file only.
#define TESSERA_DETAIL_MMA_SYNC(SHAPE, TYPES)                                                                \
    if constexpr (chunks == 2) {                                                                             \
        asm volatile("mma.sync.aligned." SHAPE ".row.col.f32." TYPES                                         \
                     ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                  \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                        \
                     : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[chunks]), "r"(a.words[2 * chunks - 1]), \
                       "r"(b.words[0]), "r"(b.words[chunks - 1]));                                           \
    } else {                                                                                                 \
        asm volatile("mma.sync.aligned." SHAPE ".row.col.f32." TYPES                                         \
                     ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                              \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                        \
                     : "r"(a.words[0]), "r"(a.words[1]), "r"(b.words[0]));                                   \
    }

}  // namespace detail

/// Adds A * B to `c`, in f32. Called by the whole, converged warp.
/// @param c  the sums
/// @param a  16 rows of A
/// @param b  8 columns of B
template <class A, class B, unsigned K, unsigned KOfB>
    requires(!detail::is_small_float<A> && !detail::is_small_float<B>)
__device__ __forceinline__ void mma(FragmentC<float, 16, 8>& c, const FragmentA<A, 16, K>& a,
                                    const FragmentB<B, 8, KOfB>& b)
{
    constexpr bool mixed_8_bit = sizeof(A) == 1 && sizeof(B) == 1;
    static_assert(std::is_same_v<A, B> || mixed_8_bit,
                  "tessera: mma.sync multiplies elements of one type; only f8e4m3 and f8e5m2 may be mixed");
    detail::require_dense_k<K, KOfB>();
    constexpr unsigned chunks = FragmentA<A, 16, K>::chunks;
    if constexpr (std::is_same_v<A, f16> && K == 8) {
        TESSERA_DETAIL_MMA_SYNC("m16n8k8", "f16.f16")
    } else if constexpr (std::is_same_v<A, f16>) {
        detail::require_capability<80>();
        TESSERA_DETAIL_MMA_SYNC("m16n8k16", "f16.f16")
    } else if constexpr (std::is_same_v<A, bf16>) {
        detail::require_capability<80>();
        TESSERA_DETAIL_MMA_SYNC("m16n8k16", "bf16.bf16")
    } else if constexpr (std::is_same_v<A, tf32>) {
        detail::require_capability<80>();
        TESSERA_DETAIL_MMA_SYNC("m16n8k8", "tf32.tf32")
    } else if constexpr (std::is_same_v<A, f8e4m3> && std::is_same_v<B, f8e4m3>) {
        detail::require_capability<89>();
        TESSERA_DETAIL_MMA_SYNC("m16n8k32", "e4m3.e4m3")
    } else if constexpr (std::is_same_v<A, f8e4m3>) {
        detail::require_capability<89>();
        TESSERA_DETAIL_MMA_SYNC("m16n8k32", "e4m3.e5m2")
    } else if constexpr (std::is_same_v<B, f8e4m3>) {
        detail::require_capability<89>();
        TESSERA_DETAIL_MMA_SYNC("m16n8k32", "e5m2.e4m3")
    } else {
        detail::require_capability<89>();
        TESSERA_DETAIL_MMA_SYNC("m16n8k32", "e5m2.e5m2")
    }
}

#undef TESSERA_DETAIL_MMA_SYNC

/// Adds A * B to `c`, in f16. GeForce and RTX PRO boards do this at twice the rate of sums in f32, says their data sheet. Called by
/// the whole, converged warp.
template <unsigned K, unsigned KOfB>
__device__ __forceinline__ void mma(FragmentC<f16, 16, 8>& c, const FragmentA<f16, 16, K>& a,
                                    const FragmentB<f16, 8, KOfB>& b)
{
    detail::require_dense_k<K, KOfB>();
    detail::PackedSums packed(c);
    if constexpr (K == 8) {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                     : "+r"(packed.rows[0]), "+r"(packed.rows[1])
                     : "r"(a.words[0]), "r"(a.words[1]), "r"(b.words[0]));
    } else {
        detail::require_capability<80>();
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                     : "+r"(packed.rows[0]), "+r"(packed.rows[1])
                     : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]),
                       "r"(b.words[1]));
    }
    packed.unpack(c);
}

}  // namespace tessera
