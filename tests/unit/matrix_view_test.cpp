/// MatrixView and BatchView: addresses of elements, and every way to leave the memory.

#include <fmt/format.h>

#include <limits>

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// A span that no memory backs: views do arithmetic on addresses and read nothing.
DeviceSpan<float> span_of(std::size_t size) { return {reinterpret_cast<float*>(0x10000), size, 0}; }

}  // namespace

TEST_CASE("a view knows where each element is, in both orders")
{
    const auto memory = span_of(100);
    const auto rows = memory.matrix(3, 5, 8, RowMajor{});
    CHECK(rows.row_stride() == 8);
    CHECK(rows.column_stride() == 1);
    CHECK(rows.leading_dimension() == 8);
    CHECK(rows.device() == 0);
    const auto columns = memory.matrix(3, 5, ColumnMajor{});
    CHECK(columns.row_stride() == 1);
    CHECK(columns.column_stride() == 3);
    const auto transposed = rows.transposed();
    static_assert(std::is_same_v<decltype(transposed), const MatrixView<float, ColumnMajor>>);
    CHECK(transposed.rows() == 5);
    CHECK(transposed.columns() == 3);
    CHECK(transposed.row_stride() == rows.column_stride());
    CHECK(transposed.data() == rows.data());
    const MatrixView<const float> readable = rows;
    CHECK(readable.data() == rows.data());
}

TEST_CASE("a view without elements needs no memory, and its leading dimension is at least 1")
{
    const DeviceSpan<float> none;
    CHECK(none.matrix(0, 5).empty());
    CHECK(none.matrix(5, 0).leading_dimension() == 1);
    CHECK(none.matrix(0, 0, ColumnMajor{}).leading_dimension() == 1);
    CHECK(none.matrix(5, 0).device() == -1);
    CHECK(span_of(4).matrix(2, 2).block(2, 2, 0, 0).empty());
}

TEST_CASE("a matrix that does not fit is refused with what it needs")
{
    CHECK(span_of(3 * 8 + 5).matrix(4, 5, 8).rows() == 4);  // the last row needs no gap behind it
    CHECK_ERROR(
        "tessera: out_of_range in matrix\n  a 4x5 row-major matrix with leading dimension 8 needs 29 elements and "
        "the memory has 28\n  try: a longer buffer, or a smaller matrix",
        span_of(28).matrix(4, 5, 8));
    CHECK_ERROR(
        "tessera: out_of_range in matrix\n  a 4x5 column-major matrix with leading dimension 4 needs 20 elements "
        "and the memory has 19\n  try: a longer buffer, or a smaller matrix",
        span_of(19).matrix(4, 5, ColumnMajor{}));
}

TEST_CASE("impossible extents and leading dimensions are refused")
{
    const auto memory = span_of(100);
    CHECK_ERROR(
        "tessera: invalid_argument in matrix\n  a matrix cannot have -1 rows and 2 columns\n  try: extents of 0 or "
        "more",
        memory.matrix(-1, 2));
    CHECK_ERROR(
        "tessera: invalid_argument in matrix\n  a matrix cannot have 2 rows and -3 columns\n  try: extents of 0 or "
        "more",
        memory.matrix(2, -3));
    CHECK_ERROR(
        "tessera: invalid_argument in matrix\n  leading dimension 4 is too small for a 3x5 row-major matrix\n"
        "  try: a leading dimension of at least 5 (the columns), in elements",
        memory.matrix(3, 5, 4));
    CHECK_ERROR(
        "tessera: invalid_argument in matrix\n  leading dimension 2 is too small for a 3x5 column-major matrix\n"
        "  try: a leading dimension of at least 3 (the rows), in elements",
        memory.matrix(3, 5, 2, ColumnMajor{}));
    CHECK_ERROR(
        "tessera: invalid_argument in matrix\n  leading dimension 0 is too small for a 3x0 row-major matrix\n"
        "  try: a leading dimension of at least 1 (the columns), in elements",
        memory.matrix(3, 0, 0));
}

TEST_CASE("extents whose bytes pass 63 bits are refused, and the largest that do not are only too long")
{
    const auto memory = span_of(100);
    CHECK_ERROR(
        "tessera: size_overflow in matrix\n  the 4294967296x4294967296 row-major matrix with leading dimension "
        "4294967296 spans more bytes than 64 bits can count",
        memory.matrix(std::int64_t{1} << 32, std::int64_t{1} << 32));
    CHECK_ERROR(
        "tessera: size_overflow in matrix\n  the 1x2305843009213693952 row-major matrix with leading dimension "
        "2305843009213693952 spans more bytes than 64 bits can count",
        memory.matrix(1, std::int64_t{1} << 61));
    CHECK_ERROR(
        "tessera: out_of_range in matrix\n  a 1x2305843009213693951 row-major matrix with leading dimension "
        "2305843009213693951 needs 2305843009213693951 elements and the memory has 100\n  try: a longer buffer, or "
        "a smaller matrix",
        memory.matrix(1, largest / 4));
    CHECK_ERROR(
        "tessera: size_overflow in matrix\n  the 9223372036854775807x1 row-major matrix with leading dimension "
        "9223372036854775807 spans more bytes than 64 bits can count",
        memory.matrix(largest, 1, largest));
}

