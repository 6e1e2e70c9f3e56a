#pragma once

/// Copy role of the Blackwell kernel: the fallback load for operands that TMA cannot address.
///
/// Four warps (8 to 11) read A or B from global memory and write the same stages in the same layout as TMA. They exist
/// only if an operand needs them, and arrive at a stage's `full` barrier beside the load warp.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "blackwell_roles.cuh"
#include "kernels/gemm/unaligned_copy.cuh"

namespace tessera::kernels {

/// Copies parts of an operand, stage by stage. A part is (Rows, 128 bytes of K), with rows along M or N.
template <int ElementBytes, int Rows>
class PartCopier {
    static constexpr int block_k = 128 / ElementBytes;
    // A line across all rows may be narrower than what eight lanes copy together.
    static constexpr bool narrow = Rows * ElementBytes < 128;
    using AlongK = UnalignedCopier<ElementBytes, narrow ? Rows : block_k, narrow ? 1 : Rows / block_k>;
    using AlongRows = std::conditional_t<narrow, UnalignedCopier<ElementBytes, block_k, 1, 64>, AlongK>;

public:
    /// `row_stride` is along M or N and `k_stride` along K, in elements. @param thread  0 to 127
    __device__ PartCopier(const Operand& operand, const TileLayout& layout, std::int64_t row_stride,
                          std::int64_t k_stride, std::int64_t rows, std::int64_t k, std::uint32_t thread)
        : operand_(operand),
          k_major_(layout.major == Major::k),
          source_{.data = nullptr,
                  .stride = (k_major_ ? row_stride : k_stride) * ElementBytes,
                  .lines = static_cast<int>(k_major_ ? rows : k),
                  .run = static_cast<int>(k_major_ ? k : rows)},
          along_k_(thread),
          along_rows_(thread)
    {
        const auto offset = [&](int line) {
            const auto across = static_cast<std::uint32_t>(line);
            const auto along = static_cast<std::uint32_t>(along_k_.element());
            return k_major_ ? layout.offset(across, along) : layout.offset(along, across);
        };
        target_ = {.even = offset(along_k_.line()),
                   .odd = offset(along_k_.line() + 4),
                   .line = layout.span(),
                   .block = k_major_ ? block_k * layout.span() : 128 / layout.span() * layout.block_bytes()};
    }

    /// Moves to K = 0 of the part whose first row is `row`.
    __device__ void begin(std::int64_t row, std::uint32_t batch)
    {
        source_.data = static_cast<const std::byte*>(operand_.data) + batch * operand_.batch_stride * ElementBytes;
        if (k_major_) {
            along_k_.begin(source_, static_cast<int>(row), 0, false);
        } else {
            along_rows_of().begin(source_, 0, static_cast<int>(row), true);
        }
    }

    /// Copies one stage's part to `tile` and moves on to the next stage.
    __device__ __forceinline__ void copy(std::byte* tile)
    {
        if constexpr (narrow) {
            if (!k_major_) {
                along_rows_.copy(tile, target_);
                along_rows_.skip_lines(block_k);
                return;
            }
        }
        along_k_.copy(tile, target_);
        if (k_major_) {
            along_k_.skip_elements(block_k);
        } else {
            along_k_.skip_lines(block_k);
        }
    }

private:
    __device__ AlongRows& along_rows_of()
    {
        if constexpr (narrow) {
            return along_rows_;
        } else {
            return along_k_;
        }
    }

    const Operand& operand_;
    bool k_major_;
    CopySource source_;
    CopyTarget target_{};
    AlongK along_k_;
    AlongRows along_rows_;
};

/// One thread of the four copy warps.
template <class Config, int ElementBytes>
class StageCopier {
    static constexpr BlackwellConfig config = Config::config;

public:
    using Storage = BlackwellStorage<Config>;

    /// @param thread  0 to 127
    __device__ StageCopier(const BlackwellArguments& arguments, Storage& storage, BlackwellPublished<Config> published,
                           const ClusterGrid& cluster, std::uint32_t thread)
        : arguments_(arguments),
          storage_(storage),
          cluster_(cluster),
          published_(published),
          stages_(storage.stages, published),
          a_{part_of_a(thread), part_of_a(thread)},
          b_(arguments.gemm.b, arguments.b.layout, arguments.gemm.b.column_stride, arguments.gemm.b.row_stride,
             arguments.gemm.n, arguments.gemm.k, thread)
    {}

    /// Copies all stages of a tile.
    __device__ void copy(const ClusterTile<Config>& tile)
    {
#pragma unroll
        for (std::uint32_t m_tile = 0; m_tile < Config::config.m_tiles; ++m_tile) {
            a_[m_tile].begin(tile.first_row() + 128 * block_of<Config>(m_tile, cluster_.row()), tile.batch());
        }
        const std::uint32_t part = config.group == CtaGroup::pair ? cluster_.row() : 0;
        b_.begin(tile.first_column() + part * config.b_rows(), tile.batch());
#pragma unroll 1
        for (std::uint32_t step = 0; step < arguments_.k_steps; ++step) {
            auto slot = stages_.acquire();
            if (arguments_.a.by_threads) {
#pragma unroll
                for (std::uint32_t m_tile = 0; m_tile < Config::config.m_tiles; ++m_tile) {
                    a_[m_tile].copy(storage_.a[slot.index()][m_tile]);
                }
            }
            if (arguments_.b.by_threads) {
                b_.copy(storage_.b[slot.index()]);
            }
            if constexpr (Config::config.group == CtaGroup::pair) {
                std::move(slot).publish_written_to(published_.ready(cluster_.at(0, 0)));
            } else {
                std::move(slot).publish_written();
            }
        }
    }

    /// Waits until every stage is free.
    __device__ void drain() { std::move(stages_).drain(); }

private:
    using PartOfA = PartCopier<ElementBytes, 128>;

    __device__ PartOfA part_of_a(std::uint32_t thread) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        return PartOfA(gemm.a, arguments_.a.layout, gemm.a.row_stride, gemm.a.column_stride, gemm.m, gemm.k, thread);
    }

    const BlackwellArguments& arguments_;
    Storage& storage_;
    const ClusterGrid& cluster_;
    BlackwellPublished<Config> published_;
    RingProducer<typename Storage::Stages> stages_;
    PartOfA a_[2];  // the first `m_tiles` are used
    PartCopier<ElementBytes, static_cast<int>(Config::config.b_rows())> b_;
};

}  // namespace tessera::kernels
