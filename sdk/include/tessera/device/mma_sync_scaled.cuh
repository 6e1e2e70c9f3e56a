#pragma once

/// @file
/// @ingroup device_mma
/// @brief The matrix instructions of a warp that only compute capability 12.x has: mma.sync of floats of 8, 6 and 4 bits, mixed or
/// with block scales.
///
/// As in mma_sync.cuh, an instruction computes D (16, 8) += A (16, K) * B (K, 8). With block scales, each row of A and each
/// column of B has 1, 2 or 4 scale factors, and each of them multiplies an equal part of K.
///
/// @code{.cpp}
/// FragmentC<float, 16, 8> sums{};
/// const auto a_part = load_matrix<FragmentA<f4e2m1x2, 16, 64>>(a_bytes, row, 0);  // from a tile of std::uint8_t
/// const auto b_part = load_matrix<FragmentB<f4e2m1x2, 8, 64>>(b_bytes, column, 0);
/// const ScaleFragmentA<ScaleType::ue4m3, ScaleVector::x4> a_scale{a_word};  // of row + a_scale.row()
/// const ScaleFragmentB<ScaleType::ue4m3, ScaleVector::x4> b_scale{b_word};  // of column + b_scale.column()
/// mma(sums, a_part, b_part, a_scale, b_scale);
/// @endcode
///
/// | A and B | K | scale factors of a row | kind | sums | target |
/// |---|---|---|---|---|---|
/// | `f8e4m3`, `f8e5m2`, `f6e2m3`, `f6e3m2`, `f4e2m1`, mixed | 32 | none | f8f6f4 | f32, f16 | sm_120a, sm_120f |
/// | the same | 32 | 1 `ue8m0` | mxf8f6f4 | f32 | sm_120a, sm_120f |
/// | `f4e2m1x2` | 64 | 2 `ue8m0` | mxf4 | f32 | sm_120a |
/// | `f4e2m1x2` | 64 | 4 `ue4m3` | mxf4nvf4 | f32 | sm_120a |
///
/// Targets of later devices of the generation, such as sm_121a, have them, too. All threads of a warp call everything
/// here, converged.
///
/// Source: PTX ISA 9.0, "mma", "Block Scaling for mma.sync" and the layouts of their matrices.

#include <cstdint>
#include <type_traits>

#include "tessera/device/mma_spec.hpp"
#include "tessera/device/mma_sync.cuh"
#include "tessera/float8.hpp"

