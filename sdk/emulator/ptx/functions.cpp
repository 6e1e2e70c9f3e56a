#include "ptx/functions.hpp"

#include <fmt/format.h>

#include "ptx/statements.hpp"

namespace tessera::emulator::ptx {
namespace {

std::uint32_t parse_number(TokenCursor& cursor, const Token& directive)
{
    return static_cast<std::uint32_t>(
        cursor.expect_integer(fmt::format("the number after .{}", directive.text), UINT32_MAX));
}

/// One to three extents; missing ones are 1.
std::vector<std::uint32_t> parse_extents(TokenCursor& cursor, const Token& directive)
{
    constexpr std::size_t dimensions = 3;
    std::vector<std::uint32_t> extents;
    do {
        if (extents.size() == dimensions) {
            cursor.fail(fmt::format("more than {} extents after .{}", dimensions, directive.text), cursor.current());
        }
        extents.push_back(parse_number(cursor, directive));
    } while (cursor.accept(','));
    extents.resize(dimensions, 1);
    return extents;
}

/// Directives between the parameters and the body.
void parse_tuning(TokenCursor& cursor, Function& function)
{
    while (cursor.at_dotted()) {
        const Token directive = cursor.take();
        const std::string_view name = directive.text;
        if (name == "maxntid") {
            function.max_threads = parse_extents(cursor, directive);
        } else if (name == "reqntid") {
            function.required_threads = parse_extents(cursor, directive);
        } else if (name == "reqnctapercluster") {
            function.required_cluster = parse_extents(cursor, directive);
        } else if (name == "minnctapersm") {
            function.min_ctas_per_sm = parse_number(cursor, directive);
        } else if (name == "maxnreg") {
            function.max_registers = parse_number(cursor, directive);
        } else if (name == "maxclusterrank") {
            function.max_cluster_rank = parse_number(cursor, directive);
        } else if (name == "explicitcluster") {
            function.explicit_cluster = true;
        } else if (name == "noreturn") {
            function.no_return = true;
        } else if (name == "blocksareclusters") {
            function.blocks_are_clusters = true;
        } else if (name == "maxnctapersm" || name == "local_maxnreg" || name == "abi_preserve" ||
                   name == "abi_preserve_control") {
            (void)parse_number(cursor, directive);  // hints for register allocation
        } else if (name == "pragma") {
            parse_pragma(cursor);
        } else if (name == "attribute") {
            (void)parse_attributes(cursor);
        } else {
            cursor.fail(fmt::format("'.{}' has no meaning between the parameters and the body of a function", name),
                        directive);
        }
    }
}

}  // namespace

void parse_prototype(TokenCursor& cursor, Function& function)
{
    if (cursor.accept_dotted("attribute")) {
        (void)parse_attributes(cursor);
    }
    if (!function.kernel && cursor.at('(')) {
        function.results = parse_parameters(cursor);
    }
    function.name = cursor.expect_word("the name of a function").text;
    if (cursor.at('(')) {
        function.parameters = parse_parameters(cursor);
    }
    parse_tuning(cursor, function);
}

Function parse_function(TokenCursor& cursor, const Linkage& linkage)
{
    Function function;
    function.location = cursor.location();
    function.external = linkage.external;
    function.visible = linkage.visible;
    function.weak = linkage.weak;
    function.kernel = cursor.take().text == "entry";
    parse_prototype(cursor, function);
    if (cursor.accept(';')) {
        return function;
    }
    if (!cursor.at('{')) {
        cursor.fail_expected(fmt::format("the body of '{}' or ';'", function.name));
    }
    cursor.forget_sources();
    function.body = parse_block(cursor);
    function.defined = true;
    return function;
}

}  // namespace tessera::emulator::ptx
