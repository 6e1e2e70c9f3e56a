#include "tessera/tile/epilogue_program.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <vector>

#include "program/program_state.hpp"

namespace tessera::tile::detail {

namespace {

struct TileSize {
    int rows;
    int columns;
    int warpgroups;
};

TileSize size_of_tile(GemmTile tile)
{
    switch (tile) {
        case GemmTile::wide: return {128, 256, 2};
        case GemmTile::square: return {128, 128, 2};
        case GemmTile::small: break;
    }
    return {64, 128, 1};
}

std::string matrix_member(const char* kind, const ProgramArgument& matrix, int rows, int columns, std::string_view name)
{
    return fmt::format("    tile::{}<{}, {}, {}, {}> {};\n", kind, to_string(matrix.member.element), rows, columns,
                       matrix.member.row_major ? "RowMajor" : "ColumnMajor", name);
}

/// Writes the program.
std::string source_of(const std::string& expression, GemmTile tile, const ProgramArgument& a, const ProgramArgument& b,
                      const ProgramArgument& d, const EpilogueArgument* operands, std::size_t count)
{
    const auto [m, n, warpgroups] = size_of_tile(tile);
    const int k = 128 / static_cast<int>(size_of(a.member.element));
    std::string members = matrix_member("Input", a, m, k, "a") + matrix_member("Input", b, k, n, "b") +
                          matrix_member("Output", d, m, n, "d");
    std::string inputs;
    std::string parameters;
    std::string names;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string name = fmt::format("x{}", i);
        const ProgramArgument& operand = operands[i].argument;
        switch (operands[i].shape) {
            case OperandShape::row: members += matrix_member("Input", operand, 1, n, name); break;
            case OperandShape::column: members += matrix_member("Input", operand, m, 1, name); break;
            case OperandShape::tile: members += matrix_member("Input", operand, m, n, name); break;
            case OperandShape::value: members += fmt::format("    float {};\n", name); continue;
        }
        inputs += fmt::format(", {}", name);
        parameters += fmt::format(", const {}& {}_", to_string(operand.member.element), name);
        names += fmt::format("                        const auto {0} = static_cast<float>({0}_);\n", name);
    }
    // The expression has a line of its own, so that an error in it is its line 1.
    return fmt::format(R"(#include "tessera/tile/beside.cuh"
using namespace tessera;
struct EpilogueGemm {{
{members}    static constexpr tile::Hints hints{{.warpgroups = {warpgroups}, .warps_m = {warps_m}}};

    TESSERA_TILE void operator()(auto cta) const
    {{
        for (auto at : d.tiles(cta)) {{
            auto sum = tile::zeros<float, {m}, {n}>(cta);
            const auto extras = tile::detail::prepared_beside<decltype(sum)>(at{inputs});
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {{
                sum = mma(left, right, sum);
            }}
            d.store(at, tile::detail::finished_beside<{d}>(
                    [&](float value, int row, int column{parameters}) -> float {{
{names}                        return
#line 1 "the epilogue"
{expression}
;
                    }}, sum, at, extras));
        }}
    }}
}};
)",
                       fmt::arg("members", members), fmt::arg("warpgroups", warpgroups),
                       fmt::arg("warps_m", warpgroups == 1 ? 2 : 4), fmt::arg("m", m), fmt::arg("n", n),
                       fmt::arg("d", to_string(d.member.element)), fmt::arg("parameters", parameters),
                       fmt::arg("names", names), fmt::arg("expression", expression), fmt::arg("inputs", inputs));
}

/// Returns the program of a source. The process keeps the latest.
Program program_of(const std::string& source)
{
    constexpr std::size_t most_programs = 256;
    static std::mutex mutex;
    static std::map<std::string, Program> programs;
    const std::scoped_lock lock(mutex);
    if (const auto found = programs.find(source); found != programs.end()) {
        return found->second;
    }
    if (programs.size() >= most_programs) {
        programs.clear();  // launches under way hold their own copies
    }
    return programs.emplace(source, Program::from_source(source, {.name = "the epilogue"})).first->second;
}

}  // namespace

void launch_epilogue_program(const std::string& expression, StreamRef stream, GemmTile tile, const ProgramArgument& a,
                             const ProgramArgument& b, const ProgramArgument& d, const EpilogueArgument* operands,
                             std::size_t count, const std::source_location& caller)
{
    const Program program = program_of(source_of(expression, tile, a, b, d, operands, count));
    std::vector<ProgramArgument> arguments{a, b, d};
    for (std::size_t i = 0; i < count; ++i) {
        arguments.push_back(operands[i].argument);
    }
    KernelAccess::launch(program.kernel("EpilogueGemm", caller), LaunchOn(stream, caller), arguments.data(),
                         arguments.size());
}

}  // namespace tessera::tile::detail
