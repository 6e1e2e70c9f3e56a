// Matrix and instruction descriptors: values of nvcc and CUTLASS, and addresses against the definitions.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "machine/instruction_descriptor.hpp"
#include "machine/matrix_descriptor.hpp"
#include "reference.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

TEST_CASE("matrix descriptors: fields of known values")
{
    const auto tcgen05 = decode_tcgen05_descriptor(0x4000404000010000 | 0x1400 >> 4);
    CHECK(tcgen05.problem == "");
    CHECK(tcgen05.descriptor.start == 0x1400);
    CHECK(tcgen05.descriptor.stride == 1024);
    CHECK(tcgen05.descriptor.leading == 16);
    CHECK(tcgen05.descriptor.swizzle == TensorSwizzle::span_128);
    CHECK(decode_tcgen05_descriptor(0x8000402000010000).descriptor.swizzle == TensorSwizzle::span_64);
    CHECK(decode_tcgen05_descriptor(0xC000401000010000).descriptor.swizzle == TensorSwizzle::span_32);
    CHECK(decode_tcgen05_descriptor(0x2000402000010000).descriptor.swizzle == TensorSwizzle::span_128_atom_32);
    const auto plain = decode_tcgen05_descriptor(0x0000400800800000);
    CHECK(plain.descriptor.swizzle == TensorSwizzle::none);
    CHECK(plain.descriptor.leading == 2048);
    CHECK(plain.descriptor.stride == 128);

    const auto wgmma = decode_wgmma_descriptor(0x4000004000010000 | 0x3FFF);
    CHECK(wgmma.problem == "");
    CHECK(wgmma.descriptor.start == 0x3FFF0);
    CHECK(wgmma.descriptor.swizzle == TensorSwizzle::span_128);
    CHECK(decode_wgmma_descriptor(0x8000002000010000).descriptor.swizzle == TensorSwizzle::span_64);
    CHECK(decode_wgmma_descriptor(0xC000001000010000).descriptor.swizzle == TensorSwizzle::span_32);
    // Each form is refused by the other's decoder.
    CHECK(decode_tcgen05_descriptor(0x4000004000010000).problem.find("wgmma") != std::string::npos);
    CHECK(decode_wgmma_descriptor(0x4000404000010000).problem.find("tcgen05") != std::string::npos);
    CHECK(decode_wgmma_descriptor(0x4010004000010000).problem.find("52-61") != std::string::npos);
    for (const unsigned bit : {14u, 15u, 30u, 31u}) {
        CHECK(decode_wgmma_descriptor(0x4000004000010000 | std::uint64_t{1} << bit).problem != "");
        CHECK(decode_tcgen05_descriptor(0x4000404000010000 | std::uint64_t{1} << bit).problem != "");
    }
}

TEST_CASE("matrix descriptors: the address of every byte, in every layout")
{
    const std::pair<Layout, TensorSwizzle> layouts[] = {{Layout::none, TensorSwizzle::none},
                                                        {Layout::swizzle_32, TensorSwizzle::span_32},
                                                        {Layout::swizzle_64, TensorSwizzle::span_64},
                                                        {Layout::swizzle_128, TensorSwizzle::span_128},
                                                        {Layout::swizzle_128_atom_32, TensorSwizzle::span_128_atom_32}};
    for (const auto& [layout, swizzle] : layouts) {
        for (const bool mn_major : {false, true}) {
            const unsigned size = layout == Layout::swizzle_128_atom_32 ? 4 : 2, k = 32 / size, rows = 128;
            if (layout == Layout::swizzle_128_atom_32 && !mn_major) {
                continue;
            }
            const MemoryLayout memory{layout, mn_major, 4096, 1024};
            OperandTile tile;
            tile.descriptor = {.start = 0x2000, .leading = 4096, .stride = 1024, .swizzle = swizzle};
            tile.major = mn_major ? Major::mn : Major::k;
            tile.lines = mn_major ? k : rows;
            tile.line_bytes = mn_major ? rows * size : 32;
            CHECK(tile.problem(8 * size) == "");
            std::set<std::uint32_t> covered;
            unsigned wrong = 0;
            for (unsigned row = 0; row < rows; ++row) {
                for (unsigned depth = 0; depth < k; ++depth) {
                    for (unsigned byte = 0; byte < size; ++byte) {
                        const auto expected =
                            static_cast<std::uint32_t>(0x2000 + memory.offset(row, depth, size) + byte);
                        const unsigned line = mn_major ? depth : row, at = (mn_major ? row : depth) * size + byte;
                        wrong += tile.address(line, at) != expected;
                        covered.insert(expected);
                    }
                }
            }
            CAPTURE(static_cast<int>(layout));
            CAPTURE(mn_major);
            CHECK(wrong == 0);
            // ranges() and the pieces are exactly these bytes; cover() contains them.
            std::size_t bytes = 0, outside = 0;
            for (const auto& range : tile.ranges()) {
                bytes += range.end - range.begin;
                for (std::uint32_t address = range.begin; address < range.end; ++address) {
                    outside += !covered.contains(address);
                }
            }
            CHECK(bytes == covered.size());
            CHECK(outside == 0);
            std::set<std::uint32_t> pieces;
            tile.for_each_piece([&](std::uint32_t begin, std::uint32_t count) {
                for (std::uint32_t address = begin; address < begin + count; ++address) {
                    pieces.insert(address);
                }
            });
            CHECK(pieces == covered);
            const auto cover = tile.cover();
            std::size_t missing = 0;
            for (const std::uint32_t address : covered) {
                missing += std::ranges::none_of(
                    cover, [&](const auto& range) { return address >= range.begin && address < range.end; });
            }
            CHECK(missing == 0);
        }
    }
}

