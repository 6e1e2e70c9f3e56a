// Planted faults: each check of the tcgen05 family reports its own fault, by name, and a correct kernel next to it has
// no findings.

#include <bit>

#include "fault_kernel.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;
using namespace tessera::emulator::test::faults;

TEST_CASE("faults: the correct kernels have no findings")
{
    expect_clean(good_kernel());
    expect_clean(pair_kernel());
    // Two accumulators, a chain on each, one commit.
    TensorKernel kernel = good_kernel();
    kernel.by_one = "    add.u32 %a7, %taddr, 64;\n" + descriptors() + mma() + mma(false, f16_128x64, "%a7") +
                    mma(true) + mma(true, f16_128x64, "%a7") + commit();
    kernel.dump_columns = 128;
    expect_clean(kernel);
    // Two of M = 64 in the two halves of the same columns.
    kernel = good_kernel();
    kernel.by_one = "    add.u32 %a7, %taddr, 0x100000;\n" + descriptors() + mma(false, 0x04100010) +
                    mma(false, 0x04100010, "%a7") + mma(true, 0x04100010) + commit();
    expect_clean(kernel);
    const TensorKernel::Outcome outcome = run(kernel);
    for (unsigned lane = 0; lane < 128; ++lane) {
        // 16 products of 0x3C3C, which is 1 + 15/256, once in the upper halves of the quarters and twice in the lower
        // halves.
        const float product = 16.0F * (1 + 15.0F / 256) * (1 + 15.0F / 256);
        CHECK(std::bit_cast<float>(outcome.words[lane]) == (lane % 32 < 16 ? 2 * product : product));
    }
}

TEST_CASE("faults: an accumulator read before its commit")
{
    TensorKernel kernel = good_kernel();
    kernel.by_all_before = "";
    kernel.wait = false;
    kernel.by_one = descriptors() + mma();
    expect(kernel, FindingKind::accumulator_before_commit, "tcgen05.commit", false);
    // Only the issuing warp waits for the commit, but another warp reads, too.
    kernel.by_one += commit() + TensorKernel::wait_for("control+8", 0);
    expect(kernel, FindingKind::accumulator_before_commit, "", false);
}

TEST_CASE("faults: the next MMA overwrites columns that are still being loaded")
{
    // Warps load without telling the issuing thread when they are done.
    TensorKernel kernel = good_kernel();
    kernel.dump_columns = 0;
    kernel.by_all_after = load() + "    @!%first bra later;\n" + descriptors() + mma() + commit("control+16") +
                          "later:\n    bar.warp.sync 0xffffffff;\n" + TensorKernel::wait_for("control+16", 0);
    expect(kernel, FindingKind::accumulator_before_commit, "tcgen05.ld");
    // With a barrier in between it is correct.
    kernel.by_all_after = load() +
                          "    tcgen05.fence::before_thread_sync;\n    bar.sync 0;\n    @!%first bra later;\n    "
                          "tcgen05.fence::after_thread_sync;\n" +
                          descriptors() + mma() + commit("control+16") + "later:\n    bar.warp.sync 0xffffffff;\n" +
                          TensorKernel::wait_for("control+16", 0);
    expect_clean(kernel);
}

TEST_CASE("faults: an accumulator released before its load is complete")
{
    TensorKernel kernel = good_kernel();
    kernel.dump_columns = 0;
    kernel.by_all_after =
        "    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%a1}, [%taddr];\n    bar.sync 0;\n    @!%first bra later;\n" +
        descriptors() + mma() + commit("control+16") + "later:\n    bar.warp.sync 0xffffffff;\n" +
        TensorKernel::wait_for("control+16", 0) + "    tcgen05.wait::ld.sync.aligned;\n";
    expect(kernel, FindingKind::async_read_pending, "tcgen05.wait::ld", false);
}

