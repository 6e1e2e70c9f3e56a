/// What a launch accepts as A, B, C and D: views, batches and run-time typed operands in any combination, single
/// matrices among batches, two levels of batches, and a C without beta.

#include "gemm/gemm_batches.hpp"
#include "gemm_runtime.hpp"

using namespace tessera;
using tessera::kernels::GemmArguments;
using tessera::test::GemmRuntime;
using tessera::test::refused;

namespace {

/// A tensor of another library.
struct Tensor {
    MatrixOperand operand;
    operator MatrixOperand() const { return operand; }
};

}  // namespace

TEST_CASE_FIXTURE(GemmRuntime, "C without beta is added unscaled, and an explicit 0 leaves it out")
{
    const auto launch = [&](const Epilogue& epilogue) {
        Gemm::launch(stream, a.matrix(5, 7), b.matrix(7, 6), d.matrix(5, 6), epilogue);
        return arguments().back();
    };
    CHECK(launch({.c = c.matrix(5, 6)}).beta == 1.0F);
    CHECK(launch({.c = c.matrix(5, 6)}).c.data == c.data());
    CHECK(launch({.beta = 0.0F, .c = c.matrix(5, 6)}).beta == 0.0F);
    CHECK(launch({.beta = -2.0F, .c = c.matrix(5, 6)}).beta == -2.0F);
    CHECK(launch({}).beta == 0.0F);
    // A plan with C accepts a C without beta; a beta of 0 means no C.
    GemmProblem problem{.m = 5, .n = 6, .k = 7, .has_c = true};
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), problem);
    plan.launch(stream, a.matrix(5, 7), b.matrix(7, 6), d.matrix(5, 6), {.c = c.matrix(5, 6)});
    CHECK(arguments().back().beta == 1.0F);
    CHECK_ERROR(
        "tessera: shape_mismatch in GemmPlan::launch\n  there is no C, but the plan was prepared for one\n  try: "
        "prepare a plan for these operands, or call Gemm::launch",
        plan.launch(stream, a.matrix(5, 7), b.matrix(7, 6), d.matrix(5, 6), {.beta = 0.0F, .c = c.matrix(5, 6)}));
}

TEST_CASE_FIXTURE(GemmRuntime, "a single matrix among batches is used for all products")
{
    const auto batch_a = a.span().matrices(3, 35, 5, 7, 7);
    const auto batch_d = d.span().matrices(3, 30, 5, 6, 6);
    Gemm::launch(stream, batch_a, b.matrix(7, 6), batch_d, {.c = c.matrix(5, 6)});
    Gemm::launch(stream, a.matrix(5, 7), b.span().matrices(3, 42, 7, 6, 6), batch_d);
    Gemm::launch(stream, a.matrix(5, 7), b.matrix(7, 6), batch_d);
    const auto all = arguments();
    REQUIRE(all.size() == 3);
    CHECK(all[0].a.batch_stride == 35);
    CHECK(all[0].b.batch_stride == 0);
    CHECK(all[0].c.batch_stride == 0);
    CHECK(all[1].a.batch_stride == 0);
    CHECK(all[1].b.batch_stride == 42);
    CHECK(all[2].d_batch_stride == 30);
    for (const fake::Launch& launch : fake::launches()) {
        CHECK(launch.grid.x == 3 * all[0].raster.tiles());
    }
    // D has a matrix for each product.
    CHECK_ERROR(refused("shape_mismatch",
                        "A has 3, B has 1 and D has 1 matrix\n  try: a batch for D, with one matrix for each product"),
                Gemm::launch(stream, batch_a, b.matrix(7, 6), d.matrix(5, 6)));
    CHECK_ERROR(refused("shape_mismatch",
                        "C has 2 and D has 3 matrices\n  try: batches of equal counts, or a single matrix as C, which "
                        "is used for all products"),
                Gemm::launch(stream, batch_a, b.matrix(7, 6), batch_d, {.c = c.span().matrices(2, 30, 5, 6, 6)}));
    CHECK(fake::launches().size() == 3);
    // The same for a plan.
    GemmProblem problem{.m = 5, .n = 6, .k = 7, .batches = 3};
    problem.a.batch_stride = 35;
    problem.d.batch_stride = 30;
    GemmPlan::prepare(Device(fake::h200), problem).launch(stream, batch_a, b.matrix(7, 6), batch_d);
    CHECK(arguments().back().b.batch_stride == 0);
}