TEST_CASE("matrix descriptors: test vectors")
{
    const auto at = [](TensorSwizzle swizzle, Major major, std::uint32_t stride, unsigned line, unsigned byte) {
        const OperandTile tile{
            .descriptor = {.stride = stride, .swizzle = swizzle}, .major = major, .lines = 64, .line_bytes = 128};
        return tile.address(line, byte);
    };
    CHECK(at(TensorSwizzle::span_128, Major::k, 1024, 5, 38) == 758);
    CHECK(at(TensorSwizzle::span_64, Major::k, 512, 5, 38) == 326);
    CHECK(at(TensorSwizzle::span_32, Major::k, 256, 5, 22) == 166);
    CHECK(at(TensorSwizzle::span_128_atom_32, Major::mn, 512, 5, 36) == 644);
}

TEST_CASE("instruction descriptors: values from nvcc and CUTLASS")
{
    struct Known {
        MmaForm form;
        std::uint32_t bits;
        unsigned m, n, k;
        MmaElement a, b;
        MmaSum d;
        DataPath path;
    };
    const std::vector<Known> values{
        {{.kind = MmaKind::f16, .cta_group = 2},
         0x10200010,
         256,
         128,
         16,
         MmaElement::f16,
         MmaElement::f16,
         MmaSum::f32,
         DataPath::a},
        {{.kind = MmaKind::f16}, 0x08400010, 128, 256, 16, MmaElement::f16, MmaElement::f16, MmaSum::f32, DataPath::d},
        {{.kind = MmaKind::f16}, 0x08200000, 128, 128, 16, MmaElement::f16, MmaElement::f16, MmaSum::f16, DataPath::d},
        {{.kind = MmaKind::f16}, 0x04100490, 64, 64, 16, MmaElement::bf16, MmaElement::bf16, MmaSum::f32, DataPath::f},
        {{.kind = MmaKind::f16, .cta_group = 2},
         0x10400490,
         256,
         256,
         16,
         MmaElement::bf16,
         MmaElement::bf16,
         MmaSum::f32,
         DataPath::a},
        {{.kind = MmaKind::f16, .cta_group = 2},
         0x08400490,
         128,
         256,
         16,
         MmaElement::bf16,
         MmaElement::bf16,
         MmaSum::f32,
         DataPath::b},
        {{.kind = MmaKind::tf32},
         0x08200910,
         128,
         128,
         8,
         MmaElement::tf32,
         MmaElement::tf32,
         MmaSum::f32,
         DataPath::d},
        {{.kind = MmaKind::f8f6f4},
         0x08200010,
         128,
         128,
         32,
         MmaElement::e4m3,
         MmaElement::e4m3,
         MmaSum::f32,
         DataPath::d},
        {{.kind = MmaKind::f8f6f4, .cta_group = 2},
         0x10400090,
         256,
         256,
         32,
         MmaElement::e5m2,
         MmaElement::e4m3,
         MmaSum::f32,
         DataPath::a},
        {{.kind = MmaKind::f8f6f4, .cta_group = 2},
         0x10400410,
         256,
         256,
         32,
         MmaElement::e4m3,
         MmaElement::e5m2,
         MmaSum::f32,
         DataPath::a},
        {{.kind = MmaKind::f8f6f4},
         0x08201690,
         128,
         128,
         32,
         MmaElement::e2m1,
         MmaElement::e2m1,
         MmaSum::f32,
         DataPath::d},
        {{.kind = MmaKind::i8}, 0x084004A0, 128, 256, 32, MmaElement::s8, MmaElement::s8, MmaSum::s32, DataPath::d},
        {{.kind = MmaKind::i8}, 0x08400020, 128, 256, 32, MmaElement::u8, MmaElement::u8, MmaSum::s32, DataPath::d},
        {{.kind = MmaKind::mxf8f6f4, .scales = 1},
         0x08A00000,
         128,
         128,
         32,
         MmaElement::e4m3,
         MmaElement::e4m3,
         MmaSum::f32,
         DataPath::d},
        {{.kind = MmaKind::mxf8f6f4, .cta_group = 2, .scales = 1},
         0x10C00000,
         256,
         256,
         32,
         MmaElement::e4m3,
         MmaElement::e4m3,
         MmaSum::f32,
         DataPath::a},
        {{.kind = MmaKind::mxf4, .scales = 2},
         0x08A00480,
         128,
         128,
         64,
         MmaElement::e2m1,
         MmaElement::e2m1,
         MmaSum::f32,
         DataPath::d},
        {{.kind = MmaKind::mxf4nvf4, .scales = 4},
         0x08200480,
         128,
         128,
         64,
         MmaElement::e2m1,
         MmaElement::e2m1,
         MmaSum::f32,
         DataPath::d},
        {{.kind = MmaKind::mxf4nvf4, .cta_group = 2, .scales = 4},
         0x10400480,
         256,
         256,
         64,
         MmaElement::e2m1,
         MmaElement::e2m1,
         MmaSum::f32,
         DataPath::a},
        {{.kind = MmaKind::f16, .weight_stationary = true},
         0x02100010,
         32,
         64,
         16,
         MmaElement::f16,
         MmaElement::f16,
         MmaSum::f32,
         DataPath::g}};
    for (const Known& known : values) {
        const auto decoded = decode_instruction_descriptor(known.bits, known.form);
        const InstructionDescriptor& d = decoded.descriptor;
        CAPTURE(known.bits);
        CHECK(decoded.problem == "");
        CHECK(d.m == known.m);
        CHECK(d.n == known.n);
        CHECK(d.k == known.k);
        CHECK((d.a == known.a && d.b == known.b && d.d == known.d));
        CHECK(d.data_path == known.path);
    }
    const auto majors = decode_instruction_descriptor(0x08418490, {.kind = MmaKind::f16}).descriptor;
    CHECK((majors.a_major == Major::mn && majors.b_major == Major::mn));
    CHECK(decode_instruction_descriptor(0x08410490, {.kind = MmaKind::f16}).descriptor.a_major == Major::k);
}

