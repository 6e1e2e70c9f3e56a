#pragma once

/// @file
/// @ingroup device_tensor_memory
/// @brief Tensor memory (sm_100a and its family) with its state in the type: see `Tmem`.
///
/// Source: PTX ISA 9.0, "Tensor Memory", "tcgen05.alloc", "tcgen05.ld", "tcgen05.wait".

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/device/barrier.cuh"
#include "tessera/device/cluster.cuh"
#include "tessera/device/cta_group.hpp"
#include "tessera/device/obligation.cuh"
#include "tessera/device/register_tile.cuh"
#include "tessera/device/tmem_operands.cuh"

namespace tessera {

// Assembly: cuda::ptx of CUDA 13.0 has these instructions for sm_100a only, not for the family.

/// Shared memory through which an allocation's address reaches all threads. For a pair, at the same offset in both
/// CTAs.
struct TmemSlot {
    std::uint32_t address;  ///< the address of the first column
};

struct Unallocated {};  ///< State of tensor memory: nothing is allocated yet.
struct Allocated {};    ///< State of tensor memory: the CTA, or the pair, owns the columns.

/// Orders the calling thread's earlier tcgen05 operations before its next synchronization with other threads.
__device__ __forceinline__ void tcgen05_fence_before_sync()
{
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

/// Orders the calling thread's later tcgen05 operations after its last synchronization with other threads.
__device__ __forceinline__ void tcgen05_fence_after_sync()
{
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

namespace detail {

/// Called by one whole warp (of each CTA of a pair).
template <CtaGroup Group>
__device__ __forceinline__ void tcgen05_allocate(TmemSlot& slot, std::uint32_t columns)
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(&slot));
    if constexpr (Group == CtaGroup::one) {
        asm volatile(
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\n\t"
            "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::"r"(address),
            "r"(columns)
            : "memory");
    } else {
        asm volatile(
            "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;\n\t"
            "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::"r"(address),
            "r"(columns)
            : "memory");
    }
}

/// Called by one whole warp (of each CTA of a pair).
template <CtaGroup Group>
__device__ __forceinline__ void tcgen05_deallocate(std::uint32_t address, std::uint32_t columns)
{
    if constexpr (Group == CtaGroup::one) {
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
    } else {
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
    }
}

/// Starts a load of 16 columns: lane t of the warp gets its row's.
__device__ __forceinline__ void tcgen05_load_16_columns(std::uint32_t address, float* r)
{
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
        : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7]), "=f"(r[8]),
          "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]), "=f"(r[14]), "=f"(r[15])
        : "r"(address)
        : "memory");
}

/// Starts a load of 32 columns.
__device__ __forceinline__ void tcgen05_load_32_columns(std::uint32_t address, float* r)
{
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
        : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7]), "=f"(r[8]),
          "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]), "=f"(r[14]), "=f"(r[15]), "=f"(r[16]),
          "=f"(r[17]), "=f"(r[18]), "=f"(r[19]), "=f"(r[20]), "=f"(r[21]), "=f"(r[22]), "=f"(r[23]), "=f"(r[24]),
          "=f"(r[25]), "=f"(r[26]), "=f"(r[27]), "=f"(r[28]), "=f"(r[29]), "=f"(r[30]), "=f"(r[31])
        : "r"(address)
        : "memory");
}

/// Starts a store of 16 columns: lane t of the warp gives its row's.
__device__ __forceinline__ void tcgen05_store_16_columns(std::uint32_t address, const float* r)
{
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x16.b32 "
        "[%0], {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16};" ::"r"(address),
        "f"(r[0]), "f"(r[1]), "f"(r[2]), "f"(r[3]), "f"(r[4]), "f"(r[5]), "f"(r[6]), "f"(r[7]), "f"(r[8]), "f"(r[9]),
        "f"(r[10]), "f"(r[11]), "f"(r[12]), "f"(r[13]), "f"(r[14]), "f"(r[15])
        : "memory");
}

