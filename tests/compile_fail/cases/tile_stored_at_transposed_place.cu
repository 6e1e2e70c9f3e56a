// Another CTA stores its tile there.
// expect: "a tile is stored at a place, and not at its transposed position: that is another CTA's"
#include "tessera/tile.cuh"

using namespace tessera;

struct Transpose {
    tile::Input<float, 32, 32> in;
    tile::Output<float, 32, 32> out;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : out.tiles(cta)) {
            const auto turned = tile::transpose(in.load(at.transposed()));
            out.store(at, turned);
#ifdef NEGATIVE
            out.store(at.transposed(), turned);
#endif
        }
    }
};

void run(StreamRef stream, const Transpose& program) { tile::launch(stream, program); }
