#pragma once

/// @file
/// @ingroup device_mma
/// @brief Shared-memory matrix descriptors: they tell wgmma (Hopper) and tcgen05.mma (Blackwell) where a tile of A or B
/// is.
///
/// `SharedLayout` is a tile as a type, `TileLayout` the same as a value. `wgmma_descriptor` and `tcgen05_descriptor`
/// make the 64-bit operand of the instruction from it. The two encodings differ, and so do their types: one does not
/// compile in the other's place. Usable on host and device; folds to constants.
///
/// @code{.cpp}
/// using TileA = SharedLayout<Major::k, Swizzle::b128, 128, 64, 2>;  // (128, 64) of bf16
/// const auto tile = tcgen05_descriptor<TileA>(shared_address(a[0]));
/// const auto next = tile.from_k(16);                                // from element 16 along K on
/// @endcode
///
/// Source: PTX ISA 9.0, "Matrix descriptor format" of wgmma and "Shared memory descriptor" of tcgen05.

#include <cstdint>
#include <type_traits>

#include "tessera/detail/host_device.hpp"
#include "tessera/swizzle.hpp"

namespace tessera {

/// The direction in which an operand is contiguous.
enum class Major : std::uint8_t {
    k,  ///< along K
    mn  ///< along M (A) or N (B)
};

/// A tile of A or B in shared memory, as TMA writes it: (rows, k) elements, where rows are along M (A) or N (B).
///
/// With a swizzle, the tile is a sequence of *blocks* as wide as the swizzle's span in the contiguous direction; each
/// has all of the other direction. Without a swizzle, blocks are 16 bytes wide. One TMA box is one block or a part of
/// it.
struct TileLayout {
    Major major;                  ///< the contiguous direction
    Swizzle swizzle;              ///< the permutation of the blocks
    std::uint32_t rows;           ///< along M or N, in elements
    std::uint32_t k;              ///< along K, in elements
    std::uint32_t element_bytes;  ///< 1, 2 or 4

    /// Returns the size of the tile in bytes.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t bytes() const noexcept { return rows * k * element_bytes; }
    /// Returns what the tile's address must be a multiple of, in bytes.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t alignment() const noexcept { return swizzle_alignment(swizzle); }
    /// Returns the width of a block in the contiguous direction, in bytes.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t span() const noexcept
    {
        return swizzle == Swizzle::none ? chunk_bytes : swizzle_span_bytes(swizzle);
    }
    /// Returns the distance from one block to the next, in bytes.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t block_bytes() const noexcept
    {
        return span() * (major == Major::k ? rows : k);
    }

    /// Returns the leading byte offset (LBO). The hardware ignores it for a swizzled K-major tile, where it is "1" by
    /// convention.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t leading_byte_offset() const noexcept
    {
        if (swizzle == Swizzle::none) {
            return major == Major::k ? block_bytes() : 8 * chunk_bytes;  // the next chunk of K | the next 8 of K
        }
        return major == Major::k ? chunk_bytes : block_bytes();
    }
    /// Returns the stride byte offset (SBO).
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t stride_byte_offset() const noexcept
    {
        if (swizzle == Swizzle::none) {
            return major == Major::k ? 8 * chunk_bytes : block_bytes();  // the next 8 rows | the next chunk of M or N
        }
        return (swizzle == Swizzle::b128_atom_32b ? 4 : 8) * span();  // the next rows of the pattern
    }

    /// Returns where element (row, k) is, in bytes from the tile's aligned origin.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t offset(std::uint32_t row, std::uint32_t column) const noexcept
    {
        const std::uint32_t contiguous = (major == Major::k ? column : row) * element_bytes;
        const std::uint32_t line = major == Major::k ? row : column;
        return swizzled(swizzle, contiguous / span() * block_bytes() + line * span() + contiguous % span());
    }

