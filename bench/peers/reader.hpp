#pragma once

/// The floor of a product that memory bounds: a kernel that reads A and B, and computes nothing.

#include "gemm/contender.hpp"

namespace tessera::bench {

GemmContender reader_contender();

}  // namespace tessera::bench
