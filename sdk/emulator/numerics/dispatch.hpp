#pragma once

/// Selects the widest compiled form of a kernel that the processor can run. Private to the numerics folder.
///
/// A kernel is a template over the bytes of a vector register, forced inline into one function per instruction set. So
/// one build runs everywhere, and no translation unit needs -march flags.
#if defined(__x86_64__) && defined(__GNUC__)
#define TESSERA_HAS_WIDE_VECTORS 1
#define TESSERA_TARGET_V4 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,bmi,bmi2")))
#define TESSERA_TARGET_V3 __attribute__((target("avx2,fma,bmi,bmi2")))
#else
#define TESSERA_HAS_WIDE_VECTORS 0
#endif
#define TESSERA_INLINE __attribute__((always_inline)) inline

namespace tessera::emulator::numerics::detail {

enum class VectorUnit : unsigned char { portable, avx2, avx512 };

/// The vector unit that the kernels use: the widest of this processor, unless a test selects a narrower one.
inline VectorUnit& vector_unit()
{
#if TESSERA_HAS_WIDE_VECTORS
    static VectorUnit unit = [] {
        __builtin_cpu_init();
        const bool fma =
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
        const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512cd");
        return fma && wide ? VectorUnit::avx512 : fma ? VectorUnit::avx2 : VectorUnit::portable;
    }();
#else
    static VectorUnit unit = VectorUnit::portable;
#endif
    return unit;
}

}  // namespace tessera::emulator::numerics::detail
