#pragma once

/// Files that several processes share, as caches are: links, locks, permissions, and replacing a file as a whole. Their contents
/// are others' to know.

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace tessera::detail {

/// The reason why a file cannot be used, as the end of a sentence that begins with its path.
class FileError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Returns the file that `path` names after all symbolic links. It need not exist; its folder must.
std::string resolve_links(const std::string& path);

/// Returns the content of a regular file, or nothing if there is none. Never blocks: refuses pipes and devices.
std::optional<std::string> read_regular_file(const std::string& path, std::size_t most_bytes);

/// Refuses what `replace_file` would refuse, as far as that can be checked without writing.
void require_replaceable(const std::string& path);

/// Exclusive among the processes and threads that save to `path`, whose links must be resolved.
///
/// The lock is on a separate file beside `path`, which stays and which everybody may read. If that file cannot be
/// opened, because another user made it unreadable or it is not a regular file, the folder is locked instead: saving
/// must not depend on another user's file.
class SaveLock {
public:
    SaveLock(const std::string& path, std::chrono::milliseconds timeout);
    ~SaveLock();
    SaveLock(const SaveLock&) = delete;
    SaveLock& operator=(const SaveLock&) = delete;

    /// The reason why this lock does not exclude everybody, as the end of a sentence. Usually empty.
    const std::string& weakness() const noexcept { return weakness_; }

private:
    int descriptor_ = -1;
    std::string weakness_;
};

/// Replaces `path`, whose links must be resolved, by a file with `content`. Readers see the old file or the new one.
/// Owner and mode are kept where permitted.
void replace_file(const std::string& path, const std::string& content);

/// Removes what killed processes left behind in `replace_file`. Only for the holder of a lock without weakness.
void remove_leftovers(const std::string& path) noexcept;

}  // namespace tessera::detail
