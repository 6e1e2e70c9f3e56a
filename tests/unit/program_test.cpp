/// Programs compiled at run time, as far as no device is needed: compilation, errors, what is kept on disk.

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "program/program_notes.hpp"
#include "tessera/error.hpp"
#include "tessera/tile/program.hpp"

using namespace tessera;
namespace fs = std::filesystem;

namespace {

constexpr const char* source = R"(using namespace tessera;
template <int M>
struct Twice {
    tile::Input<float, M, 32> x;
    tile::Output<float, M, 32> y;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at) * FACTOR);
        }
    }
};
struct Typo {
    tile::Output<float, 4, 32> y;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, tile::fulll<float, 4, 32>(cta, 1));
        }
    }
};
struct Elsewhere {
    tile::Output<float, 4, 32> y;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, tile::full<float, 8, 32>(cta, 1));
        }
    }
};
struct Constructed {
    Constructed();
    tile::Output<float, 4, 32> y;
    TESSERA_TILE void operator()(auto) const {}
};
template <bool Conditional>
struct Product {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 128> b;
    tile::Output<bf16, 128, 128> d;
    bool twice;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
            if (!Conditional || twice) {
                for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                    sum = mma(left, right, sum);
                }
            }
            if (Conditional) {
                for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                    sum = mma(left, right, sum);
                }
            }
            d.store(at, tile::convert<bf16>(sum));
        }
    }
};
)";

