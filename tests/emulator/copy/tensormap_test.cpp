// tensormap.replace and tensormap.cp_fenceproxy: every field, and a map that a kernel makes for itself.

#include <cstring>

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

TensorMap base_map()
{
    TensorMap map;
    map.element = TensorElement::f16;
    map.rank = 3;
    map.address = 0x1000;
    map.extents = {64, 32, 8, 1, 1};
    map.strides = {128, 4096, 0, 0};
    map.box = {64, 8, 1, 1, 1};
    map.swizzle = TensorSwizzle::span_128;
    return map;
}

std::string replace_kernel(const std::string& replace)
{
    return module_text("sm_100a", R"(
.visible .entry k(.param .u64 map)
{
    .reg .pred p; .reg .b32 r<8>; .reg .b64 d<4>;
    ld.param.u64 d0, [map];
    mov.u32 r0, %tid.x;
    setp.ne.u32 p, r0, 0;
    @p ret;
    )" + replace + R"(
    ret;
}
)");
}

/// The map after the kernel.
TensorMap replaced(const std::string& replace, const TensorMap& before)
{
    CAPTURE(replace);
    PtxRun run(replace_kernel(replace), "b200");
    const auto bytes = encode(before);
    const std::uint64_t address = run.buffer(std::vector<std::byte>(bytes.begin(), bytes.end()));
    const LaunchResult result = run.launch("k", {}, address);
    REQUIRE_CLEAN(run, result);
    const auto after = run.read<std::byte>(address, tensor_map_bytes);
    const auto map = decode_tensor_map(std::span<const std::byte, tensor_map_bytes>(after.data(), tensor_map_bytes));
    REQUIRE(map.has_value());
    return *map;
}

}  // namespace

TEST_CASE("each field is replaced, and only that")
{
    const auto check = [](const std::string& replace, auto&& change) {
        TensorMap expected = base_map();
        change(expected);
        CHECK((replaced(replace, base_map()) == expected));
    };
    check("mov.u64 d1, 0x123450; tensormap.replace.tile.global_address.global.b1024.b64 [d0], d1;",
          [](TensorMap& map) { map.address = 0x123450; });
    check("tensormap.replace.tile.rank.global.b1024.b32 [d0], 1;", [](TensorMap& map) { map.rank = 2; });
    check("tensormap.replace.tile.box_dim.global.b1024.b32 [d0], 1, 16;", [](TensorMap& map) { map.box[1] = 16; });
    check("mov.u32 r1, 100; tensormap.replace.tile.global_dim.global.b1024.b32 [d0], 2, r1;",
          [](TensorMap& map) { map.extents[2] = 100; });
    check("mov.u64 d1, 8192; tensormap.replace.tile.global_stride.global.b1024.b64 [d0], 1, d1;",
          [](TensorMap& map) { map.strides[1] = 8192; });
    check("tensormap.replace.tile.element_stride.b1024.b32 [d0], 0, 2;",
          [](TensorMap& map) { map.element_strides[0] = 2; });
    check("tensormap.replace.tile.elemtype.global.b1024.b32 [d0], 10;",
          [](TensorMap& map) { map.element = TensorElement::bf16; });
    check("tensormap.replace.tile.elemtype.global.b1024.b32 [d0], 9;",
          [](TensorMap& map) { map.element = TensorElement::f64; });
    check("tensormap.replace.tile.elemtype.global.b1024.b32 [d0], 8;",
          [](TensorMap& map) { map.element = TensorElement::f32_ftz; });
    check("tensormap.replace.tile.interleave_layout.global.b1024.b32 [d0], 1;",
          [](TensorMap& map) { map.interleave = TensorInterleave::bytes_16; });
    check("tensormap.replace.tile.swizzle_mode.global.b1024.b32 [d0], 1;",
          [](TensorMap& map) { map.swizzle = TensorSwizzle::span_32; });
    check("tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [d0], 1;",
          [](TensorMap& map) { map.swizzle = TensorSwizzle::span_128_atom_32; });
    check("tensormap.replace.tile.fill_mode.global.b1024.b32 [d0], 1;",
          [](TensorMap& map) { map.fill = TensorFill::nan; });
}

