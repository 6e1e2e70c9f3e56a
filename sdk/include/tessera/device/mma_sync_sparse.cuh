#pragma once

/// @file
/// @ingroup device_mma
/// @brief The matrix instructions of a warp with a sparse A (mma.sp), on every GPU from compute capability 8.0 on, and what makes
/// a sparse A of a matrix.
///
/// As in mma_sync.cuh, an instruction computes D (16, 8) += A (16, K) * B (K, 8), and B and the sums are the same fragments. Of
/// each four elements of a row of A, at most two are not zero (2:4): only (16, K / 2) are stored, and metadata says where they
/// were. So K is twice that of the dense instruction. `load_matrix` loads the stored elements of A, as those of a dense (16, K / 2).
///
/// @code{.cpp}
/// FragmentC<float, 16, 8> sums{};                                                 // D: zeros
/// const auto low_a = load_matrix<SparseFragmentA<bf16, 16, 32>>(a[0], row, 0);    // stored elements 0 to 15,
/// const auto low_b = load_matrix<FragmentB<bf16, 8, 32>>(b[0], column, 0);        // elements 0 to 31 along K
/// mma(sums, low_a, SparseMetadata<bf16, 32, 0>{a_word}, low_b);
/// const auto high_a = load_matrix<SparseFragmentA<bf16, 16, 32>>(a[0], row, 16);  // the next ones:
/// const auto high_b = load_matrix<FragmentB<bf16, 8, 32>>(b[0], column, 32);
/// mma(sums, high_a, SparseMetadata<bf16, 32, 1>{a_word}, high_b);                 // the second part of the same word
/// @endcode
///
/// | A and B | K | nonzero | scale factors of a row | sums | from |
/// |---|---|---|---|---|---|
/// | `f16` | 16, 32 | 2 of 4 | none | f32, f16 | 8.0 |
/// | `bf16` | 16, 32 | 2 of 4 | none | f32 | 8.0 |
/// | `tf32` | 8, 16 | 1 of 2 | none | f32 | 8.0 |
/// | `f8e4m3`, `f8e5m2`, mixed | 64 | 2 of 4 | none | f32 | 8.9 |
/// | the same, `f6e2m3`, `f6e3m2`, `f4e2m1`, mixed | 64 | 2 of 4 | none | f32, f16 | sm_120a, sm_120f |
/// | the same | 64 | 2 of 4 | 1 `ue8m0` | f32 | sm_120a, sm_120f |
/// | `f4e2m1x2` | 128 | 2 pairs of 4 | 2 `ue8m0` or 4 `ue4m3` | f32 | sm_120a |
///
/// Scale factors are those of mma_sync_scaled.cuh, each for an equal part of K. All threads of a warp call everything
/// here, converged.
///
/// Source: PTX ISA 9.0, "mma.sp::ordered_metadata", "Sparse matrix storage" and the layouts of its matrices.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/mma_sync_scaled.cuh"

namespace tessera {

namespace detail {

/// The smallest K of an instruction for a sparse A of elements T; 0 without any.
template <class T>
inline constexpr unsigned sparse_k = std::is_same_v<T, f16> || std::is_same_v<T, bf16> ? 16
                                     : std::is_same_v<T, tf32>                         ? 8
                                     : is_float_8<T>                                   ? 64
                                                                                       : 2 * small_float_k<T>;
/// True if there is an instruction with this K.
template <class T, unsigned K>
inline constexpr bool is_sparse_operand = K != 0 && (K == sparse_k<T> || (sizeof(T) > 1 && K == 2 * sparse_k<T>));

/// Objects of a chunk. Half of them are stored.
template <class T>
inline constexpr unsigned sparse_chunk = std::is_same_v<T, tf32> ? 2 : 4;

template <>
struct mma_name<f16> {
    static constexpr char value[] = "f16";
};
template <>
struct mma_name<bf16> {
    static constexpr char value[] = "bf16";
};
template <>
struct mma_name<tf32> {
    static constexpr char value[] = "tf32";
};

}  // namespace detail

/// A thread's part of a sparse A in one instruction: (16, K / 2) stored elements in a warp, in the places of a dense FragmentA.
///
/// Lane t has rows t / 4 and t / 4 + 8. Of each, word i has the 4 bytes that begin at byte 4 * (t % 4) of the i-th 16 stored bytes;
/// words are in the order (row, 0), (row + 8, 0), (row, 1), (row + 8, 1).
/// @tparam T  see the table in mma_sync_sparse.cuh
/// @tparam M  16
/// @tparam K  elements of a row of A, with the zeros that are not stored
template <class T, unsigned M, unsigned K>
struct SparseFragmentA {
    static_assert(
        M == 16 && detail::is_sparse_operand<T, K>,
        "tessera: mma.sp multiplies 16 rows of a sparse A: K is 16 or 32 for f16 and bf16, 8 or 16 for tf32, 128 for "
        "f4e2m1x2, 64 for other floats of 8, 6 and 4 bits");
    using element_type = T;              ///< of A
    static constexpr unsigned k = K;     ///< elements along K, with the zeros
    static constexpr unsigned rows = M;  ///< rows of A
    /// Pieces of 16 stored bytes along K.
    static constexpr unsigned chunks = detail::mma_row_bytes<T, K / 2> / 16;