TEST_CASE("blocks stay inside of their matrix")
{
    const auto matrix = span_of(100).matrix(4, 6, 8);
    const auto block = matrix.block(1, 2, 3, 4);
    CHECK(block.data() == matrix.data() + 8 + 2);
    CHECK(block.leading_dimension() == 8);
    const auto columns = matrix.transposed().block(2, 1, 4, 3);
    CHECK(columns.data() == block.data());
    const auto leaves = [](const std::string& block_text) {
        return "tessera: out_of_range in MatrixView::block\n  a block of " + block_text + " leaves the 4x6 matrix";
    };
    CHECK_ERROR(leaves("4x1 at (1, 0)"), matrix.block(1, 0, 4, 1));
    CHECK_ERROR(leaves("1x4 at (0, 3)"), matrix.block(0, 3, 1, 4));
    CHECK_ERROR(leaves("1x1 at (-1, 0)"), matrix.block(-1, 0, 1, 1));
    CHECK_ERROR(leaves("1x1 at (0, -1)"), matrix.block(0, -1, 1, 1));
    CHECK_ERROR(leaves("-1x1 at (0, 0)"), matrix.block(0, 0, -1, 1));
    CHECK_ERROR(leaves("1x-1 at (0, 0)"), matrix.block(0, 0, 1, -1));
    CHECK_ERROR(leaves("0x0 at (5, 0)"), matrix.block(5, 0, 0, 0));
    CHECK_ERROR(leaves("9223372036854775807x1 at (1, 0)"), matrix.block(1, 0, largest, 1));
}

TEST_CASE("tiles cover a matrix, smaller at the lower and right edges")
{
    const auto matrix = span_of(100).matrix(5, 7, 10);
    const auto corner = matrix.tile(2, 1, 2, 4);
    CHECK(corner.rows() == 1);
    CHECK(corner.columns() == 3);
    CHECK(corner.data() == matrix.data() + 4 * 10 + 4);
    const auto outside = [](const std::string& tile) {
        return "tessera: out_of_range in MatrixView::tile\n  tile " + tile +
               " of 2x4 lies outside of the 5x7 matrix\n  try: tile rows 0 to 2 and tile columns 0 to 1";
    };
    CHECK_ERROR(outside("(3, 0)"), matrix.tile(3, 0, 2, 4));
    CHECK_ERROR(outside("(0, 2)"), matrix.tile(0, 2, 2, 4));
    CHECK_ERROR(outside("(-1, 0)"), matrix.tile(-1, 0, 2, 4));
    CHECK_ERROR(outside("(0, -1)"), matrix.tile(0, -1, 2, 4));
    CHECK_ERROR(outside("(9223372036854775807, 0)"), matrix.tile(largest, 0, 2, 4));
    CHECK_ERROR(
        "tessera: invalid_argument in MatrixView::tile\n  a tile cannot have 0 rows and 4 columns\n  try: at least "
        "1 of each",
        matrix.tile(0, 0, 0, 4));
    CHECK_ERROR(
        "tessera: invalid_argument in MatrixView::tile\n  a tile cannot have 2 rows and -4 columns\n  try: at "
        "least 1 of each",
        matrix.tile(0, 0, 2, -4));
    CHECK_ERROR(
        "tessera: out_of_range in MatrixView::tile\n  tile (0, 0) of 2x4 lies outside of the 0x7 matrix\n  try: "
        "the matrix has no elements",
        span_of(100).matrix(0, 7).tile(0, 0, 2, 4));
}

