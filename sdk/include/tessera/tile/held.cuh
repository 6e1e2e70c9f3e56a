#pragma once

/// @file
/// @ingroup tile_products
/// @brief `hold`: a tile of an input in shared memory that stays for a work tile.

#include "tessera/detail/language.hpp"

#include <cstdint>

#include "tessera/detail/trap.hpp"
#include "tessera/device/barrier.cuh"
#include "tessera/device/warp.cuh"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/staged_loads.cuh"
#include "tessera/tile/stream.cuh"
#include "tessera/tile/tcgen05_stages.cuh"
#include "tessera/tile/view.cuh"

namespace tessera::tile {

template <class Machine, class View>
class Held;

namespace detail {

/// Frees an operand that stayed for a work tile, for the calling warp.
template <class Machine>
__device__ __forceinline__ void release_held(const RingState& ring, int index)
{
    __syncwarp();
    if (elect_one()) {
        Barrier(ring.barriers->held_empty[index], *ring.published).arrive();
    }
}

template <class Machine, class View>
struct tile_facts<Held<Machine, View>> : tile_facts<Staged<Machine, View>> {};

}  // namespace detail

/// A tile of an input in shared memory that stays for a work tile. Made by `hold`.
template <class Machine, class View>
class Held : public Staged<Machine, View> {
    static constexpr std::uint32_t bytes = detail::staged_bytes_of<View>;

public:
    /// For the library.
    TESSERA_TILE Held(Cta<Machine> cta, const View& view, const detail::Spot& spot, detail::BandKind kind)
        : Staged<Machine, View>(cta.ring().held, spot, kind), ring_(&cta.ring())
    {
        static_assert(
            View::Staged::exists,
            "tessera: a tile in shared memory has 16, 32, 64 or a multiple of 128 bytes along its contiguous side");
        const int index = ring_->held_count++;
        ring_->held += bytes;
        if constexpr (Machine::role == detail::Role::plan) {
            detail::note_held(view, ring_->held_count, ring_->held);
            if constexpr (Machine::instructions == Instructions::tcgen05) {
                detail::note_map_of_pair(view, false);
            }
        } else if constexpr (Machine::role == detail::Role::all) {
            detail::meet<Machine::threads>();  // nobody reads what was there
            if constexpr (Machine::by_tma) {
                const Barrier full(ring_->barriers->held_full[index], *ring_->published);
                if (of_first_lane(detail::warp()) == 0 && elect_one()) {
                    full.arrive_and_expect(static_cast<std::uint32_t>(View::Staged::bytes));
                    detail::load_staged(view, this->address(), spot, full);
                }
                full.wait(static_cast<PhaseParity>(ring_->held_parity >> index & 1U));
                return;
            }
            detail::copy_staged<Machine>(view, this->address(), spot);
            detail::commit_copies<Machine>();
            detail::wait_for_copies<Machine>(0);
            detail::meet<Machine::threads>();
        } else if constexpr (Machine::instructions == Instructions::tcgen05) {
            [[maybe_unused]] auto& state = detail::state_of<Machine>(*ring_);
            [[maybe_unused]] const std::uint32_t parity = ring_->held_parity >> index & 1U;
            if constexpr (Machine::role == detail::Role::load) {
                detail::await_read<Machine>(state, state.words->held_empty[index], parity);
                if (elect_one()) {
                    detail::announce<Machine>(state, state.words->held_full[index],
                                              static_cast<std::uint32_t>(View::Staged::bytes));
                    detail::load_part<detail::group_of<Machine>, false>(view, this->address(), spot,
                                                                        &state.words->held_full[index].bits);
                }
                __syncwarp();
            } else if constexpr (Machine::role == detail::Role::multiply) {
                detail::await_tile<Machine>(state, state.words->held_full[index], parity);
            }
        } else {
            const std::uint32_t parity = ring_->held_parity >> index & 1U;
            const Barrier full(ring_->barriers->held_full[index], *ring_->published);
            if constexpr (Machine::role == detail::Role::load) {
                Barrier(ring_->barriers->held_empty[index], *ring_->published)
                    .wait(static_cast<PhaseParity>(parity ^ 1U));
                if (elect_one()) {
                    full.arrive_and_expect(static_cast<std::uint32_t>(View::Staged::bytes));
                    detail::load_staged(view, this->address(), spot, full);
                }
                __syncwarp();
            } else {
                full.wait(static_cast<PhaseParity>(parity));
            }
        }
    }
    TESSERA_TILE ~Held()
    {
        const int index = --ring_->held_count;
        ring_->held -= bytes;
        ring_->held_parity ^= 1U << index;
        if constexpr (Machine::role == detail::Role::multiply) {
            auto& state = detail::state_of<Machine>(*ring_);
            detail::commit_to(state, state.words->held_empty[index]);
        } else if constexpr (Machine::instructions != Instructions::tcgen05 && Machine::role == detail::Role::compute) {
            detail::finish_products<Machine>(*ring_);
            detail::release_held<Machine>(*ring_, index);
        }
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

private:
    detail::RingState* ring_;
};

/// Loads the tile of an input at a place into shared memory, where it stays until the result goes out of scope: an operand of
/// every step of a stream.
///
/// @code{.cpp}
/// const auto query = tile::hold(cta, q, at);
/// @endcode
template <class Machine, class View, int Rows, int Columns>
TESSERA_TILE Held<Machine, View> hold(Cta<Machine> cta, const View& view, const Place<Machine, Rows, Columns>& at)
{
    static_assert(View::rows == Rows && View::columns == Columns,
                  "tessera: a tile that is held at a place has the rows and columns of the output's tiles: "
                  "hold(cta, input.row(at)) takes the one tile of a band");
    static_assert(!detail::is_gathered<View>, "tessera: rows that a vector names are loaded or streamed, not held");
    return Held<Machine, View>(cta, view, detail::spot_at(view, at), detail::BandKind::of_place_rows);
}

/// Loads the one tile of a band into shared memory, where it stays as long: an operand that is not of the output's shape, such as all
/// of K beside a place. A band of more tiles is refused by the launch, or stops the kernel if only that sees it.
///
/// @code{.cpp}
/// const auto left = tile::hold(cta, a.row(at));
/// @endcode
template <class Machine, class View>
TESSERA_TILE Held<Machine, View> hold(Cta<Machine> cta, const Band<View>& band)
{
    static_assert(!detail::is_gathered<View>, "tessera: rows that a vector names are loaded or streamed, not held");
    if constexpr (Machine::is_planned) {
        detail::note_held_band(band.steps());
    } else {
#ifdef __CUDA_ARCH__
        tessera::detail::trap_unless(band.steps() <= 1);
#endif
    }
    // A held tile of B is whole in each CTA of a pair: no pair shares it.
    const bool of_rows = band.kind() == detail::BandKind::of_place_rows;
    return Held<Machine, View>(cta, band.view(), band.at(0),
                               of_rows ? detail::BandKind::of_place_rows : detail::BandKind::any);
}

}  // namespace tessera::tile
