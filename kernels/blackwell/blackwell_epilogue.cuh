#pragma once

/// The epilogue of the Blackwell kernel: moves an accumulator from tensor memory through registers to D.
///
/// Warps 0 to 3 run it; each has 32 rows to itself and waits for no other epilogue warp. A warp reads up to 64 columns at a
/// time (128 bytes of a row of a D of 16 bits), applies alpha, C, bias and activation, and rounds. The operations and their
/// order are those of kernels/gemm/epilogue.cuh, so the bits are the same. It writes the columns to swizzled shared memory
/// and lets TMA store them while it goes on. C comes by TMA, too, requested while the columns before are finished. If TMA
/// cannot address C or D, threads load and store elements.

#include <cuda/ptx>

#include <cstdint>
#include <utility>

#include "blackwell_arguments.hpp"
#include "blackwell_config.hpp"
#include "blackwell_shared_tile.cuh"
#include "blackwell_storage.cuh"
#include "kernels/gemm/epilogue.cuh"
#include "tessera/device/accumulator.cuh"
#include "tessera/device/output_partition.cuh"

namespace tessera::kernels {

/// One warp of the epilogue.
template <class Config>
class BlackwellEpilogue {
    static constexpr std::uint32_t columns_of_tile = Config::config.block_n;

public:
    using Tile = OutputTile<32, columns_of_tile>;  // the warp's rows of a block
    using Accumulator =
        ReadableAccumulator<typename BlackwellStorage<Config>::Accumulators,
                            Tmem<Allocated, Config::config.tensor_memory_columns(), Config::config.group>,
                            Config::config.accumulator_columns()>;

    /// @param warp  which 32 lanes of tensor memory the warp can access: its index in the warpgroup
    __device__ BlackwellEpilogue(const BlackwellArguments& arguments, StagingBuffers& staging,
                                 BarrierWord<FilledByTma>& c_loaded, BarriersPublished published, std::uint32_t warp)
        : arguments_(arguments),
          gemm_(arguments.gemm),
          staging_(staging),
          c_loaded_(c_loaded, published),
          warp_(warp),
          lane_(threadIdx.x % 32),
          alpha_(Epilogue::scaled_alpha(arguments.gemm)),
          wide_(gemm_.d_type != ElementType::f32),
          plain_(gemm_.beta == 0.0F && gemm_.bias_axis == BiasAxis::none && gemm_.activation == ActivationKind::none &&
                 !gemm_.has_scale_vectors() && gemm_.pre_activation.data == nullptr)
    {}

    /// Requests C for the tile's first columns, before its accumulator is waited for. A tile that is announced is stored
    /// next.
    __device__ void announce(const Tile& tile)
    {
        if (streams() && gemm_.beta != 0.0F && tile.first_row() < gemm_.m) {
            await_buffers();
            request_c(tile, 0, buffer_);
        }
    }

    /// Writes one accumulator to the warp's rows of D or, of a tile that others will store, to the workspace. Releases it
    /// as soon as it is read.
    __device__ void store(const Tile& tile, Accumulator accumulator, const BlackwellSharedTile<Config>& shared)
    {
        if (tile.first_row() >= gemm_.m) {
            std::move(accumulator).release();
            return;
        }
        const auto columns_left = static_cast<std::int64_t>(gemm_.n) - tile.first_column();
        const auto inside = static_cast<std::uint32_t>(min(columns_left, static_cast<std::int64_t>(columns_of_tile)));
        if (shared.is_shared() && !gather(accumulator, shared, inside)) {
            std::move(accumulator).release();
            return;
        }
        if (streams()) {
            stream(tile, std::move(accumulator), inside);
        } else {
            store_directly(tile, std::move(accumulator), inside);
        }
    }

    /// Waits until the last stores have read their shared memory, which must stay until then.
    __device__ void drain() { await_stores<0>(); }

private:
    static constexpr std::uint32_t wide_columns = Config::config.store_columns(2);    // of a box of 16-bit elements
    static constexpr std::uint32_t narrow_columns = Config::config.store_columns(4);  // of 32-bit ones
    static constexpr std::uint32_t chunk_columns = wide_columns;                      // in registers at a time
    static constexpr std::uint32_t group_columns = BlackwellSharedTile<Config>::chunk_columns;
    static constexpr std::uint32_t narrow_boxes = chunk_columns / narrow_columns;
    static_assert(narrow_boxes <= staging_buffers && chunk_columns % group_columns == 0);

    using Values = RegisterTile<float, chunk_columns>;
    using Group = float[group_columns];

    /// TMA stores D. Without K there is no accumulator to read.
    __device__ bool streams() const { return arguments_.stores_by_tma && arguments_.k_steps > 0; }

