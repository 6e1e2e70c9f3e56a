/// The host's side of the Hopper kernels.

#include "hopper_kernels.hpp"

namespace tessera::kernels {

namespace detail {

std::span<const HopperKernel> hopper_kernels_16bit();
std::span<const HopperKernel> hopper_kernels_8bit();
std::span<const HopperKernel> hopper_kernels_32bit();

}  // namespace detail

std::span<const HopperKernel> hopper_kernels([[maybe_unused]] std::size_t element_bytes)
{
#ifdef TESSERA_HAS_HOPPER_KERNELS
    if (element_bytes == 2) {
        return detail::hopper_kernels_16bit();
    }
#endif
    return {};
}

}  // namespace tessera::kernels
