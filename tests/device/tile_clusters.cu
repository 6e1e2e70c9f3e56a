#include "tile_clusters.hpp"

#include <array>
#include <initializer_list>

#include "tile_clusters.cuh"

namespace tessera::test {

namespace {

/// Names an instance of a template of tile_clusters.cuh.
std::string type_of(const std::string& name, std::initializer_list<std::string> arguments)
{
    std::string type = "tessera::test::" + name;
    char before = '<';
    for (const std::string& argument : arguments) {
        type += before + argument;
        before = ',';
    }
    return type + ">";
}

template <int M, int N, int Rows, int Columns, bool WholeTiles = false>
ClusterProgram gemm()
{
    return {std::to_string(Rows) + "x" + std::to_string(Columns) + (WholeTiles ? " of whole tiles" : ""),
            M,
            N,
            Rows,
            Columns,
            WholeTiles,
            false,
            0,
            [](StreamRef stream, const ClusterProduct& p) {
                return tile::launch(stream, ClusterGemm<M, N, Rows, Columns, WholeTiles>{p.a, p.b, p.d});
            },
            type_of("ClusterGemm", {std::to_string(M), std::to_string(N), std::to_string(Rows), std::to_string(Columns),
                                    WholeTiles ? "true" : "false"}),
            false};
}

template <Otherwise How, int Rows, int Columns, int Extent = 64>
ClusterProgram other(const char* name, bool is_refused, int most_k = 0)
{
    return {name,
            Extent,
            Extent,
            Rows,
            Columns,
            false,
            is_refused,
            most_k,
            [](StreamRef stream, const ClusterProduct& p) {
                return tile::launch(
                    stream, OtherGemm<How, Rows, Columns, Extent>{p.a, p.b, p.d, static_cast<int>(p.a.columns())});
            },
            type_of("OtherGemm", {"tessera::test::Otherwise(" + std::to_string(static_cast<int>(How)) + ")",
                                  std::to_string(Rows), std::to_string(Columns), std::to_string(Extent)}),
            true};
}

const std::array programs{
    gemm<64, 64, 2, 1>(), gemm<64, 64, 1, 2>(), gemm<128, 64, 2, 2>(), gemm<64, 64, 4, 1>(), gemm<64, 128, 1, 4>(),
    gemm<64, 64, 4, 2>(), gemm<128, 128, 2, 1, true>(), gemm<64, 64, 2, 2, true>(),
    // Of pairs on Blackwell:
    gemm<128, 128, 4, 1>(), gemm<128, 128, 2, 2>(), gemm<128, 256, 4, 2>(), gemm<128, 128, 8, 1, true>(),
    other<Otherwise::holds_a, 4, 1, 128>("holds A of pairs", false, 64),
    other<Otherwise::from_last_row, 2, 2, 128>("from the last row of pairs", false),
    other<Otherwise::branches_by_column, 2, 2, 128>("branches by the column of pairs", true),
    other<Otherwise::holds_a, 2, 1>("holds A", false, 64),
    other<Otherwise::from_last_row, 2, 2>("from the last row", false),
    other<Otherwise::cuts_bands, 2, 2>("cuts A's bands", false),
    other<Otherwise::asks_row, 2, 1>("asks for a row", true),
    other<Otherwise::asks_row, 1, 2>("asks for a row that a cluster shares", true),
    other<Otherwise::asks_column, 1, 2>("asks for a column", true),
    other<Otherwise::shares_nothing, 2, 2>("shares nothing", true)};

}  // namespace

int cluster_program_count() { return static_cast<int>(programs.size()); }
const ClusterProgram& cluster_program(int index) { return programs[static_cast<std::size_t>(index)]; }

}  // namespace tessera::test
