#pragma once

/// @file
/// @ingroup tile_products
/// @brief `stream`: bands of inputs, tile by tile, through shared memory, loaded ahead of their use.

#include "tessera/detail/language.hpp"

#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>
#include <cuda/std/tuple>
#include <cuda/std/utility>
#include <type_traits>

#include "tessera/detail/trap.hpp"
#include "tessera/device/barrier.cuh"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/device/warp.cuh"
#include "tessera/device/wgmma.cuh"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/staged_loads.cuh"
#include "tessera/tile/tcgen05_stages.cuh"
#include "tessera/tile/view.cuh"

namespace tessera::tile {

/// A tile of an input in shared memory, for the step of a stream that gave it. `mma` takes it.
template <class Machine, class View>
class Staged : public detail::NeitherArrayNorCondition {
public:
    using element_type = typename View::element_type;  ///< of the input
    using Geometry = typename View::Staged;            ///< for the library
    static constexpr int rows = View::rows;            ///< of the tile
    static constexpr int columns = View::columns;      ///< of the tile

    /// For the library.
    TESSERA_TILE Staged(std::uint32_t address, const detail::Spot& spot, detail::BandKind kind)
        : address_(address), spot_(spot), kind_(kind)
    {}
    /// For the library: where the tile is, as a shared address.
    TESSERA_TILE std::uint32_t address() const { return address_; }
    /// For the library: which places have the same tile.
    TESSERA_TILE detail::BandKind kind() const { return kind_; }
    /// Returns the tile's first row in the input.
    TESSERA_TILE std::int64_t first_row() const
    {
        if (kind_ == detail::BandKind::of_place_rows || (by_clusters && kind_ == detail::BandKind::any)) {
            detail::note_row_is_read<Machine>();
        }
        return spot_.row;
    }
    /// Returns the tile's first column in the input.
    TESSERA_TILE std::int64_t first_column() const
    {
        if (kind_ != detail::BandKind::of_place_rows) {
            detail::note_column_is_read<Machine>();
        }
        return spot_.column;
    }

private:
    static constexpr bool by_clusters = Machine::instructions == Instructions::wgmma;

