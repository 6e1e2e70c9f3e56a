#pragma once

/// The headers that most sources of the emulated device include, precompiled: see docs/building.md. Each source still
/// includes what it uses, and compiles without this file.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "execute/lanewise.hpp"
#include "machine/cluster.hpp"
#include "machine/launch.hpp"
#include "machine/warp.hpp"
#include "program/decoder.hpp"
