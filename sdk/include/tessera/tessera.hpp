#pragma once

/// @file
/// @ingroup host
/// @brief All of the host API, for plain g++, clang++ and nvcc. Kernels include headers of tessera/device/ besides.
///
/// Not included: distributed.hpp (several GPUs; link `tessera::distributed`), matrix_copy.hpp, mdspan.hpp, and of tile/ program.hpp and
/// epilogue_program.hpp (programs compiled at run time). Include them where you need them.

#include "tessera/device.hpp"
#include "tessera/device_buffer.hpp"
#include "tessera/device_span.hpp"
#include "tessera/element.hpp"
#include "tessera/error.hpp"
#include "tessera/event.hpp"
#include "tessera/gemm.hpp"
#include "tessera/gemm_tuner.hpp"
#include "tessera/graph.hpp"
#include "tessera/host_span.hpp"
#include "tessera/launch.hpp"
#include "tessera/matrix_view.hpp"
#include "tessera/memory_resource.hpp"
#include "tessera/pinned_buffer.hpp"
#include "tessera/stream.hpp"
#include "tessera/tensor_map.hpp"
#include "tessera/version.hpp"
#include "tessera/workspace.hpp"