    std::uint32_t address_;
    detail::Spot spot_;
    detail::BandKind kind_;
};

namespace detail {

/// Whoever asks for facts of such a tile would compute with it.
template <class Machine, class View>
struct tile_facts<Staged<Machine, View>> {
    static_assert(
        tessera::detail::always_false<View>,
        "tessera: a tile of a stream, or one that is held, is in shared memory for mma() alone: input.load(at) "
        "has values to compute with");
    static constexpr bool is_tile = true;
};

}  // namespace detail

/// The tiles of one step of a stream.
template <class... Tiles>
struct Step;
/// Of one band.
template <class A>
struct Step<A> {
    A a;  ///< of the band
};
/// Of two bands.
template <class A, class B>
struct Step<A, B> {
    A a;  ///< of the first band
    B b;  ///< of the second
};
/// Of three bands.
template <class A, class B, class C>
struct Step<A, B, C> {
    A a;  ///< of the first band
    B b;  ///< of the second
    C c;  ///< of the third
};

namespace detail {

/// Bytes before the operand `Index` of a stage.
template <std::size_t Index, class First, class... Rest>
constexpr std::uint32_t stage_offset()
{
    if constexpr (Index == 0) {
        return 0;
    } else {
        return staged_bytes_of<First> + stage_offset<Index - 1, Rest...>();
    }
}

/// Copies 16 bytes to a shared address; all but the first `valid_bytes` are zeros. Source: PTX ISA, "cp.async".
__device__ __forceinline__ void copy_piece(std::uint32_t to, const void* from, int valid_bytes)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    // __pipeline_memcpy_async would branch to one of 17 instructions: its size is an immediate.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid_bytes) : "memory");
#else
    __pipeline_memcpy_async(__cvta_shared_to_generic(to), from, 16, static_cast<std::size_t>(16 - valid_bytes));
#endif
}

/// Copies a tile, with zeros outside of the matrix. All threads that compute; asynchronous where the GPU has such copies.
template <class Machine, class View>
__device__ __forceinline__ void copy_staged(const View& view, std::uint32_t address, const Spot& spot)
{
    using Geometry = typename View::Staged;
    using T = typename View::element_type;
    constexpr int Threads = Machine::threads;
    constexpr Edges edges = edges_of<Machine, View>();
    constexpr Edge of_lines = Geometry::row_major ? edges.rows : edges.columns;
    constexpr Edge along_lines = Geometry::row_major ? edges.columns : edges.rows;
    constexpr int in_chunk = 16 / Geometry::bytes_of_element;
    constexpr int line_chunks = Geometry::contiguous_bytes / 16;
    constexpr int chunks = line_chunks * Geometry::lines;
    constexpr TileLayout layout{Major::k, Geometry::swizzle, static_cast<std::uint32_t>(Geometry::lines),
                                static_cast<std::uint32_t>(Geometry::contiguous),
                                static_cast<std::uint32_t>(Geometry::bytes_of_element)};
    const auto& memory = view.memory();
    const std::int64_t lines_end = Geometry::row_major ? memory.rows : memory.columns;
    const std::int64_t contiguous_end = Geometry::row_major ? memory.columns : memory.rows;
#pragma unroll
    for (int first = 0; first < chunks; first += Threads) {
        const int index = first + static_cast<int>(threadIdx.x);
        if (chunks % Threads != 0 && index >= chunks) {
            break;
        }
        const int line = index / line_chunks;
        const int chunk = index % line_chunks;
        std::int64_t at_line = (Geometry::row_major ? spot.row : spot.column) + line;
        const std::int64_t at = (Geometry::row_major ? spot.column : spot.row) + chunk * in_chunk;
        const std::int64_t left = of_lines == Edge::none || at_line < lines_end
                                      ? (along_lines == Edge::ragged ? contiguous_end - at : in_chunk)
                                      : 0;
        const int count = static_cast<int>(left < 0 ? 0 : left < in_chunk ? left : in_chunk);
        if constexpr (is_gathered<View>) {
            at_line = count > 0 ? view.row_in_memory(at_line) : 0;
        }
        const std::uint32_t to =
            address + layout.offset(static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(chunk * in_chunk));
        const T* const from =
            memory.data + (count > 0 ? spot.batch * memory.batch_stride + at_line * memory.leading_dimension + at : 0);
        if (memory.in_vectors) {
            copy_piece(to, from, count * static_cast<int>(sizeof(T)));
        } else {
            auto* const elements = static_cast<T*>(__cvta_shared_to_generic(to));
#pragma unroll
            for (int i = 0; i < in_chunk; ++i) {
                elements[i] = i < count ? from[i] : T(0.0F);
            }
        }
    }
}

/// Closes a group of the thread's copies.
template <class Machine>
__device__ __forceinline__ void commit_copies()
{
    __pipeline_commit();
}

/// Waits until at most `groups` of the thread's groups of copies are under way.
template <class Machine>
__device__ __forceinline__ void wait_for_copies(int groups)
{
    switch (groups) {
        case 0: __pipeline_wait_prior(0); break;
        case 1: __pipeline_wait_prior(1); break;
        case 2: __pipeline_wait_prior(2); break;
        case 3: __pipeline_wait_prior(3); break;
        case 4: __pipeline_wait_prior(4); break;
        case 5: __pipeline_wait_prior(5); break;
        default: __pipeline_wait_prior(6); break;
    }
}

/// Closes a group of products.
template <class Machine>
__device__ __forceinline__ void commit_products()
{
    wgmma_commit();
}

/// Waits until at most `Newest` groups of products are under way.
template <class Machine, int Newest>
__device__ __forceinline__ void wait_for_products()
{
    wgmma_wait<Newest>();
}

/// Waits for all products under way, and frees the slot that they read. Without products it waits for nothing: an empty group costs
/// an instruction of the tensor core.
template <class Machine>
__device__ __forceinline__ void finish_products(RingState& ring)
{
    if (ring.has_products) {
        wgmma_commit();
        wgmma_wait<0>();
        ring.has_products = false;
    }
    if (ring.unreleased >= 0) {
        release<Machine>(ring, ring.unreleased);
        ring.unreleased = -1;
    }
}

}  // namespace detail

