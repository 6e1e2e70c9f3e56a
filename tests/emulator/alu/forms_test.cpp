// Which forms of the instructions are accepted and which are refused, as decided by ptxas 13.0 for sm_100a.

#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

constexpr const char* accepted[] = {
#include "accepted_forms.inc"
};

constexpr const char* refused[] = {
#include "refused_forms.inc"
};

}  // namespace

TEST_CASE("every accepted form can be lowered")
{
    for (const char* form : accepted) {
        INFO(std::string(form));
        CHECK(refusal(form) == "");
    }
}

TEST_CASE("invalid forms are refused with a sentence")
{
    for (const char* form : refused) {
        INFO(std::string(form));
        CHECK(refusal(form) != "");
    }
}

TEST_CASE("a register of another width than the operand is refused, or read and written with its own width")
{
    // Loads, stores and cvt allow wider registers (PTX ISA 9.4.1), and mov has forms of every width; their own tests
    // have the values.
    constexpr std::array<std::string_view, 4> any_width{"ld", "st", "cvt", "mov"};
    const std::map<std::string, std::vector<std::string>> others{
        {"rs", {"rb", "r", "rd"}}, {"r", {"rs", "rd"}}, {"rd", {"r", "rq"}}, {"f", {"rs", "fd"}}, {"fd", {"f", "rs"}}};
    unsigned tried = 0;
    for (const std::string form : accepted) {
        if (std::ranges::find(any_width, form.substr(0, form.find('.'))) != any_width.end()) {
            continue;
        }
        for (std::size_t at = form.find('%'); at != std::string::npos; at = form.find('%', at + 1)) {
            const std::size_t digits = form.find_first_of("0123456789", at);
            const auto replacements = others.find(form.substr(at + 1, digits - at - 1));
            const bool in_address = form.find('[') < at && at < form.find(']');
            if (replacements == others.end() || in_address) {
                continue;
            }
            for (const std::string& other : replacements->second) {
                const std::string changed = form.substr(0, at + 1) + other + form.substr(digits);
                INFO(changed);
                CHECK(refusal(changed) != "");
                ++tried;
            }
        }
    }
    CHECK(tried > 1000);
    for (const char* form : {"mbarrier.init.shared::cta.b64 [%r0], %rd1;", "mbarrier.pending_count.b64 %rd0, %rd1;",
                             "bar.sync %rd0;", "barrier.sync %r0, %rd1;", "bar.warp.sync %rd0;", "nanosleep.u32 %rd0;",
                             "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%rd0}, [%r1];", "mov.u32 %r0, k;",
                             "mbarrier.expect_tx.shared::cta.b64 [%r0], %rd1;", "ld.global.u32 %r0, [%rq1];"}) {
        INFO(std::string(form));
        CHECK(refusal(form) != "");
    }
}

TEST_CASE("refusals name the wrong part")
{
    const auto names = [](const char* form, const char* part) {
        const std::string why = refusal(form);
        INFO(why);
        CHECK(why.find(part) != std::string::npos);
    };
    names("add.sat.u32 %r0,%r1,%r2;", ".sat is for .s32 only");
    names("mul.lo.f32 %f0,%f1,%f2;", "'.lo'");
    names("cvt.u32.f32 %r0,%f1;", "needs .rni .rzi .rmi or .rpi");
    names("fma.f32 %f0,%f1,%f2,%f3;", "rounding mode");
    names("setp.lt.b32 %p0,%r1,%r2;", ".lt is not defined for type .b32");
    names("add.u32 %rd0,%r1,%r2;", "is a .b64 register");
    names("add.u32 %r0,%r1;", "takes 3 operands, not 2");
}

TEST_CASE("a device without an instruction refuses it")
{
    CHECK(refusal("add.u16x2 %r0,%r1,%r2;", "sm_75", "t4").find("needs sm_90") != std::string::npos);
    CHECK(refusal("add.rn.f32x2 %rd0,%rd1,%rd2;", "sm_90", "h200").find("needs sm_100") != std::string::npos);
    CHECK(refusal("redux.sync.min.f32 %f0,%f1,-1;", "sm_90", "h200").find("needs sm_100") != std::string::npos);
    CHECK(refusal("cvt.rn.satfinite.e2m1x2.f32 %rb0,%f1,%f2;", "sm_90", "h200").find("needs sm_100") !=
          std::string::npos);
    CHECK(refusal("elect.sync %r0|%p0,-1;", "sm_75", "t4").find("needs sm_90") != std::string::npos);
}
