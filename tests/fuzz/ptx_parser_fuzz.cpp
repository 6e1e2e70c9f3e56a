// For any text, the PTX parser either throws ParseError, or makes a tree whose printed form it parses again.
//
// With libFuzzer: compile this file and the parser by clang++ -fsanitize=fuzzer,address,undefined. Without: link
// fuzz_driver.cpp.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../emulator/ptx/print.hpp"
#include "ptx/parser.hpp"

namespace {

namespace ptx = tessera::emulator::ptx;

/// Ends the process, as fuzzers expect, if the parser broke a promise.
void require(bool kept, std::string_view promise, std::string_view detail)
{
    if (!kept) {
        fmt::print(stderr, "the PTX parser broke a promise: {}\n{}\n", promise, detail);
        std::abort();
    }
}

void check_error(const ptx::ParseError& error)
{
    const std::string_view what = error.what();
    require(what.starts_with(fmt::format("PTX line {}: ", error.location().line)), "an error names its line", what);
    require(what.find_first_of("\n\r\t") == std::string_view::npos, "an error is one line", what);
    constexpr std::size_t long_enough = 1000;
    require(what.size() < long_enough, "an error is short", what);
}

void check_text(const ptx::Block& block)
{
    for (const ptx::Statement& statement : block.statements) {
        if (const auto* const instruction = std::get_if<ptx::Instruction>(&statement.value)) {
            require(instruction->text.ends_with(';') && instruction->text.find('\n') == std::string::npos,
                    "an instruction's text is one line that ends in ';'", instruction->text);
        } else if (const auto* const inner = std::get_if<ptx::Block>(&statement.value)) {
            check_text(*inner);
        }
    }
}

void check_variable(const ptx::Variable& variable)
{
    constexpr std::uint64_t max_bytes = std::uint64_t{1} << 48;
    require(variable.size() <= max_bytes, "sizes do not overflow", variable.name);
    const std::uint64_t element = ptx::size_of(variable.type);
    require(variable.initial.size() * element <= variable.size() || variable.initial.empty(),
            "there are not more initial values than elements", variable.name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ptx::Module module;
    try {
        module = ptx::parse(text);
    } catch (const ptx::ParseError& error) {
        check_error(error);
        return 0;
    }
    for (const ptx::Variable& variable : module.variables) {
        check_variable(variable);
    }
    for (const ptx::Function& function : module.functions) {
        check_text(function.body);
    }
    const std::string printed = ptx::print(module);
    try {
        const std::string printed_again = ptx::print(ptx::parse(printed));
        require(printed == printed_again, "a printed tree parses to the same tree",
                fmt::format("first print:\n{}\nsecond print:\n{}", printed, printed_again));
    } catch (const ptx::ParseError& error) {
        require(false, "a printed tree can be parsed", fmt::format("{}\n{}", error.what(), printed));
    }
    return 0;
}