    /// Returns how far a descriptor's address moves for `count` elements along K, in bytes. `count` elements must be
    /// whole instructions (32 bytes each). Inside a swizzle's span this is a plain addition: the XOR takes its bits
    /// from above it.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t k_offset(std::uint32_t count) const noexcept
    {
        const std::uint32_t contiguous = count * element_bytes;
        return major == Major::k ? contiguous / span() * block_bytes() + contiguous % span() : count * span();
    }

private:
    static constexpr std::uint32_t chunk_bytes = 16;  // the unit of a swizzle's exchange and of a descriptor
};

/// A tile of A or B as a type.
/// @tparam MajorAxis     the contiguous direction
/// @tparam Pattern       the swizzle
/// @tparam Rows          along M or N, in elements: a multiple of 8
/// @tparam K             along K, in elements: a multiple of 32 bytes
/// @tparam ElementBytes  1, 2 or 4
template <Major MajorAxis, Swizzle Pattern, unsigned Rows, unsigned K, unsigned ElementBytes>
struct SharedLayout {
    /// The same tile as a value.
    static constexpr TileLayout layout{MajorAxis, Pattern, Rows, K, ElementBytes};

    static_assert(ElementBytes == 1 || ElementBytes == 2 || ElementBytes == 4,
                  "tessera: an element in shared memory has 1, 2 or 4 bytes");
    static_assert(Rows >= 8 && Rows % 8 == 0,
                  "tessera: a shared tile has a multiple of 8 rows: the tensor core reads eight at a time");
    static_assert(K > 0 && K * ElementBytes % 32 == 0,
                  "tessera: a shared tile's K must be a multiple of 32 bytes, which one instruction reads");
    static_assert((MajorAxis == Major::k ? K : Rows) * ElementBytes % layout.span() == 0,
                  "tessera: the contiguous extent of a shared tile must be a multiple of its swizzle's span");
    static_assert(MajorAxis == Major::k || K % 8 == 0,
                  "tessera: an M- or N-major shared tile has a multiple of 8 elements along K");
    static_assert(MajorAxis == Major::mn || Pattern != Swizzle::b128_atom_32b,
                  "tessera: the swizzle with 32-byte atoms is for M- or N-major tiles of 4-byte elements");

    static constexpr std::uint32_t bytes = layout.bytes();          ///< size of the tile
    static constexpr std::uint32_t alignment = layout.alignment();  ///< its address must be a multiple of this

    /// Returns where element (row, k) is: see `TileLayout::offset`.
    TESSERA_DETAIL_HOST_DEVICE static constexpr std::uint32_t offset(std::uint32_t row, std::uint32_t column) noexcept
    {
        constexpr TileLayout facts = layout;  // device code has no access to a static member of class type
        return facts.offset(row, column);
    }
    /// Returns how far a descriptor's address moves: see `TileLayout::k_offset`.
    TESSERA_DETAIL_HOST_DEVICE static constexpr std::uint32_t k_offset(std::uint32_t count) noexcept
    {
        constexpr TileLayout facts = layout;
        return facts.k_offset(count);
    }
};

/// The two instructions that read shared memory through a descriptor.
enum class TensorCore : std::uint8_t {
    wgmma,   ///< Hopper
    tcgen05  ///< Blackwell
};

/// The layout of a tile that is chosen at run time.
struct AnyLayout {};

/// The 64-bit operand of a matrix instruction. The functions below make it; those of wgmma and of tcgen05 are different
/// types. The tile's layout is part of the type, and an instruction takes only what it can read.
/// @tparam Core    the instruction
/// @tparam Layout  the tile: a SharedLayout, or AnyLayout
template <TensorCore Core, class Layout>
class SmemDescriptor {
public:
    /// Returns a descriptor from its bits. For AnyLayout, whose bits a kernel gets from the host.
    TESSERA_DETAIL_HOST_DEVICE static constexpr SmemDescriptor from_bits(std::uint64_t bits) noexcept
    {
        static_assert(
            std::is_same_v<Layout, AnyLayout>,
            "tessera: bits say nothing of a layout: wgmma_descriptor<Layout> or tcgen05_descriptor<Layout> makes "
            "this descriptor");
        return SmemDescriptor(bits);
    }

