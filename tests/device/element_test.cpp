/// The 8-bit element types in device code, which converts them by instructions: the same bits as on the host.

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "device_fixture.hpp"
#include "kernels.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::uint32_t pattern_count = 256;

/// Returns the bits of all floats that distinguish roundings: every value of the format, every midpoint of two, and the
/// floats next to each; every exponent of a float with significands at both ends; NaN and infinities.
template <class Element>
std::vector<std::uint32_t> telling_floats()
{
    std::vector<std::uint32_t> floats{0x7F800001, 0x7FFFFFFF, 0xFFC00000, 0xFF800001};
    const auto add = [&](float value) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        floats.insert(floats.end(), {bits, bits + 1, bits - 1, bits ^ 0x80000000U});
    };
    for (std::uint32_t i = 0; i + 1 < pattern_count / 2; ++i) {
        const float here = Element::from_bits(static_cast<std::uint8_t>(i));
        const float next = Element::from_bits(static_cast<std::uint8_t>(i + 1));
        add(here);
        if (std::isfinite(here) && std::isfinite(next)) {
            add((here + next) / 2);
        }
    }
    for (std::uint32_t exponent = 0; exponent <= 255; ++exponent) {
        for (const std::uint32_t significand : {0x000000U, 0x400000U, 0x500000U, 0x7FFFFEU}) {
            add(std::bit_cast<float>(exponent << 23 | significand));
        }
    }
    return floats;
}

template <class Element>
void check_conversions(Kernel<DisjointSpan<std::uint32_t>> widen,
                       Kernel<DisjointSpan<std::uint16_t>, DeviceSpan<const std::uint32_t>> narrow)
{
    const Stream stream;
    DeviceBuffer<std::uint32_t> widened(stream, pattern_count);
    launch(widen, LaunchConfig::covering(stream, pattern_count), DisjointSpan(widened));
    const std::vector<std::uint32_t> values = widened.to_vector();
    for (std::uint32_t i = 0; i < pattern_count; ++i) {
        CAPTURE(i);
        const float host = Element::from_bits(static_cast<std::uint8_t>(i));
        CHECK(values[i] == std::bit_cast<std::uint32_t>(host));
    }
    const std::vector<std::uint32_t> floats = telling_floats<Element>();
    const auto in = DeviceBuffer<std::uint32_t>::from_host(stream, floats);
    DeviceBuffer<std::uint16_t> out(stream, floats.size());
    launch(narrow, LaunchConfig::covering(stream, floats.size()), DisjointSpan(out), in.span());
    const std::vector<std::uint16_t> codes = out.to_vector();
    for (std::size_t i = 0; i < floats.size(); ++i) {
        CAPTURE(floats[i]);
        CHECK(codes[i] == Element(std::bit_cast<float>(floats[i])).bits);
    }
}

}  // namespace

TEST_CASE("8-bit conversions give the same bits on the device and on the host")
{
    check_conversions<f8e4m3>(widen_e4m3_kernel(), narrow_e4m3_kernel());
    check_conversions<f8e5m2>(widen_e5m2_kernel(), narrow_e5m2_kernel());
}
