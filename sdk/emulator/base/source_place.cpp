#include "base/source_place.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

namespace tessera::emulator {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_name = 100;
constexpr std::size_t longest_line = 160;

constexpr std::array toolkit_parts{
    std::string_view{"/cccl/"},
    std::string_view{"/cuda/std/"},
    std::string_view{"/include/cuda/"},
    std::string_view{"/include/crt/"},
    std::string_view{"/cuda/__"},
    std::string_view{"/usr/local/cuda"},
    std::string_view{"/usr/include/"},
    std::string_view{"/lib/gcc/"},
    std::string_view{"/include/thrust/"},
    std::string_view{"/include/cub/"},
    std::string_view{"/thrust/detail/"},
    std::string_view{"/include/nv/"},
    std::string_view{"/libcudacxx/"},
    std::string_view{"/include/c++/"},
    std::string_view{"/include/cuda_"},
    std::string_view{"/cudafe1.stub.c"},
    std::string_view{"/include/cooperative_groups"},
};
constexpr std::array library_parts{
    std::string_view{"/include/tessera/"}, std::string_view{"/sdk/src/"},
    std::string_view{"/kernels/gemm/"},    std::string_view{"/kernels/simt/"},
    std::string_view{"/kernels/hopper/"},  std::string_view{"/kernels/blackwell/"},
    std::string_view{"/include/cute/"},    std::string_view{"/include/cutlass/"},
};

template <std::size_t count>
bool contains_any(std::string_view text, const std::array<std::string_view, count>& parts)
{
    return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

/// "void f<int>(T)" without the return type.
std::string_view without_result(std::string_view name)
{
    int depth = 0;
    std::size_t start = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const char c = name[i];
        if (c == '(' && depth == 0) {
            if (name.substr(i).starts_with("(anonymous namespace)")) {
                i += std::string_view("(anonymous namespace)").size() - 1;
                continue;
            }
            break;  // the parameters
        }
        if (c == '<' || c == '(') {
            ++depth;
        } else if ((c == '>' && depth > 0) || c == ')') {
            --depth;
        } else if (c == ' ' && depth == 0) {
            if (name.substr(0, i).ends_with("operator")) {
                return name.substr(start);  // "operator bool", "operator new"
            }
            start = i + 1;
        }
    }
    return name.substr(start);
}

std::string replaced(std::string text, std::string_view part, std::string_view by)
{
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) {
        text.replace(at, part.size(), by);
    }
    return text;
}

/// "f<(Kind)3, (bool)1>" without the types of the numbers.
std::string without_casts(std::string text)
{
    for (std::size_t open = text.find('('); open != std::string::npos; open = text.find('(', open + 1)) {
        const std::size_t close = text.find(')', open);
        const bool is_argument = open > 0 && (text[open - 1] == '<' || text[open - 1] == ' ');
        if (close != std::string::npos && is_argument && close + 1 < text.size() &&
            (text[close + 1] == '-' || (text[close + 1] >= '0' && text[close + 1] <= '9'))) {
            text.erase(open, close + 1 - open);
        }
    }
    return text;
}

/// With template and function arguments nested deeper than `levels` left out.
std::string folded(std::string_view name, int levels)
{
    std::string result;
    int depth = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const char c = name[i];
        const bool is_operator =
            std::string_view(result).ends_with("operator") || (c == '>' && i > 0 && name[i - 1] == '-');
        const bool opens = (c == '<' || c == '(') && !is_operator;
        const bool closes = ((c == '>' && depth > 0) || c == ')') && !is_operator;
        if (opens && depth++ == levels) {
            const bool is_empty = i + 1 < name.size() && (name[i + 1] == '>' || name[i + 1] == ')');
            result += c;
            result += is_empty ? "" : "...";
        } else if (closes && --depth == levels) {
            result += c;
        } else if (depth <= levels) {
            result += c;
        }
    }
    return result;
}

}  // namespace

Owner owner_of(std::string_view file)
{
    if (contains_any(file, library_parts)) {
        return Owner::library;
    }
    return contains_any(file, toolkit_parts) || file.ends_with(".cudafe1.stub.c") ? Owner::toolkit : Owner::program;
}

std::size_t leading_frame(std::span<const SourceFrame> frames)
{
    std::size_t best = 0;
    for (std::size_t i = 1; i < frames.size(); ++i) {
        if (owner_of(frames[i].file) > owner_of(frames[best].file)) {
            best = i;
        }
    }
    return best;
}

std::string shown_path(std::string_view file)
{
    if (owner_of(file) != Owner::program) {
        constexpr std::string_view include = "/include/";
        const std::size_t at = file.rfind(include);
        const std::size_t kernels = file.rfind("/kernels/");
        return std::string(at != std::string_view::npos        ? file.substr(at + include.size())
                           : kernels != std::string_view::npos ? file.substr(kernels + 1)
                                                               : file);
    }
    const fs::path path = fs::path(file).lexically_normal();
    if (!path.is_absolute()) {
        return path.string();
    }
    std::error_code error;
    const fs::path here = fs::current_path(error);
    const std::string relative = error ? std::string() : path.lexically_relative(here).string();
    if (!relative.empty() && !relative.starts_with("..")) {
        return relative;
    }
    if (!fs::exists(path, error)) {
        return (fs::path("...") / path.parent_path().filename() / path.filename()).string();
    }
    constexpr std::string_view too_far = "../../../..";
    const bool is_near = !relative.empty() && !relative.starts_with(too_far) && relative.size() < path.string().size();
    return is_near ? relative : path.string();
}

std::string shown_place(const SourceFrame& frame)
{
    return frame.file.empty() ? std::string() : fmt::format("{}:{}", shown_path(frame.file), frame.line);
}

std::string source_line(const SourceFrame& frame)
{
    std::error_code error;
    if (frame.file.empty() || !fs::is_regular_file(frame.file, error)) {
        return {};
    }
    std::ifstream file(frame.file);
    std::string line;
    for (std::uint32_t number = 0; number < frame.line; ++number) {
        if (!std::getline(file, line)) {
            return {};
        }
    }
    std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos) {
        return {};
    }
    line = line.substr(first, line.find_last_not_of(' ') + 1 - first);
    return line.size() > longest_line ? line.substr(0, longest_line) + "..." : line;
}

std::string demangled(std::string_view name)
{
    if (!name.starts_with("_Z")) {  // a C name; "g" would be a type's code
        return std::string(name);
    }
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
    return text == nullptr ? std::string(name) : text.get();
}

std::string shown_function(std::string_view name)
{
    const std::string full = demangled(name);
    const std::string plain = replaced(
        without_casts(replaced(std::string(without_result(full)), "(anonymous namespace)::", "")), "> >", ">>");
    std::string text = folded(plain, 1);
    if (text.size() > longest_name) {
        text = folded(plain, 0);
    }
    return text.size() > longest_name ? text.substr(0, longest_name - 3) + "..." : text;
}

std::string shown_kernel(std::string_view name)
{
    std::string text = shown_function(name);
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
        if (text[i] == '(' && depth == 0) {
            return text.substr(0, i);
        }
    }
    return text;
}

}  // namespace tessera::emulator
