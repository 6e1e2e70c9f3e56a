/// Gemm and GemmPlan: every mismatch of operands, with the text that a user sees.

#include <fmt/format.h>

#include "clean_runtime.hpp"
#include "gemm/simt/simt_backend.hpp"
#include "gemm/variant_chooser.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

struct GemmRuntime : CleanRuntime {
    Stream stream;
    DeviceBuffer<float> a{stream, 10'000};
    DeviceBuffer<float> b{stream, 10'000};
    DeviceBuffer<float> c{stream, 10'000};
    DeviceBuffer<float> d{stream, 10'000};

    /// Calls Gemm::launch for D (4x6) = A (4x5) * B (5x6) with this epilogue.
    void launch_with(const Epilogue& epilogue, std::source_location caller = std::source_location::current())
    {
        Gemm::launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), epilogue, Variant::automatic, caller);
    }
};

std::string mismatch(const std::string& text) { return "tessera: shape_mismatch in Gemm::launch\n  " + text; }

std::string aliases(const void* d, const std::string& name, const std::string& cure)
{
    return fmt::format(
        "tessera: aliasing in Gemm::launch\n  D at {} overlaps {}, which the kernel reads while it writes D\n  try: {}",
        fmt::ptr(d), name, cure);
}

const std::string own_memory = "give D memory of its own";

}  // namespace

TEST_CASE_FIXTURE(GemmRuntime, "errors show mismatched operands as the user wrote them")
{
    const auto launch = [&](auto view_a, auto view_b, auto view_d,
                            std::source_location caller = std::source_location::current()) {
        Gemm::launch(stream, view_a, view_b, view_d, {}, Variant::automatic, caller);
    };
    CHECK_ERROR(mismatch("A is 4x5 and B is 6x5: A*B needs A's columns (5) equal to B's rows (6)\n  try: B looks "
                         "transposed: pass b.transposed()"),
                launch(a.matrix(4, 5), b.matrix(6, 5), d.matrix(4, 6)));
    CHECK_ERROR(mismatch("A is 5x4 and B is 5x6: A*B needs A's columns (4) equal to B's rows (5)\n  try: A looks "
                         "transposed: pass a.transposed()"),
                launch(a.matrix(5, 4), b.matrix(5, 6), d.matrix(4, 6)));
    CHECK_ERROR(mismatch("A is 4x5 and B is 7x6: A*B needs A's columns (5) equal to B's rows (7)\n  try: a B of 5 "
                         "rows, or an A of 7 columns"),
                launch(a.matrix(4, 5), b.matrix(7, 6), d.matrix(4, 6)));
    CHECK_ERROR(mismatch("A is 4x5 and B is 5x6, so A*B is 4x6, but D is 6x4\n  try: D looks transposed: pass "
                         "d.transposed()"),
                launch(a.matrix(4, 5), b.matrix(5, 6), d.matrix(6, 4)));
    CHECK_ERROR(mismatch("A is 4x5 and B is 5x6, so A*B is 4x6, but D is 4x7\n  try: a D of 4x6"),
                launch(a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 7)));
    CHECK_ERROR(mismatch("A has 2, B has 3 and D has 2 matrices\n  try: batches of equal counts; an input may be a "
                         "single matrix, which is used for all products"),
                launch(a.span().matrices(2, 20, 4, 5, 5), b.span().matrices(3, 30, 5, 6, 6),
                       d.span().matrices(2, 24, 4, 6, 6)));
    CHECK_ERROR(mismatch("A has 2, B has 2 and D has 1 matrix\n  try: a batch for D, with one matrix for each product"),
                launch(a.span().matrices(2, 20, 4, 5, 5), b.span().matrices(2, 30, 5, 6, 6),
                       d.span().matrices(1, 24, 4, 6, 6)));
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(GemmRuntime, "C and bias with mismatched extents are refused")
{
    CHECK_ERROR(
        "tessera: invalid_argument in Gemm::launch\n  beta is 0.5, but there is no C\n  try: "
        "set .c, or leave beta out",
        launch_with({.beta = 0.5F}));
    CHECK_ERROR(mismatch("C is 6x4 and D is 4x6: they must be equal\n  try: C looks transposed: pass c.transposed()"),
                launch_with({.beta = 1.0F, .c = c.matrix(6, 4)}));
    CHECK_ERROR(mismatch("C is 4x5 and D is 4x6: they must be equal\n  try: a C of 4x6"),
                launch_with({.c = c.matrix(4, 5)}));
    DeviceBuffer<f16> half(stream, 100);
    CHECK_ERROR(
        "tessera: invalid_argument in Gemm::launch\n  C has elements of f16 and D of f32: they must be equal\n  try: a "
        "C of f32",
        launch_with({.beta = 1.0F, .c = half.matrix(4, 6)}));
    CHECK_ERROR(mismatch("the bias has 6 elements and D is 4x6: a bias per row needs 4\n  try: Bias::per_column"),
                launch_with({.bias = Bias::per_row(c.subspan(0, 6))}));
    CHECK_ERROR(mismatch("the bias has 4 elements and D is 4x6: a bias per column needs 6\n  try: Bias::per_row"),
                launch_with({.bias = Bias::per_column(c.subspan(0, 4))}));
}

TEST_CASE_FIXTURE(GemmRuntime, "gated pairs need an even n, a D of half the columns, and no C or pre-activation")
{
    const auto launch = [&](auto view_b, auto view_d, const Epilogue& epilogue,
                            std::source_location caller = std::source_location::current()) {
        Gemm::launch(stream, a.matrix(4, 5), view_b, view_d, epilogue, Variant::automatic, caller);
    };
    for (const Gating gating : {Gating::interleaved, Gating::side_by_side}) {
        CHECK_ERROR(
            mismatch("B is 5x7: its 7 columns do not make pairs of a gate and a factor\n  try: a B with an even "
                     "number of columns, or Gating::none"),
            launch(b.matrix(5, 7), d.matrix(4, 3), {.gating = gating}));
        CHECK_ERROR(mismatch("A is 4x5 and B is 5x6, so pairs of columns of A*B make 4x3, but D is 4x6\n  try: a D of "
                             "4x3"),
                    launch(b.matrix(5, 6), d.matrix(4, 6), {.gating = gating}));
        CHECK_ERROR(
            "tessera: invalid_argument in Gemm::launch\n  the product has gated pairs and adds C with beta = 1\n"
            "  try: add C in the next product; gated pairs have no C",
            launch(b.matrix(5, 6), d.matrix(4, 3), {.c = c.matrix(4, 3), .gating = gating}));
        CHECK_ERROR(
            "tessera: invalid_argument in Gemm::launch\n  the product has gated pairs and stores the "
            "pre-activation, which has twice the columns of D\n  try: compute A*B without gating where its "
            "columns are needed, or leave the pre-activation out",
            launch(b.matrix(5, 6), d.matrix(4, 3), {.pre_activation = c.matrix(4, 3), .gating = gating}));
        CHECK_ERROR(
            mismatch("the bias has 3 elements and B is 5x6: a bias per column needs 6, because it is added "
                     "before pairs are formed\n  try: a bias of 6 elements"),
            launch(b.matrix(5, 6), d.matrix(4, 3), {.bias = Bias::per_column(c.subspan(0, 3)), .gating = gating}));
    }
    CHECK(fake::launches().empty());
    launch(b.matrix(5, 6), d.matrix(4, 3, ColumnMajor{}),
           {.bias = Bias::per_column(c.subspan(0, 6)), .gating = Gating::side_by_side});
    CHECK(fake::launches().size() == 1);  // not transposed: pairs stay pairs of columns

    GemmProblem problem{.m = 4, .n = 6, .k = 5};
    problem.gating = Gating::interleaved;
    CHECK_ERROR(
        "tessera: shape_mismatch in GemmPlan::launch\n  the gating is side_by_side, but the plan was prepared "
        "for interleaved\n  try: prepare a plan for these operands, or call Gemm::launch",
        GemmPlan::prepare(Device(fake::h200), problem)
            .launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 3), {.gating = Gating::side_by_side}));
    problem.n = 7;
    CHECK_ERROR(
        "tessera: invalid_argument in GemmPlan::prepare\n  7 columns do not make pairs of a gate and a factor\n"
        "  try: an even n",
        static_cast<void>(GemmPlan::prepare(Device(fake::h200), problem)));
}