TEST_CASE("a batch is equally spaced, and may repeat an input but not an output")
{
    const auto memory = span_of(100);
    const auto batch = memory.matrices(3, 20, 4, 5, 5);
    CHECK(batch.count() == 3);
    CHECK(batch.stride() == 20);
    CHECK(batch.at(2).data() == memory.data() + 40);
    CHECK(batch.transposed().at(1).rows() == 5);
    const DeviceSpan<const float> readable = memory;
    CHECK(readable.matrices(1000, 0, 4, 5, 5).at(999).data() == memory.data());
    CHECK(readable.matrices(0, 7, 4, 5, 5).count() == 0);
    const BatchView<const float> converted = batch;
    CHECK(converted.count() == 3);
    CHECK_ERROR("tessera: out_of_range in BatchView::at\n  matrix 3 of a batch of 3", batch.at(3));
    CHECK_ERROR("tessera: out_of_range in BatchView::at\n  matrix -1 of a batch of 3", batch.at(-1));
    CHECK_ERROR(
        "tessera: invalid_argument in matrices\n  a batch cannot have -1 matrices at a stride of 20\n  try: 0 or "
        "more of each",
        memory.matrices(-1, 20, 4, 5, 5));
    CHECK_ERROR(
        "tessera: invalid_argument in matrices\n  a batch cannot have 2 matrices at a stride of -20\n  try: 0 or "
        "more of each",
        memory.matrices(2, -20, 4, 5, 5));
    CHECK_ERROR(
        "tessera: invalid_argument in matrices\n  matrices of 20 elements at a batch stride of 19 overlap and "
        "cannot be written\n  try: a batch stride of at least 20, or a batch of const elements",
        memory.matrices(2, 19, 4, 5, 5));
    CHECK_ERROR(
        "tessera: out_of_range in matrices\n  5 of a 4x5 row-major matrix with leading dimension 5 at a batch "
        "stride of 21 need 104 elements and the memory has 100\n  try: a longer buffer, or fewer matrices",
        memory.matrices(5, 21, 4, 5, 5));
    CHECK_ERROR(
        "tessera: size_overflow in matrices\n  9223372036854775807 matrices at a stride of 20 span more bytes than "
        "64 bits can count",
        memory.matrices(largest, 20, 4, 5, 5));
    CHECK_ERROR(
        "tessera: invalid_argument in matrices\n  leading dimension 4 is too small for a 4x5 row-major matrix\n"
        "  try: a leading dimension of at least 5 (the columns), in elements",
        memory.matrices(1, 0, 4, 5, 4));
}

TEST_CASE_FIXTURE(CleanRuntime, "a buffer's views carry its device and its bounds")
{
    const Stream stream{Device(fake::t4)};
    DeviceBuffer<float> buffer(stream, 12);
    CHECK(buffer.matrix(3, 4).device() == fake::t4);
    CHECK(buffer.matrix(2, 3, 6, RowMajor{}).leading_dimension() == 6);
    static_assert(std::is_same_v<decltype(std::as_const(buffer).matrix(3, 4)), MatrixView<const float, RowMajor>>);
    static_assert(std::is_same_v<decltype(std::as_const(buffer).matrix(3, 4, 3, ColumnMajor{})),
                                 MatrixView<const float, ColumnMajor>>);
    CHECK_ERROR(
        "tessera: out_of_range in matrix\n  a 4x4 row-major matrix with leading dimension 4 needs 16 elements and "
        "the memory has 12\n  try: a longer buffer, or a smaller matrix",
        buffer.matrix(4, 4));
    CHECK_ERROR(
        "tessera: out_of_range in matrix\n  a 2x4 row-major matrix with leading dimension 9 needs 13 elements and "
        "the memory has 12\n  try: a longer buffer, or a smaller matrix",
        std::as_const(buffer).matrix(2, 4, 9));
}

TEST_CASE_FIXTURE(CleanRuntime, "a raw pointer becomes a view only if CUDA knows it as memory that kernels reach")
{
    const Stream stream{Device(fake::t4)};
    DeviceBuffer<float> buffer(stream, 12);
    using View = MatrixView<float>;
    CHECK(View::from_raw_device_pointer(buffer.data(), 3, 4, 4).device() == fake::t4);
    CHECK(View::from_raw_device_pointer(nullptr, 0, 4, 4).device() == -1);
    float host = 0;
    const std::string cure = "\n  try: copy the data to a DeviceBuffer first: DeviceBuffer<T>::from_host(stream, data)";
    CHECK_ERROR(
        fmt::format("tessera: wrong_memory in MatrixView::from_raw_device_pointer\n  {} is ordinary host memory, "
                    "not device memory{}",
                    fmt::ptr(&host), cure),
        View::from_raw_device_pointer(&host, 1, 1, 1));
    CHECK_ERROR("tessera: wrong_memory in MatrixView::from_raw_device_pointer\n  0x0 is null, not device memory" + cure,
                View::from_raw_device_pointer(nullptr, 1, 1, 1));
    auto* const inside = reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(buffer.data()) + 1);
    CHECK_ERROR(
        fmt::format("tessera: misaligned in MatrixView::from_raw_device_pointer\n  {} is not a multiple of 4 bytes, "
                    "as the address of such an element is\n  try: the address of an element, not of a byte inside "
                    "of one",
                    fmt::ptr(inside)),
        View::from_raw_device_pointer(inside, 1, 1, 1));
    CHECK_ERROR(
        "tessera: invalid_argument in MatrixView::from_raw_device_pointer\n  leading dimension 3 is too small for a "
        "3x4 row-major matrix\n  try: a leading dimension of at least 4 (the columns), in elements",
        View::from_raw_device_pointer(buffer.data(), 3, 4, 3));
    CHECK_ERROR(
        "tessera: size_overflow in MatrixView::from_raw_device_pointer\n  the "
        "9223372036854775807x1 row-major matrix with leading dimension 9223372036854775807 spans more bytes than "
        "64 bits can count",
        View::from_raw_device_pointer(buffer.data(), largest, 1, largest));
}
