#pragma once

/// From global to shared memory: the tiles of A and B for one step along K, as floats, with zeros beyond the operand.
///
/// Words as in simt_config.hpp. A and B are loaded by the same code: x is m for A and n for B, and an operand is
/// contiguous either in k or in x. Which one is known only at run time; each tile takes one uniform branch.

#include <cuda_pipeline_primitives.h>

#include <cstdint>

#include "../common/gemm_arguments.hpp"
#include "../common/ptx.cuh"
#include "simt_config.hpp"

namespace tessera::kernels::detail {

/// A tile (Extent x, BlockK k) in shared memory. A run is padded by 4 floats: runs then start 4 banks apart, which
/// keeps the transposing stores of `ChunkMap` free of conflicts and vector loads aligned.
template <int Extent, int BlockK, SharedOrder Order>
struct SharedTile {
    static constexpr int extent = Extent;
    static constexpr int block_k = BlockK;
    static constexpr SharedOrder order = Order;
    static constexpr int pad = 4;
    static constexpr int run = (Order == SharedOrder::k_contiguous ? BlockK : Extent) + pad;

    __device__ static constexpr int index(int x, int k)
    {
        return Order == SharedOrder::k_contiguous ? x * run + k : k * run + x;
    }

    alignas(16) float elements[run * (Order == SharedOrder::k_contiguous ? Extent : BlockK)];
};

/// The part of an operand that a CTA walks through: `block` values of x, all of K.
template <class Element>
struct OperandStrip {
    const Element* data;  // of its first element
    std::int64_t stride;  // from one contiguous run to the next
    int x_left;           // how many values of x are inside the operand
    bool k_contiguous;
    bool aligned;  // each run starts at a multiple of 4 elements, in bytes

    __device__ OperandStrip(const Operand& operand, std::int64_t x_stride, std::int64_t k_stride, std::int64_t batch,
                            std::int64_t first_x, std::int64_t x_extent, int block)
        : data(static_cast<const Element*>(operand.data) + batch * operand.batch_stride + first_x * x_stride),
          stride(k_stride == 1 ? x_stride : k_stride),
          x_left(static_cast<int>(min(static_cast<std::int64_t>(block), x_extent - first_x))),
          k_contiguous(k_stride == 1),
          aligned((reinterpret_cast<std::uint64_t>(data) | stride * sizeof(Element)) % (4 * sizeof(Element)) == 0)
    {}
};

/// Deals the chunks of a tile to threads. `Along` is the extent in the operand's contiguous direction, `Across` the
/// other.
///
/// Neighbouring lanes take neighbouring chunks of a run, as far as the stores to shared memory allow: if they transpose
/// (`Scatter`), a warp takes 8 x 4 elements (or 2 x 16 chunks of four), full 32-byte sectors that fall into 32 banks.
template <int Along, int Across, int Width, bool Scatter>
struct ChunkMap {
    static constexpr int chunks = Along * Across / Width;
    static constexpr int scattered = Width == 1 ? 8 : 2;
    static constexpr int neighbours = Scatter && scattered < Along / Width ? scattered : Along / Width;

    /// All extents are powers of two: the bits of `chunk` are split among the two coordinates.
    __device__ static constexpr int along(int chunk)
    {
        return (chunk / (neighbours * Across) * neighbours + chunk % neighbours) * Width;
    }
    __device__ static constexpr int across(int chunk) { return chunk / neighbours % Across; }
};

template <class Tile, int Width, bool KContiguous>
using ChunkMapOf = ChunkMap<KContiguous ? Tile::block_k : Tile::extent, KContiguous ? Tile::extent : Tile::block_k,
                            Width, KContiguous != (Tile::order == SharedOrder::k_contiguous)>;

/// Loads through registers: `begin` reads the next tile into registers and `finish` stores it, so that the caller can
/// compute between the two. Takes any alignment and widens 16-bit elements on the way.
template <class Tile, class Element, int Threads, int Chunk>
class RegisterStagedLoader {
public:
    static constexpr bool asynchronous = false;

    __device__ explicit RegisterStagedLoader(const OperandStrip<Element>& strip) : strip_(strip) {}

    __device__ void begin(Tile&, int k_left)
    {
        if (strip_.k_contiguous) {
            load<true>(strip_.x_left, k_left);
            strip_.data += Tile::block_k;
        } else {
            load<false>(k_left, strip_.x_left);
            strip_.data += Tile::block_k * strip_.stride;
        }
    }

    __device__ void finish(Tile& tile)
    {
        if (strip_.k_contiguous) {
            store<true>(tile);
        } else {
            store<false>(tile);
        }
    }

private:
    struct alignas(Chunk * sizeof(Element)) Vector {
        Element elements[Chunk];
    };

    static constexpr int chunks = Tile::extent * Tile::block_k / Chunk;
    static constexpr int chunks_per_thread = (chunks + Threads - 1) / Threads;
    static_assert(chunks % Threads == 0 || chunks < Threads, "a tile's chunks do not divide among the threads");

    __device__ static bool has_chunk() { return chunks >= Threads || threadIdx.x < chunks; }

