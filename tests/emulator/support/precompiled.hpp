#pragma once

/// The headers that most tests of the emulated device include, precompiled: see docs/building.md.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "run_ptx.hpp"
#include "schedules.hpp"
