#include "tuning/tuning_cache.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/hash.hpp"
#include "base/shared_file.hpp"
#include "gemm/backend.hpp"
#include "kernels/blackwell/blackwell_kernels.hpp"
#include "kernels/hopper/hopper_kernels.hpp"
#include "tessera/error.hpp"
#include "tessera/version.hpp"

namespace tessera {
namespace {

constexpr std::string_view header = "tessera-tuning 1";
constexpr std::string_view checksum_mark = " checksum=";
constexpr std::size_t largest_file = 64 << 20;    // bytes; a hundred thousand entries are a third of that
constexpr std::chrono::seconds lock_timeout{20};  // a save takes milliseconds, so a longer hold means a hang

constexpr std::array<std::string_view, detail::tuning_facts> fact_names{
    "a",        "b",        "d", "a_rows", "b_rows",     "d_rows",   "a_align",        "b_align",       "d_align",
    "a_shared", "b_shared", "c", "bias",   "activation", "fp8_fast", "pre_activation", "scale_vectors", "gating",
    "f16_sums"};

void warn_on_stderr(std::string_view sentence) { fmt::print(stderr, "tessera: warning: {}\n", sentence); }

std::atomic<GemmTuningCache::WarningHandler> warning_handler{warn_on_stderr};

void warn(const std::string& sentence)
{
    if (const GemmTuningCache::WarningHandler handler = warning_handler.load()) {
        handler(sentence);
    }
}

/// Parses "name=value" tokens from the front of a line, in the order in which they were written.
class Tokens {
public:
    explicit Tokens(std::string_view line) : rest_(line) {}

    std::optional<std::string_view> text(std::string_view name)
    {
        const std::size_t end = std::min(rest_.find(' '), rest_.size());
        const std::string_view token = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        if (token.size() <= name.size() || !token.starts_with(name) || token[name.size()] != '=') {
            return std::nullopt;
        }
        return token.substr(name.size() + 1);
    }

    bool begins_with(std::string_view name) const
    {
        return rest_.size() > name.size() && rest_.starts_with(name) && rest_[name.size()] == '=';
    }

