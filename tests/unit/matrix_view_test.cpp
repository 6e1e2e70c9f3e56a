/// MatrixView and BatchView: addresses of elements, and every way to leave the bounds.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// A span without memory behind it: views only compute addresses and read nothing.
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

TEST_CASE("a matrix that does not fit is refused with the size it needs")
{
    CHECK(span_of(3 * 8 + 5).matrix(4, 5, 8).rows() == 4);  // the last row needs no gap after it
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::matrix\n  a 4x5 row-major matrix with leading dimension 8 needs 29 "
        "elements and "
        "the memory has 28\n  try: a longer buffer, or a smaller matrix",
        span_of(28).matrix(4, 5, 8));
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::matrix\n  a 4x5 column-major matrix with leading dimension 4 needs 20 "
        "elements "
        "and the memory has 19\n  try: a longer buffer, or a smaller matrix",
        span_of(19).matrix(4, 5, ColumnMajor{}));
}

TEST_CASE("impossible extents and leading dimensions are refused")
{
    const auto memory = span_of(100);
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceSpan::matrix\n  a matrix cannot have -1 rows and 2 columns\n  try: extents "
        "of 0 or "
        "more",
        memory.matrix(-1, 2));
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceSpan::matrix\n  a matrix cannot have 2 rows and -3 columns\n  try: extents "
        "of 0 or "
        "more",
        memory.matrix(2, -3));
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceSpan::matrix\n  leading dimension 4 is too small for a 3x5 row-major "
        "matrix\n"
        "  try: a leading dimension of at least 5 (the columns), in elements",
        memory.matrix(3, 5, 4));
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceSpan::matrix\n  leading dimension 2 is too small for a 3x5 column-major "
        "matrix\n"
        "  try: a leading dimension of at least 3 (the rows), in elements",
        memory.matrix(3, 5, 2, ColumnMajor{}));
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceSpan::matrix\n  leading dimension 0 is too small for a 3x0 row-major "
        "matrix\n"
        "  try: a leading dimension of at least 1 (the columns), in elements",
        memory.matrix(3, 0, 0));
}

TEST_CASE("extents beyond 2^63 bytes are refused as such, and smaller ones as too long")
{
    const auto memory = span_of(100);
    CHECK_ERROR(
        "tessera: size_overflow in DeviceSpan::matrix\n  the size of the 4294967296x4294967296 row-major matrix with "
        "leading "
        "dimension 4294967296 does not fit into 63 bits",
        memory.matrix(std::int64_t{1} << 32, std::int64_t{1} << 32));
    CHECK_ERROR(
        "tessera: size_overflow in DeviceSpan::matrix\n  the size of the 1x2305843009213693952 row-major matrix with "
        "leading "
        "dimension 2305843009213693952 does not fit into 63 bits",
        memory.matrix(1, std::int64_t{1} << 61));
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::matrix\n  a 1x2305843009213693951 row-major matrix with leading "
        "dimension 2305843009213693951 needs 2305843009213693951 elements and the memory has 100\n  try: a longer "
        "buffer, or "
        "a smaller matrix",
        memory.matrix(1, largest / 4));
    CHECK_ERROR(
        "tessera: size_overflow in DeviceSpan::matrix\n  the size of the 9223372036854775807x1 row-major matrix with "
        "leading "
        "dimension 9223372036854775807 does not fit into 63 bits",
        memory.matrix(largest, 1, largest));
}

TEST_CASE("blocks outside of their matrix are refused")
{
    const auto matrix = span_of(100).matrix(4, 6, 8);
    const auto block = matrix.block(1, 2, 3, 4);
    CHECK(block.data() == matrix.data() + 8 + 2);
    CHECK(block.leading_dimension() == 8);
    const auto columns = matrix.transposed().block(2, 1, 4, 3);
    CHECK(columns.data() == block.data());
    const auto leaves = [](const std::string& block_text,
                           const std::string& cure = "a first row of 0 to 4 and a first column of 0 to 6") {
        return "tessera: out_of_range in MatrixView::block\n  a block of " + block_text +
               " does not fit into the 4x6 matrix\n  try: " + cure;
    };
    CHECK_ERROR(leaves("4x1 at (1, 0)", "at most 3x6 there"), matrix.block(1, 0, 4, 1));
    CHECK_ERROR(leaves("1x4 at (0, 3)", "at most 4x3 there"), matrix.block(0, 3, 1, 4));
    CHECK_ERROR(leaves("1x1 at (-1, 0)"), matrix.block(-1, 0, 1, 1));
    CHECK_ERROR(leaves("1x1 at (0, -1)"), matrix.block(0, -1, 1, 1));
    CHECK_ERROR(leaves("-1x1 at (0, 0)", "at most 4x6 there"), matrix.block(0, 0, -1, 1));
    CHECK_ERROR(leaves("1x-1 at (0, 0)", "at most 4x6 there"), matrix.block(0, 0, 1, -1));
    CHECK_ERROR(leaves("0x0 at (5, 0)"), matrix.block(5, 0, 0, 0));
    CHECK_ERROR(leaves("9223372036854775807x1 at (1, 0)", "at most 3x6 there"), matrix.block(1, 0, largest, 1));
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
               " of 2x4 elements is outside of the 5x7 matrix\n  try: tile rows 0 to 2 and tile columns 0 to 1";
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
        "tessera: out_of_range in MatrixView::tile\n  tile (0, 0) of 2x4 elements is outside of the 0x7 matrix\n  try: "
        "check first that the matrix has elements",
        span_of(100).matrix(0, 7).tile(0, 0, 2, 4));
}

