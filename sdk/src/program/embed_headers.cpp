/// Writes a C++ source with the text of the SDK's headers that a tile program needs which is compiled at run time: those that
/// tessera/tile.cuh includes where NVRTC compiles it. Without comments; lines keep their numbers.
///
/// Usage: embed_headers FOLDER OUTPUT DEPENDENCIES. The last is a file for make that says which headers were read.

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// Headers of the standard library that CUDA's own stands for.
constexpr std::array<std::string_view, 10> standard_headers{"array",       "bit",     "cmath",      "concepts",
                                                            "cstddef",     "cstdint", "functional", "initializer_list",
                                                            "type_traits", "utility"};

std::string read(const std::string& path)
{
    const std::ifstream file(path);
    if (!file) {
        throw std::runtime_error(path + " cannot be read");
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Returns a line without its comment and the space around it.
std::string stripped(const std::string& line)
{
    bool in_string = false;
    std::size_t end = line.size();
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\\' && in_string) {
            ++i;
        } else if (line[i] == '"') {
            in_string = !in_string;
        } else if (!in_string && line.compare(i, 2, "//") == 0) {
            end = i;
            break;
        }
    }
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || first >= end) {
        return {};
    }
    const std::size_t last = line.find_last_not_of(' ', end - 1);
    return line.substr(first, last - first + 1);
}

/// Follows #if and its like, as far as they are about NVRTC.
class Conditions {
public:
    /// Takes a line. Returns false if NVRTC does not see it.
    bool sees(const std::string& line)
    {
        if (line.starts_with("#if")) {
            const bool is_ours = line == "#ifdef __CUDACC_RTC__" || line == "#ifndef __CUDACC_RTC__";
            hidden_.push_back(line == "#ifndef __CUDACC_RTC__");
            ours_.push_back(is_ours);
        } else if (line.starts_with("#el") && !ours_.empty() && ours_.back()) {
            hidden_.back() = !hidden_.back();
        } else if (line.starts_with("#endif") && !ours_.empty()) {
            hidden_.pop_back();
            ours_.pop_back();
        }
        for (const bool hidden : hidden_) {
            if (hidden) {
                return line.starts_with("#if") || line.starts_with("#el") || line.starts_with("#endif");
            }
        }
        return true;
    }

private:
    std::vector<bool> hidden_;
    std::vector<bool> ours_;
};

void collect(const std::string& folder, const std::string& name, std::map<std::string, std::string>& texts)
{
    if (!texts.emplace(name, std::string()).second) {
        return;
    }
    std::istringstream lines(read(folder + "/" + name));
    std::string text, line;
    Conditions conditions;
    while (std::getline(lines, line)) {
        const std::string kept = stripped(line);
        if (conditions.sees(kept)) {
            constexpr std::string_view include = "#include \"tessera/";
            if (kept.starts_with(include)) {
                collect(folder, kept.substr(10, kept.size() - 11), texts);
            }
            text += kept;
        }
        text += '\n';
    }
    texts[name] = text;
}

void write(const std::map<std::string, std::string>& texts, const std::string& path)
{
    std::ofstream file(path);
    file << "#include \"program/embedded_headers.hpp\"\n\nnamespace tessera::tile::detail {\n\nconst std::size_t "
            "embedded_header_count = "
         << texts.size() << ";\nconst char* const embedded_header_names[] = {";
    for (const auto& [name, text] : texts) {
        file << "\n    \"" << name << "\",";
    }
    file << "\n};\nconst char* const embedded_header_texts[] = {";
    for (const auto& [name, text] : texts) {
        file << "\n    R\"tessera(" << text << ")tessera\",";
    }
    file << "\n};\n\n}  // namespace tessera::tile::detail\n";
    if (!file.flush()) {
        throw std::runtime_error(path + " cannot be written");
    }
}

}  // namespace

int main(int argc, char** argv)
try {
    if (argc != 4) {
        throw std::runtime_error("usage: embed_headers FOLDER OUTPUT DEPENDENCIES");
    }
    std::map<std::string, std::string> texts;
    collect(argv[1], "tessera/tile.cuh", texts);
    collect(argv[1], "tessera/tile/beside.cuh", texts);  // for epilogues as text
    collect(argv[1], "tessera/tile/program_entries.cuh", texts);
    std::ofstream dependencies(argv[3]);
    dependencies << argv[2] << ":";
    for (const auto& [name, text] : texts) {
        dependencies << " " << argv[1] << "/" << name;
    }
    dependencies << "\n";
    for (const std::string_view name : standard_headers) {
        texts[std::string(name)] = "#pragma once\n#include <cuda/std/" + std::string(name) +
                                   ">\nnamespace std { using namespace cuda::std; }\n";
    }
    write(texts, argv[2]);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "embed_headers: %s\n", error.what());
    return 1;
}
