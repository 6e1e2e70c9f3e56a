// cp.async.bulk.tensor from global memory: 1 to 5 dimensions, every swizzle, fill, multicast and CTA pairs, against a
// walk over the elements.

#include <cstring>

#include "machine/swizzle.hpp"
#include "tensor_kernels.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

TEST_CASE("loads of 1 to 5 dimensions, within, across and beyond the tensor's bounds")
{
    const std::array<std::array<std::int32_t, 5>, 5> starts{
        {{0, 0, 0, 0, 0}, {8, 2, 1, 1, 1}, {20, 5, 4, 3, 2}, {-4, -1, -1, -1, -1}, {40, 9, 9, 9, 9}}};
    for (unsigned rank = 1; rank <= 5; ++rank) {
        CAPTURE(rank);
        for (const auto& at : starts) {
            CAPTURE(at[0]);
            std::uint32_t bytes = 4;
            for (unsigned i = 0; i < rank; ++i) {
                bytes *= boxes[i];
            }
            // complete_tx counts the whole box, including the part out of bounds.
            under_every_schedule(
                load_kernel(load(rank), std::to_string(bytes)), "b200",
                [&](PtxRun& run) {
                    const Tensor tensor = make_tensor(run, rank);
                    LaunchResult result;
                    const auto values = launch_load(run, tensor.map, at, elements(tensor.map), result);
                    REQUIRE_CLEAN(run, result);
                    for (std::uint32_t i = 0; i < values.size(); ++i) {
                        const auto where = place(tensor, at, i);
                        REQUIRE(values[i] == (where ? tensor.words[*where] : 0));
                    }
                },
                1);
        }
    }
}

TEST_CASE("every swizzle puts the box's bytes where the absolute address says")
{
    for (unsigned mode = 0; mode <= 6; ++mode) {
        const auto which = static_cast<TensorSwizzle>(mode);
        CAPTURE(mode);
        under_every_schedule(
            load_kernel(load(2), "4096"), "b200",
            [&](PtxRun& run) {
                TensorMap map;
                map.element = TensorElement::f32;
                map.rank = 2;
                map.extents = {64, 200, 1, 1, 1};
                map.strides = {256, 0, 0, 0};
                const std::uint32_t width = which == TensorSwizzle::span_32   ? 8
                                            : which == TensorSwizzle::span_64 ? 16
                                                                              : 32;
                map.box = {width, 1024 / width, 1, 1, 1};
                map.swizzle = which;
                std::vector<std::uint32_t> words(64 * 200);
                for (std::uint32_t i = 0; i < words.size(); ++i) {
                    words[i] = i;
                }
                map.address = run.buffer(words);
                LaunchResult result;
                const auto values = launch_load(run, map, {8, 3, 0, 0, 0}, 1024, result);
                REQUIRE_CLEAN(run, result);
                for (std::uint32_t row = 0; row < map.box[1]; ++row) {
                    for (std::uint32_t column = 0; column < width; ++column) {
                        // data begins at a multiple of 1024, so that offsets and addresses agree in the relevant bits.
                        const std::uint32_t offset = swizzle(which, (row * width + column) * 4) / 4;
                        REQUIRE(values[offset] == (3 + row) * 64 + 8 + column);
                    }
                }
            },
            1);
    }
}

TEST_CASE("rows narrower than the swizzle begin where its span does, and complete their own bytes")
{
    for (const auto& [which, span] : {std::pair{TensorSwizzle::span_32, 8U}, std::pair{TensorSwizzle::span_64, 16U},
                                      std::pair{TensorSwizzle::span_128, 32U}}) {
        constexpr std::uint32_t width = 4, rows = 16;
        CAPTURE(span);
        under_every_schedule(
            load_kernel(load(2), "256"), "b200",  // 16 rows of 16 bytes are expected
            [&](PtxRun& run) {
                TensorMap map;
                map.element = TensorElement::f32;
                map.rank = 2;
                map.extents = {width, rows, 1, 1, 1};
                map.strides = {width * 4, 0, 0, 0};
                map.box = {width, rows, 1, 1, 1};
                map.swizzle = which;
                std::vector<std::uint32_t> words(width * rows);
                for (std::uint32_t i = 0; i < words.size(); ++i) {
                    words[i] = i + 1;
                }
                map.address = run.buffer(words);
                LaunchResult result;
                const auto values = launch_load(run, map, {}, span * rows, result);
                REQUIRE(result.code == 0);  // reads the rest of the spans, which was never written: has findings
                for (std::uint32_t i = 0; i < words.size(); ++i) {
                    const std::uint32_t linear = (i / width * span + i % width) * 4;
                    CHECK(values[swizzle(which, linear) / 4] == words[i]);
                }
            },
            1);
    }
}

