/// The most likely mistakes in a first week with the SDK, and their error texts. Each text names the values and what to
/// do instead. This file: products.

#include "mistakes.hpp"

#include "kernels/gemm/gemm_arguments.hpp"

using namespace tessera;
using test::Mistakes;

TEST_CASE_FIXTURE(Mistakes, "operands whose extents do not fit")
{
    // B looks transposed.
    CHECK_MISTAKE(
        "tessera: shape_mismatch in Gemm::launch\n"
        "  A is 32x64 and B is 32x64: A*B needs A's columns (64) equal to B's rows (32)\n"
        "  try: B looks transposed: pass b.transposed()",
        Gemm::launch(stream, a.matrix(32, 64), b.matrix(32, 64), d.matrix(32, 32)));
    // A's columns are not B's rows.
    CHECK_MISTAKE(
        "tessera: shape_mismatch in Gemm::launch\n"
        "  A is 32x64 and B is 48x16: A*B needs A's columns (64) equal to B's rows (48)\n"
        "  try: a B of 64 rows, or an A of 48 columns",
        Gemm::launch(stream, a.matrix(32, 64), b.matrix(48, 16), d.matrix(32, 16)));
    // D is transposed.
    CHECK_MISTAKE(
        "tessera: shape_mismatch in Gemm::launch\n"
        "  A is 32x64 and B is 64x16, so A*B is 32x16, but D is 16x32\n"
        "  try: D looks transposed: pass d.transposed()",
        Gemm::launch(stream, a.matrix(32, 64), b.matrix(64, 16), d.matrix(16, 32)));
    // D has other extents.
    CHECK_MISTAKE(
        "tessera: shape_mismatch in Gemm::launch\n"
        "  A is 32x64 and B is 64x16, so A*B is 32x16, but D is 32x17\n"
        "  try: a D of 32x16",
        Gemm::launch(stream, a.matrix(32, 64), b.matrix(64, 16), d.matrix(32, 17)));
    // Batches of different lengths.
    CHECK_MISTAKE(
        "tessera: shape_mismatch in Gemm::launch\n"
        "  A has 2, B has 3 and D has 2 matrices\n"
        "  try: batches of equal counts; an input may be a single matrix, which is used for all products",
        Gemm::launch(stream, a.span().matrices(2, 16, 4, 4, 4), b.span().matrices(3, 16, 4, 4, 4),
                     d.span().matrices(2, 16, 4, 4, 4)));
    // A single D for a batch.
    CHECK_MISTAKE(
        "tessera: shape_mismatch in Gemm::launch\n"
        "  A has 2, B has 1 and D has 1 matrix\n"
        "  try: a batch for D, with one matrix for each product",
        Gemm::launch(stream, a.span().matrices(2, 16, 4, 4, 4), b.matrix(4, 4), d.matrix(4, 4)));
}

TEST_CASE_FIXTURE(Mistakes, "epilogues")
{
    // Beta without C.
    CHECK_MISTAKE(
        "tessera: invalid_argument in Gemm::launch\n"
        "  beta is 0.5, but there is no C\n"
        "  try: set .c, or leave beta out",
        Gemm::launch(stream, a.matrix(4, 4), b.matrix(4, 4), d.matrix(4, 4), {.beta = 0.5F}));
    SUBCASE("a C of another type")
    {
        DeviceBuffer<f16> half(stream, 16);
        CHECK_MISTAKE(
            "tessera: invalid_argument in Gemm::launch\n"
            "  C has elements of f16 and D of f32: they must be equal\n"
            "  try: a C of f32",
            Gemm::launch(stream, a.matrix(4, 4), b.matrix(4, 4), d.matrix(4, 4), {.c = half.matrix(4, 4)}));
    }
    // A C of other extents.
    CHECK_MISTAKE(
        "tessera: shape_mismatch in Gemm::launch\n"
        "  C is 4x5 and D is 4x4: they must be equal\n"
        "  try: a C of 4x4",
        Gemm::launch(stream, a.matrix(4, 4), b.matrix(4, 4), d.matrix(4, 4), {.c = c.matrix(4, 5)}));
    // A bias per row that is too long.
    CHECK_MISTAKE(
        "tessera: shape_mismatch in Gemm::launch\n"
        "  the bias has 6 elements and D is 4x6: a bias per row needs 4\n"
        "  try: Bias::per_column",
        Gemm::launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), {.bias = Bias::per_row(c.subspan(0, 6))}));
    // A bias per column that is too short.
    CHECK_MISTAKE(
        "tessera: shape_mismatch in Gemm::launch\n"
        "  the bias has 4 elements and D is 4x6: a bias per column needs 6\n"
        "  try: Bias::per_row",
        Gemm::launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6),
                     {.bias = Bias::per_column(c.subspan(0, 4))}));
}