TEST_CASE("faults: an MMA that reads A before its store is complete")
{
    const auto store = [](bool wait) {
        std::string text = "    mov.b32 %a1, 0x3c003c00;\n";
        for (unsigned column = 0; column < 8; ++column) {
            text +=
                fmt::format("    add.u32 %a0, %taddr, {};\n    tcgen05.st.sync.aligned.32x32b.x1.b32 [%a0], {{%a1}};\n",
                            256 + column);
        }
        return text + (wait ? "    tcgen05.wait::st.sync.aligned;\n    tcgen05.fence::before_thread_sync;\n" : "");
    };
    TensorKernel kernel = good_kernel();
    kernel.by_one = descriptors() +
                    "    add.u32 %a7, %taddr, 256;\n    setp.ne.u32 %p0, 0, 0;\n    mov.b32 %a1, 0x08100010;\n"
                    "    tcgen05.mma.cta_group::1.kind::f16 [%taddr], [%a7], %l1, %a1, %p0;\n" +
                    commit();
    kernel.by_all_before = store(true);
    expect_clean(kernel);
    kernel.by_all_before = store(false);
    kernel.by_all_after = "    tcgen05.wait::st.sync.aligned;\n";
    expect(kernel, FindingKind::async_read_pending, "tcgen05.wait::st");
}

TEST_CASE("faults: a store that nobody waits for takes effect at once in order, and late in the other schedules")
{
    const auto store = [](unsigned value, bool wait) {
        return fmt::format(
            "    add.u32 %a1, %thread, {};\n    tcgen05.st.sync.aligned.32x32b.x1.b32 [%taddr], {{%a1}};\n{}", value,
            wait ? "    tcgen05.wait::st.sync.aligned;\n" : "");
    };
    const auto values = [](unsigned value) {
        std::vector<std::uint32_t> words;
        for (unsigned thread = 0; thread < 128; ++thread) {
            words.push_back(value + thread);
        }
        return words;
    };
    TensorKernel kernel = good_kernel();
    kernel.by_one = "";
    kernel.wait = false;
    kernel.by_all_before = store(1000, true) + store(2000, true);
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        CHECK(run(kernel, schedule).words == values(2000));
    }
    kernel.by_all_before = store(1000, true) + store(2000, false);
    CHECK(run(kernel).words == values(2000));
    CHECK(run(kernel, Schedule::random).words == values(1000));
    CHECK(run(kernel, Schedule::adversarial).words == values(1000));
}

TEST_CASE("faults: uninitialized accumulator and columns")
{
    TensorKernel kernel = good_kernel();
    kernel.by_one = descriptors() + mma(true) + commit();
    expect(kernel, FindingKind::uninitialized_tmem, "enable-input-d");
    kernel = good_kernel();
    kernel.dump_column = 64;
    expect(kernel, FindingKind::uninitialized_tmem, "tcgen05.ld");
}

TEST_CASE("faults: columns that are not allocated")
{
    TensorKernel kernel = good_kernel();
    kernel.columns = 32;  // N = 64 needs 64
    expect(kernel, FindingKind::tmem_after_release, "never allocated");
    kernel = good_kernel();
    kernel.by_all_after =
        "    bar.sync 0;\n    @!%warp0 bra freed;\n    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %taddr, 512;\n"
        "freed:\n    bar.sync 0;\n" +
        load();
    expect(kernel, FindingKind::tmem_after_release, "has been freed", false);
}

TEST_CASE("faults: columns after the last one")
{
    TensorKernel kernel = good_kernel();
    kernel.by_one = "    add.u32 %a7, %taddr, 480;\n" + descriptors() + mma(false, f16_128x64, "%a7") + commit();
    expect(kernel, FindingKind::out_of_bounds, "480 to 543");
    CHECK(run(kernel).result.code == 700);
}