TEST_CASE("a batch is equally spaced, and an input may repeat a matrix")
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
    CHECK_ERROR("tessera: out_of_range in BatchView::at\n  index 3 is out of range for a batch of 3", batch.at(3));
    CHECK_ERROR("tessera: out_of_range in BatchView::at\n  index -1 is out of range for a batch of 3", batch.at(-1));
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceSpan::matrices\n  a batch cannot have -1 matrices at a stride of 20\n  "
        "try: 0 or "
        "more of each",
        memory.matrices(-1, 20, 4, 5, 5));
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceSpan::matrices\n  a batch cannot have 2 matrices at a stride of -20\n  "
        "try: 0 or "
        "more of each",
        memory.matrices(2, -20, 4, 5, 5));
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::matrices\n  5 of a 4x5 row-major matrix with leading dimension 5 at a "
        "batch "
        "stride of 21 need 104 elements and the memory has 100\n  try: a longer buffer, or fewer matrices",
        memory.matrices(5, 21, 4, 5, 5));
    CHECK_ERROR(
        "tessera: size_overflow in DeviceSpan::matrices\n  the size of 9223372036854775807 matrices at a stride of 20 "
        "does not fit into 63 bits",
        memory.matrices(largest, 20, 4, 5, 5));
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceSpan::matrices\n  leading dimension 4 is too small for a 4x5 row-major "
        "matrix\n"
        "  try: a leading dimension of at least 5 (the columns), in elements",
        memory.matrices(1, 0, 4, 5, 4));
}

TEST_CASE("omitted fields of a batch layout mean no gaps")
{
    const auto memory = span_of(1000);
    const auto packed = memory.matrices({.rows = 4, .columns = 5, .count = 3});
    CHECK(packed.first().leading_dimension() == 5);
    CHECK(packed.stride() == 20);
    CHECK(packed.outer_count() == 1);
    CHECK(packed.total_count() == 3);
    const auto gaps = memory.matrices({.rows = 4, .columns = 5, .leading_dimension = 6, .count = 3}, ColumnMajor{});
    CHECK(gaps.first().leading_dimension() == 6);
    CHECK(gaps.stride() == 5 * 6);
    const auto groups = memory.matrices({.rows = 4, .columns = 5, .count = 3, .stride = 30, .outer_count = 2});
    CHECK(groups.outer_stride() == 90);
    CHECK(groups.total_count() == 6);
    const auto empty = memory.matrices({.rows = 0, .columns = 5, .count = 3});
    CHECK(empty.stride() == 0);
    const BatchView<float> nothing;
    CHECK(nothing.total_count() == 0);
    CHECK(nothing.device() == -1);
}

