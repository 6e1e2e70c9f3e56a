#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tessera/device.hpp"
#include "tessera/error.hpp"
#include "tessera/tile/plan.hpp"

namespace tessera::tile::detail {
namespace {

constexpr std::string_view operation = "tile::launch";
constexpr std::size_t alignment = 1024;  // of the ring: what the widest swizzle repeats after
constexpr std::size_t bytes_of_barriers = 2 * (most_stages + most_held) * sizeof(std::uint64_t);
constexpr int copied_stages = 4;  // where threads copy: more only keep other CTAs away

/// Returns true if the kernel's code for the current device is not empty.
bool has_code(const Candidate& candidate)
{
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

}  // namespace

Choice choose(const Plan& plan, StreamRef stream, const Candidate& mma_sync, const Candidate& wgmma, int stages,
              const std::source_location& caller)
{
    require_plan(plan, stream, caller);
    Choice choice;
    if (plan.tiles == 0) {
        return choice;
    }
    const Device device(stream.device(), caller);
    const tessera::detail::CurrentDevice current(stream.device(), operation, caller);
    const bool stages_memory = plan.stage_bytes + plan.held_bytes > 0;
    if (stages_memory && plan.by_tma && device.properties().has_tensor_maps && has_code(wgmma)) {
        choice.instructions = Instructions::wgmma;
    } else if (!has_code(mma_sync)) {
        tessera::detail::raise(
            ErrorCode::unsupported_device, operation, caller,
            fmt::format("the program has no code for {}", device.properties().name),
            fmt::format("compile it for compute capability {}.{}", device.properties().compute_capability_major,
                        device.properties().compute_capability_minor));
    }
    const std::size_t most = device.properties().shared_memory_per_block_bytes;
    const std::size_t held = (plan.scratch_bytes + alignment - 1) / alignment * alignment;
    const std::size_t ring = held + plan.held_bytes;
    const std::size_t barrier_bytes = choice.instructions == Instructions::wgmma ? bytes_of_barriers : 0;
    std::size_t stages_used = 0;
    if (plan.stage_bytes > 0) {
        const std::size_t fit = most > ring + barrier_bytes ? (most - ring - barrier_bytes) / plan.stage_bytes : 0;
        const auto wished = static_cast<std::size_t>(stages > 0                                   ? stages
                                                     : choice.instructions == Instructions::wgmma ? most_stages
                                                                                                  : copied_stages);
        stages_used = std::min({fit, wished, std::size_t{most_stages}});
        if (stages_used < 2) {
            tessera::detail::raise(
                ErrorCode::launch_refused, operation, caller,
                fmt::format(
                    "a step of the program's stream has {} bytes, held tiles have {}, and exchanges take {}: two steps "
                    "do not fit into the {} bytes of shared memory of a CTA on {}",
                    plan.stage_bytes, plan.held_bytes, plan.scratch_bytes, most, device.properties().name),
                "smaller tiles, or hints with at least 2 stages");
        }
    }
    choice.memory = {.held = static_cast<std::uint32_t>(held),
                     .ring = static_cast<std::uint32_t>(ring),
                     .stage_bytes = static_cast<std::uint32_t>(plan.stage_bytes),
                     .stages = static_cast<std::int32_t>(stages_used),
                     .bytes = static_cast<std::uint32_t>(ring + stages_used * plan.stage_bytes + barrier_bytes)};
    // CTAs of warp roles stay: the next work tile is loaded while the last one is stored.
    const auto tiles = static_cast<unsigned>(plan.tiles);
    choice.grid = choice.instructions == Instructions::wgmma
                      ? std::min(tiles, static_cast<unsigned>(device.properties().sm_count))
                      : tiles;
    return choice;
}

}  // namespace tessera::tile::detail