namespace tessera {

/// A float of 6 bits, OCP E2M3, in bits 0 to 5 of a byte: values up to 7.5. Bits 6 and 7 do not matter.
struct f6e2m3 {
    std::uint8_t bits;  ///< the byte, as the instruction takes it
};
/// A float of 6 bits, OCP E3M2, in bits 0 to 5 of a byte: values up to 28. Bits 6 and 7 do not matter.
struct f6e3m2 {
    std::uint8_t bits;  ///< the byte, as the instruction takes it
};
/// A float of 4 bits, OCP E2M1, in bits 2 to 5 of a byte: values up to 6. The other bits do not matter.
struct f4e2m1 {
    std::uint8_t bits;  ///< the byte, as the instruction takes it
};
/// Two neighbours along K of E2M1 floats: bits 0 to 3 have the first, bits 4 to 7 the second.
struct f4e2m1x2 {
    std::uint8_t bits;  ///< both
};

namespace detail {

template <>
inline constexpr unsigned small_float_k<f6e2m3> = 32;
template <>
inline constexpr unsigned small_float_k<f6e3m2> = 32;
template <>
inline constexpr unsigned small_float_k<f4e2m1> = 32;
template <>
inline constexpr unsigned small_float_k<f4e2m1x2> = 64;
template <>
inline constexpr unsigned small_floats_in<f4e2m1x2> = 2;

/// True for elements in bytes of their own.
template <class T>
inline constexpr bool is_byte_float = is_float_8<T> || (is_small_float<T> && small_floats_in<T> == 1);

/// The names in the instruction.
template <class T>
struct mma_name;
template <>
struct mma_name<f8e4m3> {
    static constexpr char value[] = "e4m3";
};
template <>
struct mma_name<f8e5m2> {
    static constexpr char value[] = "e5m2";
};
template <>
struct mma_name<f6e2m3> {
    static constexpr char value[] = "e2m3";
};
template <>
struct mma_name<f6e3m2> {
    static constexpr char value[] = "e3m2";
};
template <>
struct mma_name<f4e2m1> {
    static constexpr char value[] = "e2m1";
};
template <>
struct mma_name<f4e2m1x2> {
    static constexpr char value[] = "e2m1";
};
template <ScaleType Type>
struct scale_name;
template <>
struct scale_name<ScaleType::ue8m0> {
    static constexpr char value[] = "ue8m0";
};
template <>
struct scale_name<ScaleType::ue4m3> {
    static constexpr char value[] = "ue4m3";
};
template <MmaKind Kind>
struct kind_name;
template <>
struct kind_name<MmaKind::mxf8f6f4> {
    static constexpr char value[] = "mxf8f6f4";
};
template <>
struct kind_name<MmaKind::mxf4> {
    static constexpr char value[] = "mxf4";
};
template <>
struct kind_name<MmaKind::mxf4nvf4> {
    static constexpr char value[] = "mxf4nvf4";
};

#ifdef __CUDA_ARCH__
#ifdef __CUDA_ARCH_FAMILY_SPECIFIC__
inline constexpr bool is_family_12 = __CUDA_ARCH_FAMILY_SPECIFIC__ / 100 == 12;
#else
inline constexpr bool is_family_12 = false;
#endif
#endif

/// Compiles only for targets that have the kind.
template <MmaKind Kind>
__device__ constexpr void require_target_of_kind()
{
#ifdef __CUDA_ARCH__
#ifdef __CUDA_ARCH_SPECIFIC__
    constexpr bool exact = true;
#else
    constexpr bool exact = false;
#endif
    constexpr bool byte_floats = Kind == MmaKind::f8f6f4 || Kind == MmaKind::mxf8f6f4;
    static_assert(
        !byte_floats || is_family_12,
        "tessera: mma.sync of 6-bit and 4-bit floats and with scale factors needs compute capability 12.x and a "
        "target such as sm_120a or sm_120f");
    static_assert(byte_floats || (is_family_12 && exact),
                  "tessera: mma.sync of f4e2m1x2 needs compute capability 12.x and a target such as sm_120a");
#endif
}

template <ScaleVector Vector>
inline constexpr bool is_scale_vector =
    Vector == ScaleVector::x1 || Vector == ScaleVector::x2 || Vector == ScaleVector::x4;

/// What scale factors a product may have, with a dense or a sparse A.
template <class A, class B, ScaleType TypeA, ScaleVector VectorA, ScaleType TypeB, ScaleVector VectorB>
struct ScaledProduct {
    static constexpr bool byte_floats = is_byte_float<A> && is_byte_float<B>;
    static constexpr bool pairs = std::is_same_v<A, f4e2m1x2> && std::is_same_v<B, f4e2m1x2>;
    static constexpr bool same_scales = TypeA == TypeB && VectorA == VectorB;
    static constexpr bool scales_of_bytes = TypeA == ScaleType::ue8m0 && VectorA == ScaleVector::x1;
    static constexpr bool scales_of_pairs = (TypeA == ScaleType::ue8m0 && VectorA == ScaleVector::x2) ||
                                            (TypeA == ScaleType::ue4m3 && VectorA == ScaleVector::x4);
    static_assert(byte_floats || pairs, "tessera: only floats of 8, 6 and 4 bits have scale factors");
    static_assert(same_scales, "tessera: the scale factors of A and B must have the same type and number");
    static_assert(!byte_floats || scales_of_bytes,
                  "tessera: floats in bytes of their own have one ue8m0 factor of a row");
    static_assert(!pairs || scales_of_pairs, "tessera: f4e2m1x2 has two ue8m0 or four ue4m3 factors of a row");