TEST_CASE("faults: allocation")
{
    const std::string warp0 = "    @!%warp0 bra skipped;\n", skipped = "skipped:\n    bar.warp.sync 0xffffffff;\n";
    const auto alloc = [](const std::string& columns, const std::string& place) {
        return fmt::format("    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [control+{}], {};\n", place,
                           columns);
    };
    const auto dealloc = [](const std::string& address, const std::string& columns) {
        return fmt::format("    tcgen05.dealloc.cta_group::1.sync.aligned.b32 {}, {};\n", address, columns);
    };
    TensorKernel kernel = good_kernel();
    kernel.columns = 64;
    SUBCASE("after relinquish")
    {
        kernel.by_all_before =
            warp0 + alloc("32", "32") + "    ld.shared.b32 %a5, [control+32];\n" + dealloc("%a5", "32") + skipped;
        expect(kernel, FindingKind::tmem_allocation, "relinquish");
    }
    SUBCASE("growing, and more than available")
    {
        kernel.relinquish = false;
        kernel.by_all_before =
            warp0 + alloc("128", "32") + "    ld.shared.b32 %a5, [control+32];\n" + dealloc("%a5", "128") + skipped;
        expect(kernel, FindingKind::tmem_allocation, "must not grow");
        kernel.columns = 512;
        kernel.by_all_before = warp0 + alloc("32", "32") + skipped;
        expect(kernel, FindingKind::tmem_allocation, "holds 512 of the 512", false);
        expect(kernel, FindingKind::deadlock, "waits for tensor memory", false);
    }
    SUBCASE("a number that is not a power of two")
    {
        kernel.by_all_before = "    mov.b32 %a5, 48;\n" + warp0 + alloc("%a5", "32") + skipped;
        expect(kernel, FindingKind::tmem_allocation, "power of two", false);
        CHECK(run(kernel).result.code == 715);
    }
    SUBCASE("freed with another size, twice, or at another place")
    {
        kernel.by_all_after = "    bar.sync 0;\n" + warp0 + dealloc("%taddr", "32") + skipped + "    bar.sync 0;\n";
        kernel.dump_columns = 0;
        expect(kernel, FindingKind::tmem_allocation, "64 were allocated", false);
        kernel.by_all_after = "    bar.sync 0;\n" + warp0 + dealloc("%taddr", "64") + skipped + "    bar.sync 0;\n";
        expect(kernel, FindingKind::tmem_allocation, "freed twice");
        kernel.by_all_after = "    add.u32 %a5, %taddr, 32;\n    bar.sync 0;\n" + warp0 + dealloc("%a5", "64") +
                              skipped + "    bar.sync 0;\n";
        expect(kernel, FindingKind::tmem_allocation, "no allocation starts");
    }
    SUBCASE("never freed")
    {
        kernel.dump_columns = 0;
        kernel.by_all_after = "    ret;\n";
        expect(kernel, FindingKind::tmem_leak, "columns 0 to 63");
        CHECK(run(kernel).result.code == 721);
    }
    SUBCASE("freed while an MMA still uses it")
    {
        kernel.wait = false;
        kernel.dump_columns = 0;
        kernel.by_one = descriptors() + mma();
        expect(kernel, FindingKind::accumulator_before_commit, "dealloc", false);
    }
}

TEST_CASE("faults: lanes of another warp")
{
    TensorKernel kernel = good_kernel();
    kernel.dump_columns = 0;
    kernel.by_all_after =
        "    shl.b32 %a0, %warp, 21;\n    xor.b32 %a0, %a0, 0x200000;\n    add.u32 %a0, %a0, %taddr;\n"
        "    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%a1}, [%a0];\n    tcgen05.wait::ld.sync.aligned;\n";
    expect(kernel, FindingKind::tmem_lanes, "can access only lanes");
}

