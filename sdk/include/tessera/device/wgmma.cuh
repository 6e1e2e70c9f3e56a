#pragma once

/// @file
/// @ingroup device_mma
/// @brief Hopper's warpgroup matrix instructions (wgmma, sm_90a), which cuda::ptx lacks.
///
/// An instruction computes D (64, N) += A (64, 32 bytes of K) * B (32 bytes of K, N), with D in the registers of a
/// warpgroup and A and B in shared memory. All four warps of a warpgroup execute everything here, converged.
///
/// @code{.cpp}
/// float d[1][64] = {};  // (64, 128): 64 registers per thread
/// const auto a_tile = wgmma_descriptor<Layout>(shared_address(a[0]));
/// const auto b_tile = wgmma_descriptor<Layout>(shared_address(b[0]));
/// wgmma_fence();
/// for (std::uint32_t k = 0; k < 64; k += 16) {
///     wgmma<WgmmaTypes::bf16, 128>(d[0], a_tile.from_k(k), b_tile.from_k(k), 1);
/// }
/// wgmma_commit();
/// wgmma_finish(d);
/// @endcode
///
/// Between `wgmma_fence` and the wait, the accumulator belongs to the tensor core. Register 4j + 2i + h of lane t in
/// warp w of the warpgroup is element (16w + t/4 + 8i, 8j + 2(t%4) + h) of D.
///
/// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".

#include <cstdint>

#include "tessera/device/smem_descriptor.hpp"

namespace tessera {

/// The element types of A and B. Products are accumulated in fp32; for 8-bit types the tensor core keeps about 14 bits
/// of a sum.
enum class WgmmaTypes : std::uint8_t {
    f16,        ///< both f16
    bf16,       ///< both bf16
    tf32,       ///< both tf32
    e4m3_e4m3,  ///< both e4m3
    e4m3_e5m2,  ///< A e4m3, B e5m2
    e5m2_e4m3,  ///< A e5m2, B e4m3
    e5m2_e5m2   ///< both e5m2
};

/// Bytes of an element of A and B.
template <WgmmaTypes Types>
inline constexpr std::uint32_t wgmma_element_bytes = Types == WgmmaTypes::tf32                               ? 4
                                                     : Types == WgmmaTypes::f16 || Types == WgmmaTypes::bf16 ? 2
                                                                                                             : 1;

/// The rows of D that one instruction computes.
inline constexpr int wgmma_m = 64;

/// Orders earlier accesses to the accumulator's registers before the instructions that follow. Call it before the first
/// instruction, and again after other code wrote the registers.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/// Closes a group of instructions.
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until at most `Newest` groups are unfinished.
/// @tparam Newest  0 waits for all
template <int Newest>
__device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Newest) : "memory");
}

/// Waits for all groups. Only after this may `accumulators` be read: it tells the compiler that they change here, so
/// that no use of them moves before the wait.
template <int Blocks, int Registers>
__device__ __forceinline__ void wgmma_finish(float (&accumulators)[Blocks][Registers])
{
    wgmma_wait<0>();
#pragma unroll
    for (auto& block : accumulators) {
#pragma unroll
        for (float& value : block) {
            asm volatile("" : "+f"(value)::"memory");
        }
    }
}