TEST_CASE("values out of range, and bytes that are not a tensor map, are reported")
{
    const auto found = [](const std::string& replace, bool with_map) {
        CAPTURE(replace);
        PtxRun run(replace_kernel(replace), "b200");
        const auto bytes = with_map ? encode(base_map()) : std::array<std::byte, tensor_map_bytes>{std::byte{1}};
        const std::uint64_t address = run.buffer(std::vector<std::byte>(bytes.begin(), bytes.end()));
        CHECK(run.launch("k", {}, address).code == 0);
        CHECK_FOUND(run, FindingKind::invalid_descriptor);
    };
    found("mov.u32 r1, 300; tensormap.replace.tile.box_dim.global.b1024.b32 [d0], 0, r1;", true);
    found("mov.u64 d1, 24; tensormap.replace.tile.global_stride.global.b1024.b64 [d0], 0, d1;", true);
    found("mov.u32 r1, 9; tensormap.replace.tile.element_stride.global.b1024.b32 [d0], 0, r1;", true);
    found("tensormap.replace.tile.rank.global.b1024.b32 [d0], 1;", false);
}

TEST_CASE("a kernel makes a map in shared memory, publishes it, and another warp loads with it")
{
    const std::string ptx = module_text("sm_100a", R"(
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 mine, .param .u64 in, .param .u64 out)
{
    .reg .pred p, q; .reg .b32 r<12>; .reg .b64 d<10>;
    .shared .align 128 .b8 copy[128];
    .shared .align 128 .b8 data[256];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [mine];
    ld.param.u64 d1, [in];
    ld.param.u64 d2, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, copy;
    setp.ge.u32 q, r0, 32;
    @q bra wait;
    mad.lo.u32 r2, r0, 4, r1;
    mov.b64 d3, map;
    cvta.param.u64 d3, d3;
    mul.wide.u32 d4, r0, 4;
    add.u64 d4, d3, d4;
    ld.u32 r3, [d4];
    st.shared.u32 [r2], r3;
    bar.warp.sync 0xffffffff;
    setp.ne.u32 p, r0, 0;
    @p bra replaced;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [r1], d1;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [r1], 1, 4;
    mbarrier.init.shared::cta.b64 [bar], 1;
replaced:
    bar.warp.sync 0xffffffff;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d0], [r1], 128;
wait:
    bar.sync 0;
    setp.ne.u32 p, r0, 32;
    @p bra full;
    fence.proxy.tensormap::generic.acquire.gpu [d0], 128;
    mov.u32 r4, data;
    mov.u32 r5, bar;
    mov.u32 r6, 0;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r4], [d0, {r6, r6}], [r5];
full:
    mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
    @!p bra full;
    mov.u32 r7, data;
    mad.lo.u32 r7, r0, 4, r7;
    ld.shared.u32 r8, [r7];
    mul.wide.u32 d5, r0, 4;
    add.u64 d5, d2, d5;
    st.global.u32 [d5], r8;
    ret;
}
)");
    under_every_schedule(
        ptx, "b200",
        [](PtxRun& run) {
            std::vector<std::uint32_t> words(256);
            for (std::uint32_t i = 0; i < words.size(); ++i) {
                words[i] = 7 * i;
            }
            TensorMap map;
            map.element = TensorElement::u32;
            map.rank = 2;
            map.address = 0x10;  // to be replaced
            map.extents = {16, 16, 1, 1, 1};
            map.strides = {64, 0, 0, 0};
            map.box = {16, 1, 1, 1, 1};
            const std::uint64_t mine = run.buffer(std::vector<std::uint32_t>(32));
            const std::uint64_t in = run.buffer(words);
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(64));
            const LaunchResult result = run.launch("k", {.block = {64, 1, 1}}, encode(map), mine, in, out);
            REQUIRE_CLEAN(run, result);
            const auto values = run.read<std::uint32_t>(out, 64);
            for (std::uint32_t i = 0; i < 64; ++i) {
                REQUIRE(values[i] == 7 * i);
            }
        },
        4);
}

