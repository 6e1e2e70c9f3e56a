// ldmatrix and stmatrix of 8-, 6- and 4-bit elements, which no Hopper GPU has, against their definition element by
// element; and the checks of all warp-level matrix instructions.

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "run_ptx.hpp"

namespace {

using namespace tessera::emulator;
using test::PtxRun;

/// Shared memory has the input's 32 rows of 16 bytes, 48 bytes apart; %y is this lane's row. At the end `registers`
/// registers from %r0 on are stored or, with `dump`, the rows of shared memory.
std::string kernel(const std::string& body, unsigned registers, bool dump, const char* target = "sm_100a")
{
    std::string text =
        std::string(".version 9.0\n.target ") + target +
        "\n.address_size 64\n.shared .align 16 .b8 smem[1536];\n"
        ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"
        ".reg .b64 %in, %out, %t, %g;\n.reg .b32 %s, %x, %y, %me, %r<20>;\n.reg .pred %p;\n"
        "ld.param.u64 %in, [p_in];\nld.param.u64 %out, [p_out];\ncvta.to.global.u64 %in, %in;\ncvta.to.global.u64 "
        "%out, %out;\n"
        "mov.u32 %me, %laneid;\nmul.wide.u32 %t, %me, 16;\nadd.u64 %in, %in, %t;\nadd.u64 %out, %out, %t;\nmov.u32 %s, "
        "smem;\n"
        "mad.lo.u32 %y, %me, 48, %s;\ncvt.u64.u32 %g, %y;\ncvta.shared.u64 %g, %g;\n"
        "ld.global.v4.b32 {%r0,%r1,%r2,%r3}, [%in];\nst.shared.v4.b32 [%y], {%r0,%r1,%r2,%r3};\nbar.warp.sync -1;\n" +
        body;
    if (dump) {
        text += "bar.warp.sync -1;\nld.shared.v4.b32 {%r0,%r1,%r2,%r3}, [%y];\n";
        registers = 4;
    }
    for (unsigned i = 0; i < registers; ++i) {
        text += "st.global.b32 [%out+" + std::to_string(4 * i) + "], %r" + std::to_string(i) + ";\n";
    }
    return text + "ret;\n}\n";
}

using Bytes = std::vector<std::uint8_t>;

Bytes rows()
{
    Bytes bytes(512);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(i * 37 + i / 16 * 11 + 5);
    }
    return bytes;
}

struct Outcome {
    LaunchResult result;
    Bytes bytes;  ///< 16 for each lane
    std::unique_ptr<PtxRun> run;
};

Outcome execute(const std::string& text, const char* device = "b200", unsigned threads = 32)
{
    Outcome outcome;
    outcome.run = std::make_unique<PtxRun>(text, device);
    const std::uint64_t in = outcome.run->buffer(rows()), out = outcome.run->buffer(Bytes(512));
    outcome.result = outcome.run->launch("k", {.block = {threads, 1, 1}}, in, out);
    outcome.bytes = outcome.run->read<std::uint8_t>(out, 512);
    return outcome;
}

/// Element `index` of a row as the packed formats define it: the row's bits, 6 or 4 at a time.
unsigned packed_element(const Bytes& bytes, std::size_t row, unsigned index, unsigned bits)
{
    unsigned value = 0;
    for (unsigned bit = 0; bit < bits; ++bit) {
        const unsigned at = index * bits + bit;
        value |= (bytes[row * 16 + at / 8] >> (at % 8) & 1U) << bit;
    }
    return value;
}

TEST_CASE("ldmatrix.m8n16 expands 6- and 4-bit elements to bytes")
{
    const Bytes source = rows();
    for (const unsigned bits : {6U, 4U}) {
        for (const unsigned count : {1U, 2U, 4U}) {
            const std::string type = bits == 6 ? "b6x16_p32" : "b4x16_p64";
            const std::string to = count == 1 ? "{%r0}" : count == 2 ? "{%r0,%r1}" : "{%r0,%r1,%r2,%r3}";
            const Outcome outcome = execute(kernel("ldmatrix.sync.aligned.m8n16.x" + std::to_string(count) +
                                                       ".shared.b8x16." + type + " " + to + ", [%y];\n",
                                                   count, false));
            CAPTURE(type);
            CAPTURE(count);
            CHECK(outcome.result.code == 0);
            CHECK(outcome.run->report.text() == "");
            for (unsigned matrix = 0; matrix < count; ++matrix) {
                for (unsigned lane = 0; lane < 32; ++lane) {
                    for (unsigned byte = 0; byte < 4; ++byte) {
                        CHECK(outcome.bytes[lane * 16 + matrix * 4 + byte] ==
                              packed_element(source, matrix * 8 + lane / 4, 4 * (lane % 4) + byte, bits));
                    }
                }
            }
        }
    }
}

