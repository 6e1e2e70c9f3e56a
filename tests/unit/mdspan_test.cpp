/// Conversions between views and mdspans. cuda::std::mdspan is part of CCCL, which comes with the CUDA toolkit.

#include "tessera/mdspan.hpp"

#include "clean_runtime.hpp"

#if __has_include(<cuda/std/mdspan>)

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

using Extents = cuda::std::dextents<int, 2>;
template <class T>
using Right = cuda::std::mdspan<T, Extents>;
template <class T>
using Left = cuda::std::mdspan<T, Extents, cuda::std::layout_left>;
template <class T>
using Strided = cuda::std::mdspan<T, Extents, cuda::std::layout_stride>;

template <class T>
Strided<T> strided(T* data, int rows, int columns, int row_stride, int column_stride)
{
    return {data, {Extents(rows, columns), cuda::std::array<int, 2>{row_stride, column_stride}}};
}

struct MdspanRuntime : CleanRuntime {
    Stream stream;
    DeviceBuffer<float> memory{stream, 100};
};

}  // namespace

TEST_CASE_FIXTURE(MdspanRuntime, "a view becomes an mdspan of the same addresses")
{
    const auto block = memory.matrix(6, 8, 10).block(1, 2, 3, 4);
    const auto rows = to_cuda_mdspan(block);
    CHECK(rows.data_handle() == block.data());
    CHECK(rows.extent(0) == 3);
    CHECK(rows.extent(1) == 4);
    CHECK(rows.stride(0) == 10);
    CHECK(rows.stride(1) == 1);
    const auto columns = to_cuda_mdspan(MatrixView<const float>(block).transposed());
    static_assert(std::is_same_v<decltype(columns)::element_type, const float>);
    CHECK(columns.extent(0) == 4);
    CHECK(columns.stride(0) == 1);
    CHECK(columns.stride(1) == 10);
    const auto again = from_raw_device_mdspan<ColumnMajor>(columns);
    static_assert(std::is_same_v<decltype(again), const MatrixView<const float, ColumnMajor>>);
    CHECK(again.data() == block.data());
    CHECK(again.leading_dimension() == 10);
    CHECK(again.device() == memory.device());
}

TEST_CASE_FIXTURE(MdspanRuntime, "an mdspan's layout determines the view's order")
{
    const auto rows = from_raw_device_mdspan(Right<float>(memory.data(), 5, 7));
    static_assert(std::is_same_v<decltype(rows), const MatrixView<float, RowMajor>>);
    CHECK(rows.rows() == 5);
    CHECK(rows.leading_dimension() == 7);
    const auto columns = from_raw_device_mdspan(Left<const float>(memory.data(), 5, 7));
    static_assert(std::is_same_v<decltype(columns), const MatrixView<const float, ColumnMajor>>);
    CHECK(columns.columns() == 7);
    CHECK(columns.leading_dimension() == 5);
    CHECK(from_raw_device_mdspan<RowMajor>(strided(memory.data(), 5, 7, 9, 1)).leading_dimension() == 9);
    CHECK(from_raw_device_mdspan<ColumnMajor>(strided(memory.data(), 5, 7, 1, 9)).leading_dimension() == 9);
    // The stride of a dimension of one element means nothing.
    CHECK(from_raw_device_mdspan<RowMajor>(strided(memory.data(), 5, 1, 9, 77)).leading_dimension() == 9);
    CHECK(from_raw_device_mdspan<RowMajor>(strided(memory.data(), 1, 7, 0, 1)).leading_dimension() == 7);
    CHECK(from_raw_device_mdspan(Right<float>(nullptr, 0, 7)).empty());
}

TEST_CASE_FIXTURE(MdspanRuntime, "an mdspan that no view can represent is refused with a sentence")
{
    CHECK_ERROR(
        "tessera: invalid_argument in from_raw_device_mdspan\n  the 5x7 mdspan has strides of 20 and 2: a row-major "
        "matrix needs a stride of 1 between the elements of a row\n  try: copy the elements: a view can have gaps in "
        "one direction only",
        from_raw_device_mdspan<RowMajor>(strided(memory.data(), 5, 7, 20, 2)));
    CHECK_ERROR(
        "tessera: invalid_argument in from_raw_device_mdspan\n  the 5x7 mdspan has strides of 1 and 9: a row-major "
        "matrix needs a stride of 1 between the elements of a row\n  try: from_raw_device_mdspan<ColumnMajor>",
        from_raw_device_mdspan<RowMajor>(strided(memory.data(), 5, 7, 1, 9)));
    CHECK_ERROR(
        "tessera: invalid_argument in from_raw_device_mdspan\n  the 5x7 mdspan has strides of 9 and 1: a column-major "
        "matrix needs a stride of 1 between the elements of a column\n  try: from_raw_device_mdspan<RowMajor>",
        from_raw_device_mdspan<ColumnMajor>(strided(memory.data(), 5, 7, 9, 1)));
    CHECK_ERROR(
        "tessera: invalid_argument in MatrixView::from_raw_device_pointer\n  leading dimension 6 is too small for a "
        "5x7 "
        "row-major matrix\n  try: a leading dimension of at least 7 (the columns), in elements",
        from_raw_device_mdspan<RowMajor>(strided(memory.data(), 5, 7, 6, 1)));
    float host = 0;
    CHECK_THROWS_AS(from_raw_device_mdspan(Right<float>(&host, 1, 1)), Error);
}

#endif