/// Waits for the thread's loads. The registers are operands, here and in `tcgen05_hold`, so that the compiler uses none of
/// them before.
__device__ __forceinline__ void tcgen05_wait_loads(float* r)
{
    asm volatile("tcgen05.wait::ld.sync.aligned;"
                 : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]), "+f"(r[4]), "+f"(r[5]), "+f"(r[6]), "+f"(r[7]),
                   "+f"(r[8]), "+f"(r[9]), "+f"(r[10]), "+f"(r[11]), "+f"(r[12]), "+f"(r[13]), "+f"(r[14]), "+f"(r[15])
                 :
                 : "memory");
}

/// Waits for the thread's loads, whatever their registers are.
__device__ __forceinline__ void tcgen05_wait_loads() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

/// Keeps uses of 16 registers behind an earlier wait.
__device__ __forceinline__ void tcgen05_hold(float* r)
{
    asm volatile(""
                 : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]), "+f"(r[4]), "+f"(r[5]), "+f"(r[6]), "+f"(r[7]),
                   "+f"(r[8]), "+f"(r[9]), "+f"(r[10]), "+f"(r[11]), "+f"(r[12]), "+f"(r[13]), "+f"(r[14]), "+f"(r[15])
                 :
                 : "memory");
}

}  // namespace detail

/// Columns that are being loaded from tensor memory. Only wait() gives access to them.
/// @tparam Columns  number of columns
template <std::uint32_t Columns>
class [[nodiscard("tessera: a load from tensor memory must be waited for")]] PendingTile {
public:
    PendingTile(const PendingTile&) = delete;
    PendingTile& operator=(const PendingTile&) = delete;
    /// Waits for this and all earlier loads of the thread, and returns the columns of the thread's row. Called by the
    /// whole, converged warp.
    __device__ __forceinline__ RegisterTile<float, Columns> wait() &&
    {
        detail::tcgen05_wait_loads(tile_.values);
#pragma unroll
        for (std::uint32_t column = 16; column < Columns; column += 16) {
            detail::tcgen05_hold(tile_.values + column);
        }
        return tile_;
    }

private:
    template <class, class, std::uint32_t>
    friend class ReadableAccumulator;
    __device__ __forceinline__ explicit PendingTile(std::uint32_t address)
    {
        if constexpr (Columns == 16) {
            detail::tcgen05_load_16_columns(address, tile_.values);
        } else {
#pragma unroll
            for (std::uint32_t column = 0; column < Columns; column += 32) {
                detail::tcgen05_load_32_columns(address + column, tile_.values + column);
            }
        }
    }

    RegisterTile<float, Columns> tile_;
};

/// Columns of allocated tensor memory in which one matrix product accumulates: row m is in lane m, column n in column
/// n. `mma` writes it; threads read it through `read_accumulators` (accumulator.cuh).
///
/// That is the layout of M = 128 for one CTA, and of M = 256 for a pair, where each CTA has 128 rows.
/// @tparam Columns  number of columns: N
/// @tparam Group    one CTA or a pair
template <std::uint32_t Columns, CtaGroup Group>
class TmemAccumulator {
public:
    /// Returns the address that the instruction takes.
    __device__ std::uint32_t address() const { return address_; }

    /// Refuses to compile: the tensor core may be writing it.
    template <std::uint32_t Count>
    __device__ void load_rows(std::uint32_t, std::uint32_t) const
    {
        static_assert(Count != Count,
                      "tessera: an accumulator is read from its wait to its release: read_accumulators()");
    }

private:
    template <class, std::uint32_t, CtaGroup>
    friend class Tmem;
    __device__ explicit TmemAccumulator(std::uint32_t address) : address_(address) {}

    std::uint32_t address_;
};

/// Proof that both CTAs of a pair have allocated their tensor memory and that neither uses it any more.
class PairFinished {
private:
    template <class, std::uint32_t, CtaGroup>
    friend class Tmem;
    __device__ PairFinished() {}
};

