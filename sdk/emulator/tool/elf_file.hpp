#pragma once

// What the tool needs to know about a program file.

#include <string>
#include <vector>

namespace tessera::emulator {

struct ElfFile {
    bool is_elf = false;  ///< false: a script, or a file that another program executes
    bool is_dynamic = false;
    std::vector<std::string> needed;  ///< sonames of the libraries that it links directly
    std::string rpath;                ///< DT_RPATH: takes precedence over LD_LIBRARY_PATH
    bool has_fatbin = false;          ///< it holds device code (section .nv_fatbin)
};

/// @throws std::runtime_error if the file cannot be read.
[[nodiscard]] ElfFile read_elf(const std::string& path);

}  // namespace tessera::emulator
