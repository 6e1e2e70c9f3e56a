// The library's only copy of fmt's formatter; precompiled.hpp says why.
#include <fmt/format.h>

#if FMT_VERSION >= 90000 && FMT_VERSION < 110000
template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view, fmt::format_args,
                                            fmt::detail::locale_ref);
#endif
