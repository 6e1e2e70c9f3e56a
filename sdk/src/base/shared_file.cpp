#include "base/shared_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as many as the kernel follows
constexpr std::string_view temporary_suffix = ".tessera-tmp";
constexpr mode_t new_file_mode = 0644;
constexpr std::chrono::milliseconds lock_poll{10};

[[noreturn]] void fail(const char* what, int code)
{
    throw FileError(fmt::format("cannot be {}: {}", what, std::strerror(code)));
}

class Descriptor {
public:
    explicit Descriptor(int descriptor) noexcept : descriptor_(descriptor) {}
    ~Descriptor()
    {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
        }
    }
    Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
    Descriptor& operator=(Descriptor&&) = delete;
    int get() const noexcept { return descriptor_; }
    int release() noexcept { return std::exchange(descriptor_, -1); }

private:
    int descriptor_;
};

const char* kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
        case S_IFDIR: return "a folder";
        case S_IFIFO: return "a pipe";
        case S_IFCHR:
        case S_IFBLK: return "a device";
        case S_IFSOCK: return "a socket";
        default: return "something else";
    }
}

void require_regular(const struct stat& facts)
{
    if (!S_ISREG(facts.st_mode)) {
        throw FileError(fmt::format("is {}, not a regular file", kind_of(facts.st_mode)));
    }
}