/// Bands, tile by tile. Made by `stream`, for a range-based for loop.
template <class Machine, class... Views>
class Stream {
public:
    /// The end of the range.
    struct End {};
    /// Goes from one step to the next.
    class Iterator {
    public:
        /// For the library.
        TESSERA_TILE explicit Iterator(Stream& stream) : stream_(&stream) {}
        /// Waits for the step's tiles, and returns them.
        TESSERA_TILE auto operator*() const { return stream_->current(cuda::std::index_sequence_for<Views...>()); }
        /// Goes on to the next step: the tiles of this one are gone.
        TESSERA_TILE Iterator& operator++()
        {
            stream_->next();
            return *this;
        }
        /// Returns false after the last step.
        TESSERA_TILE bool operator!=(End) const { return stream_->step_ < stream_->steps_; }

    private:
        Stream* stream_;
    };

    /// For the library.
    TESSERA_TILE Stream(Cta<Machine> cta, const Band<Views>&... bands) : ring_(&cta.ring()), bands_(bands...)
    {
        static_assert((Views::Staged::exists && ...),
                      "tessera: a streamed tile's contiguous side must have 16, 32, 64 or a multiple of 128 bytes");
        steps_ = cuda::std::get<0>(bands_).steps();
#ifdef __CUDACC_RTC__
        // Ahead of time, the host compares all bands. At run time it knows those only that it finds in the plan's comments.
        if constexpr (!Machine::is_planned) {
            tessera::detail::trap_unless(((bands.extent() == cuda::std::get<0>(bands_).extent()) && ...));
        }
#endif
        if constexpr (Machine::role == detail::Role::plan) {
            steps_ = by_tcgen05 ? 2 : 1;  // 2: sums that one step passes on to the next are seen, too
            detail::note_stream<(detail::staged_bytes_of<Views> + ...)>(bands...);
            detail::note_shared_bands(((bands.kind() == detail::BandKind::of_place_rows) || ...),
                                      ((bands.kind() == detail::BandKind::of_place_columns) || ...));
            if constexpr (by_tcgen05) {
                detail::note_stream_of_pair(
                    ((bands.kind() == detail::BandKind::of_place_columns ? detail::half_staged_bytes_of<Views>
                                                                         : detail::staged_bytes_of<Views>)+...));
                (detail::note_map_of_pair(bands.view(), bands.kind() == detail::BandKind::of_place_columns), ...);
            }
            if constexpr ((detail::is_gathered<Views> || ...)) {
                detail::note_gather();
            }
        } else if constexpr (Machine::role == detail::Role::all) {
            if constexpr (Machine::whole_tiles) {
                (require_inside(bands), ...);
            }
            detail::meet<Machine::threads>();  // nobody reads the ring any more
            if constexpr (!Machine::by_tma) {
                ring_->slot = 0;
            } else if constexpr ((detail::is_gathered<Views> || ...)) {
                detail::refuse_branch();
            }
            for (int step = 0; step + 1 < ring_->stages; ++step) {
                const int slot = ring_->slot + step;
                fill(step, slot < ring_->stages ? slot : slot - ring_->stages,
                     cuda::std::index_sequence_for<Views...>());
            }
        } else if constexpr ((detail::is_gathered<Views> || ...)) {
            detail::refuse_branch();
        }
    }
    TESSERA_TILE ~Stream()
    {
        if constexpr (Machine::role == detail::Role::all) {
            if constexpr (!Machine::by_tma) {
                detail::wait_for_copies<Machine>(0);
            }
        } else if constexpr (by_warpgroups) {
            detail::finish_products<Machine>(*ring_);
        }
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    /// Returns the first step.
    TESSERA_TILE Iterator begin() { return Iterator(*this); }
    /// Returns the end.
    TESSERA_TILE End end() const { return {}; }

private:
    /// Where nothing else is compared with a matrix: a program may have named a row or column of tiles that it does not have.
    template <class View>
    TESSERA_TILE static void require_inside([[maybe_unused]] const Band<View>& band)
    {
#ifdef __CUDA_ARCH__
        const detail::Spot first = band.at(0);
        tessera::detail::trap_unless(first.row < band.view().memory().rows &&
                                     first.column < band.view().memory().columns);
#endif
    }

    static constexpr bool by_tcgen05 = Machine::instructions == Instructions::tcgen05;
    /// The calling role reads stages by wgmma.
    static constexpr bool by_warpgroups = !by_tcgen05 && Machine::role == detail::Role::compute;
    template <std::size_t Index>
    static constexpr std::uint32_t offset = detail::stage_offset<Index, Views...>();  // of an operand in a slot
    template <std::size_t Index>
    TESSERA_TILE std::uint32_t offset_in_cta() const
    {
        if constexpr (Machine::multiplying_ctas == 1 || Index == 0) {
            return offset<Index>;
        } else {
            return offset_in_cta<Index - 1>() + detail::staged_bytes_in_cta<Machine>(cuda::std::get<Index - 1>(bands_));
        }
    }
    TESSERA_TILE std::uint32_t slot_address(int slot) const
    {
        return ring_->shared + static_cast<std::uint32_t>(slot) * ring_->stage_bytes;
    }

    /// Role::all: begins to load a step into a slot, or nothing after the last.
    template <std::size_t... Indices>
    TESSERA_TILE void fill(int step, int slot, cuda::std::index_sequence<Indices...> indices) const
    {
        if constexpr (Machine::by_tma) {
            if (step < steps_ && of_first_lane(detail::warp()) == 0) {
                request(step, slot, indices);
            }
        } else {
            copy(step, slot, indices);
        }
    }
    /// Asks TMA for a step. Called by a whole warp.
    template <std::size_t... Indices>
    __device__ __forceinline__ void request(int step, int slot, cuda::std::index_sequence<Indices...>) const
    {
        const Barrier full(ring_->barriers->full[slot], *ring_->published);
        if constexpr (Machine::ctas > 1) {
            // Also of a CTA that loads nothing for a peer: else the peer could free a later step here before this one.
            detail::arrive_in_cluster<Machine, 1>(*ring_, full);
            __syncwarp();
        }
        if (elect_one()) {
            full.arrive_and_expect((static_cast<std::uint32_t>(Views::Staged::bytes) + ...));
            if constexpr (Machine::ctas == 1) {
                (detail::load_staged(cuda::std::get<Indices>(bands_).view(), slot_address(slot) + offset<Indices>,
                                     cuda::std::get<Indices>(bands_).at(step), full),
                 ...);
            } else {
                (detail::load_for_cluster<Machine>(cuda::std::get<Indices>(bands_), step,
                                                   slot_address(slot) + offset<Indices>, full,
                                                   *ring_->published_to_cluster),
                 ...);
            }
        }
        __syncwarp();
    }
    template <std::size_t... Indices>
    TESSERA_TILE void copy(int step, int slot, cuda::std::index_sequence<Indices...>) const
    {
        if (step < steps_) {
            (detail::copy_staged<Machine>(cuda::std::get<Indices>(bands_).view(), slot_address(slot) + offset<Indices>,
                                          cuda::std::get<Indices>(bands_).at(step)),
             ...);
        }
        detail::commit_copies<Machine>();
    }

    template <std::size_t... Indices>
    TESSERA_TILE auto current(cuda::std::index_sequence<Indices...> indices) const
    {
        const std::uint32_t slot = slot_address(ring_->slot);
        if constexpr (Machine::role == detail::Role::all) {
            if constexpr (Machine::by_tma) {
                detail::wait_until_full(*ring_);
            } else {
                detail::wait_for_copies<Machine>(ring_->stages - 2);
            }
            detail::meet<Machine::threads>();  // the slot is there, and the one before is read
            const int ahead = ring_->slot == 0 ? ring_->stages - 1 : ring_->slot - 1;
            fill(step_ + ring_->stages - 1, ahead, indices);
        } else if constexpr (by_tcgen05) {
            pass_on(slot, indices);
        } else if constexpr (Machine::role == detail::Role::load) {
            detail::wait_until_empty(*ring_);
            request(step_, ring_->slot, indices);
        } else if constexpr (Machine::role == detail::Role::compute) {
            detail::wait_until_full(*ring_);
        }
        return Step<Staged<Machine, Views>...>{Staged<Machine, Views>(slot + offset_in_cta<Indices>(),
                                                                      cuda::std::get<Indices>(bands_).at(step_),
                                                                      cuda::std::get<Indices>(bands_).kind())...};
    }

    /// tcgen05: the role that loads fills the slot, and the one that multiplies waits for it.
    template <std::size_t... Indices>
    TESSERA_TILE void pass_on([[maybe_unused]] std::uint32_t slot, cuda::std::index_sequence<Indices...>) const
    {
        [[maybe_unused]] auto& state = detail::state_of<Machine>(*ring_);
        if constexpr (Machine::role == detail::Role::load) {
            auto& full = state.words->full[state.slot];
            detail::await_read<Machine>(state, state.words->empty[state.slot], state.parity);
            if (elect_one()) {
                detail::announce_stage<Machine>(state, full,
                                                (detail::bytes_in_cta<Machine>(cuda::std::get<Indices>(bands_)) + ...));
                (detail::load_of_band<Machine>(state, cuda::std::get<Indices>(bands_), step_,
                                               slot + offset_in_cta<Indices>(), &full.bits),
                 ...);
            }
            __syncwarp();
        } else if constexpr (Machine::role == detail::Role::multiply) {
            detail::await_tile<Machine>(state, state.words->full[state.slot], state.parity);
        }
    }

    TESSERA_TILE void next()
    {
        ++step_;
        if constexpr (Machine::role == detail::Role::multiply) {
            auto& state = detail::state_of<Machine>(*ring_);
            detail::commit_to_cluster<Machine>(state, state.words->empty[state.slot]);
        }
        if constexpr (by_warpgroups) {
            detail::commit_products<Machine>();
            if (ring_->unreleased >= 0) {
                detail::wait_for_products<Machine, 1>();  // the tensor core has read the previous slot
                detail::release<Machine>(*ring_, ring_->unreleased);
            }
            ring_->unreleased = ring_->slot;
        }
        if constexpr (Machine::role != detail::Role::plan) {
            detail::advance(*ring_);
        }
    }

    detail::RingState* ring_;
    cuda::std::tuple<Band<Views>...> bands_;
    int steps_ = 0;
    int step_ = 0;
};

/// Goes through bands of inputs step by step; each step gives their tiles, which are loaded ahead through shared memory. Tiles that
/// reach beyond a matrix have zeros there.
///
/// @code{.cpp}
/// for (auto [a, b] : tile::stream(cta, x.row(at), y.column(at))) {
///     sum = mma(a, b, sum);
/// }
/// @endcode
/// A step's tiles are gone when the next step begins. Bands of one stream have equal lengths.
template <class Machine, class... Views>
TESSERA_TILE Stream<Machine, Views...> stream(Cta<Machine> cta, const Band<Views>&... bands)
{
    static_assert(sizeof...(Views) >= 1 && sizeof...(Views) <= 3, "tessera: a stream has one, two or three bands");
    return Stream<Machine, Views...>(cta, bands...);
}

namespace detail {

template <class X>
inline constexpr bool is_band = false;
template <class View>
inline constexpr bool is_band<Band<View>> = true;

}  // namespace detail

/// Refuses to compile what is no band.
template <class Machine, class... Bands>
    requires(!(detail::is_band<Bands> && ...))
TESSERA_TILE auto stream(Cta<Machine>, const Bands&...)
{
    static_assert(tessera::detail::always_false<Bands...>,
                  "tessera: a stream goes through bands of inputs: input.row(at) and input.column(at)");
}

}  // namespace tessera::tile