TEST_CASE_FIXTURE(GemmRuntime, "every operand must be on the stream's device")
{
    const Stream there{Device(fake::t4)};
    DeviceBuffer<float> far(there, 100);
    const auto elsewhere = [](const std::string& name) {
        return "tessera: device_mismatch in Gemm::launch\n  the stream belongs to device 0, but " + name +
               " belongs to device 1\n  try: use a stream and memory of one device, or copy the data to device 0 first";
    };
    const auto launch = [&](auto view_a, auto view_b, auto view_d,
                            std::source_location caller = std::source_location::current()) {
        Gemm::launch(stream, view_a, view_b, view_d, {}, Variant::automatic, caller);
    };
    CHECK_ERROR(elsewhere("A"), launch(far.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6)));
    CHECK_ERROR(elsewhere("B"), launch(a.matrix(4, 5), far.matrix(5, 6), d.matrix(4, 6)));
    CHECK_ERROR(elsewhere("D"), launch(a.matrix(4, 5), b.matrix(5, 6), far.matrix(4, 6)));
    CHECK_ERROR(elsewhere("C"), launch_with({.beta = 1.0F, .c = far.matrix(4, 6)}));
    CHECK_ERROR(elsewhere("the bias"), launch_with({.bias = Bias::per_row(far.subspan(0, 4))}));
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(GemmRuntime, "an output that overlaps an input is refused")
{
    const auto launch = [&](auto view_a, auto view_b, auto view_d, const Epilogue& epilogue = {},
                            std::source_location caller = std::source_location::current()) {
        Gemm::launch(stream, view_a, view_b, view_d, epilogue, Variant::automatic, caller);
    };
    const auto d_view = d.matrix(4, 6);
    CHECK_ERROR(aliases(d.data(), "A", own_memory), launch(d.matrix(4, 5), b.matrix(5, 6), d_view));
    CHECK_ERROR(aliases(d.data(), "B", own_memory), launch(a.matrix(4, 5), d.matrix(5, 6), d_view));
    // Overlaps by one element, at either end.
    CHECK_ERROR(aliases(d.data(), "A", own_memory),
                launch(d.span().subspan(23, 20).matrix(4, 5), b.matrix(5, 6), d_view));
    CHECK_ERROR(aliases(d.data() + 19, "A", own_memory),
                launch(d.matrix(4, 5), b.matrix(5, 6), d.span().subspan(19, 24).matrix(4, 6)));
    CHECK_ERROR(
        aliases(d.data(), "C", "pass the same view as C and as D, or give D memory of its own"),
        launch(a.matrix(4, 5), b.matrix(5, 6), d_view, {.beta = 1.0F, .c = d.span().subspan(6, 24).matrix(4, 6)}));
    CHECK_ERROR(aliases(d.data(), "C", "pass the same view as C and as D, or give D memory of its own"),
                launch(a.matrix(4, 5), b.matrix(5, 6), d_view, {.beta = 1.0F, .c = d.matrix(4, 6, ColumnMajor{})}));
    CHECK_ERROR(aliases(d.data(), "the bias", own_memory),
                launch(a.matrix(4, 5), b.matrix(5, 6), d_view, {.bias = Bias::per_row(d.subspan(20, 4))}));
    // Blocks of one parent that share a column, and batches whose members interleave.
    const auto parent = d.matrix(10, 20);
    CHECK_ERROR(aliases(parent.block(0, 4, 4, 6).data(), "A", own_memory),
                launch(parent.block(0, 9, 4, 5), b.matrix(5, 6), parent.block(0, 4, 4, 6)));
    CHECK_ERROR(aliases(parent.block(0, 4, 4, 6).data(), "A", own_memory),
                launch(parent.block(0, 0, 4, 5), b.matrix(5, 6), parent.block(0, 4, 4, 6)));
    CHECK_ERROR(aliases(d.data() + 10, "A", own_memory),
                launch(d.span().matrices(3, 24, 4, 5, 5), b.span().matrices(3, 30, 5, 6, 6),
                       d.span().subspan(10, 9000).matrices(3, 24, 4, 6, 6)));
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(GemmRuntime, "an output adjacent to its inputs, or equal to C, is allowed")
{
    const auto parent = d.matrix(10, 20);
    Gemm::launch(stream, parent.block(0, 0, 4, 5), b.matrix(5, 6), parent.block(0, 5, 4, 6));
    Gemm::launch(stream, parent.block(0, 6, 4, 5), b.matrix(5, 6), parent.block(0, 0, 4, 6));
    Gemm::launch(stream, a.matrix(4, 5), parent.block(5, 0, 5, 6), parent.block(0, 0, 4, 6));
    Gemm::launch(stream, d.span().subspan(24, 20).matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6));
    launch_with({.beta = 1.0F, .c = d.matrix(4, 6)});
    launch_with({.beta = 0.0F, .c = d.span().subspan(6, 24).matrix(4, 6)});  // C is not read
    launch_with({.bias = Bias::per_row(d.subspan(24, 4))});
    const auto batch = d.span().matrices(3, 24, 4, 6, 6);
    Gemm::launch(stream, a.span().matrices(3, 20, 4, 5, 5), b.span().matrices(3, 30, 5, 6, 6), batch,
                 {.beta = 1.0F, .c = batch});
    Gemm::launch(stream, a.matrix(4, 5), a.matrix(5, 6), d.matrix(4, 6));  // inputs may overlap each other
    CHECK(fake::launches().size() == 9);
}

