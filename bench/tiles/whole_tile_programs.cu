#include "tiles/tile_programs.cuh"

namespace tessera::bench {

const TilePrograms& whole_tile_programs()
{
    static const TilePrograms programs = detail::tile_programs<true>();
    return programs;
}

}  // namespace tessera::bench
