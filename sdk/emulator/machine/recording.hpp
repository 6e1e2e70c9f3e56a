#pragma once

// Schedules in files: what --record writes and --schedule replay:FILE reads. Plain text, one choice on a line:
//
//   tessera-emu schedule 1
//   schedule adversarial 7                       the schedule that chose, and its seed
//   launch 2 4,1,1 64,1,1 1,1,1 k                the second launch of kernel k; grid, block, cluster
//   choices 3                                    of cluster 3; "choices launch": those for all its clusters
//   warp 1 64 @120                               after 120 steps warp 1 ran, for at most 64 operations
//   work 5 @130                                  the fifth asynchronous work of the cluster made a step
//   portion 2 of 7                               a number below 7
//   end finished 3                               and the number of its choices
//   complete 1                                   and the number of blocks of choices

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/choices.hpp"

namespace tessera::emulator {

struct LaunchRequest;

/// The program does something else than when its schedule was recorded.
class ScheduleMisfit : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The recorded cluster went no further, because another one had failed.
class ReplayEnded : public std::exception {};

/// A choice as a line of the file.
[[nodiscard]] std::string to_line(const Decision& decision);

struct RecordedChoices {
    std::vector<Decision> decisions;
    Ending ending = Ending::stopped;
    std::uint32_t last_line = 0;
    // For messages:
    std::string path, kernel;
    unsigned launch = 0;
};

struct RecordedLaunch {
    unsigned number = 0;  ///< of the launches of this kernel, from 1
    std::string shape;    ///< grid, block and cluster as in the file
    std::string kernel;
    std::map<std::uint64_t, RecordedChoices> choices;  ///< by cluster; Choices::of_launch

    /// Null: the cluster did not start.
    [[nodiscard]] const RecordedChoices* find(std::uint64_t cluster) const noexcept;
    /// Call before the cluster starts.
    /// @throws ReplayEnded if it did not start because another one had failed; else ScheduleMisfit
    void expect(std::uint64_t cluster) const;
};

/// A file with schedules. Thread-safe.
class ScheduleFile {
public:
    /// `path` is only for messages.
    /// @throws std::runtime_error with a sentence if the file is damaged
    ScheduleFile(std::string_view text, std::string path);
    /// @throws std::runtime_error with a sentence
    [[nodiscard]] static std::shared_ptr<ScheduleFile> load(const std::string& path);

    /// The schedule that was recorded, and the options on which its choices depend.
    [[nodiscard]] Schedule schedule() const noexcept { return schedule_; }
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// The next launch of `kernel`.
    /// @throws ScheduleMisfit if the file has none, or one of another shape
    [[nodiscard]] const RecordedLaunch& next(const std::string& kernel, const LaunchRequest& request);

private:
    std::string path_;
    Schedule schedule_ = Schedule::in_order;
    std::uint64_t seed_ = 0;
    std::map<std::pair<std::string, unsigned>, RecordedLaunch> launches_;
    std::mutex mutex_;
    std::map<std::string, unsigned> counts_;  // launches so far, by kernel
};

/// Writes schedules. Thread-safe.
class Recorder {
public:
    using Write = std::function<void(std::string_view)>;
    /// `write` gets the parts of the file, in order, one at a time.
    explicit Recorder(Write write) : write_(std::move(write)) {}
    /// The next launch of `kernel`.
    [[nodiscard]] std::unique_ptr<LaunchRecorder> begin(const std::string& kernel, const LaunchRequest& request,
                                                        const Options& options);

private:
    friend class LaunchRecorder;
    void write(const std::string& text);

    Write write_;
    std::mutex mutex_;
    bool has_heading_ = false;
    std::map<std::string, unsigned> counts_;
};

/// The choices of one launch; its destructor writes them, also if the launch has failed.
class LaunchRecorder {
public:
    LaunchRecorder(Recorder& recorder, std::string heading) : recorder_(recorder), heading_(std::move(heading)) {}
    ~LaunchRecorder();
    LaunchRecorder(const LaunchRecorder&) = delete;
    LaunchRecorder& operator=(const LaunchRecorder&) = delete;

    /// Adds a cluster's choices.
    void add(std::uint64_t cluster, std::string lines, std::uint64_t count, Ending ending);

private:
    Recorder& recorder_;
    std::string heading_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::string> blocks_;
};

}  // namespace tessera::emulator
