// cp.async.bulk.tensor to global memory and its reductions, im2col and padded elements, and invalid copies.

#include <cstring>

#include "tensor_kernels.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

TEST_CASE("stores of 1 to 5 dimensions write what is within the bounds and nothing else")
{
    for (unsigned rank = 1; rank <= 5; ++rank) {
        for (const std::array<std::int32_t, 5>& at :
             {std::array<std::int32_t, 5>{0, 0, 0, 0, 0}, {20, 5, 4, 3, 2}, {40, 9, 9, 9, 9}}) {
            CAPTURE(rank);
            CAPTURE(at[0]);
            under_every_schedule(
                store_kernel(store(rank)), "b200",
                [&](PtxRun& run) {
                    const Tensor tensor = make_tensor(run, rank);
                    const LaunchResult result = launch_store(run, tensor.map, at);
                    REQUIRE_CLEAN(run, result);
                    std::vector<std::uint32_t> expected = tensor.words;
                    for (std::uint32_t i = 0; i < elements(tensor.map); ++i) {
                        if (const auto where = place(tensor, at, i)) {
                            expected[*where] = 1000 + i;
                        }
                    }
                    REQUIRE(run.read<std::uint32_t>(tensor.map.address, expected.size()) == expected);
                },
                1);
        }
    }
}

TEST_CASE("a store undoes the swizzle of its box")
{
    PtxRun run(store_kernel(store(2)), "b200");
    TensorMap map;
    map.element = TensorElement::f32;
    map.rank = 2;
    map.extents = {32, 16, 1, 1, 1};
    map.strides = {128, 0, 0, 0};
    map.box = {32, 16, 1, 1, 1};
    map.swizzle = TensorSwizzle::span_128;
    map.address = run.buffer(std::vector<std::uint32_t>(512));
    const LaunchResult result = launch_store(run, map, {0, 0, 0, 0, 0});
    REQUIRE_CLEAN(run, result);
    const auto values = run.read<std::uint32_t>(map.address, 512);
    for (std::uint32_t row = 0; row < 16; ++row) {
        for (std::uint32_t column = 0; column < 32; ++column) {
            const std::uint32_t piece = column / 4 ^ row % 8;
            REQUIRE(values[row * 32 + column] == 1000 + row * 32 + piece * 4 + column % 4);
        }
    }
}

TEST_CASE("a warp stores once for each distinct set of operands, and reduces once for each lane")
{
    for (const bool reduces : {false, true}) {
        CAPTURE(reduces);
        // Even lanes name the box at column 0, odd ones that at column 8.
        const std::string instruction = reduces
                                            ? "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
                                            : "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group";
        under_every_schedule(
            store_kernel("and.b32 r20, r0, 1; shl.b32 r20, r20, 3;" + instruction + " [d1, {r20, r21}], [r1];", true),
            "b200",
            [&](PtxRun& run) {
                Tensor tensor = make_tensor(run, 2);
                tensor.map.element = TensorElement::u32;
                const LaunchResult result = launch_store(run, tensor.map, {0, 0, 0, 0, 0});
                REQUIRE_CLEAN(run, result);
                std::vector<std::uint32_t> expected = tensor.words;
                for (const std::int32_t first : {0, 8}) {
                    for (std::uint32_t i = 0; i < elements(tensor.map); ++i) {
                        std::uint32_t& word = expected[*place(tensor, {first, 0, 0, 0, 0}, i)];
                        word = reduces ? word + 16 * (1000 + i) : 1000 + i;
                    }
                }
                REQUIRE(run.read<std::uint32_t>(tensor.map.address, expected.size()) == expected);
                REQUIRE(result.statistics.tma_store_bytes == (reduces ? 32 : 2) * tensor.map.box_bytes());
            },
            1);
    }
}

