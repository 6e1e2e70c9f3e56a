#include "checks/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "checks/report_text.hpp"

namespace tessera::emulator {

namespace {

constexpr std::array kind_names{
    std::string_view{"out-of-bounds"},
    std::string_view{"row-overrun"},
    std::string_view{"misaligned"},
    std::string_view{"uninitialized-global"},
    std::string_view{"uninitialized-shared"},
    std::string_view{"uninitialized-local"},
    std::string_view{"uninitialized-tmem"},
    std::string_view{"shared-race"},
    std::string_view{"same-value-race"},
    std::string_view{"strict-proxy-fence"},
    std::string_view{"missing-proxy-fence"},
    std::string_view{"stage-overwritten"},
    std::string_view{"flag-before-store"},
    std::string_view{"async-read-pending"},
    std::string_view{"accumulator-before-commit"},
    std::string_view{"tmem-leak"},
    std::string_view{"tmem-after-release"},
    std::string_view{"tmem-allocation"},
    std::string_view{"tmem-lanes"},
    std::string_view{"invalid-descriptor"},
    std::string_view{"layout-mismatch"},
    std::string_view{"invalid-operand"},
    std::string_view{"cta-mask"},
    std::string_view{"barrier-misuse"},
    std::string_view{"transaction-count"},
    std::string_view{"cta-group"},
    std::string_view{"cluster-protocol"},
    std::string_view{"exit-before-read"},
    std::string_view{"divergent-aligned"},
    std::string_view{"deadlock"},
    std::string_view{"stack-overflow"},
    std::string_view{"trap"},
    std::string_view{"assertion"},
    std::string_view{"launch-control"},
    std::string_view{"resource-leak"},
    std::string_view{"host-memory-changed"},
    std::string_view{"failed-call"},
    std::string_view{"not-emulated"},
};
static_assert(kind_names.size() == static_cast<std::size_t>(FindingKind::not_emulated) + 1);

std::string key_of(const Finding& finding)
{
    std::string key = fmt::format("{}|{}|", static_cast<int>(finding.kind), finding.kernel);
    if (!finding.cause.empty()) {
        return key + finding.cause;
    }
    if (finding.ptx_line == 0) {  // leaks and host calls: told apart by their messages
        return key + finding.message;
    }
    if (finding.frames.empty()) {
        return key + std::to_string(finding.ptx_line);
    }
    // Compilers unroll loops: one access of the source may be many instructions.
    key += finding.ptx_text.substr(0, finding.ptx_text.find(' '));
    for (const SourceFrame& frame : finding.frames) {
        key += fmt::format("|{}:{}", frame.file, frame.line);
    }
    return key;
}

std::uint64_t number_of(const Dim3& cta)
{
    return (std::uint64_t{cta.z} << 48U) ^ (std::uint64_t{cta.y} << 32U) ^ cta.x;
}

std::uint64_t accesses_of(const Finding& finding)
{
    return finding.count * static_cast<std::uint64_t>(std::max(std::popcount(finding.lanes), 1));
}

/// The chain of inlined calls in one line.
std::string chain(const std::vector<SourceFrame>& frames)
{
    std::string text;
    for (const SourceFrame& frame : frames) {
        text += fmt::format("{}{}:{}", text.empty() ? "" : ", inlined at ", frame.file, frame.line);
        text += frame.function.empty() ? "" : fmt::format(" (in {})", frame.function);
    }
    return text;
}

}  // namespace

std::string_view name_of(FindingKind kind) noexcept
{
    const auto index = static_cast<std::size_t>(kind);
    return index < kind_names.size() ? kind_names[index] : "unknown";
}

bool Report::add(Finding finding, const std::function<void(Finding&)>& complete, Known* known)
{
    const std::string key = key_of(finding);
    {
        const std::scoped_lock lock(mutex_);
        const auto [place, is_new] = index_.emplace(key, entries_.size());
        if (is_new) {
            entries_.emplace_back();
        }
        if (known != nullptr) {
            *known = {place->second, clears_};
        }
        Entry& entry = entries_[place->second];
        if (!finding.not_started && entry.ctas.size() < counted_ctas) {
            entry.ctas.insert(number_of(finding.cta));
        }
        entry.lines.insert(finding.ptx_line);
        if (!is_new) {
            Finding& first = entry.finding;
            first.count += finding.count;
            first.accesses += accesses_of(finding);
            first.ctas = entry.ctas.size();
            first.instructions = entry.lines.size();
            first.error = first.error || finding.error;
            return false;
        }
        finding.accesses = accesses_of(finding);
        finding.ctas = finding.not_started ? 0 : 1;
        finding.instructions = 1;
        for (SourceFrame& frame : finding.frames) {
            frame.function = demangled(frame.function);
        }
        finding.source = chain(finding.frames);
        if (complete) {
            complete(finding);
        }
        entry.finding = finding;
    }
    if (on_new) {
        on_new(finding);
    }
    return true;
}

void Report::count(Known known, std::uint64_t count, std::uint64_t accesses)
{
    const std::scoped_lock lock(mutex_);
    if (known.clears == clears_) {
        Finding& finding = entries_[known.entry].finding;
        finding.count += count;
        finding.accesses += accesses;
    }
}

std::vector<Finding> Report::findings() const
{
    const std::scoped_lock lock(mutex_);
    std::vector<Finding> all;
    for (const Entry& entry : entries_) {
        all.push_back(entry.finding);
    }
    return all;
}

std::uint64_t Report::total() const
{
    std::uint64_t sum = 0;
    for (const Finding& finding : findings()) {
        sum += finding.count;
    }
    return sum;
}

void Report::clear()
{
    const std::scoped_lock lock(mutex_);
    entries_.clear();
    index_.clear();
    ++clears_;
}

std::string Report::text() const
{
    std::string text;
    for (const Finding& finding : findings()) {
        text += to_text(finding);
    }
    return text;
}

}  // namespace tessera::emulator
