#pragma once

// One CTA of a cluster: shared memory, barriers, tensor memory, warps.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "checks/shared_shadow.hpp"
#include "machine/lanes.hpp"
#include "machine/mbarrier.hpp"

namespace tessera::emulator {

class Cluster;
class Warp;
class TensorMemory;  // machine/tensor_memory.hpp

/// Where the CTA's own variables start in the shared window; what lies below is the system's (observed on sm_90 to
/// sm_120).
inline constexpr std::uint32_t shared_base = 0x400;
/// Bits of a shared address above which the rank in the cluster stands.
inline constexpr unsigned shared_rank_shift = 24;
/// Generic addresses of shared and local memory start here; bits 0-31 are the address in the window.
inline constexpr std::uint64_t shared_window = 0x00E0'0000'0000'0000;
inline constexpr std::uint64_t local_window = 0x00D0'0000'0000'0000;
inline constexpr std::uint64_t parameter_window = 0x00C0'0000'0000'0000;

/// A barrier of bar/barrier. Threads count in whole warps: those that a warp does not have, or that have exited, count
/// with the others.
struct NamedBarrier {
    std::uint64_t phase = 0;
    std::uint32_t expected = 0;       ///< threads; 0 while nobody has arrived
    bool all_threads = false;         ///< the count was left out: exited warps count as arrived
    std::uint32_t arrived = 0;        ///< threads
    std::uint64_t arrived_warps = 0;  ///< bit per warp of the CTA
    SyncPoint arriving, completed;
    /// Of bar.red, for the current phase.
    bool reduction = false, reduction_and = true, reduction_or = false;
    std::uint32_t reduction_count = 0;
};

class Cta {
public:
    Cta(Cluster& cluster, std::uint32_t rank, Dim3 id);
    ~Cta();

    Cluster& cluster;
    const std::uint32_t rank;              ///< %cluster_ctarank
    const Dim3 id;                         ///< %ctaid
    std::vector<std::byte> shared;         ///< static and dynamic; byte 0 is address shared_base
    std::unique_ptr<SharedShadow> shadow;  ///< null if checks are off
    std::array<NamedBarrier, 16> barriers;
    std::map<std::uint32_t, Mbarrier> mbarriers;  ///< by address within the window (without the rank)
    std::unique_ptr<TensorMemory> tensor_memory;  ///< null on devices without
    std::vector<std::unique_ptr<Warp>> warps;
    std::uint32_t live_warps = 0;
    std::uint32_t threads = 0;            ///< of the launch
    bool started = false;                 ///< some warp has executed something
    bool launch_control_refused = false;  ///< a thread has seen that a clusterlaunchcontrol request failed
    [[nodiscard]] bool exited() const noexcept { return live_warps == 0; }
    /// %smid: where the CTA is thought to run.
    [[nodiscard]] std::uint32_t multiprocessor() const noexcept;
    /// Threads that have not exited.
    [[nodiscard]] std::uint32_t live_threads() const;

    /// Bytes of `size` at `address` (rank bits ignored) of the window; null if outside of what the CTA has.
    [[nodiscard]] std::byte* shared_bytes(std::uint32_t address, std::uint64_t size) noexcept;
};

}  // namespace tessera::emulator