    static constexpr bool exists = same_scales && ((byte_floats && scales_of_bytes) || (pairs && scales_of_pairs));
    static constexpr MmaKind kind = byte_floats                 ? MmaKind::mxf8f6f4
                                    : TypeA == ScaleType::ue8m0 ? MmaKind::mxf4
                                                                : MmaKind::mxf4nvf4;
};

}  // namespace detail

/// A thread's part of A's scale factors: a word with 4 bytes, of which an instruction takes 1, 2 or 4.
///
/// Of each four lanes, a pair has the factors of two rows: lane 4 * r + 2 * Pair of row r, the next one of row r + 8, both in
/// the order of K from byte `Byte` on. The instruction ignores the word of the other lanes. So one word can have the
/// factors of several instructions.
/// @tparam Type    ue8m0 or ue4m3
/// @tparam Vector  the number of factors of a row
/// @tparam Byte    the first byte: 0 to 3 for one factor, 0 or 2 for two, 0 for four
/// @tparam Pair    the pair of lanes: 0 or 1
template <ScaleType Type, ScaleVector Vector, unsigned Byte = 0, unsigned Pair = 0>
struct ScaleFragmentA {
    static_assert(Type != ScaleType::none && detail::is_scale_vector<Vector>,
                  "tessera: scale factors are ue8m0 or ue4m3, 1, 2 or 4 of a row");
    static_assert(Byte < 4 && Byte % static_cast<unsigned>(Vector) == 0,
                  "tessera: scale factors begin at a multiple of their number, in a word of 4 bytes");
    static_assert(Pair < 2, "tessera: A's scale factors are in the first (0) or second (1) pair of each four lanes");

    std::uint32_t word;  ///< as the instruction takes it

    /// Returns true if the instruction takes factors from the calling thread.
    __device__ static bool counts() { return threadIdx.x % 4 / 2 == Pair; }
    /// Returns the row of A whose factors the calling thread has, if they count.
    __device__ static unsigned row() { return threadIdx.x % 32 / 4 + 8 * (threadIdx.x % 2); }
};

/// A thread's part of B's scale factors: a word with 4 bytes, of which an instruction takes 1, 2 or 4.
///
/// Of each four lanes, one has the factors of a column: lane 4 * c + Lane of column c, in the order of K from byte `Byte` on.
/// The instruction ignores the word of the other lanes.
/// @tparam Type    ue8m0 or ue4m3
/// @tparam Vector  the number of factors of a column
/// @tparam Byte    the first byte: 0 to 3 for one factor, 0 or 2 for two, 0 for four
/// @tparam Lane    of each four: 0 to 3
template <ScaleType Type, ScaleVector Vector, unsigned Byte = 0, unsigned Lane = 0>
struct ScaleFragmentB {
    static_assert(Type != ScaleType::none && detail::is_scale_vector<Vector>,
                  "tessera: scale factors are ue8m0 or ue4m3, 1, 2 or 4 of a column");
    static_assert(Byte < 4 && Byte % static_cast<unsigned>(Vector) == 0,
                  "tessera: scale factors begin at a multiple of their number, in a word of 4 bytes");
    static_assert(Lane < 4, "tessera: B's scale factors are in one of each four lanes: 0 to 3");

    std::uint32_t word;  ///< as the instruction takes it

