/// The pre-activation that a launch stores beside D: what the kernel gets, and every rule with the text that a user
/// sees.

#include <fmt/format.h>

#include "gemm_runtime.hpp"
#include "heap_count.hpp"
#include "tuning/tuning_cache.hpp"
#include "tuning/tuning_table.hpp"

using namespace tessera;
using tessera::kernels::GemmArguments;
using tessera::test::GemmRuntime;
using tessera::test::refused;

namespace {

struct PreActivationRuntime : GemmRuntime {
    DeviceBuffer<float> x{stream, 10'000};

    static void check(const kernels::Destination& given, const float* data, std::int64_t row_stride,
                      std::int64_t column_stride, std::int64_t batch_stride)
    {
        CHECK(given.data == data);
        CHECK(given.row_stride == row_stride);
        CHECK(given.column_stride == column_stride);
        CHECK(given.batch_stride == batch_stride);
        CHECK(given.type == ElementType::f32);
    }
    /// Calls Gemm::launch for D (4x6) = A (4x5) * B (5x6) with this epilogue.
    void launch_with(const Epilogue& epilogue, std::source_location caller = std::source_location::current())
    {
        Gemm::launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), epilogue, Variant::automatic, caller);
    }
};

}  // namespace

TEST_CASE_FIXTURE(PreActivationRuntime, "the kernel gets the pre-activation with its own strides, in D's order")
{
    launch_with({.activation = Activation::gelu, .pre_activation = x.matrix(4, 6, 11)});
    check(arguments().back().pre_activation, x.data(), 11, 1, 0);
    launch_with({});
    CHECK(arguments().back().pre_activation.data == nullptr);
    // A column-major D is computed as its transpose.
    Gemm::launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6, ColumnMajor{}),
                 {.activation = Activation::gelu, .pre_activation = x.matrix(4, 6, 9, ColumnMajor{})});
    check(arguments().back().pre_activation, x.data(), 9, 1, 0);
    Gemm::launch(stream, a.span().matrices(3, 20, 4, 5, 5), b.matrix(5, 6), d.span().matrices(3, 24, 4, 6, 6),
                 {.pre_activation = x.span().matrices(3, 50, 4, 6, 7)});
    check(arguments().back().pre_activation, x.data(), 7, 1, 50);
    // Levels of batches fold only if the pre-activation's strides do.
    const OperandLayout dense{.rows = 4, .columns = 4, .count = 3, .stride = 16, .outer_count = 2, .outer_stride = 48};
    OperandLayout apart = dense;
    apart.outer_stride = 60;
    const auto before = arguments().size();
    Gemm::launch(stream, operand(a, dense), operand(b, dense), operand(d, dense),
                 {.pre_activation = operand(x, dense)});
    CHECK(arguments().size() == before + 1);
    Gemm::launch(stream, operand(a, dense), operand(b, dense), operand(d, dense),
                 {.pre_activation = operand(x, apart)});
    REQUIRE(arguments().size() == before + 3);
    check(arguments().back().pre_activation, x.data() + 60, 4, 1, 16);
    // An empty D has an empty pre-activation.
    Gemm::launch(stream, a.matrix(0, 5), b.matrix(5, 6), d.matrix(0, 6), {.pre_activation = x.matrix(0, 6)});
    CHECK(arguments().size() == before + 3);
}

