#include "runtime/fatbin.hpp"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "runtime/readable_memory.hpp"

namespace tessera::emulator {

namespace {

constexpr std::uint32_t wrapper_magic = 0x466243B1;
constexpr std::uint32_t data_magic = 0xBA55ED50;
constexpr std::uint32_t prelinked_version = 2;

struct Wrapper {
    std::uint32_t magic, version;
    const std::byte* data;
    const void* const* prelinked;  // version 2: fat binaries of the translation units, up to a null
};

struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_size;
    std::uint64_t size;  // of the rest
};

struct EntryHeader {
    std::uint16_t kind, version;
    std::uint32_t header_size;
    std::uint64_t payload_size;
    std::uint32_t compressed_size, unknown;
    std::uint16_t isa_minor, isa_major;
    std::uint32_t architecture;
    std::uint32_t name_offset, name_length;
    std::uint64_t flags;
    std::uint64_t zero;
    std::uint64_t uncompressed_size;
};
static_assert(sizeof(EntryHeader) == 64);

/// Far more than PTX needs. Larger sizes are not believed.
constexpr std::uint64_t max_text = std::uint64_t{1} << 30U;

constexpr std::uint64_t flag_lz4 = 0x2000;
constexpr std::uint64_t flag_zstd = 0x8000;
constexpr std::uint64_t flag_exact_chip = 0x100000;
constexpr std::uint64_t flag_family = 0x200000;

template <class Struct>
Struct load(const void* address)
{
    Struct value;
    std::memcpy(&value, address, sizeof value);
    return value;
}

[[noreturn]] void refuse_address(const char* what, const void* address)
{
    throw std::runtime_error(
        fmt::format("{} of the fat binary is at {}, where there is no readable memory", what, fmt::ptr(address)));
}

/// Reads the fat binary at the beginning of `memory`.
std::vector<FatbinEntry> read_data(std::span<const std::byte> memory)
{
    if (memory.size() < sizeof(Header)) {
        throw std::runtime_error(fmt::format("the fat binary ends within its header, after {} bytes", memory.size()));
    }
    const std::byte* const data = memory.data();
    const auto header = load<Header>(data);
    if (header.magic != data_magic) {
        throw std::runtime_error(
            fmt::format("the fat binary begins with {:#x} instead of {:#x}", header.magic, data_magic));
    }
    if (header.header_size < sizeof(Header)) {
        throw std::runtime_error(fmt::format("the fat binary's header has {} bytes, but at least {} are needed",
                                             header.header_size, sizeof(Header)));
    }
    if (header.header_size > memory.size() || header.size > memory.size() - header.header_size) {
        throw std::runtime_error(fmt::format(
            "the fat binary is cut off: a header of {} bytes and images of {} bytes, but only {} bytes exist",
            header.header_size, header.size, memory.size()));
    }
    const std::byte* position = data + header.header_size;
    const std::byte* const end = position + header.size;
    std::vector<FatbinEntry> entries;
    while (static_cast<std::size_t>(end - position) >= sizeof(EntryHeader)) {
        const auto entry = load<EntryHeader>(position);
        const auto left = static_cast<std::uint64_t>(end - position);
        if (entry.header_size < sizeof(EntryHeader) || entry.header_size > left ||
            entry.payload_size > left - entry.header_size) {
            throw std::runtime_error(fmt::format(
                "image {} of the fat binary is too large (header of {} bytes, payload of {}, {} bytes left)",
                entries.size(), entry.header_size, entry.payload_size, left));
        }
        FatbinEntry result;
        result.kind = entry.kind == 1   ? FatbinEntry::Kind::ptx
                      : entry.kind == 2 ? FatbinEntry::Kind::elf
                                        : FatbinEntry::Kind::other;
        result.architecture = entry.architecture;
        result.suffix = (entry.flags & flag_exact_chip) != 0 ? 'a' : (entry.flags & flag_family) != 0 ? 'f' : '\0';
        result.isa_major = entry.isa_major;
        result.isa_minor = entry.isa_minor;
        const bool is_compressed = entry.compressed_size != 0;
        if (is_compressed) {
            result.compression = (entry.flags & flag_zstd) != 0  ? FatbinEntry::Compression::zstd
                                 : (entry.flags & flag_lz4) != 0 ? FatbinEntry::Compression::lz4
                                                                 : FatbinEntry::Compression::none;
            result.uncompressed_size = entry.uncompressed_size;
        }
        const std::uint64_t payload =
            is_compressed ? std::min<std::uint64_t>(entry.compressed_size, entry.payload_size) : entry.payload_size;
        if (result.kind == FatbinEntry::Kind::ptx && payload > max_text) {
            throw std::runtime_error(
                fmt::format("image {} of the fat binary has {} bytes of PTX, more than the {} that "
                            "can be loaded",
                            entries.size(), payload, max_text));
        }
        result.payload = {position + entry.header_size, payload};
        entries.push_back(result);
        position += entry.header_size + entry.payload_size;
    }
    return entries;
}

std::string list_targets(std::span<const FatbinEntry> entries, FatbinEntry::Kind kind)
{
    std::string list;
    for (const FatbinEntry& entry : entries) {
        if (entry.kind == kind) {
            list += (list.empty() ? "" : ", ") + entry.target();
        }
    }
    return list;
}

}  // namespace

