#include "tile_pairs.hpp"

#include <type_traits>

#include "tile_pairs.cuh"

namespace tessera::test {
namespace {

template <class T, int N, class OrderB, int ClusterRows = 0, int ClusterColumns = 1>
PairProgram<T> program(const std::string& element)
{
    constexpr bool b_is_column_major = std::is_same_v<OrderB, ColumnMajor>;
    const std::string order = b_is_column_major ? "ColumnMajor" : "RowMajor";
    const std::string cluster = std::to_string(ClusterRows) + "," + std::to_string(ClusterColumns);
    return {element + ", " + std::to_string(N) + " columns, B " + order + ", cluster " + cluster,
            "tessera::test::PairGemm<tessera::" + element + "," + std::to_string(N) + ",tessera::" + order + "," +
                cluster + ">",
            N,
            b_is_column_major,
            ClusterRows == 0 ? 2 : ClusterRows * ClusterColumns,
            [](StreamRef stream, const PairProduct<T>& p) {
                using Program = PairGemm<T, N, OrderB, ClusterRows, ClusterColumns>;
                if constexpr (b_is_column_major) {
                    return tile::launch(stream, Program{p.a, p.bt, p.d});
                } else {
                    return tile::launch(stream, Program{p.a, p.b, p.d});
                }
            }};
}

}  // namespace

template <>
std::vector<PairProgram<f16>> pair_programs()
{
    // Halves of B have other lines, or other boxes, than whole tiles: but for 128 columns.
    return {program<f16, 16, RowMajor>("f16"),       program<f16, 32, RowMajor>("f16"),
            program<f16, 64, RowMajor>("f16"),       program<f16, 128, RowMajor>("f16"),
            program<f16, 192, RowMajor>("f16"),      program<f16, 192, RowMajor, 4, 1>("f16"),
            program<f16, 64, RowMajor, 2, 2>("f16"), program<f16, 16, ColumnMajor>("f16"),
            program<f16, 48, ColumnMajor>("f16"),    program<f16, 64, ColumnMajor>("f16"),
            program<f16, 160, ColumnMajor>("f16"),   program<f16, 192, ColumnMajor>("f16"),
            program<f16, 240, ColumnMajor>("f16"),   program<f16, 192, ColumnMajor, 4, 2>("f16")};
}

template <>
std::vector<PairProgram<f8e4m3>> pair_programs()
{
    return {program<f8e4m3, 64, ColumnMajor>("f8e4m3"), program<f8e4m3, 192, ColumnMajor>("f8e4m3")};
}

template <>
std::vector<PairProgram<tf32>> pair_programs()
{
    return {program<tf32, 64, ColumnMajor>("tf32")};
}

}  // namespace tessera::test