    /// Returns the bits that the instruction takes.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint64_t bits() const noexcept { return bits_; }

    /// Returns the same layout `bytes` further on, a multiple of 16. The address field has 14 bits in units of 16
    /// bytes, all of shared memory: nothing carries over, and only the low half changes.
    TESSERA_DETAIL_HOST_DEVICE constexpr SmemDescriptor advanced(std::uint32_t bytes) const noexcept
    {
        return with_low_half(static_cast<std::uint32_t>(bits_) + (bytes >> 4));
    }

    /// Returns the same tile from element `k` along K on, a multiple of what one instruction reads (32 bytes).
    TESSERA_DETAIL_HOST_DEVICE constexpr SmemDescriptor from_k(std::uint32_t k) const noexcept
    {
        return advanced(Layout::k_offset(k));
    }

    /// Returns the descriptor with other low bits: the address, and the leading byte offset, which is the same. For a kernel
    /// that keeps them in a register of its own.
    TESSERA_DETAIL_HOST_DEVICE constexpr SmemDescriptor with_low_half(std::uint32_t low) const noexcept
    {
        return SmemDescriptor((bits_ & 0xFFFFFFFF00000000U) | low);
    }

    /// Returns true if all bits are equal.
    friend constexpr bool operator==(const SmemDescriptor&, const SmemDescriptor&) = default;

private:
    template <class Any>
    friend TESSERA_DETAIL_HOST_DEVICE constexpr SmemDescriptor<TensorCore::wgmma, Any> wgmma_descriptor(
        std::uint32_t shared_address) noexcept;
    template <class Any>
    friend TESSERA_DETAIL_HOST_DEVICE constexpr SmemDescriptor<TensorCore::tcgen05, Any> tcgen05_descriptor(
        std::uint32_t shared_address) noexcept;
    TESSERA_DETAIL_HOST_DEVICE constexpr explicit SmemDescriptor(std::uint64_t bits) noexcept : bits_(bits) {}

