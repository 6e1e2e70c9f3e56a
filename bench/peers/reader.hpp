#pragma once

/// A lower bound for products that are limited by memory: a kernel that reads A and B and computes nothing.

#include "gemm/contender.hpp"

namespace tessera::bench {

GemmContender reader_contender();

}  // namespace tessera::bench