TEST_CASE_FIXTURE(GemmRuntime, "run-time types and orders give the same launch as views")
{
    Gemm::launch(stream, a.matrix(5, 7, 9), b.matrix(7, 6, 8, ColumnMajor{}), d.matrix(5, 6, 10),
                 {.c = c.matrix(5, 6)});
    const MatrixOperand run_time_a = operand(a, {.rows = 5, .columns = 7, .leading_dimension = 9});
    const MatrixOperand run_time_b = operand(b, {.rows = 6, .columns = 7, .leading_dimension = 8}).transposed();
    const MatrixOperand run_time_d = operand(d, {.rows = 5, .columns = 6, .leading_dimension = 10});
    Gemm::launch(stream, run_time_a, run_time_b, run_time_d, {.c = operand(c, {.rows = 5, .columns = 6})});
    Gemm::launch(stream, Tensor{run_time_a}, b.matrix(7, 6, 8, ColumnMajor{}), Tensor{run_time_d},
                 {.c = Tensor{operand(c, {.rows = 5, .columns = 6})}});
    const auto all = fake::launches();
    REQUIRE(all.size() == 3);
    CHECK(all[1].argument == all[0].argument);
    CHECK(all[2].argument == all[0].argument);
}

TEST_CASE_FIXTURE(GemmRuntime, "rules that views enforce by types are errors for run-time operands")
{
    const auto raw = [&](void* data, ElementType type) {
        return MatrixOperand::from_raw_device_pointer(data, type, {.rows = 4, .columns = 4});
    };
    const MatrixOperand f32_a = raw(a.data(), ElementType::f32);
    const MatrixOperand f32_d = raw(d.data(), ElementType::f32);
    CHECK_ERROR(
        refused("invalid_argument",
                "A has elements of f32 and B of bf16\n  try: convert one of them; only f8e4m3 and f8e5m2 can be mixed"),
        Gemm::launch(stream, f32_a, raw(b.data(), ElementType::bf16), f32_d));
    CHECK_ERROR(
        refused(
            "invalid_argument",
            "D cannot have elements of tf32\n  try: a D of f32, f16, bf16, f8e4m3 or f8e5m2; tf32 is for A and B only"),
        Gemm::launch(stream, f32_a, b.matrix(4, 4), raw(d.data(), ElementType::tf32)));
    const std::string is_const = refused("invalid_argument",
                                         "D has const elements and cannot be written\n  try: a view of a buffer that "
                                         "is not const, or a pointer to elements that are not const");
    CHECK_ERROR(is_const, Gemm::launch(stream, f32_a, f32_a, MatrixOperand(std::as_const(d).matrix(4, 4))));
    const void* const read_only = d.data();
    CHECK_ERROR(is_const, Gemm::launch(stream, f32_a, f32_a,
                                       MatrixOperand::from_raw_device_pointer(read_only, ElementType::f32,
                                                                              {.rows = 4, .columns = 4})));
    CHECK_ERROR(
        refused(
            "invalid_argument",
            "B is an empty MatrixOperand\n  try: make it from a view, or with MatrixOperand::from_raw_device_pointer"),
        Gemm::launch(stream, f32_a, MatrixOperand(), f32_d));
    MatrixOperand by_hand = f32_a;
    by_hand.leading_dimension = 3;
    CHECK_ERROR(refused("invalid_argument",
                        "A is 4x4 row-major and has leading dimension 3\n  try: a leading dimension of at least 4"),
                Gemm::launch(stream, by_hand, f32_a, f32_d));
    by_hand = f32_a;
    by_hand.batch_stride = -1;
    CHECK_ERROR(
        refused("invalid_argument", "B has a batch stride of -1 and an outer stride of 0\n  try: strides of 0 or more"),
        Gemm::launch(stream, f32_a, by_hand, f32_d));
    by_hand.batches = -2;
    CHECK_ERROR(refused("invalid_argument", "B is 4x4 and has -2 matrices\n  try: extents of 0 or more"),
                Gemm::launch(stream, f32_a, by_hand, f32_d));
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(GemmRuntime, "omitted fields of a layout mean the same for an operand and for a view")
{
    const DeviceBuffer<float> memory(stream, 1 << 13);
    const auto require = [&](const BatchLayout& layout, std::int64_t stride, std::int64_t outer_stride) {
        const auto view = memory.matrices(layout);
        CHECK(view.stride() == stride);
        CHECK(view.outer_stride() == outer_stride);
        const auto operand = MatrixOperand::from_raw_device_pointer(memory.data(), ElementType::f32,
                                                                    {.rows = layout.rows,
                                                                     .columns = layout.columns,
                                                                     .leading_dimension = layout.leading_dimension,
                                                                     .count = layout.count,
                                                                     .stride = layout.stride,
                                                                     .outer_count = layout.outer_count,
                                                                     .outer_stride = layout.outer_stride});
        CHECK(operand.batch_stride == stride);
        CHECK(operand.outer_stride == outer_stride);
    };
    require({.rows = 2, .columns = 3, .count = 4, .outer_count = 5}, 6, 24);
    require({.rows = 2, .columns = 3, .leading_dimension = 4, .count = 4, .outer_count = 5}, 8, 32);
    require({.rows = 2, .columns = 3, .count = 4, .stride = 10, .outer_count = 5}, 10, 40);
    // Heads inside of tokens: the next group begins after the tokens of this one.
    require({.rows = 16, .columns = 32, .leading_dimension = 128, .count = 4, .stride = 32, .outer_count = 2}, 32,
            2048);
}

TEST_CASE_FIXTURE(GemmRuntime, "foreign memory is checked when an operand is made from it")
{
    const std::string head = " in MatrixOperand::from_raw_device_pointer\n  ";
    const auto make = [&](const void* data, const OperandLayout& shape,
                          std::source_location caller = std::source_location::current()) {
        return MatrixOperand::from_raw_device_pointer(data, ElementType::f32, shape, caller);
    };
    CHECK_ERROR("tessera: invalid_argument" + head +
                    "leading dimension 3 is too small for a 2x4 row-major matrix\n  try: a leading dimension of at "
                    "least 4 (the columns), in elements",
                make(a.data(), {.rows = 2, .columns = 4, .leading_dimension = 3}));
    CHECK_ERROR("tessera: invalid_argument" + head +
                    "a batch cannot have 2 matrices at a stride of -8\n  try: 0 or more of each",
                make(a.data(), {.rows = 2, .columns = 4, .count = 2, .stride = -8}));
    const std::int64_t huge = std::int64_t{1} << 61;
    CHECK_ERROR("tessera: size_overflow" + head +
                    "the size of 3 matrices at a stride of 2305843009213693952 does not fit into 63 bits",
                make(a.data(), {.rows = 2, .columns = 4, .count = 3, .stride = huge}));
    const float host = 0;
    CHECK(test::error_of([&] { make(&host, {.rows = 1, .columns = 1}); })->code() == ErrorCode::wrong_memory);
    const auto* const odd = reinterpret_cast<const std::byte*>(a.data()) + 1;
    CHECK(test::error_of([&] { make(odd, {.rows = 1, .columns = 1}); })->code() == ErrorCode::misaligned);
    const MatrixOperand empty = make(nullptr, {.rows = 0, .columns = 4});
    CHECK(empty.leading_dimension == 4);
    CHECK(empty.device == -1);
    CHECK_FALSE(empty.writable);
    const MatrixOperand dense =
        make(a.data(), {.rows = 2, .columns = 4, .leading_dimension = 6, .count = 3, .outer_count = 2});
    CHECK(dense.batch_stride == 12);
    CHECK(dense.outer_stride == 36);
    const MatrixOperand column = make(a.data(), {.rows = 2, .columns = 4, .row_major = false});
    CHECK(column.leading_dimension == 2);
    CHECK(column.transposed().rows == 4);
    CHECK(column.transposed().row_major);
}

TEST_CASE_FIXTURE(GemmRuntime, "an output whose matrices overlap is refused; inputs may overlap")
{
    const MatrixOperand shared = operand(a, {.rows = 4, .columns = 4, .count = 3, .stride = 0});
    const MatrixOperand apart = operand(d, {.rows = 4, .columns = 4, .count = 3, .stride = 16});
    Gemm::launch(stream, shared, b.matrix(4, 4), apart);
    CHECK_ERROR(
        refused("aliasing",
                "D's 3 matrices of 4x4 overlap with a batch stride of 0 elements: each product needs its own memory\n"
                "  try: a batch stride of at least 16 for D; only inputs may overlap"),
        Gemm::launch(stream, shared, b.matrix(4, 4), operand(d, {.rows = 4, .columns = 4, .count = 3, .stride = 0})));
    CHECK_ERROR(
        refused("aliasing",
                "D's 2x3 matrices of 4x4 overlap with an outer stride of 40 elements: each product needs its own "
                "memory\n  try: an outer stride of at least 48 for D; only inputs may overlap"),
        Gemm::launch(
            stream, a.matrix(4, 4), b.matrix(4, 4),
            operand(d, {.rows = 4, .columns = 4, .count = 3, .stride = 16, .outer_count = 2, .outer_stride = 40})));
    // [batch, sequence, head, element]: the heads are adjacent in each row.
    Gemm::launch(stream, a.matrix(4, 4), b.matrix(4, 4),
                 operand(d, {.rows = 4,
                             .columns = 4,
                             .leading_dimension = 12,
                             .count = 3,
                             .stride = 4,
                             .outer_count = 2,
                             .outer_stride = 48}));
    CHECK(fake::launches().size() == 3);  // the last one's levels do not fold
}

TEST_CASE_FIXTURE(GemmRuntime, "queries and outputs that interleave in one buffer do not count as overlapping")
{
    // [sequence, 2 kinds, 3 heads, 4 elements]: A is kind 0, D is kind 1, and no row of one is in the other.
    const OperandLayout kind{.rows = 5, .columns = 4, .leading_dimension = 24, .count = 3, .stride = 4};
    const auto at = [&](std::size_t offset) {
        return MatrixOperand::from_raw_device_pointer(d.data() + offset, ElementType::f32, kind);
    };
    Gemm::launch(stream, at(0), b.matrix(4, 4), at(12));
    CHECK(fake::launches().size() == 1);
    CHECK(test::error_of([&] { Gemm::launch(stream, at(0), b.matrix(4, 4), at(11)); })->code() == ErrorCode::aliasing);
    CHECK(test::error_of([&] { Gemm::launch(stream, at(0), b.matrix(4, 4), at(13)); })->code() == ErrorCode::aliasing);
}

TEST_CASE_FIXTURE(GemmRuntime, "two levels of batches that fold into one are one kernel")
{
    const OperandLayout levels{.rows = 4, .columns = 4, .count = 3, .stride = 16, .outer_count = 2, .outer_stride = 48};
    Gemm::launch(stream, operand(a, levels), b.matrix(4, 4), operand(d, levels), {.c = operand(c, levels)});
    const auto all = arguments();
    REQUIRE(all.size() == 1);
    CHECK(all[0].a.batch_stride == 16);
    CHECK(all[0].b.batch_stride == 0);
    CHECK(all[0].c.batch_stride == 16);
    CHECK(all[0].d_batch_stride == 16);
    CHECK(fake::launches()[0].grid.x == 6 * all[0].raster.tiles());
    // The outer index may be the faster one.
    const OperandLayout exchanged{
        .rows = 4, .columns = 4, .count = 3, .stride = 32, .outer_count = 2, .outer_stride = 16};
    Gemm::launch(stream, operand(a, exchanged), b.matrix(4, 4), operand(d, exchanged));
    REQUIRE(arguments().size() == 2);
    CHECK(arguments()[1].d_batch_stride == 16);
}

TEST_CASE_FIXTURE(GemmRuntime, "two levels that do not fold need one kernel per index of the smaller level")
{
    const OperandLayout per_head{.rows = 4,
                                 .columns = 4,
                                 .leading_dimension = 12,
                                 .count = 3,
                                 .stride = 4,
                                 .outer_count = 2,
                                 .outer_stride = 100};
    const OperandLayout weights{.rows = 4, .columns = 4, .count = 3, .stride = 16};  // of each head
    const OperandLayout mask{.rows = 4, .columns = 4, .count = 1, .outer_count = 2, .outer_stride = 16};
    Gemm::launch(stream, operand(a, per_head), operand(b, weights), operand(d, per_head), {.c = operand(c, mask)});
    auto all = arguments();
    REQUIRE(all.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(all[i].a.data == a.data() + 100 * i);
        CHECK(all[i].a.batch_stride == 4);
        CHECK(all[i].b.data == b.data());
        CHECK(all[i].b.batch_stride == 16);
        CHECK(all[i].c.data == c.data() + 16 * i);
        CHECK(all[i].c.batch_stride == 0);
        CHECK(all[i].d == d.data() + 100 * i);
        CHECK(all[i].d_batch_stride == 4);
        CHECK(fake::launches()[i].grid.x == 3 * all[i].raster.tiles());
    }
    // With more batches than heads, there is one launch per head.
    OperandLayout many = per_head;
    many.outer_count = 5;
    Gemm::launch(stream, operand(a, many), operand(b, weights), operand(d, many));
    all = arguments();
    REQUIRE(all.size() == 5);
    CHECK(all[4].a.data == a.data() + 8);
    CHECK(all[4].a.batch_stride == 100);
    CHECK(all[4].b.data == b.data() + 32);
    CHECK(all[4].b.batch_stride == 0);
    CHECK(all[4].d == d.data() + 8);
    CHECK(fake::launches()[4].grid.x == 5 * all[4].raster.tiles());
    // Everything is checked before anything is enqueued, and D may be C on two levels.
    Gemm::launch(stream, operand(a, per_head), operand(b, weights), operand(d, per_head), {.c = operand(d, per_head)});
    CHECK(fake::launches().size() == 7);
    OperandLayout beside = per_head;
    beside.outer_stride = 104;
    CHECK(test::error_of([&] {
              Gemm::launch(stream, operand(a, per_head), operand(b, weights), operand(d, per_head),
                           {.c = operand(d, beside)});
          })->code() == ErrorCode::aliasing);
    CHECK(fake::launches().size() == 7);
    // A graph has one node per launch.
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        Gemm::launch(captured, operand(a, per_head), operand(b, weights), operand(d, per_head));
    });
    CHECK(graph.node_count() == 2);
}

