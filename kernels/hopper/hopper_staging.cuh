#pragma once

/// The shared memory through which a consumer's results leave by TMA: its store buffers.

#include <cstdint>

#include "hopper_shared.cuh"
#include "tessera/device/tma.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

/// The store buffers of one consumer, each of 64 rows of 128 swizzled bytes. Every function is executed by its 128
/// threads.
template <class Config>
class HopperStaging {
    static constexpr int buffers = Config::config.store_buffers;
    // A buffer that no store has used yet needs no wait. Counting them costs a register.
    static constexpr bool counts_fresh_buffers = buffers > 1 && Config::config.accumulators() < 128;

public:
    __device__ HopperStaging(HopperShared<Config>& shared, int consumer) : shared_(shared), consumer_(consumer) {}

    /// Returns the buffer of the consumer's next store, once TMA has read what it held.
    __device__ std::byte* next()
    {
        buffer_ = buffer_ + 1 == buffers ? 0 : buffer_ + 1;
        if (counts_fresh_buffers && fresh_buffers_ > 0) {
            --fresh_buffers_;
        } else {
            if (stores(buffer_)) {
                tma_wait_stores_read<0>();
            }
            synchronize_consumer(consumer_);
        }
        return shared_.store[consumer_][buffer_];
    }

    /// Stores the buffer that `next` returned to a box of a matrix. It is complete when all threads have called this.
    __device__ void store(const AnyTensorMap<3>& map, int column, int row, int batch)
    {
        make_visible_to_tma();
        // Shuffled into uniform registers; otherwise nvcc loops over the lanes' values although one lane is active.
        const std::int32_t coordinates[] = {of_first_lane(column), of_first_lane(row), of_first_lane(batch)};
        const auto source =
            of_first_lane(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared_.store[consumer_][buffer_])));
        synchronize_consumer(consumer_);
        if (stores(buffer_)) {
            tma_store(map, coordinates, static_cast<const std::byte*>(__cvta_shared_to_generic(source)));
            tma_commit_stores();
        }
    }

    /// Returns the first buffer, for other uses than stores.
    __device__ std::byte* first() const { return shared_.store[consumer_][0]; }

    /// Waits until the stores have read their shared memory, which must stay until then.
    __device__ void finish() const
    {
        const int thread = static_cast<int>(threadIdx.x) % 128;
        if (thread % 32 == 0 && thread / 32 < buffers) {
            tma_wait_stores_read<0>();
        }
    }

private:
    /// Each buffer is stored by a different warp: issuing a store costs some 200 cycles, during which the others are at
    /// the next buffer.
    __device__ static bool stores(int buffer) { return static_cast<int>(threadIdx.x) % 128 == 32 * buffer; }

    HopperShared<Config>& shared_;
    int consumer_;
    int buffer_ = buffers - 1;
    int fresh_buffers_ = buffers;  // no store has used them yet
};

}  // namespace tessera::kernels