TEST_CASE("two levels of a batch describe the heads of a fused projection")
{
    // [batch 2][token 3][head 4][feature 5]
    const auto memory = span_of(2 * 3 * 4 * 5);
    const BatchLayout layout{.rows = 3,
                             .columns = 5,
                             .leading_dimension = 4 * 5,
                             .count = 4,
                             .stride = 5,
                             .outer_count = 2,
                             .outer_stride = 3 * 4 * 5};
    const auto heads = memory.matrices(layout);
    CHECK(heads.at(1, 2).data() == memory.data() + 60 + 10);
    CHECK(heads.at(6).data() == heads.at(1, 2).data());
    CHECK(heads.transposed().at(1, 3).data() == memory.data() + 60 + 15);
    CHECK(heads.transposed().at(1, 3).rows() == 5);
    const BatchView<const float> readable = heads;
    CHECK(readable.outer_count() == 2);
    CHECK(readable.outer_stride() == 60);
    CHECK(as_tf32(readable).outer_stride() == 60);
    CHECK_ERROR("tessera: out_of_range in BatchView::at\n  index 8 is out of range for a batch of 8", heads.at(8));
    CHECK_ERROR("tessera: out_of_range in BatchView::at\n  index (1, 4) is out of range for a batch of 2 groups of 4",
                heads.at(1, 4));
    CHECK_ERROR("tessera: out_of_range in BatchView::at\n  index (2, 0) is out of range for a batch of 2 groups of 4",
                heads.at(2, 0));
    CHECK_ERROR("tessera: out_of_range in BatchView::at\n  index (0, -1) is out of range for a batch of 2 groups of 4",
                heads.at(0, -1));
    CHECK_ERROR(
        "tessera: out_of_range in DeviceSpan::matrices\n  2 groups, 60 elements apart, of 4 of a 3x5 row-major matrix "
        "with leading dimension 20 at a batch stride of 5 need 120 elements and the memory has 119\n  try: a longer "
        "buffer, or fewer matrices",
        span_of(119).matrices(layout));
    CHECK_ERROR(
        "tessera: invalid_argument in DeviceSpan::matrices\n  a batch cannot have -2 groups at a stride of 60\n  try: "
        "0 "
        "or more of each",
        memory.matrices({.rows = 3, .columns = 5, .count = 4, .stride = 5, .outer_count = -2, .outer_stride = 60}));
    CHECK_ERROR(
        "tessera: size_overflow in DeviceSpan::matrices\n  the size of 9223372036854775807 groups of 4 matrices at a "
        "stride of 60 does not fit into 63 bits",
        memory.matrices({.rows = 3, .columns = 5, .count = 4, .outer_count = largest}));
    CHECK_ERROR(
        "tessera: size_overflow in DeviceSpan::matrices\n  the size of 4294967296 groups of 4294967296 matrices at a "
        "stride of 0 does not fit into 63 bits",
        memory.matrices({.rows = 1,
                         .columns = 1,
                         .count = std::int64_t{1} << 32,
                         .stride = 0,
                         .outer_count = std::int64_t{1} << 32,
                         .outer_stride = 0}));
}

TEST_CASE("a view without memory is a value like any other")
{
    std::array<MatrixView<const f16, ColumnMajor>, 2> views;
    CHECK(views[1].empty());
    CHECK(views[1].data() == nullptr);
    CHECK(views[1].leading_dimension() == 1);
    CHECK(views[1].device() == -1);
    std::map<int, MatrixView<float>> named;
    named[3] = span_of(12).matrix(3, 4);
    CHECK(named[3].rows() == 3);
    CHECK(named[4].empty());
    static_assert(std::is_trivially_copyable_v<MatrixView<float>> && std::is_trivially_copyable_v<BatchView<float>>);
}

TEST_CASE_FIXTURE(CleanRuntime, "a buffer's views have its device and its bounds")
{
    const Stream stream{Device(fake::t4)};
    DeviceBuffer<float> buffer(stream, 12);
    CHECK(buffer.matrix(3, 4).device() == fake::t4);
    CHECK(buffer.matrix(2, 3, 6, RowMajor{}).leading_dimension() == 6);
    static_assert(std::is_same_v<decltype(std::as_const(buffer).matrix(3, 4)), MatrixView<const float, RowMajor>>);
    static_assert(std::is_same_v<decltype(std::as_const(buffer).matrix(3, 4, 3, ColumnMajor{})),
                                 MatrixView<const float, ColumnMajor>>);
    CHECK_ERROR(
        "tessera: out_of_range in DeviceBuffer::matrix\n  a 4x4 row-major matrix with leading dimension 4 needs 16 "
        "elements and "
        "the memory has 12\n  try: a longer buffer, or a smaller matrix",
        buffer.matrix(4, 4));
    CHECK_ERROR(
        "tessera: out_of_range in DeviceBuffer::matrix\n  a 2x4 row-major matrix with leading dimension 9 needs 13 "
        "elements and "
        "the memory has 12\n  try: a longer buffer, or a smaller matrix",
        std::as_const(buffer).matrix(2, 4, 9));
}

TEST_CASE_FIXTURE(CleanRuntime, "a raw pointer becomes a view only if CUDA says that kernels can access it")
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
        fmt::format("tessera: misaligned in MatrixView::from_raw_device_pointer\n  {} is not 4-byte aligned, as its "
                    "elements must be\n  try: the address of an element, or a copy of the data at an aligned address",
                    fmt::ptr(inside)),
        View::from_raw_device_pointer(inside, 1, 1, 1));
    CHECK_ERROR(
        "tessera: invalid_argument in MatrixView::from_raw_device_pointer\n  leading dimension 3 is too small for a "
        "3x4 row-major matrix\n  try: a leading dimension of at least 4 (the columns), in elements",
        View::from_raw_device_pointer(buffer.data(), 3, 4, 3));
    CHECK_ERROR(
        "tessera: size_overflow in MatrixView::from_raw_device_pointer\n  the size of the "
        "9223372036854775807x1 row-major matrix with leading dimension 9223372036854775807 does not fit into 63 bits",
        View::from_raw_device_pointer(buffer.data(), largest, 1, largest));
}