TEST_CASE_FIXTURE(GemmRuntime, "views with two levels are launched like run-time operands with two levels")
{
    // [batch][token][head][feature] for A and D, and a matrix for each head as B.
    const BatchLayout heads{.rows = 4,
                            .columns = 4,
                            .leading_dimension = 12,
                            .count = 3,
                            .stride = 4,
                            .outer_count = 2,
                            .outer_stride = 100};
    const auto each_head = b.matrices({.rows = 4, .columns = 4, .count = 3});
    const auto mask = c.matrices({.rows = 4, .columns = 4, .stride = 0, .outer_count = 2, .outer_stride = 16});
    Gemm::launch(stream, a.matrices(heads), each_head, d.matrices(heads), {.c = mask});
    const OperandLayout layout{.rows = 4,
                               .columns = 4,
                               .leading_dimension = 12,
                               .count = 3,
                               .stride = 4,
                               .outer_count = 2,
                               .outer_stride = 100};
    Gemm::launch(stream, operand(a, layout), operand(b, {.rows = 4, .columns = 4, .count = 3}), operand(d, layout),
                 {.c = operand(c, {.rows = 4, .columns = 4, .outer_count = 2})});
    const auto all = fake::launches();
    REQUIRE(all.size() == 4);
    CHECK(all[0].argument == all[2].argument);
    CHECK(all[1].argument == all[3].argument);
    CHECK(arguments()[1].a.data == a.data() + 100);
    // A writable view may repeat one matrix as an input, but not as D.
    const auto repeated = a.matrices({.rows = 4, .columns = 4, .count = 3, .stride = 0});
    const auto apart = d.matrices({.rows = 4, .columns = 4, .count = 3});
    Gemm::launch(stream, repeated, each_head, apart);
    CHECK_ERROR(
        refused("aliasing",
                "D's 3 matrices of 4x4 overlap with a batch stride of 0 elements: each product needs its own memory\n"
                "  try: a batch stride of at least 16 for D; only inputs may overlap"),
        Gemm::launch(stream, apart, each_head, repeated));
}

