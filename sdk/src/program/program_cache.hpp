#pragma once

/// Compiled programs on disk.

#include <optional>
#include <string>

#include "tessera/tile/program.hpp"

namespace tessera::tile::detail {

/// Returns the folder that an option names: see `ProgramOptions::cache_folder`. "" for none.
std::string cache_folder(const std::string& option);

/// Returns the program that was kept under a key, if there is one. What is wrong with an entry goes to `warnings`.
std::optional<CompiledProgram> read_program(const std::string& folder, const std::string& key, std::string& warnings);

/// Keeps a program. What prevents it goes to `warnings`.
void keep_program(const std::string& folder, const std::string& key, const CompiledProgram& program,
                  std::string& warnings);

}  // namespace tessera::tile::detail
