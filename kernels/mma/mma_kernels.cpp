#include "mma_kernels.hpp"

#include <algorithm>
#include <array>

#include "mma_table.hpp"

namespace tessera::kernels {

#ifdef TESSERA_HAS_MMA_KERNELS
namespace {

/// Those of f16: with sums in f32, then in f16.
std::span<const MmaKernel> kernels_of_f16()
{
    struct Table {
        std::array<MmaKernel, 16> kernels{};
        std::size_t count = 0;

        Table()
        {
            for (const std::span<const MmaKernel> part :
                 {detail::mma_table<f16, f16>(), detail::mma_table_of_f16_sums()}) {
                std::copy(part.begin(), part.end(), kernels.begin() + static_cast<std::ptrdiff_t>(count));
                count += part.size();
            }
        }
    };
    static const Table table;
    return {table.kernels.data(), table.count};
}

}  // namespace
#endif

std::span<const MmaKernel> mma_kernels([[maybe_unused]] InputTypes input)
{
#ifdef TESSERA_HAS_MMA_KERNELS
    switch (input.a) {
        case ElementType::f16: return kernels_of_f16();
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

std::span<const MmaCode> mma_code([[maybe_unused]] InputTypes input, [[maybe_unused]] bool f16_sums)
{
#ifdef TESSERA_HAS_MMA_KERNELS_OF_8_BITS
    if (is_float8(input)) {
        static constexpr MmaCode code[]{TESSERA_MMA_CODE_OF_8_BITS};
        return code;
    }
#endif
#ifdef TESSERA_HAS_MMA_KERNELS
    if (f16_sums) {
        static constexpr MmaCode code[]{TESSERA_MMA_CODE_OF_F16_SUMS};
        return code;
    }
    if (!is_float8(input)) {
        static constexpr MmaCode code[]{TESSERA_MMA_CODE};
        return code;
    }
#endif
    return {};
}

}  // namespace tessera::kernels
