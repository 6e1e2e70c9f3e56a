#pragma once

// What the tool must know of a program file.

#include <string>
#include <vector>

namespace tessera::emulator {

struct ElfFile {
    bool is_elf = false;  ///< else a script, or something else that is executed by another program
    bool is_dynamic = false;
    std::vector<std::string> needed;  ///< sonames of the libraries that it asks for itself
    std::string rpath;                ///< DT_RPATH: beats LD_LIBRARY_PATH
    bool has_fatbin = false;          ///< it holds device code (section .nv_fatbin)
};

/// @throws std::runtime_error if the file cannot be read.
[[nodiscard]] ElfFile read_elf(const std::string& path);

}  // namespace tessera::emulator