/// A folder that goes when the test ends.
class Folder {
public:
    Folder() : path_(fs::temp_directory_path() / ("tessera-programs-" + std::to_string(getpid()))) { remove(); }
    ~Folder() { remove(); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string path() const { return path_.string(); }
    std::size_t entries() const
    {
        std::size_t count = 0;
        for (const auto& entry : fs::directory_iterator(path_)) {
            count += entry.is_regular_file() ? 1U : 0U;
        }
        return count;
    }
    fs::path only_entry() const { return fs::directory_iterator(path_)->path(); }

private:
    void remove() const
    {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    fs::path path_;
};

tile::Program program(const std::string& folder, const std::string& factor = "2")
{
    return tile::Program::from_source(
        source, {.name = "twice.cu", .definitions = {"FACTOR=" + factor}, .cache_folder = folder});
}

std::string error_of(const std::string& type, tile::ComputeCapability target = {8, 0})
{
    try {
        program("none").compile(type, target);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a program is compiled for GPUs that are not there, and read from disk after that")
{
    const Folder folder;
    const tile::CompiledProgram first = program(folder.path()).compile("Twice<4>", {9, 0});
    CHECK(!first.from_cache);
    CHECK(first.warnings.empty());
    CHECK(has(first.ptx, ".target sm_90a"));
    CHECK(has(first.ptx, ".entry tessera_tile_wgmma("));
    CHECK(!first.machine_code.empty());
    CHECK(folder.entries() == 1);

    const tile::CompiledProgram again = program(folder.path()).compile("Twice<4>", {9, 0});
    CHECK(again.from_cache);
    CHECK(again.ptx == first.ptx);
    CHECK(again.machine_code == first.machine_code);

    // Whatever changes the code is another entry.
    CHECK(!program(folder.path(), "3").compile("Twice<4>", {9, 0}).from_cache);
    CHECK(folder.entries() == 2);
}

TEST_CASE("a damaged entry is compiled again, with a warning, and mended")
{
    const Folder folder;
    const tile::CompiledProgram first = program(folder.path()).compile("Twice<8>", {7, 5});
    const fs::path entry = folder.only_entry();
    for (const bool cut : {false, true}) {
        std::stringstream text;
        text << std::ifstream(entry).rdbuf();
        std::string content = text.str();
        content[content.size() / 2] ^= 1;
        std::ofstream(entry) << (cut ? content.substr(0, content.size() / 3) : content);
        const tile::CompiledProgram again = program(folder.path()).compile("Twice<8>", {7, 5});
        CHECK(!again.from_cache);
        CHECK(has(again.warnings, "is damaged: it is compiled again"));
        CHECK(again.ptx == first.ptx);
    }
    CHECK(program(folder.path()).compile("Twice<8>", {7, 5}).from_cache);
}

TEST_CASE("two processes that find an empty folder are both right")
{
    const Folder folder;
    const auto compile = [&] { return program(folder.path()).compile("Twice<16>", {8, 0}).ptx; };
    const pid_t child = fork();
    if (child == 0) {
        bool right = false;
        try {
            right = has(compile(), ".entry tessera_tile_mma_sync(");
        } catch (...) {
        }
        _exit(right ? 0 : 1);
    }
    const std::string ours = compile();
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(has(ours, ".entry tessera_tile_mma_sync("));
    CHECK(folder.entries() == 1);
    CHECK(program(folder.path()).compile("Twice<16>", {8, 0}).ptx == ours);
}

TEST_CASE("a folder that cannot be written is no reason to fail")
{
    const tile::CompiledProgram compiled = program("/proc/nothing").compile("Twice<4>", {8, 0});
    CHECK(!compiled.from_cache);
    CHECK(has(compiled.warnings, "compiled programs are not kept: the folder /proc/nothing cannot be made"));
}

TEST_CASE("errors are the compiler's, at the line of the source")
{
    const std::string typo = error_of("Typo");
    CHECK(has(typo, "tessera: compilation_failed in tile::Program"));
    CHECK(has(typo, "twice.cu(18): error"));
    CHECK(has(typo, "fulll"));
    CHECK(
        has(error_of("Elsewhere"),
            "twice.cu(27): error: tessera: the tile that is stored has other rows or columns than the output's tiles"));
    CHECK(!has(error_of("Elsewhere"), "view.cuh"));
    CHECK(has(error_of("Thrice"), "the type that was asked for(1): error: identifier \"Thrice\" is undefined"));
    CHECK(has(error_of("Constructed"), "a program that is compiled at run time is a struct without constructors"));
    CHECK(has(error_of("int"), "a program that is compiled at run time is a struct"));
    CHECK(has(error_of("Twice<4>", {3, 5}), "does not compile for compute capability 3.5"));
}

TEST_CASE("what a program needs is read from its code")
{
    const tile::detail::ProgramNotes notes = tile::detail::notes_of(program("none").compile("Twice<4>", {9, 0}).ptx);
    REQUIRE(notes.members.count == 2);
    CHECK(notes.members.of[0].kind == tile::detail::MemberKind::input);
    CHECK(notes.members.of[0].rows == 4);
    CHECK(notes.members.of[1].kind == tile::detail::MemberKind::output);
    REQUIRE(!notes.plan.places.empty());
    CHECK(notes.plan.places[0] == tile::detail::MemberNumber(1));
    CHECK(notes.plan.streams.empty());
    CHECK(!notes.tcgen05.has_value());
}

TEST_CASE("what a program needs of tensor memory is read from its code, and compiled for all GPUs that have it")
{
    for (const tile::ComputeCapability target : {tile::ComputeCapability{10, 0}, {10, 3}, {11, 0}}) {
        const std::string ptx = program("none").compile("Product<false>", target).ptx;
        CHECK(has(ptx, ".entry tessera_tile_tcgen05("));
        CHECK(has(ptx, ".entry tessera_tile_pairs("));
        const tile::detail::ProgramNotes notes = tile::detail::notes_of(ptx);
        REQUIRE(notes.tcgen05.has_value());
        const tile::detail::Tcgen05Plan& needs = notes.tcgen05->needs;
        CHECK(needs.refusal == tile::detail::Tcgen05Refusal::none);
        CHECK(needs.pair_refusal == tile::detail::PairRefusal::none);
        CHECK(needs.products > 0);
        CHECK(needs.tiles == 1);
        CHECK(needs.columns == 128);
        CHECK(needs.pair_stage_bytes == std::size_t{2} * (128 * 64 + 64 * 128 / 2));
        CHECK(notes.tcgen05->plan.stage_bytes == std::size_t{2} * (128 * 64 + 64 * 128));
    }
}

TEST_CASE("a program whose sums depend on the run does not use tensor memory")
{
    const tile::detail::ProgramNotes notes =
        tile::detail::notes_of(program("none").compile("Product<true>", {10, 0}).ptx);
    REQUIRE(notes.tcgen05.has_value());
    CHECK(notes.tcgen05->needs.refusal == tile::detail::Tcgen05Refusal::unknown);
    CHECK(has(std::string(tile::detail::text_of(notes.tcgen05->needs.refusal)), "depends on the run"));
}
