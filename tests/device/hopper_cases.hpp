#pragma once

// Cases for the Hopper kernels: problems that TMA can load or not, and choices of a configuration, clusters and their split.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/tma_matrix.hpp"
#include "support/gemm_runner.hpp"
#include "support/hopper_device.hpp"
#include "support/signature.hpp"

namespace tessera::test {

/// Number of clusters for the tiles.
enum class Split : std::uint8_t {
    whole,            // one per tile
    several_tiles,    // one per two tiles
    all_tiles,        // one
    shared_by_two,    // stream-K: a part of a tile or more
    shared_by_many,   // stream-K: at least three parts per tile
    a_stage_of_each,  // stream-K: as many clusters as stages
};
/// Which operands TMA cannot address, and why; for a configuration with the fallback load, or for one after repacking.
enum class Unaligned : std::uint8_t {
    lines_of_a,
    lines_of_b,
    lines_of_both,
    address_of_a,
    address_of_b,
    all,
    transposed_a,  // aligned, but in an order that the tensor core cannot read
    transposed_b
};

inline std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// Gives A or B a leading dimension that TMA accepts.
inline void align(Layout& layout, std::int64_t rows, std::int64_t columns, InputTypes input)
{
    const auto elements = detail::tma_alignment / static_cast<std::int64_t>(size_of(input));
    const std::int64_t extent = std::max<std::int64_t>(layout.row_major ? columns : rows, 1);
    layout.padding = divide_up(extent, elements) * elements - extent + layout.padding / elements * elements;
}

/// Gives A or B an address (and perhaps a leading dimension) that TMA cannot use. The leading dimension alone is enough
/// if there are several lines. Leaves no gaps between lines if possible.
inline void unalign(Layout& layout, std::int64_t rows, std::int64_t columns, InputTypes input, bool address,
                    bool stride)
{
    const auto elements = detail::tma_alignment / static_cast<std::int64_t>(size_of(input));
    const std::int64_t extent = layout.row_major ? columns : rows;
    if (stride) {
        layout.padding = extent % elements == 0 ? 1 : 0;
    }
    const bool has_lines = (layout.row_major ? rows : columns) > 1;
    layout.offset = address || !has_lines ? 1 : 0;
}

/// Makes A and B loadable by TMA and readable by the tensor core.
inline void make_loadable(GemmCase& gemm)
{
    if (size_of(gemm.input) != 2) {
        gemm.a.row_major = true;
        gemm.b.row_major = false;
    }
    align(gemm.a, gemm.m, gemm.k, gemm.input);
    align(gemm.b, gemm.k, gemm.n, gemm.input);
}

/// Makes A and B loadable only by a kernel with the fallback load.
inline void make_unloadable(GemmCase& gemm, Unaligned which)
{
    const bool all = which == Unaligned::all;
    // 16-bit operands can be loaded in any order: these become unaligned instead of transposed.
    const bool transposed = which == Unaligned::transposed_a || which == Unaligned::transposed_b;
    const bool transposes = transposed && size_of(gemm.input) != 2;
    if (transposes) {
        gemm.a.row_major = which != Unaligned::transposed_a;
        gemm.b.row_major = which == Unaligned::transposed_b;
    }
    align(gemm.a, gemm.m, gemm.k, gemm.input);
    align(gemm.b, gemm.k, gemm.n, gemm.input);
    const bool b_alone = which == Unaligned::lines_of_b || which == Unaligned::address_of_b;
    const bool a_alone = which == Unaligned::lines_of_a || which == Unaligned::address_of_a;
    if (!b_alone && !transposes) {
        unalign(gemm.a, gemm.m, gemm.k, gemm.input, all || which == Unaligned::address_of_a,
                which != Unaligned::address_of_a);
    }
    if (!a_alone && !transposes) {
        unalign(gemm.b, gemm.k, gemm.n, gemm.input, all || which == Unaligned::address_of_b,
                which != Unaligned::address_of_b);
    }
    if (all) {
        gemm.a.batch_gap = 3;
        gemm.b.batch_gap = 1;
    }
}

/// Scales the output of a case into the range of its type.
inline void make_exact(GemmCase& gemm)
{
    if (gemm.addend == Addend::none) {
        gemm.beta = 0;
    }
    if (gemm.data == Data::signature && gemm.k > longest_exact_k) {
        gemm.data = Data::random;
    }
    if (gemm.data == Data::signature) {  // by powers of two only, so it stays exact
        if (gemm.output == ElementType::f16) {
            gemm.alpha *= 0x1p-9F;
            gemm.alpha *= gemm.has_row_scales() ? 0.5F : 1.0F;  // the largest is twice A's scale
            gemm.alpha *= gemm.has_column_scales() ? 0.5F : 1.0F;
        }
        // Offsets the scale of 2; otherwise a half from C would need one more bit.
        gemm.alpha *= gemm.scale_a ? 0.5F : 1.0F;
        gemm.alpha *= gemm.scale_b ? 0.5F : 1.0F;
    }
}

inline std::string describe(const detail::KernelChoice& choice, const kernels::HopperKernel& kernel)
{
    return fmt::format("{}, {} clusters of {}x{}x{}, raster groups of {}{}{}", kernel.name, choice.clusters,
                       choice.cluster_m, choice.cluster_n, choice.cluster_k, choice.band,
                       choice.swapped ? ", swapped" : "", choice.stream_k ? ", stream-K" : "");
}

/// The properties that a test requires of a choice.
struct Wanted {
    std::size_t config = 0;
    std::pair<std::uint8_t, std::uint8_t> cluster{1, 1};
    std::uint8_t layers = 1;
    Split split = Split::whole;
    bool swapped = false;
    std::uint8_t band = 1;
    Unaligned unaligned = Unaligned::lines_of_both;
    bool repacks = false;  // repacks such operands, if the configuration has no fallback load
};

/// Returns the valid choice closest to the wanted one.
inline detail::KernelChoice choice_for(const GemmProblem& problem, const Wanted& wanted)
{
    const kernels::HopperKernel& kernel = kernels::hopper_kernels(size_of(problem.input))[wanted.config];
    const detail::HopperShape shape = detail::hopper_shape(problem, wanted.swapped);
    detail::KernelChoice choice{.variant = Variant::hopper,
                                .config = static_cast<std::uint8_t>(wanted.config),
                                .swapped = wanted.swapped,
                                .band = wanted.band};
    const bool along_k = size_of(problem.input) != 2;
    const auto shareable = [&](int rows, int sharers, bool k_major) {
        return rows % (sharers * (along_k || k_major ? 1 : kernels::hopper_mn_major_lines)) == 0;
    };
    if (!kernel.copies && shareable(kernel.tile_n, wanted.cluster.first, shape.b_k_major) &&
        shareable(kernel.tile_m, wanted.cluster.second, shape.a_k_major)) {
        std::tie(choice.cluster_m, choice.cluster_n) = wanted.cluster;
    }
    const std::int64_t tiles = divide_up(shape.m, std::int64_t{kernel.tile_m} * choice.cluster_m) *
                               divide_up(shape.n, std::int64_t{kernel.tile_n} * choice.cluster_n) * shape.batches;
    const std::int64_t stages = std::max<std::int64_t>(divide_up(shape.k, kernel.block_k), 1);
    const std::int64_t layer_size = choice.cluster_m * choice.cluster_n;
    const std::int64_t fit = device().sm_count * kernel.ctas / layer_size;
    std::int64_t clusters = tiles;
    if (wanted.layers > 1 && kernel.has_layers() && stages > 1) {
        std::int64_t layers = wanted.layers;
        while (layers > stages || layers * layer_size > 8) {
            layers /= 2;
        }
        const std::int64_t most_parts = stages / layers;
        const std::int64_t parts = wanted.split == Split::shared_by_two     ? 2
                                   : wanted.split == Split::shared_by_many  ? 3
                                   : wanted.split == Split::a_stage_of_each ? most_parts
                                                                            : 1;
        choice.cluster_k = static_cast<std::uint8_t>(layers);
        if (layers > 1) {
            clusters = tiles * std::min(parts, most_parts);
            choice.stream_k = clusters > tiles;
        }
    }
    if (choice.cluster_k == 1) {
        const bool can_be = kernel.shares_tiles || wanted.split < Split::shared_by_two;
        const Split split = can_be ? wanted.split : Split::several_tiles;
        switch (split) {
            case Split::whole: break;
            case Split::several_tiles: clusters = divide_up(tiles, 2); break;
            case Split::all_tiles: clusters = 1; break;
            case Split::shared_by_two: clusters = std::max<std::int64_t>(2, tiles * 2 / 3 + 1); break;
            case Split::shared_by_many: clusters = 3 * tiles + 1; break;
            case Split::a_stage_of_each: clusters = tiles * stages; break;
        }
        choice.stream_k = split >= Split::shared_by_two;
        clusters = std::min(clusters, choice.stream_k ? std::min(fit, tiles * stages) : fit);
    }
    choice.clusters = static_cast<std::uint16_t>(clusters);
    return choice;
}

}  // namespace tessera::test
