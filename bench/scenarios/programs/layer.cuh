// d = max(x * w + bias, 0): a tile program that nvcc and NVRTC compile from this one text.
using namespace tessera;

template <int M, int N, int K>
struct Layer {
    tile::Input<f16, M, K> x;
    tile::Input<f16, K, N> w;
    tile::Input<float, 1, N> bias;
    tile::Output<float, M, N> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, M, N>(cta);
            for (auto [left, right] : tile::stream(cta, x.row(at), w.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::relu(sum + bias.load(at)));
        }
    }
};
