#pragma once

#include <type_traits>

namespace tessera::emulator {

/// The least multiple of `multiple` that is not below `value`.
template <typename Value, typename Multiple>
[[nodiscard]] constexpr auto round_up(Value value, Multiple multiple) noexcept
{
    using Result = std::common_type_t<Value, Multiple>;
    const auto step = static_cast<Result>(multiple);
    return static_cast<Result>((static_cast<Result>(value) + step - 1) / step * step);
}

}  // namespace tessera::emulator
