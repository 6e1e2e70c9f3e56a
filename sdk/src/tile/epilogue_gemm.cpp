/// Checks and choices of products with an epilogue of the user's.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gemm/gemm_operands.hpp"
#include "tessera/device.hpp"
#include "tessera/error.hpp"
#include "tessera/gemm.hpp"
#include "tessera/tile/epilogue_operands.hpp"

namespace tessera {
namespace detail {

void require_tensor_core_product(StreamRef stream, const GemmOperands& operands, const std::source_location& caller)
{
    constexpr std::string_view operation = "Gemm::launch";
    require_operands(stream, operands, Epilogue(), operation, caller);
    if (operands.a.type == ElementType::f32) {
        raise(ErrorCode::invalid_argument, operation, caller,
              "A and B are f32, which tensor cores do not multiply: an epilogue of your own needs them",
              "as_tf32(a) and as_tf32(b), or f16 or bf16");
    }
}

}  // namespace detail

namespace tile::detail {
namespace {

constexpr std::string_view operation = "Gemm::launch";

}  // namespace

void require_epilogue_vector(const char* name, std::size_t size, std::int64_t extent,
                             const std::source_location& caller)
{
    if (static_cast<std::uint64_t>(extent) != size) {
        tessera::detail::raise(ErrorCode::shape_mismatch, operation, caller,
                               fmt::format("{} of the epilogue has {} elements, and D {} {}", name, size, extent,
                                           std::string_view(name) == "per_row" ? "rows" : "columns"));
    }
}

void require_epilogue_matrix(std::int64_t rows, std::int64_t columns, std::int64_t count, std::int64_t d_rows,
                             std::int64_t d_columns, std::int64_t d_count, const std::source_location& caller)
{
    if (rows != d_rows || columns != d_columns || (count != 1 && count != d_count)) {
        tessera::detail::raise(
            ErrorCode::shape_mismatch, operation, caller,
            fmt::format("per_element of the epilogue has {} matrices of {}x{}, and D has {} of {}x{}", count, rows,
                        columns, d_count, d_rows, d_columns),
            "as many matrices as D, or a single one");
    }
}

GemmTile choose_gemm_tile(StreamRef stream, std::int64_t rows, std::int64_t columns, std::int64_t count,
                          const std::source_location& caller)
{
    struct Candidate {
        GemmTile tile;
        std::int64_t rows;
        std::int64_t columns;
        double speed;  // of a full GPU, relative: on an H200, `tessera-bench tiles`
    };
    constexpr std::array candidates{Candidate{GemmTile::wide, 128, 256, 1.0},
                                    Candidate{GemmTile::square, 128, 128, 0.95},
                                    Candidate{GemmTile::small, 64, 128, 0.75}};
    const std::int64_t sms = std::max(Device(stream.device(), caller).properties().sm_count, 1);
    const auto seconds = [&](const Candidate& candidate) {
        const std::int64_t tiles = (rows + candidate.rows - 1) / candidate.rows *
                                   ((columns + candidate.columns - 1) / candidate.columns) * count;
        const std::int64_t waves = (tiles + sms - 1) / sms;
        return static_cast<double>(waves * candidate.rows * candidate.columns) / candidate.speed;
    };
    return std::min_element(candidates.begin(), candidates.end(),
                            [&](const Candidate& x, const Candidate& y) { return seconds(x) < seconds(y); })
        ->tile;
}

}  // namespace tile::detail
}  // namespace tessera
