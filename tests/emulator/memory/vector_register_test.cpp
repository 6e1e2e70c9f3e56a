// Vector registers (.reg .v2, .v4): declarations, whole vectors as operands, members, mov of vectors. ptxas accepts each
// form that runs here and refuses each that is refused.

#include "lane_kernel.hpp"

namespace tessera::emulator::test {

namespace {

constexpr std::size_t word = sizeof(std::uint32_t);

/// Expects the words of the output to be the words of the input with these numbers.
void check_words(std::string_view body, std::initializer_list<std::size_t> sources)
{
    check_lanes(body, [&](unsigned, const Slot& in, Slot& out) {
        std::size_t to = 0;
        for (const std::size_t from : sources) {
            put(out, get<std::uint32_t>(in, from * word), to);
            to += word;
        }
    });
}

}  // namespace

TEST_CASE("a vector register is loaded and stored as a whole, and read and written by members of both alphabets")
{
    check_words(".reg .v2 .b32 v; ld.global.v2.b32 v, [%in]; st.global.v2.b32 [%out], v;", {0, 1});
    check_words(".reg .v4 .u32 v; ld.global.v4.u32 v, [%in]; st.global.v2.u32 [%out], {v.w, v.x};", {3, 0});
    check_words(".reg .v4 .u32 v; ld.global.v4.u32 v, [%in]; st.global.v4.u32 [%out], {v.r, v.g, v.b, v.a};",
                {0, 1, 2, 3});
    check_words(".reg .v2 .f32 v; ld.global.v2.f32 {v.y, v.x}, [%in]; st.global.v2.f32 [%out], v;", {1, 0});
    check_words(".reg .v2 .b64 v; ld.global.v2.b64 v, [%in]; st.global.b64 [%out], v.y;", {2, 3});
    check_lanes(
        ".reg .v2 .u32 a, b; ld.global.v2.u32 a, [%in]; add.u32 b.x, a.x, a.y; sub.u32 b.y, b.x, 1; "
        "st.global.v2.u32 [%out], b;",
        [](unsigned, const Slot& in, Slot& out) {
            const std::uint32_t sum = get<std::uint32_t>(in) + get<std::uint32_t>(in, word);
            put(out, sum);
            put(out, sum - 1, word);
        });
}

TEST_CASE("numbered vector registers are distinct, and an inner declaration hides an outer one")
{
    check_words(
        ".reg .v2 .b32 %v<12>; ld.global.v2.b32 %v1, [%in]; ld.global.v2.b32 %v11, [%in+8]; "
        "st.global.v4.b32 [%out], {%v1.x, %v11.y, %v11.x, %v1.y};",
        {0, 3, 2, 1});
    check_words(
        ".reg .v2 .b32 v; ld.global.v2.b32 v, [%in]; { .reg .b32 v; ld.global.b32 v, [%in+8]; "
        "st.global.b32 [%out], v; } st.global.b32 [%out+4], v.y;",
        {2, 1});
    check_words(
        ".reg .b32 v; ld.global.b32 v, [%in]; { .reg .v2 .b32 v; ld.global.v2.b32 v, [%in+8]; "
        "st.global.b32 [%out], v.y; } st.global.b32 [%out+4], v;",
        {3, 0});
}

TEST_CASE("mov packs, unpacks and copies vectors, and reads all elements before it writes one")
{
    check_words(".reg .v2 .b32 v; ld.global.v2.b32 v, [%in]; mov.b64 %d1, v; st.global.b64 [%out], %d1;", {0, 1});
    check_words(".reg .v2 .b32 v; ld.global.b64 %d1, [%in]; mov.b64 v, %d1; st.global.b32 [%out], v.y;", {1});
    check_words(".reg .v2 .f32 v, w; ld.global.v2.f32 v, [%in]; mov.v2.f32 w, v; st.global.v2.f32 [%out], w;", {0, 1});
    check_words(".reg .v2 .f32 v; ld.global.v2.f32 v, [%in]; mov.v2.f32 v, {v.y, v.x}; st.global.v2.f32 [%out], v;",
                {1, 0});
    check_words(
        "ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%in]; mov.v4.b32 {%r1,%r2,%r3,%r4}, {%r4,%r3,%r2,%r1}; "
        "st.global.v4.b32 [%out], {%r1,%r2,%r3,%r4};",
        {3, 2, 1, 0});
    check_words(".reg .v2 .b64 v; ld.global.v2.b64 v, [%in]; mov.v2.b64 {_, %d1}, v; st.global.b64 [%out], %d1;",
                {2, 3});
    check_lanes(".reg .v4 .u32 v; mov.v4.u32 v, %tid; st.global.v4.u32 [%out], v;",
                [](unsigned lane, const Slot&, Slot& out) {
                    put(out, lane);
                    put(out, std::array<std::uint32_t, 3>{}, word);
                });
    // Only lanes whose guard is true.
    check_lanes(
        ".reg .v2 .b32 v, w; ld.global.v2.b32 v, [%in]; ld.global.v2.b32 w, [%in+8]; setp.lt.u32 %p1, %lane, 7; "
        "@%p1 mov.v2.b32 v, w; st.global.v2.b32 [%out], v;",
        [](unsigned lane, const Slot& in, Slot& out) { put(out, get<std::uint64_t>(in, lane < 7 ? 8 : 0)); });
}

TEST_CASE("an undefined element of a vector does not make the others undefined")
{
    const auto findings = [](const std::string& use) {
        return run_lanes(lane_kernel(".shared .align 16 .b8 s[64]; .reg .v2 .b32 v, w; ld.shared.b32 v.x, [s]; "
                                     "ld.global.b32 v.y, [%in]; mov.v2.b32 w, v; st.global.b32 [%out], " +
                                     use + ";"))
            .findings;
    };
    CHECK(findings("w.y").empty());
    REQUIRE(findings("w.x").size() == 1);
    CHECK(findings("w.x")[0].kind == FindingKind::uninitialized_shared);
}

TEST_CASE("what PTX does not allow is refused when the module is loaded")
{
    for (const char* wrong :
         {".reg .v2 .pred v;", ".reg .v4 .f64 v;", ".reg .v2 .b128 v;", ".reg .v2 .f32 v, w; add.f32 v, w, w;",
          ".reg .v2 .f32 v, w; mov.f32 v, w;", ".reg .v2 .f32 v; mov.f32 %f1, v.z;",
          ".reg .v2 .f32 v; mov.b64 v, {%f1, %f2};", ".reg .v2 .f32 v; .reg .v4 .f32 w; mov.v2.f32 v, w;",
          ".reg .v2 .f32 v; ld.global.v4.f32 v, [%in];"}) {
        CAPTURE(wrong);
        CHECK_FALSE(load_error(wrong).empty());
    }
}

}  // namespace tessera::emulator::test