    template <class Number>
    bool number(std::string_view name, Number low, Number high, Number& value, int base = 10)
    {
        const std::optional<std::string_view> found = text(name);
        if (!found) {
            return false;
        }
        std::from_chars_result result{};
        if constexpr (std::is_floating_point_v<Number>) {
            result = std::from_chars(found->data(), found->data() + found->size(), value);
        } else {
            result = std::from_chars(found->data(), found->data() + found->size(), value, base);
        }
        return result.ec == std::errc() && result.ptr == found->data() + found->size() && value >= low && value <= high;
    }
    template <class Small>
    bool small(std::string_view name, int low, int high, Small& value)
    {
        int wide = 0;
        const bool read = number(name, low, high, wide);
        value = static_cast<Small>(wide);
        return read;
    }

private:
    std::string_view rest_;
};

enum class Reading { missing, foreign, ours };

/// Returns the lines after the header. @throws detail::FileError if the file cannot be read
Reading read_lines(const std::string& path, std::vector<std::string>& lines)
{
    const std::optional<std::string> content = detail::read_regular_file(path, largest_file);
    if (!content || content->empty()) {
        return Reading::missing;
    }
    std::string_view rest = *content;
    bool first = true;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (first && line != header) {
            return Reading::foreign;
        }
        if (!first && !line.empty() && line[0] != '#') {
            lines.emplace_back(line);
        }
        first = false;
    }
    return Reading::ours;
}

/// Returns the identity of an entry: everything before the choice, or nothing if the line is damaged.
std::string_view identity_of(std::string_view line)
{
    return detail::has_valid_checksum(line) ? line.substr(0, std::min(line.find(" variant="), line.size()))
                                            : std::string_view();
}

std::int64_t time_of(std::string_view line)
{
    constexpr std::string_view mark = " when=";
    std::int64_t value = 0;
    if (const std::size_t found = line.rfind(mark); found != std::string_view::npos) {
        std::from_chars(line.data() + found + mark.size(), line.data() + line.size(), value);
    }
    return value;
}

constexpr std::string_view foreign_file = "is not a tuning cache of this format";

/// Merges the entries of `lines` with those of this process, one line each.
std::string merged_content(const std::vector<std::string>& lines)
{
    const std::int64_t now = detail::tuning_clock();
    std::map<std::string, std::string, std::less<>> merged;  // by identity; sorted, so that files can be compared
    const auto merge = [&](const std::string& line) {
        const std::string identity(identity_of(line));
        if (!identity.empty() && (!merged.contains(identity) || detail::believed_time(time_of(merged[identity]), now) <=
                                                                    detail::believed_time(time_of(line), now))) {
            merged[identity] = line;
        }
    };
    for (const std::string& line : lines) {
        merge(line);
    }
    const std::string build = detail::tuning_build();
    detail::for_each_tuned([&](const detail::TuningKey& key, const detail::TunedChoice& tuned) {
        merge(detail::format_entry(key, tuned, build));
    });
    std::string content =
        fmt::format("{}\n# Written by tessera: what was measured to be the fastest. May be deleted.\n", header);
    for (const auto& [identity, line] : merged) {
        content += line + '\n';
    }
    return content;
}

/// @throws detail::FileError
void save_file(const std::string& named, std::chrono::milliseconds timeout)
{
    // Several names may lead to one file: this one is locked and replaced.
    const std::string path = detail::resolve_links(named);
    detail::require_replaceable(path);
    const detail::SaveLock lock(path, timeout);
    if (!lock.weakness().empty()) {
        warn(
            fmt::format("the tuning cache {} is saved without its usual lock, so what another process saves now may be "
                        "lost: {}",
                        named, lock.weakness()));
    }
    std::vector<std::string> lines;
    if (read_lines(path, lines) == Reading::foreign) {
        throw detail::FileError(std::string(foreign_file));
    }
    if (lock.weakness().empty()) {
        detail::remove_leftovers(path);
    }
    detail::replace_file(path, merged_content(lines));
}

InputTypes input_of(const detail::TuningKey& key)
{
    return {static_cast<ElementType>(key.facts[detail::type_a]), static_cast<ElementType>(key.facts[detail::type_b])};
}

std::string_view config_name(const detail::TuningKey& key, const detail::KernelChoice& choice)
{
    const std::string_view name = detail::backend_of(choice.variant).config_name(input_of(key), choice.config);
    return name.empty() ? "-" : name;
}

}  // namespace

namespace detail {

std::string tuning_build()
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess) {
        cudaGetLastError();
    }
    std::string kernels;
    for (const std::size_t bytes : {1U, 2U, 4U}) {
        for (const kernels::HopperKernel& kernel : kernels::hopper_kernels(bytes)) {
            kernels += fmt::format("{} {}x{}x{} {} {};", kernel.name, kernel.tile_m, kernel.tile_n, kernel.block_k,
                                   kernel.threads, kernel.shared_bytes);
        }
        for (const kernels::BlackwellKernel& kernel : kernels::blackwell_kernels(bytes)) {
            kernels += fmt::format("{} {} {};", kernel.name(), kernel.config->stages, kernel.shared_bytes);
        }
    }
    return fmt::format("driver={} library={}.{}.{} kernels={:016x}", driver, version.major, version.minor,
                       version.patch, detail::hash(kernels));
}

// A field that is not written here would be lost. Add new fields to both functions, and raise the format's number.
static_assert(sizeof(KernelChoice) == 10);

std::string format_entry(const TuningKey& key, const TunedChoice& tuned, std::string_view build)
{
    std::string line =
        fmt::format("{} device={:016x} m={} n={} k={} batches={}", build, key.device, key.m, key.n, key.k, key.batches);
    for (std::size_t fact = 0; fact < tuning_facts; ++fact) {
        line += fmt::format(" {}={}", fact_names[fact],
                            fact <= type_d ? std::string(to_string(static_cast<ElementType>(key.facts[fact])))
                                           : std::to_string(key.facts[fact]));
    }
    const KernelChoice& choice = tuned.choice;
    line += fmt::format(
        " variant={} config={} cluster_m={} cluster_n={} cluster_k={} swapped={} stream_k={} band={} clusters={} "
        "seconds={} "
        "untuned={} when={}",
        tessera::to_string(choice.variant), config_name(key, choice), choice.cluster_m, choice.cluster_n,
        choice.cluster_k, choice.swapped ? 1 : 0, choice.stream_k ? 1 : 0, choice.band, choice.clusters, tuned.seconds,
        tuned.untuned_seconds, tuned.when);
    return fmt::format("{}{}{:016x}", line, checksum_mark, detail::hash(line));
}

