#include "tiles/simt_tiles.hpp"

#include "kernels/simt/simt_gemm.cuh"

namespace tessera::bench {
namespace {

/// The outputs of a thread along one side: more in larger tiles, so that a CTA has 64 to 512 threads.
constexpr int of_thread(int block, int lanes) { return block >= 64 ? 8 : block >= 4 * lanes ? 4 : 1; }

/// The ladder's staged kernel with one buffer, which has every tile.
template <int M, int N>
struct Swept {
    static constexpr kernels::SimtConfig config{.block_m = M,
                                                .block_n = N,
                                                .block_k = 32,
                                                .thread_m = of_thread(M, 4),
                                                .thread_n = of_thread(N, 8),
                                                .lanes_m = 4,
                                                .lanes_n = 8,
                                                .chunk = 4,
                                                .shared_order = kernels::SharedOrder::x_contiguous,
                                                .buffers = kernels::Buffers::one,
                                                .min_ctas = 1};
    static_assert(kernels::is_valid(config));
};

template <int M, int... Columns>
void add_rows(std::vector<SimtTileKernel>& list)
{
    (list.push_back({M, Columns, Swept<M, Columns>::config.block_k, Swept<M, Columns>::config.threads(),
                     reinterpret_cast<const void*>(static_cast<void (*)(kernels::GemmArguments)>(
                         &kernels::staged_gemm<Swept<M, Columns>, f32, true, false, false>))}),
     ...);
}

}  // namespace

std::vector<SimtTileKernel> simt_tile_kernels()
{
    std::vector<SimtTileKernel> list;
    add_rows<8, 8, 16, 32, 64, 128>(list);
    add_rows<16, 8, 16, 32, 64, 128>(list);
    add_rows<32, 8, 16, 32, 64, 128>(list);
    add_rows<64, 8, 16, 32, 64, 128>(list);
    add_rows<128, 8, 16, 32, 64, 128>(list);
    return list;
}

}  // namespace tessera::bench
