/// Instantiates the mma.sync kernels for 8-bit inputs. ldmatrix does not transpose them, so operands that are not K-major
/// are gathered byte by byte: one tile does for them.

#include "mma_table.cuh"

namespace tessera::kernels::detail {
namespace {

template <class A, class B>
std::span<const MmaKernel> table_of()
{
    static const MmaKernel table[]{k_major_mma_kernel<Mma128x128Wide, A, B>(), k_major_mma_kernel<Mma64x64, A, B>(),
                                   k_major_mma_kernel<Mma16x64, A, B>(), mma_kernel<Mma64x64Any, A, B>()};
    return table;
}

}  // namespace

template <>
std::span<const MmaKernel> mma_table<f8e4m3, f8e4m3>()
{
    return table_of<f8e4m3, f8e4m3>();
}
template <>
std::span<const MmaKernel> mma_table<f8e4m3, f8e5m2>()
{
    return table_of<f8e4m3, f8e5m2>();
}
template <>
std::span<const MmaKernel> mma_table<f8e5m2, f8e4m3>()
{
    return table_of<f8e5m2, f8e4m3>();
}
template <>
std::span<const MmaKernel> mma_table<f8e5m2, f8e5m2>()
{
    return table_of<f8e5m2, f8e5m2>();
}

}  // namespace tessera::kernels::detail
