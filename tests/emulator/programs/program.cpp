#include "program.hpp"

#include <cxxabi.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

namespace tessera::emulator::test {

namespace {

unsigned seeds_of_clean_programs = 50;

std::string text_of(const std::string& path)
{
    std::ifstream file(path);
    if (!file) {
        throw std::runtime_error(path + " cannot be read");
    }
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<std::string> lines_of(const std::string& text)
{
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

std::string demangled(const std::string& name)
{
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                           &std::free);
    return status == 0 ? std::string(text.get()) : name;
}

std::string ptx_path(const std::string& name) { return std::string(TESSERA_TEST_PTX_FOLDER) + "/" + name + ".ptx"; }

/// The text of a source line. Files are read once.
std::string source_line(const Place& place)
{
    static std::map<std::string, std::vector<std::string>> files;
    auto [file, is_new] = files.try_emplace(place.file);
    if (is_new && std::ifstream(place.file)) {
        file->second = lines_of(text_of(place.file));
    }
    return place.line >= 1 && place.line <= file->second.size() ? file->second[place.line - 1] : "";
}

/// The PTX lines that a finding names; for a deadlock those of all waiting warps.
std::vector<std::uint32_t> lines_of(const Finding& finding)
{
    std::vector<std::uint32_t> lines{finding.ptx_line};
    constexpr std::string_view words = "at PTX line ";
    for (std::size_t at = 0; finding.kind == FindingKind::deadlock; at += words.size()) {
        at = finding.message.find(words, at);
        if (at == std::string::npos) {
            break;
        }
        lines.push_back(static_cast<std::uint32_t>(std::stoul(finding.message.substr(at + words.size()))));
    }
    return lines;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

unsigned clean_seeds() { return seeds_of_clean_programs; }
void set_clean_seeds(unsigned seeds) { seeds_of_clean_programs = seeds; }

TestProgram::TestProgram(const std::string& name, std::string_view device)
    : run(text_of(ptx_path(name)), device), lines_(lines_of(text_of(ptx_path(name))))
{}

std::string TestProgram::kernel(const std::string& name, const std::string& arguments, int fault) const
{
    const std::string start = name + "<" + arguments;
    const std::string end = fmt::format("Fault){}>", fault);
    for (const std::string& kernel : run.module().kernel_names()) {
        const std::string text = demangled(kernel);
        if (text.find(start) != std::string::npos && text.find(end) != std::string::npos) {
            return kernel;
        }
    }
    throw std::runtime_error(fmt::format("no kernel {}{}", start, end));
}

std::vector<Place> TestProgram::places(std::uint32_t ptx_line) const
{
    std::map<unsigned, std::string> files;
    for (const std::string& line : lines_) {
        unsigned number = 0;
        if (std::sscanf(line.c_str(), " .file %u", &number) == 1) {
            const std::size_t quote = line.find('"');
            files[number] = line.substr(quote + 1, line.find('"', quote + 1) - quote - 1);
        }
    }
    for (std::size_t at = ptx_line; at-- > 0;) {
        const std::string& line = lines_.at(at);
        unsigned file = 0;
        unsigned number = 0;
        if (std::sscanf(line.c_str(), " .loc %u %u", &file, &number) != 2) {
            continue;
        }
        std::vector<Place> places{{files[file], number}};
        const std::size_t inlined = line.find("inlined_at");
        if (inlined != std::string::npos &&
            std::sscanf(line.c_str() + inlined, "inlined_at %u %u", &file, &number) == 2) {
            places.push_back({files[file], number});
        }
        return places;
    }
    return {};
}

Reference reference(const std::vector<double>& a, const std::vector<double>& b, int m, int n, int k,
                    double result_epsilon)
{
    Reference result;
    for (std::size_t row = 0; row < static_cast<std::size_t>(m); ++row) {
        for (std::size_t column = 0; column < static_cast<std::size_t>(n); ++column) {
            double sum = 0;
            double magnitude = 0;
            const auto depth = static_cast<std::size_t>(k);
            for (std::size_t i = 0; i < depth; ++i) {
                const double product = a[row * depth + i] * b[column * depth + i];
                sum += product;
                magnitude += std::abs(product);
            }
            result.d.push_back(sum);
            // f32 sums in some order, tensor cores with truncation: two units in the last place for each addition
            result.bound.push_back(std::abs(sum) * result_epsilon + magnitude * k * 0x1p-23);
        }
    }
    return result;
}

std::vector<double> random_values(std::size_t count, unsigned seed)
{
    std::mt19937 generator(seed);
    std::vector<double> values(count);
    for (double& value : values) {
        value = (static_cast<double>(generator() % 255) - 127) / 64;  // 7 bits
    }
    return values;
}

std::vector<std::uint16_t> to_bf16(const std::vector<double>& values)
{
    std::vector<std::uint16_t> bits;
    bits.reserve(values.size());
    for (const double value : values) {
        bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16));
    }
    return bits;
}

std::vector<double> from_bf16(const std::vector<std::uint16_t>& bits)
{
    std::vector<double> values;
    values.reserve(bits.size());
    for (const std::uint16_t value : bits) {
        values.push_back(std::bit_cast<float>(std::uint32_t{value} << 16));
    }
    return values;
}

std::array<std::byte, tensor_map_bytes> bf16_map(std::uint64_t address, int rows, int columns, int box_rows,
                                                 int box_columns)
{
    TensorMap map;
    map.element = TensorElement::bf16;
    map.rank = 2;
    map.address = address;
    map.extents = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), 1, 1, 1};
    map.strides = {static_cast<std::uint64_t>(columns) * 2};
    map.box = {static_cast<std::uint16_t>(box_columns), static_cast<std::uint16_t>(box_rows), 1, 1, 1};
    map.swizzle = TensorSwizzle::span_128;
    if (const std::string refused = refusals(map); !refused.empty()) {
        throw std::runtime_error(refused);
    }
    return encode(map);
}

