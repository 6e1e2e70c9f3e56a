// Findings name their place in the source, also through inlined functions.

#include "../memory/lane_kernel.hpp"

namespace tessera::emulator::test {

TEST_CASE("the source of a finding in inlined functions is the chain of calls")
{
    const std::string kernel = lane_kernel(
                                   ".local .align 8 .b8 l[16];\n"
                                   ".loc 1 20 3, function_name $outer, inlined_at 1 50 3\n"
                                   ".loc 2 7 3, function_name $inner+2, inlined_at 1 20 3\n"
                                   "ld.local.b32 %r1, [l];\n .loc 1 51 1\n st.global.b32 [%out], %r1;") +
                               ".file 1 \"a.cu\"\n.file 2 \"b.cuh\"\n.section .debug_str\n{\n$outer:\n"
                               ".b8 95,90,49,102,105,0\n$inner:\n.b8 120,121,103,0\n}\n";
    const LaneResult result = run_lanes(kernel);
    REQUIRE(result.findings.size() == 1);
    CHECK(result.findings[0].source == "b.cuh:7 (in g), inlined at a.cu:20 (in f(int)), inlined at a.cu:50");
    CHECK(result.findings[0].message.find(", a.cu:51)") != std::string::npos);
}

TEST_CASE("a trap in a destructor names the class whose object was dropped")
{
    const std::string kernel = lane_kernel(
                                   ".loc 1 20 3, function_name $drop, inlined_at 1 50 3\n"
                                   "trap;") +
                               ".file 1 \"a.cu\"\n.section .debug_str\n{\n$drop:\n"
                               ".b8 95,90,78,49,110,52,83,108,111,116,68,49,69,118,0\n}\n";  // _ZN1n4SlotD1Ev
    const LaneResult result = run_lanes(kernel);
    REQUIRE(result.findings.size() == 1);
    CHECK(result.findings[0].message ==
          "trap executed: the destructor of n::Slot stops the kernel, because the object was dropped before it was "
          "handed on or released");
}

}  // namespace tessera::emulator::test
