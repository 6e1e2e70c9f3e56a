#pragma once

/// @file
/// @ingroup tile_views
/// @brief The tensor map of an input, on the host. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <source_location>

#include "tessera/element.hpp"
#include "tessera/swizzle.hpp"
#include "tessera/tensor_map.hpp"
#include "tessera/tile/matrix.hpp"

namespace tessera::tile::detail {

/// What a tensor map depends on but the matrix. Its boxes have lines of `in_line` elements.
struct StagedMap {
    ElementType element;
    int type;  // as the driver numbers it
    std::uint32_t element_bytes;
    std::uint32_t in_line;
    std::uint32_t box_lines;
    Swizzle swizzle;
    bool row_major;
};
/// The map of a `StagedTile`.
template <class Staged>
inline constexpr StagedMap map_of = {
    .element = element_traits<typename Staged::element_type>::type,
    .type = tessera::detail::tensor_map_type<typename Staged::element_type>,
    .element_bytes = static_cast<std::uint32_t>(Staged::bytes_of_element),
    .in_line = static_cast<std::uint32_t>(Staged::in_line),
    .box_lines = static_cast<std::uint32_t>(Staged::box_lines),
    .swizzle = Staged::swizzle,
    .row_major = Staged::row_major,
};

/// A matrix of any elements: strides count elements, and the order is somebody else's to know.
using AnyMemory = Memory<const std::byte, RowMajor>;

template <class T, class Order>
AnyMemory untyped(const Memory<const T, Order>& memory)
{
    return {.data = reinterpret_cast<const std::byte*>(memory.data),
            .rows = memory.rows,
            .columns = memory.columns,
            .leading_dimension = memory.leading_dimension,
            .batches = memory.batches,
            .batch_stride = memory.batch_stride,
            .device = memory.device,
            .in_vectors = memory.in_vectors};
}

/// Encodes the tensor map of a matrix.
/// @return  false if there is none: TMA cannot address the matrix, or the device has no TMA
/// @throws Error  as `TensorMap::encode`
bool encode_map(const StagedMap& of, const AnyMemory& memory, AnyTensorMap<3>& map, const std::source_location& caller);

}  // namespace tessera::tile::detail
