#pragma once

// wgmma and mma.sync of one tile, for the probes: an instruction is a type with a function run(), called by all threads.

#include <cstdint>

#include "probe_check.hpp"

namespace tessera::probe {

/// Rows of 32 bytes of A (64) and B (8), in the canonical K-major layout without swizzle: 8 rows x 16 bytes are 128
/// contiguous bytes; the two K halves are 128 bytes apart, groups of 8 rows 256.
inline __device__ std::uint64_t descriptor(const void* shared)
{
    const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(shared));
    return ((address & 0x3FFFF) >> 4) | (std::uint64_t{128 >> 4} << 16) | (std::uint64_t{256 >> 4} << 32);
}

/// Where a row's 32-bit word is in this layout.
inline __device__ unsigned place_of(unsigned row, unsigned word)
{
    return row / 8 * 64 + word / 4 * 32 + row % 8 * 4 + word % 4;
}

/// An instruction from its fence to its end, in one piece: nothing may come in between.
#define WGMMA(INSTRUCTION, D, A, B, PREDICATE, IMMEDIATES)                                                            \
    "{ .reg .pred p; setp.ne.b32 p, " PREDICATE                                                                       \
    ", 0;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned." INSTRUCTION " " D ", " A ", " B ", p" IMMEDIATES \
    ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0; }"
#define WGMMA_4(NAME, INSTRUCTION, IMMEDIATES)                                               \
    struct NAME {                                                                            \
        static constexpr int registers = 4;                                                  \
        static __device__ void run(std::uint32_t* d, std::uint64_t a, std::uint64_t b)       \
        {                                                                                    \
            asm volatile(WGMMA(INSTRUCTION, "{%0, %1, %2, %3}", "%4", "%5", "1", IMMEDIATES) \
                         : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                    \
                         : "l"(a), "l"(b)                                                    \
                         : "memory");                                                        \
        }                                                                                    \
    };
#define WGMMA_F(NAME, INSTRUCTION, PREDICATE, IMMEDIATES)                                          \
    struct NAME {                                                                                  \
        static constexpr int registers = 4;                                                        \
        static __device__ void run(std::uint32_t* d, std::uint64_t a, std::uint64_t b)             \
        {                                                                                          \
            float f[4];                                                                            \
            for (int i = 0; i < 4; ++i) {                                                          \
                f[i] = __uint_as_float(d[i]);                                                      \
            }                                                                                      \
            asm volatile(WGMMA(INSTRUCTION, "{%0, %1, %2, %3}", "%4", "%5", PREDICATE, IMMEDIATES) \
                         : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])                          \
                         : "l"(a), "l"(b)                                                          \
                         : "memory");                                                              \
            for (int i = 0; i < 4; ++i) {                                                          \
                asm volatile("mov.b32 %0, %1;" : "=r"(d[i]) : "f"(f[i]));                          \
            }                                                                                      \
        }                                                                                          \
    };
#define WGMMA_H(NAME, INSTRUCTION, IMMEDIATES)                                         \
    struct NAME {                                                                      \
        static constexpr int registers = 2;                                            \
        static __device__ void run(std::uint32_t* d, std::uint64_t a, std::uint64_t b) \
        {                                                                              \
            asm volatile(WGMMA(INSTRUCTION, "{%0, %1}", "%2", "%3", "1", IMMEDIATES)   \
                         : "+r"(d[0]), "+r"(d[1])                                      \
                         : "l"(a), "l"(b)                                              \
                         : "memory");                                                  \
        }                                                                              \
    };

WGMMA_F(F16F32, "m64n8k16.f32.f16.f16", "1", ", 1, 1, 0, 0")
WGMMA_H(F16F16, "m64n8k16.f16.f16.f16", ", 1, 1, 0, 0")
WGMMA_F(Bf16F32, "m64n8k16.f32.bf16.bf16", "1", ", 1, 1, 0, 0")
WGMMA_F(Tf32F32, "m64n8k8.f32.tf32.tf32", "1", ", 1, 1")
WGMMA_F(E4E4F32, "m64n8k32.f32.e4m3.e4m3", "1", ", 1, 1")
WGMMA_F(E4E5F32, "m64n8k32.f32.e4m3.e5m2", "1", ", 1, 1")
WGMMA_F(E5E4F32, "m64n8k32.f32.e5m2.e4m3", "1", ", 1, 1")
WGMMA_F(E5E5F32, "m64n8k32.f32.e5m2.e5m2", "1", ", 1, 1")
WGMMA_H(E4E4F16, "m64n8k32.f16.e4m3.e4m3", ", 1, 1")
WGMMA_H(E4E5F16, "m64n8k32.f16.e4m3.e5m2", ", 1, 1")
WGMMA_H(E5E4F16, "m64n8k32.f16.e5m2.e4m3", ", 1, 1")
WGMMA_H(E5E5F16, "m64n8k32.f16.e5m2.e5m2", ", 1, 1")
WGMMA_4(S8S8, "m64n8k32.s32.s8.s8", "")
WGMMA_4(S8U8, "m64n8k32.s32.s8.u8", "")
WGMMA_4(U8S8, "m64n8k32.s32.u8.s8", "")
WGMMA_4(U8U8, "m64n8k32.s32.u8.u8", "")
WGMMA_4(S8S8Sat, "m64n8k32.s32.s8.s8.satfinite", "")
WGMMA_4(U8U8Sat, "m64n8k32.s32.u8.u8.satfinite", "")
WGMMA_F(F16F32Negated, "m64n8k16.f32.f16.f16", "1", ", -1, 1, 0, 0")
WGMMA_F(F16F32WithoutD, "m64n8k16.f32.f16.f16", "0", ", 1, 1, 0, 0")

