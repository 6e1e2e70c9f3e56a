#pragma once

/// @file
/// @ingroup tile_views
/// @brief `Numbers<T>`: an array in device memory from which a program reads single values, such as the matrix of each tile.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <type_traits>

#include "tessera/detail/trap.hpp"
#ifndef __CUDACC_RTC__
#include "tessera/device_span.hpp"
#endif
#include "tessera/tile/matrix.hpp"
#include "tessera/tile/plan.hpp"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

/// An array in device memory from which a program reads single values. All threads of the CTA read the same one.
///
/// @code{.cpp}
/// tile::Numbers<int> expert;  // of each row of tiles; made from a DeviceSpan or DeviceBuffer::span()
/// const auto weights = w.column(at.tile_column(), expert[at.tile_row()]);
/// @endcode
///
/// The host, which runs the program to plan, cannot read device memory: there, each value is 0. A branch that the program does not
/// take for 0 is not planned, so it must not be the only one that streams, holds or exchanges tiles.
///
/// @par Lifetime
/// The memory must outlive the launch. The program does not write to it.
/// @tparam T  an arithmetic type
template <class T>
class Numbers {
    static_assert(std::is_arithmetic_v<T> && !std::is_const_v<T>,
                  "tessera: tile::Numbers are of an arithmetic type, without const");

public:
    /// No numbers.
    Numbers() = default;
#ifndef __CUDACC_RTC__
    /// Refers to the elements of a span.
    Numbers(const DeviceSpan<const T>& numbers) : state_{numbers.data(), numbers.size(), numbers.device()} {}
    /// Refers to elements that can be written, too.
    Numbers(const DeviceSpan<T>& numbers) : Numbers(DeviceSpan<const T>(numbers)) {}
#endif

    /// Returns number `index`; on the host 0. An index out of range stops the kernel.
    TESSERA_TILE T operator[]([[maybe_unused]] std::size_t index) const
    {
#ifdef __CUDA_ARCH__
        tessera::detail::trap_unless(index < state_.size);
        return state_.data[index];
#else
        detail::note_device(state_.device);
        return T{};
#endif
    }
    /// Returns how many numbers there are.
    TESSERA_TILE std::size_t size() const { return state_.size; }
    /// For the library.
    TESSERA_TILE int device() const { return state_.device; }

private:
    detail::NumbersState<T> state_;
};

}  // namespace tessera::tile