    std::uint64_t bits_;
};

/// For Hopper.
template <class Layout = AnyLayout>
using WgmmaDescriptor = SmemDescriptor<TensorCore::wgmma, Layout>;
/// For Blackwell.
template <class Layout = AnyLayout>
using Tcgen05Descriptor = SmemDescriptor<TensorCore::tcgen05, Layout>;

namespace detail {

/// Returns bytes as the 14-bit field of a descriptor. Address bits from 18 on (the CTA's rank in its cluster) are
/// dropped.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint64_t descriptor_field(std::uint32_t bytes) noexcept
{
    return (bytes & 0x3FFFFU) >> 4;
}

TESSERA_DETAIL_HOST_DEVICE constexpr std::uint64_t descriptor_strides(const TileLayout& tile) noexcept
{
    return descriptor_field(tile.leading_byte_offset()) << 16 | descriptor_field(tile.stride_byte_offset()) << 32;
}

TESSERA_DETAIL_HOST_DEVICE constexpr std::uint64_t wgmma_swizzle_code(Swizzle swizzle) noexcept
{
    switch (swizzle) {
        case Swizzle::b128: return 1;
        case Swizzle::b64: return 2;
        case Swizzle::b32: return 3;
        case Swizzle::b128_atom_32b:
        case Swizzle::none: break;
    }
    return 0;
}

TESSERA_DETAIL_HOST_DEVICE constexpr std::uint64_t tcgen05_swizzle_code(Swizzle swizzle) noexcept
{
    switch (swizzle) {
        case Swizzle::b128_atom_32b: return 1;
        case Swizzle::b128: return 2;
        case Swizzle::b64: return 4;
        case Swizzle::b32: return 6;
        case Swizzle::none: break;
    }
    return 0;
}

}  // namespace detail

/// Returns true if wgmma can read the tile: M- or N-major tiles must have 16-bit elements.
TESSERA_DETAIL_HOST_DEVICE constexpr bool wgmma_can_read(const TileLayout& tile) noexcept
{
    return tile.swizzle != Swizzle::b128_atom_32b && (tile.major == Major::k || tile.element_bytes == 2);
}

/// Returns true if tcgen05.mma can read the tile. The swizzle with 32-byte atoms is for M- or N-major tiles of 4-byte
/// elements, and they need it.
TESSERA_DETAIL_HOST_DEVICE constexpr bool tcgen05_can_read(const TileLayout& tile) noexcept
{
    const bool needs_large_atoms = tile.major == Major::mn && tile.element_bytes == 4;
    return needs_large_atoms == (tile.swizzle == Swizzle::b128_atom_32b);
}

/// Returns the descriptor of a tile for wgmma.
/// @param tile            the layout
/// @param shared_address  32-bit shared address of its origin, a multiple of `tile.alignment()`
TESSERA_DETAIL_HOST_DEVICE constexpr WgmmaDescriptor<> wgmma_descriptor(const TileLayout& tile,
                                                                        std::uint32_t shared_address) noexcept
{
    return WgmmaDescriptor<>::from_bits(detail::descriptor_field(shared_address) | detail::descriptor_strides(tile) |
                                        detail::wgmma_swizzle_code(tile.swizzle) << 62);
}

/// Returns the descriptor of a tile for tcgen05.mma.
/// @param tile            the layout
/// @param shared_address  32-bit shared address of its origin, a multiple of `tile.alignment()`
TESSERA_DETAIL_HOST_DEVICE constexpr Tcgen05Descriptor<> tcgen05_descriptor(const TileLayout& tile,
                                                                            std::uint32_t shared_address) noexcept
{
    constexpr std::uint64_t version = std::uint64_t{1} << 46;
    return Tcgen05Descriptor<>::from_bits(detail::descriptor_field(shared_address) | detail::descriptor_strides(tile) |
                                          version | detail::tcgen05_swizzle_code(tile.swizzle) << 61);
}

/// Returns the descriptor of a `SharedLayout` for wgmma. A layout that wgmma cannot read does not compile.
/// @param shared_address  32-bit shared address of the tile's origin, a multiple of `Layout::alignment`
template <class Layout>
TESSERA_DETAIL_HOST_DEVICE constexpr SmemDescriptor<TensorCore::wgmma, Layout> wgmma_descriptor(
    std::uint32_t shared_address) noexcept
{
    constexpr TileLayout tile = Layout::layout;
    static_assert(tile.major == Major::k || tile.element_bytes == 2,
                  "tessera: wgmma reads M- or N-major tiles of 16-bit elements only; others must be K-major");
    static_assert(tile.swizzle != Swizzle::b128_atom_32b,
                  "tessera: wgmma does not have the swizzle with 32-byte atoms");
    return WgmmaDescriptor<Layout>(wgmma_descriptor(tile, shared_address).bits());
}

/// Returns the descriptor of a `SharedLayout` for tcgen05.mma. A layout that it cannot read does not compile.
/// @param shared_address  32-bit shared address of the tile's origin, a multiple of `Layout::alignment`
template <class Layout>
TESSERA_DETAIL_HOST_DEVICE constexpr SmemDescriptor<TensorCore::tcgen05, Layout> tcgen05_descriptor(
    std::uint32_t shared_address) noexcept
{
    constexpr TileLayout tile = Layout::layout;
    static_assert(tcgen05_can_read(tile),
                  "tessera: tcgen05 reads M- or N-major tiles of 4-byte elements with Swizzle::b128_atom_32b only, and "
                  "no other tile with it");
    return Tcgen05Descriptor<Layout>(tcgen05_descriptor(tile, shared_address).bits());
}

}  // namespace tessera
