#pragma once

// Which bytes a tensor copy moves: from the tensor's global memory to the dense box in shared memory, or back (PTX ISA
// "Tensors": tiled mode, gather4 and scatter4, im2col mode).

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "machine/tensor_map.hpp"

namespace tessera::emulator {

/// The meaning of a tensor copy's coordinates.
enum class BoxMode : std::uint8_t {
    tile,       ///< of the box's first element, one per dimension
    four_rows,  ///< tile::gather4, tile::scatter4: column, and the four rows of a matrix
    im2col,     ///< of the first pixel, with offsets into the filter's window
};

struct BoxRequest {
    BoxMode mode = BoxMode::tile;
    unsigned dimensions = 1;  ///< of the instruction: .1d to .5d
    std::array<std::int32_t, max_tensor_rank> coordinates{};
    std::array<std::uint32_t, 3> offsets{};  ///< im2col: along the pixel dimensions among 1, 2, 3
};

/// Bytes that are contiguous in both memories.
struct BoxRun {
    std::uint64_t global = 0;  ///< address; only if `inside`
    std::uint32_t linear = 0;  ///< from the start of the box, before swizzling
    std::uint32_t shared_bytes = 0;
    std::uint32_t global_bytes =
        0;               ///< fewer than `shared_bytes` for packed elements with padding; the rest is padding
    bool inside = true;  ///< false: out of bounds: loads fill it, stores skip it
    /// Bytes of the box after `global_bytes` that are beyond the end of the tensor's row, but in its last 16-byte
    /// chunk. An H200 stores and reduces them, too.
    std::uint32_t overrun_bytes = 0;
};

/// Why a copy with this map is not valid, as a sentence; empty if it is valid.
[[nodiscard]] std::string problem_of(const TensorMap& map, const BoxRequest& request, bool is_store);

/// The shared memory that the copy covers, including out-of-bounds parts and the unused rest of the swizzle's span
/// after narrower rows.
[[nodiscard]] std::uint32_t box_bytes(const TensorMap& map, const BoxRequest& request) noexcept;

/// All runs of a valid copy, in the order of `linear`. Together they are the whole box.
[[nodiscard]] std::vector<BoxRun> box_runs(const TensorMap& map, const BoxRequest& request);

/// The bytes, repeated, that fill out-of-bounds elements.
[[nodiscard]] std::array<std::byte, 8> fill_pattern(const TensorMap& map) noexcept;

/// Returns true if a load changes elements of this type.
[[nodiscard]] bool converts_elements(TensorElement element) noexcept;
/// Applies that change (rounding to tf32) in place.
void convert_loaded(const TensorMap& map, std::byte* bytes, std::size_t size) noexcept;

}  // namespace tessera::emulator