namespace {

/// A matrix of 3 rows, 256 bytes apart; `row_bytes` of each row belong to the tensor. All bytes are 7.
TensorMap rows_of(PtxRun& run, TensorElement element, std::uint32_t row_bytes)
{
    TensorMap map;
    map.element = element;
    map.rank = 2;
    map.extents = {row_bytes * 8 / global_bits(element), 3, 1, 1, 1};
    map.strides = {256, 0, 0, 0};
    map.box = {32 * 8 / global_bits(element), 2, 1, 1, 1};
    map.address = run.buffer(std::vector<std::uint32_t>(192, 0x07070707));
    return map;
}

/// The matrix after storing a box of 32 bytes and 2 rows to row 1 from byte `first` on, as far as `row_end`.
std::vector<std::uint8_t> with_box(std::uint32_t first, std::uint32_t row_end)
{
    std::vector<std::uint32_t> box(16);
    for (std::uint32_t i = 0; i < box.size(); ++i) {
        box[i] = 1000 + i;
    }
    std::vector<std::uint8_t> bytes(768, 7);
    for (std::uint32_t row = 0; row < 2; ++row) {
        std::memcpy(bytes.data() + (1 + row) * 256 + first, box.data() + row * 8, std::min(32U, row_end - first));
    }
    return bytes;
}

}  // namespace

TEST_CASE("a store or reduction to rows that end inside a 16-byte chunk writes the whole chunk and is reported")
{
    for (const auto& [element, row_bytes] :
         {std::pair(TensorElement::f32, 252U), std::pair(TensorElement::f32, 244U), std::pair(TensorElement::u64, 248U),
          std::pair(TensorElement::bf16, 242U), std::pair(TensorElement::u8, 255U)}) {
        CAPTURE(row_bytes);
        under_every_schedule(
            store_kernel(store(2)), "b200",
            [&](PtxRun& run) {
                const TensorMap map = rows_of(run, element, row_bytes);
                const std::int32_t column = 224 * 8 / static_cast<std::int32_t>(global_bits(element));
                REQUIRE(launch_store(run, map, {column, 1, 0, 0, 0}).code == 0);
                CHECK_FOUND(run, FindingKind::row_overrun);
                REQUIRE(run.report.findings().size() == 1);
                REQUIRE(run.read<std::uint8_t>(map.address, 768) == with_box(224, 256));
            },
            1);
    }
    // A vector whose last chunk is only partly allocated: no other memory is written.
    PtxRun run(store_kernel(store(1)), "b200");
    TensorMap map;
    map.element = TensorElement::f32;
    map.extents = {15, 1, 1, 1, 1};
    map.box = {16, 1, 1, 1, 1};
    map.address = run.buffer(std::vector<std::uint32_t>(15, 7));
    CHECK(launch_store(run, map, {0, 0, 0, 0, 0}).code == 0);
    CHECK_FOUND(run, FindingKind::row_overrun);
    CHECK(run.read<std::uint32_t>(map.address, 15).back() == 1014);

    PtxRun reduction(
        store_kernel("cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.tile.bulk_group [d1, {r20, r21}], [r1];"),
        "b200");
    const TensorMap rows = rows_of(reduction, TensorElement::u32, 252);
    CHECK(launch_store(reduction, rows, {56, 1, 0, 0, 0}).code == 0);
    CHECK_FOUND(reduction, FindingKind::row_overrun);
    std::vector<std::uint32_t> expected(192, 0x07070707);
    for (std::uint32_t i = 0; i < 16; ++i) {
        expected[(1 + i / 8) * 64 + 56 + i % 8] ^= 1000 + i;
    }
    CHECK(reduction.read<std::uint32_t>(rows.address, expected.size()) == expected);
}

TEST_CASE("a store that does not reach a partial chunk, or has rows of whole chunks, is right")
{
    const auto store_to = [](TensorElement element, std::uint32_t row_bytes, std::uint32_t first,
                             std::uint32_t row_end) {
        CAPTURE(row_bytes);
        PtxRun run(store_kernel(store(2)), "b200");
        const TensorMap map = rows_of(run, element, row_bytes);
        const std::uint32_t column = first * 8 / global_bits(element);
        const LaunchResult result = launch_store(run, map, {static_cast<std::int32_t>(column), 1, 0, 0, 0});
        REQUIRE_CLEAN(run, result);
        CHECK(run.read<std::uint8_t>(map.address, 768) == with_box(first, row_end));
    };
    store_to(TensorElement::f32, 252, 208, 240);
    store_to(TensorElement::u8, 241, 208, 240);
    store_to(TensorElement::f32, 240, 224, 240);
    store_to(TensorElement::bf16, 256, 224, 256);
    store_to(TensorElement::f32, 252, 256, 256);  // the whole box is out of bounds
}

