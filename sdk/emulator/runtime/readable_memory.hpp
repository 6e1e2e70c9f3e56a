#pragma once

// Which addresses of this process can be read: for data of the program that name other data by address or size.

#include <cstddef>
#include <cstdint>
#include <map>

namespace tessera::emulator {

/// The readable memory of the process at the time of construction.
class ReadableMemory {
public:
    ReadableMemory();

    /// The number of bytes that can be read from `address` on; 0 if there are none. If the system does not say what is
    /// mapped, everything counts as readable.
    [[nodiscard]] std::size_t bytes_from(const void* address) const noexcept;

private:
    std::map<std::uint64_t, std::uint64_t> ends_;  ///< of ranges, by their beginning; neighbours are one range
};

}  // namespace tessera::emulator