    std::uint32_t words[2 * chunks];  ///< as the instruction takes them
};

namespace detail {

template <class T, unsigned M, unsigned K>
struct fragment_facts<SparseFragmentA<T, M, K>> {
    static constexpr unsigned row_matrices = 2;
};

}  // namespace detail

/// A thread's part of what says where the stored elements of a sparse A were.
///
/// A row consists of chunks: four elements each, of which two are stored; of `tf32` two, of which one is; of `f4e2m1x2` four bytes,
/// of which two are. A chunk has a code of 4 bits: the place of the first stored one in bits 0 and 1, that of the second, which is
/// greater, in bits 2 and 3; of `tf32` 0b0100 for the first and 0b1110 for the second. A word has eight codes; the
/// words of a warp have those of 16 rows and `span` elements along K, and do not depend on K:
///
/// | T | code i of lane t, from bit 4 * i on |
/// |---|---|
/// | `f16`, `bf16`, `tf32` | row t / 4 + 8 * (i / 4), chunk 4 * (t % 4) + i % 4 |
/// | others | row t / 4 + 8 * (t % 2), chunk 8 * (t % 4 / 2) + i |
///
/// An instruction takes the codes of K elements, those from `Selector` * K on, and ignores the other lanes' words.
///
/// @tparam T         the elements of A
/// @tparam K         of the instruction
/// @tparam Selector  which part of `span`: less than `selectors`
template <class T, unsigned K, unsigned Selector = 0>
struct SparseMetadata {
    static_assert(detail::is_sparse_operand<T, K>,
                  "tessera: metadata is of a sparse A: K is 16 or 32 for f16 and bf16, 8 or 16 for tf32, 128 for "
                  "f4e2m1x2, 64 for "
                  "other floats of 8, 6 and 4 bits");
    /// Elements along K that the words of a warp describe.
    static constexpr unsigned span = 16 * detail::sparse_chunk<T> * detail::small_floats_in<T>;
    static constexpr unsigned selectors = span / K;  ///< instructions that they serve
    static constexpr unsigned selector = Selector;   ///< which of them this is for
    static_assert(!detail::is_sparse_operand<T, K> || Selector < selectors,
                  "tessera: the selector of metadata is less than 4 for f16 and bf16 with K = 16 and tf32 with K = 8, "
                  "less than 2 "
                  "with twice that K, and 0 for all other floats");