TEST_CASE_FIXTURE(GemmRuntime, "a variant that cannot compute a problem refuses with the number that breaks the rule")
{
    const auto launch = [&](auto view_a, auto view_b, auto view_d, Variant variant,
                            std::source_location caller = std::source_location::current()) {
        Gemm::launch(stream, view_a, view_b, view_d, {}, variant, caller);
    };
    const auto refused = [](const std::string& problem, const std::string& reason) {
        return "tessera: variant_refused in Gemm::launch\n  simt_vectorized cannot run " + problem + ": " + reason +
               "\n  try: Variant::automatic, which chooses a variant that can";
    };
    const std::string problem = "4x6x5 (MxNxK) f32 -> f32, A row-major, B row-major, D row-major";
    CHECK_ERROR(refused(problem, "A's leading dimension is 20 bytes, not a multiple of 16"),
                launch(a.matrix(4, 5), b.matrix(5, 6, 8), d.matrix(4, 6), Variant::simt_vectorized));
    CHECK_ERROR(refused(problem, "B's leading dimension is 28 bytes, not a multiple of 16"),
                launch(a.matrix(4, 5, 8), b.matrix(5, 6, 7), d.matrix(4, 6), Variant::simt_vectorized));
    CHECK_ERROR(
        refused(problem, "A's address is 4-byte aligned; the kernel needs 16-byte alignment"),
        launch(a.span().subspan(1, 100).matrix(4, 5, 8), b.matrix(5, 6, 8), d.matrix(4, 6), Variant::simt_vectorized));
    CHECK_ERROR(refused(problem + ", 2 batches", "B's batch stride is 168 bytes, not a multiple of 16"),
                launch(a.span().matrices(2, 40, 4, 5, 8), b.span().matrices(2, 42, 5, 6, 8),
                       d.span().matrices(2, 24, 4, 6, 6), Variant::simt_vectorized));
    // With one row, the distance between rows does not matter.
    launch(a.matrix(1, 5), b.matrix(5, 6, 8), d.matrix(1, 6), Variant::simt_vectorized);
    launch(a.matrix(4, 5), b.matrix(5, 6, 7), d.matrix(4, 6), Variant::automatic);
    CHECK(fake::launches().size() == 2);
}

