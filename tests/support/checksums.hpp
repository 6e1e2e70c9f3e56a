#pragma once

/// Results that two devices are compared by: checksums, or values, by what was computed.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::test {

/// FNV-1a, 64 bits.
inline std::uint64_t checksum(const std::vector<std::byte>& bytes)
{
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const std::byte byte : bytes) {
        hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3U;
    }
    return hash;
}

/// The results by description: a checksum, or the values in hexadecimal.
using Results = std::map<std::string, std::string>;

/// Lines of `<result>  <description>`; those that start with # are comments.
inline Results read_results(const std::string& path)
{
    std::ifstream file(path);
    if (!file) {
        throw std::runtime_error("cannot read " + path);
    }
    Results results;
    for (std::string line; std::getline(file, line);) {
        const std::size_t end = line.find("  ");
        if (!line.starts_with('#') && end != line.npos) {
            results.emplace(line.substr(end + 2), line.substr(0, end));
        }
    }
    return results;
}

/// Prints the differences. @returns their number
inline int compare_checksums(const Results& stored, const Results& computed)
{
    int differing = 0;
    for (const auto& [name, checksum] : computed) {
        const auto found = stored.find(name);
        if (found == stored.end() || found->second != checksum) {
            ++differing;
            fmt::print("differs: {}\n  stored   {}\n  computed {}\n", name,
                       found == stored.end() ? "nothing" : found->second, checksum);
        }
    }
    for (const auto& [name, checksum] : stored) {
        if (!computed.contains(name)) {
            ++differing;
            fmt::print("stored, but not computed: {}\n", name);
        }
    }
    fmt::print("{} of {} checksums differ\n", differing, computed.size());
    return differing;
}

}  // namespace tessera::test
