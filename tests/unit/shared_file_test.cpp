/// File handling of the tuning cache: links, pipes, permissions, locks held by others, killed processes, wrong clocks,
/// and a measurement whose file cannot be written.

#include "base/shared_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "cache_files.hpp"

using namespace tessera;
namespace fs = std::filesystem;
using test::CacheFiles;
using test::key_of;
using test::tuned_of;

namespace {

struct Links : CacheFiles {
    Links()
    {
        detail::store_tuned(key_of(1), tuned_of(1));
        detail::store_tuned(key_of(2), tuned_of(1));
    }

    std::set<std::string> files() const
    {
        std::set<std::string> names;
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
            names.insert(entry.path().lexically_relative(folder).string());
        }
        return names;
    }

    std::string refusal(const fs::path& file) const
    {
        const auto error = test::error_of([&] { GemmTuningCache::save(file); });
        REQUIRE(error.has_value());
        CHECK(error->code() == ErrorCode::invalid_argument);
        CHECK(error->cure() ==
              "the path of a tuning cache, or a new path, in a writable folder; this process keeps its measurements, "
              "so they can be saved elsewhere");
        const std::string message(error->message());
        REQUIRE(message.starts_with(file.string() + " "));
        return message.substr(file.string().size() + 1);
    }
};

mode_t mode_of(const fs::path& file)
{
    struct stat facts {};
    REQUIRE(::stat(file.c_str(), &facts) == 0);
    return facts.st_mode & 07777U;
}

/// Drops the superuser's rights, since the superuser is refused nothing.
class OrdinaryUser {
public:
    OrdinaryUser()
    {
        constexpr uid_t nobody = 65534;
        if (previous_ == 0) {
            REQUIRE(::seteuid(nobody) == 0);
        }
    }
    ~OrdinaryUser()
    {
        if (previous_ == 0) {
            REQUIRE(::seteuid(0) == 0);
        }
    }
    OrdinaryUser(const OrdinaryUser&) = delete;
    OrdinaryUser& operator=(const OrdinaryUser&) = delete;

private:
    uid_t previous_ = ::geteuid();
};

struct EnvironmentFile : Links {
    EnvironmentFile() { GemmTuningCache::clear(); }
    ~EnvironmentFile() { ::unsetenv(detail::tuning_cache_variable); }
    void name(const fs::path& file) { ::setenv(detail::tuning_cache_variable, file.c_str(), 1); }
    Device device{fake::h200};
    GemmProblem problem{.m = 16, .n = 8, .k = 8};
};

}  // namespace

TEST_CASE_FIXTURE(Links, "a file in the place of the temporary file is not written through")
{
    const fs::path victim = folder / "victim";
    std::ofstream(victim) << "precious";
    const auto plant = [&] {
        fs::create_symlink(victim, fmt::format("{}.{}", path.string(), ::getpid()));
        for (int number = 0; number < 500; ++number) {
            const fs::path planted = fmt::format("{}.{}-{}.tessera-tmp", path.string(), ::getpid(), number);
            fs::create_symlink(victim, planted);
        }
    };
    plant();
    detail::replace_file(path, "content");
    CHECK(content() == "content");
    CHECK(CacheFiles::content_of(victim) == "precious");
    fs::remove(path);
    GemmTuningCache::save(path);
    CHECK(CacheFiles::content_of(victim) == "precious");
    CHECK_FALSE(fs::is_symlink(path));
    CHECK(GemmTuningCache::load(path).used == 2);
}

TEST_CASE_FIXTURE(Links, "a symbolic link to a cache stays a link, its target is saved, and both names share a lock")
{
    fs::create_directory(folder / "far");
    const fs::path target = folder / "far" / "real.tuning";
    fs::create_symlink("far/link.tuning", path);  // relative to the link's folder
    fs::create_symlink("real.tuning", folder / "far" / "link.tuning");
    GemmTuningCache::save(path);  // the link's target does not exist yet
    CHECK(fs::is_symlink(path));
    CHECK(fs::is_symlink(folder / "far" / "link.tuning"));
    CHECK(fs::is_regular_file(fs::symlink_status(target)));
    CHECK(GemmTuningCache::load(target).used == 2);
    detail::store_tuned(key_of(3), tuned_of(1));
    GemmTuningCache::save(path);
    CHECK(fs::is_symlink(path));
    CHECK(GemmTuningCache::load(target).used == 3);
    GemmTuningCache::save(target);
    CHECK(files() ==
          std::set<std::string>{"far", "far/link.tuning", "far/real.tuning", "far/real.tuning.lock", "gemm.tuning"});

    fs::create_symlink("round", folder / "round");
    CHECK(refusal(folder / "round") == "is a loop of symbolic links");
}

