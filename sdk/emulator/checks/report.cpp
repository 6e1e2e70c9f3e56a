#include "checks/report.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>

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
    std::string_view{"missing-proxy-fence"},
    std::string_view{"stage-overwritten"},
    std::string_view{"async-read-pending"},
    std::string_view{"accumulator-before-commit"},
    std::string_view{"tmem-leak"},
    std::string_view{"tmem-after-release"},
    std::string_view{"tmem-allocation"},
    std::string_view{"tmem-lanes"},
    std::string_view{"invalid-descriptor"},
    std::string_view{"invalid-operand"},
    std::string_view{"cta-mask"},
    std::string_view{"barrier-misuse"},
    std::string_view{"transaction-count"},
    std::string_view{"cta-group"},
    std::string_view{"cluster-protocol"},
    std::string_view{"exit-before-read"},
    std::string_view{"divergent-aligned"},
    std::string_view{"deadlock"},
    std::string_view{"trap"},
    std::string_view{"assertion"},
    std::string_view{"launch-control"},
    std::string_view{"resource-leak"},
    std::string_view{"not-emulated"},
};
static_assert(kind_names.size() == static_cast<std::size_t>(FindingKind::not_emulated) + 1);

std::string key_of(const Finding& finding)
{
    // Findings without a place in PTX (leaks, host calls) differ by what they say.
    return fmt::format("{}|{}|{}|{}", static_cast<int>(finding.kind), finding.kernel, finding.ptx_line,
                       finding.ptx_line == 0 ? std::string_view(finding.message) : std::string_view());
}

std::string lanes_text(LaneMask lanes)
{
    return std::has_single_bit(lanes) ? fmt::format("lane {}", std::countr_zero(lanes))
                                      : fmt::format("lanes {:#010x}", lanes);
}

std::string quoted(std::string_view text)
{
    std::string result = "\"";
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if (character == '"' || character == '\\') {
            result += '\\';
            result += character;
        } else if (byte < 0x20) {
            result += fmt::format("\\u{:04x}", byte);
        } else {
            result += character;
        }
    }
    return result + "\"";
}

std::string to_json(const Finding& finding)
{
    return fmt::format(
        "{{\"kind\": {}, \"error\": {}, \"count\": {}, \"message\": {}, \"kernel\": {}, \"cta\": [{}, {}, {}], "
        "\"warp\": {}, \"lanes\": {}, \"ptx_line\": {}, \"ptx\": {}, \"source\": {}}}",
        quoted(name_of(finding.kind)), finding.error, finding.count, quoted(finding.message), quoted(finding.kernel),
        finding.cta.x, finding.cta.y, finding.cta.z, finding.warp, finding.lanes, finding.ptx_line,
        quoted(finding.ptx_text), quoted(finding.source));
}

}  // namespace

std::string_view name_of(FindingKind kind) noexcept
{
    const auto index = static_cast<std::size_t>(kind);
    return index < kind_names.size() ? kind_names[index] : "unknown";
}

std::string to_text(const Finding& finding)
{
    std::string text =
        fmt::format("{}{}: {}\n", finding.error ? "error: " : "", name_of(finding.kind), finding.message);
    if (!finding.kernel.empty()) {
        text += fmt::format("    in {}, CTA ({}, {}, {}), warp {}", finding.kernel, finding.cta.x, finding.cta.y,
                            finding.cta.z, finding.warp);
        text += finding.lanes == 0 ? "\n" : ", " + lanes_text(finding.lanes) + "\n";
    }
    if (finding.ptx_line != 0) {
        text += fmt::format("    PTX line {}: {}\n", finding.ptx_line, finding.ptx_text);
    }
    if (!finding.source.empty()) {
        text += fmt::format("    from {}\n", finding.source);
    }
    if (finding.count > 1) {
        text += fmt::format("    {} times\n", finding.count);
    }
    return text;
}

bool Report::add(Finding finding)
{
    const std::string key = key_of(finding);
    {
        const std::scoped_lock lock(mutex_);
        const auto [entry, is_new] = index_.emplace(key, findings_.size());
        if (!is_new) {
            Finding& known = findings_[entry->second];
            known.count += finding.count;
            known.error = known.error || finding.error;
            return false;
        }
        findings_.push_back(finding);
    }
    if (on_new) {
        on_new(finding);
    }
    return true;
}

std::vector<Finding> Report::findings() const
{
    const std::scoped_lock lock(mutex_);
    return findings_;
}

std::uint64_t Report::total() const
{
    const std::scoped_lock lock(mutex_);
    std::uint64_t sum = 0;
    for (const Finding& finding : findings_) {
        sum += finding.count;
    }
    return sum;
}

void Report::clear()
{
    const std::scoped_lock lock(mutex_);
    findings_.clear();
    index_.clear();
}

std::string Report::text() const
{
    std::string text;
    for (const Finding& finding : findings()) {
        text += to_text(finding);
    }
    return text;
}

std::string Report::json() const
{
    std::string text = "{\"findings\": [";
    const char* separator = "\n  ";
    for (const Finding& finding : findings()) {
        text += separator + to_json(finding);
        separator = ",\n  ";
    }
    return text + fmt::format("\n], \"total\": {}}}\n", total());
}

}  // namespace tessera::emulator
