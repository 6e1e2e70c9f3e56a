#pragma once

/// @file
/// @ingroup tile_products
/// @brief `Sums`: what products are added to.

#include "tessera/detail/language.hpp"

#include <type_traits>

#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

namespace detail {

template <class Machine>
__device__ __forceinline__ void finish_products(RingState& ring);

/// Tells the compiler that registers change here: what writes them stays before this, and what reads them behind.
template <int Count>
__device__ __forceinline__ void pin(Values<float, Count>& registers)
{
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        asm volatile("" : "+f"(registers[i])::"memory");
    }
}

/// The values of sums. `IsAsync`: products may still be on their way to the registers, so these stay until they are there.
template <class Machine, class TileOfSums, bool IsAsync>
struct SumsInRegisters {
    TileOfSums values;
    RingState* ring;

    TESSERA_TILE SumsInRegisters(const TileOfSums& all, RingState& of) : values(all), ring(&of) {}
    TESSERA_TILE void note_product() const {}
    TESSERA_TILE void note_reading() const {}
};
template <class Machine, class TileOfSums>
struct SumsInRegisters<Machine, TileOfSums, true> {
    TileOfSums values;
    RingState* ring;
    mutable bool is_awaited = false;  // products were issued, and nobody has read their sums

    TESSERA_TILE SumsInRegisters(const TileOfSums& all, RingState& of) : values(all), ring(&of) {}
    TESSERA_TILE SumsInRegisters(const SumsInRegisters& other) : values(other.values), ring(other.ring) { take(other); }
    TESSERA_TILE SumsInRegisters& operator=(const SumsInRegisters& other)
    {
        if (this != &other) {
            give_up();
            values = other.values;
            ring = other.ring;
            take(other);
        }
        return *this;
    }
    TESSERA_TILE ~SumsInRegisters() { give_up(); }
    TESSERA_TILE void note_product() const { is_awaited = true; }
    TESSERA_TILE void note_reading() const { is_awaited = false; }

private:
    TESSERA_TILE void take(const SumsInRegisters& other)
    {
        is_awaited = other.is_awaited;
        other.is_awaited = false;
    }
    TESSERA_TILE void give_up()
    {
#ifdef __CUDA_ARCH__
        if (is_awaited) {
            finish_products<Machine>(*ring);
            pin(Access::values(values));
        }
#endif
    }
};

}  // namespace detail

/// Sums of products. They are a tile of float whose values may still be on their way: reading them waits.
template <class Machine, int Rows, int Columns>
class Sums : public detail::NeitherArrayNorCondition {
public:
    using Layout = typename detail::Layouts<Machine>::template Of<
        detail::Fragments<Rows, Columns, Machine::warps_m, Machine::warps_n>>;  ///< for the library
    using Values = Tile<float, Rows, Columns, Layout>;                          ///< the same as a tile

    /// For the library.
    TESSERA_TILE Sums(const Values& values, detail::RingState& ring) : state_(values, ring) {}
    /// Replaces the sums.
    template <class X>
        requires(!std::is_same_v<X, Sums>)
    TESSERA_TILE Sums& operator=(const X& values)
    {
        detail::require_replacement<float, Rows, Columns, X>();
        state_ = State(detail::aligned<Layout, Rows, Columns>(detail::settled(values)), *state_.ring);
        return *this;
    }

    /// For the library.
    TESSERA_TILE Values& values() { return state_.values; }
    /// For the library.
    TESSERA_TILE const Values& values() const { return state_.values; }
    /// For the library.
    TESSERA_TILE detail::RingState& ring() const { return *state_.ring; }
    /// For the library: products were issued.
    TESSERA_TILE void note_product() const { state_.note_product(); }
    /// For the library: all products were awaited.
    TESSERA_TILE void note_reading() const { state_.note_reading(); }

private:
    using State =
        detail::SumsInRegisters<Machine, Values, Machine::computes && Machine::instructions == Instructions::wgmma>;
    State state_;
};

namespace detail {

template <class X>
inline constexpr bool is_sums = false;
template <class Machine, int R, int C>
inline constexpr bool is_sums<Sums<Machine, R, C>> = true;

}  // namespace detail

}  // namespace tessera::tile
