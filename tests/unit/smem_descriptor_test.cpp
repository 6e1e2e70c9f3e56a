/// Shared-memory matrix descriptors: compared bit by bit with worked values, and the addresses that they describe.

#include "tessera/device/smem_descriptor.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace tessera;

namespace {

template <class Layout>
constexpr std::uint64_t tcgen05_bits = tcgen05_descriptor<Layout>(0).bits();
template <class Layout>
constexpr std::uint64_t wgmma_bits = wgmma_descriptor<Layout>(0).bits();

// K-major with 128 bytes is what nvcc emits for NVIDIA's Blackwell tutorials; the others follow the PTX ISA's tables.
using K128 = SharedLayout<Major::k, Swizzle::b128, 128, 64, 2>;
using K64 = SharedLayout<Major::k, Swizzle::b64, 128, 32, 2>;
using K32 = SharedLayout<Major::k, Swizzle::b32, 128, 16, 2>;
using KNone = SharedLayout<Major::k, Swizzle::none, 128, 64, 2>;
using Mn128 = SharedLayout<Major::mn, Swizzle::b128, 128, 64, 2>;
static_assert(tcgen05_bits<K128> == 0x4000404000010000U && wgmma_bits<K128> == 0x4000004000010000U);
static_assert(tcgen05_bits<K64> == 0x8000402000010000U && wgmma_bits<K64> == 0x8000002000010000U);
static_assert(tcgen05_bits<K32> == 0xC000401000010000U && wgmma_bits<K32> == 0xC000001000010000U);
static_assert(tcgen05_bits<KNone> == 0x0000400800800000U && wgmma_bits<KNone> == 0x0000000800800000U);
static_assert(tcgen05_bits<Mn128> == 0x4000404002000000U && wgmma_bits<Mn128> == 0x4000004002000000U);

// tf32, N-major: 4 rows of 128 bytes, then the next 4; blocks of 32 elements are 32 rows of k apart.
using Mn128Atom32 = SharedLayout<Major::mn, Swizzle::b128_atom_32b, 128, 32, 4>;
static_assert(tcgen05_bits<Mn128Atom32> ==
              (std::uint64_t{1} << 61 | std::uint64_t{1} << 46 | std::uint64_t{512 >> 4} << 32 | (4096U >> 4) << 16));

// The address field holds bits 4 to 17; the cluster rank in bits 24 and above stays out.
static_assert(tcgen05_descriptor<K128>(0x0003'0400).bits() == (tcgen05_bits<K128> | 0x3040U));
static_assert(wgmma_descriptor<K128>(0x0103'0400).bits() == (wgmma_bits<K128> | 0x3040U));

// Worked addresses: f16 (row 5, k 19) and (row 5, k 11), tf32 (n 9, k 5).
static_assert(K128::offset(5, 19) == 758 && K64::offset(5, 19) == 326 && K32::offset(5, 11) == 166);
static_assert(Mn128Atom32::offset(9, 5) == 644);

// K = 16 of 16-bit elements: 32 bytes inside of a span, then the next block; two groups of 8 rows of k if M-major.
static_assert(K128::k_offset(16) == 32 && K128::k_offset(48) == 96);
static_assert(SharedLayout<Major::k, Swizzle::b128, 128, 128, 2>::k_offset(64) == 128 * 128);
static_assert(KNone::k_offset(16) == 2 * 2048 && Mn128::k_offset(16) == 2 * 1024 && Mn128Atom32::k_offset(8) == 1024);

/// The address that the hardware computes for (row, k) from the fields of a descriptor: PTX ISA, "Strides".
std::uint32_t hardware_address(const TileLayout& tile, std::uint64_t descriptor, std::uint32_t row, std::uint32_t k)
{
    const auto start = static_cast<std::uint32_t>(descriptor & 0x3FFFU) << 4;
    const auto leading = static_cast<std::uint32_t>(descriptor >> 16 & 0x3FFFU) << 4;
    const auto stride = static_cast<std::uint32_t>(descriptor >> 32 & 0x3FFFU) << 4;
    const std::uint32_t k_bytes = k * tile.element_bytes;
    const std::uint32_t row_bytes = row * tile.element_bytes;
    const std::uint32_t span = swizzle_span_bytes(tile.swizzle);
    std::uint32_t linear = start;
    if (tile.major == Major::k) {
        linear += tile.swizzle == Swizzle::none
                      ? row / 8 * stride + row % 8 * 16 + k_bytes / 16 * leading + k_bytes % 16
                      : row / 8 * stride + row % 8 * span + k_bytes;
    } else if (tile.swizzle == Swizzle::none) {
        linear += row_bytes / 16 * stride + row_bytes % 16 + k / 8 * leading + k % 8 * 16;
    } else {
        const std::uint32_t group = tile.swizzle == Swizzle::b128_atom_32b ? 4 : 8;
        linear += row_bytes / span * leading + row_bytes % span + k / group * stride + k % group * span;
    }
    return swizzled(tile.swizzle, linear);
}

}  // namespace

TEST_CASE("every element of every layout is where the descriptor says, also after an advance along K")
{
    for (const Major major : {Major::k, Major::mn}) {
        for (const Swizzle swizzle :
             {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128, Swizzle::b128_atom_32b}) {
            for (const std::uint32_t element_bytes : {1U, 2U, 4U}) {
                const TileLayout tile{major, swizzle, 256, 128, element_bytes};
                if (!tcgen05_can_read(tile)) {
                    continue;
                }
                CAPTURE(static_cast<int>(major));
                CAPTURE(static_cast<int>(swizzle));
                CAPTURE(element_bytes);
                const std::uint32_t base = tile.alignment();
                const Tcgen05Descriptor first = tcgen05_descriptor(tile, base);
                const std::uint32_t step = 32 / element_bytes;
                std::vector<bool> used(tile.bytes());
                std::uint32_t wrong = 0;
                for (std::uint32_t k = 0; k < tile.k; ++k) {
                    const Tcgen05Descriptor advanced = first.advanced(tile.k_offset(k / step * step));
                    for (std::uint32_t row = 0; row < tile.rows; ++row) {
                        const std::uint32_t offset = tile.offset(row, k);
                        wrong += hardware_address(tile, advanced.bits(), row, k % step) != base + offset ? 1 : 0;
                        REQUIRE(offset < tile.bytes());
                        wrong += used[offset] ? 1 : 0;
                        used[offset] = true;
                    }
                }
                CHECK(wrong == 0);
            }
        }
    }
}

TEST_CASE("wgmma and tcgen05 describe the same tile with different codes")
{
    CHECK(wgmma_can_read(Mn128::layout));
    CHECK_FALSE(wgmma_can_read({Major::mn, Swizzle::b128, 128, 128, 1}));
    CHECK_FALSE(wgmma_can_read({Major::mn, Swizzle::b128_atom_32b, 128, 32, 4}));
    CHECK(tcgen05_can_read({Major::mn, Swizzle::b128, 128, 128, 1}));
    CHECK_FALSE(tcgen05_can_read({Major::mn, Swizzle::b128, 128, 32, 4}));
    CHECK(tcgen05_descriptor(K128::layout, 0x400).advanced(K128::k_offset(32)).bits() == (0x4000404000010000U | 0x44U));
}