    /// Returns true if the instruction takes factors from the calling thread.
    __device__ static bool counts() { return threadIdx.x % 4 == Lane; }
    /// Returns the column of B whose factors the calling thread has, if they count.
    __device__ static unsigned column() { return threadIdx.x % 32 / 4; }
};

/// Adds A * B to `c`, in f32. Called by the whole, converged warp.
/// @param c  the sums
/// @param a  16 rows of A
/// @param b  8 columns of B; floats of 8, 6 and 4 bits may be mixed
template <unsigned K, unsigned KOfB, class A,
          class B>  // in another order than mma_sync.cuh's: the reference tells them apart by it
    requires(detail::is_small_float<A> || detail::is_small_float<B>)
__device__ __forceinline__ void mma(FragmentC<float, 16, 8>& c, const FragmentA<A, 16, K>& a,
                                    const FragmentB<B, 8, KOfB>& b)
{
    constexpr bool byte_floats = detail::is_byte_float<A> && detail::is_byte_float<B>;
    static_assert(byte_floats,
                  "tessera: mma.sync without scale factors multiplies floats in bytes of their own, not f4e2m1x2");
    if constexpr (byte_floats) {
        detail::require_dense_k<K, KOfB>();
        detail::require_target_of_kind<MmaKind::f8f6f4>();
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.%10.%11.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]),
              "C"(detail::mma_name<A>::value), "C"(detail::mma_name<B>::value));
    }
}

/// Adds A * B to `c`, in f16. Called by the whole, converged warp.
/// @param c  the sums
/// @param a  16 rows of A
/// @param b  8 columns of B; floats of 8, 6 and 4 bits may be mixed
template <class A, class B, unsigned K, unsigned KOfB>
    requires(detail::is_byte_float<A> && detail::is_byte_float<B>)
__device__ __forceinline__ void mma(FragmentC<f16, 16, 8>& c, const FragmentA<A, 16, K>& a,
                                    const FragmentB<B, 8, KOfB>& b)
{
    detail::require_dense_k<K, KOfB>();
    detail::require_target_of_kind<MmaKind::f8f6f4>();
    detail::PackedSums packed(c);
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.%8.%9.f16 "
        "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
        : "+r"(packed.rows[0]), "+r"(packed.rows[1])
        : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]),
          "C"(detail::mma_name<A>::value), "C"(detail::mma_name<B>::value));
    packed.unpack(c);
}

/// Adds (A * scale_a) * (B * scale_b) to `c`, in f32. Called by the whole, converged warp.
/// @param c        the sums
/// @param a        16 rows of A
/// @param b        8 columns of B
/// @param scale_a  of the rows of A
/// @param scale_b  of the columns of B
template <class A, class B, unsigned K, unsigned KOfB, ScaleType TypeA, ScaleVector VectorA, unsigned ByteA,
          unsigned Pair, ScaleType TypeB, ScaleVector VectorB, unsigned ByteB, unsigned Lane>
__device__ __forceinline__ void mma(FragmentC<float, 16, 8>& c, const FragmentA<A, 16, K>& a,
                                    const FragmentB<B, 8, KOfB>& b,
                                    const ScaleFragmentA<TypeA, VectorA, ByteA, Pair>& scale_a,
                                    const ScaleFragmentB<TypeB, VectorB, ByteB, Lane>& scale_b)
{
    using Product = detail::ScaledProduct<A, B, TypeA, VectorA, TypeB, VectorB>;
    if constexpr (Product::exists) {
        detail::require_dense_k<K, KOfB>();
        detail::require_target_of_kind<Product::kind>();
        asm volatile(
            "mma.sync.aligned.m16n8k%12.row.col.kind::%13.block_scale.scale_vec::%14X.f32.%15.%16.f32.%17 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, %10, {%18, %19}, %11, {%20, %21};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]),
              "r"(scale_a.word), "r"(scale_b.word), "n"(K), "C"(detail::kind_name<Product::kind>::value),
              "n"(static_cast<unsigned>(VectorA)), "C"(detail::mma_name<A>::value), "C"(detail::mma_name<B>::value),
              "C"(detail::scale_name<TypeA>::value), "n"(ByteA), "n"(Pair), "n"(ByteB), "n"(Lane));
    }
}

}  // namespace tessera
