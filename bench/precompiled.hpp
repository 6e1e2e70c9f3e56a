#pragma once

/// Precompiled header: what nearly every source of the benchmarks includes. Each source still includes what it uses, and
/// compiles without this file.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <gsl/span>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/gemm.hpp"
