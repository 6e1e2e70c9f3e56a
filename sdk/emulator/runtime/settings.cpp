#include "runtime/settings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "machine/recording.hpp"
#include "runtime/fault_injection.hpp"

namespace tessera::emulator {

namespace {

constexpr unsigned most_threads = 4096;
constexpr std::uint32_t most_depth = 16;

/// `path` with the process's number for each "%p": children of a program can have files of their own.
std::string with_process(std::string path)
{
    constexpr std::string_view place = "%p";
    for (std::size_t at = path.find(place); at != std::string::npos; at = path.find(place)) {
        path.replace(at, place.size(), std::to_string(::getpid()));
    }
    return path;
}

std::vector<std::string> device_keys()
{
    std::vector<std::string> keys;
    for (const DeviceModel& model : device_models()) {
        keys.push_back(model.key);
    }
    return keys;
}

const std::vector<std::string>& call_names()
{
    static const std::vector<std::string> names = {
#define TESSERA_CUDART_SYMBOL(name) #name,
#include "runtime/symbols.def"
#undef TESSERA_CUDART_SYMBOL
    };
    return names;
}

std::size_t distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

const Setting& setting_of(std::string_view variable)
{
    return *std::ranges::find_if(known_settings(), [&](const Setting& s) { return s.variable == variable; });
}

class Reader {
public:
    Reader(const std::function<const char*(const char*)>& get, const std::function<std::string(const char*)>& shown,
           std::vector<std::string>& errors)
        : get_(get), shown_(shown), errors_(errors)
    {}

    [[nodiscard]] std::optional<std::string_view> text(const char* name) const
    {
        const char* value = get_(name);
        return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string_view>(value);
    }

    template <class Number>
    void number(const char* name, Number& into, Number least, Number most = std::numeric_limits<Number>::max())
    {
        if (const auto value = text(name)) {
            Number number{};
            const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
            if (error != std::errc{} || end != value->data() + value->size() || number < least || number > most) {
                refuse(name, *value);
            } else {
                into = number;
            }
        }
    }

    void flag(const char* name, bool& into)
    {
        if (const auto value = text(name)) {
            if (*value != "0" && *value != "1") {
                refuse(name, *value);
            }
            into = *value == "1";
        }
    }

    /// One of `names`, in the order of the enumerators.
    template <class Enumeration>
    void choice(const char* name, const std::vector<std::string>& names, Enumeration& into)
    {
        if (const auto value = text(name)) {
            const auto found = std::ranges::find(names, *value);
            if (found == names.end()) {
                refuse(name, *value, nearest(*value, names));
            } else {
                into = static_cast<Enumeration>(found - names.begin());
            }
        }
    }

    /// Calls `word` for each part between commas; an empty part is one, too.
    template <class Word>
    void list(const char* name, std::string_view preset, Word&& word)
    {
        std::string_view rest = text(name).value_or(preset);
        while (!rest.empty()) {
            const std::size_t comma = rest.find(',');
            word(rest.substr(0, comma));
            if (comma + 1 == rest.size()) {
                word(std::string_view());
            }
            rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        }
    }

    /// "json:PATH" and similar values. Returns false if the variable is not set.
    bool output(const char* name, const std::vector<std::string>& formats, OutputFormat& format, std::string& path)
    {
        const auto value = text(name);
        if (!value) {
            return false;
        }
        const std::size_t colon = value->find(':');
        const std::string word(value->substr(0, colon));
        const auto found = std::ranges::find(formats, word);
        path = colon == std::string_view::npos ? "" : with_process(std::string(value->substr(colon + 1)));
        if (found != formats.end()) {
            format = static_cast<OutputFormat>(found - formats.begin());
        } else if (word != "1") {
            const std::string meant = nearest(word, formats);
            refuse(name, *value, meant.empty() ? meant : meant + std::string(value->substr(word.size())));
            return true;
        }
        if (path.empty() && (colon != std::string_view::npos || format == OutputFormat::html)) {
            refuse(name, *value);
        } else if (!path.empty()) {
            if (const std::string problem = output_problem(path); !problem.empty()) {
                errors_.push_back(
                    fmt::format("{} is \"{}\", and {} cannot be written: {}", shown_(name), *value, path, problem));
            }
            std::error_code error;
            path = std::filesystem::absolute(path, error).string();  // the program may change its current directory
        }
        return true;
    }

