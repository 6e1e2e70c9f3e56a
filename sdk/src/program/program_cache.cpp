#include "program/program_cache.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/hash.hpp"
#include "base/shared_file.hpp"

namespace tessera::tile::detail {
namespace {

using tessera::detail::hash;

// An entry: this line; "<bytes of the key> <of the PTX> <of the machine code> <checksum>"; and the three, one after the other. The
// key is there in full, so that two keys with one hash are told apart.
constexpr std::string_view header = "tessera-program 1\n";
constexpr std::size_t largest_entry = 256 << 20;  // bytes

std::string path_of(const std::string& folder, std::string_view key)
{
    return fmt::format("{}/program-{:016x}{:016x}", folder, hash(key), hash(key, 0x9E3779B97F4A7C15U));
}

/// Reads a number and the character after it.
std::optional<std::uint64_t> take_number(std::string_view& text, char after, int base)
{
    const std::size_t end = text.find(after);
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string digits(text.substr(0, end));
    text.remove_prefix(end + 1);
    char* stop = nullptr;
    const std::uint64_t value = std::strtoull(digits.c_str(), &stop, base);
    return stop != nullptr && *stop == '\0' && !digits.empty() ? std::optional(value) : std::nullopt;
}

/// Returns the program, nothing if the entry has another key. @throws tessera::detail::FileError if it is damaged
std::optional<CompiledProgram> parse(std::string_view entry, std::string_view key)
{
    const tessera::detail::FileError damaged("is damaged");
    if (!entry.starts_with(header)) {
        throw damaged;
    }
    entry.remove_prefix(header.size());
    const auto key_bytes = take_number(entry, ' ', 10);
    const auto ptx_bytes = take_number(entry, ' ', 10);
    const auto code_bytes = take_number(entry, ' ', 10);
    const auto checksum = take_number(entry, '\n', 16);
    if (!key_bytes || !ptx_bytes || !code_bytes || !checksum || *key_bytes > entry.size() ||
        *ptx_bytes > entry.size() || *code_bytes > entry.size() ||
        *key_bytes + *ptx_bytes + *code_bytes != entry.size() || *checksum != hash(entry)) {
        throw damaged;
    }
    if (entry.substr(0, *key_bytes) != key) {
        return std::nullopt;
    }
    CompiledProgram program;
    program.ptx = entry.substr(*key_bytes, *ptx_bytes);
    program.machine_code = entry.substr(*key_bytes + *ptx_bytes);
    program.from_cache = true;
    return program;
}

}  // namespace

std::string cache_folder(const std::string& option)
{
    if (option == "none") {
        return {};
    }
    if (!option.empty()) {
        return option;
    }
    const auto value_of = [](const char* variable) {
        const char* const value = std::getenv(variable);
        return std::string(value == nullptr ? "" : value);
    };
    if (const std::string folder = value_of("TESSERA_PROGRAM_CACHE"); !folder.empty()) {
        return folder == "none" ? std::string() : folder;
    }
    if (const std::string folder = value_of("XDG_CACHE_HOME"); !folder.empty()) {
        return folder + "/tessera";
    }
    const std::string home = value_of("HOME");
    return home.empty() ? std::string() : home + "/.cache/tessera";
}

std::optional<CompiledProgram> read_program(const std::string& folder, const std::string& key, std::string& warnings)
{
    if (folder.empty()) {
        return std::nullopt;
    }
    const std::string path = path_of(folder, key);
    try {
        const std::optional<std::string> entry = tessera::detail::read_regular_file(path, largest_entry);
        return entry ? parse(*entry, key) : std::nullopt;
    } catch (const tessera::detail::FileError& error) {
        warnings += fmt::format("the cached program {} {}: it is compiled again\n", path, error.what());
        return std::nullopt;
    }
}

void keep_program(const std::string& folder, const std::string& key, const CompiledProgram& program,
                  std::string& warnings)
{
    if (folder.empty()) {
        return;
    }
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
        warnings +=
            fmt::format("compiled programs are not kept: the folder {} cannot be made: {}\n", folder, error.message());
        return;
    }
    const std::string path = path_of(folder, key);
    const std::string content = key + program.ptx + program.machine_code;
    try {
        tessera::detail::replace_file(path,
                                      fmt::format("{}{} {} {} {:016x}\n{}", header, key.size(), program.ptx.size(),
                                                  program.machine_code.size(), hash(content), content));
    } catch (const tessera::detail::FileError& failure) {
        warnings += fmt::format("compiled programs are not kept: {} {}\n", path, failure.what());
    }
}

}  // namespace tessera::tile::detail
