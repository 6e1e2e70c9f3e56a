#pragma once

/// What nearly every source of the library includes, precompiled: see docs/building.md. Each source still includes what it
/// uses, and compiles without this file.

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

// fmt is header-only here, so that users of the library need not have it. Then every source would have the whole formatter
// in its object, and spend most of its time on it; one copy, in fmt_instances.cpp, is enough. Later releases of fmt have
// another signature, and are merely slower to compile.
#if FMT_VERSION >= 90000 && FMT_VERSION < 110000
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view, fmt::format_args,
                                                   fmt::detail::locale_ref);
#endif