    std::uint32_t word;  ///< as the instruction takes it

#pragma nv_exec_check_disable
    /// Returns the metadata of a lane. It is the same for every K and Selector, but for its type.
    /// @param lane   of the warp
    /// @param place  a function: place(row, i) is where in its chunk stored object i of a row was, in 0 to 3 (of `tf32` 0 or 1). An
    ///               object is an element, of f4e2m1x2 a pair of them. Rows are from 0 to 15, objects from 0 to 31 (of `tf32` to
    ///               15)
    /// @pre The second place of each chunk is greater than the first.
    template <class Place>
    TESSERA_DETAIL_HOST_DEVICE static constexpr SparseMetadata of(unsigned lane, const Place& place)
    {
        SparseMetadata metadata{0};
        for (unsigned i = 0; i < 8; ++i) {
            const unsigned row = lane / 4 + 8 * (sizeof(T) > 1 ? i / 4 : lane % 2);
            const unsigned chunk = sizeof(T) > 1 ? 4 * (lane % 4) + i % 4 : 8 * (lane % 4 / 2) + i;
            std::uint32_t code = 0;
            if constexpr (detail::sparse_chunk<T> == 2) {
                code = place(row, chunk) == 0 ? 0b0100 : 0b1110;
            } else {
                code = (place(row, 2 * chunk) & 3U) | (place(row, 2 * chunk + 1) & 3U) << 2;
            }
            metadata.word |= code << (4 * i);
        }
        return metadata;
    }
};

/// A sparse matrix as the instructions take it: see compress_sparse.
template <class T>
struct CompressedMatrix {
    /// The stored objects, (rows, row_objects / 2), row-major.
    std::vector<T> stored;
    /// Words of SparseMetadata: 32, in the order of the lanes, for each 16 rows and `span` elements. First those of the first 16
    /// rows, in the order of K.
    std::vector<std::uint32_t> metadata;
};

namespace detail {

template <class T>
bool is_zero(T object)
{
    if constexpr (std::is_same_v<T, f4e2m1x2>) {
        return (object.bits & 0x77U) == 0;
    } else if constexpr (std::is_same_v<T, f4e2m1>) {
        return (object.bits & 0x1CU) == 0;
    } else if constexpr (is_small_float<T>) {
        return (object.bits & 0x1FU) == 0;
    } else {
        return static_cast<float>(object) == 0;
    }
}

}  // namespace detail

/// Compresses a matrix, on the host. A chunk with fewer nonzero objects than are stored gets zeros in the first places
/// left.
///
/// @tparam T           see the table in mma_sync_sparse.cuh
/// @param matrix       (rows, row_objects), row-major
/// @param rows         a multiple of 16
/// @param row_objects  objects of a row (elements; of f4e2m1x2 pairs of them): a multiple of 64, of tf32 of 32
/// @return nothing if the extents are others, or a chunk has more nonzero objects than are stored
template <class T>
[[nodiscard]] std::optional<CompressedMatrix<T>> compress_sparse(std::span<const T> matrix, std::size_t rows,
                                                                 std::size_t row_objects)
{
    constexpr unsigned chunk = detail::sparse_chunk<T>, word_objects = 16 * chunk;
    using Metadata = SparseMetadata<T, detail::sparse_k<T>>;
    if (rows % 16 != 0 || row_objects % word_objects != 0 || matrix.size() != rows * row_objects) {
        return std::nullopt;
    }
    CompressedMatrix<T> result;
    std::vector<std::uint8_t> places;
    for (std::size_t first = 0; first < matrix.size(); first += chunk) {
        unsigned zeros = 0;
        for (unsigned i = 0; i < chunk; ++i) {
            zeros += detail::is_zero(matrix[first + i]) ? 1U : 0U;
        }
        if (zeros < chunk / 2) {
            return std::nullopt;
        }
        unsigned stored_zeros = zeros - chunk / 2;
        for (unsigned i = 0; i < chunk; ++i) {
            const bool zero = detail::is_zero(matrix[first + i]);
            if (!zero || stored_zeros > 0) {
                stored_zeros -= zero ? 1U : 0U;
                result.stored.push_back(matrix[first + i]);
                places.push_back(static_cast<std::uint8_t>(i));
            }
        }
    }
    for (std::size_t row = 0; row < rows; row += 16) {
        for (std::size_t object = 0; object < row_objects; object += word_objects) {
            for (unsigned lane = 0; lane < 32; ++lane) {
                const auto place = [&](unsigned r, unsigned i) -> unsigned {
                    return places[((row + r) * row_objects + object) / 2 + i];
                };
                result.metadata.push_back(Metadata::of(lane, place).word);
            }
        }
    }
    return result;
}

namespace detail {

template <class Metadata, class T, unsigned K>
inline constexpr bool is_metadata_of = false;
template <class T, unsigned K, unsigned Selector>
inline constexpr bool is_metadata_of<SparseMetadata<T, K, Selector>, T, K> = true;

/// Compiles only for targets that multiply these types, without scale factors.
template <class Sum, class A, class B>
__device__ constexpr void require_sparse_target()
{
#ifdef __CUDA_ARCH__
    constexpr bool small = is_small_float<A> || is_small_float<B>;
    static_assert(sizeof(A) == 1 || __CUDA_ARCH__ >= 800, "tessera: mma.sp needs compute capability 8.0");
    static_assert(sizeof(A) != 1 || small || __CUDA_ARCH__ >= 890,
                  "tessera: mma.sp of 8-bit floats needs compute capability 8.9");
    static_assert(!is_float_8<A> || small || std::is_same_v<Sum, float> || is_family_12,
                  "tessera: mma.sp of 8-bit floats with sums in f16 needs compute capability 12.x and a target such as "
                  "sm_120a or "
                  "sm_120f");
    if constexpr (small) {
        require_target_of_kind<MmaKind::f8f6f4>();
    }
#endif
}

/// The part of the instruction's name that 8-bit floats with sums in f32 do not need.
template <bool Needed>
struct kind_part;
template <>
struct kind_part<false> {
    static constexpr char value[] = "";
};
template <>
struct kind_part<true> {
    static constexpr char value[] = ".kind::f8f6f4";
};

/// The checks that products with and without scale factors share. Returns true if they hold.
template <class A, unsigned K, class Metadata, unsigned KOfB>
__device__ constexpr bool check_sparse_operands()
{
    constexpr bool metadata = is_metadata_of<Metadata, A, K>;
    static_assert(metadata, "tessera: the metadata of a sparse A is a SparseMetadata of its element type and K");
    static_assert(KOfB == K, "tessera: B must have the K of the sparse A, which counts the zeros that are not stored");
    return metadata && KOfB == K;
}

}  // namespace detail

/// Adds A * B to `c`. Called by the whole, converged warp.
/// @param c         the sums: f32, or f16 where the table in mma_sync_sparse.cuh has it
/// @param a         the stored elements of 16 rows of A
/// @param metadata  where they were: a SparseMetadata of the same elements and K
/// @param b         8 columns of B, all of K; floats of 8, 6 and 4 bits may be mixed
template <class Sum, class A, class B, unsigned K, unsigned KOfB, class Metadata>
__device__ __forceinline__ void mma(FragmentC<Sum, 16, 8>& c, const SparseFragmentA<A, 16, K>& a,
                                    const Metadata& metadata, const FragmentB<B, 8, KOfB>& b)
{
    constexpr bool byte_floats = detail::is_byte_float<A> && detail::is_byte_float<B>;
    constexpr bool types = std::is_same_v<A, B> || byte_floats;
    constexpr bool pairs = std::is_same_v<A, f4e2m1x2>;
    constexpr bool in_f32 = std::is_same_v<Sum, float>;
    constexpr bool sums = in_f32 || std::is_same_v<A, f16> || byte_floats;
    static_assert(
        types,
        "tessera: mma.sp multiplies elements of one type; only floats of 8, 6 and 4 bits in bytes of their own may "
        "be mixed");
    static_assert(!types || !pairs,
                  "tessera: mma.sp without scale factors multiplies floats in bytes of their own, not f4e2m1x2");
    static_assert(!types || pairs || sums, "tessera: mma.sp adds up products of bf16 and tf32 in f32 only");
    if constexpr (types && !pairs && sums) {
        if constexpr (detail::check_sparse_operands<A, K, Metadata, KOfB>()) {
            detail::require_sparse_target<Sum, A, B>();
            using Kind = detail::kind_part<byte_floats && !(in_f32 && detail::is_float_8<A> && detail::is_float_8<B>)>;
            constexpr unsigned chunks = SparseFragmentA<A, 16, K>::chunks;
            if constexpr (in_f32 && chunks == 2) {
                asm volatile(
                    "mma.sp::ordered_metadata.sync.aligned.m16n8k%13.row.col%14.f32.%15.%16.f32 "
                    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %17;"
                    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                    : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]),
                      "r"(b.words[1]), "r"(b.words[2]), "r"(b.words[3]), "r"(metadata.word), "n"(K), "C"(Kind::value),
                      "C"(detail::mma_name<A>::value), "C"(detail::mma_name<B>::value), "n"(Metadata::selector));
            } else if constexpr (in_f32) {
                asm volatile(
                    "mma.sp::ordered_metadata.sync.aligned.m16n8k%9.row.col.f32.%10.%11.f32 "
                    "{%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3}, %8, %12;"
                    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                    : "r"(a.words[0]), "r"(a.words[1]), "r"(b.words[0]), "r"(b.words[1]), "r"(metadata.word), "n"(K),
                      "C"(detail::mma_name<A>::value), "C"(detail::mma_name<B>::value), "n"(Metadata::selector));
            } else {
                detail::PackedSums packed(c);
                if constexpr (chunks == 2) {
                    asm volatile(
                        "mma.sp::ordered_metadata.sync.aligned.m16n8k%11.row.col%12.f16.%13.%14.f16 "
                        "{%0, %1}, {%2, %3, %4, %5}, {%6, %7, %8, %9}, {%0, %1}, %10, %15;"
                        : "+r"(packed.rows[0]), "+r"(packed.rows[1])
                        : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]),
                          "r"(b.words[1]), "r"(b.words[2]), "r"(b.words[3]), "r"(metadata.word), "n"(K),
                          "C"(Kind::value), "C"(detail::mma_name<A>::value), "C"(detail::mma_name<B>::value),
                          "n"(Metadata::selector));
                } else {
                    asm volatile(
                        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
                        "{%0, %1}, {%2, %3}, {%4, %5}, {%0, %1}, %6, %7;"
                        : "+r"(packed.rows[0]), "+r"(packed.rows[1])
                        : "r"(a.words[0]), "r"(a.words[1]), "r"(b.words[0]), "r"(b.words[1]), "r"(metadata.word),
                          "n"(Metadata::selector));
                }
                packed.unpack(c);
            }
        }
    }
}