bool has_valid_checksum(std::string_view line) noexcept
{
    const std::size_t mark = line.rfind(checksum_mark);
    if (mark == std::string_view::npos) {
        return false;
    }
    const std::string_view digits = line.substr(mark + checksum_mark.size());
    std::uint64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return digits.size() == 16 && result.ec == std::errc() && result.ptr == digits.data() + digits.size() &&
           value == detail::hash(line.substr(0, mark));
}

std::optional<ParsedEntry> parse_entry(std::string_view line)
{
    if (!has_valid_checksum(line)) {
        return std::nullopt;
    }
    ParsedEntry entry;
    Tokens tokens(line);
    const auto driver = tokens.text("driver");
    const auto library = tokens.text("library");
    const auto kernels = tokens.text("kernels");
    if (!driver || !library || !kernels) {
        return std::nullopt;
    }
    entry.build = fmt::format("driver={} library={} kernels={}", *driver, *library, *kernels);
    TuningKey& key = entry.key;
    constexpr std::int64_t most = INT64_MAX;
    if (!tokens.number("device", std::uint64_t{0}, UINT64_MAX, key.device, 16) ||
        !tokens.number<std::int64_t>("m", 1, most, key.m) || !tokens.number<std::int64_t>("n", 1, most, key.n) ||
        !tokens.number<std::int64_t>("k", 0, most, key.k) ||
        !tokens.number<std::int64_t>("batches", 1, most, key.batches)) {
        return std::nullopt;
    }
    for (std::size_t fact = 0; fact < tuning_facts; ++fact) {
        if (fact > fp8_fast && !tokens.begins_with(fact_names[fact])) {
            continue;
        }
        if (fact > type_d) {
            if (!tokens.small(fact_names[fact], 0, 16, key.facts[fact])) {
                return std::nullopt;
            }
            continue;
        }
        const auto name = tokens.text(fact_names[fact]);
        bool known = false;
        for (std::uint8_t type = 0; type <= static_cast<std::uint8_t>(ElementType::f8e5m2); ++type) {
            if (name && *name == to_string(static_cast<ElementType>(type))) {
                key.facts[fact] = type;
                known = true;
            }
        }
        if (!known) {
            return std::nullopt;
        }
    }
    KernelChoice& choice = entry.tuned.choice;
    const auto variant = tokens.text("variant");
    const auto config = tokens.text("config");
    for (const Variant candidate : all_variants()) {
        if (variant && *variant == tessera::to_string(candidate)) {
            choice.variant = candidate;
        }
    }
    if (choice.variant == Variant::automatic || !config) {
        return std::nullopt;
    }
    const Backend& backend = backend_of(choice.variant);
    if (const InputTypes input = input_of(key); *config != "-" || !backend.config_name(input, 0).empty()) {
        std::uint8_t index = 0;
        while (backend.config_name(input, index) != *config) {
            if (backend.config_name(input, index).empty()) {
                return std::nullopt;
            }
            ++index;
        }
        choice.config = index;
    }
    constexpr int byte = 255;
    if (!tokens.small("cluster_m", 0, byte, choice.cluster_m) ||
        !tokens.small("cluster_n", 0, byte, choice.cluster_n) ||
        !tokens.small("cluster_k", 0, byte, choice.cluster_k) || !tokens.small("swapped", 0, 1, choice.swapped) ||
        !tokens.small("stream_k", 0, 1, choice.stream_k) || !tokens.small("band", 0, byte, choice.band) ||
        !tokens.small("clusters", 0, 0xFFFF, choice.clusters) ||
        !tokens.number("seconds", 0.0, 1e9, entry.tuned.seconds) ||
        !tokens.number("untuned", 0.0, 1e9, entry.tuned.untuned_seconds) ||
        !tokens.number<std::int64_t>("when", 0, most, entry.tuned.when)) {
        return std::nullopt;
    }
    return entry;
}