    /// Columns inside of D among `Count` from `column` on.
    template <std::uint32_t Count>
    __device__ int columns_inside(std::int64_t column) const
    {
        return static_cast<int>(max(min(static_cast<std::int64_t>(Count), gemm_.n - column), std::int64_t{0}));
    }

    /// Calls `visit(column of the group)` for each group of a chunk, unrolled.
    template <class Visit>
    __device__ __forceinline__ static void for_each_group(Visit&& visit)
    {
#pragma unroll
        for (std::uint32_t first = 0; first < chunk_columns; first += group_columns) {
            visit(first);
        }
    }

    /// The same with one copy of the code, for what is rare or long: each group in turn is the first one of `values`.
    template <class Visit>
    __device__ __forceinline__ static void for_each_group_first(Values& values, Visit&& visit)
    {
#pragma unroll 1
        for (std::uint32_t group = 0; group < chunk_columns; group += group_columns) {
            visit(group);
            Group first;
            copy_group(values, 0, first);
            detail::rotate_in(values.values, first);
        }
    }

    /// Waits until at most the `Newest` latest stores have still to read their buffers.
    template <int Newest>
    __device__ void await_stores() const
    {
        if (lane_ == 0) {
            tma_wait_stores_read<Newest>();
        }
        __syncwarp();
    }

    /// Waits until no store reads what the next chunk needs: one buffer, or both.
    __device__ void await_buffers() const
    {
        if (wide_ || narrow_boxes == 1) {
            await_stores<staging_buffers - 1>();
        } else {
            await_stores<0>();
        }
    }

    /// Requests a chunk of C. No store reads `buffer` any more.
    __device__ void request_c(const Tile& tile, std::uint32_t first, std::uint32_t buffer)
    {
        if (lane_ == 0) {
            c_loaded_.arrive_and_expect(32 * chunk_columns * (wide_ ? 2 : 4));
            const auto batch = arguments_.c_batched ? static_cast<std::int32_t>(tile.batch()) : 0;
#pragma unroll 1
            for (std::uint32_t box = 0; box < (wide_ ? 1 : narrow_boxes); ++box) {
                const std::int32_t origin[3] = {
                    static_cast<std::int32_t>(tile.first_column() + first + box * narrow_columns),
                    static_cast<std::int32_t>(tile.first_row()), batch};
                tma_load(arguments_.c, staging_.bytes[(buffer + box) % staging_buffers], c_loaded_.bytes(), origin);
            }
        }
        c_requested_ = true;
    }

    /// Writes the warp's own sums of a shared tile to the workspace. Returns true if all others have arrived: then the
    /// accumulator has the sums of all.
    __device__ __forceinline__ bool gather(const Accumulator& accumulator, const BlackwellSharedTile<Config>& shared,
                                           std::uint32_t inside) const
    {
        const auto for_each_group_of_tile = [&](auto&& visit) {
#pragma unroll 1
            for (std::uint32_t first = 0; first < inside; first += group_columns) {
                visit(first, accumulator.template load_rows<group_columns>(warp_, first).wait());
            }
        };
        if (!shared.others_have_arrived()) {
            for_each_group_of_tile(
                [&](std::uint32_t first, const auto& values) { shared.put(first / group_columns, values); });
            if (!shared.arrive()) {
                return false;
            }
        }
        shared.reset();
        for_each_group_of_tile([&](std::uint32_t first, auto values) {
            shared.add_all(first / group_columns, values);
            accumulator.store_rows(warp_, first, values);
        });
        tcgen05_wait_stores();
        return true;
    }

    /// Stores the tile by TMA.
    __device__ __forceinline__ void stream(const Tile& tile, Accumulator&& accumulator, std::uint32_t inside)
    {
#pragma unroll 1
        for (std::uint32_t first = 0; first < inside; first += chunk_columns) {
            if (gemm_.beta != 0.0F && !c_requested_) {
                await_buffers();
                request_c(tile, first, buffer_);
            }
            // NOLINTNEXTLINE(bugprone-use-after-move): it is released in the last round
            Values values = accumulator.template load_rows<chunk_columns>(warp_, first).wait();
            const bool is_last = first + chunk_columns >= inside;
            if (is_last) {
                std::move(accumulator).release();
            }
            scale(values);
            if (!plain_) {
                finish(tile, first, is_last, values);
            }
            if (gemm_.beta == 0.0F) {  // otherwise C is in them
                await_buffers();
            }
            put(values);
            make_visible_to_tma();
            __syncwarp();
            if (lane_ == 0) {
                store_boxes(tile, first);
            }
            buffer_ ^= 1U;
        }
    }

