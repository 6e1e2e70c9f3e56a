#pragma once

/// @file
/// @ingroup device_warps
/// @brief `RegisterTile<T, N>`: a group of a thread's registers as one value.

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// N values of T in a thread's registers.
///
/// Index it with what the compiler knows after unrolling. An index that it does not know moves the tile into local
/// memory.
///
/// @tparam T  the type of a value
/// @tparam N  how many
template <class T, std::uint32_t N>
struct RegisterTile {
    /// The number of values.
    static constexpr std::uint32_t size = N;

    T values[N];  ///< the values, in order

    /// Returns value i.
    __device__ T& operator[](std::uint32_t i) { return values[i]; }
    /// Returns value i, for reading.
    __device__ const T& operator[](std::uint32_t i) const { return values[i]; }

    /// Replaces each value v by `function(v)`.
    template <class Function>
    __device__ __forceinline__ void transform(Function function)
    {
#pragma unroll
        for (T& value : values) {
            value = function(value);
        }
    }
};

}  // namespace tessera