void load_environment_cache_once()
{
    static const bool loaded = [] {
        if (const char* path = std::getenv(tuning_cache_variable); path != nullptr && *path != '\0') {
            static_cast<void>(GemmTuningCache::load(path));
        }
        return true;
    }();
    static_cast<void>(loaded);
}

EnvironmentCache::EnvironmentCache()
{
    if (const char* path = std::getenv(tuning_cache_variable); path != nullptr) {
        path_ = path;
    }
    if (path_.empty()) {
        return;
    }
    try {
        const std::string file = resolve_links(path_);
        require_replaceable(file);
        std::vector<std::string> lines;
        if (read_lines(file, lines) == Reading::foreign) {
            throw FileError(std::string(foreign_file));
        }
    } catch (const FileError& error) {
        warned_ = true;
        warn(fmt::format("{}, named by {}, {}: new measurements stay in this process", path_, tuning_cache_variable,
                         error.what()));
    }
}

void EnvironmentCache::save() const
{
    if (path_.empty()) {
        return;
    }
    try {
        save_file(path_, lock_timeout);
    } catch (const FileError& error) {
        if (!warned_) {
            warn(fmt::format("{}, named by {}, {}: the measurements stay in this process", path_, tuning_cache_variable,
                             error.what()));
        }
    }
}

void save_tuning_cache(const std::string& path, std::chrono::milliseconds timeout, const std::source_location& caller)
{
    try {
        save_file(path, timeout);
    } catch (const FileError& error) {
        raise(
            ErrorCode::invalid_argument, "GemmTuningCache::save", caller, fmt::format("{} {}", path, error.what()),
            "the path of a tuning cache, or a new path, in a writable folder; this process keeps its measurements, so "
            "they can be saved elsewhere");
    }
}

}  // namespace detail

GemmTuningCache::Loaded GemmTuningCache::load(const std::string& path)
{
    Loaded loaded;
    std::vector<std::string> lines;
    try {
        switch (read_lines(path, lines)) {
            case Reading::missing: return loaded;
            case Reading::foreign: warn(fmt::format("{} {} and is ignored", path, foreign_file)); return loaded;
            case Reading::ours: break;
        }
    } catch (const detail::FileError& error) {
        warn(fmt::format("the tuning cache {} {} and is ignored", path, error.what()));
        return loaded;
    }
    const std::string build = detail::tuning_build();
    for (const std::string& line : lines) {
        const bool foreign = detail::has_valid_checksum(line) && !line.starts_with(build + ' ');
        const auto entry = foreign ? std::nullopt : detail::parse_entry(line);
        if (entry) {
            detail::store_tuned(entry->key, entry->tuned);
        }
        ++(foreign ? loaded.skipped : entry ? loaded.used : loaded.damaged);
    }
    if (loaded.damaged > 0) {
        warn(fmt::format("{} of {} entries of the tuning cache {} are damaged and are ignored", loaded.damaged,
                         lines.size(), path));
    }
    if (loaded.used == 0 && loaded.skipped > 0) {
        warn(
            fmt::format("no entry of the tuning cache {} is for this driver and these kernels: all of them ({}) are "
                        "ignored, so tune again",
                        path, loaded.skipped));
    }
    return loaded;
}

void GemmTuningCache::save(const std::string& path, std::source_location caller)
{
    detail::save_tuning_cache(path, lock_timeout, caller);
}

std::size_t GemmTuningCache::size() noexcept { return detail::tuned_count(); }

void GemmTuningCache::clear() noexcept { detail::clear_tuned(); }

GemmTuningCache::WarningHandler GemmTuningCache::set_warning_handler(WarningHandler handler) noexcept
{
    return warning_handler.exchange(handler);
}

}  // namespace tessera