TEST_CASE("instruction descriptors: wrong ones are refused, and the sentence names the field")
{
    struct Bad {
        MmaForm form;
        std::uint32_t bits;
        std::string words;
    };
    const MmaForm mx{.kind = MmaKind::mxf8f6f4, .scales = 1}, nv{.kind = MmaKind::mxf4nvf4, .scales = 4};
    const std::vector<Bad> values{
        {mx, 0x08200000, "scale type"},
        {mx, 0x09A00000, "bits 24-26"},
        {mx, 0x88A00000, "bit 31"},
        {mx, 0x00A00000, "M is 0"},
        {nv, 0x88200480, "K = 96"},
        {nv, 0x08208480, "K-major only"},
        {nv, 0x28200480, "scale factor id of A"},
        {{.kind = MmaKind::mxf4nvf4, .scales = 2}, 0x08200480, ".scale_vec::4X"},
        {{.kind = MmaKind::tf32}, 0x08200900, "D type"},
        {{.kind = MmaKind::i8}, 0x08502020 | 4u << 17, "no negation"},
        {{.kind = MmaKind::i8}, 0x080A04A0, "N is 40"},
        {{.kind = MmaKind::f8f6f4}, 0x08010010 | 3u << 17, "N-major B of 8-bit"},
        {{.kind = MmaKind::f16, .a_in_tensor_memory = true}, 0x08208010, "tensor memory is K-major"},
        {{.kind = MmaKind::f16, .a_in_tensor_memory = true, .shift_a = true}, 0x04100010, ".ashift needs M = 128"},
        {{.kind = MmaKind::f16, .cta_group = 2}, 0x04100010, "pair"},
        {{.kind = MmaKind::f16, .cta_group = 2}, 0x10060010, "steps of 16"},
        {{.kind = MmaKind::f16, .weight_stationary = true}, 0x08080010, "with .ws it is 64"}};
    for (const Bad& bad : values) {
        const std::string problem = decode_instruction_descriptor(bad.bits, bad.form).problem;
        CAPTURE(problem);
        CAPTURE(bad.words);
        CHECK(problem.find(bad.words) != std::string::npos);
    }
}