    /// A file to write. Its path becomes absolute.
    void file(const char* name, std::string& path)
    {
        const auto value = text(name);
        if (!value) {
            return;
        }
        path = with_process(std::string(*value));
        if (const std::string problem = output_problem(path); !problem.empty()) {
            errors_.push_back(fmt::format("{} is \"{}\", which cannot be written: {}", shown_(name), path, problem));
        }
        std::error_code error;
        path = std::filesystem::absolute(path, error).string();  // the program may change its current directory
    }

    struct Output {
        const char* name;
        const char* what;
        const std::string& path;
    };

    /// Two outputs in one file would destroy each other.
    void expect_distinct(const std::vector<Output>& outputs)
    {
        std::map<std::string, const char*> written;
        for (const Output& output : outputs) {
            if (output.path.empty()) {
                continue;
            }
            std::error_code error;
            const std::string file = std::filesystem::weakly_canonical(output.path, error).string();
            const auto [first, is_new] = written.emplace(error ? output.path : file, output.what);
            if (!is_new) {
                say(output.name, fmt::format("{} is written to the same file; choose another one", first->second));
            }
        }
    }

    void refuse(const char* name, std::string_view value, std::string_view meant = {})
    {
        errors_.push_back(fmt::format("{} is \"{}\"; it must be {}{}", shown_(name), value, setting_of(name).allowed,
                                      meant.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", meant)));
    }

    void say(const char* name, std::string_view sentence)
    {
        errors_.push_back(fmt::format("{}: {}", shown_(name), sentence));
    }

private:
    const std::function<const char*(const char*)>& get_;
    const std::function<std::string(const char*)>& shown_;
    std::vector<std::string>& errors_;
};

/// "DEPTH" or "DEPTH:STEPS". Returns false if it is something else.
bool read_depth(std::string_view text, Options& options)
{
    const auto number = [](std::string_view digits, auto& into) {
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), into);
        return error == std::errc{} && end == digits.data() + digits.size() && into >= 1;
    };
    const std::size_t colon = text.find(':');
    return number(text.substr(0, colon), options.depth) && options.depth <= most_depth &&
           (colon == std::string_view::npos || number(text.substr(colon + 1), options.depth_steps));
}

void read_schedule(Reader& reader, Options& options)
{
    constexpr const char* name = "TESSERA_EMU_SCHEDULE";
    constexpr std::string_view pct = "pct:";
    constexpr std::string_view replay = "replay:";
    const auto value = reader.text(name);
    if (!value) {
        return;
    }
    if (value->starts_with(replay) && value->size() > replay.size()) {
        try {
            options.recording = ScheduleFile::load(std::string(value->substr(replay.size())));
            options.schedule = options.recording->schedule();
            options.seed = options.recording->seed();
        } catch (const std::runtime_error& refused) {
            reader.say(name, refused.what());
        }
    } else if (value->starts_with(pct)) {
        options.schedule = Schedule::pct;
        if (!read_depth(value->substr(pct.size()), options)) {
            reader.refuse(name, *value);
        }
    } else if (const auto schedule = find_schedule(*value)) {
        options.schedule = *schedule;
    } else {
        reader.refuse(name, *value, nearest(*value, {"in-order", "random", "adversarial", "pct", "replay:FILE"}));
    }
}

void read_faults(Reader& reader, std::string& faults)
{
    constexpr const char* name = "TESSERA_EMU_FAIL";
    faults = reader.text(name).value_or("");
    try {
        FaultInjection plan;
        plan.plan(faults);
    } catch (const std::invalid_argument& refused) {
        reader.say(name, refused.what());
        return;
    }
    reader.list(name, {}, [&](std::string_view part) {
        const std::string_view call = part.substr(0, std::min(part.find('='), part.find(':')));
        if (part.find(':') < part.find('=') && std::ranges::find(call_names(), call) == call_names().end()) {
            const std::string meant = nearest(call, call_names());
            reader.say(name, fmt::format("the CUDA runtime has no function \"{}\"{}", call,
                                         meant.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", meant)));
        }
    });
}

std::vector<std::string> optional_names()
{
    std::vector<std::string> names;
    for (const OptionalFinding& finding : optional_findings) {
        names.emplace_back(finding.name);
    }
    return names;
}

}  // namespace

const std::vector<Setting>& known_settings()
{
    const std::vector<std::string> also = optional_names();
    static const std::vector<Setting> settings = {
        {"--device", "TESSERA_EMU_DEVICE",
         fmt::format("a device, or several separated by commas: {}", fmt::join(device_keys(), ", ")),
         "the device to emulate, see --list-devices; a list with commas gives several devices [b200]"},
        {"--schedule", "TESSERA_EMU_SCHEDULE",
         fmt::format("one of in-order, random, adversarial, pct, pct:DEPTH, pct:DEPTH:STEPS (a depth from 1 to {}, "
                     "steps from 1), replay:FILE",
                     most_depth),
         "order of warps and asynchronous work: in-order, random, adversarial, pct[:DEPTH[:STEPS]], replay:FILE "
         "[in-order]"},
        {"--record", "TESSERA_EMU_RECORD", "a FILE",
         "write the choices of the schedule to a file, for --schedule replay:FILE [none]"},
        {"--seed", "TESSERA_EMU_SEED", "a whole number from 0",
         "seed of the scheduler's choices; the same seed gives the same run [1]"},
        {"--check", "TESSERA_EMU_CHECK", "0 or 1",
         "0: do not search for races, uninitialized reads, protocol faults and leaks [1]"},
        {"--also", "TESSERA_EMU_ALSO", fmt::format("one or more of {}, separated by commas", fmt::join(also, ", ")),
         fmt::format("also report {}; several separated by commas [none]", fmt::join(also, ", "))},
        {"--overrun", "TESSERA_EMU_OVERRUN", "one of stop, continue",
         "continue: report an access in the padding after an allocation, and go on as a GPU would [stop]"},
        {"--strict", "TESSERA_EMU_STRICT", "0 or 1",
         "a finding ends its launch with an error, and the program with exit status 86", true},
        {"--report", "TESSERA_EMU_REPORT", "text, json, text:FILE, json:FILE or html:FILE",
         "form of the findings: text, json, text:FILE, json:FILE or html:FILE [text, to stderr]"},
        {"--statistics", "TESSERA_EMU_STATISTICS", "text, json, text:FILE or json:FILE",
         "counts of each launch: text, json, text:FILE or json:FILE [none]"},
        {"--trace", "TESSERA_EMU_TRACE", "a FILE",
         "write a timeline of warps, copies and MMAs to a JSON file, for ui.perfetto.dev [none]"},
        {"--numerics", "TESSERA_EMU_NUMERICS", "one of exact, fast",
         "sums of tensor cores: exact is bit by bit, fast uses vectors [exact]"},
        {"--paths", "TESSERA_EMU_PATHS", "one of fast, plain, both",
         "memory accesses of a warp: fast, plain (lane by lane), or both compared, to test the device itself [fast]"},
        {"--fail", "TESSERA_EMU_FAIL", "NAME:N=ERROR or N=ERROR, several separated by commas",
         "make the N-th call fail: NAME:N=ERROR or N=ERROR, for example cudaMalloc:3=cudaErrorMemoryAllocation"},
        {"--threads", "TESSERA_EMU_THREADS", fmt::format("a whole number from 0 (all cores) to {}", most_threads),
         "number of CPU threads; results do not depend on it [0: all cores]"},
        {"--hang-limit", "TESSERA_EMU_HANG_LIMIT", "a whole number from 1",
         "report a hang after this many instructions of a cluster without a visible effect [5000000]"},
    };
    return settings;
}

Settings read_settings(const std::function<const char*(const char*)>& get,
                       const std::function<std::string(const char*)>& shown)
{
    Settings settings;
    Reader reader(get, shown, settings.errors);
    reader.list("TESSERA_EMU_DEVICE", "b200", [&](std::string_view key) {
        if (const DeviceModel* model = find_device_model(key)) {
            settings.devices.push_back(model);
        } else {
            reader.refuse("TESSERA_EMU_DEVICE", key.empty() ? *reader.text("TESSERA_EMU_DEVICE") : key,
                          nearest(key, device_keys()));
        }
    });
    reader.number("TESSERA_EMU_SEED", settings.options.seed, std::uint64_t{0});
    read_schedule(reader, settings.options);
    reader.choice("TESSERA_EMU_NUMERICS", {"exact", "fast"}, settings.options.numerics);
    reader.choice("TESSERA_EMU_PATHS", {"fast", "plain", "both"}, settings.options.paths);
    reader.flag("TESSERA_EMU_CHECK", settings.options.check);
    reader.list("TESSERA_EMU_ALSO", {}, [&](std::string_view word) {
        const auto found = std::ranges::find(optional_findings, word, &OptionalFinding::name);
        if (found == optional_findings.end()) {
            reader.refuse("TESSERA_EMU_ALSO", word, nearest(word, optional_names()));
        } else {
            settings.options.*(found->option) = true;
        }
    });
    reader.choice("TESSERA_EMU_OVERRUN", {"stop", "continue"}, settings.options.overruns_continue);
    reader.flag("TESSERA_EMU_STRICT", settings.options.strict);
    reader.number("TESSERA_EMU_THREADS", settings.options.threads, 0U, most_threads);
    reader.number("TESSERA_EMU_HANG_LIMIT", settings.options.hang_limit, std::uint64_t{1});
    reader.output("TESSERA_EMU_REPORT", {"text", "json", "html"}, settings.report_format, settings.report_path);
    if (reader.text("TESSERA_EMU_STATISTICS").value_or("0") != "0") {
        settings.statistics = reader.output("TESSERA_EMU_STATISTICS", {"text", "json"}, settings.statistics_format,
                                            settings.statistics_path);
    }
    reader.file("TESSERA_EMU_RECORD", settings.record_path);
    if (settings.options.recording != nullptr && !settings.record_path.empty()) {
        reader.say("TESSERA_EMU_RECORD", "the schedule is replayed from a file already; use that file");
        settings.record_path.clear();
    }
    reader.file("TESSERA_EMU_TRACE", settings.trace_path);
    reader.expect_distinct({{"TESSERA_EMU_REPORT", "the report", settings.report_path},
                            {"TESSERA_EMU_STATISTICS", "the statistics", settings.statistics_path},
                            {"TESSERA_EMU_RECORD", "the schedule", settings.record_path},
                            {"TESSERA_EMU_TRACE", "the trace", settings.trace_path}});
    read_faults(reader, settings.faults);
    return settings;
}

std::vector<std::string> misnamed_variables(const char* const* environment)
{
    constexpr std::string_view prefix = "TESSERA_EMU_";
    std::vector<std::string> known;
    for (const Setting& setting : known_settings()) {
        known.emplace_back(setting.variable);
    }
    std::vector<std::string> sentences;
    for (; *environment != nullptr; ++environment) {
        const std::string_view variable(*environment);
        const std::string name(variable.substr(0, variable.find('=')));
        const bool is_empty = variable.size() <= name.size() + 1;  // as if it were not set
        if (!name.starts_with(prefix) || is_empty || std::ranges::find(known, name) != known.end()) {
            continue;
        }
        std::vector<std::string> endings;  // what all names have in common says nothing
        std::ranges::transform(known, std::back_inserter(endings),
                               [&](const std::string& word) { return word.substr(prefix.size()); });
        const std::string meant = nearest(std::string_view(name).substr(prefix.size()), endings);
        sentences.push_back(
            meant.empty()
                ? fmt::format("{} is set, which is none of the variables {}; unset it", name, fmt::join(known, ", "))
                : fmt::format("{} is set, which is no variable of the emulated device (did you mean {}{}?)", name,
                              prefix, meant));
    }
    return sentences;
}

std::string output_problem(const std::string& path)
{
    constexpr int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK;
    int file = ::open(path.c_str(), flags);
    bool is_new = false;
    if (file < 0 && errno == ENOENT) {
        file = ::open(path.c_str(), flags | O_CREAT | O_EXCL, 0666);
        is_new = file >= 0;
    }
    if (file < 0) {
        return std::strerror(errno);
    }
    ::close(file);
    if (is_new) {
        ::unlink(path.c_str());
    }
    return {};
}

std::string nearest(std::string_view word, const std::vector<std::string>& known)
{
    std::string best;
    std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : known) {
        const std::size_t far = distance(word, candidate);
        const bool is_beginning = word.size() >= 3 && candidate.starts_with(word);
        if (far < least || (is_beginning && best.empty())) {
            least = std::min(least, far);
            best = candidate;
        }
    }
    return best;
}

}  // namespace tessera::emulator
