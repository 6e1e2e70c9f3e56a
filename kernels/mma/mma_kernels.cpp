#include "mma_kernels.hpp"

#include "mma_table.hpp"

namespace tessera::kernels {

std::span<const MmaKernel> mma_kernels([[maybe_unused]] InputTypes input)
{
#ifdef TESSERA_HAS_MMA_KERNELS
    switch (input.a) {
        case ElementType::f16: return detail::mma_table<f16, f16>();
        case ElementType::bf16: return detail::mma_table<bf16, bf16>();
        case ElementType::tf32: return detail::mma_table<tf32, tf32>();
#ifdef TESSERA_HAS_MMA_KERNELS_OF_8_BITS
        case ElementType::f8e4m3:
            return input.b == ElementType::f8e4m3 ? detail::mma_table<f8e4m3, f8e4m3>()
                                                  : detail::mma_table<f8e4m3, f8e5m2>();
        case ElementType::f8e5m2:
            return input.b == ElementType::f8e4m3 ? detail::mma_table<f8e5m2, f8e4m3>()
                                                  : detail::mma_table<f8e5m2, f8e5m2>();
#endif
        default: break;
    }
#endif
    return {};
}

std::span<const MmaCode> mma_code([[maybe_unused]] InputTypes input)
{
#ifdef TESSERA_HAS_MMA_KERNELS_OF_8_BITS
    if (is_float8(input)) {
        static constexpr MmaCode code[]{TESSERA_MMA_CODE_OF_8_BITS};
        return code;
    }
#endif
#ifdef TESSERA_HAS_MMA_KERNELS
    if (!is_float8(input)) {
        static constexpr MmaCode code[]{TESSERA_MMA_CODE};
        return code;
    }
#endif
    return {};
}

}  // namespace tessera::kernels
