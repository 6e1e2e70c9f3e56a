#pragma once

/// Definition of the table entry that blackwell_table.hpp declares.

#include "blackwell_gemm.cuh"
#include "blackwell_table.hpp"

namespace tessera::kernels::detail {

template <class Config, MmaKind Kind>
BlackwellKernel blackwell_kernel()
{
    return {.config = &Config::config,
            .function = reinterpret_cast<const void*>(&blackwell_gemm<Config, Kind>),
            .shared_bytes = sizeof(BlackwellStorage<Config>)};
}

}  // namespace tessera::kernels::detail
