#pragma once

/// @file
/// @ingroup tile_products
/// @brief `mma`: products of tiles on the tensor cores, and `zeros`, the sums that they begin with.

#include "tessera/detail/language.hpp"

#include <cstdint>
#include <type_traits>

#include "tessera/device/mma_sync.cuh"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/device/wgmma.cuh"
#include "tessera/tile/held.cuh"
#include "tessera/tile/math.cuh"
#include "tessera/tile/mma_tcgen05.cuh"
#include "tessera/tile/stream.cuh"
#include "tessera/tile/sums.cuh"

namespace tessera::tile {

namespace detail {

template <class X>
inline constexpr bool is_values = false;
template <class T, int R, int C, class Layout>
inline constexpr bool is_values<Tile<T, R, C, Layout>> = true;
template <class X>
inline constexpr bool is_staged = false;
template <class Machine, class View>
inline constexpr bool is_staged<Staged<Machine, View>> = true;
template <class Machine, class View>
inline constexpr bool is_staged<Held<Machine, View>> = true;

/// What can be A, B and the sums of a product.
template <class... Operands>
inline constexpr bool are_operands = false;
template <class A, class B, class C>
inline constexpr bool are_operands<A, B, C> = (is_staged<A> || is_values<A>) && is_staged<B> && is_sums<C>;

/// Says which operand of a product is none.
template <class A, class B, class... C>
constexpr auto refuse_operands()
{
    constexpr bool has_sums = sizeof...(C) == 1 && (is_sums<C> && ...);
    if constexpr (is_sums<A> && is_staged<B> && has_sums) {
        static_assert(
            tessera::detail::always_false<A>,
            "tessera: a tile in registers is multiplied as f16 or bf16, and B has the same type: convert<>() it");
    } else if constexpr (!has_sums) {
        static_assert(
            tessera::detail::always_false<A>,
            "tessera: mma(a, b, sums) adds to sums: what zeros<float, M, N>(cta) returns. A tile can replace their "
            "values: sums = tile");
    } else {
        static_assert(
            tessera::detail::always_false<A>,
            "tessera: mma(a, b, sums) reads B from shared memory, and A from there or from registers: the tiles of "
            "a stream, or hold()");
    }
}

template <class Machine, int R, int C>
struct tile_facts<Sums<Machine, R, C>> {
    static constexpr bool is_tile = true;
    using element = float;
    using layout = typename Sums<Machine, R, C>::Layout;
    static constexpr int rows = R;
    static constexpr int columns = C;