TEST_CASE_FIXTURE(PreActivationRuntime, "a pre-activation that does not match D is refused")
{
    CHECK_ERROR(refused("shape_mismatch",
                        "the pre-activation is 6x4 and D is 4x6: they must be equal\n  try: a pre-activation of 4x6"),
                launch_with({.pre_activation = x.matrix(6, 4)}));
    CHECK_ERROR(refused("invalid_argument",
                        "the pre-activation is column-major and D is row-major: they must be equal\n  try: a row-major "
                        "pre-activation"),
                launch_with({.pre_activation = x.matrix(4, 6, ColumnMajor{})}));
    DeviceBuffer<f16> half(stream, 100);
    CHECK_ERROR(refused("invalid_argument",
                        "the pre-activation has elements of f16 and D of f32: they must be equal\n  try: a "
                        "pre-activation of f32"),
                launch_with({.pre_activation = half.matrix(4, 6)}));
    CHECK_ERROR(refused("invalid_argument",
                        "the pre-activation has const elements and cannot be written\n  try: a view of a buffer that "
                        "is not const, or a pointer to elements that are not const"),
                launch_with({.pre_activation = std::as_const(x).matrix(4, 6)}));
    CHECK_ERROR(refused("shape_mismatch",
                        "the pre-activation has 1 and D has 3 matrices\n  try: batches of equal counts: each product "
                        "has its own pre-activation"),
                Gemm::launch(stream, a.span().matrices(3, 20, 4, 5, 5), b.matrix(5, 6),
                             d.span().matrices(3, 24, 4, 6, 6), {.pre_activation = x.matrix(4, 6)}));
    CHECK_ERROR(refused("shape_mismatch",
                        "the pre-activation has 2 and D has 1 matrix\n  try: batches of equal counts: each product has "
                        "its own pre-activation"),
                launch_with({.pre_activation = x.span().matrices(2, 24, 4, 6, 6)}));
    MatrixOperand narrow = x.matrix(4, 6);
    narrow.leading_dimension = 5;
    CHECK_ERROR(refused("invalid_argument",
                        "the pre-activation is 4x6 row-major and has leading dimension 5\n  try: a leading dimension "
                        "of at least 6"),
                launch_with({.pre_activation = narrow}));
    const Stream there{Device(fake::b200)};
    DeviceBuffer<float> far(there, 100);
    CHECK_ERROR(refused("device_mismatch",
                        "the stream belongs to device 0, but the pre-activation belongs to device 2\n  try: use a "
                        "stream and memory of one device, or copy the data to device 0 first"),
                launch_with({.pre_activation = far.matrix(4, 6)}));
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(PreActivationRuntime, "a pre-activation must not overlap what the kernel reads, D or itself")
{
    const auto overlaps = [](const void* at, const std::string& other, const std::string& cure) {
        return refused("aliasing", fmt::format("the pre-activation at {} overlaps {}, which the kernel reads while it "
                                               "writes the pre-activation\n  try: {}",
                                               fmt::ptr(at), other, cure));
    };
    const std::string own = "give the pre-activation memory of its own";
    const auto inside = [](DeviceBuffer<float>& buffer, std::size_t offset) {
        return buffer.span().subspan(offset, 24).matrix(4, 6);
    };
    CHECK_ERROR(overlaps(a.data() + 19, "A", own), launch_with({.pre_activation = inside(a, 19)}));
    CHECK_ERROR(overlaps(b.data() + 29, "B", own), launch_with({.pre_activation = inside(b, 29)}));
    CHECK_ERROR(overlaps(x.data(), "C", "pass the same view as C and as the pre-activation, or " + own),
                launch_with({.c = inside(x, 6), .pre_activation = x.matrix(4, 6)}));
    CHECK_ERROR(overlaps(x.data(), "the bias", own),
                launch_with({.bias = Bias::per_row(x.subspan(23, 4)), .pre_activation = x.matrix(4, 6)}));
    CHECK_ERROR(overlaps(x.data(), "scale_a", own),
                launch_with({.pre_activation = x.matrix(4, 6), .scale_a = x.subspan(23, 1)}));
    for (const std::size_t offset : {0, 23}) {
        CHECK_ERROR(refused("aliasing", fmt::format("the pre-activation at {} overlaps D at {}: the kernel writes "
                                                    "both\n  try: give the pre-activation memory of its own",
                                                    fmt::ptr(d.data() + offset), fmt::ptr(d.data()))),
                    launch_with({.pre_activation = inside(d, offset)}));
    }
    CHECK_ERROR(refused("aliasing",
                        "the pre-activation's 3 matrices of 4x6 overlap with a batch stride of 23 elements: each "
                        "product needs its own memory\n  try: a batch stride of at least 24 for the pre-activation; "
                        "only inputs may overlap"),
                Gemm::launch(stream, a.span().matrices(3, 20, 4, 5, 5), b.matrix(5, 6),
                             d.span().matrices(3, 24, 4, 6, 6), {.pre_activation = x.span().matrices(3, 23, 4, 6, 6)}));
    CHECK(fake::launches().empty());
    // As the same view, C may be what the pre-activation replaces. Blocks of one parent may be beside each other.
    launch_with({.c = x.matrix(4, 6), .pre_activation = x.matrix(4, 6)});
    launch_with({.pre_activation = inside(d, 24)});
    const auto parent = d.matrix(10, 20);
    Gemm::launch(stream, a.matrix(4, 5), b.matrix(5, 6), parent.block(0, 6, 4, 6),
                 {.pre_activation = parent.block(0, 0, 4, 6)});
    CHECK(fake::launches().size() == 3);
}

TEST_CASE_FIXTURE(PreActivationRuntime, "a plan is for a product with a pre-activation or without one")
{
    GemmProblem problem{.m = 4, .n = 6, .k = 5, .activation = Activation::silu, .has_pre_activation = true};
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), problem);
    CHECK(plan.explain().find("D row-major, silu, pre-activation stored") != std::string::npos);
    const Epilogue epilogue{.activation = Activation::silu, .pre_activation = x.matrix(4, 6, 8)};
    fake::keep_argument_bytes(0);
    plan.launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), epilogue);
    const long before = test::heap_allocations();
    plan.launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), epilogue);
    launch_with(epilogue);
    CHECK(test::heap_allocations() == before);
    CHECK(fake::launches().size() == 3);
    const auto differs = [](const std::string& what) {
        return "tessera: shape_mismatch in GemmPlan::launch\n  " + what +
               "\n  try: prepare a plan for these operands, or call Gemm::launch";
    };
    CHECK_ERROR(differs("there is no pre-activation, but the plan was prepared for one"),
                plan.launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), {.activation = Activation::silu}));
    problem.has_pre_activation = false;
    const GemmPlan without = GemmPlan::prepare(Device(fake::h200), problem);
    CHECK_ERROR(differs("there is a pre-activation, but the plan was prepared without one: set "
                        "problem.has_pre_activation"),
                without.launch(stream, a.matrix(4, 5), b.matrix(5, 6), d.matrix(4, 6), epilogue));
    problem.pre_activation.leading_dimension = 5;
    CHECK_ERROR(
        "tessera: invalid_argument in GemmPlan::prepare\n  the pre-activation is 4x6 row-major and has leading "
        "dimension 5\n  try: a leading dimension of at least 6, or 0 for no gaps",
        GemmPlan::prepare(Device(fake::h200), problem));

    const OperandLayout dense{.rows = 4, .columns = 4, .count = 3, .stride = 16, .outer_count = 2, .outer_stride = 48};
    OperandLayout apart = dense;
    apart.outer_stride = 60;
    GemmProblem folds{.m = 4, .n = 4, .k = 4, .batches = 3, .outer_batches = 2, .has_pre_activation = true};
    for (MatrixLayout* const layout : {&folds.a, &folds.b, &folds.d, &folds.pre_activation}) {
        layout->batch_stride = 16;
        layout->outer_stride = 48;
    }
    const GemmPlan folding = GemmPlan::prepare(Device(fake::h200), folds);
    CHECK_ERROR(differs("the pre-activation's batch stride of 16 and outer stride of 60 do not fold into one level of "
                        "batches, but the plan was prepared for strides that do: set problem.pre_activation"),
                folding.launch(stream, operand(a, dense), operand(b, dense), operand(d, dense),
                               {.pre_activation = operand(x, apart)}));
}

TEST_CASE("a product with a pre-activation is tuned on its own, and older tuning files still serve the others")
{
    const DeviceProperties h200 = DeviceProperties::of_compute_capability(9, 0);
    GemmProblem problem{.m = 64, .n = 64, .k = 64, .input = ElementType::bf16, .output = ElementType::bf16};
    const auto key = [&] { return detail::tuning_key(problem, h200); };
    const detail::TuningKey without = key();
    problem.has_pre_activation = true;
    CHECK_FALSE(key() == without);
    const detail::TunedChoice tuned{{.variant = Variant::simt_naive}, 1e-6, 2e-6, 3};
    std::string line = detail::format_entry(without, tuned, detail::tuning_build());
    const std::string token = " pre_activation=0";
    REQUIRE(line.find(token) != std::string::npos);
    line.erase(line.find(token), token.size());
    line.erase(line.rfind(" checksum="));
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const char character : line) {
        hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001B3U;
    }
    const auto parsed = detail::parse_entry(fmt::format("{} checksum={:016x}", line, hash));
    REQUIRE(parsed.has_value());
    CHECK(parsed->key == without);
    CHECK(parsed->tuned == tuned);
}