/// Opens a file for reading, if it exists and is regular. Other kinds are not opened, because opening a device may have
/// effects. A file that was replaced since it was checked does not block.
std::optional<Descriptor> open_regular(const std::string& path, struct stat& facts, int flags = 0)
{
    if (::stat(path.c_str(), &facts) != 0) {
        if (errno == ENOENT) {
            return std::nullopt;
        }
        fail("read", errno);
    }
    require_regular(facts);
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    if (descriptor < 0) {
        if (errno == ENOENT) {
            return std::nullopt;
        }
        fail("read", errno);
    }
    Descriptor file(descriptor);
    if (::fstat(descriptor, &facts) != 0) {
        fail("read", errno);
    }
    require_regular(facts);
    return file;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// Opens the lock file beside `path`, creating it if necessary. Returns a negative number and a reason if it fails.
int open_lock(const std::string& path, std::string& reason)
{
    // An existing file is opened without O_CREAT: in a folder shared by all users, the kernel may refuse that flag for
    // a file of another user.
    for (int attempt = 0; attempt < 3; ++attempt) {
        constexpr int common = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
        Descriptor found(::open(path.c_str(), common));
        if (found.get() >= 0) {
            struct stat facts {};
            if (::fstat(found.get(), &facts) == 0 && S_ISREG(facts.st_mode)) {
                return found.release();
            }
            reason = fmt::format("is {}, not a regular file", kind_of(facts.st_mode));
            return -1;
        }
        if (errno != ENOENT) {
            break;
        }
        const int made = ::open(path.c_str(), common | O_CREAT | O_EXCL, new_file_mode);
        if (made >= 0) {
            // For other users, whatever the umask: they need the right to read for a shared lock.
            static_cast<void>(::fchmod(made, new_file_mode));
            return made;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    reason = fmt::format("cannot be opened: {}", std::strerror(errno));
    return -1;
}

}  // namespace

std::string resolve_links(const std::string& path)
{
    fs::path current = path;
    std::error_code failure;
    for (int link = 0; fs::is_symlink(fs::symlink_status(current, failure)); ++link) {
        if (link == most_links) {
            throw FileError("is a loop of symbolic links");
        }
        const fs::path target = fs::read_symlink(current, failure);
        if (failure) {
            throw FileError(fmt::format("is a symbolic link that cannot be read: {}", failure.message()));
        }
        current = target.is_absolute() ? target : folder_of(current) / target;
    }
    const fs::path folder = fs::canonical(folder_of(current), failure);
    if (failure) {
        throw FileError(fmt::format("is in a folder that cannot be opened: {}", failure.message()));
    }
    return (folder / current.filename()).string();
}

std::optional<std::string> read_regular_file(const std::string& path, std::size_t most_bytes)
{
    struct stat facts {};
    const std::optional<Descriptor> file = open_regular(path, facts);
    if (!file) {
        return std::nullopt;
    }
    if (static_cast<std::size_t>(facts.st_size) > most_bytes) {
        throw FileError(fmt::format("has {} bytes, more than the {} that are read", facts.st_size, most_bytes));
    }
    std::string content(static_cast<std::size_t>(facts.st_size), '\0');
    std::size_t size = 0;
    while (size < content.size()) {
        const ssize_t got = ::read(file->get(), content.data() + size, content.size() - size);
        if (got < 0 && errno != EINTR) {
            fail("read", errno);
        }
        if (got == 0) {
            break;
        }
        size += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    content.resize(size);
    return content;
}

void require_replaceable(const std::string& path)
{
    struct stat facts {};
    static_cast<void>(open_regular(path, facts));
    if (::faccessat(AT_FDCWD, folder_of(path).c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
        throw FileError(fmt::format("is in a folder that cannot be written to: {}", std::strerror(errno)));
    }
}

SaveLock::SaveLock(const std::string& path, std::chrono::milliseconds timeout)
{
    std::string locked = path + ".lock";
    std::string reason;
    descriptor_ = open_lock(locked, reason);
    if (descriptor_ < 0) {
        weakness_ = fmt::format("its lock file {} {}", locked, reason);
        locked = folder_of(path).string();
        descriptor_ = ::open(locked.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (descriptor_ < 0) {
        throw FileError(fmt::format("cannot be locked: {}", weakness_));
    }
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        const int code = errno;
        const bool late = std::chrono::steady_clock::now() >= deadline;
        if ((code == EWOULDBLOCK && late) || (code != EWOULDBLOCK && code != EINTR)) {
            ::close(descriptor_);
            throw FileError(code == EWOULDBLOCK ? fmt::format("cannot be locked: another process has held {} for {} s",
                                                              locked, std::chrono::duration<double>(timeout).count())
                                                : fmt::format("cannot be locked: {}: {}", locked, std::strerror(code)));
        }
        std::this_thread::sleep_for(lock_poll);
    }
}

SaveLock::~SaveLock() { ::close(descriptor_); }

void replace_file(const std::string& path, const std::string& content)
{
    struct stat old {};
    const bool replaces = open_regular(path, old).has_value();

    // Never open an existing file: it may be a symbolic link to another one.
    static std::atomic<unsigned> number{0};
    std::string temporary;
    int opened = -1;
    do {
        temporary = fmt::format("{}.{}-{}{}", path, ::getpid(), number.fetch_add(1), temporary_suffix);
        opened = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, new_file_mode);
    } while (opened < 0 && errno == EEXIST);
    if (opened < 0) {
        fail("created", errno);
    }
    const auto give_up = [&](const char* what, int code) {
        ::unlink(temporary.c_str());
        fail(what, code);
    };
    {
        const Descriptor file(opened);
        if (replaces) {
            // Keeping the owner needs the right to give files away. The mode is set last, because a change of owner
            // clears some of its bits.
            static_cast<void>(::fchown(file.get(), old.st_uid, old.st_gid) == 0 ||
                              ::fchown(file.get(), static_cast<uid_t>(-1), old.st_gid) == 0);
            if (::fchmod(file.get(), old.st_mode & 0777) != 0) {
                give_up("given the mode of the old file", errno);
            }
        }
        for (std::size_t written = 0; written < content.size();) {
            const ssize_t count = ::write(file.get(), content.data() + written, content.size() - written);
            if (count < 0 && errno != EINTR) {
                give_up("written", errno);
            }
            written += count > 0 ? static_cast<std::size_t>(count) : 0;
        }
        if (::fsync(file.get()) != 0) {
            give_up("written", errno);
        }
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        give_up("replaced", errno);
    }
}

void remove_leftovers(const std::string& path) noexcept
try {
    const fs::path cache(path);
    const std::string begin = cache.filename().string() + ".";
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(cache))) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(begin) || !name.ends_with(temporary_suffix) ||
            name.size() <= begin.size() + temporary_suffix.size()) {
            continue;
        }
        const std::string_view middle =
            std::string_view(name).substr(begin.size(), name.size() - begin.size() - temporary_suffix.size());
        if (middle.find_first_not_of("0123456789-") == std::string_view::npos) {
            ::unlink(entry.path().c_str());
        }
    }
} catch (...) {  // NOLINT(bugprone-empty-catch): a leftover file is harmless, and the next save tries again
}

}  // namespace tessera::detail