TEST_CASE("scatter4 and reductions")
{
    PtxRun scatter(store_kernel("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [d1, {r20, r21, "
                                "r22, r23, r24}], [r1];"),
                   "b200");
    Tensor tensor = make_tensor(scatter, 2);
    tensor.map.box[1] = 1;
    const LaunchResult scattered = launch_store(scatter, tensor.map, {8, 6, 1, 7, 3});
    REQUIRE_CLEAN(scatter, scattered);
    std::vector<std::uint32_t> expected = tensor.words;
    for (std::uint32_t i = 0; i < 32; ++i) {
        const std::uint32_t row = std::array{6U, 1U, 7U, 3U}[i / 8];
        if (row < 7) {
            expected[row * 32 + 8 + i % 8] = 1000 + i;
        }
    }
    CHECK(scatter.read<std::uint32_t>(tensor.map.address, expected.size()) == expected);

    for (const char* operation : {"add", "min", "max", "inc", "dec", "and", "or", "xor"}) {
        CAPTURE(operation);
        under_every_schedule(
            store_kernel("cp.reduce.async.bulk.tensor.2d.global.shared::cta." + std::string(operation) +
                         ".tile.bulk_group [d1, {r20, r21}], [r1];"),
            "b200",
            [&](PtxRun& run) {
                Tensor target = make_tensor(run, 2);
                target.map.element = TensorElement::u32;
                const std::array<std::int32_t, 5> at{20, 5, 0, 0, 0};
                const LaunchResult result = launch_store(run, target.map, at);
                REQUIRE_CLEAN(run, result);
                std::vector<std::uint32_t> wanted = target.words;
                for (std::uint32_t i = 0; i < elements(target.map); ++i) {
                    if (const auto where = place(target, at, i)) {
                        std::uint32_t& old = wanted[*where];
                        const std::uint32_t value = 1000 + i;
                        const std::string name = operation;
                        old = name == "add"   ? old + value
                              : name == "min" ? std::min(old, value)
                              : name == "max" ? std::max(old, value)
                              : name == "inc" ? (old >= value ? 0 : old + 1)
                              : name == "dec" ? (old == 0 || old > value ? value : old - 1)
                              : name == "and" ? old & value
                              : name == "or"  ? old | value
                                              : old ^ value;
                    }
                }
                REQUIRE(run.read<std::uint32_t>(target.map.address, wanted.size()) == wanted);
            },
            1);
    }
}

TEST_CASE("copies that are not valid are reported, and fault where hardware does")
{
    const auto load_with = [](const std::string& instruction, auto&& change, const std::array<std::int32_t, 5>& at,
                              int code, FindingKind kind) {
        under_every_schedule(
            load_kernel(instruction, "96"), "b200",
            [&](PtxRun& run) {
                Tensor tensor = make_tensor(run, 2);
                change(tensor.map);
                LaunchResult result;
                launch_load(run, tensor.map, at, 24, result);
                INFO(result.message);
                CHECK(result.code == code);
                CHECK_FOUND(run, kind);
            },
            1);
    };
    const auto same = [](TensorMap&) {};
    load_with(load(2), same, {1, 0, 0, 0, 0}, 715, FindingKind::invalid_operand);  // 4 bytes: not a multiple of 16
    load_with(load(3), same, {0, 0, 0, 0, 0}, 715, FindingKind::invalid_operand);  // 3 coordinates, 2 dimensions
    load_with("add.u32 r1, r1, 64; " + load(2), same, {0, 0, 0, 0, 0}, 716, FindingKind::misaligned);
    load_with("add.u32 r1, r1, 16320; " + load(2), same, {0, 0, 0, 0, 0}, 716, FindingKind::misaligned);
    load_with("add.u32 r1, r1, 16384; " + load(2), same, {0, 0, 0, 0, 0}, 700, FindingKind::out_of_bounds);
    load_with("add.u64 d1, d1, 8; " + load(2), same, {0, 0, 0, 0, 0}, 716, FindingKind::misaligned);
    load_with("mov.u64 d1, d0; " + load(2), same, {0, 0, 0, 0, 0}, 715, FindingKind::invalid_descriptor);
    load_with(load(2), [](TensorMap& map) { map.address = 0x1000; }, {0, 0, 0, 0, 0}, 700, FindingKind::out_of_bounds);
    load_with(
        load(2), [](TensorMap& map) { map.interleave = TensorInterleave::bytes_16; }, {0, 0, 0, 0, 0}, 715,
        FindingKind::not_emulated);
    load_with("mov.u64 d1, 0x00D0000000000000; " + load(2), same, {0, 0, 0, 0, 0}, 715,
              FindingKind::invalid_descriptor);

    PtxRun negative(store_kernel(store(2)), "b200");
    CHECK(launch_store(negative, make_tensor(negative, 2).map, {0, -1, 0, 0, 0}).code == 715);
    CHECK_FOUND(negative, FindingKind::invalid_operand);
    PtxRun element(
        store_kernel("cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.bulk_group [d1, {r20, r21}], [r1];"),
        "b200");
    CHECK(launch_store(element, make_tensor(element, 2).map, {0, 0, 0, 0, 0}).code == 715);  // inc of f32
    CHECK_FOUND(element, FindingKind::invalid_operand);
}