namespace detail {

// clang-format off
// One operand list per N (D), its numbers in the instruction's text (R) and what follows there (P, S, T), and one text
// per type. Each list begins with the previous one. Undefined again below.
#define TESSERA_DETAIL_D8 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define TESSERA_DETAIL_R8 \
    "%0, %1, %2, %3"
#define TESSERA_DETAIL_S8 "%4, %5, p, 1, 1"
#define TESSERA_DETAIL_P8 "%6"
#define TESSERA_DETAIL_T8 ", %7, %8"
#define TESSERA_DETAIL_D16 \
    TESSERA_DETAIL_D8, \
    "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define TESSERA_DETAIL_R16 \
    TESSERA_DETAIL_R8 \
    ", %4, %5, %6, %7"
#define TESSERA_DETAIL_S16 "%8, %9, p, 1, 1"
#define TESSERA_DETAIL_P16 "%10"
#define TESSERA_DETAIL_T16 ", %11, %12"
#define TESSERA_DETAIL_D32 \
    TESSERA_DETAIL_D16, \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define TESSERA_DETAIL_R32 \
    TESSERA_DETAIL_R16 \
    ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TESSERA_DETAIL_S32 "%16, %17, p, 1, 1"
#define TESSERA_DETAIL_P32 "%18"
#define TESSERA_DETAIL_T32 ", %19, %20"
#define TESSERA_DETAIL_D64 \
    TESSERA_DETAIL_D32, \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
    "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define TESSERA_DETAIL_R64 \
    TESSERA_DETAIL_R32 \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TESSERA_DETAIL_S64 "%32, %33, p, 1, 1"
#define TESSERA_DETAIL_P64 "%34"
#define TESSERA_DETAIL_T64 ", %35, %36"
#define TESSERA_DETAIL_D72 \
    TESSERA_DETAIL_D64, \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define TESSERA_DETAIL_R72 \
    TESSERA_DETAIL_R64 \
    ", %32, %33, %34, %35"
#define TESSERA_DETAIL_S72 "%36, %37, p, 1, 1"
#define TESSERA_DETAIL_P72 "%38"
#define TESSERA_DETAIL_T72 ", %39, %40"
#define TESSERA_DETAIL_D80 \
    TESSERA_DETAIL_D72, \
    "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define TESSERA_DETAIL_R80 \
    TESSERA_DETAIL_R72 \
    ", %36, %37, %38, %39"
#define TESSERA_DETAIL_S80 "%40, %41, p, 1, 1"
#define TESSERA_DETAIL_P80 "%42"
#define TESSERA_DETAIL_T80 ", %43, %44"
#define TESSERA_DETAIL_D96 \
    TESSERA_DETAIL_D80, \
    "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define TESSERA_DETAIL_R96 \
    TESSERA_DETAIL_R80 \
    ", %40, %41, %42, %43, %44, %45, %46, %47"
#define TESSERA_DETAIL_S96 "%48, %49, p, 1, 1"
#define TESSERA_DETAIL_P96 "%50"
#define TESSERA_DETAIL_T96 ", %51, %52"
#define TESSERA_DETAIL_D112 \
    TESSERA_DETAIL_D96, \
    "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define TESSERA_DETAIL_R112 \
    TESSERA_DETAIL_R96 \
    ", %48, %49, %50, %51, %52, %53, %54, %55"
#define TESSERA_DETAIL_S112 "%56, %57, p, 1, 1"
#define TESSERA_DETAIL_P112 "%58"
#define TESSERA_DETAIL_T112 ", %59, %60"
#define TESSERA_DETAIL_D128 \
    TESSERA_DETAIL_D112, \
    "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define TESSERA_DETAIL_R128 \
    TESSERA_DETAIL_R112 \
    ", %56, %57, %58, %59, %60, %61, %62, %63"
#define TESSERA_DETAIL_S128 "%64, %65, p, 1, 1"
#define TESSERA_DETAIL_P128 "%66"
#define TESSERA_DETAIL_T128 ", %67, %68"
#define TESSERA_DETAIL_D144 \
    TESSERA_DETAIL_D128, \
    "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define TESSERA_DETAIL_R144 \
    TESSERA_DETAIL_R128 \
    ", %64, %65, %66, %67, %68, %69, %70, %71"
#define TESSERA_DETAIL_S144 "%72, %73, p, 1, 1"
#define TESSERA_DETAIL_P144 "%74"
#define TESSERA_DETAIL_T144 ", %75, %76"
#define TESSERA_DETAIL_D168 \
    TESSERA_DETAIL_D144, \
    "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), \
    "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83])
#define TESSERA_DETAIL_R168 \
    TESSERA_DETAIL_R144 \
    ", %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83"
#define TESSERA_DETAIL_S168 "%84, %85, p, 1, 1"
#define TESSERA_DETAIL_P168 "%86"
#define TESSERA_DETAIL_T168 ", %87, %88"
#define TESSERA_DETAIL_D192 \
    TESSERA_DETAIL_D168, \
    "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), \
    "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define TESSERA_DETAIL_R192 \
    TESSERA_DETAIL_R168 \
    ", %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TESSERA_DETAIL_S192 "%96, %97, p, 1, 1"
#define TESSERA_DETAIL_P192 "%98"
#define TESSERA_DETAIL_T192 ", %99, %100"
#define TESSERA_DETAIL_D256 \
    TESSERA_DETAIL_D192, \
    "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), \
    "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), \
    "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), \
    "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
