// Nothing that a fat binary says about itself is trusted: every field of binaries that nvcc 13.0 made (tests/fuzz/corpus)
// is replaced, and the result is read from the end of readable memory. It is read or refused with a sentence.

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "runtime/fatbin.hpp"

using namespace tessera::emulator;

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t longest_text = 1 << 20;

/// Memory whose last byte is followed by memory that nobody can access.
class EndOfMemory {
public:
    EndOfMemory()
    {
        void* const mapped = ::mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(mapped != MAP_FAILED);
        base_ = static_cast<std::byte*>(mapped);
        REQUIRE(::mprotect(base_, 2 * page, PROT_READ | PROT_WRITE) == 0);
    }
    ~EndOfMemory() { ::munmap(base_, 3 * page); }
    EndOfMemory(const EndOfMemory&) = delete;
    EndOfMemory& operator=(const EndOfMemory&) = delete;
    [[nodiscard]] std::span<const std::byte> put(const std::string& bytes)
    {
        std::byte* const at = base_ + 2 * page - bytes.size();
        std::memcpy(at, bytes.data(), bytes.size());
        return {at, bytes.size()};
    }
    [[nodiscard]] const std::byte* beyond() const { return base_ + 2 * page; }

private:
    std::byte* base_ = nullptr;
};

std::string read_file(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> real_binaries()
{
    std::vector<std::string> binaries;
    for (const auto& entry : std::filesystem::directory_iterator(TESSERA_FATBIN_CORPUS)) {
        binaries.push_back(read_file(entry.path()));
    }
    REQUIRE(binaries.size() >= 3);
    return binaries;
}

/// Reads everything that there is. Returns false if it was refused.
template <class Binary>
bool read_all(const Binary& binary)
{
    try {
        for (const FatbinEntry& entry : read_fatbin(binary)) {
            if (entry.kind == FatbinEntry::Kind::ptx) {
                CHECK(ptx_text(entry).size() < longest_text);
            }
        }
        return true;
    } catch (const std::runtime_error& error) {
        CHECK(std::string(error.what()).size() > 20);
        return false;
    }
}

struct Field {
    std::size_t offset, bytes;
};

/// The fields of the binary's header and of every image's.
std::vector<Field> fields_of(const std::string& binary)
{
    std::vector<Field> fields{{0, 4}, {4, 2}, {6, 2}, {8, 8}};
    std::size_t at = 16;
    while (at + 64 <= binary.size()) {
        for (const Field& field : {Field{0, 2},
                                   {2, 2},
                                   {4, 4},
                                   {8, 8},
                                   {16, 4},
                                   {20, 4},
                                   {24, 2},
                                   {26, 2},
                                   {28, 4},
                                   {32, 4},
                                   {36, 4},
                                   {40, 8},
                                   {48, 8},
                                   {56, 8}}) {
            fields.push_back({at + field.offset, field.bytes});
        }
        std::uint32_t header = 0;
        std::uint64_t payload = 0;
        std::memcpy(&header, binary.data() + at + 4, sizeof header);
        std::memcpy(&payload, binary.data() + at + 8, sizeof payload);
        at += header + payload;
    }
    return fields;
}

std::vector<std::uint64_t> values_for(std::uint64_t old)
{
    std::vector<std::uint64_t> values{0,           1, old - 1, old + 1, old + 8, 2 * old, old ^ 0x2000, old ^ 0x8000,
                                      old ^ 0xA000};
    for (const unsigned shift : {4U, 7U, 8U, 12U, 15U, 16U, 24U, 31U, 32U, 40U, 47U, 62U, 63U}) {
        values.push_back(std::uint64_t{1} << shift);
        values.push_back((std::uint64_t{1} << shift) - 1);
        values.push_back(~((std::uint64_t{1} << shift) - 1));
    }
    values.push_back(~std::uint64_t{0});
    return values;
}

}  // namespace

TEST_CASE("a fat binary of nvcc at the end of memory is read, and its two texts are what nvcc wrote")
{
    EndOfMemory memory;
    for (const std::string& binary : real_binaries()) {
        for (const std::vector<FatbinEntry>& entries :
             {read_fatbin(memory.put(binary)), read_fatbin(memory.put(binary).data())}) {
            REQUIRE(entries.size() == 2);
            CHECK(entries[0].target() == "sm_80");
            CHECK(entries[1].target() == "sm_90a");
            for (const FatbinEntry& entry : entries) {
                CHECK(ptx_text(entry).find(".visible .entry scale(") != std::string::npos);
            }
        }
    }
}

TEST_CASE("no value of any field makes the reader leave the binary, or take memory")
{
    EndOfMemory memory;
    unsigned refused = 0;
    for (const std::string& binary : real_binaries()) {
        for (const Field& field : fields_of(binary)) {
            std::uint64_t old = 0;
            std::memcpy(&old, binary.data() + field.offset, field.bytes);
            for (const std::uint64_t value : values_for(old)) {
                CAPTURE(field.offset);
                CAPTURE(value);
                std::string damaged = binary;
                std::memcpy(damaged.data() + field.offset, &value, field.bytes);
                const std::span<const std::byte> bytes = memory.put(damaged);
                const bool file = read_all(bytes);
                CHECK(read_all(static_cast<const void*>(bytes.data())) == file);
                refused += file ? 0 : 1;
            }
        }
    }
    CHECK(refused > 100);
}

TEST_CASE("a fat binary that is cut off anywhere is refused")
{
    EndOfMemory memory;
    for (const std::string& binary : real_binaries()) {
        for (std::size_t size = 4; size < binary.size(); ++size) {
            CAPTURE(size);
            const std::span<const std::byte> bytes = memory.put(binary.substr(0, size));
            CHECK_FALSE(read_all(bytes));
            CHECK_FALSE(read_all(static_cast<const void*>(bytes.data())));
        }
    }
}

TEST_CASE("a wrapper with a wrong address is refused, and so is one in a file")
{
    EndOfMemory memory;
    struct Wrapper {
        std::uint32_t magic = 0x466243B1, version = 2;
        const void* data = nullptr;
        const void* const* units = nullptr;
    } wrapper;
    CHECK_FALSE(read_all(static_cast<const void*>(&wrapper)));
    wrapper.data = memory.beyond();
    CHECK_FALSE(read_all(static_cast<const void*>(&wrapper)));
    CHECK_FALSE(read_all(std::as_bytes(std::span(&wrapper, 1))));
    // A list of units that does not end, and one with a wrong address.
    const std::string binary = real_binaries().front();
    const auto* const data = binary.data();
    std::string endless(16 * sizeof data, '\0');
    for (std::size_t i = 0; i < 16; ++i) {
        std::memcpy(endless.data() + i * sizeof data, &data, sizeof data);
    }
    wrapper.data = data;
    wrapper.units = reinterpret_cast<const void* const*>(memory.put(endless).data());
    CHECK(read_all(static_cast<const void*>(&wrapper)));
    CHECK_THROWS_WITH_AS(static_cast<void>(read_prelinked(&wrapper)), doctest::Contains("list of units"),
                         std::runtime_error);
    const void* units[] = {data, memory.beyond(), nullptr};
    wrapper.units = units;
    CHECK_THROWS_WITH_AS(static_cast<void>(read_prelinked(&wrapper)), doctest::Contains("no readable memory"),
                         std::runtime_error);
}