TEST_CASE_FIXTURE(Mistakes, "variants")
{
    SUBCASE("Hopper's variant elsewhere")
    {
        DeviceBuffer<bf16> x(stream_t4, 4096);
        DeviceBuffer<bf16> y(stream_t4, 4096);
        CHECK_MISTAKE(
            "tessera: variant_refused in Gemm::launch\n"
            "  hopper cannot run 64x64x64 (MxNxK) bf16 -> bf16, A row-major, B row-major, D row-major: T4 has compute "
            "capability 7.5; the kernel is for 9.0 only\n"
            "  try: Variant::automatic, which chooses a variant that can",
            Gemm::launch(stream_t4, x.matrix(64, 64), x.matrix(64, 64), y.matrix(64, 64), {}, Variant::hopper));
    }
    SUBCASE("a Blackwell variant elsewhere")
    {
        DeviceBuffer<bf16> x(stream, 4096);
        DeviceBuffer<bf16> y(stream, 4096);
        CHECK_MISTAKE(
            "tessera: variant_refused in Gemm::launch\n"
            "  blackwell cannot run 64x64x64 (MxNxK) bf16 -> bf16, A row-major, B row-major, D row-major: H200 has "
            "compute capability 9.0; the kernel is for 10.0, 10.3 and 11.0 only\n"
            "  try: Variant::automatic, which chooses a variant that can",
            Gemm::launch(stream, x.matrix(64, 64), x.matrix(64, 64), y.matrix(64, 64), {}, Variant::blackwell));
    }
    // Tensor cores for f32.
    CHECK_MISTAKE(
        "tessera: variant_refused in Gemm::launch\n"
        "  hopper cannot run 64x64x64 (MxNxK) f32 -> f32, A row-major, B row-major, D row-major: tensor cores would "
        "round f32 operands to tf32; to allow that, pass views of tf32\n"
        "  try: Variant::automatic, which chooses a variant that can",
        Gemm::launch(stream, a.matrix(64, 64), b.matrix(64, 64), d.matrix(64, 64), {}, Variant::hopper));
    // A misspelt variant.
    CHECK_MISTAKE(
        "tessera: invalid_argument in variant_from_string\n"
        "  no variant is called 'hoper'; did you mean hopper?\n"
        "  try: one of automatic, simt_naive, simt_tiled, simt_vectorized, simt_coarsened, simt_register_blocked, "
        "mma_sync, hopper, blackwell",
        variant_from_string("hoper"));
}

TEST_CASE_FIXTURE(Mistakes, "plans")
{
    SUBCASE("other extents")
    {
        const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 6, .k = 5});
        CHECK_MISTAKE(
            "tessera: shape_mismatch in GemmPlan::launch\n"
            "  the product is 3x6x5 (MxNxK), but the plan was prepared for 4x6x5 (MxNxK)\n"
            "  try: prepare a plan for these operands, or call Gemm::launch",
            plan.launch(stream, a.matrix(3, 5), b.matrix(5, 6), d.matrix(3, 6)));
    }
    SUBCASE("another leading dimension")
    {
        const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 6, .k = 5});
        CHECK_MISTAKE(
            "tessera: shape_mismatch in GemmPlan::launch\n"
            "  A's leading dimension is 8, but the plan was prepared for 5\n"
            "  try: prepare a plan for these operands, or call Gemm::launch",
            plan.launch(stream, a.matrix(4, 5, 8), b.matrix(5, 6), d.matrix(4, 6)));
    }
    SUBCASE("another order")
    {
        const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 6, .k = 5});
        CHECK_MISTAKE(
            "tessera: shape_mismatch in GemmPlan::launch\n"
            "  B's order is column-major, but the plan was prepared for row-major\n"
            "  try: prepare a plan for these operands, or call Gemm::launch",
            plan.launch(stream, a.matrix(4, 5), b.matrix(5, 6, ColumnMajor{}), d.matrix(4, 6)));
    }
    SUBCASE("another type")
    {
        DeviceBuffer<f16> x(stream, 100);
        const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 6, .k = 5});
        CHECK_MISTAKE(
            "tessera: shape_mismatch in GemmPlan::launch\n"
            "  A's type is f16, but the plan was prepared for f32\n"
            "  B's type is f16, but the plan was prepared for f32\n"
            "  try: prepare a plan for these operands, or call Gemm::launch",
            plan.launch(stream, x.matrix(4, 5), x.matrix(5, 6), d.matrix(4, 6)));
    }
    SUBCASE("an epilogue that was not planned")
    {
        const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 6, .k = 5});
        CHECK_MISTAKE(
            "tessera: shape_mismatch in GemmPlan::launch\n"
            "  the activation is relu, but the plan was prepared for none\n"
            "  try: prepare a plan for these operands, or call Gemm::launch",
            plan.launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), {.activation = Activation::relu}));
    }
    SUBCASE("another device")
    {
        const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 4, .k = 4});
        DeviceBuffer<float> x(stream_t4, 16);
        DeviceBuffer<float> y(stream_t4, 16);
        CHECK_MISTAKE(
            "tessera: device_mismatch in GemmPlan::launch\n"
            "  the plan belongs to device 0, but the stream belongs to device 1\n"
            "  try: use a stream and memory of one device, or copy the data to device 0 first",
            plan.launch(stream_t4, x.matrix(4, 4), x.matrix(4, 4), y.matrix(4, 4)));
    }
}

TEST_CASE_FIXTURE(Mistakes, "a C without beta is added unscaled")
{
    fake::keep_argument_bytes(sizeof(kernels::GemmArguments));
    Gemm::launch(stream, a.matrix(4, 4), b.matrix(4, 4), d.matrix(4, 4), {.c = c.matrix(4, 4)});
    kernels::GemmArguments arguments;
    std::memcpy(&arguments, fake::launches().back().argument.data(), sizeof arguments);
    CHECK(arguments.beta == 1.0F);
    CHECK(arguments.c.data == c.data());
}
