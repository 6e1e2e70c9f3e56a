#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "tessera/device.hpp"
#include "tessera/error.hpp"
#include "tessera/tile/choice.hpp"

namespace tessera::tile::detail {
namespace {

constexpr std::string_view operation = "tile::launch";
constexpr std::size_t alignment = 1024;  // of the ring: what the widest swizzle repeats after
constexpr std::size_t bytes_of_barriers = std::size_t{2} * (most_stages + most_held) * sizeof(std::uint64_t);
constexpr int copied_stages = 4;  // on mma.sync: more only keep other CTAs away

/// Returns true if the kernel's code for the current device is not empty.
bool has_code(const Candidate& candidate)
{
    if (candidate.kernel == nullptr) {
        return false;
    }
    cudaFuncAttributes attributes{};
    const cudaError_t status = cudaFuncGetAttributes(&attributes, candidate.kernel);
    tessera::detail::forget(status);
    return status == cudaSuccess && attributes.maxThreadsPerBlock == candidate.threads;
}

void require_plan(const Plan& plan, StreamRef stream, const std::source_location& caller)
{
    using tessera::detail::raise;
    if (plan.tiles < 0) {
        raise(ErrorCode::invalid_argument, operation, caller, "the program goes through no partition of an output",
              "for (auto at : output.tiles(cta)) { ... output.store(at, tile); }");
    }
    if (plan.unequal_tiles[0] != plan.unequal_tiles[1]) {
        raise(ErrorCode::shape_mismatch, operation, caller,
              fmt::format("the program goes through one output of {} tiles, and one of {}", plan.unequal_tiles[0],
                          plan.unequal_tiles[1]),
              "outputs of one program have equal numbers of tiles");
    }
    if (plan.unequal_steps[0] != plan.unequal_steps[1]) {
        raise(ErrorCode::shape_mismatch, operation, caller,
              fmt::format("a stream has a band of {} elements, and one of {}", plan.unequal_steps[0],
                          plan.unequal_steps[1]),
              "for a product, A has as many columns as B has rows");
    }
    if (plan.unequal_batches[0] != plan.unequal_batches[1]) {
        raise(ErrorCode::shape_mismatch, operation, caller,
              fmt::format("the output is a batch of {} matrices, an input one of {}", plan.unequal_batches[0],
                          plan.unequal_batches[1]),
              "inputs are single matrices, or batches of as many");
    }
    if (plan.not_whole[2] != 0) {
        raise(ErrorCode::shape_mismatch, operation, caller,
              fmt::format("a matrix of {}x{} is not whole tiles of {}x{}, and the program's hints say whole_tiles",
                          plan.not_whole[0], plan.not_whole[1], plan.not_whole[2], plan.not_whole[3]),
              "extents that are multiples of the tile's, or hints without whole_tiles");
    }
    if (plan.too_few[2] + plan.too_few[3] != 0) {
        raise(
            ErrorCode::shape_mismatch, operation, caller,
            fmt::format("a matrix has {}x{} tiles where the output has {}x{}, and the program's hints say whole_tiles",
                        plan.too_few[0], plan.too_few[1], plan.too_few[2], plan.too_few[3]),
            "as many tiles as the output has, or hints without whole_tiles");
    }
    if (plan.held_steps > 1) {
        raise(ErrorCode::shape_mismatch, operation, caller,
              fmt::format("the program holds a band of {} tiles", plan.held_steps),
              "one tile: an input whose tiles are as long as its matrix; a stream goes through more");
    }
    if (plan.held > most_held) {
        raise(ErrorCode::launch_refused, operation, caller,
              fmt::format("the program holds {} tiles at once", plan.held),
              fmt::format("at most {}: load the others by a stream", most_held));
    }
    if (plan.tiles > std::numeric_limits<std::int32_t>::max()) {
        raise(ErrorCode::size_overflow, operation, caller, fmt::format("the output has {} tiles", plan.tiles),
              "at most 2147483647: larger tiles");
    }
    if (plan.devices[1] >= 0) {
        raise(ErrorCode::device_mismatch, operation, caller,
              fmt::format("a matrix is on device {}, another one on device {}", plan.devices[0], plan.devices[1]));
    }
    if (plan.devices[0] >= 0) {
        tessera::detail::require_same_device(operation, caller, "the stream", stream.device(), "a matrix",
                                             plan.devices[0]);
    }
}

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

/// Divides shared memory for a program with streams. @throws Error  `launch_refused` if two steps do not fit
SharedMemory with_streams(const Plan& plan, const DeviceProperties& device, std::size_t wished,
                          std::size_t barrier_bytes, const std::source_location& caller)
{
    const std::size_t held = rounded_up(plan.scratch_bytes, alignment);
    const std::size_t ring = held + plan.held_bytes;
    const std::size_t most = device.shared_memory_per_block_bytes;
    std::size_t stages = 0;
    if (plan.stage_bytes > 0) {
        const std::size_t fit = most > ring + barrier_bytes ? (most - ring - barrier_bytes) / plan.stage_bytes : 0;
        stages = std::min({fit, wished, std::size_t{most_stages}});
        if (stages < 2) {
            tessera::detail::raise(
                ErrorCode::launch_refused, operation, caller,
                fmt::format(
                    "a step of the program's stream has {} bytes, held tiles have {}, and exchanges take {}: two steps "
                    "do not fit into the {} bytes of shared memory of a CTA on {}",
                    plan.stage_bytes, plan.held_bytes, plan.scratch_bytes, most, device.name),
                "smaller tiles, or hints with at least 2 stages");
        }
    }
    return {.held = static_cast<std::uint32_t>(held),
            .ring = static_cast<std::uint32_t>(ring),
            .stage_bytes = static_cast<std::uint32_t>(plan.stage_bytes),
            .stages = static_cast<std::int32_t>(stages),
            .bytes = static_cast<std::uint32_t>(ring + stages * plan.stage_bytes + barrier_bytes)};
}

constexpr std::string_view not_by_tma =
    "TMA cannot address an input: addresses and strides are no multiples of 16 bytes";

constexpr std::string_view by_gathering = "a stream has rows that a vector names: TMA does not gather";

/// Returns why TMA does not fill the stages of a program; nothing if it does.
std::string_view why_not_by_tma(const Plan& plan)
{
    return plan.gathers ? by_gathering : plan.by_tma ? std::string_view() : not_by_tma;
}

/// Returns why a program does not run on tcgen05 on a device that has it; nothing if it does.
std::string_view why_not_tcgen05(const PlanWithTensorMemory& plan, const Candidates& candidates)
{
    if (!has_code(candidates.tcgen05)) {
        return "the program is not compiled for tcgen05: its architectures lack the device's family, such as 100f";
    }
    if (plan.tcgen05.refusal != Tcgen05Refusal::none) {
        return text_of(plan.tcgen05.refusal);
    }
    if (plan.tcgen05.products == 0) {
        return "the program has no products";
    }
    const auto tiles = static_cast<std::uint32_t>(plan.tcgen05.tiles);
    if (tiles > most_slots || tiles * plan.tcgen05.columns > tensor_memory_columns) {
        return "the program's sums do not fit into tensor memory at once: smaller tiles";
    }
    return why_not_by_tma(plan.plan);
}

/// Returns why a program runs on tcgen05 without pairs of CTAs; nothing if in pairs.
std::string_view why_not_pairs(const Tcgen05Plan& plan, const Hints& hints)
{
    if (!hints.pairs || hints.cluster == 1) {
        return "the program's hints want no pairs of CTAs";
    }
    if (plan.pair_refusal != PairRefusal::none) {
        return text_of(plan.pair_refusal);
    }
    return plan.tile_rows == 1 ? "the output has one row of tiles: there are no pairs" : std::string_view();
}

/// Places of an output that the CTAs of a cluster have at once.
struct ClusterShape {
    std::int64_t rows;
    std::int64_t columns;
};
ClusterShape cluster_of(const Hints& hints) { return {hints.cluster / hints.cluster_columns, hints.cluster_columns}; }

/// Returns why a program runs on wgmma without the clusters that its hints want; nothing if it runs in them.
std::string_view why_not_in_clusters_of_hopper(const Plan& plan, const Hints& hints)
{
    const ClusterShape shape = cluster_of(hints);
    if (!(plan.streams_rows && shape.columns > 1) && !(plan.streams_columns && shape.rows > 1)) {
        return "the CTAs of a cluster would stream nothing that they share: row(at) is the same for places beside each "
               "other, column(at) for those above each other";
    }
    if ((plan.reads_row && shape.rows > 1) || (plan.reads_column && shape.columns > 1)) {
        return "the program asks for a place's row or column: the CTAs of a cluster could go different ways";
    }
    if (plan.other_grids) {
        return "the program has outputs of other tile rows and columns";
    }
    return plan.grid[0] < shape.rows || plan.grid[1] < shape.columns
               ? "the output has fewer rows or columns of tiles than the cluster"
               : std::string_view();
}

/// Returns why a program in pairs runs without the clusters of them that its hints want; nothing if it runs in them.
std::string_view why_not_in_clusters_of_pairs(const Plan& plan, const Hints& hints)
{
    const ClusterShape shape = cluster_of(hints);
    if (shape.rows < 2) {
        return "on tcgen05, a cluster has pairs of CTAs, which are above each other: fewer cluster_columns";
    }
    if (!(plan.streams_rows && shape.columns > 1) && !(plan.streams_columns && shape.rows > 2)) {
        return "the pairs of a cluster would stream nothing that they share: row(at) is the same for places beside "
               "each other, column(at) for those above each other";
    }
    if (plan.reads_column && shape.columns > 1) {
        return "the program asks for a place's column: the CTAs of a cluster could go different ways";
    }
    return plan.grid[0] < shape.rows || plan.grid[1] < shape.columns
               ? "the output has fewer rows or columns of tiles than the cluster"
               : std::string_view();
}

/// Returns why a launch has not the clusters that hints want; nothing if it has.
/// @param plan  for the instructions that were chosen
std::string_view why_not_in_clusters(const LaunchReport& report, const Plan& plan, const Hints& hints)
{
    if (hints.cluster == 0 || hints.cluster == report.cluster) {
        return {};
    }
    if (report.instructions == Instructions::tcgen05) {
        return report.pairs ? why_not_in_clusters_of_pairs(plan, hints) : report.reason;
    }
    return report.instructions == Instructions::wgmma
               ? why_not_in_clusters_of_hopper(plan, hints)
               : "mma.sync loads by threads: its CTAs share nothing that a cluster could load";
}

constexpr std::int64_t divided_up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

constexpr std::int64_t raster_band = 8;  // rows of places

/// The order of the places of clusters of this shape.
TileRaster raster_of(std::int64_t tile_rows, std::int64_t tile_columns, const ClusterShape& shape)
{
    return {static_cast<std::uint32_t>(divided_up(tile_rows, shape.rows)),
            static_cast<std::uint32_t>(divided_up(tile_columns, shape.columns)),
            static_cast<std::uint32_t>(raster_band / shape.rows)};
}
/// Clusters of this shape for all places.
unsigned clusters_for(std::int64_t tile_rows, std::int64_t tile_columns, std::int64_t batches,
                      const ClusterShape& shape)
{
    return static_cast<unsigned>(divided_up(tile_rows, shape.rows) * divided_up(tile_columns, shape.columns) * batches);
}

TensorMemory tensor_memory_of(const Tcgen05Plan& plan, const ClusterShape& shape)
{
    const std::uint32_t slots = tensor_memory_columns / plan.columns;
    return {.groups = raster_of(plan.tile_rows, plan.tile_columns, shape),
            .slot_columns = plan.columns,
            .slots = static_cast<std::int32_t>(std::min(slots, static_cast<std::uint32_t>(most_slots)))};
}

}  // namespace

std::string_view text_of(Tcgen05Refusal refusal)
{
    switch (refusal) {
        case Tcgen05Refusal::none: break;
        case Tcgen05Refusal::sums:
            return "tcgen05 has sums of 64 rows or a multiple of 128, and of a multiple of 16 columns up to 256";
        case Tcgen05Refusal::operand: return "tcgen05 cannot read a tile of a product";
        case Tcgen05Refusal::register_operand:
            return "tcgen05 multiplies a tile in registers with 64 rows or a multiple of 128, and sums of a multiple "
                   "of 16 columns up to 256";
        case Tcgen05Refusal::passed_on: return "sums are used after they were passed on: they are in one place only";
        case Tcgen05Refusal::unknown:
            return "how many sums the program has at once depends on the run: they are made and multiplied under a "
                   "condition";
    }
    return {};
}

std::string_view text_of(PairRefusal refusal)
{
    switch (refusal) {
        case PairRefusal::none: break;
        case PairRefusal::product: return "a pair's products have a multiple of 128 rows";
        case PairRefusal::bands:
            return "the CTAs of a pair have A of their own and share B: A is row(at), or held, and B is column(at)";
        case PairRefusal::register_operand: return "a tile in registers is multiplied by one CTA";
        case PairRefusal::row: return "the program asks for a place's row: the CTAs of a pair could go different ways";
        case PairRefusal::outputs: return "the program has outputs of other tile rows and columns";
        case PairRefusal::map:
            return "a pair loads B in other boxes than one CTA: B is a member of the program, and no other operand";
    }
    return {};
}

bool has_tensor_memory(StreamRef stream, const std::source_location& caller)
{
    return Device(stream.device(), caller).properties().has_tensor_memory;
}

Choice choose(const Plan& plan, const PlanWithTensorMemory& tcgen05_plan, StreamRef stream,
              const Candidates& candidates, const Hints& hints, const std::source_location& caller)
{
    require_plan(plan, stream, caller);
    Choice choice;
    LaunchReport& report = choice.report;
    if (plan.tiles == 0) {
        return choice;
    }
    const DeviceProperties& device = Device(stream.device(), caller).properties();
    const tessera::detail::CurrentDevice current(stream.device(), operation, caller);
    const auto tiles = static_cast<unsigned>(plan.tiles);
    const auto sms = static_cast<unsigned>(device.sm_count);
    const bool streams = plan.stage_bytes + plan.held_bytes > 0;
    const auto wished = [&](int most) { return static_cast<std::size_t>(hints.stages > 0 ? hints.stages : most); };
    const auto chosen = [&](Instructions instructions, const SharedMemory& memory, unsigned ctas) {
        report.instructions = instructions;
        report.ctas = ctas;
        report.stages = memory.stages;
        report.shared_memory_bytes = memory.bytes;
        const bool on_tcgen05 = instructions == Instructions::tcgen05;
        report.cluster_reason = why_not_in_clusters(report, on_tcgen05 ? tcgen05_plan.plan : plan, hints);
        choice.memory = memory;
        return choice;
    };
    // CTAs of warp roles stay: the next work tile is loaded while the last one is computed and stored.
    if (device.has_tensor_memory && streams) {
        report.reason = why_not_tcgen05(tcgen05_plan, candidates);
        if (report.reason.empty()) {
            const Tcgen05Plan& tcgen05 = tcgen05_plan.tcgen05;
            report.reason = why_not_pairs(tcgen05, hints);
            report.pairs = report.reason.empty();
            report.by_tma = true;
            ClusterShape shape{.rows = report.pairs ? 2 : 1, .columns = 1};
            if (report.pairs && hints.cluster > 2 && why_not_in_clusters_of_pairs(tcgen05_plan.plan, hints).empty()) {
                shape = cluster_of(hints);
            }
            report.cluster = static_cast<int>(shape.rows * shape.columns);
            choice.tensor_memory = tensor_memory_of(tcgen05, shape);
            Plan divided = tcgen05_plan.plan;
            divided.stage_bytes = report.pairs ? tcgen05.pair_stage_bytes : divided.stage_bytes;
            const SharedMemory memory =
                with_streams(divided, device, wished(most_stages), bytes_of_tcgen05_barriers, caller);
            const auto ctas = static_cast<unsigned>(report.cluster);
            return chosen(Instructions::tcgen05, memory,
                          report.pairs ? ctas * std::min(clusters_for(tcgen05.tile_rows, tcgen05.tile_columns,
                                                                      plan.batches, shape),
                                                         sms / ctas)
                                       : std::min(tiles, sms));
        }
    }
    const bool has_roles = device.has_tensor_maps && has_code(candidates.wgmma);
    if (has_roles && streams && plan.by_tma) {
        report.by_tma = true;
        if (hints.cluster > 1 && why_not_in_clusters_of_hopper(plan, hints).empty()) {
            const ClusterShape shape = cluster_of(hints);
            const auto ctas = static_cast<unsigned>(hints.cluster);
            const unsigned groups = clusters_for(plan.grid[0], plan.grid[1], plan.batches, shape);
            choice.groups = raster_of(plan.grid[0], plan.grid[1], shape);
            report.cluster = hints.cluster;
            return chosen(Instructions::wgmma,
                          with_streams(plan, device, wished(most_stages), bytes_of_barriers, caller),
                          ctas * std::min(groups, sms / ctas));
        }
        return chosen(Instructions::wgmma, with_streams(plan, device, wished(most_stages), bytes_of_barriers, caller),
                      std::min(tiles, sms));
    }
    if (streams && device.compute_capability_major == 9) {
        report.reason =
            has_roles ? why_not_by_tma(plan) : "the program is not compiled for wgmma: its architectures lack 90a";
    }
    if (device.has_tensor_maps && streams && plan.by_tma && has_code(candidates.mma_sync_by_tma)) {
        report.by_tma = true;
        return chosen(Instructions::mma_sync,
                      with_streams(plan, device, wished(copied_stages), bytes_of_barriers, caller), tiles);
    }
    if (!has_code(candidates.mma_sync)) {
        tessera::detail::raise(ErrorCode::unsupported_device, operation, caller,
                               fmt::format("the program has no code for {}", device.name),
                               fmt::format("compile it for compute capability {}.{}", device.compute_capability_major,
                                           device.compute_capability_minor));
    }
    return chosen(Instructions::mma_sync, with_streams(plan, device, wished(copied_stages), 0, caller), tiles);
}

}  // namespace tessera::tile::detail
