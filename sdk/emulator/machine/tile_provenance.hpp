#pragma once

// Where the operand tiles of a CTA's shared memory came from: which tensor copy wrote them, and with which box, swizzle
// and element type. wgmma and tcgen05 read tiles by a matrix descriptor of their own; if it does not fit the copy, the
// product is wrong without any other sign.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/matrix_descriptor.hpp"
#include "machine/tensor_map.hpp"

namespace tessera::emulator {

class SharedShadow;

/// Who reads a tile, and as what.
struct TileUse {
    const char* what = "";     ///< "tcgen05.mma"
    const char* operand = "";  ///< "A"
    std::string_view type;     ///< of the elements: "bf16"; empty: any
    bool padded = false;       ///< elements of 4 and 6 bits have padding: 16 of them take 16 bytes
};

/// The tensor copies that wrote the shared memory of one CTA last. Other writers (stores, cp.async, copies without a
/// tensor map) are not recorded: before a report, the shadow tells whether they have overwritten the bytes since.
class TileProvenance {
public:
    /// A tensor copy (on this line of the PTX text) has written a box of `bytes` at `address` of the shared window.
    void loaded(const TensorMap& map, std::uint32_t address, std::uint32_t bytes, std::uint32_t line);

    /// Compares how the tile is read with how its bytes came. Returns a sentence about the first difference. A tile
    /// fits if, within a box,
    ///   - consecutive 16-byte chunks of a line are consecutive bytes of a row of the box, and consecutive lines are
    ///     consecutive rows (a box with a swizzle, or a descriptor with one),
    ///   - steps along a line do not change the row, and consecutive lines are consecutive rows (neither has a swizzle,
    ///     and the box's rows are core-matrix rows of 16 bytes),
    ///   - the element types, as far as the tensor map's tells, agree.
    /// Between boxes nearly everything is right: halves of multicast copies, several boxes per tile, tiles of different
    /// tensors. Boxes that are one piece of global memory may have been arranged by the host, and count as unknown where
    /// neither side has a swizzle.
    /// `known`: the sentence is not needed, and may be empty.
    [[nodiscard]] std::optional<std::string> check(const OperandTile& tile, const TileUse& use,
                                                   const SharedShadow& shadow, bool known = false);

    /// A sentence if one operand of an instruction runs on from its own box into the box of the other, of another tensor:
    /// M or N is larger than the tile. Equal or overlapping tiles of one tensor are right (A times A transposed).
    [[nodiscard]] std::optional<std::string> check_extents(const OperandTile& a, const OperandTile& b, const char* what,
                                                           const SharedShadow& shadow) const;

private:
    /// What of a tensor map matters here. Dimension 0 is counted in bytes.
    struct Box {
        TensorElement element = TensorElement::u8;
        TensorSwizzle swizzle = TensorSwizzle::none;
        std::uint8_t rank = 1;
        bool flat = false;        ///< its rows follow each other without gaps in global memory, too
        std::uint32_t pitch = 0;  ///< bytes from row to row in shared memory
        std::array<std::uint32_t, max_tensor_rank> counts{};
        friend bool operator==(const Box&, const Box&) = default;
    };
    /// A box in shared memory: addresses [begin, end) of the window.
    struct Stamp {
        std::uint32_t begin = 0, end = 0;
        std::uint32_t line = 0;
        Box box;
        std::uint64_t tensor = 0;  ///< its address
    };
    /// A place in a box: bytes in a row, then the coordinates of the row.
    struct Place {
        const Stamp* stamp = nullptr;
        std::uint32_t address = 0;
        std::uint32_t byte = 0, row = 0;
        std::array<std::uint32_t, max_tensor_rank - 1> outer{};
    };
    struct Step;  // from one chunk of a tile to the next, along a line or to the next line
    struct Known {
        OperandTile tile;
        std::string_view type;
        std::uint64_t version = 0;
    };

    [[nodiscard]] const Stamp* stamp_at(std::uint32_t address) const;
    [[nodiscard]] Place place_of(std::uint32_t address) const;
    [[nodiscard]] std::optional<Step> first_wrong_step(const OperandTile& tile) const;
    [[nodiscard]] static bool fits(const Step& step, const OperandTile& tile);
    [[nodiscard]] std::string describe(const Step& step, const OperandTile& tile, const TileUse& use) const;
    [[nodiscard]] const Stamp* wrong_type(const OperandTile& tile, const TileUse& use) const;
    /// True if the chunk at `address` still has what the copy of the stamp wrote.
    [[nodiscard]] static bool still_has(const Stamp& stamp, std::uint32_t address, const SharedShadow& shadow);
    void forget(const Stamp& stamp);
    [[nodiscard]] static Box box_of(const TensorMap& map, std::uint32_t bytes);
    [[nodiscard]] static std::string describe(const Stamp& stamp);

    std::vector<Stamp> stamps_;  ///< in ascending order, without overlap
    std::uint64_t version_ = 1;  ///< changes with the boxes and their places
    std::vector<Known> known_;   ///< tiles that fitted, by a hash
};

}  // namespace tessera::emulator
