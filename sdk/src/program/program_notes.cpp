#include "program/program_notes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

namespace tessera::tile::detail {
namespace {

/// What a register of the plan holds, as far as it matters.
struct Content {
    enum class Kind : std::uint8_t { unknown, number, address, loaded } kind = Kind::unknown;
    std::int64_t value = 0;  // a number; or an offset in the parameters: of an address, or of what was loaded
    friend bool operator==(const Content&, const Content&) = default;
};
using Registers = std::map<std::string_view, Content>;

std::optional<std::int64_t> number_in(std::string_view text)
{
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Splits a line of PTX at spaces, commas, braces and semicolons.
std::vector<std::string_view> words_of(std::string_view line)
{
    constexpr std::string_view separators = " \t,;{}";
    std::vector<std::string_view> words;
    for (std::size_t begin = line.find_first_not_of(separators); begin != std::string_view::npos;) {
        const std::size_t end = std::min(line.find_first_of(separators, begin), line.size());
        words.push_back(line.substr(begin, end - begin));
        begin = line.find_first_not_of(separators, end);
    }
    return words;
}

template <class Visit>
void for_each_line(std::string_view text, Visit visit)
{
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        visit(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

Content content_of(const Registers& registers, std::string_view word)
{
    if (const auto number = number_in(word)) {
        return {Content::Kind::number, *number};
    }
    const auto found = registers.find(word);
    return found == registers.end() ? Content{} : found->second;
}

/// Notes what an instruction writes. A register that is written twice, with different contents, is unknown.
void write(Registers& registers, std::string_view name, const Content& content)
{
    const auto [place, is_new] = registers.emplace(name, content);
    if (!is_new && !(place->second == content)) {
        place->second = {};
    }
}

/// Returns the offset that "[name+offset]" addresses in the parameters.
std::optional<std::int64_t> offset_in(const Registers& registers, std::string_view address)
{
    if (address.size() < 2 || address.front() != '[' || address.back() != ']') {
        return std::nullopt;
    }
    address = address.substr(1, address.size() - 2);
    const std::size_t plus = std::min(address.find('+'), address.size());
    const Content base = content_of(registers, address.substr(0, plus));
    const auto added = plus == address.size() ? std::optional<std::int64_t>(0) : number_in(address.substr(plus + 1));
    return base.kind == Content::Kind::address && added ? std::optional(base.value + *added) : std::nullopt;
}

void follow(Registers& registers, const std::vector<std::string_view>& words)
{
    const std::string_view operation = words[0];
    if (words.size() >= 3 && operation.starts_with("ld.param")) {
        const auto offset = offset_in(registers, words.back());
        for (std::size_t i = 1; i + 1 < words.size(); ++i) {  // of a vector, too
            write(
                registers, words[i],
                offset ? Content{Content::Kind::loaded, *offset + static_cast<std::int64_t>(4 * (i - 1))} : Content{});
        }
    } else if (words.size() == 3 && operation.starts_with("mov.")) {
        write(registers, words[1], content_of(registers, words[2]));
    } else if (words.size() == 4 && operation.starts_with("add.s64")) {
        Content sum = content_of(registers, words[2]);
        const Content added = content_of(registers, words[3]);
        if (sum.kind == Content::Kind::address && added.kind == Content::Kind::number) {
            sum.value += added.value;
        } else {
            sum = {};
        }
        write(registers, words[1], sum);
    } else if (words.size() >= 2 && words[1].starts_with('%')) {
        write(registers, words[1], {});
    }
}

constexpr std::string_view plan_entry = "tessera_tile_plan";
constexpr std::string_view tcgen05_plan_entry = "tessera_tile_plan_tcgen05";

std::size_t find_entry(std::string_view ptx, std::string_view name)
{
    return ptx.find(".entry " + std::string(name) + "(");
}

/// Returns the body of a kernel that has notes.
std::string_view plan_in(std::string_view ptx, std::string_view name)
{
    const std::size_t entry = find_entry(ptx, name);
    const std::size_t begin = entry == std::string_view::npos ? entry : ptx.find("\n{", entry);
    const std::size_t end = begin == std::string_view::npos ? begin : ptx.find("\n}", begin);
    if (end == std::string_view::npos) {
        throw std::runtime_error("there is no plan");
    }
    return ptx.substr(begin + 2, end - begin - 2);
}

ProgramMembers members_in(std::string_view ptx)
{
    constexpr std::string_view name = "tessera_tile_members[";
    const std::size_t found = ptx.find(name);
    const std::size_t begin = found == std::string_view::npos ? found : ptx.find('{', found);
    const std::size_t end = begin == std::string_view::npos ? begin : ptx.find('}', begin);
    if (end == std::string_view::npos) {
        throw std::runtime_error("there are no members");
    }
    std::array<unsigned char, sizeof(ProgramMembers)> bytes{};
    const std::vector<std::string_view> words = words_of(ptx.substr(begin, end - begin));
    if (words.size() > bytes.size()) {
        throw std::runtime_error("the members have another size");
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
        bytes[i] = static_cast<unsigned char>(number_in(words[i]).value_or(0));
    }
    ProgramMembers members;
    std::memcpy(&members, bytes.data(), sizeof members);
    if (members.count > most_members) {
        throw std::runtime_error("there are too many members");
    }
    return members;
}

/// Notes of one plan, while they are read.
class Reader {
public:
    /// @param tcgen05  where what is noted of it goes; null for other instructions
    Reader(std::string_view ptx, std::string_view entry, const std::vector<std::uint32_t>& offsets, PlanNotes& notes,
           Tcgen05Notes* tcgen05)
        : offsets_(offsets),
          notes_(notes),
          tcgen05_(tcgen05),
          parameter_(std::string(entry) + "_param_0"),
          plan_(plan_in(ptx, entry))
    {
        registers_.emplace(parameter_, Content{Content::Kind::address, 0});
        // Registers first: a loop may use one above its definition.
        for_each_line(plan_, [&](std::string_view line) {
            const std::vector<std::string_view> words = words_of(line);
            if (!words.empty() && words[0] != "//" && words[0][0] != '.' && words[0][0] != '@') {
                follow(registers_, words);
            }
        });
    }

    void read()
    {
        for_each_line(plan_, [&](std::string_view line) {
            const std::vector<std::string_view> words = words_of(line);
            if (words.size() >= 2 && words[0] == "//" && words[1].starts_with("tessera.")) {
                note(words[1].substr(8), {words.begin() + 2, words.end()});
            }
        });
    }

private:
    void note(std::string_view what, const std::vector<std::string_view>& values)
    {
        const auto value = [&](std::size_t i) {
            return i < values.size() ? content_of(registers_, values[i]) : Content{};
        };
        if (what == "scratch") {
            notes_.scratch_bytes = std::max(notes_.scratch_bytes, bytes(value(0)));
        } else if (what == "matrix") {
            notes_.matrices.push_back(member(value(0)));
        } else if (what == "places") {
            notes_.places.push_back(member(value(0)));
        } else if (what == "whole") {
            notes_.whole.push_back(
                {member(value(0)), static_cast<Along>(bytes(value(1))), static_cast<Along>(bytes(value(2)))});
        } else if (what == "gather") {
            notes_.gathers = true;
        } else if (what == "place_is_read") {
            notes_.reads_row = notes_.reads_row || may_be_true(value(0));
            notes_.reads_column = notes_.reads_column || may_be_true(value(1));
        } else if (what == "shared_bands") {
            notes_.streams_rows = notes_.streams_rows || is_true(value(0));
            notes_.streams_columns = notes_.streams_columns || is_true(value(1));
        } else if (what == "stream") {
            notes_.stage_bytes = std::max(notes_.stage_bytes, bytes(value(0)));
            notes_.streams.emplace_back();
        } else if (what == "band" && !notes_.streams.empty()) {
            const Content along_columns = value(1);
            const Content is_whole = value(2);
            notes_.streams.back().push_back(
                {member(value(0)),
                 along_columns.kind == Content::Kind::number ? std::optional(along_columns.value != 0) : std::nullopt,
                 is_true(is_whole)});
        } else if (what == "held") {
            notes_.held_bytes = std::max(notes_.held_bytes, bytes(value(0)));
            notes_.held = std::max(notes_.held, static_cast<int>(bytes(value(1))));
            notes_.held_members.push_back(member(value(2)));
        } else if (tcgen05_ != nullptr) {
            note_for_tcgen05(what, value, *tcgen05_);
        }
    }

    template <class Value>
    void note_for_tcgen05(std::string_view what, Value value, Tcgen05Notes& notes)
    {
        Tcgen05Plan& needs = notes.needs;
        const auto number = [&](std::size_t i) -> std::optional<std::int64_t> {
            const Content content = value(i);
            return content.kind == Content::Kind::number ? std::optional(content.value) : std::nullopt;
        };
        if (what == "refusal") {
            needs.refuse(static_cast<Tcgen05Refusal>(number(0).value_or(0)));
        } else if (what == "pair_refusal") {
            needs.refuse_pairs(static_cast<PairRefusal>(number(0).value_or(0)));
        } else if (what == "product") {
            needs.products++;
        } else if (what == "pair_stream") {
            if (const auto size = number(0)) {
                needs.note_stream_of_pair(static_cast<std::size_t>(*size));
            } else {
                needs.refuse_pairs(PairRefusal::bands);
            }
        } else if (what == "pair_map") {
            const auto is_halved = number(1);
            notes.pair_maps.push_back({member(value(0)), is_halved ? std::optional(*is_halved != 0) : std::nullopt});
        } else if (what == "tensor_tile") {
            const auto columns = number(0);
            const auto count = number(1);
            if (columns && count) {
                needs.note_tile(static_cast<std::uint32_t>(*columns), static_cast<int>(*count));
            } else {
                needs.refuse(Tcgen05Refusal::unknown);
            }
        }
    }

    static bool is_true(const Content& content) { return content == Content{Content::Kind::number, 1}; }
    static bool may_be_true(const Content& content) { return !(content == Content{Content::Kind::number, 0}); }
    /// A number that the program must tell.
    static std::size_t bytes(const Content& content)
    {
        if (content.kind != Content::Kind::number) {
            throw std::runtime_error("it holds tiles in a loop or under a condition, and how many depends on the run");
        }
        return static_cast<std::size_t>(content.value);
    }
    MemberNumber member(const Content& content) const
    {
        if (content.kind != Content::Kind::loaded) {
            return std::nullopt;
        }
        for (std::size_t i = offsets_.size(); i-- > 0;) {
            if (content.value >= offsets_[i]) {
                return i;
            }
        }
        return std::nullopt;
    }

    const std::vector<std::uint32_t>& offsets_;
    PlanNotes& notes_;
    Tcgen05Notes* tcgen05_;
    std::string parameter_;
    std::string_view plan_;
    Registers registers_;
};

}  // namespace

ProgramNotes notes_of(std::string_view ptx)
{
    ProgramNotes notes;
    notes.members = members_in(ptx);
    std::uint32_t end = 0;
    for (std::uint32_t i = 0; i < notes.members.count; ++i) {
        const Member& member = notes.members.of[i];
        const std::uint32_t offset = (end + member.alignment - 1) / member.alignment * member.alignment;
        notes.offsets.push_back(offset);
        end = offset + member.bytes;
    }
    Reader(ptx, plan_entry, notes.offsets, notes.plan, nullptr).read();
    if (find_entry(ptx, tcgen05_plan_entry) != std::string_view::npos) {
        Tcgen05Notes& tcgen05 = notes.tcgen05.emplace();
        Reader(ptx, tcgen05_plan_entry, notes.offsets, tcgen05.plan, &tcgen05).read();
    }
    return notes;
}

}  // namespace tessera::tile::detail
