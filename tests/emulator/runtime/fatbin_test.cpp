/// The fat binary reader, with binaries made here. Programs that run show that nvcc's are read.

#include "runtime/fatbin.hpp"

#include <doctest/doctest.h>
#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <stdexcept>
#include <string>

using namespace tessera::emulator;

namespace {

constexpr std::uint64_t flags_plain = 0x11;
constexpr std::uint64_t flag_lz4 = 0x2000;
constexpr std::uint64_t flag_zstd = 0x8000;
constexpr std::uint64_t flag_a = 0x100000;
constexpr std::uint64_t flag_f = 0x200000;

template <class Value>
void append(std::string& bytes, Value value)
{
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// One image, as nvcc 13.0 writes it.
std::string image(std::uint16_t kind, std::uint32_t architecture, std::uint64_t flags, std::string payload,
                  std::uint64_t uncompressed = 0)
{
    const auto compressed = static_cast<std::uint32_t>(uncompressed == 0 ? 0 : payload.size());
    payload.resize((payload.size() + 7) / 8 * 8);
    std::string bytes;
    append(bytes, kind);
    append<std::uint16_t>(bytes, 0x0101);
    append<std::uint32_t>(bytes, 80);
    append<std::uint64_t>(bytes, payload.size());
    append(bytes, compressed);
    append<std::uint32_t>(bytes, 64);
    append<std::uint16_t>(bytes, 0);
    append<std::uint16_t>(bytes, 9);
    append(bytes, architecture);
    append<std::uint32_t>(bytes, 0);
    append<std::uint32_t>(bytes, 0);
    append(bytes, flags);
    append<std::uint64_t>(bytes, 0);
    append(bytes, uncompressed);
    bytes.resize(80);
    return bytes + payload;
}

std::string ptx(std::uint32_t architecture, std::uint64_t flags = flags_plain)
{
    return image(1, architecture, flags, ".version 9.0 // " + std::to_string(architecture));
}

struct Fatbin {
    explicit Fatbin(const std::string& images)
    {
        append<std::uint32_t>(bytes, 0xBA55ED50);
        append<std::uint16_t>(bytes, 1);
        append<std::uint16_t>(bytes, 16);
        append<std::uint64_t>(bytes, images.size());
        bytes += images;
    }
    [[nodiscard]] std::vector<FatbinEntry> entries() const { return read_fatbin(bytes.data()); }
    [[nodiscard]] std::string choice(const char* device) const
    {
        const std::vector<FatbinEntry> all = entries();
        const FatbinEntry* chosen = choose_ptx(all, *find_device_model(device));
        return chosen == nullptr ? "none" : chosen->target();
    }
    std::string bytes;
};

}  // namespace

TEST_CASE("images are found with their targets, plain text without its padding")
{
    const Fatbin fatbin(ptx(75) + image(2, 90, flags_plain | flag_a, "\177ELF....") + ptx(100, flags_plain | flag_f));
    const std::vector<FatbinEntry> entries = fatbin.entries();
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].kind == FatbinEntry::Kind::ptx);
    CHECK(entries[0].target() == "sm_75");
    CHECK(entries[0].isa_major == 9);
    CHECK(ptx_text(entries[0]) == ".version 9.0 // 75");
    CHECK(entries[1].kind == FatbinEntry::Kind::elf);
    CHECK(entries[1].target() == "sm_90a");
    CHECK(entries[2].target() == "sm_100f");
}

TEST_CASE("the wrapper gives the same images")
{
    const Fatbin fatbin(ptx(80));
    struct {
        std::uint32_t magic = 0x466243B1, version = 1;
        const void* data;
        const void* unused = nullptr;
    } wrapper{.data = fatbin.bytes.data()};
    CHECK(is_fatbin(&wrapper));
    CHECK(is_fatbin(fatbin.bytes.data()));
    CHECK(read_fatbin(&wrapper).size() == 1);
    CHECK(read_prelinked(&wrapper).empty());
    const void* units[] = {&wrapper, nullptr};
    const struct {
        std::uint32_t magic = 0x466243B1, version = 2;
        const void* data;
        const void* const* prelinked;
    } linked{.data = fatbin.bytes.data(), .prelinked = units};
    REQUIRE(read_prelinked(&linked).size() == 1);
    CHECK(read_prelinked(&linked)[0].size() == 1);
}

