#pragma once

/// The names that pieces of tile programs use without declaring them, on the pages and in the comments of the headers: parameters of
/// a template around each piece. It is not instantiated: syntax and names are checked, not shapes.

#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

using namespace tessera;

template <class T, int BM, int BN, int BK>
struct TileGemm {
    tile::Input<T, BM, BK> x;
    tile::Input<T, BK, BN> y;
    tile::Output<T, BM, BN> z;
    TESSERA_TILE void operator()(auto cta) const;
};

/// Stands for any input, output, tile, place, CTA or number.
#define TESSERA_TILE_TEMPLATE template <int BM, int BN, class T, class Anything>
#define TESSERA_TILE_NAMES                                                                                      \
    Anything a, Anything b, Anything d, Anything q, Anything k, Anything v, Anything w, Anything x, Anything y, \
        Anything z, Anything at, Anything cta, Anything sum, Anything bias, Anything residual, Anything scale,  \
        Anything weight, Anything y_before, Anything experts, Anything stream, Anything token, Anything total