std::string missed(const std::string& family, const PlantedFault& planted, Schedule schedule)
{
    return fmt::format("{} {} is not found under {}", family, planted.name, name_of(schedule));
}

void report_missed(const std::string& text) { FAIL_CHECK(text); }

void check_outcome(const TestProgram& program, const std::string& family, const PlantedFault& planted,
                   const Outcome& outcome, bool& found)
{
    const std::string what = fmt::format("{} {} under {}, seed {}: {}\n{:.2000}", family, planted.name,
                                         name_of(program.run.options.schedule), program.run.options.seed,
                                         outcome.result.message, outcome.text);
    INFO(what);
    const std::string kernel = outcome.findings.empty() ? "" : demangled(outcome.findings[0].kernel);
    for (const Finding& finding : outcome.findings) {
        if (std::find(planted.kinds.begin(), planted.kinds.end(), finding.kind) == planted.kinds.end()) {
            continue;
        }
        const std::vector<std::uint32_t> lines = lines_of(finding);
        std::string source;
        bool located = false;
        for (const std::uint32_t line : lines) {
            const std::vector<Place> places = program.places(line);
            REQUIRE_FALSE(places.empty());
            CHECK((line != finding.ptx_line ||
                   finding.source.starts_with(fmt::format("{}:{}", places[0].file, places[0].line))));
            const auto is_at = [&](const FaultPlace& place) {
                return program.line(line).find(place.ptx) != std::string::npos &&
                       std::ranges::any_of(places, [&](const Place& frame) {
                           return source_line(frame).find(place.source) != std::string::npos;
                       });
            };
            if (std::ranges::any_of(planted.places, is_at)) {
                located = true;
                source = fmt::format("{}:{}, PTX line {}: {}", file_name(places.back().file), places.back().line, line,
                                     program.line(line));
                break;
            }
        }
        if (!located || kernel.find(fmt::format("Fault){}>", planted.fault)) == std::string::npos) {
            continue;
        }
        if (planted.within_seeds != 1 || program.run.options.seed == 1) {
            fmt::print("{} {}, {}: {} at {}\n    {}\n", family, planted.name, name_of(program.run.options.schedule),
                       name_of(finding.kind), source, finding.message.substr(0, finding.message.find("\n")));
        }
        found = true;
        return;
    }
    if (planted.within_seeds == 1) {
        CHECK(found);  // shows the findings instead
    }
}

void check_clean_outcome(const Outcome& outcome, const Reference& expected)
{
    INFO(outcome.text);
    INFO(outcome.result.message);
    REQUIRE(outcome.result.code == 0);
    REQUIRE(outcome.findings.empty());
    REQUIRE(outcome.d.size() == expected.d.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < outcome.d.size(); ++i) {
        wrong += std::abs(outcome.d[i] - expected.d[i]) <= expected.bound[i] ? 0 : 1;
    }
    REQUIRE(wrong == 0);
}

}  // namespace tessera::emulator::test