TEST_CASE("faults: instruction descriptors")
{
    const std::vector<std::pair<std::uint32_t, std::string>> cases{{f16_128x64 | 1u << 6, "bit 6"},
                                                                   {f16_128x64 | 2u << 7, "A type"},
                                                                   {f16_128x64 | 3u << 10, "B type"},
                                                                   {f16_128x64 | 1u << 2, "sparse"},
                                                                   {f16_128x64 | 1u << 3, "saturate"},
                                                                   {(f16_128x64 & ~0x30u) | 2u << 4, "D type"},
                                                                   {f16_128x64 | 1u << 23, "bit 23"},
                                                                   {f16_128x64 | 1u << 29, "bit 29"},
                                                                   {f16_128x64 | 1u << 30, "maximum shift"},
                                                                   {f16_128x64 | 1u, "sparsity selector"},
                                                                   {0x10100010, "needs cta_group::2"},
                                                                   {0x06100010, "M is 96"},
                                                                   {0x08000010, "N is 0"}};
    for (const auto& [bits, words] : cases) {
        TensorKernel kernel = good_kernel();
        kernel.by_one = descriptors() + mma(false, bits) + commit();
        const TensorKernel::Outcome outcome = run(kernel);
        CAPTURE(words);
        CHECK(outcome.result.code == 715);
        REQUIRE(outcome.findings.size() == 1);
        CHECK(outcome.findings.front().kind == FindingKind::invalid_descriptor);
        CHECK(outcome.findings.front().message.find(words) != std::string::npos);
    }
}

TEST_CASE("faults: matrix descriptors")
{
    const std::uint64_t good = swizzled.descriptor();
    const std::vector<std::pair<std::uint64_t, std::string>> cases{
        {good & ~(std::uint64_t{7} << 46), "bits 46-48"},
        {good | std::uint64_t{3} << 61, "swizzle code 3"},
        {good | std::uint64_t{1} << 55, "bits 53-60"},
        {good | std::uint64_t{1} << 52, "sm_103a"},
        {good & ~(std::uint64_t{0x3FFF} << 32), "stride byte offset is 0"},
        {(good & ~(std::uint64_t{7} << 61)) | std::uint64_t{1} << 61, "MN-major operands only"}};
    for (const auto& [bits, words] : cases) {
        TensorKernel kernel = good_kernel();
        kernel.by_one =
            TensorKernel::descriptor("%l0", bits, 0) + TensorKernel::descriptor("%l1", good, b_base) + mma() + commit();
        expect(kernel, FindingKind::invalid_descriptor, words);
    }
}

TEST_CASE("faults: a start that leaves no room for a line, and reading outside of shared memory")
{
    TensorKernel kernel = good_kernel();
    kernel.by_one = descriptors(128) + mma() + commit();  // a row further in the pattern
    expect_clean(kernel);
    kernel.by_one = descriptors(96) + mma() + commit();  // the last step along K
    expect_clean(kernel);
    kernel.by_one = descriptors(112) + mma() + commit();
    expect(kernel, FindingKind::invalid_descriptor, "too short for a line");
    kernel.by_one = descriptors(0, image_bytes - 1024) + mma() + commit();
    expect(kernel, FindingKind::out_of_bounds, "outside of the shared memory");
}

TEST_CASE("faults: operands in shared memory")
{
    TensorKernel kernel = good_kernel();
    // Generic writes by a thread that executed no fence.
    kernel.by_all_before =
        "    mov.b32 %a5, 0;\n    setp.eq.u32 %p1, %thread, 37;\n    @%p1 st.shared.b32 [%smem+16], %a5;\n";
    expect(kernel, FindingKind::missing_proxy_fence, "fence.proxy.async");
    // A stage written again after the MMA was issued, before the commit is known to be complete.
    kernel = good_kernel();
    kernel.dump_columns = 0;
    kernel.by_one += "    mov.b32 %a5, 0;\n    st.shared.b32 [%smem+64], %a5;\n";
    kernel.by_one.replace(kernel.by_one.rfind("smem+64"), 7, "smem+16");
    expect(kernel, FindingKind::stage_overwritten, "tcgen05.mma", false);
    // Written after the commit: correct.
    kernel = good_kernel();
    kernel.by_all_after =
        "    @!%first bra unwritten;\n    st.shared.b32 [%smem+64], %a5;\nunwritten:\n    bar.warp.sync 0xffffffff;\n";
    kernel.by_all_before = "    mov.b32 %a5, 0;\n";
    expect_clean(kernel);
    // Memory that was never written: two CTAs' worth of space, half an image.
    kernel = good_kernel();
    PtxRun half(kernel.text());
    const std::uint64_t source = half.buffer(std::vector<std::byte>(16384, std::byte{0x3C}));
    const std::uint64_t target = half.buffer(std::vector<std::uint32_t>(128));
    half.launch("kernel", {.block = {128, 1, 1}, .dynamic_shared = image_bytes}, source, std::uint32_t{16384}, target);
    CHECK(half.count(FindingKind::uninitialized_shared) >= 1);
}