TEST_CASE("an impossible problem gets no plan")
{
    const auto prepare = [](GemmProblem problem, std::source_location caller = std::source_location::current()) {
        fake::reset();
        return GemmPlan::prepare(Device(fake::h200, caller), problem, Variant::automatic, caller);
    };
    const std::string head = "tessera: invalid_argument in GemmPlan::prepare\n  ";
    const GemmProblem good{.m = 4, .n = 6, .k = 5};
    CHECK(prepare(good).workspace_bytes() == 0);
    for (const auto extent : {&GemmProblem::m, &GemmProblem::n, &GemmProblem::k, &GemmProblem::batches}) {
        GemmProblem bad = good;
        bad.*extent = -1;
        CHECK_ERROR(
            head + fmt::format("a product cannot have extents {}x{}x{} and {} batches\n  try: extents of 0 or more",
                               bad.m, bad.n, bad.k, bad.batches),
            prepare(bad));
    }
    GemmProblem bad = good;
    bad.a.leading_dimension = 4;
    CHECK_ERROR(
        head +
            "A is 4x5 row-major and has leading dimension 4\n  try: a leading dimension of at least 5, or 0 for "
            "no gaps",
        prepare(bad));
    bad = good;
    bad.b.row_major = false;
    bad.b.leading_dimension = -2;
    CHECK_ERROR(
        head +
            "B is 5x6 column-major and has leading dimension -2\n  try: a leading dimension of at least 5, or 0 "
            "for no gaps",
        prepare(bad));
    bad = good;
    bad.d.batch_stride = -1;
    CHECK_ERROR(head + "D has a batch stride of -1\n  try: a stride of 0 or more", prepare(bad));
    bad = good;
    bad.a.address_alignment = 12;
    CHECK_ERROR(head + "A has an address alignment of 12 bytes\n  try: a power of two", prepare(bad));
    bad.a.address_alignment = 0;
    CHECK_ERROR(head + "A has an address alignment of 0 bytes\n  try: a power of two", prepare(bad));
}

