#pragma once

/// @file
/// @ingroup tile_products
/// @brief `Sums` of a machine that adds them up in tensor memory. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include "tessera/tile/sums.cuh"
#include "tessera/tile/tensor_memory.cuh"

namespace tessera::tile {

/// @cond  The page of the reference is that of the other instructions: programs see no difference.
/// Sums of products in tensor memory. Reading them waits, and brings them into registers.
///
/// Products are added where the sums are, so they cannot be in two places: a copy takes them over. The original keeps its values if
/// they were read, and cannot be used otherwise: a program whose plan shows that has other instructions.
template <class Machine, int Rows, int Columns>
    requires(Machine::instructions == Instructions::tcgen05)
class Sums<Machine, Rows, Columns> : public detail::NeitherArrayNorCondition {
    using Lanes = detail::lane_layout<Machine, Rows, Columns>;
    static constexpr bool takes_part = Machine::role != detail::Role::load;

public:
    using Layout = typename detail::Layouts<Machine>::template Of<typename Lanes::Tile>;  ///< for the library
    using Values = Tile<float, Rows, Columns, Layout>;                                    ///< the same as a tile

    /// For the library: sums of 0.
    TESSERA_TILE explicit Sums(detail::RingState& ring) : ring_(&ring) {}
    /// Takes the sums over.
    TESSERA_TILE Sums(const Sums& other) : ring_(other.ring_) { take(other); }
    /// Takes the sums over.
    TESSERA_TILE Sums& operator=(const Sums& other)
    {
        if (this != &other) {
            give_up();
            take(other);
        }
        return *this;
    }
    /// Replaces the sums.
    template <class X>
        requires(!std::is_same_v<X, Sums>)
    TESSERA_TILE Sums& operator=(const X& values)
    {
        detail::require_replacement<float, Rows, Columns, X>();
        const Values replacement = detail::aligned<Layout, Rows, Columns>(detail::settled(values));
        give_up();
        values_ = replacement;
        slot_ = no_slot;
        in_memory_ = false;
        in_registers_ = true;
        lost_ = false;
        return *this;
    }
    TESSERA_TILE ~Sums() { give_up(); }

    /// For the library: the values, once all products are added up.
    TESSERA_TILE const Values& read() const
    {
        if constexpr (takes_part) {
            if (!in_registers_) {
                require_sums();
                load();
                in_registers_ = true;
            }
        }
        return values_;
    }

    /// For the library: lets products be added. Returns false if there are no sums yet: then the first product overwrites.
    TESSERA_TILE bool begin()
    {
        const bool adds = in_registers_ || in_memory_;
        if constexpr (takes_part) {
            require_sums();
            auto& state = this->state();
            if (slot_ == no_slot) {
                slot_ = detail::take_slot<Machine>(state, detail::columns_of_slot(Rows, Columns));
            }
            if (in_registers_ || !in_memory_) {  // not since the last product
                detail::await_free_slot<Machine>(state, slot_);
                if (!in_memory_ && in_registers_) {
                    detail::write_slot<Machine>(state, slot_, [&](std::uint32_t address) {
                        if constexpr (Machine::computes && Lanes::is_tile) {
                            detail::store_sums(values_, address);
                        }
                    });
                }
            }
        }
        in_memory_ = true;
        in_registers_ = false;
        return adds;
    }

    /// For the library.
    TESSERA_TILE int slot() const { return slot_; }
    /// For the library.
    TESSERA_TILE detail::StateOf<Machine>& state() const { return detail::state_of<Machine>(*ring_); }

private:
    static constexpr int no_slot = -1;

    TESSERA_TILE void take(const Sums& other)
    {
        values_ = other.values_;
        slot_ = other.slot_;
        in_memory_ = other.in_memory_;
        in_registers_ = other.in_registers_;
        lost_ = other.lost_;
        other.slot_ = no_slot;
        other.lost_ = other.lost_ || (other.in_memory_ && !other.in_registers_);
        other.in_memory_ = false;
    }
    TESSERA_TILE void give_up() const
    {
        if constexpr (takes_part) {
            if (slot_ != no_slot) {
                detail::give_up_slot<Machine>(state(), slot_, in_memory_ && !in_registers_);
            }
        }
    }
    /// Refuses sums that a copy has taken over.
    TESSERA_TILE void require_sums() const
    {
        if constexpr (Machine::role == detail::Role::plan) {
            if (lost_) {
                detail::note_refusal<detail::Tcgen05Refusal::passed_on>();
            }
        } else {
#ifdef __CUDA_ARCH__
            tessera::detail::trap_unless(!lost_);
#endif
        }
    }
    TESSERA_TILE void load() const
    {
        auto& state = this->state();
        if (in_memory_) {
            detail::finish_sums<Machine>(state, slot_);
            detail::await_sums<Machine>(state, slot_);
            if constexpr (Machine::computes && Lanes::is_tile) {
                detail::load_sums(values_, detail::slot_address(state, slot_));
            }
            detail::free_sums<Machine>(state, slot_);
        } else if constexpr (Machine::computes) {
            detail::unrolled<Layout::registers>([&](int i) { detail::Access::values(values_)[i] = 0.0F; });
        }
    }

    mutable Values values_;
    detail::RingState* ring_;
    mutable int slot_ = no_slot;
    mutable bool in_memory_ = false;     // tensor memory has the sums, and products may be on their way to them
    mutable bool in_registers_ = false;  // `values_` has them. Sums that are in neither are 0
    mutable bool lost_ = false;          // a copy has them
};
/// @endcond

}  // namespace tessera::tile