    TESSERA_TILE static auto settle(const Sums<Machine, R, C>& sums)
    {
        if constexpr (Machine::instructions == Instructions::tcgen05) {
            return sums.read();
        } else {
            auto values = sums.values();
            if constexpr (Machine::computes && Machine::instructions == Instructions::wgmma) {
                finish_products<Machine>(sums.ring());
                sums.note_reading();
                pin(Access::values(values));
            }
            return values;
        }
    }
};

/// The layout of a staged tile as an operand: A has `rows` along M, B along N.
template <class Geometry, bool IsA>
struct operand_layout {
    static constexpr bool k_major = Geometry::row_major == IsA;
    static constexpr unsigned extent = k_major ? Geometry::lines : Geometry::contiguous;
    static constexpr unsigned k = k_major ? Geometry::contiguous : Geometry::lines;
    using type = SharedLayout<k_major ? Major::k : Major::mn, Geometry::swizzle, extent, k, Geometry::bytes_of_element>;
};

template <class A, class B>
__device__ constexpr WgmmaTypes wgmma_types()
{
    constexpr bool a_e4m3 = std::is_same_v<A, f8e4m3>;
    constexpr bool b_e4m3 = std::is_same_v<B, f8e4m3>;
    if constexpr (std::is_same_v<A, f16>) {
        return WgmmaTypes::f16;
    } else if constexpr (std::is_same_v<A, bf16>) {
        return WgmmaTypes::bf16;
    } else if constexpr (std::is_same_v<A, tf32>) {
        return WgmmaTypes::tf32;
    } else {
        return a_e4m3 ? (b_e4m3 ? WgmmaTypes::e4m3_e4m3 : WgmmaTypes::e4m3_e5m2)
                      : (b_e4m3 ? WgmmaTypes::e5m2_e4m3 : WgmmaTypes::e5m2_e5m2);
    }
}

/// Multiplies on Hopper: begins, and does not wait.
template <class Machine, int M, int N, class A, class B>
__device__ __forceinline__ void multiply_wgmma(Sums<Machine, M, N>& sums, const A& a, const B& b)
{
    using Layout = typename Sums<Machine, M, N>::Layout;
    using LayoutA = typename operand_layout<typename A::Geometry, true>::type;
    using LayoutB = typename operand_layout<typename B::Geometry, false>::type;
    constexpr WgmmaTypes types = wgmma_types<typename A::element_type, typename B::element_type>();
    constexpr unsigned k_of_instruction = 32 / sizeof(typename A::element_type);
    constexpr int registers = N / 2;
    auto& values = Access::values(sums.values());
    const auto first_row = static_cast<unsigned>(sums.ring().warpgroup * (M / (Machine::warps_m / 4)));
    const auto tile_a = wgmma_descriptor<LayoutA>(of_first_lane(a.address() + LayoutA::offset(first_row, 0)));
    const auto tile_b = wgmma_descriptor<LayoutB>(of_first_lane(b.address()));
    pin(values);
    sums.ring().has_products = true;
    wgmma_fence();
#pragma unroll
    for (unsigned k = 0; k < static_cast<unsigned>(A::columns); k += k_of_instruction) {
#pragma unroll
        for (int block = 0; block < Layout::along_m; ++block) {
            auto& of_block = reinterpret_cast<float(&)[registers]>(values[block * registers]);
            constexpr std::uint32_t block_offset = LayoutA::offset(64, 0);
            wgmma<types, N>(of_block, tile_a.advanced(LayoutA::k_offset(k) + block * block_offset), tile_b.from_k(k),
                            1);
        }
    }
}

/// Packs a tile of sums, converted to 16 bits, as fragments of A: word `word` of (16, 16) elements from column 16 * step on.
template <class Layout, class Registers>
__device__ __forceinline__ std::uint32_t packed_a(const Registers& values, int m, int step, int word)
{
    // Words are in the order (row, 0), (row + 8, 0), (row, 8), (row + 8, 8).
    const int first = (m * Layout::along_n + 2 * step + word / 2) * 4 + word % 2 * 2;
    return __builtin_bit_cast(std::uint16_t, values[first]) |
           static_cast<std::uint32_t>(__builtin_bit_cast(std::uint16_t, values[first + 1])) << 16;
}

/// Multiplies a tile in registers on Hopper: begins, and does not wait.
template <class Machine, int M, int N, int K, class T, class Layout, class B>
__device__ __forceinline__ void multiply_wgmma(Sums<Machine, M, N>& sums, const Tile<T, M, K, Layout>& a, const B& b)
{
    using LayoutB = typename operand_layout<typename B::Geometry, false>::type;
    constexpr WgmmaTypes types = wgmma_types<T, T>();
    constexpr int registers = N / 2;
    auto& values = Access::values(sums.values());
    const auto tile_b = wgmma_descriptor<LayoutB>(of_first_lane(b.address()));
    std::uint32_t words[Layout::along_m][K / 16][4];
#pragma unroll
    for (int m = 0; m < Layout::along_m; ++m) {
#pragma unroll
        for (int step = 0; step < K / 16; ++step) {
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                words[m][step][word] = packed_a<Layout>(Access::values(a), m, step, word);
                asm volatile("" : "+r"(words[m][step][word])::"memory");
            }
        }
    }
    pin(values);
    sums.ring().has_products = true;
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < K / 16; ++step) {
#pragma unroll
        for (int m = 0; m < Layout::along_m; ++m) {
            auto& of_block = reinterpret_cast<float(&)[registers]>(values[m * registers]);
            wgmma<types, N>(of_block, words[m][step], tile_b.from_k(static_cast<unsigned>(16 * step)), 1);
        }
    }
}

