#pragma once

/// @file
/// @ingroup tile_programs
/// @brief What the operations of a program that is compiled at run time note of what they need: comments in its PTX. Private to
/// tessera/tile.
///
/// Nobody runs the kernel that has them. A comment names a matrix by a register that is loaded from the parameter where the
/// matrix's `device` is: this tells which member of the program it is. sdk/src/program/program_notes.cpp reads the comments.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>

namespace tessera::tile::detail {

enum class Along : std::uint8_t;  // plan.hpp

template <class Layout, std::size_t Bytes>
__device__ __forceinline__ void need_scratch()
{
    if constexpr (Layout::registers == 0) {
        asm volatile("// tessera.scratch %0" ::"n"(Bytes));
    }
}

template <class Machine, class Memory>
__device__ __forceinline__ void note_matrix(const Memory& memory)
{
    if constexpr (Machine::is_planned) {
        asm volatile("// tessera.matrix %0" ::"r"(memory.device));
    }
}

__device__ __forceinline__ void note_device(int) {}

__device__ __forceinline__ void note_place_is_read(bool row, bool column)
{
    asm volatile("// tessera.place_is_read %0 %1" ::"r"(row ? 1 : 0), "r"(column ? 1 : 0));
}

__device__ __forceinline__ void note_shared_bands(bool of_rows, bool of_columns)
{
    asm volatile("// tessera.shared_bands %0 %1" ::"r"(of_rows ? 1 : 0), "r"(of_columns ? 1 : 0));
}

template <class Machine, class Memory>
__device__ __forceinline__ void note_places(const Memory& memory, std::int64_t, std::int64_t)
{
    if constexpr (Machine::is_planned) {
        asm volatile("// tessera.places %0" ::"r"(memory.device));
    }
}

template <class View>
__device__ __forceinline__ void note_whole(const View& view, Along of_rows, Along of_columns)
{
    asm volatile("// tessera.whole %0 %1 %2" ::"r"(view.memory().device), "r"(static_cast<int>(of_rows)),
                 "r"(static_cast<int>(of_columns)));
}

__device__ __forceinline__ void note_held_band(int) {}  // the kernel checks it

__device__ __forceinline__ void note_gather() { asm volatile("// tessera.gather" ::); }

template <std::size_t Bytes, class... Bands>
__device__ __forceinline__ void note_stream(const Bands&... bands)
{
    asm volatile("// tessera.stream %0" ::"n"(Bytes));
    (bands.note(), ...);
}

/// Notes a band of the stream that was noted last. If the band has an end of its own, its length is not known.
template <class Memory>
__device__ __forceinline__ void note_band(const Memory& memory, bool along_columns, bool is_whole)
{
    asm volatile("// tessera.band %0 %1 %2" ::"r"(memory.device), "r"(along_columns ? 1 : 0), "r"(is_whole ? 1 : 0));
}

template <class View>
__device__ __forceinline__ void note_held(const View& view, int count, std::uint32_t bytes)
{
    asm volatile("// tessera.held %0 %1 %2" ::"r"(bytes), "r"(count), "r"(view.memory().device));
}

}  // namespace tessera::tile::detail
