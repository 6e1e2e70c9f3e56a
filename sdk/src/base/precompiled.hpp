#pragma once

/// Precompiled header: what nearly every source of the library includes (see docs/building.md). Each source still
/// includes what it uses, and compiles without this file.

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

#include "tessera/tessera.hpp"

// fmt is header-only here, so that users of the library need not have it. Every source would then contain the whole
// formatter and spend most of its compile time on it. One copy, in fmt_instances.cpp, is enough. Later releases of fmt
// have another signature; with them, the sources only compile more slowly.
#if FMT_VERSION >= 90000 && FMT_VERSION < 110000
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view, fmt::format_args,
                                                   fmt::detail::locale_ref);
#endif