/// Reads fragments of a staged tile: 16 rows of A, or 16 columns of B, at a time.
template <class Layout, class Fragment, bool IsA>
struct FragmentReader {
    static constexpr bool k_major = Layout::layout.major == Major::k;
    static constexpr int chunks = Fragment::chunks;
    static constexpr int words = 2 * chunks;
    static_assert(k_major || Layout::layout.element_bytes == 2,
                  "tessera: mma.sync takes tiles that are contiguous along K, but for 16-bit elements: make the input "
                  "ColumnMajor "
                  "(B) or RowMajor (A)");

    /// @param first  the first row or column that the fragment has
    __device__ static void read(std::uint32_t (&to)[words], std::uint32_t tile, int first, int k)
    {
        const int matrix = lane() / 8;
        const int along_x = IsA ? matrix % 2 : matrix / chunks % 2;
        const int along_k = (IsA ? matrix / 2 : matrix) % chunks;
        const int line = lane() % 8;
        constexpr int in_chunk = 16 / static_cast<int>(Layout::layout.element_bytes);
        const std::uint32_t offset = k_major ? Layout::offset(static_cast<unsigned>(first + 8 * along_x + line),
                                                              static_cast<unsigned>(k + along_k * in_chunk))
                                             : Layout::offset(static_cast<unsigned>(first + 8 * along_x),
                                                              static_cast<unsigned>(k + 8 * along_k + line));
        tessera::detail::load_matrices<!k_major>(to, tile + offset);
    }
};

/// Elements of K in one instruction of a warp.
template <class T>
inline constexpr int mma_sync_k =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    16 / static_cast<int>(sizeof(T));
#else
    32 / static_cast<int>(sizeof(T));
#endif

/// Multiplies with the instructions of a warp.
/// @param read_a  reads the words of 16 rows: read_a(words, block of the warp, step)
template <int K, class ElementA, class Machine, int M, int N, class B, class ReadA>
__device__ __forceinline__ void multiply_mma_sync(Sums<Machine, M, N>& sums, const B& b, ReadA&& read_a)
{
    using Layout = typename Sums<Machine, M, N>::Layout;
    using Grid = typename Layout::Grid;
    using ElementB = typename B::element_type;
    constexpr int k_step = mma_sync_k<ElementA>;
    using PartA = FragmentA<ElementA, 16, k_step>;
    using PartB = FragmentB<ElementB, 8, k_step>;
    using ReaderB = FragmentReader<typename operand_layout<typename B::Geometry, false>::type, PartB, false>;
    constexpr int words_a = 2 * PartA::chunks;
    static_assert(Layout::along_n % 2 == 0,
                  "tessera: a warp multiplies 16 columns at a time: fewer warps_n, or wider tiles");
    constexpr int steps = K / k_step;
    auto& values = Access::values(sums.values());
    std::uint32_t a_words[2][Layout::along_m][words_a];
    std::uint32_t b_words[2][Layout::along_n / 2][ReaderB::words];
    const auto read = [&](int step) {
#pragma unroll
        for (int i = 0; i < Layout::along_m; ++i) {
            read_a(a_words[step % 2][i], i, step);
        }
#pragma unroll
        for (int j = 0; j < Layout::along_n / 2; ++j) {
            ReaderB::read(b_words[step % 2][j], b.address(), Grid::n() * 8 * Layout::along_n + 16 * j, step * k_step);
        }
    };
    read(0);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            read(step + 1);
        }