#define TESSERA_DETAIL_R256 \
    TESSERA_DETAIL_R192 \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TESSERA_DETAIL_S256 "%128, %129, p, 1, 1"
#define TESSERA_DETAIL_P256 "%130"
#define TESSERA_DETAIL_T256 ", %131, %132"
#define TESSERA_DETAIL_WGMMA(N, K, TYPES, MAJORS, ...)                                                         \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " TESSERA_DETAIL_P##N ", 0;\n\t"                        \
                 "wgmma.mma_async.sync.aligned.m64n" #N K ".f32" TYPES " "                                     \
                 "{" TESSERA_DETAIL_R##N "}, " TESSERA_DETAIL_S##N MAJORS ";\n\t}"                             \
                 : TESSERA_DETAIL_D##N                                                                         \
                 : "l"(a.bits()), "l"(b.bits()), "r"(accumulate) __VA_OPT__(, ) __VA_ARGS__)
#define TESSERA_DETAIL_TYPES(N)                                                                                \
    if constexpr (Columns == (N)) {                                                                            \
        if constexpr (Types == WgmmaTypes::f16) {                                                              \
            TESSERA_DETAIL_WGMMA(N, "k16", ".f16.f16", TESSERA_DETAIL_T##N, "n"(major_a), "n"(major_b));        \
        } else if constexpr (Types == WgmmaTypes::bf16) {                                                      \
            TESSERA_DETAIL_WGMMA(N, "k16", ".bf16.bf16", TESSERA_DETAIL_T##N, "n"(major_a), "n"(major_b));      \
        } else if constexpr (Types == WgmmaTypes::tf32) {                                                      \
            TESSERA_DETAIL_WGMMA(N, "k8", ".tf32.tf32", "");                                                   \
        } else if constexpr (Types == WgmmaTypes::e4m3_e4m3) {                                                 \
            TESSERA_DETAIL_WGMMA(N, "k32", ".e4m3.e4m3", "");                                                  \
        } else if constexpr (Types == WgmmaTypes::e4m3_e5m2) {                                                 \
            TESSERA_DETAIL_WGMMA(N, "k32", ".e4m3.e5m2", "");                                                  \
        } else if constexpr (Types == WgmmaTypes::e5m2_e4m3) {                                                 \
            TESSERA_DETAIL_WGMMA(N, "k32", ".e5m2.e4m3", "");                                                  \
        } else {                                                                                               \
            TESSERA_DETAIL_WGMMA(N, "k32", ".e5m2.e5m2", "");                                                  \
        }                                                                                                      \
    }
// A in registers: its four, the descriptor, the predicate's number, and the direction of B.
#define TESSERA_DETAIL_A16 "{%8, %9, %10, %11}, %12, p, 1, 1, %14"
#define TESSERA_DETAIL_Q16 "%13"
#define TESSERA_DETAIL_A32 "{%16, %17, %18, %19}, %20, p, 1, 1, %22"
#define TESSERA_DETAIL_Q32 "%21"
#define TESSERA_DETAIL_A64 "{%32, %33, %34, %35}, %36, p, 1, 1, %38"
#define TESSERA_DETAIL_Q64 "%37"
#define TESSERA_DETAIL_A128 "{%64, %65, %66, %67}, %68, p, 1, 1, %70"
#define TESSERA_DETAIL_Q128 "%69"
#define TESSERA_DETAIL_A256 "{%128, %129, %130, %131}, %132, p, 1, 1, %134"
#define TESSERA_DETAIL_Q256 "%133"
#define TESSERA_DETAIL_WGMMA_A(N, TYPES)                                                                       \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " TESSERA_DETAIL_Q##N ", 0;\n\t"                        \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32" TYPES " "                                    \
                 "{" TESSERA_DETAIL_R##N "}, " TESSERA_DETAIL_A##N ";\n\t}"                                    \
                 : TESSERA_DETAIL_D##N                                                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits()), "r"(accumulate), "n"(major_b))
#define TESSERA_DETAIL_TYPES_A(N)                                                                              \
    if constexpr (Columns == (N)) {                                                                            \
        if constexpr (Types == WgmmaTypes::f16) {                                                              \
            TESSERA_DETAIL_WGMMA_A(N, ".f16.f16");                                                             \
        } else {                                                                                               \
            TESSERA_DETAIL_WGMMA_A(N, ".bf16.bf16");                                                           \
        }                                                                                                      \
    }
// clang-format on

}  // namespace detail

/// Issues one instruction: D = A * B, plus D if `accumulate` is not 0. Asynchronous; called by all four warps of a
/// warpgroup, converged, between `wgmma_fence` and `wgmma_commit`.
///
/// @tparam Types      element types of A and B
/// @tparam Columns    N: 8, 16, 32, 64, 72, 80, 96, 112, 128, 144, 168, 192 or 256
/// @param d           the thread's registers of D
/// @param a, b        descriptors of the operands, see smem_descriptor.hpp. Their layouts say which way they are contiguous:
///                    other than along K only for f16 and bf16
/// @param accumulate  0 overwrites D
template <WgmmaTypes Types, int Columns, class LayoutA, class LayoutB>
__device__ __forceinline__ void wgmma(float (&d)[Columns / 2], SmemDescriptor<TensorCore::wgmma, LayoutA> a,
                                      SmemDescriptor<TensorCore::wgmma, LayoutB> b, int accumulate)
{
    constexpr TileLayout tile_a = LayoutA::layout;
    constexpr TileLayout tile_b = LayoutB::layout;
    constexpr Major MajorA = tile_a.major;
    constexpr Major MajorB = tile_b.major;
    constexpr std::uint32_t element_bytes = wgmma_element_bytes<Types>;
    static_assert(tile_a.element_bytes == element_bytes && tile_b.element_bytes == element_bytes,
                  "tessera: the tile's elements are larger or smaller than those that the instruction multiplies");
    static_assert(tile_a.rows >= wgmma_m && tile_b.rows >= Columns,
                  "tessera: wgmma reads 64 rows of A and `Columns` rows of B, and the tile has fewer");
    static_assert(Columns == 8 || Columns == 16 || Columns == 32 || Columns == 64 || Columns == 72 || Columns == 80 ||
                      Columns == 96 || Columns == 112 || Columns == 128 || Columns == 144 || Columns == 168 ||
                      Columns == 192 || Columns == 256,
                  "tessera: this wgmma supports N = 8, 16, 32, 64, 72, 80, 96, 112, 128, 144, 168, 192, 256");
    static_assert((MajorA == Major::k && MajorB == Major::k) || Types == WgmmaTypes::f16 || Types == WgmmaTypes::bf16,
                  "tessera: wgmma takes an M- or N-major operand of f16 or bf16 only: other types must be K-major");
    [[maybe_unused]] constexpr int major_a = static_cast<int>(MajorA);
    [[maybe_unused]] constexpr int major_b = static_cast<int>(MajorB);
    TESSERA_DETAIL_TYPES(8)
    TESSERA_DETAIL_TYPES(16)
    TESSERA_DETAIL_TYPES(32)
    TESSERA_DETAIL_TYPES(64)
    TESSERA_DETAIL_TYPES(72)
    TESSERA_DETAIL_TYPES(80)
    TESSERA_DETAIL_TYPES(96)
    TESSERA_DETAIL_TYPES(112)
    TESSERA_DETAIL_TYPES(128)
    TESSERA_DETAIL_TYPES(144)
    TESSERA_DETAIL_TYPES(168)
    TESSERA_DETAIL_TYPES(192)
    TESSERA_DETAIL_TYPES(256)
}

/// Issues one instruction with A in registers: D = A * B, plus D if `accumulate` is not 0. As the other overload.
///
/// Word 2j + i of lane t in warp w of the warpgroup has elements (16w + t/4 + 8i, 8j + 2(t%4)) and the one right of it of A
/// (64, 16). They are the registers 8j + 2i of the sums of an earlier instruction, packed in pairs: a result becomes an operand
/// without a detour. The registers belong to the tensor core until the wait.
///
/// @tparam Types    f16 or bf16
/// @tparam Columns  N: 16, 32, 64, 128 or 256
template <WgmmaTypes Types, int Columns, class LayoutB>
__device__ __forceinline__ void wgmma(float (&d)[Columns / 2], const std::uint32_t (&a)[4],
                                      SmemDescriptor<TensorCore::wgmma, LayoutB> b, int accumulate)
{
    constexpr TileLayout tile_b = LayoutB::layout;
    static_assert(Types == WgmmaTypes::f16 || Types == WgmmaTypes::bf16,
                  "tessera: this wgmma takes A from registers in f16 and bf16 only");
    static_assert(tile_b.element_bytes == 2 && tile_b.rows >= Columns,
                  "tessera: wgmma reads `Columns` rows of 16-bit elements of B, and the tile has others or fewer");
    static_assert(Columns == 16 || Columns == 32 || Columns == 64 || Columns == 128 || Columns == 256,
                  "tessera: wgmma with A in registers supports N = 16, 32, 64, 128, 256");
    constexpr int major_b = static_cast<int>(tile_b.major);
    TESSERA_DETAIL_TYPES_A(16)
    TESSERA_DETAIL_TYPES_A(32)
    TESSERA_DETAIL_TYPES_A(64)
    TESSERA_DETAIL_TYPES_A(128)
    TESSERA_DETAIL_TYPES_A(256)
}

#undef TESSERA_DETAIL_D8
#undef TESSERA_DETAIL_R8
#undef TESSERA_DETAIL_S8
#undef TESSERA_DETAIL_P8
#undef TESSERA_DETAIL_T8
#undef TESSERA_DETAIL_D16
#undef TESSERA_DETAIL_R16
#undef TESSERA_DETAIL_S16
#undef TESSERA_DETAIL_P16
#undef TESSERA_DETAIL_T16
#undef TESSERA_DETAIL_D32
#undef TESSERA_DETAIL_R32
#undef TESSERA_DETAIL_S32
#undef TESSERA_DETAIL_P32
#undef TESSERA_DETAIL_T32
#undef TESSERA_DETAIL_D64
#undef TESSERA_DETAIL_R64
#undef TESSERA_DETAIL_S64
#undef TESSERA_DETAIL_P64
#undef TESSERA_DETAIL_T64
#undef TESSERA_DETAIL_D72
#undef TESSERA_DETAIL_R72
#undef TESSERA_DETAIL_S72
#undef TESSERA_DETAIL_P72
#undef TESSERA_DETAIL_T72
#undef TESSERA_DETAIL_D80
#undef TESSERA_DETAIL_R80
#undef TESSERA_DETAIL_S80
#undef TESSERA_DETAIL_P80
#undef TESSERA_DETAIL_T80
#undef TESSERA_DETAIL_D96
#undef TESSERA_DETAIL_R96
#undef TESSERA_DETAIL_S96
#undef TESSERA_DETAIL_P96
#undef TESSERA_DETAIL_T96
#undef TESSERA_DETAIL_D112
#undef TESSERA_DETAIL_R112
#undef TESSERA_DETAIL_S112
#undef TESSERA_DETAIL_P112
#undef TESSERA_DETAIL_T112
#undef TESSERA_DETAIL_D128
#undef TESSERA_DETAIL_R128
#undef TESSERA_DETAIL_S128
#undef TESSERA_DETAIL_P128
#undef TESSERA_DETAIL_T128
#undef TESSERA_DETAIL_D144
#undef TESSERA_DETAIL_R144
#undef TESSERA_DETAIL_S144
#undef TESSERA_DETAIL_P144
#undef TESSERA_DETAIL_T144
#undef TESSERA_DETAIL_D168
#undef TESSERA_DETAIL_R168
#undef TESSERA_DETAIL_S168
#undef TESSERA_DETAIL_P168
#undef TESSERA_DETAIL_T168
#undef TESSERA_DETAIL_D192
#undef TESSERA_DETAIL_R192
#undef TESSERA_DETAIL_S192
#undef TESSERA_DETAIL_P192
#undef TESSERA_DETAIL_T192
#undef TESSERA_DETAIL_D256
#undef TESSERA_DETAIL_R256
#undef TESSERA_DETAIL_S256
#undef TESSERA_DETAIL_P256
#undef TESSERA_DETAIL_T256
#undef TESSERA_DETAIL_A16
#undef TESSERA_DETAIL_Q16
#undef TESSERA_DETAIL_A32
#undef TESSERA_DETAIL_Q32
#undef TESSERA_DETAIL_A64
#undef TESSERA_DETAIL_Q64
#undef TESSERA_DETAIL_A128
#undef TESSERA_DETAIL_Q128
#undef TESSERA_DETAIL_A256
#undef TESSERA_DETAIL_Q256
#undef TESSERA_DETAIL_WGMMA_A
#undef TESSERA_DETAIL_TYPES_A
#undef TESSERA_DETAIL_WGMMA
#undef TESSERA_DETAIL_TYPES

}  // namespace tessera