TEST_CASE("a map may be made from zeros, but not from other bytes")
{
    const std::string every_field = R"(
    mov.u64 d1, 0x4000;
    tensormap.replace.tile.global_address.global.b1024.b64 [d0], d1;
    tensormap.replace.tile.rank.global.b1024.b32 [d0], 1;
    tensormap.replace.tile.box_dim.global.b1024.b32 [d0], 0, 64;
    tensormap.replace.tile.box_dim.global.b1024.b32 [d0], 1, 16;
    tensormap.replace.tile.global_dim.global.b1024.b32 [d0], 0, 256;
    tensormap.replace.tile.global_dim.global.b1024.b32 [d0], 1, 100;
    mov.u64 d1, 512;
    tensormap.replace.tile.global_stride.global.b1024.b64 [d0], 0, d1;
    tensormap.replace.tile.element_stride.global.b1024.b32 [d0], 0, 1;
    tensormap.replace.tile.element_stride.global.b1024.b32 [d0], 1, 1;
    tensormap.replace.tile.elemtype.global.b1024.b32 [d0], 6;
    tensormap.replace.tile.interleave_layout.global.b1024.b32 [d0], 0;
    tensormap.replace.tile.swizzle_mode.global.b1024.b32 [d0], 3;
    tensormap.replace.tile.fill_mode.global.b1024.b32 [d0], 0;
)";
    PtxRun run(replace_kernel(every_field), "b200");
    const std::uint64_t address = run.buffer(std::vector<std::byte>(tensor_map_bytes));
    REQUIRE_CLEAN(run, run.launch("k", {}, address));
    const auto bytes = run.read<std::byte>(address, tensor_map_bytes);
    TensorMap wanted;
    wanted.element = TensorElement::f16;
    wanted.rank = 2;
    wanted.address = 0x4000;
    wanted.extents = {256, 100, 1, 1, 1};
    wanted.strides = {512, 0, 0, 0};
    wanted.box = {64, 16, 1, 1, 1};
    wanted.swizzle = TensorSwizzle::span_128;
    CHECK((decode_tensor_map(std::span<const std::byte, tensor_map_bytes>(bytes.data(), tensor_map_bytes)) == wanted));

    std::vector<std::byte> rubbish(tensor_map_bytes);
    rubbish[17] = std::byte{1};
    CHECK(run.launch("k", {}, run.buffer(rubbish)).code == 0);
    CHECK(run.count(FindingKind::invalid_descriptor) > 0);
}

TEST_CASE("an acquire fence for a map stops no kernel, and says nothing at a null address")
{
    const auto fence = [](const std::string& address, FindingKind kind, bool reported) {
        CAPTURE(address);
        under_every_schedule(
            replace_kernel(address + "fence.proxy.tensormap::generic.acquire.gpu [d1], 128;"), "b200",
            [&](PtxRun& run) {
                const auto encoded = encode(base_map());
                std::vector<std::byte> bytes(encoded.begin(), encoded.end());
                bytes.resize(512);
                const std::uint64_t map = run.buffer(bytes);
                const LaunchResult result = run.launch("k", {}, map);
                INFO(findings_text(run));
                CHECK(result.code == 0);
                CHECK(run.report.findings().size() == (reported ? 1 : 0));
                CHECK(run.count(kind) == (reported ? 1 : 0));
            },
            2);
    };
    fence("mov.u64 d1, d0;", FindingKind::invalid_operand, false);
    fence("mov.u64 d1, 0;", FindingKind::invalid_operand, false);  // there is no map
    fence("add.u64 d1, d0, 4096;", FindingKind::invalid_operand, true);
    fence("mov.u64 d1, 0x80;", FindingKind::invalid_operand, true);
    fence("add.u64 d1, d0, 64;", FindingKind::misaligned, true);
}

TEST_CASE("a null address has no map that a copy could use")
{
    const std::string load = R"(
    .shared .align 128 .b8 data[256]; .shared .align 8 .b64 bar;
    mov.u64 d1, 0; mov.u32 r4, data; mov.u32 r5, bar; mov.u32 r6, 0;
    fence.proxy.tensormap::generic.acquire.gpu [d1], 128;
    mbarrier.init.shared::cta.b64 [bar], 1;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r4], [d1, {r6, r6}], [r5];
)";
    PtxRun run(replace_kernel(load), "b200");
    CHECK(run.launch("k", {}, std::uint64_t{0}).code == 700);
    CHECK(run.count(FindingKind::out_of_bounds) == 1);
}

TEST_CASE("invalid forms are refused when the module is loaded")
{
    for (const char* wrong :
         {"tensormap.replace.tile.rank.global.b1024.b64 [d0], d0;",
          "tensormap.replace.tile.size.global.b1024.b32 [d0], 1;",
          "tensormap.replace.tile.box_dim.global.b1024.b32 [d0], 1;",
          "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d0], [r1], 64;"}) {
        CAPTURE(wrong);
        const PtxRun run(replace_kernel(wrong), "b200");
        CHECK_FALSE(run.module().find_kernel("k")->load_error.empty());
    }
}
