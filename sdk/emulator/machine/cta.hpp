#pragma once

// One CTA of a cluster: shared memory, barriers, tensor memory, warps.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/lanes.hpp"
#include "base/spare_objects.hpp"
#include "base/windows.hpp"
#include "checks/exit_order.hpp"
#include "checks/response_reads.hpp"
#include "checks/shared_shadow.hpp"
#include "machine/mbarrier.hpp"
#include "machine/register_changes.hpp"

namespace tessera::emulator {

class Cluster;
class Warp;
class TensorMemory;    // machine/tensor_memory.hpp
class TileProvenance;  // machine/tile_provenance.hpp

/// A barrier of bar/barrier. Threads count in whole warps: missing and exited threads of a warp count with the others.
struct NamedBarrier {
    std::uint64_t phase = 0;
    std::uint32_t expected = 0;        ///< threads; 0 until the first arrival
    bool all_threads = false;          ///< no count was given: exited warps count as arrived
    std::uint32_t arrivals = 0;        ///< threads
    std::uint64_t arrived_warps = 0;   ///< bit per warp of the CTA
    std::array<LaneMask, 32> lanes{};  ///< of each warp, that have arrived
    SyncPoint arriving, completed;
    // Only if checks are on: times of the last arrival, and of the one that completed the last phase.
    Epoch last_arrival, completion;
    std::uint64_t last_warps = 0;  ///< bit per warp of the last phase
    /// bar.red of the current phase.
    bool reduction = false, reduction_and = true, reduction_or = false;
    std::uint32_t reduction_count = 0;
};

class Cta : public Spare<Cta> {
public:
    Cta(Cluster& cluster, std::uint32_t rank, Dim3 id);
    ~Cta();

    Cluster& cluster;
    const std::uint32_t rank;               ///< %cluster_ctarank
    const Dim3 id;                          ///< %ctaid
    std::vector<std::byte> shared;          ///< static and dynamic; byte 0 is address shared_base
    std::unique_ptr<SharedShadow> shadow;   ///< null if checks are off
    std::unique_ptr<TileProvenance> tiles;  ///< null until a tensor copy has written to the CTA, or if checks are off
    std::unique_ptr<ExitOrder> exit_order;  ///< null if checks are off, or if it has no peers
    ResponseReads responses;                ///< of cluster launch control; empty if checks are off
    std::array<NamedBarrier, 16> barriers;
    std::map<std::uint32_t, Mbarrier> mbarriers;  ///< by address within the window (without the rank)
    std::unique_ptr<TensorMemory> tensor_memory;  ///< null on devices without tensor memory
    std::vector<std::unique_ptr<Warp>> warps;
    std::uint32_t registers_at_entry = 0;          ///< per thread; 0 until the first setmaxnreg
    std::vector<RegisterChange> register_changes;  ///< by setmaxnreg; only if checks are on
    std::uint32_t live_warps = 0;
    std::uint32_t threads = 0;  ///< at launch
    std::uint32_t exited_threads = 0;
    bool started = false;                 ///< a warp has executed an instruction
    bool launch_control_refused = false;  ///< a thread has seen a clusterlaunchcontrol request fail
    [[nodiscard]] bool exited() const noexcept { return live_warps == 0; }
    /// %smid: the SM that the CTA is considered to run on.
    [[nodiscard]] std::uint32_t multiprocessor() const noexcept;
    /// The threads that a named barrier counts: those that have arrived, and those of their warps that do not exist or have
    /// exited, also after the arrival. Without a count, warps that have exited count, too.
    [[nodiscard]] std::uint32_t threads_arrived(const NamedBarrier& barrier) const;
    /// Threads that have not exited.
    [[nodiscard]] std::uint32_t live_threads() const;

    /// Pointer to `size` bytes at `address` (rank bits ignored) of the window; null if out of bounds.
    [[nodiscard]] std::byte* shared_bytes(std::uint32_t address, std::uint64_t size) noexcept;
};

}  // namespace tessera::emulator