TEST_CASE("im2col loads and padded elements on the machine")
{
    const std::string instruction =
        "mov.u16 h1, 1; mov.u16 h2, 2; cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::"
        "complete_tx::bytes [r1], [d1, {r20, r21, r22, r23}], [r2], {h1, h2};";
    under_every_schedule(
        load_kernel(instruction, "256"), "b200",
        [](PtxRun& run) {
            // 2 images of 3 x 4 pixels with 4 channels of f32; a 3 x 3 filter with padding 1, at position (1, 2).
            TensorMap map;
            map.mode = TensorMapMode::im2col;
            map.element = TensorElement::f32;
            map.rank = 4;
            map.extents = {4, 3, 4, 2, 1};
            map.strides = {16, 48, 192, 0};
            map.lower_corner = {-1, -1, 0};
            map.upper_corner = {-1, -1, 0};
            map.channels_per_pixel = 4;
            map.pixels_per_column = 16;
            std::vector<std::uint32_t> words(96);
            for (std::uint32_t i = 0; i < words.size(); ++i) {
                words[i] = i + 1;
            }
            map.address = run.buffer(words);
            LaunchResult result;
            const auto values = launch_load(run, map, {0, -1, -1, 0, 0}, 64, result);
            REQUIRE_CLEAN(run, result);
            for (std::uint32_t i = 0; i < 64; ++i) {
                const std::uint32_t pixel = i / 4;
                const std::uint32_t x = pixel % 3;           // -1 + 1 + x
                const std::uint32_t y = pixel % 12 / 3 + 1;  // -1 + 2 + y
                const std::uint32_t expected = y < 4 ? (pixel / 12 * 12 + y * 3 + x) * 4 + i % 4 + 1 : 0;
                REQUIRE(values[i] == expected);
            }
        },
        2);
    PtxRun run(load_kernel(load(2), "64"), "b200");  // the mbarrier does not count padding
    TensorMap map;
    map.element = TensorElement::u4_align16;
    map.rank = 2;
    map.extents = {128, 2, 1, 1, 1};
    map.strides = {64, 0, 0, 0};
    map.box = {128, 1, 1, 1, 1};
    std::vector<std::uint32_t> words(32);
    for (std::uint32_t i = 0; i < words.size(); ++i) {
        words[i] = i + 1;
    }
    map.address = run.buffer(words);
    LaunchResult result;
    const auto values = launch_load(run, map, {0, 1, 0, 0, 0}, 32, result);
    REQUIRE_CLEAN(run, result);
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(values[i] == (i % 4 < 2 ? 16 + i / 4 * 2 + i % 4 + 1 : 0));  // 8 bytes of data, 8 of padding
    }
}

TEST_CASE("invalid forms are refused when the module is loaded")
{
    for (const char* wrong :
         {"cp.async.bulk.tensor.6d.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d1, {r20}], [r2];",
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d1, {r20}], [r2];",
          "cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [r1], [d1, {r20, r21}], "
          "[r2];",
          "cp.async.bulk.tensor.2d.shared::cluster.global.tile::scatter4.mbarrier::complete_tx::bytes [r1], [d1, "
          "{r20}], [r2];",
          "cp.async.bulk.tensor.2d.global.shared::cta.mbarrier::complete_tx::bytes [d1, {r20, r21}], [r1], [r2];",
          "cp.reduce.async.bulk.tensor.2d.global.shared::cta.bulk_group [d1, {r20, r21}], [r1];"}) {
        CAPTURE(wrong);
        const PtxRun run(load_kernel(wrong, "96"), "b200");
        CHECK_FALSE(run.module().find_kernel("k")->load_error.empty());
    }
}
