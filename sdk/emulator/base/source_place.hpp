#pragma once

// Source lines and function names in the form that people want to read.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::emulator {

/// A line of source and its function. In a chain of inlined calls the innermost frame comes first.
struct SourceFrame {
    std::string file;  ///< as written by the compiler; empty: unknown
    std::uint32_t line = 0;
    std::string function;  ///< mangled or readable; empty: unknown, or the kernel itself
};

/// Whose code a file is. A report leads with the frame of the highest value.
enum class Owner : std::uint8_t {
    toolkit,  ///< headers of CUDA and of the compiler
    library,  ///< headers and kernels of Tessera, headers of CUTLASS and the like
    program,  ///< everything else
};
[[nodiscard]] Owner owner_of(std::string_view file);

/// The frame that a report leads with: the innermost one of the program itself, else of a library, else of all.
/// `frames` must not be empty.
[[nodiscard]] std::size_t leading_frame(std::span<const SourceFrame> frames);

/// A path to show: relative to the current directory; from "include/" or "kernels" on for libraries; or its last two
/// parts if there is no such file here (the program was built elsewhere).
[[nodiscard]] std::string shown_path(std::string_view file);
/// "gemm.cu:31"; empty if the file is unknown.
[[nodiscard]] std::string shown_place(const SourceFrame& frame);
/// The line itself, without indentation; empty if the file cannot be read.
[[nodiscard]] std::string source_line(const SourceFrame& frame);

/// A mangled name in readable form; any other name unchanged.
[[nodiscard]] std::string demangled(std::string_view name);
/// The name of a function to show, from a mangled or a demangled name: without its return type and with nested template
/// arguments, or more if it is still too long, left out. "gemm<Config<...>, 128>(Parameters)".
[[nodiscard]] std::string shown_function(std::string_view name);
/// The same without its parameters: "gemm<Config<...>, 128>".
[[nodiscard]] std::string shown_kernel(std::string_view name);

}  // namespace tessera::emulator
