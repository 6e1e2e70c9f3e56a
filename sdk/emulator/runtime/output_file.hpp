#pragma once

// Files that the emulated device writes while the program runs.

#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>

namespace tessera::emulator {

/// A file that is made at the first write. What cannot be written is said once on stderr, and sets `failed`.
class OutputFile {
public:
    /// `what`: "the schedule", for the message.
    OutputFile(std::string path, std::string what, std::atomic<bool>& failed);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    /// Writes through to the file: the program may abort. Not thread-safe.
    void write(std::string_view text);
    /// Writes `text`, and after it `end`, which the next call replaces: the file is whole at any time.
    void write(std::string_view text, std::string_view end);

private:
    void fail(int reason);

    std::string path_, what_;
    std::atomic<bool>& failed_;
    std::FILE* file_ = nullptr;
    bool has_failed_ = false;
    long replaced_ = 0;  // bytes at the end
};

}  // namespace tessera::emulator
