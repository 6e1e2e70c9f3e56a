#include "runtime/output_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/state.hpp"

namespace tessera::emulator {

OutputFile::OutputFile(std::string path, std::string what, std::atomic<bool>& failed)
    : path_(std::move(path)), what_(std::move(what)), failed_(failed)
{}

OutputFile::~OutputFile()
{
    if (file_ != nullptr && std::fclose(file_) != 0 && !has_failed_) {
        fail(errno);
    }
}

void OutputFile::write(std::string_view text)
{
    if (has_failed_) {
        return;
    }
    if (file_ == nullptr) {
        file_ = std::fopen(path_.c_str(), "w");
    }
    if (file_ == nullptr || std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) {
        fail(errno);
    }
}

void OutputFile::write(std::string_view text, std::string_view end)
{
    if (file_ != nullptr && !has_failed_ && std::fseek(file_, -replaced_, SEEK_END) != 0) {
        return fail(errno);
    }
    replaced_ = static_cast<long>(end.size());
    write(std::string(text) + std::string(end));
}

void OutputFile::fail(int reason)
{
    has_failed_ = true;
    failed_ = true;
    say(fmt::format("{} cannot be written to {}: {}", what_, path_, std::strerror(reason)));
}

}  // namespace tessera::emulator
