#pragma once

/// NVRTC, loaded when it is first used: programs that compile nothing do not need it.

#include <source_location>
#include <string>
#include <vector>

namespace tessera::tile::detail {

/// What NVRTC compiles.
struct Source {
    std::string name;
    std::string text;
    std::vector<std::string> options;
};

/// What NVRTC made of it.
struct Compiled {
    std::string ptx;
    std::string machine_code;
    std::string log;  // warnings, or errors
    bool succeeded = false;
};

/// NVRTC and the headers of CUDA.
class Nvrtc {
public:
    /// Returns the process's NVRTC. Loads it at the first call; a call that fails is tried again by the next.
    /// @throws Error  `compilation_failed` if NVRTC or CUDA's headers are not found
    static const Nvrtc& get(const std::source_location& caller);

    /// Compiles. Threads may compile at the same time.
    Compiled compile(const Source& source, const std::source_location& caller) const;
    /// Returns the version, as "13.0".
    const std::string& version() const noexcept { return version_; }
    /// Returns true if NVRTC can compile for a compute capability, as 90.
    bool knows(int capability) const noexcept;

private:
    explicit Nvrtc(const std::source_location& caller);
    std::string version_;
    std::vector<int> capabilities_;
    std::vector<std::string> include_options_;
};

}  // namespace tessera::tile::detail
