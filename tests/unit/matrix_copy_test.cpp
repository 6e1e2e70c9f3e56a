/// Copies between the host and matrices whose rows or columns have gaps.

#include "tessera/matrix_copy.hpp"

#include <numeric>

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

std::vector<float> numbers(std::size_t count)
{
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0F);
    return values;
}

struct CopyRuntime : CleanRuntime {
    Stream stream;
    DeviceBuffer<float> memory = DeviceBuffer<float>::from_host(stream, numbers(60));
};

}  // namespace

TEST_CASE_FIXTURE(CopyRuntime, "a matrix with gaps is copied by one call, and the gaps are not touched")
{
    const auto block = memory.matrix(6, 10).block(1, 2, 2, 3);
    CHECK(to_vector(stream, block) == std::vector<float>{13, 14, 15, 23, 24, 25});
    CHECK(to_vector(stream, block.transposed()) == std::vector<float>{13, 14, 15, 23, 24, 25});
    fake::clear_calls();
    copy_from_host(stream, block, std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(fake::count("cudaMemcpy2DAsync") == 1);
    CHECK(fake::count("cudaMemcpyAsync") == 0);
    std::vector<float> expected = numbers(60);
    for (std::size_t i = 0; i < 6; ++i) {
        expected[10 + i / 3 * 10 + 2 + i % 3] = static_cast<float>(i + 1);
    }
    CHECK(memory.to_vector() == expected);
    std::vector<float> columns(6);
    copy_to_host(stream, MatrixView<const float, ColumnMajor>(memory.matrix(2, 3, 4, ColumnMajor{})), columns);
    CHECK(columns == std::vector<float>{1, 2, 5, 6, 9, 10});
    CHECK(to_vector(stream, memory.matrix(0, 10)).empty());
    CHECK(to_vector(stream, MatrixView<float>()).empty());
}

TEST_CASE_FIXTURE(CopyRuntime, "an impossible copy is refused before anything is enqueued")
{
    fake::clear_calls();
    CHECK_ERROR(
        "tessera: shape_mismatch in copy_from_host\n  the matrix is 2x3, which is 6 elements, and the host span has 5\n"
        "  try: a span of rows * columns elements, without gaps",
        copy_from_host(stream, memory.matrix(2, 3, 10), std::vector<float>(5)));
    std::vector<float> seven(7);
    CHECK_ERROR(
        "tessera: shape_mismatch in copy_to_host\n  the matrix is 2x3, which is 6 elements, and the host span has 7\n"
        "  try: a span of rows * columns elements, without gaps",
        copy_to_host(stream, memory.matrix(2, 3, 10), seven));
    const Stream elsewhere{Device(fake::t4)};
    CHECK_THROWS_AS(to_vector(elsewhere, memory.matrix(2, 3, 10)), Error);
    CHECK_THROWS_AS(Graph::capture(stream, [&](StreamRef s) { to_vector(s, memory.matrix(2, 3, 10)); }), Error);
    CHECK(fake::count("cudaMemcpy2DAsync") == 0);
}