TEST_CASE("ldmatrix.m16n16.trans gives each lane four rows of two columns")
{
    const Bytes source = rows();
    for (const char* type : {"b8", "b8x16.b6x16_p32", "b8x16.b4x16_p64"}) {
        const unsigned bits = std::string(type) == "b8" ? 8 : std::string(type) == "b8x16.b6x16_p32" ? 6 : 4;
        for (const unsigned count : {1U, 2U}) {
            const std::string to = count == 1 ? "{%r0,%r1}" : "{%r0,%r1,%r2,%r3}";
            const Outcome outcome = execute(kernel("ldmatrix.sync.aligned.m16n16.x" + std::to_string(count) +
                                                       ".trans.shared::cta." + type + " " + to + ", [%y];\n",
                                                   2 * count, false));
            CHECK(outcome.result.code == 0);
            CHECK(outcome.run->report.text() == "");
            for (unsigned lane = 0; lane < 32; ++lane) {
                for (unsigned index = 0; index < 2 * count; ++index) {
                    // CuTe's SM100_U8x8_LDSM_T takes bytes 0 and 1 of both registers, then bytes 2 and 3, and has then rows
                    // 4*(lane%4)+2q and +1 of columns lane/4 and +8 in register q.
                    const unsigned first_row = index / 2 * 16 + 4 * (lane % 4), column = lane / 4 + 8 * (index % 2);
                    for (unsigned byte = 0; byte < 4; ++byte) {
                        CHECK(outcome.bytes[lane * 16 + index * 4 + byte] ==
                              packed_element(source, first_row + byte, column, bits));
                    }
                }
            }
        }
    }
}

TEST_CASE("stmatrix.m16n8.trans stores columns of 16 bytes")
{
    // %r0.. still hold the lane's own row of the input.
    const Bytes source = rows();
    for (const unsigned count : {1U, 2U, 4U}) {
        const std::string from = count == 1 ? "{%r0}" : count == 2 ? "{%r0,%r1}" : "{%r0,%r1,%r2,%r3}";
        const Outcome outcome = execute(
            kernel("stmatrix.sync.aligned.m16n8.x" + std::to_string(count) + ".trans.shared.b8 [%y], " + from + ";\n",
                   0, true));
        CHECK(outcome.result.code == 0);
        CHECK(outcome.run->report.text() == "");
        Bytes expected = source;
        for (unsigned matrix = 0; matrix < count; ++matrix) {
            for (unsigned row = 0; row < 16; ++row) {
                for (unsigned column = 0; column < 8; ++column) {
                    const unsigned lane = row % 8 * 4 + column / 2, byte = row / 8 * 2 + column % 2;
                    expected[(matrix * 8 + column) * 16 + row] = source[lane * 16 + matrix * 4 + byte];
                }
            }
        }
        CHECK(outcome.bytes == expected);
    }
}

TEST_CASE("generic addresses of shared memory are accepted")
{
    const Outcome generic = execute(kernel("ldmatrix.sync.aligned.m8n8.x4.b16 {%r0,%r1,%r2,%r3}, [%g];\n", 4, false));
    const Outcome shared =
        execute(kernel("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1,%r2,%r3}, [%y];\n", 4, false));
    CHECK(generic.result.code == 0);
    CHECK(generic.run->report.text() == "");
    CHECK(generic.bytes == shared.bytes);
    const Outcome stored = execute(kernel("stmatrix.sync.aligned.m8n8.x2.b16 [%g], {%r0,%r1};\n", 0, true));
    CHECK(stored.run->report.text() == "");
}