/// Adds (A * scale_a) * (B * scale_b) to `c`, in f32. Called by the whole, converged warp.
/// @param c         the sums
/// @param a         the stored elements of 16 rows of A
/// @param metadata  where they were: a SparseMetadata of the same elements and K
/// @param b         8 columns of B, all of K
/// @param scale_a   of the rows of A
/// @param scale_b   of the columns of B
template <class A, class B, unsigned K, unsigned KOfB, class Metadata, ScaleType TypeA, ScaleVector VectorA,
          unsigned ByteA, unsigned Pair, ScaleType TypeB, ScaleVector VectorB, unsigned ByteB, unsigned Lane>
__device__ __forceinline__ void mma(FragmentC<float, 16, 8>& c, const SparseFragmentA<A, 16, K>& a,
                                    const Metadata& metadata, const FragmentB<B, 8, KOfB>& b,
                                    const ScaleFragmentA<TypeA, VectorA, ByteA, Pair>& scale_a,
                                    const ScaleFragmentB<TypeB, VectorB, ByteB, Lane>& scale_b)
{
    using Product = detail::ScaledProduct<A, B, TypeA, VectorA, TypeB, VectorB>;
    if constexpr (Product::exists) {
        if constexpr (detail::check_sparse_operands<A, K, Metadata, KOfB>()) {
            detail::require_target_of_kind<Product::kind>();
            asm volatile(
                "mma.sp::ordered_metadata.sync.aligned.m16n8k%15.row.col.kind::%16.block_scale.scale_vec::%17X.f32.%18."
                "%19.f32.%20 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %21, %13, {%22, %23}, "
                "%14, {%24, %25};"
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]),
                  "r"(b.words[2]), "r"(b.words[3]), "r"(metadata.word), "r"(scale_a.word), "r"(scale_b.word), "n"(K),
                  "C"(detail::kind_name<Product::kind>::value), "n"(static_cast<unsigned>(VectorA)),
                  "C"(detail::mma_name<A>::value), "C"(detail::mma_name<B>::value),
                  "C"(detail::scale_name<TypeA>::value), "n"(Metadata::selector), "n"(ByteA), "n"(Pair), "n"(ByteB),
                  "n"(Lane));
        }
    }
}

}  // namespace tessera
