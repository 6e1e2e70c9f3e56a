#pragma once

/// @file
/// @ingroup distributed
/// @brief All of tessera::distributed: products of matrices that are sharded over several GPUs.

#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/sharded_gemm.hpp"
#include "tessera/distributed/sharded_matrix.hpp"