TEST_CASE_FIXTURE(GemmRuntime, "a plan serves two levels and reports the number of launches")
{
    const OperandLayout per_head{.rows = 4,
                                 .columns = 4,
                                 .leading_dimension = 12,
                                 .count = 3,
                                 .stride = 4,
                                 .outer_count = 2,
                                 .outer_stride = 100};
    GemmProblem problem{.m = 4, .n = 4, .k = 4, .batches = 3, .outer_batches = 2};
    problem.a = {.leading_dimension = 12, .batch_stride = 4, .outer_stride = 100};
    problem.d = problem.a;
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), problem);
    CHECK(plan.explain().find("2x3 batches") != std::string::npos);
    CHECK(plan.explain().find(
              "as 2 launches of 3 matrices each, because the two levels of batches do not fold into one") !=
          std::string::npos);
    plan.launch(stream, operand(a, per_head), b.matrix(4, 4), operand(d, per_head));
    REQUIRE(arguments().size() == 2);
    CHECK(arguments()[1].a.data == a.data() + 100);
    OperandLayout other = per_head;
    other.outer_stride = 104;
    const auto differs = [](const std::string& what) {
        return "tessera: shape_mismatch in GemmPlan::launch\n  " + what +
               "\n  try: prepare a plan for these operands, or call Gemm::launch";
    };
    CHECK_ERROR(differs("A's outer stride is 104, but the plan was prepared for 100"),
                plan.launch(stream, operand(a, other), b.matrix(4, 4), operand(d, per_head)));

    // C's strides decide, too, whether levels fold.
    GemmProblem folds{.m = 4, .n = 4, .k = 4, .batches = 3, .outer_batches = 2, .has_c = true};
    folds.a = {.batch_stride = 16, .outer_stride = 48};
    folds.d = folds.a;
    const OperandLayout dense{.rows = 4, .columns = 4, .count = 3, .stride = 16, .outer_count = 2, .outer_stride = 48};
    const OperandLayout mask{.rows = 4, .columns = 4, .count = 1, .outer_count = 2, .outer_stride = 16};
    const GemmPlan folding = GemmPlan::prepare(Device(fake::h200), folds);
    folding.launch(stream, operand(a, dense), b.matrix(4, 4), operand(d, dense), {.c = operand(c, dense)});
    CHECK(fake::launches().size() == 3);
    CHECK_ERROR(differs("C's batch stride of 0 and outer stride of 16 do not fold into one level of batches, but the "
                        "plan was prepared for strides that do: set problem.c"),
                folding.launch(stream, operand(a, dense), b.matrix(4, 4), operand(d, dense), {.c = operand(c, mask)}));
    folds.c = {.outer_stride = 16};
    const GemmPlan looping = GemmPlan::prepare(Device(fake::h200), folds);
    looping.launch(stream, operand(a, dense), b.matrix(4, 4), operand(d, dense), {.c = operand(c, mask)});
    CHECK(fake::launches().size() == 5);
    looping.launch(stream, operand(a, dense), b.matrix(4, 4), operand(d, dense), {.c = operand(c, dense)});
    CHECK(fake::launches().size() == 7);
    CHECK(arguments().back().c.data == c.data() + 48);
}