TEST_CASE("faults: unordered MMAs on the same columns")
{
    // Another shape on the same columns.
    TensorKernel kernel = good_kernel();
    kernel.by_one = descriptors() + mma() + mma(true, 0x08080010) + commit();
    expect(kernel, FindingKind::accumulator_before_commit, "another accumulator or shape");
    // Issued by another warp without synchronization.
    kernel = good_kernel();
    kernel.by_one = descriptors() + mma() + commit();
    kernel.wait = false;
    kernel.dump_columns = 0;
    kernel.by_all_after = "    setp.eq.u32 %p1, %thread, 32;\n    @!%p1 bra other;\n" + descriptors() + mma() +
                          commit("control+16") + "other:\n    bar.warp.sync 0xffffffff;\n" +
                          TensorKernel::wait_for("control+8", 0) + TensorKernel::wait_for("control+16", 0);
    expect(kernel, FindingKind::accumulator_before_commit, "issued by another thread");
    // With a barrier in between they execute in the order of issue.
    kernel.by_all_after =
        "    tcgen05.fence::before_thread_sync;\n    bar.sync 0;\n    tcgen05.fence::after_thread_sync;\n" +
        kernel.by_all_after;
    expect_clean(kernel);
}

TEST_CASE("faults: CTA groups")
{
    TensorKernel kernel = pair_kernel();
    kernel.by_one = descriptors() + mma(false, 0x10100010, "%taddr", ".cta_group::2.kind::f16") +
                    commit();  // of group 1: covers nothing
    kernel.wait = false;
    kernel.dump_columns = 0;
    expect(kernel, FindingKind::cta_group, "tcgen05.commit with cta_group::1", false);
    kernel = pair_kernel();
    kernel.by_one = descriptors() + mma() + kernel.commit();
    expect(kernel, FindingKind::cta_group, "cta_group::1 in a CTA whose earlier", false);
    kernel = good_kernel();
    kernel.by_one = descriptors() + mma(false, 0x10100010, "%taddr", ".cta_group::2.kind::f16") + commit();
    expect(kernel, FindingKind::cta_group, "cta_group::2 in a CTA whose earlier");
    CHECK(run(kernel).result.message.find("the pair has no second CTA") != std::string::npos);
}

TEST_CASE("faults: CTA masks of a commit")
{
    TensorKernel kernel = pair_kernel();
    const std::size_t place = kernel.by_one.find("mov.b16 %h0, 3");
    kernel.by_one.replace(place, 14, "mov.b16 %h0, 7");
    expect(kernel, FindingKind::cta_mask, "a cluster of 2");
    kernel = pair_kernel();
    kernel.by_one.replace(place, 14, "mov.b16 %h0, 0");
    kernel.wait = false;
    kernel.dump_columns = 0;
    expect(kernel, FindingKind::cta_mask, "is 0", false);
}