TEST_CASE_FIXTURE(CleanRuntime, "a raw pointer becomes a batch only if CUDA knows it")
{
    const Stream stream{Device(fake::t4)};
    DeviceBuffer<float> buffer(stream, 24);
    using View = BatchView<float, ColumnMajor>;
    const auto batch = View::from_raw_device_pointer(buffer.data(), {.rows = 3, .columns = 4, .count = 2});
    CHECK(batch.device() == fake::t4);
    CHECK(batch.at(1).data() == buffer.data() + 12);
    CHECK(batch.at(1).leading_dimension() == 3);
    CHECK(View::from_raw_device_pointer(nullptr, {.rows = 3, .columns = 4, .count = 0}).device() == -1);
    float host = 0;
    CHECK_ERROR(
        fmt::format("tessera: wrong_memory in BatchView::from_raw_device_pointer\n  {} is ordinary host memory, "
                    "not device memory\n  try: copy the data to a DeviceBuffer first: "
                    "DeviceBuffer<T>::from_host(stream, data)",
                    fmt::ptr(&host)),
        View::from_raw_device_pointer(&host, {.rows = 1, .columns = 1}));
    CHECK_ERROR(
        "tessera: invalid_argument in BatchView::from_raw_device_pointer\n  leading dimension 2 is too small for a 3x4 "
        "column-major matrix\n  try: a leading dimension of at least 3 (the rows), in elements",
        View::from_raw_device_pointer(buffer.data(), {.rows = 3, .columns = 4, .leading_dimension = 2}));
}

TEST_CASE_FIXTURE(CleanRuntime, "a buffer becomes a batch")
{
    const Stream stream{Device(fake::t4)};
    DeviceBuffer<float> buffer(stream, 24);
    CHECK(buffer.matrices({.rows = 3, .columns = 4, .count = 2}).at(1).data() == buffer.data() + 12);
    static_assert(std::is_same_v<decltype(std::as_const(buffer).matrices({.rows = 1, .columns = 1}, ColumnMajor{})),
                                 BatchView<const float, ColumnMajor>>);
    CHECK_ERROR(
        "tessera: out_of_range in DeviceBuffer::matrices\n  3 of a 3x4 row-major matrix with leading dimension 4 at a "
        "batch stride of 12 need 36 elements and the memory has 24\n  try: a longer buffer, or fewer matrices",
        std::as_const(buffer).matrices({.rows = 3, .columns = 4, .count = 3}));
}

TEST_CASE_FIXTURE(CleanRuntime, "memory of CUDA's own element types can be viewed as the SDK's")
{
    const Stream stream{Device(fake::t4)};
    DeviceBuffer<__half> halves(stream, 24);
    DeviceBuffer<__nv_bfloat16> bfloats(stream, 24);
    DeviceBuffer<__nv_fp8_e4m3> e4m3s(stream, 24);
    DeviceBuffer<__nv_fp8_e5m2> e5m2s(stream, 24);
    static_assert(std::is_same_v<decltype(halves.matrix(4, 6)), MatrixView<f16>>);
    static_assert(std::is_same_v<decltype(std::as_const(halves).matrix(4, 6, 6)), MatrixView<const f16>>);
    static_assert(std::is_same_v<decltype(halves.matrices({.rows = 4, .columns = 6})), BatchView<f16>>);
    static_assert(std::is_same_v<decltype(bfloats.matrix(4, 6, ColumnMajor{})), MatrixView<bf16, ColumnMajor>>);
    static_assert(std::is_same_v<decltype(e4m3s.span().matrix(4, 6)), MatrixView<f8e4m3>>);
    static_assert(std::is_same_v<decltype(e5m2s.span().matrices({.rows = 4, .columns = 6})), BatchView<f8e5m2>>);
    CHECK(static_cast<const void*>(halves.matrix(4, 6).data()) == halves.data());

    const __half* const weights = halves.data();
    const auto view = MatrixView<const f16>::from_raw_device_pointer(weights, 4, 6, 6);
    CHECK(static_cast<const void*>(view.data()) == weights);
    CHECK(view.device() == fake::t4);
    CHECK(MatrixView<const bf16>::from_raw_device_pointer(bfloats.data(), 4, 6, 6).rows() == 4);
    CHECK(MatrixView<f8e4m3>::from_raw_device_pointer(e4m3s.data(), 4, 6, 6).rows() == 4);
    CHECK(BatchView<f8e5m2>::from_raw_device_pointer(e5m2s.data(), {.rows = 2, .columns = 6, .count = 2}).count() == 2);
    CHECK_ERROR(
        "tessera: out_of_range in DeviceBuffer::matrix\n  a 5x5 row-major matrix with leading dimension 5 needs 25 "
        "elements and the memory has 24\n  try: a longer buffer, or a smaller matrix",
        halves.matrix(5, 5));
}