TEST_CASE("wrong row addresses are faults")
{
    const Outcome misaligned = execute(
        kernel("add.u32 %y, %y, 8;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1,%r2,%r3}, [%y];\n", 4, false));
    CHECK(misaligned.result.code == 716);
    CHECK(misaligned.run->count(FindingKind::misaligned) > 0);
    const Outcome outside =
        execute(kernel("add.u32 %y, %y, 65536;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%y];\n", 1, false));
    CHECK(outside.result.code != 0);
    CHECK(outside.run->count(FindingKind::out_of_bounds) > 0);
    const Outcome outside_store =
        execute(kernel("add.u32 %y, %y, 65536;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%y], {%r0};\n", 0, true));
    CHECK(outside_store.run->count(FindingKind::out_of_bounds) > 0);
    // Lanes that provide no address may hold any value.
    const Outcome unused = execute(
        kernel("setp.gt.u32 %p, %me, 7;\n@%p mov.u32 %y, 3;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%y];\n",
               1, false));
    CHECK(unused.result.code == 0);
    CHECK(unused.run->report.text() == "");
    const Outcome unwritten = execute(kernel("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%y+16];\n", 1, false));
    CHECK(unwritten.run->count(FindingKind::uninitialized_shared) > 0);
}

TEST_CASE("execution by part of a warp is reported")
{
    const std::string half = "setp.lt.u32 %p, %me, 16;\n@%p bra SKIP;\n";
    for (const std::string instruction : {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%y];\n",
                                          "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%y], {%r0};\n",
                                          "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;\n",
                                          "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r4,%r5,%r6,%r7}, "
                                          "{%r0,%r1,%r2,%r3}, {%r0,%r1}, {%r0,%r1,%r2,%r3};\n",
                                          "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r4,%r5,%r6,%r7}, "
                                          "{%r0,%r1}, {%r0,%r1}, {%r0,%r1,%r2,%r3};\n",
                                          "wmma.load.a.sync.aligned.row.m16n16k16.shared.s8 {%r0,%r1}, [%s], 48;\n"}) {
        CAPTURE(instruction);
        CHECK(execute(kernel(half + instruction + "SKIP:\n", 1, false)).run->count(FindingKind::divergent_aligned) > 0);
        CHECK(execute(kernel("setp.lt.u32 %p, %me, 16;\n@%p " + instruction, 1, false))
                  .run->count(FindingKind::divergent_aligned) > 0);
    }
}

TEST_CASE("wmma with different addresses or strides in its lanes is reported")
{
    const Outcome address =
        execute(kernel("wmma.load.a.sync.aligned.row.m16n16k16.shared.s8 {%r0,%r1}, [%y], 48;\n", 2, false));
    CHECK(address.run->count(FindingKind::invalid_operand) > 0);
    const Outcome stride =
        execute(kernel("wmma.load.a.sync.aligned.row.m16n16k16.shared.s8 {%r0,%r1}, [%s], %me;\n", 2, false));
    CHECK(stride.run->count(FindingKind::invalid_operand) > 0);
    const Outcome right =
        execute(kernel("wmma.load.a.sync.aligned.row.m16n16k16.shared.s8 {%r0,%r1}, [%s], 48;\n", 2, false));
    CHECK(right.run->report.text() == "");
}

TEST_CASE("stmatrix and wmma.store of equal values by two warps are a race only with --also")
{
    for (const std::string store : {"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%y], {%r0,%r1,%r2,%r3};\n",
                                    "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%y], {%r0,%r1};\n",
                                    "wmma.store.d.sync.aligned.row.m16n16k16.shared.s32 [%s], "
                                    "{%r0,%r1,%r2,%r3,%r0,%r1,%r2,%r3}, 16;\n"}) {
        CAPTURE(store);
        const auto findings = [&](const std::string& before, bool also) {
            PtxRun run(kernel("bar.sync 0;\n" + before + store, 0, false), "b200");
            run.options.same_value_races = also;
            const std::uint64_t in = run.buffer(rows()), out = run.buffer(Bytes(512));
            CHECK(run.launch("k", {.block = {64, 1, 1}}, in, out).code == 0);
            return run.report.findings();
        };
        CHECK(findings("", false).empty());
        const std::vector<Finding> equal = findings("", true);
        REQUIRE(equal.size() >= 1);
        CHECK(equal.back().kind == FindingKind::same_value_race);
        // One lane of one warp stores another value.
        const std::vector<Finding> differing =
            findings("mov.u32 %x, %tid.x;\nsetp.eq.u32 %p, %x, 37;\n@%p add.u32 %r1, %r1, 65537;\n", false);
        REQUIRE(differing.size() == 1);
        CHECK(differing.front().kind == FindingKind::shared_race);
    }
}