/// Tensor memory.
///
/// An address exists only between allocation and release. Each happens once. For a pair of CTAs, each takes a proof that
/// the peer is ready.
///
/// @code{.cpp}
/// __shared__ TmemSlot slot;
/// Tmem<Unallocated, 256, CtaGroup::one> unallocated(slot);
/// auto tensor_memory = std::move(unallocated).allocate(warp == 0);    // all threads
/// const auto first = tensor_memory.accumulator<128>(0);               // 128 of its columns: for mma
/// std::move(tensor_memory).release(warp == 0);                        // all threads
/// @endcode
///
/// Tensor memory is 128 lanes of 512 columns of 32 bits. A warp reads the 32 lanes of its position in its warpgroup:
/// warp w reads those from 32 * (w % 4) on.
///
/// @tparam State    Unallocated or Allocated
/// @tparam Columns  columns of the allocation: 32, 64, 128, 256 or 512
/// @tparam Group    one CTA, or a pair: each of the two has the columns, at the same address
template <class State, std::uint32_t Columns, CtaGroup Group>
class Tmem {
    static_assert(!std::is_same_v<State, State>, "tessera: the state of tensor memory is Unallocated or Allocated");
};

/// Columns of tensor memory that the CTA owns; for a pair, each of the two, at the same address. They must be released
/// before the CTA exits. What is released or moved from has no address any more: its use stops the kernel with a message, and so
/// does a way out of the kernel without a release. The checks cost nothing where the compiler sees that there is none.
/// @tparam Columns  columns of the allocation
/// @tparam Group    one CTA or a pair
template <std::uint32_t Columns, CtaGroup Group>
class [[nodiscard("tessera: tensor memory must be released before the CTA exits")]] Tmem<Allocated, Columns, Group>
    : detail::Obligation<detail::tensor_memory_was_not_released> {
public:
    Tmem(const Tmem&) = delete;
    Tmem& operator=(const Tmem&) = delete;
    /// Moves the ownership, to the function that releases the columns.
    Tmem(Tmem&& other) noexcept = default;

    /// Returns part `index` of the columns, in parts of `Part`, as an accumulator.
    /// @tparam Part   columns of the accumulator, which divide the allocation's
    /// @param  index  in parts
    template <std::uint32_t Part>
    __device__ TmemAccumulator<Part, Group> accumulator(std::uint32_t index) const
    {
        static_assert(Part >= 32 && Columns % Part == 0,
                      "tessera: an accumulator's columns must divide the allocation's");
        return TmemAccumulator<Part, Group>(address() + index * Part);
    }

    /// Returns `Part` columns from column `first` on as an accumulator, for a kernel that divides the columns itself. Columns
    /// outside of the allocation stop the kernel.
    /// @tparam Part   columns of the accumulator
    /// @param  first  in columns
    template <std::uint32_t Part>
    __device__ TmemAccumulator<Part, Group> columns_from(std::uint32_t first) const
    {
        static_assert(Part > 0 && Part <= Columns, "tessera: an accumulator has at most the columns of its allocation");
        if (first > Columns - Part) {
            __trap();
        }
        return TmemAccumulator<Part, Group>(address() + first);
    }

    /// Returns columns from `First` on for scale factors of `Rows` rows of A or columns of B; tmem_operands.cuh says
    /// how many. They must not overlap an accumulator's columns.
    template <ScaledOperand Operand, std::uint32_t Rows, std::uint32_t First>
    __device__ TmemScales<Operand, Rows, Group> scales() const
    {
        static_assert(
            First % detail::scale_block_columns == 0 && First + TmemScales<Operand, Rows, Group>::columns <= Columns,
            "tessera: scale factors begin at a multiple of 4 columns and are inside the allocation");
        return TmemScales<Operand, Rows, Group>(address() + First);
    }

    /// Returns columns from `First` on for A of `Steps` instructions, 8 for each. They must not overlap an
    /// accumulator's columns.
    template <std::uint32_t Steps, std::uint32_t First>
    __device__ TmemOperand<Steps, Group> operand() const
    {
        static_assert(First + TmemOperand<Steps, Group>::columns <= Columns,
                      "tessera: an operand in tensor memory must be inside the allocation");
        return TmemOperand<Steps, Group>(address() + First);
    }

    /// Returns columns from column `first` on for A of `Steps` instructions, for a kernel that divides the columns itself. Columns
    /// outside of the allocation stop the kernel.
    template <std::uint32_t Steps>
    __device__ TmemOperand<Steps, Group> operand_from(std::uint32_t first) const
    {
        if (first > Columns - TmemOperand<Steps, Group>::columns) {
            __trap();
        }
        return TmemOperand<Steps, Group>(address() + first);
    }

    /// Waits until all threads of the cluster have called this, after they have finished with tensor memory. Called by
    /// whole, converged warps.
    __device__ PairFinished finish_pair() const
    {
        static_assert(Group == CtaGroup::pair,
                      "tessera: a single CTA releases its tensor memory without a PairFinished");
        tcgen05_fence_before_sync();
        ClusterGrid::synchronize();
        tcgen05_fence_after_sync();
        return {};
    }

    /// Gives the columns back. Called by all threads of the CTA, and synchronizes them. None of them may have loads or
    /// matrix products under way.
    /// @param releasing  true for the threads of one whole warp
    __device__ void release(bool releasing) &&
    {
        static_assert(Group == CtaGroup::one,
                      "tessera: a pair's tensor memory is released with a PairFinished, which finish_pair() makes: the "
                      "peer may still use it");
        tcgen05_fence_before_sync();
        __syncthreads();
        tcgen05_fence_after_sync();
        if (releasing) {
            detail::tcgen05_deallocate<Group>(address(), Columns);
        }
        this->fulfil();
    }
    /// Gives the columns of a pair back, in both CTAs.
    /// @param releasing  true for the threads of one whole warp
    __device__ void release(bool releasing, PairFinished) &&
    {
        if (releasing) {
            detail::tcgen05_deallocate<Group>(address(), Columns);
        }
        this->fulfil();
    }

private:
    friend class Tmem<Unallocated, Columns, Group>;
    __device__ explicit Tmem(std::uint32_t address) : address_(address) {}

    __device__ __forceinline__ std::uint32_t address() const
    {
        if (!this->is_open()) {
            detail::tensor_memory_was_released_or_moved_from();
        }
        return address_;
    }

    std::uint32_t address_;
};