std::string FatbinEntry::target() const
{
    std::string text = fmt::format("sm_{}", architecture);
    if (suffix != 0) {
        text += suffix;
    }
    return text;
}

bool is_fatbin(const void* data) noexcept
{
    const auto magic = load<std::uint32_t>(data);
    return magic == wrapper_magic || magic == data_magic;
}

std::vector<FatbinEntry> read_fatbin(std::span<const std::byte> file) { return read_data(file); }

namespace {

std::vector<FatbinEntry> read_fatbin(const void* wrapper_or_data, const ReadableMemory& readable)
{
    if (readable.bytes_from(wrapper_or_data) < sizeof(Header)) {
        refuse_address("the beginning", wrapper_or_data);
    }
    const void* data = wrapper_or_data;
    if (load<std::uint32_t>(data) == wrapper_magic) {
        if (readable.bytes_from(wrapper_or_data) < sizeof(Wrapper)) {
            refuse_address("the wrapper", wrapper_or_data);
        }
        data = load<Wrapper>(wrapper_or_data).data;
    }
    const std::size_t available = readable.bytes_from(data);
    if (available == 0) {
        refuse_address("the data", data);
    }
    return read_data({static_cast<const std::byte*>(data), available});
}

}  // namespace

std::vector<FatbinEntry> read_fatbin(const void* wrapper_or_data)
{
    return read_fatbin(wrapper_or_data, ReadableMemory());
}

std::vector<std::vector<FatbinEntry>> read_prelinked(const void* wrapper)
{
    std::vector<std::vector<FatbinEntry>> units;
    const ReadableMemory readable;
    if (readable.bytes_from(wrapper) < sizeof(Wrapper)) {
        refuse_address("the wrapper", wrapper);
    }
    const auto head = load<Wrapper>(wrapper);
    if (head.magic == wrapper_magic && head.version == prelinked_version && head.prelinked != nullptr) {
        for (const void* const* unit = head.prelinked;; ++unit) {
            if (readable.bytes_from(unit) < sizeof *unit) {
                refuse_address("the list of units", unit);
            }
            const auto* const data = load<const void*>(unit);
            if (data == nullptr) {
                break;
            }
            units.push_back(read_fatbin(data, readable));
        }
    }
    return units;
}

const FatbinEntry* choose_ptx(std::span<const FatbinEntry> entries, const DeviceModel& device)
{
    const auto rank = [](const FatbinEntry& entry) { return entry.suffix == 'a' ? 2 : entry.suffix == 'f' ? 1 : 0; };
    const FatbinEntry* best = nullptr;
    for (const FatbinEntry& entry : entries) {
        if (entry.kind != FatbinEntry::Kind::ptx || !runs_target(device, entry.target())) {
            continue;
        }
        if (best == nullptr || rank(entry) > rank(*best) ||
            (rank(entry) == rank(*best) && entry.architecture > best->architecture)) {
            best = &entry;
        }
    }
    return best;
}