TEST_CASE("a destination that is not at a multiple of the pattern is swizzled by its absolute address")
{
    const std::string shifted = "add.u32 r1, r1, 384; " + load(2);
    under_every_schedule(
        load_kernel(shifted, "1024"), "b200",
        [&](PtxRun& run) {
            TensorMap map;
            map.element = TensorElement::f32;
            map.rank = 2;
            map.extents = {32, 8, 1, 1, 1};
            map.strides = {128, 0, 0, 0};
            map.box = {32, 8, 1, 1, 1};
            map.swizzle = TensorSwizzle::span_128;
            std::vector<std::uint32_t> words(256);
            for (std::uint32_t i = 0; i < words.size(); ++i) {
                words[i] = i + 1;
            }
            map.address = run.buffer(words);
            // Only thread 0 has added: it stores the words from data + 384 on, the others those from data on.
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(1));
            const LaunchResult result = run.launch("k", {.block = {1, 1, 1}}, encode(map), out, 0, 0, 0, 0, 0, 1);
            REQUIRE_CLEAN(run, result);
            // Address 0x400 + 384 is line 3 of a pattern: piece 0 of the line holds piece 3 of the row.
            CHECK(run.read<std::uint32_t>(out, 1)[0] == 12 + 1);
        },
        1);
}

TEST_CASE("out-of-bounds elements can be NaN")
{
    PtxRun run(load_kernel(load(2), "96"), "b200");
    Tensor tensor = make_tensor(run, 2);
    tensor.map.fill = TensorFill::nan;
    LaunchResult result;
    const auto values = launch_load(run, tensor.map, {20, 6, 0, 0, 0}, 24, result);
    REQUIRE_CLEAN(run, result);
    for (std::uint32_t i = 0; i < 24; ++i) {
        const auto where = place(tensor, {20, 6, 0, 0, 0}, i);
        float value = 0;
        std::memcpy(&value, &values[i], 4);
        CHECK((where ? values[i] == tensor.words[*where] : value != value));
    }
}

TEST_CASE("gather4, cache hints, shared::cta and the order of modifiers")
{
    for (const std::string& form :
         {std::string("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [r1], [d1, {r20, "
                      "r21}], [r2];"),
          std::string(
              "mov.u64 d5, 0; "
              "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [r1], [d1, "
              "{r20, r21}], [r2], d5;"),
          std::string("cp.async.bulk.tensor.2d.cta_group::1.shared::cluster.global.mbarrier::complete_tx::bytes [r1], "
                      "[d1, {r20, r21}], [r2];"),
          std::string("mov.u16 h1, 1; mov.u64 d5, 0; "
                      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                      ".multicast::cluster.cta_group::1.L2::cache_hint [r1], [d1, {r20, r21}], [r2], h1, d5;")}) {
        CAPTURE(form);
        PtxRun run(load_kernel(form, "96"), "b200");
        const Tensor tensor = make_tensor(run, 2);
        LaunchResult result;
        const auto values = launch_load(run, tensor.map, {4, 2, 0, 0, 0}, 24, result);
        REQUIRE_CLEAN(run, result);
        CHECK(values[0] == tensor.words[2 * 32 + 4]);
        CHECK(values[23] == tensor.words[4 * 32 + 11]);
    }
    PtxRun run(load_kernel("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
                           "[r1], [d1, {r20, r21, r22, "
                           "r23, r24}], [r2];",
                           "128"),
               "b200");
    Tensor tensor = make_tensor(run, 2);
    tensor.map.box[1] = 1;
    LaunchResult result;
    const auto values = launch_load(run, tensor.map, {8, 6, 0, 7, 3}, 32, result);
    REQUIRE_CLEAN(run, result);
    for (std::uint32_t i = 0; i < 32; ++i) {
        const std::uint32_t row = std::array{6U, 0U, 7U, 3U}[i / 8];
        CHECK(values[i] == (row < 7 ? tensor.words[row * 32 + 8 + i % 8] : 0));
    }
}

namespace {

/// Cluster of n CTAs; each waits for its barrier (if it `waits`) and writes the first 24 words of data to out + 128
/// rank.
std::string cluster_kernel(const std::string& arm_and_issue, const std::string& waits = "")
{
    return module_text("sm_100a", R"(
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)
{
    .reg .pred p, q, w; .reg .b16 h<4>; .reg .b32 r<30>; .reg .b64 d<8>;
    .shared .align 1024 .b8 data[4096];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [out];
    mov.b64 d1, map;
    cvta.param.u64 d1, d1;
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mov.u32 r2, bar;
    mov.u32 r3, %cluster_ctarank;
    setp.eq.u32 q, r0, 0;
    setp.eq.u32 w, r0, r0;
    mov.u32 r20, 4;
    mov.u32 r21, r3;
    @!q bra ready;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
ready:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    @!q bra issued;
    )" + arm_and_issue + R"(
issued:
    )" + waits + R"(
    @!w bra synchronize;
again:
    mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
    @!p bra again;
synchronize:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    setp.ge.u32 p, r0, 24;
    @p ret;
    mad.lo.u32 r4, r0, 4, r1;
    ld.shared.u32 r5, [r4];
    mul.wide.u32 d2, r3, 128;
    mul.wide.u32 d3, r0, 4;
    add.u64 d2, d0, d2;
    add.u64 d2, d2, d3;
    st.global.u32 [d2], r5;
    ret;
}
)");
}

