#pragma once

/// The configurations of one pair of input types. Each is instantiated in a .cu file of its own, so that they compile in
/// parallel.

#include <span>

#include "mma_kernels.hpp"
#include "tessera/tf32.hpp"

namespace tessera::kernels::detail {

/// Defined in mma_<type>.cu.
template <class A, class B>
std::span<const MmaKernel> mma_table();
template <>
std::span<const MmaKernel> mma_table<f16, f16>();
/// Of f16, with sums in f16; defined in mma_f16_sums.cu.
std::span<const MmaKernel> mma_table_of_f16_sums();
template <>
std::span<const MmaKernel> mma_table<bf16, bf16>();
template <>
std::span<const MmaKernel> mma_table<tf32, tf32>();
template <>
std::span<const MmaKernel> mma_table<f8e4m3, f8e4m3>();
template <>
std::span<const MmaKernel> mma_table<f8e4m3, f8e5m2>();
template <>
std::span<const MmaKernel> mma_table<f8e5m2, f8e4m3>();
template <>
std::span<const MmaKernel> mma_table<f8e5m2, f8e5m2>();

}  // namespace tessera::kernels::detail