    /// `detail::scaled` of all values, by instructions for two values: the same bits.
    __device__ __forceinline__ void scale(Values& values) const
    {
#pragma unroll
        for (std::uint32_t j = 0; j < chunk_columns; j += 2) {
            const float2 sums = __fadd2_rn(make_float2(values[j], values[j + 1]), make_float2(0.0F, 0.0F));
            const float2 products = __fmul2_rn(make_float2(alpha_, alpha_), sums);
            values[j] = products.x;
            values[j + 1] = products.y;
        }
    }

    /// Returns true if the bias is one per column, and its elements from each multiple of four columns on are one access.
    __device__ bool has_bias_vectors() const
    {
        return gemm_.bias_axis == BiasAxis::per_column &&
               reinterpret_cast<std::uint64_t>(gemm_.bias) % (4 * size_of(gemm_.bias_type)) == 0;
    }

    __device__ __forceinline__ static void copy_group(const Values& values, std::uint32_t first, Group& group)
    {
#pragma unroll
        for (std::uint32_t j = 0; j < group_columns; ++j) {
            group[j] = values[first + j];
        }
    }

    /// Computes act(x * scale + beta * C + bias) of a chunk, with C from the buffer. The pre-activation goes straight to
    /// global memory. Once C is in registers, requests the next chunk's.
    __device__ __forceinline__ void finish(const Tile& tile, std::uint32_t first, bool is_last, Values& values)
    {
        const std::int64_t row = tile.first_row() + lane_;
        const std::int64_t inside = min(row, gemm_.m - 1);  // lanes below D compute values that nobody stores
        const std::int64_t column = tile.first_column() + first;
        const auto columns_of = [&](std::uint32_t group) { return columns_inside<group_columns>(column + group); };
        detail::prepare_activation(
            values.values, gemm_,
            [&](auto&& use) {
                for_each_group_first(values, [&](std::uint32_t group) {
                    Group scales;
                    Epilogue::load_scales(gemm_, inside, column + group, columns_of(group), scales);
                    use(scales, 0);
                });
            },
            [&](auto&& use) {
                c_loaded_.wait(c_parity_);
                c_parity_ = c_parity_ == PhaseParity::even ? PhaseParity::odd : PhaseParity::even;
                c_requested_ = false;
                for_each_group([&](std::uint32_t group) {
                    Group c;
                    get(c, group);
                    use(c, static_cast<int>(group));
                });
                if ((wide_ || narrow_boxes == 1) && !is_last) {
                    await_stores<0>();
                    request_c(tile, first + chunk_columns, buffer_ ^ 1U);
                }
            },
            [&](auto&& use) {
                if (has_bias_vectors() && column + chunk_columns <= gemm_.n) {
                    const auto add = [&](ElementType type) {
#pragma unroll
                        for (std::uint32_t j = 0; j < chunk_columns; j += 4) {
                            float four[4];
                            detail::load_vector(gemm_.bias, column + j, type, four);
                            use(four, static_cast<int>(j));
                        }
                    };
                    gemm_.bias_type == ElementType::f32 ? add(ElementType::f32) : add(gemm_.bias_type);
                    return;
                }
                for_each_group_first(values, [&](std::uint32_t group) {
                    Group bias;
                    Epilogue::load_bias(gemm_, inside, column + group, columns_of(group), false, bias);
                    use(bias, 0);
                });
            });
        if (gemm_.pre_activation.data == nullptr && gemm_.activation == ActivationKind::none) {
            return;
        }
        if (gemm_.pre_activation.data == nullptr && detail::is_straight_line(gemm_.activation)) {
            detail::activate(values.values, gemm_.activation);
            return;
        }
        for_each_group_first(values, [&](std::uint32_t group) {
            Group part;
            copy_group(values, 0, part);
            if (gemm_.pre_activation.data != nullptr && row < gemm_.m && columns_of(group) > 0) {
                store_pre_activation(gemm_, tile.batch(), row, column + group, columns_of(group), part);
            }
            detail::activate(part, gemm_.activation);
#pragma unroll
            for (std::uint32_t j = 0; j < group_columns; ++j) {
                values[j] = part[j];
            }
        });
    }

    /// Returns the lane's 16-byte piece `index` of its row in the buffer, whose rows have `RowBytes`. The swizzle is the one
    /// of that span: pieces of a row are exchanged by the number of its 128-byte line.
    template <std::uint32_t RowBytes>
    __device__ uint4& piece(std::uint32_t buffer, std::uint32_t index) const
    {
        const std::uint32_t line = lane_ * RowBytes / 128;
        std::byte* const row = staging_.bytes[buffer % staging_buffers] + lane_ * RowBytes;
        return *reinterpret_cast<uint4*>(row + (index ^ (line % (RowBytes / 16))) * 16);
    }
    __device__ uint4& wide_piece(std::uint32_t column) const { return piece<wide_columns * 2>(buffer_, column / 8); }
    __device__ uint4& narrow_piece(std::uint32_t column) const
    {
        return piece<narrow_columns * 4>(buffer_ + column / narrow_columns, column % narrow_columns / 4);
    }