TEST_CASE_FIXTURE(Links, "a file keeps its mode, and a new one has that of the umask")
{
    GemmTuningCache::save(path);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    CHECK(mode_of(path) == (0644U & ~mask));
    for (const mode_t mode : {0600U, 0640U, 0664U}) {
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        GemmTuningCache::save(path);
        CHECK(mode_of(path) == mode);
    }
    CHECK(mode_of(path.string() + ".lock") == 0644U);
}

TEST_CASE_FIXTURE(Links, "pipes, folders, devices and sockets are refused with a reason, and nothing blocks on them")
{
    const auto check = [&](const fs::path& file, const std::string& kind) {
        warnings.clear();
        CHECK(refusal(file) == fmt::format("is {}, not a regular file", kind));
        CHECK(GemmTuningCache::load(file).used == 0);
        CHECK(warnings == std::vector<std::string>{fmt::format(
                              "the tuning cache {} is {}, not a regular file and is ignored", file.string(), kind)});
    };
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    check(folder / "pipe", "a pipe");
    fs::create_directory(folder / "sub");
    check(folder / "sub", "a folder");
    check("/dev/null", "a device");
    fs::create_symlink(folder / "pipe", folder / "link to pipe");
    check(folder / "link to pipe", "a pipe");
    REQUIRE(::mknod((folder / "socket").c_str(), S_IFSOCK | 0600, 0) == 0);
    check(folder / "socket", "a socket");
    CHECK_FALSE(fs::exists("/dev/null.lock"));
    CHECK(refusal(folder / "missing" / "file") == "is in a folder that cannot be opened: No such file or directory");
}

TEST_CASE_FIXTURE(Links, "waiting for a held lock ends with an error, not never")
{
    const std::string lock = path.string() + ".lock";
    const int held = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    REQUIRE(::flock(held, LOCK_EX) == 0);
    const auto begin = std::chrono::steady_clock::now();
    CHECK_ERROR(
        fmt::format("tessera: invalid_argument in GemmTuningCache::save\n  {} cannot be locked: another process has "
                    "held {} for 0.1 s\n  try: the path of a tuning cache, or a new path, in a writable folder; this "
                    "process keeps its measurements, so they can be saved elsewhere",
                    path.string(), lock),
        detail::save_tuning_cache(path, std::chrono::milliseconds(100), std::source_location::current()));
    CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(100));
    CHECK_FALSE(fs::exists(path));
    ::close(held);
    detail::save_tuning_cache(path, std::chrono::milliseconds(0), std::source_location::current());
    CHECK(fs::exists(path));
    CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Links, "another user's lock file does not prevent saving")
{
    const std::string lock = path.string() + ".lock";
    REQUIRE(::chmod(folder.c_str(), 0777) == 0);
    std::ofstream{lock};
    REQUIRE(::chmod(lock.c_str(), 0444) == 0);
    {
        const OrdinaryUser user;
        GemmTuningCache::save(path);
    }
    CHECK(GemmTuningCache::load(path).used == 2);
    CHECK(warnings.empty());  // a readable lock file is enough

    fs::remove(path);
    REQUIRE(::chmod(lock.c_str(), 0) == 0);
    {
        const OrdinaryUser user;
        GemmTuningCache::save(path);
    }
    CHECK(GemmTuningCache::load(path).used == 2);
    CHECK(warnings ==
          std::vector<std::string>{fmt::format(
              "the tuning cache {} is saved without its usual lock, so what another process saves now may be lost: "
              "its lock file {} cannot be opened: Permission denied",
              path.string(), lock)});

    warnings.clear();
    fs::remove(path);
    fs::remove(lock);
    std::ofstream(folder / "victim") << "precious";
    fs::create_symlink(folder / "victim", lock);
    GemmTuningCache::save(path);
    CHECK(GemmTuningCache::load(path).used == 2);
    CHECK(CacheFiles::content_of(folder / "victim") == "precious");
    CHECK(warnings.size() == 1);
    fs::remove(lock);
    fs::create_directory(lock);
    GemmTuningCache::save(path);
    CHECK(warnings.size() == 2);
}

TEST_CASE_FIXTURE(Links, "the next save removes what a killed process left, and nothing else")
{
    const auto touch = [&](const std::string& name) { std::ofstream(folder / name) << "x"; };
    for (const char* left : {"gemm.tuning.1-0.tessera-tmp", "gemm.tuning.99999-17.tessera-tmp"}) {
        touch(left);
    }
    std::set<std::string> kept{"gemm.tuning.2024", "gemm.tuning.bak.tessera-tmp", "other.1-0.tessera-tmp",
                               "gemm.tuning.tessera-tmp"};
    for (const std::string& name : kept) {
        touch(name);
    }
    GemmTuningCache::save(path);
    kept.insert({"gemm.tuning", "gemm.tuning.lock"});
    CHECK(files() == kept);
}

