#include "tile_products.cuh"

namespace tessera::test {

TESSERA_TEST_TILE_PRODUCT(f8e4m3, f8e4m3, bf16, RowMajor, ColumnMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(f8e4m3, f8e5m2, float, RowMajor, ColumnMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(f8e5m2, f8e4m3, float, RowMajor, ColumnMajor, RowMajor)

}  // namespace tessera::test
