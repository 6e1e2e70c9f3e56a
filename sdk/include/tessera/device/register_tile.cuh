#pragma once

/// `RegisterTile<T, N>`: a group of a thread's registers as one value. Indexed by what the compiler knows after
/// unrolling; an index that it does not know puts the tile into local memory, which no kernel here does.

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// N values of T.
template <class T, std::uint32_t N>
struct RegisterTile {
    /// How many.
    static constexpr std::uint32_t size = N;

    T values[N];  ///< in order

    /// Register i.
    __device__ T& operator[](std::uint32_t i) { return values[i]; }
    /// Register i.
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