    template <bool KContiguous>
    __device__ void load(int across_left, int along_left)
    {
        using Map = ChunkMapOf<Tile, Chunk, KContiguous>;
        const int along = Map::along(threadIdx.x);
        const int across = Map::across(threadIdx.x);
        const Element* first = strip_.data + across * strip_.stride + along;
#pragma unroll
        for (int i = 0; i < chunks_per_thread; ++i) {
            const int step_along = Map::along(i * Threads);
            const int step_across = Map::across(i * Threads);
            const Element* source = first + step_across * strip_.stride + step_along;
            const bool run_inside = has_chunk() && across + step_across < across_left;
            const int elements_left = along_left - along - step_along;
            if (Chunk > 1 && strip_.aligned && run_inside && elements_left >= Chunk) {
                staged_[i] = *reinterpret_cast<const Vector*>(source);
            } else {
#pragma unroll
                for (int j = 0; j < Chunk; ++j) {
                    staged_[i].elements[j] = run_inside && j < elements_left ? source[j] : Element{};
                }
            }
        }
    }

    template <bool KContiguous>
    __device__ void store(Tile& tile) const
    {
        using Map = ChunkMapOf<Tile, Chunk, KContiguous>;
        if (!has_chunk()) {
            return;
        }
        const int along = Map::along(threadIdx.x);
        const int across = Map::across(threadIdx.x);
        float* mine = tile.elements + index<KContiguous>(along, across);
#pragma unroll
        for (int i = 0; i < chunks_per_thread; ++i) {
            float* target = mine + index<KContiguous>(Map::along(i * Threads), Map::across(i * Threads));
            const Element(&elements)[Chunk] = staged_[i].elements;
            if constexpr (Chunk == 4 && KContiguous == (Tile::order == SharedOrder::k_contiguous)) {
                *reinterpret_cast<float4*>(target) = make_float4(elements[0], elements[1], elements[2], elements[3]);
            } else {
#pragma unroll
                for (int j = 0; j < Chunk; ++j) {
                    target[index<KContiguous>(j, 0)] = elements[j];
                }
            }
        }
    }

    template <bool KContiguous>
    __device__ static constexpr int index(int along, int across)
    {
        return KContiguous ? Tile::index(across, along) : Tile::index(along, across);
    }

    OperandStrip<Element> strip_;
    Vector staged_[chunks_per_thread];
};

/// Loads with `cp.async`, which passes by the registers: `begin` starts the copies of a tile, as a part of the thread's
/// open group. Four bytes at a time need no alignment and transpose for free; 16 bytes where the operand allows it.
template <class Tile, int Threads>
class AsyncLoader {
public:
    static constexpr bool asynchronous = true;

    __device__ explicit AsyncLoader(const OperandStrip<float>& strip) : strip_(strip), way_(way_of(strip))
    {
        switch (way_) {
            case Way::transposing: place<TransposingMap, true>(); break;
            case Way::vectors: place<VectorMap, false>(); break;
            case Way::scalars: place<ScalarMap, false>(); break;
        }
    }

    __device__ void begin(Tile& tile, int k_left)
    {
        switch (way_) {
            case Way::transposing: copy<TransposingMap, 1, true>(tile, strip_.x_left, k_left); break;
            case Way::vectors: copy<VectorMap, 4, false>(tile, k_left, strip_.x_left); break;
            case Way::scalars: copy<ScalarMap, 1, false>(tile, k_left, strip_.x_left); break;
        }
        strip_.data += Tile::block_k * (strip_.k_contiguous ? 1 : strip_.stride);
    }

private:
    static_assert(Tile::order == SharedOrder::x_contiguous);
    using TransposingMap = ChunkMapOf<Tile, 1, true>;
    using VectorMap = ChunkMapOf<Tile, 4, false>;
    using ScalarMap = ChunkMapOf<Tile, 1, false>;
    enum class Way : unsigned char { transposing, vectors, scalars };

    __device__ static Way way_of(const OperandStrip<float>& strip)
    {
        if (strip.k_contiguous) {
            return Way::transposing;
        }
        return strip.aligned && strip.x_left % 4 == 0 ? Way::vectors : Way::scalars;  // no vector crosses the edge
    }

    /// This thread's first chunk.
    template <class Map, bool KContiguous>
    __device__ void place()
    {
        along_ = Map::along(threadIdx.x);
        across_ = Map::across(threadIdx.x);
        strip_.data += across_ * strip_.stride + along_;
        shared_offset_ = KContiguous ? Tile::index(across_, along_) : Tile::index(along_, across_);
    }

    template <class Map, int Width, bool KContiguous>
    __device__ void copy(Tile& tile, int across_left, int along_left)
    {
        static_assert(Map::chunks % Threads == 0, "a tile's chunks do not divide among the threads");
        float* mine = tile.elements + shared_offset_;
#pragma unroll
        for (int i = 0; i < Map::chunks / Threads; ++i) {
            const int along = Map::along(i * Threads);
            const int across = Map::across(i * Threads);
            const bool inside = along_ + along < along_left && across_ + across < across_left;
            float* target = mine + (KContiguous ? Tile::index(across, along) : Tile::index(along, across));
            ptx::cp_async_or_zero<4 * Width>(target, strip_.data + across * strip_.stride + along, inside);
        }
    }

    OperandStrip<float> strip_;
    Way way_;
    int along_;
    int across_;
    int shared_offset_;
};

}  // namespace tessera::kernels::detail
