#pragma once

#include <cstddef>
#include <cstdint>

#include "dispatch.hpp"

/// Vectors of the exact path. Private to the numerics folder. Results are returned by reference: a vector returned by
/// value would depend on the ABI of the instruction set, even if everything is inlined.
namespace tessera::emulator::numerics::detail {

// One set of types per register size. Not templates of the size: GCC 12 ignores an attribute that depends on it.
template <int Bytes>
struct Vectors;
#define TESSERA_VECTOR_TYPES(BYTES, HALF)                                     \
    template <>                                                               \
    struct Vectors<BYTES> {                                                   \
        using Int = std::int32_t __attribute__((vector_size(BYTES)));         \
        using Unsigned = std::uint32_t __attribute__((vector_size(BYTES)));   \
        using Float = float __attribute__((vector_size(BYTES)));              \
        using Short = std::int16_t __attribute__((vector_size(BYTES)));       \
        using Narrow = std::int16_t __attribute__((vector_size(HALF)));       \
        using Words = std::uint64_t __attribute__((vector_size(BYTES)));      \
        static constexpr std::size_t lanes = BYTES / 4; /* of 32 bits each */ \
    };
TESSERA_VECTOR_TYPES(16, 8)
TESSERA_VECTOR_TYPES(32, 16)
TESSERA_VECTOR_TYPES(64, 32)
#undef TESSERA_VECTOR_TYPES

/// As many cells of an operand as a vector of `Bytes` has lanes of 32 bits.
template <typename Cell, int Bytes>
struct CellVector;
#define TESSERA_CELL_VECTOR(CELL, BYTES)                                          \
    template <>                                                                   \
    struct CellVector<CELL, BYTES> {                                              \
        using type = CELL __attribute__((vector_size(BYTES * sizeof(CELL) / 4))); \
    };
TESSERA_CELL_VECTOR(std::uint8_t, 16)
TESSERA_CELL_VECTOR(std::uint8_t, 32)
TESSERA_CELL_VECTOR(std::uint8_t, 64)
TESSERA_CELL_VECTOR(std::uint16_t, 16)
TESSERA_CELL_VECTOR(std::uint16_t, 32)
TESSERA_CELL_VECTOR(std::uint16_t, 64)
TESSERA_CELL_VECTOR(std::uint32_t, 16)
TESSERA_CELL_VECTOR(std::uint32_t, 32)
TESSERA_CELL_VECTOR(std::uint32_t, 64)
#undef TESSERA_CELL_VECTOR

template <typename Vector, typename Element>
TESSERA_INLINE void load(const Element* from, Vector& to)
{
    __builtin_memcpy(&to, from, sizeof to);
}
template <typename Vector, typename Element>
TESSERA_INLINE void store(Element* to, const Vector& from)
{
    __builtin_memcpy(to, &from, sizeof from);
}

/// Loads 16-bit numbers, one per lane.
template <int Bytes>
TESSERA_INLINE void widen(const std::int16_t* from, typename Vectors<Bytes>::Int& to)
{
    typename Vectors<Bytes>::Narrow narrow;
    load(from, narrow);
    to = __builtin_convertvector(narrow, typename Vectors<Bytes>::Int);
}

/// True if a bit of the vector is set.
template <int Bytes>
TESSERA_INLINE bool any(const typename Vectors<Bytes>::Int& vector)
{
    if constexpr (Bytes > 16) {
        typename Vectors<Bytes / 2>::Int halves[2];
        __builtin_memcpy(halves, &vector, sizeof halves);
        return any<Bytes / 2>(halves[0] | halves[1]);
    } else {
        const auto words = reinterpret_cast<typename Vectors<16>::Words>(vector);
        return (words[0] | words[1]) != 0;
    }
}

}  // namespace tessera::emulator::numerics::detail