#pragma unroll
        for (int i = 0; i < Layout::along_m; ++i) {
            PartA part_a;
#pragma unroll
            for (int word = 0; word < words_a; ++word) {
                part_a.words[word] = a_words[step % 2][i][word];
            }
#pragma unroll
            for (int n = 0; n < Layout::along_n; ++n) {
                const int j = i % 2 == 0 ? n : Layout::along_n - 1 - n;  // at the turn, an operand is still there
                PartB part_b;
#pragma unroll
                for (unsigned word = 0; word < PartB::chunks; ++word) {
                    part_b.words[word] = b_words[step % 2][j / 2][j % 2 * PartB::chunks + word];
                }
                FragmentC<float, 16, 8> part;
#pragma unroll
                for (int value = 0; value < 4; ++value) {
                    part[value] = values[(i * Layout::along_n + j) * 4 + value];
                }
                tessera::mma(part, part_a, part_b);
#pragma unroll
                for (int value = 0; value < 4; ++value) {
                    values[(i * Layout::along_n + j) * 4 + value] = part[value];
                }
            }
        }
    }
}

/// Multiplies two tiles in shared memory.
template <class Machine, int M, int N, class A, class B>
__device__ __forceinline__ void multiply_mma_sync(Sums<Machine, M, N>& sums, const A& a, const B& b)
{
    using Layout = typename Sums<Machine, M, N>::Layout;
    using Element = typename A::element_type;
    constexpr int k_step = mma_sync_k<Element>;
    using Reader =
        FragmentReader<typename operand_layout<typename A::Geometry, true>::type, FragmentA<Element, 16, k_step>, true>;
    multiply_mma_sync<A::columns, Element>(sums, b, [&](std::uint32_t(&words)[Reader::words], int i, int step) {
        Reader::read(words, a.address(), Layout::Grid::template first_row<Layout::along_m>(i), step * k_step);
    });
}

/// Multiplies a tile in registers.
template <class Machine, int M, int N, int K, class T, class LayoutA, class B>
__device__ __forceinline__ void multiply_mma_sync(Sums<Machine, M, N>& sums, const Tile<T, M, K, LayoutA>& a,
                                                  const B& b)
{
    constexpr int words_of_step = 2 * static_cast<int>(FragmentA<T, 16, mma_sync_k<T>>::chunks);
    multiply_mma_sync<K, T>(sums, b, [&](std::uint32_t(&words)[words_of_step], int i, int step) {
#pragma unroll
        for (int word = 0; word < words_of_step; ++word) {
            const int all = step * words_of_step + word;  // of the row, four for each 16 columns
            words[word] = packed_a<LayoutA>(Access::values(a), i, all / 4, all % 4);
        }
    });
}

}  // namespace detail

/// Returns sums of 0, for `mma`.
/// @tparam T  float
template <class T, int Rows, int Columns, class Machine>
TESSERA_TILE Sums<Machine, Rows, Columns> zeros(Cta<Machine> cta)
{
    static_assert(std::is_same_v<T, float>, "tessera: products are added up in float");
    if constexpr (Machine::instructions == Instructions::tcgen05) {
        return Sums<Machine, Rows, Columns>(cta.ring());
    } else {
        using Layout = typename Sums<Machine, Rows, Columns>::Layout;
        Tile<float, Rows, Columns, Layout> values;
        if constexpr (Layout::registers > 0) {
            detail::unrolled<Layout::registers>([&](int i) { detail::Access::values(values)[i] = 0.0F; });
        }
        return Sums<Machine, Rows, Columns>(values, cta.ring());
    }
}

