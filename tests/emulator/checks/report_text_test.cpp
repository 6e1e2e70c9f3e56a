// Reports for people and for programs: places, names, merging, text, JSON, HTML.

#include <doctest/doctest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/source_place.hpp"
#include "checks/report_html.hpp"
#include "checks/report_json.hpp"
#include "checks/report_text.hpp"
#include "run_ptx.hpp"

namespace tessera::emulator::test {

namespace {

namespace fs = std::filesystem;

constexpr const char* kernel =
    "_Z4loadILi128ESt4lessIiEEvPKfPf";  // void load<128, std::less<int>>(float const*, float*)

Finding race()
{
    Finding finding;
    finding.kind = FindingKind::shared_race;
    finding.message = "st.shared.f32 writes shared 0x600, but ld.shared.f32 read it";
    finding.kernel = kernel;
    finding.cta = {2, 0, 0};
    finding.warp = 4;
    finding.lanes = all_lanes;
    finding.ptx_line = 41;
    finding.ptx_text = "st.shared.f32 [%r7], %f1;";
    finding.frames = {{"/opt/cuda/targets/x86_64-linux/include/cccl/cuda/__ptx/copy.h", 70, "_ZN4cuda3ptx4copyEPf"},
                      {"/opt/sdk/include/tessera/device/ring.cuh", 88, "_ZN7tessera4Ring3putEv"},
                      {"gemm.cu", 31, "_Z9load_tilei"},
                      {"gemm.cu", 50, ""}};
    finding.host = {{"main.cpp", 57, "run(int)"}, {"main.cpp", 80, "main"}};
    return finding;
}

Finding added(const Finding& finding)
{
    Report report;
    report.add(finding);
    return report.findings().at(0);
}

/// A folder with a file of three lines, removed at the end.
struct SourceFile {
    fs::path folder = fs::temp_directory_path() / fmt::format("tessera_report_{}", ::getpid());
    fs::path path = folder / "kernel.cu";

