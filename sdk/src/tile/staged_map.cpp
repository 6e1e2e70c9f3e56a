#include <fmt/format.h>

#include <cstring>
#include <string>
#include <type_traits>

#include "tessera/device.hpp"
#include "tessera/error.hpp"
#include "tessera/tile/tcgen05_plan.hpp"
#include "tessera/tile/view_arguments.hpp"

namespace tessera::tile::detail {

void require_extents(const char* operation, std::int64_t compiled_rows, std::int64_t compiled_columns,
                     std::int64_t rows, std::int64_t columns, const std::source_location& caller)
{
    const auto fits = [](std::int64_t compiled, std::int64_t extent) {
        return compiled == any_extent || compiled == extent;
    };
    if (fits(compiled_rows, rows) && fits(compiled_columns, columns)) {
        return;
    }
    const auto named = [](std::int64_t extent) {
        return extent == any_extent ? std::string("any") : std::to_string(extent);
    };
    tessera::detail::raise(ErrorCode::shape_mismatch, operation, caller,
                           fmt::format("the matrix is {}x{}, and the program is compiled for {}x{}", rows, columns,
                                       named(compiled_rows), named(compiled_columns)),
                           "a matrix of these extents, or Extents<> in the type of the input or output for any");
}

bool encode_map(const StagedMap& of, const AnyMemory& memory, AnyTensorMap<3>& map, const std::source_location& caller)
{
    if (memory.device < 0 || memory.rows == 0 || memory.columns == 0 || !memory.in_vectors) {
        return false;
    }
    const Device device(memory.device, caller);
    if (!device.properties().has_tensor_maps) {
        return false;
    }
    const auto inner = static_cast<std::uint64_t>(of.row_major ? memory.columns : memory.rows);
    const auto outer = static_cast<std::uint64_t>(of.row_major ? memory.rows : memory.columns);
    // A single line may have any leading dimension; TMA wants a multiple of 16 bytes.
    const std::uint64_t line = outer == 1 ? (inner * of.element_bytes + 15) / 16 * 16
                                          : static_cast<std::uint64_t>(memory.leading_dimension) * of.element_bytes;
    const auto matrices = static_cast<std::uint64_t>(memory.batches);
    const std::uint64_t matrix =
        matrices == 1 ? line * outer : static_cast<std::uint64_t>(memory.batch_stride) * of.element_bytes;
    if (matrix == 0) {
        return false;  // one matrix for all of a batch
    }
    const tessera::detail::TensorMapRequest request{.element_name = to_string(of.element),
                                                    .type = of.type,
                                                    .element_bytes = of.element_bytes,
                                                    .rank = 3,
                                                    .data = memory.data,
                                                    .extents = {inner, outer, matrices},
                                                    .strides = {line, matrix},
                                                    .box = {of.in_line, of.box_lines, 1},
                                                    .swizzle = of.swizzle,
                                                    .out_of_bounds = OutOfBounds::zero,
                                                    .promotion = L2Promotion::b128};
    map = AnyTensorMap<3>::from_bits(tessera::detail::encode_tensor_map(device, request, caller));
    return true;
}

void encode_maps_of_pair(const Tcgen05Plan& plan, std::byte* program, const std::source_location& caller)
{
    for (int i = 0; i < plan.map_count; ++i) {
        const PairMap& pair = plan.maps[i];
        AnyTensorMap<3> map;
        static_assert(std::is_trivially_copyable_v<decltype(map)>);
        if (pair.is_halved && encode_map(pair.of, pair.memory, map, caller)) {
            std::memcpy(program + pair.offset, &map, sizeof map);
        }
    }
}

}  // namespace tessera::tile::detail
