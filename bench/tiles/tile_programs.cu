#include "tiles/tile_programs.cuh"

namespace tessera::bench {

const TilePrograms& tile_programs()
{
    static const TilePrograms programs = detail::tile_programs<false>();
    return programs;
}

}  // namespace tessera::bench