    SourceFile()
    {
        fs::create_directories(folder);
        std::ofstream(path) << "// first\n    tile[i] = a < b && \"x\" ? data[i] : 0;\n// <script>alert(1)</script>\n";
    }
    SourceFile(const SourceFile&) = delete;
    SourceFile& operator=(const SourceFile&) = delete;
    ~SourceFile() { fs::remove_all(folder); }
};

}  // namespace

TEST_CASE("the text leads with the program's own line; headers and callers follow")
{
    CHECK(to_text(added(race())) ==
          "shared-race: st.shared.f32 writes shared 0x600, but ld.shared.f32 read it\n"
          "  at gemm.cu:31 in load_tile(int), in kernel load<128, std::less<...>>\n"
          "    which calls tessera/device/ring.cuh:88 in tessera::Ring::put()\n"
          "    which calls cccl/cuda/__ptx/copy.h:70 in cuda::ptx::copy(float*)\n"
          "    called at gemm.cu:50\n"
          "  by CTA (2, 0, 0), warp 4, all lanes\n"
          "  launched at main.cpp:57 in run(int)\n"
          "    called at main.cpp:80 in main\n"
          "  PTX line 41: st.shared.f32 [%r7], %f1;\n");
}

TEST_CASE("in a kernel of the SDK the line of the launch leads")
{
    Finding finding = race();
    finding.frames = {{"/home/builder/tessera/kernels/gemm/ptx.cuh", 22, "_Z9load_tilei"},
                      {"/home/builder/tessera/kernels/simt/simt_gemm.cuh", 226, ""}};
    const std::string text = to_text(added(finding));
    CHECK(text ==
          "shared-race: st.shared.f32 writes shared 0x600, but ld.shared.f32 read it\n"
          "  launched at main.cpp:57 in run(int)\n"
          "    called at main.cpp:80 in main\n"
          "  at kernels/gemm/ptx.cuh:22 in load_tile(int), in kernel load<128, std::less<...>>\n"
          "    called at kernels/simt/simt_gemm.cuh:226\n"
          "  by CTA (2, 0, 0), warp 4, all lanes\n"
          "  PTX line 41: st.shared.f32 [%r7], %f1;\n");
    CHECK(leading_place(finding) == &finding.host.front());
    finding.host.clear();
    CHECK(leading_place(finding) == &finding.frames.front());
}

TEST_CASE("the source line is shown if it can be read")
{
    const SourceFile source;
    Finding finding = race();
    finding.frames = {{source.path.string(), 2, ""}};
    CHECK(to_text(added(finding)).find("\n      2 | tile[i] = a < b && \"x\" ? data[i] : 0;\n") != std::string::npos);
    CHECK(source_line({source.path.string(), 9, ""}).empty());
    CHECK(source_line({source.folder.string(), 1, ""}).empty());
}

TEST_CASE("of inlined frames the program's innermost leads, else a library's")
{
    const std::vector<SourceFrame> frames = race().frames;
    CHECK(leading_frame(frames) == 2);
    CHECK(leading_frame(std::span(frames).first(2)) == 1);
    CHECK(leading_frame(std::span(frames).first(1)) == 0);
}

TEST_CASE("paths are shown relative to the current directory, or shortened")
{
    const std::string here = fs::current_path().string();
    CHECK(shown_path(here + "/src/a.cu") == "src/a.cu");
    CHECK(shown_path("src/./b/../a.cu") == "src/a.cu");
    CHECK(shown_path("/nobody/has/this/folder/src/a.cu") == ".../src/a.cu");
    CHECK(shown_path("/x/include/tessera/device/ring.cuh") == "tessera/device/ring.cuh");
}

TEST_CASE("names are demangled and shortened")
{
    CHECK(shown_function("_Z9transposePf") == "transpose(float*)");
    CHECK(shown_kernel("_Z9transposePf") == "transpose");
    CHECK(shown_kernel("void f<g(int)>(int)") == "f<g(...)>");
    CHECK(shown_function("main") == "main");
    CHECK(shown_function("g") == "g");
    CHECK(shown_function("_ZN12_GLOBAL__N_11fEv") == "f()");
    CHECK(shown_function("void n::gemm<(n::Kind)3, (bool)1, n::Tile<128, 64> >(n::Parameters)") ==
          "n::gemm<3, 1, n::Tile<...>>(n::Parameters)");
    CHECK(shown_function("n::Ring<4>::operator->() const") == "n::Ring<4>::operator->() const");
    CHECK(shown_function("n::T::operator bool() const") == "n::T::operator bool() const");
    const std::string argument(90, 'a');
    CHECK(shown_function("void f<" + argument + ">(" + argument + ")") == "f<...>(...)");
    CHECK(shown_function(std::string(300, 'f')).size() == 100);
}

TEST_CASE("one cause is one finding with a count")
{
    Report report;
    Finding finding = race();
    finding.kind = FindingKind::uninitialized_shared;
    finding.lanes = 0xF;
    for (std::uint32_t i = 0; i < 16; ++i) {  // an unrolled loop in four CTAs
        finding.ptx_line = 100 + i;
        finding.cta = {i % 4, 0, 0};
        CHECK(report.add(finding) == (i == 0));
    }
    REQUIRE(report.findings().size() == 1);
    const Finding folded = report.findings()[0];
    CHECK(count_text(folded) == "16 times: 64 accesses in 4 CTAs, 16 instructions");
    CHECK(folded.ptx_line == 100);
    CHECK(
        to_text(folded).find("16 times: 64 accesses in 4 CTAs, 16 instructions; first by CTA (0, 0, 0), warp 4, lanes "
                             "0x0000000f\n") != std::string::npos);

    finding.ptx_text = "ld.shared.f32 %f1, [%r7];";  // another instruction of that line
    CHECK(report.add(finding));
    finding.frames[2].line = 32;  // another line
    CHECK(report.add(finding));

    finding.cause = "allocation 7";  // whatever the instruction
    CHECK(report.add(finding));
    finding.ptx_text = "ld.global.v4.f32 ...";
    finding.frames.clear();
    CHECK_FALSE(report.add(finding));
}

TEST_CASE("slow details are looked up once for each finding")
{
    Report report;
    int asked = 0;
    for (int i = 0; i < 5; ++i) {
        report.add(race(), [&](Finding& finding) {
            ++asked;
            finding.host = {{"other.cpp", 1, ""}};
        });
    }
    CHECK(asked == 1);
    CHECK(report.findings()[0].host[0].file == "other.cpp");
    CHECK(report.findings()[0].count == 5);
}

TEST_CASE("a kernel that cannot be loaded is reported without a CTA and a warp")
{
    test::PtxRun run(test::module_text("sm_90", ".visible .entry k() { .reg .b32 r; add.u32 r, r; ret; }"), "h200");
    CHECK(run.launch("k", {}).code != 0);
    CHECK(run.launch("k", {}).code != 0);
    REQUIRE(run.report.findings().size() == 1);
    const Finding finding = run.report.findings()[0];
    const std::string text = to_text(finding);
    INFO(text);
    CHECK(text.starts_with("error: not-emulated: "));
    CHECK(text.find(" in k") != std::string::npos);
    CHECK(text.find("CTA") == std::string::npos);
    CHECK(text.find("warp") == std::string::npos);
    CHECK(finding.count == 2);
    CHECK(finding.ctas == 0);
}

TEST_CASE("a launch without debug information names the function")
{
    Finding finding = race();
    finding.host = {{"", 0, "main+0x65 (program)"}};
    CHECK(to_text(added(finding)).find("  launched in main+0x65 (program)\n") != std::string::npos);
}

TEST_CASE("lines are broken at the width of a terminal, and colours have no width")
{
    const Finding finding = added(race());
    const std::string plain = to_text(finding, {.colour = false, .width = 70});
    CHECK(plain.starts_with("shared-race: st.shared.f32 writes shared 0x600, but ld.shared.f32 read\n      it\n"));
    for (std::size_t start = 0; start < plain.size(); start = plain.find('\n', start) + 1) {
        CHECK(plain.find('\n', start) - start <= 70);
    }
    std::string coloured = to_text(finding, {.colour = true, .width = 70});
    CHECK(coloured.starts_with("\033[1;33mshared-race\033[0m: "));
    for (std::size_t at = coloured.find('\033'); at != std::string::npos; at = coloured.find('\033')) {
        coloured.erase(at, coloured.find('m', at) + 1 - at);
    }
    CHECK(coloured == plain);
    CHECK(to_text(finding, {.colour = false, .width = 10}) == to_text(finding));  // too narrow to wrap
    CHECK(wrapped("one two three", 6, 0) == "one two three");
}

TEST_CASE("the summary has a line for each finding and says what the exit status is")
{
    Report report;
    CHECK(summary_text(report.findings(), false).empty());
    report.add(race());
    report.add(race());
    Finding leak;
    leak.kind = FindingKind::resource_leak;
    leak.message = "1 device allocations";
    report.add(leak);
    CHECK(summary_text(report.findings(), false) ==
          "2 findings of 2 kinds, 3 occurrences\n"
          "  2 x shared-race    gemm.cu:31  in load<128, std::less<...>>\n"
          "  1 x resource-leak\n"
          "  The exit status is the program's own; --strict makes it 86.\n");
    CHECK(summary_text(report.findings(), true).find("The exit status is 86, because of --strict.") !=
          std::string::npos);
}

TEST_CASE("JSON has all fields")
{
    Report report;
    report.add(race());
    const RunFacts run{"1.2.3", "b200", "random", "exact", 7, false, "tessera-emu -- ./a", "/tmp"};
    const std::string json = report_json(report.findings(), run);
    CHECK(json.find(R"("kind": "shared-race", "error": false, "count": 1, "message": "st.shared)") !=
          std::string::npos);
    CHECK(json.find(R"("kernel": "_Z4loadILi128ESt4lessIiEEvPKfPf")") != std::string::npos);
    CHECK(json.find(R"x("kernel_name": "load<128, std::less<...>>")x") != std::string::npos);
    CHECK(json.find(R"x("place": {"file": "gemm.cu", "line": 31, "function": "load_tile(int)"})x") !=
          std::string::npos);
    CHECK(json.find(R"x("host": [{"file": "main.cpp", "line": 57, "function": "run(int)"})x") != std::string::npos);
    CHECK(json.find(R"("total": 1, "kinds": 1)") != std::string::npos);
    CHECK(json.find(R"("schedule": "random", "numerics": "exact", "seed": 7)") != std::string::npos);
    CHECK(json_string("a\xFF"
                      "b\xC3\xA4") == "\"a\\ufffdb\xC3\xA4\"");
}

TEST_CASE("HTML is one escaped page with the source, the launch and the command that reproduces it")
{
    const SourceFile source;
    Report report;
    Finding finding = race();
    finding.message = "<b>bold</b> & \"quoted\"";
    finding.frames = {{source.path.string(), 2, ""}};
    report.add(finding);
    report.add(finding);
    const RunFacts run{"1.2.3", "h200", "adversarial", "exact", 9, false, "tessera-emu --seed 9 -- ./a '<x>'", "/tmp"};
    KernelTotals totals{kernel, 3, {}};
    totals.statistics.mma_flops = 1234567;
    const std::string page = report_html(report.findings(), run, std::span(&totals, 1));
    CHECK(page.starts_with("<!DOCTYPE html>"));
    CHECK(page.find("&lt;b&gt;bold&lt;/b&gt; &amp; &quot;quoted&quot;") != std::string::npos);
    CHECK(page.find("<span class=\"here\"><i>2</i>    tile[i] = a &lt; b &amp;&amp; &quot;x&quot;") !=
          std::string::npos);
    CHECK(page.find("<script") == std::string::npos);  // the third line of the source has one
    CHECK(page.find("In kernel <code>load&lt;128, std::less&lt;...&gt;&gt;</code>") != std::string::npos);
    CHECK(page.find("main.cpp:57") != std::string::npos);
    CHECK(page.find("2 times: 64 accesses in 1 CTA") != std::string::npos);
    CHECK(page.find("tessera-emu --seed 9 -- ./a &#39;&lt;x&gt;&#39;") != std::string::npos);
    CHECK(page.find("adversarial, seed 9") != std::string::npos);
    CHECK(page.find("<td>1,234,567</td>") != std::string::npos);
    for (const char* outside : {"http:", "https:", "src=", "url(", "@import", "<link"}) {
        CAPTURE(outside);
        CHECK(page.find(outside) == std::string::npos);
    }
    CHECK(report_html({}, run, {}).find("No findings.") != std::string::npos);
}

}  // namespace tessera::emulator::test