TEST_CASE("faults: pairs")
{
    // Before the cluster is known to have started.
    TensorKernel kernel = pair_kernel();
    std::string text = kernel.text();
    SUBCASE("allocation before the cluster is synchronized")
    {
        kernel.sync_cluster = false;
        kernel.by_all_before = "    barrier.cluster.arrive;\n    barrier.cluster.wait;\n";  // too late
        kernel.by_all_after = "    barrier.cluster.arrive;\n    barrier.cluster.wait;\n";
        expect(kernel, FindingKind::cluster_protocol, "has started", false);
    }
    SUBCASE("freed by one CTA only")
    {
        kernel.by_all_after =
            "    tcgen05.fence::before_thread_sync;\n    barrier.cluster.arrive;\n    barrier.cluster.wait;\n    "
            "setp.eq.u32 %p3, %rank, 1;\n    @%p3 ret;\n";
        kernel.dump_columns = 0;
        kernel.sync_cluster = true;
        const TensorKernel::Outcome outcome = run(kernel);
        CHECK(outcome.count(FindingKind::tmem_leak) == 1);
    }
    SUBCASE("different sizes")
    {
        const std::string uniform = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [control], 512;";
        text.replace(text.find(uniform), uniform.size(),
                     "mov.b32 %a5, 64;\n    setp.eq.u32 %p3, %rank, 1;\n    selp.b32 %a5, 128, 64, %p3;\n    "
                     "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [control], %a5;");
        PtxRun sizes(text);
        const std::uint64_t source = sizes.buffer(std::vector<std::byte>(2 * image_bytes, std::byte{0x3C}));
        const std::uint64_t target = sizes.buffer(std::vector<std::uint32_t>(256));
        sizes.launch("kernel",
                     {.grid = {2, 1, 1}, .block = {128, 1, 1}, .cluster = {2, 1, 1}, .dynamic_shared = image_bytes},
                     source, std::uint32_t{image_bytes}, target);
        CHECK(sizes.count(FindingKind::tmem_allocation) >= 1);
    }
    SUBCASE("the peer exits while the MMA is in flight")
    {
        kernel.wait = false;
        kernel.dump_columns = 0;
        kernel.sync_cluster = false;
        kernel.by_all_before = "";
        const std::string sync = "    barrier.cluster.arrive;\n    barrier.cluster.wait;\n";
        // Correct up to the MMA; then both CTAs free and exit without waiting.
        kernel.by_one = descriptors() + mma(false, 0x10100010, "%taddr", ".cta_group::2.kind::f16");
        std::string leaving = kernel.text();
        const std::string before = "initialized:\n    bar.sync 0;\n";
        leaving.replace(leaving.find(before), before.size(), before + sync);
        PtxRun run_leaving(leaving);
        run_leaving.options.schedule = Schedule::adversarial;
        const std::uint64_t source = run_leaving.buffer(std::vector<std::byte>(2 * image_bytes, std::byte{0x3C}));
        const std::uint64_t target = run_leaving.buffer(std::vector<std::uint32_t>(256));
        run_leaving.launch(
            "kernel", {.grid = {2, 1, 1}, .block = {128, 1, 1}, .cluster = {2, 1, 1}, .dynamic_shared = image_bytes},
            source, std::uint32_t{image_bytes}, target);
        CHECK(run_leaving.count(FindingKind::accumulator_before_commit) +
                  run_leaving.count(FindingKind::cluster_protocol) >=
              1);
    }
}

TEST_CASE("a relaxed cluster synchronization is enough to know that the peer has started")
{
    std::string text = pair_kernel().text();
    const std::string arrive = "barrier.cluster.arrive;";
    text.replace(text.find(arrive), arrive.size(), "barrier.cluster.arrive.relaxed;");
    PtxRun relaxed(text);
    const std::uint64_t source = relaxed.buffer(std::vector<std::byte>(2 * image_bytes, std::byte{0x3C}));
    const std::uint64_t target = relaxed.buffer(std::vector<std::uint32_t>(256));
    const LaunchResult result = relaxed.launch(
        "kernel", {.grid = {2, 1, 1}, .block = {128, 1, 1}, .cluster = {2, 1, 1}, .dynamic_shared = image_bytes},
        source, std::uint32_t{image_bytes}, target);
    CHECK(result.code == 0);
    CHECK(relaxed.count(FindingKind::cluster_protocol) == 0);
}

