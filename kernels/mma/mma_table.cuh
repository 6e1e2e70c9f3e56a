#pragma once

/// Entries of the table that mma_table.hpp declares.

#include "mma_gemm.cuh"
#include "mma_table.hpp"

namespace tessera::kernels::detail {

template <class Config, class A, class B, Major MajorA, Major MajorB>
const void* mma_entry()
{
    return reinterpret_cast<const void*>(&mma_gemm<Config, A, B, MajorA, MajorB>);
}

/// The configuration for all orders of A and B.
template <class Config, class A, class B>
MmaKernel mma_kernel()
{
    return {
        .config = &Config::config,
        .name = Config::name,
        .functions = {{mma_entry<Config, A, B, Major::mn, Major::mn>(), mma_entry<Config, A, B, Major::mn, Major::k>()},
                      {mma_entry<Config, A, B, Major::k, Major::mn>(), mma_entry<Config, A, B, Major::k, Major::k>()}}};
}

/// The configuration for all orders of A and B, in one kernel.
template <class Config, class A, class B>
MmaKernel any_order_mma_kernel()
{
    static_assert(sizeof(A) == 2 && sizeof(B) == 2);  // see detail::gates_in_turn
    const void* const entry = reinterpret_cast<const void*>(&mma_gemm<Config, A, B>);
    return {.config = &Config::config, .name = Config::name, .functions = {{entry, entry}, {entry, entry}}};
}

/// For K-major operands only.
template <class Config, class A, class B>
MmaKernel k_major_mma_kernel()
{
    return {.config = &Config::config,
            .name = Config::name,
            .functions = {{nullptr, nullptr}, {nullptr, mma_entry<Config, A, B, Major::k, Major::k>()}}};
}

}  // namespace tessera::kernels::detail