/// Tensor memory that is not allocated yet: a kernel begins with it.
/// @tparam Columns  columns of the allocation: 32, 64, 128, 256 or 512
/// @tparam Group    one CTA or a pair
template <std::uint32_t Columns, CtaGroup Group>
class Tmem<Unallocated, Columns, Group> {
    static_assert(Columns >= 32 && Columns <= 512 && (Columns & (Columns - 1)) == 0,
                  "tessera: tensor memory is allocated in 32, 64, 128, 256 or 512 columns");

public:
    /// Allocates nothing yet.
    /// @param slot  shared memory for the address
    __device__ explicit Tmem(TmemSlot& slot) : slot_(slot) {}

    /// Allocates the columns, and then lets other CTAs allocate. Waits while another CTA of the SM has the columns.
    /// Called by all threads of the CTA, and synchronizes them.
    /// @param allocating  true for the threads of one whole warp
    __device__ Tmem<Allocated, Columns, Group> allocate(bool allocating) &&
    {
        static_assert(
            Group == CtaGroup::one,
            "tessera: a pair allocates together: it takes the token of publish_barriers_to_cluster(), the proof that "
            "the peer runs");
        return allocate_checked(allocating);
    }
    /// Allocates the columns of a pair, in both CTAs.
    /// @param allocating  true for the threads of one whole warp
    __device__ Tmem<Allocated, Columns, Group> allocate(bool allocating, BarriersPublishedToCluster) &&
    {
        return allocate_checked(allocating);
    }

    /// Refuses to compile: the memory has no address yet.
    template <std::uint32_t Part>
    __device__ void accumulator(std::uint32_t) const
    {
        static_assert(Part != Part, "tessera: this tensor memory is not allocated yet: it has no address");
    }

private:
    __device__ Tmem<Allocated, Columns, Group> allocate_checked(bool allocating)
    {
        if (allocating) {
            detail::tcgen05_allocate<Group>(slot_, Columns);
        }
        tcgen05_fence_before_sync();
        __syncthreads();
        tcgen05_fence_after_sync();
        return Tmem<Allocated, Columns, Group>(slot_.address);
    }

    TmemSlot& slot_;
};

}  // namespace tessera