TEST_CASE_FIXTURE(Links, "processes killed while saving leave a whole cache and finally no other file")
{
    for (int kill = 0; kill < 20; ++kill) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            for (std::int64_t m = 10;; ++m) {
                detail::store_tuned(key_of(m), tuned_of(1));
                GemmTuningCache::save(path);
            }
        }
        ::usleep(static_cast<useconds_t>(2000 + 1700 * kill));
        REQUIRE(::kill(child, SIGKILL) == 0);
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(GemmTuningCache::load(path).damaged == 0);
    }
    GemmTuningCache::save(path);
    CHECK(files() == std::set<std::string>{"gemm.tuning", "gemm.tuning.lock"});
    CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(EnvironmentFile, "an entry from the future is replaced, in the table and in the file")
{
    constexpr std::int64_t year_2200 = 7'258'118'400;
    const detail::TuningKey key = detail::tuning_key(detail::resolved(problem), device.properties());
    const detail::TunedChoice future{{.variant = Variant::simt_coarsened}, 1e-9, 1e-6, year_2200};
    detail::store_tuned(key, future);
    GemmTuningCache::save(path);
    name(path);
    const TuningResult result = Gemm::tune(device, problem, {.rounds = 1});
    REQUIRE(result.best.variant != Variant::simt_coarsened);
    CHECK(GemmPlan::prepare(device, problem).variant() == result.best.variant);
    GemmTuningCache::clear();
    CHECK(GemmTuningCache::load(path).used == 1);
    CHECK(GemmPlan::prepare(device, problem).variant() == result.best.variant);
    // Neither another file nor another process's table brings it back.
    detail::store_tuned(key, future);
    CHECK(GemmPlan::prepare(device, problem).variant() == result.best.variant);
    CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(EnvironmentFile, "a new measurement replaces one dated by a clock that is slightly ahead")
{
    const detail::TuningKey key = detail::tuning_key(detail::resolved(problem), device.properties());
    const std::int64_t ahead = detail::tuning_clock() + 600;
    detail::store_tuned(key, {{.variant = Variant::simt_coarsened}, 1e-9, 1e-6, ahead});
    const TuningResult result = Gemm::tune(device, problem, {.rounds = 1});
    CHECK(GemmPlan::prepare(device, problem).variant() == result.best.variant);
    CHECK(detail::find_tuned(key)->when == ahead + 1);
}

TEST_CASE_FIXTURE(EnvironmentFile,
                  "a cache that cannot be written gives a warning before the measurement, and the result is kept")
{
    static std::size_t launches_before_warning = 0;
    GemmTuningCache::set_warning_handler([](std::string_view sentence) {
        warnings.emplace_back(sentence);
        launches_before_warning = fake::launches().size();
    });
    const fs::path file = folder / "missing" / "file";
    name(file);
    const TuningResult result = Gemm::tune(device, problem, {.rounds = 1});
    CHECK(result.best.seconds >= 0);
    CHECK(GemmTuningCache::size() == 1);
    CHECK(launches_before_warning == 0);
    CHECK(warnings == std::vector<std::string>{fmt::format(
                          "{}, named by TESSERA_TUNING_CACHE, is in a folder that cannot be opened: No such "
                          "file or directory: new measurements stay in this process",
                          file.string())});
    warnings.clear();
    GemmTuningCache::clear();
    write("#!/bin/sh\n");
    name(path);
    static_cast<void>(Gemm::tune(device, problem, {.rounds = 1}));
    CHECK(GemmTuningCache::size() == 1);
    CHECK(warnings.size() == 1);
    CHECK(content() == "#!/bin/sh\n");
}

TEST_CASE_FIXTURE(EnvironmentFile,
                  "a cache that becomes unwritable during the measurement gives a warning, and the result is kept")
{
    name(path);
    fake::on_launch([&](const fake::Launch&) { fs::create_directories(path); });
    static_cast<void>(Gemm::tune(device, problem, {.rounds = 1}));
    CHECK(GemmTuningCache::size() == 1);
    CHECK(warnings == std::vector<std::string>{fmt::format("{}, named by TESSERA_TUNING_CACHE, is a folder, not "
                                                           "a regular file: the measurements stay in this process",
                                                           path.string())});
}