TEST_CASE("sparsity metadata that selects an element twice is reported")
{
    const auto with = [](const char* metadata) {
        return execute(kernel(std::string("mov.b32 %r9, ") + metadata +
                                  ";\nmma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
                                  "{%r4,%r5}, {%r0,%r1}, {%r0,%r1}, {%r2,%r3}, %r9, 0;\n",
                              1, false))
            .run->count(FindingKind::invalid_operand);
    };
    CHECK(with("0x44444444") == 0);
    CHECK(with("0x44444454") > 0);
    CHECK(with("0x44444454; mov.b32 %r0, 0; mov.b32 %r1, 0") == 0);  // zeros may have any position
    CHECK(with("0x44444454; mov.b32 %r0, 0x3C00; mov.b32 %r1, 0") > 0);
}

TEST_CASE("forms that do not exist are refused with a sentence")
{
    const auto error_on = [](const std::string& instruction, const char* device, const char* target) {
        PtxRun run(kernel(instruction, 1, false, target), device);
        return run.module().find_kernel("k")->load_error;
    };
    const auto refused = [&](const std::string& instruction) {
        return !error_on(instruction, "b200", "sm_100a").empty();
    };
    CHECK(refused("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%y];\n"));
    CHECK(refused("ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r0}, [%y];\n"));
    CHECK(refused("ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r0,%r1}, [%y];\n"));
    CHECK(refused("ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r0,%r1}, [%y];\n"));
    CHECK(refused("ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%r0}, [%y];\n"));
    CHECK(refused("stmatrix.sync.aligned.m16n8.x1.shared.b8 [%y], {%r0};\n"));
    CHECK(refused("movmatrix.sync.aligned.m8n8.b16 %r0, %r1;\n"));
    CHECK(refused("ldmatrix.sync.m8n8.x1.shared.b16 {%r0}, [%y];\n"));
    CHECK(refused(
        "mma.sync.aligned.m16n8k16.col.row.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, {%r0,%r1};\n"));
    CHECK(refused("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1}, {%r0,%r1}, {%r0,%r1};\n"));
    CHECK(
        refused("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, "
                "{%r0,%r1,%r2,%r3};\n"));
    CHECK(refused(
        "mma.sync.aligned.m16n8k12.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, {%r0,%r1};\n"));
    CHECK(error_on("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32 {%r0,%r1,%r2,%r3}, "
                   "{%r0,%r1,%r2,%r3}, {%r0,%r1}, {%r0,%r1,%r2,%r3};\n",
                   "b200", "sm_100a")
              .find("12.x") != std::string::npos);
    CHECK(refused("wmma.load.a.sync.aligned.col.m8n8k32.shared.s4 {%r0}, [%s];\n"));
    CHECK(refused("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3}, [%s];\n"));
    // The first compute capability of each form.
    const std::string f16 =
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1}, {%r0}, {%r0,%r1};\n";
    const std::string wide =
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, {%r0,%r1};\n";
    CHECK(error_on(f16, "t4", "sm_75") == "");
    CHECK(error_on(wide, "t4", "sm_75").find("8.0") != std::string::npos);
    CHECK(!error_on("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%y], {%r0};\n", "t4", "sm_75").empty());
    CHECK(!error_on("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%y];\n", "h200", "sm_90a").empty());
}

TEST_CASE("Turing and Blackwell multiply small integers as exactly as Hopper")
{
    // A is 1 everywhere, B row k column n is (k + n) % 4 in f16: every device gives the same sums.
    const std::string body =
        "mov.b32 %r0, 0x3c003c00;\nmov.b32 %r1, %r0;\nmov.b32 %r2, 0x40004200;\n"
        "mov.b32 %r5, 0;\nmov.b32 %r6, 0;\nmma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1}, "
        "{%r2}, {%r5,%r6};\n";
    struct Device {
        const char *key, *target;
    };
    for (const Device& device : {Device{"t4", "sm_75"}, Device{"h200", "sm_90a"}, Device{"b200", "sm_100a"}}) {
        const Outcome outcome = execute(kernel(body, 2, false, device.target), device.key);
        CAPTURE(device.key);
        CHECK(outcome.result.code == 0);
        // Eight K elements: four threes and four twos give 20 = 0x4D00.
        for (unsigned i = 0; i < 512; i += 16) {
            CHECK(outcome.bytes[i + 1] == 0x4D);
            CHECK(outcome.bytes[i] == 0x00);
        }
    }
}

}  // namespace