TEST_CASE_FIXTURE(GemmRuntime, "a plan runs its problem with its variant, also on better aligned memory")
{
    GemmProblem problem{.m = 4, .n = 6, .k = 5};
    problem.a.address_alignment = 4;
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), problem, Variant::simt_tiled);
    CHECK(plan.variant() == Variant::simt_tiled);
    CHECK(plan.problem().a.leading_dimension == 5);
    CHECK(plan.required_alignment() == 4);
    plan.launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6));
    plan.launch(stream, a.span().subspan(1, 20).matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6));
    GemmProblem batched = problem;
    batched.batches = 2;
    batched.a.batch_stride = 20;
    batched.b.batch_stride = 30;
    batched.d.batch_stride = 24;
    GemmPlan::prepare(Device(fake::h200), batched)
        .launch(stream, a.span().matrices(2, 20, 4, 5, 5), b.span().matrices(2, 30, 5, 6, 6),
                d.span().matrices(2, 24, 4, 6, 6));
    CHECK(fake::launches().size() == 3);
    const kernels::SimtKernel tiled =
        detail::simt_kernel_of(Variant::simt_tiled, plan.problem(), Device(fake::h200).properties());
    CHECK(fake::launches()[0].function == tiled.function);
}

TEST_CASE_FIXTURE(GemmRuntime, "a plan's error names what differs from the planned operands")
{
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 6, .k = 5});
    const auto differs = [](const std::string& what) {
        return "tessera: shape_mismatch in GemmPlan::launch\n  " + what +
               "\n  try: prepare a plan for these operands, or call Gemm::launch";
    };
    const auto view_a = a.matrix(4, 5);
    const auto view_b = b.matrix(5, 6);
    const auto view_d = d.matrix(4, 6);
    CHECK_ERROR(differs("the product is 3x6x5 (MxNxK), but the plan was prepared for 4x6x5 (MxNxK)"),
                plan.launch(stream, a.matrix(3, 5), view_b, d.matrix(3, 6)));
    CHECK_ERROR(differs("A's leading dimension is 8, but the plan was prepared for 5"),
                plan.launch(stream, a.matrix(4, 5, 8), view_b, view_d));
    CHECK_ERROR(
        differs("A's leading dimension is 8, but the plan was prepared for 5\n  D's leading dimension is 7, but the "
                "plan was prepared for 6\n  the activation is relu, but the plan was prepared for none"),
        plan.launch(stream, a.matrix(4, 5, 8), view_b, d.matrix(4, 6, 7), {.activation = Activation::relu}));
    CHECK_ERROR(differs("B's order is column-major, but the plan was prepared for row-major"),
                plan.launch(stream, view_a, b.matrix(5, 6, ColumnMajor{}), view_d));
    CHECK_ERROR(differs("the activation is relu, but the plan was prepared for none"),
                plan.launch(stream, view_a, view_b, view_d, {.activation = Activation::relu}));
    CHECK_ERROR(differs("there is a C, but the plan was prepared without one: set problem.has_c"),
                plan.launch(stream, view_a, view_b, view_d, {.c = c.matrix(4, 6)}));
    CHECK_ERROR(differs("the bias is per column, but the plan was prepared for none"),
                plan.launch(stream, view_a, view_b, view_d, {.bias = Bias::per_column(c.subspan(0, 6))}));
    CHECK_ERROR(differs("the number of batches is 2, but the plan was prepared for 1"),
                plan.launch(stream, a.span().matrices(2, 20, 4, 5, 5), b.span().matrices(2, 30, 5, 6, 6),
                            d.span().matrices(2, 24, 4, 6, 6)));
    DeviceBuffer<f16> half(stream, 100);
    DeviceBuffer<bf16> brain(stream, 100);
    CHECK_ERROR(
        differs("A's type is f16, but the plan was prepared for f32\n  B's type is f16, but the plan was prepared for "
                "f32\n  D's type is bf16, but the plan was prepared for f32"),
        plan.launch(stream, half.matrix(4, 5), half.matrix(5, 6), brain.matrix(4, 6)));

    GemmProblem with_c{.m = 4, .n = 6, .k = 5, .batches = 2, .has_c = true};
    with_c.a.batch_stride = 20;
    with_c.b.batch_stride = 30;
    with_c.d.batch_stride = 24;
    const auto batch_a = a.span().matrices(2, 40, 4, 5, 5);
    const auto batch_b = b.span().matrices(2, 30, 5, 6, 6);
    const auto batch_d = d.span().matrices(2, 24, 4, 6, 6);
    CHECK_ERROR(differs("A's batch stride is 40, but the plan was prepared for 20\n  there is no C, but the plan was "
                        "prepared for one"),
                GemmPlan::prepare(Device(fake::h200), with_c).launch(stream, batch_a, batch_b, batch_d));
    const GemmPlan fp8 = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 6, .k = 5, .input = ElementType::f8e4m3});
    DeviceBuffer<f8e4m3> small(stream, 1000);
    CHECK_ERROR(differs("the accumulation of 8-bit products is fast, but the plan was prepared for two_level"),
                fp8.launch(stream, small.matrix(4, 5), small.matrix(5, 6), view_d,
                           {.fp8_accumulation = Fp8Accumulation::fast}));
    CHECK_ERROR(
        "tessera: shape_mismatch in GemmPlan::launch\n  A is 4x5 and B is 6x5: A*B needs A's columns (5) equal to "
        "B's rows (6)\n  try: B looks transposed: pass b.transposed()",
        plan.launch(stream, view_a, b.matrix(6, 5), view_d));
    const Stream there{Device(fake::b200)};
    CHECK_ERROR(
        "tessera: device_mismatch in GemmPlan::launch\n  the plan belongs to device 0, but the stream belongs to "
        "device 2\n  "
        "try: use a stream and memory of one device, or copy the data to device 0 first",
        plan.launch(there, view_a, view_b, view_d));
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(GemmRuntime,
                  "a plan runs on any address that its kernel supports, and reports the required alignment")
{
    const auto misaligned = [&](DeviceBuffer<float>& buffer, std::size_t offset) {
        return buffer.span().subspan(offset, buffer.size() - offset);
    };
    // The default alignment is 256 bytes, but the chosen kernel reads single elements.
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 6, .k = 5});
    plan.launch(stream, misaligned(a, 1).matrix(4, 5), misaligned(b, 3).matrix(5, 6), misaligned(d, 1).matrix(4, 6));
    // This kernel reads 16 bytes at a time.
    const GemmPlan vectors = GemmPlan::prepare(Device(fake::h200), {.m = 4, .n = 8, .k = 8}, Variant::simt_vectorized);
    vectors.launch(stream, misaligned(a, 4).matrix(4, 8), misaligned(b, 8).matrix(8, 8), d.matrix(4, 8));
    CHECK(fake::launches().size() == 2);
    const auto needs = [](const std::string& what) {
        return "tessera: shape_mismatch in GemmPlan::launch\n  " + what +
               "\n  try: prepare a plan for these operands, or call Gemm::launch";
    };
    CHECK_ERROR(
        needs("A's address is 8-byte aligned, but the plan was prepared for 256 bytes and its kernel needs 16: set "
              "problem.a.address_alignment\n  B's address is 4-byte aligned, but the plan was prepared for 256 bytes "
              "and its kernel needs 16: set problem.b.address_alignment"),
        vectors.launch(stream, misaligned(a, 2).matrix(4, 8), misaligned(b, 1).matrix(8, 8), d.matrix(4, 8)));
    CHECK(fake::launches().size() == 2);
}