    /// Writes a chunk to the lane's row of the buffer, or of both, rounded to D's type.
    __device__ __forceinline__ void put(const Values& values) const
    {
        if (!wide_) {
#pragma unroll
            for (std::uint32_t j = 0; j < chunk_columns; j += 4) {
                narrow_piece(j) = make_uint4(__float_as_uint(values[j]), __float_as_uint(values[j + 1]),
                                             __float_as_uint(values[j + 2]), __float_as_uint(values[j + 3]));
            }
            return;
        }
        if (gemm_.d_type == ElementType::f16) {
            ptx::stay_a_branch();
            put_16_bit<true>(values);
        } else {
            ptx::stay_a_branch();
            put_16_bit<false>(values);
        }
    }
    template <bool IsF16>
    __device__ __forceinline__ void put_16_bit(const Values& values) const
    {
#pragma unroll
        for (std::uint32_t j = 0; j < chunk_columns; j += 8) {
            std::uint32_t words[4];
#pragma unroll
            for (std::uint32_t i = 0; i < 4; ++i) {
                words[i] = detail::pack(values[j + 2 * i], values[j + 2 * i + 1], IsF16);
            }
            wide_piece(j) = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }

    /// Reads a group of C from the lane's row of the buffer.
    __device__ __forceinline__ void get(Group& values, std::uint32_t first) const
    {
        if (wide_) {
            const bool half = gemm_.d_type == ElementType::f16;
#pragma unroll
            for (std::uint32_t i = 0; i < group_columns; i += 8) {
                const uint4 words = wide_piece(first + i);
                const std::uint32_t list[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
                for (std::uint32_t j = 0; j < 4; ++j) {
                    detail::unpack(list[j], half, values[i + 2 * j], values[i + 2 * j + 1]);
                }
            }
            return;
        }
#pragma unroll
        for (std::uint32_t j = 0; j < group_columns; j += 4) {
            const uint4 words = narrow_piece(first + j);
            values[j] = __uint_as_float(words.x);
            values[j + 1] = __uint_as_float(words.y);
            values[j + 2] = __uint_as_float(words.z);
            values[j + 3] = __uint_as_float(words.w);
        }
    }

    /// Stores what `put` has written. Executed by one thread.
    __device__ void store_boxes(const Tile& tile, std::uint32_t first) const
    {
        if (wide_) {
            tma_store(arguments_.d, tile.template part<32, wide_columns>(0, first / wide_columns),
                      staging_.bytes[buffer_]);
        } else {
#pragma unroll
            for (std::uint32_t box = 0; box < narrow_boxes; ++box) {
                tma_store(arguments_.d, tile.template part<32, narrow_columns>(0, first / narrow_columns + box),
                          staging_.bytes[(buffer_ + box) % staging_buffers]);
            }
        }
        tma_commit_stores();
    }

    /// Stores like the SIMT kernels, for a C or D that TMA cannot address, and for a product without K.
    __device__ __forceinline__ void store_directly(const Tile& tile, Accumulator&& accumulator,
                                                   std::uint32_t inside) const
    {
        const Epilogue epilogue(gemm_, tile.batch());
#pragma unroll 1
        for (std::uint32_t first = 0; first < inside; first += group_columns) {
            RegisterTile<float, group_columns> values{};
            if (arguments_.k_steps > 0) {
                // NOLINTNEXTLINE(bugprone-use-after-move): it is released in the last round
                values = accumulator.template load_rows<group_columns>(warp_, first).wait();
            }
            if (first + group_columns >= inside) {
                std::move(accumulator).release();
            }
#pragma unroll 1
            for (std::uint32_t j = 0; j < group_columns; j += 4) {
                const float four[4] = {values[0], values[1], values[2], values[3]};
                epilogue.store(tile.first_row() + lane_, tile.first_column() + first + j, four);
                detail::rotate_in(values.values, four);
            }
        }
    }

    const BlackwellArguments& arguments_;  // the kernel parameter
    const GemmArguments& gemm_;
    StagingBuffers& staging_;
    Barrier<FilledByTma> c_loaded_;
    std::uint32_t warp_;
    std::uint32_t lane_;
    std::uint32_t buffer_ = 0;
    PhaseParity c_parity_ = PhaseParity::even;
    bool c_requested_ = false;  // for the columns that are finished next
    float alpha_;               // times the scales of A and B
    bool wide_;                 // D has 16-bit elements
    bool plain_;                // D = alpha * A * B
};

}  // namespace tessera::kernels