TEST_CASE("levels of batches fold or loop as specified, with the resulting alignment")
{
    using Form = detail::BatchLevels::Form;
    GemmProblem problem{.m = 8, .n = 8, .k = 8, .batches = 3, .outer_batches = 2, .input = ElementType::f16};
    problem.a = {.leading_dimension = 8, .batch_stride = 64, .outer_stride = 192};
    problem.b = {.leading_dimension = 8};
    problem.d = problem.a;
    CHECK(detail::levels_of(problem) == detail::BatchLevels{Form::inner, 6, 1});
    problem.d.outer_stride = 193;
    CHECK(detail::levels_of(problem) == detail::BatchLevels{Form::loops_outer, 3, 2});
    problem.a.outer_stride = 194;  // 388 bytes
    const GemmProblem one = detail::one_launch(problem);
    CHECK(one.batches == 3);
    CHECK(one.outer_batches == 1);
    CHECK(one.a.address_alignment == 4);
    CHECK(one.b.address_alignment == 256);
    CHECK(one.d.address_alignment == 4);  // 193 elements of f32
    problem.outer_batches = 4;
    CHECK(detail::levels_of(problem) == detail::BatchLevels{Form::loops_inner, 4, 3});
    CHECK(detail::one_launch(problem).a.batch_stride == 194);
    problem.outer_batches = 1;
    CHECK(detail::levels_of(problem) == detail::BatchLevels{Form::inner, 3, 1});
    problem.batches = 1;
    problem.outer_batches = 4;
    CHECK(detail::levels_of(problem) == detail::BatchLevels{Form::outer, 4, 1});
    problem.batches = std::int64_t{1} << 40;  // more than can be counted do not fold
    problem.outer_batches = std::int64_t{1} << 40;
    problem.a = problem.b = problem.d = {};
    CHECK_FALSE(detail::levels_of(problem).folded());
}