/// Returns sums + A * B, on the tensor cores.
///
/// A is (M, K), B is (K, N), both in shared memory: tiles of a stream. The elements are f16, bf16, tf32, or 8-bit floats, which may
/// be mixed; the sums are float. Tiles of other than 16-bit elements must be contiguous along K: A row-major, B column-major.
template <class Machine, class ViewA, class ViewB, int M, int N>
TESSERA_TILE Sums<Machine, M, N> mma([[maybe_unused]] const Staged<Machine, ViewA>& a,
                                     [[maybe_unused]] const Staged<Machine, ViewB>& b, Sums<Machine, M, N> sums)
{
    static_assert(ViewA::columns == ViewB::rows, "tessera: A has other columns than B has rows: A*B needs them equal");
    static_assert(
        ViewA::rows == M && ViewB::columns == N,
        "tessera: the sums have other rows than A, or other columns than B: zeros<float, M, N>(cta) of the product");
    using A = typename ViewA::element_type;
    using B = typename ViewB::element_type;
    static_assert(std::is_same_v<A, B> || (sizeof(A) == 1 && sizeof(B) == 1),
                  "tessera: tensor cores multiply elements of one type; only f8e4m3 and f8e5m2 may be mixed");
    static_assert(!std::is_same_v<A, float>,
                  "tessera: tensor cores do not multiply float: read the input as tf32, or store it as bf16 or f16");
    static_assert(
        ViewA::columns * sizeof(A) % 32 == 0,
        "tessera: tensor cores multiply 32 bytes of each row of A at a time: tiles with a multiple of that along K");
    static_assert(
        sizeof(A) == 2 || (ViewA::Staged::row_major && !ViewB::Staged::row_major),
        "tessera: tiles of other than 16-bit elements are multiplied contiguous along K: A is RowMajor, and B "
        "ColumnMajor");
    if constexpr (Machine::instructions == Instructions::tcgen05) {
        detail::multiply_tcgen05(sums, a, b);
    } else if constexpr (Machine::computes && Machine::instructions == Instructions::wgmma) {
        detail::multiply_wgmma(sums, a, b);
        sums.note_product();
    } else if constexpr (Machine::computes) {
        detail::multiply_mma_sync(sums, a, b);
    }
    return sums;
}

/// Returns sums + A * B with A in registers: a tile of sums, converted to f16 or bf16, as the weights of attention are.
///
/// Each warp must have whole rows of A: hints with warps_n = 1.
template <class Machine, class T, int M, int K, class Layout, class ViewB, int N>
TESSERA_TILE Sums<Machine, M, N> mma([[maybe_unused]] const Tile<T, M, K, Layout>& a,
                                     [[maybe_unused]] const Staged<Machine, ViewB>& b, Sums<Machine, M, N> sums)
{
    static_assert(K == ViewB::rows, "tessera: A has other columns than B has rows: A*B needs them equal");
    static_assert(
        ViewB::columns == N,
        "tessera: the sums have other rows than A, or other columns than B: zeros<float, M, N>(cta) of the product");
    static_assert(
        std::is_same_v<T, typename ViewB::element_type> && (std::is_same_v<T, f16> || std::is_same_v<T, bf16>),
        "tessera: a tile in registers is multiplied as f16 or bf16, and B has the same type: convert<>() it");
    static_assert(
        Machine::warps_n == 1 || Machine::instructions == Instructions::tcgen05,
        "tessera: a tile in registers is multiplied by warps that have whole rows of it: hints with warps_n = 1");
    static_assert(K % 16 == 0, "tessera: tensor cores multiply 16 columns at a time");
    if constexpr (Machine::instructions == Instructions::tcgen05) {
        using Lanes = typename detail::Layouts<Machine>::template Of<typename detail::lane_layout<Machine, M, K>::Tile>;
        detail::multiply_tcgen05(sums, detail::aligned<Lanes, M, K>(a), b);
    } else {
        using Fragments = typename detail::Layouts<Machine>::template Of<detail::Fragments<M, K, Machine::warps_m, 1>>;
        const auto aligned = detail::aligned<Fragments, M, K>(a);
        if constexpr (Machine::computes && Machine::instructions == Instructions::wgmma) {
            detail::multiply_wgmma(sums, aligned, b);
            sums.note_product();
        } else if constexpr (Machine::computes) {
            detail::multiply_mma_sync(sums, aligned, b);
        }
    }
    return sums;
}

/// Refuses to compile what are no operands.
template <class A, class B, class... C>
    requires((detail::is_staged<A> || detail::is_values<A> || detail::is_sums<A> || detail::is_staged<B>) &&
             !detail::are_operands<A, B, C...>)
TESSERA_TILE auto mma(const A&, const B&, const C&...)
{
    return detail::refuse_operands<A, B, C...>();
}

}  // namespace tessera::tile
