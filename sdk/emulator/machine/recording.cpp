#include "machine/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include "machine/launch.hpp"

namespace tessera::emulator {

namespace {

constexpr std::string_view heading = "tessera-emu schedule 1";
constexpr std::array<std::string_view, 3> endings{"finished", "failed", "stopped"};

[[nodiscard]] std::string text_of(const Dim3& d) { return fmt::format("{},{},{}", d.x, d.y, d.z); }

[[nodiscard]] std::string shape_of(const LaunchRequest& request)
{
    return fmt::format("{} {} {}", text_of(request.grid), text_of(request.block), text_of(request.cluster));
}

/// Reads the lines of a file, and the words of a line.
class Lines {
public:
    Lines(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

    /// Goes to the next line. Returns false at the end of the file. A line without a line feed has been cut off.
    bool next()
    {
        if (rest_.empty()) {
            return false;
        }
        ++number_;
        const std::size_t end = rest_.find('\n');
        if (end == std::string_view::npos) {
            cut_off();
        }
        line_ = words_ = rest_.substr(0, end);
        rest_ = rest_.substr(end + 1);
        return true;
    }
    [[nodiscard]] std::string_view line() const noexcept { return line_; }
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
    std::string_view word()
    {
        const std::size_t end = words_.find(' ');
        const std::string_view word = words_.substr(0, end);
        words_ = end == std::string_view::npos ? std::string_view() : words_.substr(end + 1);
        return word;
    }
    std::string_view words() { return std::exchange(words_, {}); }
    template <typename Number>
    Number integer(std::string_view prefix = {})
    {
        std::string_view text = word();
        Number value{};
        const bool has_prefix = text.starts_with(prefix);
        text = has_prefix ? text.substr(prefix.size()) : text;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (!has_prefix || text.empty() || error != std::errc{} || end != text.data() + text.size()) {
            damaged();
        }
        return value;
    }
    void expect(std::string_view expected)
    {
        if (word() != expected) {
            damaged();
        }
    }
    void expect_end()
    {
        if (!words_.empty()) {
            damaged();
        }
    }
    [[noreturn]] void damaged() const
    {
        throw std::runtime_error(
            fmt::format("{} is damaged: line {} is \"{}\", which is not what --record writes "
                        "there. Record it again",
                        path_, number_, line_));
    }
    [[noreturn]] void cut_off() const
    {
        throw std::runtime_error(fmt::format("{} is cut off after line {}. Record it again", path_, number_));
    }

private:
    std::string_view rest_, line_, words_;
    const std::string& path_;
    std::uint32_t number_ = 0;
};

template <std::size_t size>
[[nodiscard]] std::size_t index_of(Lines& lines, const std::array<std::string_view, size>& names)
{
    const auto found = std::ranges::find(names, lines.word());
    if (found == names.end()) {
        lines.damaged();
    }
    return static_cast<std::size_t>(found - names.begin());
}

[[nodiscard]] Decision read_decision(Lines& lines, std::string_view word)
{
    const std::optional<Choice> kind = find_choice(word);
    if (!kind) {
        lines.damaged();
    }
    Decision decision;
    decision.kind = *kind;
    decision.line = lines.number();
    if (!is_action(*kind)) {
        decision.value = lines.integer<std::uint32_t>();
        lines.expect("of");
        decision.bound = lines.integer<std::uint32_t>();
        if (decision.value >= decision.bound) {
            lines.damaged();
        }
    } else {
        if (*kind == Choice::warp || *kind == Choice::work) {
            decision.value = lines.integer<std::uint32_t>();
        }
        if (*kind == Choice::warp) {
            decision.bound = lines.integer<std::uint32_t>();
        }
        decision.steps = lines.integer<std::uint64_t>("@");
    }
    lines.expect_end();
    return decision;
}

/// The lines after "choices ..." of one cluster.
void read_choices(Lines& lines, RecordedChoices& choices)
{
    while (lines.next()) {
        const std::string_view word = lines.word();
        if (word == "end") {
            choices.ending = static_cast<Ending>(index_of(lines, endings));
            choices.last_line = lines.number();
            if (lines.integer<std::uint64_t>() != choices.decisions.size()) {
                lines.damaged();
            }
            return lines.expect_end();
        }
        choices.decisions.push_back(read_decision(lines, word));
    }
    lines.cut_off();
}

/// The lines after "launch ...".
void read_launch(Lines& lines, RecordedLaunch& launch, const std::string& path)
{
    while (lines.next()) {
        const std::string_view word = lines.word();
        if (word == "complete") {
            if (lines.integer<std::size_t>() != launch.choices.size()) {
                lines.damaged();
            }
            return lines.expect_end();
        }
        if (word != "choices") {
            lines.damaged();
        }
        const bool of_launch = lines.line() == "choices launch";
        const std::uint64_t cluster = of_launch ? lines.word(), Choices::of_launch : lines.integer<std::uint64_t>();
        lines.expect_end();
        const auto [choices, is_new] = launch.choices.try_emplace(cluster);
        if (!is_new) {
            lines.damaged();
        }
        choices->second.path = path;
        choices->second.kernel = launch.kernel;
        choices->second.launch = launch.number;
        read_choices(lines, choices->second);
    }
    lines.cut_off();
}

}  // namespace

std::string to_line(const Decision& decision)
{
    const std::string_view name = name_of(decision.kind);
    if (!is_action(decision.kind)) {
        return fmt::format("{} {} of {}\n", name, decision.value, decision.bound);
    }
    switch (decision.kind) {
        case Choice::warp: return fmt::format("{} {} {} @{}\n", name, decision.value, decision.bound, decision.steps);
        case Choice::work: return fmt::format("{} {} @{}\n", name, decision.value, decision.steps);
        default: return fmt::format("{} @{}\n", name, decision.steps);
    }
}

const RecordedChoices* RecordedLaunch::find(std::uint64_t cluster) const noexcept
{
    const auto found = choices.find(cluster);
    return found == choices.end() ? nullptr : &found->second;
}

void RecordedLaunch::expect(std::uint64_t cluster) const
{
    if (find(cluster) != nullptr) {
        return;
    }
    if (std::ranges::any_of(choices, [](const auto& one) { return one.second.ending != Ending::finished; })) {
        throw ReplayEnded();
    }
    throw ScheduleMisfit(fmt::format(
        "the recorded schedule does not fit: launch {} of {} has no choices of cluster {}. Replay it with the program, "
        "the input and the options with which it was recorded",
        number, kernel, cluster));
}

// ---- reading ----

ScheduleFile::ScheduleFile(std::string_view text, std::string path) : path_(std::move(path))
{
    Lines lines(text, path_);
    if (!text.starts_with(heading)) {
        throw std::runtime_error(
            fmt::format("{} is not a recorded schedule: its first line is not \"{}\"", path_, heading));
    }
    if (!lines.next() || lines.line() != heading) {
        lines.damaged();
    }
    if (!lines.next()) {
        lines.cut_off();
    }
    lines.expect("schedule");
    const std::optional<Schedule> schedule = find_schedule(lines.word());
    if (!schedule) {
        lines.damaged();
    }
    schedule_ = *schedule;
    seed_ = lines.integer<std::uint64_t>();
    lines.expect_end();
    while (lines.next()) {
        lines.expect("launch");
        RecordedLaunch launch;
        launch.number = lines.integer<unsigned>();
        for (int i = 0; i < 3; ++i) {
            launch.shape += (i == 0 ? "" : " ") + std::string(lines.word());
        }
        launch.kernel = lines.words();
        if (launch.kernel.empty()) {
            lines.damaged();
        }
        read_launch(lines, launch, path_);
        const std::pair key{launch.kernel, launch.number};
        if (!launches_.try_emplace(key, std::move(launch)).second) {
            lines.damaged();
        }
    }
}

std::shared_ptr<ScheduleFile> ScheduleFile::load(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    std::string text;
    if (file) {
        text.assign(std::istreambuf_iterator<char>(file), {});
    }
    if (!file || file.bad()) {
        throw std::runtime_error(fmt::format("{} cannot be read: {}", path, std::strerror(errno == 0 ? EIO : errno)));
    }
    return std::make_shared<ScheduleFile>(text, path);
}

const RecordedLaunch& ScheduleFile::next(const std::string& kernel, const LaunchRequest& request)
{
    const std::scoped_lock lock(mutex_);
    const unsigned number = ++counts_[kernel];
    const auto found = launches_.find({kernel, number});
    if (found == launches_.end()) {
        throw ScheduleMisfit(fmt::format(
            "the recorded schedule does not fit: {} has no launch {} of {}. Replay it with the program, the input and "
            "the options with which it was recorded",
            path_, number, kernel));
    }
    if (found->second.shape != shape_of(request)) {
        throw ScheduleMisfit(fmt::format(
            "the recorded schedule does not fit: launch {} of {} has grid, block and cluster {}; in {} it has {}. "
            "Replay it with the program, the input and the options with which it was recorded",
            number, kernel, shape_of(request), path_, found->second.shape));
    }
    return found->second;
}

// ---- writing ----

void Recorder::write(const std::string& text)
{
    const std::scoped_lock lock(mutex_);
    write_(text);
}

std::unique_ptr<LaunchRecorder> Recorder::begin(const std::string& kernel, const LaunchRequest& request,
                                                const Options& options)
{
    const std::scoped_lock lock(mutex_);
    if (!std::exchange(has_heading_, true)) {
        write_(fmt::format("{}\nschedule {} {}\n", heading, name_of(options.schedule), options.seed));
    }
    return std::make_unique<LaunchRecorder>(
        *this, fmt::format("launch {} {} {}\n", ++counts_[kernel], shape_of(request), kernel));
}

void LaunchRecorder::add(std::uint64_t cluster, std::string lines, std::uint64_t count, Ending ending)
{
    std::string block =
        fmt::format("choices {}\n", cluster == Choices::of_launch ? std::string("launch") : fmt::format("{}", cluster));
    block += lines;
    block += fmt::format("end {} {}\n", endings[static_cast<std::size_t>(ending)], count);
    const std::scoped_lock lock(mutex_);
    blocks_[cluster] = std::move(block);
}

LaunchRecorder::~LaunchRecorder()
{
    std::string text = std::move(heading_);
    for (const auto& [cluster, block] : blocks_) {
        text += block;
    }
    recorder_.write(text + fmt::format("complete {}\n", blocks_.size()));
}

}  // namespace tessera::emulator
