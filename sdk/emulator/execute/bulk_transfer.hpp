#pragma once

// Bulk copies in flight: the common part of cp.async.bulk, its tensor forms and the reductions. The scheduler decides
// when the data move, in several steps unless the schedule is in_order. A reader that does not wait therefore sees a
// part of them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/barrier_families.hpp"
#include "machine/async_groups.hpp"
#include "machine/async_operation.hpp"
#include "machine/cluster.hpp"
#include "machine/memory_access.hpp"
#include "machine/swizzle.hpp"
#include "machine/tensor_box.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

/// A place in shared memory and the runs of its box.
struct SharedBox {
    std::uint32_t bytes = 0;
    TensorSwizzle swizzle = TensorSwizzle::none;
    std::vector<BoxRun> runs;
};

/// One CTA that receives a load.
struct LoadTarget {
    Cta* cta = nullptr;
    std::uint32_t address = 0;  ///< of the box, in the shared::cluster window
    std::uint32_t barrier = 0;  ///< in the shared::cluster window
};

/// Combines `bytes` of `source` into `target`, element by element, each atomically.
using Reduce = void (*)(std::byte* target, const std::byte* source, std::size_t bytes);

/// Base class: names the transfer in findings and keeps track of the shared memory in use.
class BulkTransfer : public AsyncOperation {
public:
    BulkTransfer(const char* what, Warp& warp, SharedBox box) : what_(what), warp_(warp), box_(std::move(box)) {}

    /// Call once, after Cluster::submit: marks the shared memory as in use.
    virtual void watch() = 0;

protected:
    /// Registers `box_` at `address` with its CTA's shadow.
    void begin(Cta& cta, std::uint32_t address, bool writes);
    void end(Cta& cta);
    /// Calls body(physical bytes, their number, bytes of the run before them) for the contiguous pieces of `run` in a
    /// box at `address`.
    template <typename Body>
    void for_each_piece(Cta& cta, std::uint32_t address, const BoxRun& run, Body&& body);
    /// Checks the access of the runs [first, last) of the box at `address`.
    void check(Cluster& cluster, Cta& cta, std::uint32_t address, std::size_t first, std::size_t last, bool writes);
    /// Pointer to global bytes; faults if they are not accessible.
    [[nodiscard]] std::byte* global(Cluster& cluster, std::uint64_t address, std::uint64_t size, Direction direction);
    void report_exited(Cluster& cluster, const Cta& cta, bool writes);
    /// The source of a store to global memory is read after its CTA has exited. This is no fault, because the memory is
    /// kept until then, and is reported only with --also (see docs/notes/emulator-reports.md).
    void report_exit_before_read(Cluster& cluster, const Cta& cta);
    /// Number of the `left` runs to move in this step.
    [[nodiscard]] static std::size_t portion(Cluster& cluster, std::size_t left);

    const char* what_;
    Warp& warp_;
    SharedBox box_;
};

/// From global memory to shared memory of one or more CTAs. Completes bytes on their mbarriers.
class LoadTransfer : public BulkTransfer {
public:
    LoadTransfer(const char* what, Warp& warp, SharedBox box, std::vector<LoadTarget> targets,
                 std::optional<TensorMap> map = std::nullopt);
    void watch() override;
    bool step(Cluster& cluster) override;
    [[nodiscard]] std::string describe() const override;

private:
    struct Progress {
        std::size_t runs = 0;
        bool signalled = false;
    };
    void move(Cluster& cluster, const LoadTarget& target, std::size_t first, std::size_t last);
    void stage(const BoxRun& run, const std::byte* source, std::vector<std::byte>& staged) const;
    void signal(Cluster& cluster, const LoadTarget& target);

    std::vector<LoadTarget> targets_;
    std::vector<Progress> progress_;
    std::optional<TensorMap> map_;
    bool converts_ = false;
};

/// From shared memory to global memory, as a copy or a reduction. Completes by bulk groups.
class StoreTransfer : public BulkTransfer {
public:
    /// `byte_mask`: which bytes of each 16 are written.
    StoreTransfer(const char* what, Warp& warp, SharedBox box, std::uint32_t source, CopyGroups::Sequence sequence,
                  Reduce reduce, std::uint16_t byte_mask = 0xFFFF);
    void watch() override;
    bool step(Cluster& cluster) override;
    [[nodiscard]] std::string describe() const override;

private:
    void read_source(Cluster& cluster);
    void write(Cluster& cluster, const BoxRun& run);
    /// Copies or reduces `bytes` of the box, from `linear` on, to `target`.
    void put(std::byte* target, std::uint32_t linear, std::uint32_t bytes) const;
    void write_overrun(Cluster& cluster, const BoxRun& run);

    std::uint32_t source_;
    CopyGroups::Sequence sequence_;
    Reduce reduce_;
    std::uint16_t byte_mask_;
    std::vector<std::byte> data_;
    bool read_ = false;
    std::size_t written_ = 0;
};

/// From shared memory to shared memory of the cluster, as a copy or a reduction. Completes bytes on an mbarrier next to
/// the destination.
class SharedTransfer : public BulkTransfer {
public:
    SharedTransfer(const char* what, Warp& warp, SharedBox box, std::uint32_t source, LoadTarget target, Reduce reduce);
    void watch() override;
    bool step(Cluster& cluster) override;
    [[nodiscard]] std::string describe() const override;

private:
    std::uint32_t source_;
    LoadTarget target_;
    Reduce reduce_;
    std::vector<std::byte> data_;
    unsigned stage_ = 0;
};

/// Checks that [address, address + bytes) is shared memory of a CTA of the cluster, aligned; else faults.
Cta& check_shared_range(Warp& warp, const Operation& operation, unsigned lane, const char* what, std::uint32_t address,
                        std::uint32_t bytes, std::uint32_t alignment);

/// The receivers of a load: one CTA, or those of `mask`. Checks ranges, barriers and mask; counts the copy on the
/// barriers.
[[nodiscard]] std::vector<LoadTarget> load_targets(Warp& warp, const Operation& operation, unsigned lane,
                                                   const char* what, std::uint32_t destination, std::uint32_t barrier,
                                                   std::uint32_t bytes, std::uint32_t alignment,
                                                   std::optional<std::uint16_t> mask, unsigned cta_group);

/// The reduction that ".op.type" names; null if there is none.
[[nodiscard]] Reduce find_reduction(std::string_view name, ptx::Type type);
/// The same for a tensor's elements.
[[nodiscard]] Reduce find_reduction(std::string_view name, TensorElement element);

/// Submits `transfer`, issued by `lane`.
template <typename Transfer>
void start(Warp& warp, const Operation& operation, unsigned lane, std::unique_ptr<Transfer> transfer)
{
    Transfer& started = *transfer;
    warp.cluster.submit(std::move(transfer), warp, operation, LaneMask{1} << lane);
    started.watch();
}

}  // namespace tessera::emulator
