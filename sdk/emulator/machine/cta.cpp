#include "machine/cta.hpp"

#include "machine/cluster.hpp"
#include "machine/grid.hpp"
#include "machine/spare_buffers.hpp"
#include "machine/tensor_memory.hpp"
#include "machine/tile_provenance.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

Cta::Cta(Cluster& cluster_, std::uint32_t rank_, Dim3 id_) : cluster(cluster_), rank(rank_), id(id_)
{
    const Grid& grid = cluster.grid;
    threads = static_cast<std::uint32_t>(grid.request.block.count());
    // Not zero at first: reads of unwritten memory must not look right by luck.
    shared = SpareBuffers::of_thread().take(grid.shared_bytes, std::byte{0xA5});
    if (grid.options.check) {
        shadow = std::make_unique<SharedShadow>(grid.shared_bytes, cluster.clocks, grid.options.same_value_races,
                                                grid.options.paths, grid.options.strict_proxy_fences);
        if (grid.request.cluster.count() > 1) {
            exit_order = std::make_unique<ExitOrder>();
        }
    }
}

Cta::~Cta() { SpareBuffers::of_thread().give_back(std::move(shared)); }

std::uint32_t Cta::live_threads() const
{
    std::uint32_t count = 0;
    for (const auto& warp : warps) {
        count += static_cast<std::uint32_t>(std::popcount(warp->live()));
    }
    return count;
}

std::uint32_t Cta::threads_arrived(const NamedBarrier& barrier) const
{
    std::uint32_t count = barrier.arrivals;
    if (threads % warp_size == 0 && exited_threads == 0) {
        return count;
    }
    for (const auto& warp : warps) {
        if ((barrier.arrived_warps >> warp->index & 1U) != 0) {
            count += static_cast<std::uint32_t>(std::popcount(~warp->live() & ~barrier.lanes[warp->index]));
        } else if (barrier.all_threads && warp->finished()) {
            count += warp_size;
        }
    }
    return count;
}

std::uint32_t Cta::multiprocessor() const noexcept
{
    const Grid& grid = cluster.grid;
    const std::uint64_t place = cluster.index % grid.resident * grid.request.cluster.count() + rank;
    return static_cast<std::uint32_t>(place % grid.device.multiprocessors);
}

std::byte* Cta::shared_bytes(std::uint32_t address, std::uint64_t size) noexcept
{
    const std::uint32_t offset = offset_in_cta(address) - shared_base;  // wraps to a large value below the base
    if (size > shared.size() || offset > shared.size() - size) {
        return nullptr;
    }
    return shared.data() + offset;
}

}  // namespace tessera::emulator