TEST_CASE("faults: all lanes issue the instruction")
{
    TensorKernel kernel = good_kernel();
    const std::string lanes = descriptors() + mma();
    kernel.by_one = "";
    kernel.wait = false;
    kernel.dump_columns = 0;
    kernel.by_all_before = "    bar.sync 0;\n    @!%warp0 bra not_issuing;\n" + lanes +
                           "    @!%first bra not_issuing;\n" + commit() +
                           "not_issuing:\n    bar.warp.sync 0xffffffff;\n" + TensorKernel::wait_for("control+8", 0);
    expect(kernel, FindingKind::invalid_operand, "32 lanes execute tcgen05.mma", false);
}

TEST_CASE("faults: invalid forms are refused when the module is loaded")
{
    const std::vector<std::pair<std::string, std::string>> cases{
        {"tcgen05.mma.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", "cta_group"},
        {"tcgen05.mma.cta_group::3.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", "cta_group::3"},
        {"tcgen05.mma.cta_group::1 [%r1], %rd1, %rd2, %r2, %p1;", "kind"},
        {"tcgen05.mma.cta_group::1.kind::f16.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1;", "block_scale"},
        {"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1;", "scale_vec"},
        {"tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::4X [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1;",
         "scale_vec::4X"},
        {"tcgen05.mma.ws.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", ".ws"},
        {"tcgen05.mma.cta_group::1.kind::f16.ashift [%r1], %rd1, %rd2, %r2, %p1;", "ashift"},
        {"tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::fill [%r1], [%r3], %rd2, %r2, %p1;", "ashift"},
        {"tcgen05.mma.cta_group::1.kind::f16.collector::b0::fill [%r1], %rd1, %rd2, %r2, %p1;", "collector"},
        {"tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, {%r3, %r4}, %p1;", "disabled lanes"},
        {"tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1, 16;", "0 to 15"},
        {"tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd1, %rd2, %r2, %p1, 1;", "kind::f16"},
        {"tcgen05.mma.cta_group::1.kind::f16.blocked [%r1], %rd1, %rd2, %r2, %p1;", "blocked"},
        {"tcgen05.cp.cta_group::1.64x128b [%r1], %rd1;", "warpx2"},
        {"tcgen05.cp.cta_group::1.128x256b.b8x16 [%r1], %rd1;", "source format"},
        {"tcgen05.shift.cta_group::1 [%r1];", "down"},
        {"tcgen05.ld.sync.aligned.32x32b.x3.b32 {%r1, %r2, %r3}, [%r4];", "x128"},
        {"tcgen05.ld.sync.aligned.16x256b.x1.b32 {%r1, %r2}, [%r4];", "4 registers"},
        {"tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r4];", "split"},
        {"tcgen05.ld.aligned.32x32b.x1.b32 {%r1}, [%r4];", ".sync.aligned"},
        {"tcgen05.ld.red.sync.aligned.32x32b.x1.b32 {%r1}, [%r4];", "sm_103"},
        {"tcgen05.commit.cta_group::1.b64 [%rd1];", "arrive::one"},
        {"tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd1], 16;", "power of two"},
        {"tcgen05.melt.cta_group::1 [%rd1];", "unknown"}};
    for (const auto& [instruction, words] : cases) {
        PtxRun run(module_text(
            "sm_100a",
            ".visible .entry k() { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>; " + instruction + " ret; }"));
        CAPTURE(instruction);
        const std::string error = run.module().find_kernel("k")->load_error;
        CAPTURE(error);
        CHECK(error.find(words) != std::string::npos);
    }
    for (const auto& [target, device] : {std::pair{"sm_90a", "h200"}, std::pair{"sm_120a", "rtx5090"}}) {
        PtxRun run(module_text(target, ".visible .entry k() { tcgen05.wait::ld.sync.aligned; ret; }"), device);
        CHECK(run.module().find_kernel("k")->load_error.find("tensor memory") != std::string::npos);
    }
}
