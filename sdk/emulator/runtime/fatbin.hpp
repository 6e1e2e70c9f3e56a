#pragma once

// Fat binaries: device code for several targets, embedded by nvcc.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/device_model.hpp"

namespace tessera::emulator {

/// One image of a fat binary. The payload is not copied and stays compressed until ptx_text().
struct FatbinEntry {
    enum class Kind : std::uint16_t { ptx = 1, elf = 2, other = 0 };
    enum class Compression : std::uint8_t { none, lz4, zstd };

    Kind kind = Kind::other;
    unsigned architecture = 0;  ///< 90, 100
    char suffix = 0;            ///< 'a' (one chip), 'f' (one family), or 0
    unsigned isa_major = 0, isa_minor = 0;
    Compression compression = Compression::none;
    std::span<const std::byte> payload;
    std::uint64_t uncompressed_size = 0;  ///< 0 if not compressed

    /// "sm_100a"
    [[nodiscard]] std::string target() const;
};

/// The images of a fat binary: of its wrapper ({0x466243B1, ..}, as registered by the compiler), or of its data
/// ({0xBA55ED50, ..}). The wrapper of a program with relocatable device code refers to several fat binaries.
/// Nothing that it says about itself is trusted: nothing outside of the process's readable memory is accessed.
/// @throws std::runtime_error with a sentence if it is not a fat binary, or is damaged
[[nodiscard]] std::vector<FatbinEntry> read_fatbin(const void* wrapper_or_data);

/// The same for the contents of a file, which may not be a wrapper: that has addresses.
[[nodiscard]] std::vector<FatbinEntry> read_fatbin(std::span<const std::byte> file);

/// The relocatable images that the link step of nvcc -rdc=true combined, one vector for each translation unit; empty
/// for an ordinary wrapper.
[[nodiscard]] std::vector<std::vector<FatbinEntry>> read_prelinked(const void* wrapper);

/// Returns true if `data`, of at least 4 bytes, begins like a fat binary or its wrapper.
[[nodiscard]] bool is_fatbin(const void* data) noexcept;

/// The image that the driver would compile for `device`: PTX for exactly this chip ("a"), else for its family ("f"),
/// else the newest plain target that is not newer than the device. Null if there is none.
[[nodiscard]] const FatbinEntry* choose_ptx(std::span<const FatbinEntry> entries, const DeviceModel& device);

/// The text of a PTX image, decompressed.
/// @throws std::runtime_error with a sentence.
[[nodiscard]] std::string ptx_text(const FatbinEntry& entry);

/// Why choose_ptx() found nothing, which targets are available, and how to compile.
[[nodiscard]] std::string explain_no_ptx(std::span<const FatbinEntry> entries, const DeviceModel& device);

}  // namespace tessera::emulator