std::vector<std::uint32_t> launch_cluster(PtxRun& run, std::uint32_t size, LaunchResult& result)
{
    const Tensor tensor = make_tensor(run, 2);
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(32 * size));
    result =
        run.launch("k", {.grid = {size, 1, 1}, .block = {32, 1, 1}, .cluster = {size, 1, 1}}, encode(tensor.map), out);
    return run.read<std::uint32_t>(out, 32 * size);
}

/// Element i of the box that begins at column 4 and this row.
std::uint32_t box_word(std::uint32_t row, std::uint32_t i)
{
    return row + i / 8 < 7 ? (row + i / 8) * 32 + 4 + i % 8 + 1 : 0;
}

}  // namespace

TEST_CASE("multicast without a group signals the barrier of each receiver")
{
    under_every_schedule(
        cluster_kernel(R"(
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 96;
    setp.ne.u32 p, r3, 1;
    @p bra issued;
    mov.u16 h1, 0xF;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r1], [d1, {r20, r21}], [r2], h1;
)"),
        "b200",
        [](PtxRun& run) {
            LaunchResult result;
            const auto values = launch_cluster(run, 4, result);
            REQUIRE_CLEAN(run, result);
            for (std::uint32_t i = 0; i < 4 * 24; ++i) {
                REQUIRE(values[i / 24 * 32 + i % 24] == box_word(1, i % 24));
            }
        },
        4);
}

TEST_CASE("with cta_group::2 the leader's barrier counts the bytes of both CTAs of the pair")
{
    // Each CTA loads its own rows, and all signal the leader of their pair, which alone expects and waits.
    for (const char* issue : {"cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::"
                              "bytes [r1], [d1, {r20, r21}], [r8];",
                              "shl.b32 r9, 1, r3; cvt.u16.u32 h1, r9; "
                              "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes."
                              "multicast::cluster.cta_group::2 [r1], [d1, {r20, r21}], [r8], h1;"}) {
        CAPTURE(issue);
        under_every_schedule(
            cluster_kernel(std::string(R"(
    and.b32 r7, r3, 1;
    setp.eq.u32 p, r7, 0;
    @p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 192;
    and.b32 r8, r2, 0xFEFFFFFF;
)") + issue,
                           "and.b32 r7, r3, 1; setp.eq.u32 w, r7, 0;"),
            "b200",
            [](PtxRun& run) {
                LaunchResult result;
                const auto values = launch_cluster(run, 4, result);
                REQUIRE_CLEAN(run, result);
                for (std::uint32_t i = 0; i < 4 * 24; ++i) {
                    REQUIRE(values[i / 24 * 32 + i % 24] == box_word(i / 24, i % 24));
                }
            },
            4);
    }
}

TEST_CASE("a multicast of a pair's data to other pairs signals each pair's leader")
{
    // CTA 0 loads for ranks 0 to 3: two signals for each of the leaders 0 and 2.
    under_every_schedule(
        cluster_kernel(R"(
    and.b32 r7, r3, 1;
    setp.eq.u32 p, r7, 0;
    @p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 192;
    setp.ne.u32 p, r3, 0;
    @p bra issued;
    mov.u16 h1, 0xF;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 [r1], [d1, {r20, r21}], [r2], h1;
)",
                       "and.b32 r7, r3, 1; setp.eq.u32 w, r7, 0;"),
        "b200",
        [](PtxRun& run) {
            LaunchResult result;
            const auto values = launch_cluster(run, 4, result);
            REQUIRE_CLEAN(run, result);
            for (std::uint32_t i = 0; i < 4 * 24; ++i) {
                REQUIRE(values[i / 24 * 32 + i % 24] == box_word(0, i % 24));
            }
        },
        4);
}

TEST_CASE("the peer's barrier without cta_group::2 is reported")
{
    PtxRun run(cluster_kernel(R"(
    and.b32 r7, r3, 1;
    setp.eq.u32 p, r7, 0;
    @p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 192;
    and.b32 r8, r2, 0xFEFFFFFF;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d1, {r20, r21}], [r8];
)",
                              "and.b32 r7, r3, 1; setp.eq.u32 w, r7, 0;"),
               "b200");
    LaunchResult result;
    launch_cluster(run, 2, result);
    CHECK_FOUND(run, FindingKind::cta_group);
}
