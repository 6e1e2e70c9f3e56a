#include "runtime/readable_memory.hpp"

#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

namespace tessera::emulator {

ReadableMemory::ReadableMemory()
{
    std::ifstream file("/proc/self/maps");
    for (std::string line; std::getline(file, line);) {
        // "7f31c002000-7f31c003000 r-xp ..."
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        const char* const last = line.data() + line.size();
        const auto [dash, no_begin] = std::from_chars(line.data(), last, begin, 16);
        if (no_begin != std::errc{} || dash == last || *dash != '-') {
            continue;
        }
        const auto [blank, no_end] = std::from_chars(dash + 1, last, end, 16);
        if (no_end != std::errc{} || last - blank < 2 || blank[1] != 'r') {
            continue;
        }
        if (!ends_.empty() && ends_.rbegin()->second == begin) {
            ends_.rbegin()->second = end;
        } else {
            ends_.emplace(begin, end);
        }
    }
}

std::size_t ReadableMemory::bytes_from(const void* address) const noexcept
{
    const auto number = reinterpret_cast<std::uint64_t>(address);
    if (ends_.empty()) {
        return std::numeric_limits<std::uint64_t>::max() - number;
    }
    const auto after = ends_.upper_bound(number);
    if (after == ends_.begin()) {
        return 0;
    }
    const std::uint64_t end = std::prev(after)->second;
    return end > number ? end - number : 0;
}

}  // namespace tessera::emulator
