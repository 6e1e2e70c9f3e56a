#include "tile_products.cuh"

namespace tessera::test {

TESSERA_TEST_TILE_PRODUCT(f16, f16, f16, RowMajor, RowMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(f16, f16, f16, RowMajor, ColumnMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(f16, f16, float, ColumnMajor, RowMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(f16, f16, float, ColumnMajor, ColumnMajor, ColumnMajor)

}  // namespace tessera::test