namespace {

[[noreturn]] void refuse_text(const FatbinEntry& entry, std::string_view method, std::string_view why)
{
    throw std::runtime_error(
        fmt::format("the PTX for {} cannot be decompressed ({}): {}", entry.target(), method, why));
}

/// Grows with what is there: a wrong `uncompressed_size` does not decide how much memory is used.
std::string decompress_zstd(const FatbinEntry& entry)
{
    const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
    std::string text;
    std::vector<char> piece(ZSTD_DStreamOutSize());
    ZSTD_inBuffer source{entry.payload.data(), entry.payload.size(), 0};
    std::size_t left = 1;
    while (left != 0 || source.pos < source.size) {
        ZSTD_outBuffer target{piece.data(), piece.size(), 0};
        const std::size_t before = source.pos;
        left = ZSTD_decompressStream(context.get(), &target, &source);
        if (ZSTD_isError(left) != 0) {
            refuse_text(entry, "zstd", ZSTD_getErrorName(left));
        }
        if (left != 0 && target.pos == 0 && source.pos == before) {
            refuse_text(entry, "zstd", "its data end too early");
        }
        text.append(piece.data(), target.pos);
        if (text.size() > entry.uncompressed_size) {
            refuse_text(entry, "zstd", fmt::format("it has more than the {} bytes announced", entry.uncompressed_size));
        }
    }
    return text;
}

std::string decompress_lz4(const FatbinEntry& entry)
{
    constexpr std::uint64_t largest_ratio = 255;
    if (entry.uncompressed_size > largest_ratio * (entry.payload.size() + 1)) {
        refuse_text(entry, "LZ4",
                    fmt::format("{} bytes cannot have been {} bytes", entry.payload.size(), entry.uncompressed_size));
    }
    std::string text(entry.uncompressed_size, '\0');
    const int size =
        LZ4_decompress_safe(reinterpret_cast<const char*>(entry.payload.data()), text.data(),
                            static_cast<int>(entry.payload.size()), static_cast<int>(entry.uncompressed_size));
    if (size < 0) {
        refuse_text(entry, "LZ4", "its data are damaged");
    }
    text.resize(static_cast<std::size_t>(size));
    return text;
}

}  // namespace

std::string ptx_text(const FatbinEntry& entry)
{
    if (entry.uncompressed_size > max_text) {
        throw std::runtime_error(fmt::format("the PTX for {} has {} bytes, more than the {} that can be loaded",
                                             entry.target(), entry.uncompressed_size, max_text));
    }
    std::string text;
    switch (entry.compression) {
        case FatbinEntry::Compression::none:
            text.assign(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
            break;
        case FatbinEntry::Compression::zstd: text = decompress_zstd(entry); break;
        case FatbinEntry::Compression::lz4: text = decompress_lz4(entry); break;
    }
    // Images are padded with zeros to a multiple of 8 bytes.
    text.resize(std::strlen(text.c_str()));
    return text;
}

std::string explain_no_ptx(std::span<const FatbinEntry> entries, const DeviceModel& device)
{
    const std::string ptx = list_targets(entries, FatbinEntry::Kind::ptx);
    const std::string elf = list_targets(entries, FatbinEntry::Kind::elf);
    const std::string target = fmt::format("{}{}", device.capability(), device.capability() >= 90 ? "a" : "");
    const std::string has = ptx.empty() ? "it has none" : fmt::format("its PTX is for {}", ptx);
    const std::string machine_code = elf.empty() ? "" : fmt::format("; its machine code, for {}, is not emulated", elf);
    return fmt::format(
        "the program has no PTX that {} (compute capability {}.{}) can run: {}{}. Compile with -gencode "
        "arch=compute_{},code=[sm_{},compute_{}]",
        device.name, device.major, device.minor, has, machine_code, target, target, target);
}

}  // namespace tessera::emulator