/// mma.sync m16n8: B words of B (twice as many of A) and C of the accumulator per thread; a row of A or B has
/// 16 * B bytes.
#define MMA(NAME, B, C, INSTRUCTION, OPERANDS, OUTPUTS, INPUTS)                                      \
    struct NAME {                                                                                    \
        static constexpr int b_words = B;                                                            \
        static constexpr int c_words = C;                                                            \
        static __device__ void run(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b) \
        {                                                                                            \
            asm volatile("mma.sync.aligned." INSTRUCTION " " OPERANDS ";" : OUTPUTS : INPUTS);       \
        }                                                                                            \
    };
#define OUT4 "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
#define OUT2 "+r"(d[0]), "+r"(d[1])
#define IN42 "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
#define IN21 "r"(a[0]), "r"(a[1]), "r"(b[0])
#define OPS_4_42 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}"
#define OPS_4_21 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3}"
#define OPS_2_42 "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1}"
#define OPS_2_21 "{%0, %1}, {%2, %3}, {%4}, {%0, %1}"

template <int B>
struct Words {
    static constexpr int b_words = B;
    static constexpr int c_words = 4;
};
#define MMA_F42(NAME, INSTRUCTION)                                                                    \
    struct NAME : Words<2> {                                                                          \
        static __device__ void run(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b)  \
        {                                                                                             \
            asm volatile(                                                                             \
                "{ .reg .f32 f<4>; mov.b32 f0, %0; mov.b32 f1, %1; mov.b32 f2, %2; mov.b32 f3, %3;\n" \
                "mma.sync.aligned." INSTRUCTION                                                       \
                " {f0, f1, f2, f3}, {%4, %5, %6, %7}, {%8, %9}, {f0, f1, f2, f3};\n"                  \
                "mov.b32 %0, f0; mov.b32 %1, f1; mov.b32 %2, f2; mov.b32 %3, f3; }"                   \
                : OUT4                                                                                \
                : IN42);                                                                              \
        }                                                                                             \
    };
#define MMA_F21(NAME, INSTRUCTION)                                                                    \
    struct NAME : Words<1> {                                                                          \
        static __device__ void run(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b)  \
        {                                                                                             \
            asm volatile(                                                                             \
                "{ .reg .f32 f<4>; mov.b32 f0, %0; mov.b32 f1, %1; mov.b32 f2, %2; mov.b32 f3, %3;\n" \
                "mma.sync.aligned." INSTRUCTION                                                       \
                " {f0, f1, f2, f3}, {%4, %5}, {%6}, {f0, f1, f2, f3};\n"                              \
                "mov.b32 %0, f0; mov.b32 %1, f1; mov.b32 %2, f2; mov.b32 %3, f3; }"                   \
                : OUT4                                                                                \
                : IN21);                                                                              \
        }                                                                                             \
    };

MMA_F21(MmaF16K8, "m16n8k8.row.col.f32.f16.f16.f32")
MMA_F42(MmaF16K16, "m16n8k16.row.col.f32.f16.f16.f32")
MMA(MmaHalfK8, 1, 2, "m16n8k8.row.col.f16.f16.f16.f16", OPS_2_21, OUT2, IN21)
MMA(MmaHalfK16, 2, 2, "m16n8k16.row.col.f16.f16.f16.f16", OPS_2_42, OUT2, IN42)
MMA_F21(MmaBf16K8, "m16n8k8.row.col.f32.bf16.bf16.f32")
MMA_F42(MmaBf16K16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_F21(MmaTf32K4, "m16n8k4.row.col.f32.tf32.tf32.f32")
MMA_F42(MmaTf32K8, "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA_F42(MmaE4E4, "m16n8k32.row.col.f32.e4m3.e4m3.f32")
MMA_F42(MmaE5E5, "m16n8k32.row.col.f32.e5m2.e5m2.f32")
MMA_F42(MmaE4E5, "m16n8k32.row.col.f32.e4m3.e5m2.f32")
MMA(MmaE4E4Half, 2, 2, "m16n8k32.row.col.f16.e4m3.e4m3.f16", OPS_2_42, OUT2, IN42)
MMA_F21(MmaE4E4K16, "m16n8k16.row.col.f32.e4m3.e4m3.f32")
MMA(MmaE5E4HalfK16, 1, 2, "m16n8k16.row.col.f16.e5m2.e4m3.f16", OPS_2_21, OUT2, IN21)
MMA(MmaS8K16, 1, 4, "m16n8k16.row.col.s32.s8.s8.s32", OPS_4_21, OUT4, IN21)
MMA(MmaS8K32, 2, 4, "m16n8k32.row.col.s32.s8.s8.s32", OPS_4_42, OUT4, IN42)
MMA(MmaU8S8K32, 2, 4, "m16n8k32.row.col.s32.u8.s8.s32", OPS_4_42, OUT4, IN42)
MMA(MmaS8K32Sat, 2, 4, "m16n8k32.row.col.satfinite.s32.s8.s8.s32", OPS_4_42, OUT4, IN42)

}  // namespace tessera::probe