TEST_CASE("compressed images are decompressed")
{
    std::string text = ".version 9.0\n.target sm_100a\n";
    for (int i = 0; i < 500; ++i) {
        text += "mov.b32 %r1, %r2;\n";
    }
    std::string zstd(ZSTD_compressBound(text.size()), '\0');
    zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), text.data(), text.size(), 3));
    std::string lz4(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(text.size()))), '\0');
    lz4.resize(static_cast<std::size_t>(
        LZ4_compress_default(text.data(), lz4.data(), static_cast<int>(text.size()), static_cast<int>(lz4.size()))));
    const Fatbin fatbin(image(1, 100, flags_plain | flag_zstd | flag_a, zstd, text.size()) +
                        image(1, 90, flags_plain | flag_lz4, lz4, text.size()));
    const std::vector<FatbinEntry> entries = fatbin.entries();
    REQUIRE(entries.size() == 2);
    CHECK(entries[0].compression == FatbinEntry::Compression::zstd);
    CHECK(ptx_text(entries[0]) == text);
    CHECK(entries[1].compression == FatbinEntry::Compression::lz4);
    CHECK(ptx_text(entries[1]) == text);

    const Fatbin damaged(image(1, 100, flags_plain | flag_zstd, zstd.substr(0, zstd.size() / 2), text.size()));
    CHECK_THROWS_WITH_AS(ptx_text(damaged.entries()[0]), doctest::Contains("zstd"), std::runtime_error);
}

TEST_CASE("the PTX that the driver would choose: exact chip, family, newest target not newer than the device")
{
    const Fatbin all(ptx(75) + ptx(80) + ptx(90) + ptx(90, flags_plain | flag_a) + ptx(100) +
                     ptx(100, flags_plain | flag_f) + ptx(100, flags_plain | flag_a) + ptx(120));
    CHECK(all.choice("b200") == "sm_100a");
    CHECK(all.choice("h200") == "sm_90a");
    CHECK(all.choice("t4") == "sm_75");
    CHECK(Fatbin(ptx(90, flags_plain | flag_a) + ptx(80)).choice("b200") == "sm_80");
    CHECK(Fatbin(ptx(100) + ptx(100, flags_plain | flag_f)).choice("b200") == "sm_100f");
    CHECK(Fatbin(ptx(90, flags_plain | flag_a)).choice("b200") == "none");
    CHECK(Fatbin(ptx(100, flags_plain | flag_a)).choice("h200") == "none");
    CHECK(Fatbin(ptx(103)).choice("b200") == "none");
    CHECK(Fatbin(image(2, 100, flags_plain, "\177ELF")).choice("b200") == "none");
}

TEST_CASE("without PTX, the message names the available targets and how to compile")
{
    const Fatbin fatbin(ptx(90, flags_plain | flag_a) + image(2, 100, flags_plain | flag_a, "\177ELF"));
    const std::string sentence = explain_no_ptx(fatbin.entries(), *find_device_model("b200"));
    CHECK(sentence.find("its PTX is for sm_90a;") != std::string::npos);
    CHECK(sentence.find("machine code, for sm_100a, is not emulated") != std::string::npos);
    CHECK(sentence.find("-gencode arch=compute_100a,code=[sm_100a,compute_100a]") != std::string::npos);
    const std::string empty = explain_no_ptx({}, *find_device_model("t4"));
    CHECK(empty.find("can run: it has none. Compile") != std::string::npos);
    CHECK(empty.find("code=[sm_75,compute_75]") != std::string::npos);
}

TEST_CASE("data that is not a fat binary is refused")
{
    const std::string text(64, 'x');
    CHECK_FALSE(is_fatbin(text.data()));
    CHECK_THROWS_AS(static_cast<void>(read_fatbin(text.data())), std::runtime_error);
    Fatbin cut(ptx(80));
    const std::uint64_t too_large = 1000;
    std::memcpy(cut.bytes.data() + 16 + 8, &too_large, sizeof too_large);
    CHECK_THROWS_WITH_AS(static_cast<void>(cut.entries()), doctest::Contains("is too large"), std::runtime_error);
}
