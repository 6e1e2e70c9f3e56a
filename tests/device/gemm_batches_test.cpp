/// Batches with two levels: every combination of layouts, single matrices and addends for which the levels fold or
/// loop, and a C without beta. Elements are small integers, whose sums are exact in fp32 and bf16. D must equal the
/// reference bit by bit, and the memory around it must not change. Needs a device.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <vector>

#include "support/test_main.hpp"
#include "tessera/tessera.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr double poison = -7777;
constexpr std::int64_t guard = 64;  // elements before and after each operand

struct Levels {
    std::int64_t outer;
    std::int64_t inner;
};

/// Layout of an operand's matrices.
enum class Layout : std::uint8_t {
    dense,      // [outer][inner][row][column], which folds
    exchanged,  // [inner][outer][row][column], which folds, too
    heads,      // [outer][row][inner][column], which does not
    padded,     // dense, with a gap after each outer index
    per_inner,  // one matrix per inner index, shared by all outer indices
    per_outer,  // one matrix per outer index, shared by all inner indices
    single,     // one matrix for all
};

OperandLayout layout_of(Layout layout, std::int64_t rows, std::int64_t columns, Levels levels)
{
    constexpr std::int64_t gap = 8;
    OperandLayout shape{.rows = rows,
                        .columns = columns,
                        .leading_dimension = columns,
                        .count = levels.inner,
                        .stride = rows * columns,
                        .outer_count = levels.outer,
                        .outer_stride = levels.inner * rows * columns};
    switch (layout) {
        case Layout::dense: break;
        case Layout::exchanged:
            *shape.outer_stride = rows * columns;
            *shape.stride = levels.outer * rows * columns;
            break;
        case Layout::heads:
            *shape.leading_dimension = levels.inner * columns;
            *shape.stride = columns;
            break;
        case Layout::padded: *shape.outer_stride += gap; break;
        case Layout::per_inner: shape.outer_count = 1; break;
        case Layout::per_outer:
            shape.count = 1;
            *shape.outer_stride = rows * columns;
            break;
        case Layout::single: shape.count = shape.outer_count = 1; break;
    }
    return shape;
}

/// A host copy of an operand's memory, and where its elements are.
struct HostOperand {
    OperandLayout shape;
    std::int64_t offset = guard;
    std::vector<double> values;

    HostOperand(const OperandLayout& of, std::int64_t shift) : shape(of), offset(guard + shift)
    {
        const std::int64_t last = index(shape.outer_count - 1, shape.count - 1, shape.rows - 1, shape.columns - 1);
        values.assign(static_cast<std::size_t>(last + 1 + guard), poison);
    }

    std::int64_t index(std::int64_t outer, std::int64_t inner, std::int64_t row, std::int64_t column) const
    {
        return offset + (shape.outer_count == 1 ? 0 : outer * *shape.outer_stride) +
               (shape.count == 1 ? 0 : inner * *shape.stride) + row * *shape.leading_dimension + column;
    }
    double& at(std::int64_t outer, std::int64_t inner, std::int64_t row, std::int64_t column)
    {
        return values[static_cast<std::size_t>(index(outer, inner, row, column))];
    }
    template <class Use>
    void for_each(const Use& use)
    {
        for (std::int64_t o = 0; o < shape.outer_count; ++o) {
            for (std::int64_t i = 0; i < shape.count; ++i) {
                for (std::int64_t row = 0; row < shape.rows; ++row) {
                    for (std::int64_t column = 0; column < shape.columns; ++column) {
                        use(at(o, i, row, column));
                    }
                }
            }
        }
    }
    void fill(std::uint64_t salt)
    {
        std::uint64_t count = 0;
        for_each([&](double& value) { value = static_cast<double>(hash(seed(), salt, count++) % 5) - 2; });
    }
};

template <class T>
DeviceBuffer<T> upload(StreamRef stream, const HostOperand& operand)
{
    std::vector<T> elements;
    elements.reserve(operand.values.size());
    for (const double value : operand.values) {
        elements.push_back(T(static_cast<float>(value)));
    }
    return DeviceBuffer<T>::from_host(stream, elements);
}

template <class T>
MatrixOperand operand_of(DeviceBuffer<T>& buffer, const HostOperand& host)
{
    return MatrixOperand::from_raw_device_pointer(buffer.data() + host.offset, element_traits<T>::type, host.shape);
}

enum class Addend : std::uint8_t { none, dense, per_outer, heads, in_place };

struct Case {
    std::int64_t m = 20;
    std::int64_t n = 24;
    std::int64_t k = 16;
    Levels levels{2, 3};
    Layout a = Layout::dense;
    Layout b = Layout::dense;
    Layout d = Layout::dense;
    Addend addend = Addend::none;
    std::int64_t shift = 0;  // shift of all addresses, in elements
};

/// Runs `launch(operands..., epilogue)` for the case and compares all of D's memory.
template <class In, class Out, class Launch>
void check(StreamRef stream, const Case& test, const Launch& launch)
{
    HostOperand a(layout_of(test.a, test.m, test.k, test.levels), test.shift);
    HostOperand b(layout_of(test.b, test.k, test.n, test.levels), test.shift);
    HostOperand d(layout_of(test.d, test.m, test.n, test.levels), test.shift);
    const Layout c_layout = test.addend == Addend::per_outer ? Layout::per_outer
                            : test.addend == Addend::heads   ? Layout::heads
                                                             : Layout::dense;
    HostOperand c(layout_of(c_layout, test.m, test.n, test.levels), test.shift);
    a.fill(1);
    b.fill(2);
    c.fill(3);
    if (test.addend == Addend::in_place) {
        d.fill(4);
    }
    auto device_a = upload<In>(stream, a);
    auto device_b = upload<In>(stream, b);
    auto device_c = upload<Out>(stream, c);
    auto device_d = upload<Out>(stream, d);
    Epilogue epilogue;  // without a beta
    if (test.addend == Addend::in_place) {
        epilogue.c = operand_of(device_d, d);
    } else if (test.addend != Addend::none) {
        epilogue.c = operand_of(device_c, c);
    }
    launch(operand_of(device_a, a), operand_of(device_b, b), operand_of(device_d, d), epilogue);

    for (std::int64_t o = 0; o < test.levels.outer; ++o) {
        for (std::int64_t i = 0; i < test.levels.inner; ++i) {
            for (std::int64_t row = 0; row < test.m; ++row) {
                for (std::int64_t column = 0; column < test.n; ++column) {
                    double sum = 0;
                    for (std::int64_t l = 0; l < test.k; ++l) {
                        sum += a.at(o, i, row, l) * b.at(o, i, l, column);
                    }
                    double& element = d.at(o, i, row, column);
                    const double addend = test.addend == Addend::none       ? 0
                                          : test.addend == Addend::in_place ? element
                                                                            : c.at(o, i, row, column);
                    element = sum + addend;
                }
            }
        }
    }
    const std::vector<Out> result = device_d.to_vector();
    std::size_t wrong = 0;
    for (std::size_t j = 0; j < result.size(); ++j) {
        // The poison was rounded when it was written to memory.
        wrong += static_cast<float>(result[j]) != static_cast<float>(Out(static_cast<float>(d.values[j])));
    }
    if (wrong > 0) {
        report_failure(
            test.m * test.n * test.k,
            fmt::format("{}x{}x{}, {}x{} batches, layouts {} {} {}, addend {}, shift {}", test.m, test.n, test.k,
                        test.levels.outer, test.levels.inner, static_cast<int>(test.a), static_cast<int>(test.b),
                        static_cast<int>(test.d), static_cast<int>(test.addend), test.shift),
            fmt::format("{} of {} elements are wrong", wrong, result.size()));
    }
    CHECK(wrong == 0);
}

template <class In, class Out>
void check_launch(StreamRef stream, const Case& test)
{
    check<In, Out>(stream, test, [&](const auto& a, const auto& b, const auto& d, const Epilogue& epilogue) {
        Gemm::launch(stream, a, b, d, epilogue);
    });
}

/// Returns the problem for the operands of the case.
template <class In, class Out>
GemmProblem problem_of(const Case& test)
{
    const auto layout = [&](Layout form, std::int64_t rows, std::int64_t columns) {
        const OperandLayout shape = layout_of(form, rows, columns, test.levels);
        return MatrixLayout{.leading_dimension = *shape.leading_dimension,
                            .batch_stride = shape.count == 1 ? 0 : *shape.stride,
                            .outer_stride = shape.outer_count == 1 ? 0 : *shape.outer_stride};
    };
    GemmProblem problem{.m = test.m,
                        .n = test.n,
                        .k = test.k,
                        .batches = test.levels.inner,
                        .outer_batches = test.levels.outer,
                        .input = element_traits<In>::type,
                        .output = element_traits<Out>::type};
    problem.a = layout(test.a, test.m, test.k);
    problem.b = layout(test.b, test.k, test.n);
    problem.d = layout(test.d, test.m, test.n);
    return problem;
}

bool is_hopper() { return Device::current().properties().compute_capability() == 90; }

}  // namespace

TEST_CASE("products with two levels of batches are right in every combination of layouts")
{
    const Stream stream;
    int count = 0;
    for (const Layout a : {Layout::dense, Layout::heads, Layout::single, Layout::per_inner, Layout::per_outer}) {
        for (const Layout b : {Layout::dense, Layout::single, Layout::per_inner, Layout::heads}) {
            for (const Layout d : {Layout::dense, Layout::heads, Layout::padded}) {
                for (const Addend addend :
                     {Addend::none, Addend::dense, Addend::per_outer, Addend::heads, Addend::in_place}) {
                    ++count;
                    if (quick() && count % 17 != 0) {
                        continue;
                    }
                    Case test{.a = a, .b = b, .d = d, .addend = addend};
                    check_launch<bf16, float>(stream, test);
                    if (count % 5 == 0) {
                        check_launch<float, float>(stream, test);
                        check_launch<f16, bf16>(stream, test);
                        test.levels = {3, 2};  // the outer level is the longer one
                        check_launch<bf16, bf16>(stream, test);
                    }
                    if (count % 7 == 0) {
                        test.shift = 1;  // an address that TMA cannot use
                        check_launch<bf16, float>(stream, test);
                        check_launch<float, float>(stream, test);
                    }
                }
            }
        }
    }
}

TEST_CASE("levels of batches may have any length, 1 included, in either order")
{
    const Stream stream;
    for (const Levels levels : {Levels{1, 1}, {1, 4}, {4, 1}, {5, 2}, {2, 5}}) {
        for (const Layout d : {Layout::dense, Layout::exchanged, Layout::heads}) {
            const Case test{.levels = levels, .a = d, .b = Layout::per_inner, .d = d, .addend = Addend::heads};
            check_launch<bf16, float>(stream, test);
            check_launch<float, float>(stream, test);
        }
    }
}

TEST_CASE("a plan for two levels gives the same result as a launch")
{
    const Stream stream;
    for (const Layout d : {Layout::dense, Layout::heads}) {
        for (const Layout b : {Layout::single, Layout::per_outer}) {
            const Case test{.a = Layout::heads, .b = b, .d = d};
            const GemmPlan plan = GemmPlan::prepare(Device::current(), problem_of<bf16, float>(test));
            check<bf16, float>(stream, test,
                               [&](const auto& left, const auto& right, const auto& out, const Epilogue& epilogue) {
                                   plan.launch(stream, left, right, out, epilogue);
                               });
        }
    }
}

TEST_CASE("the launches of one batch share the stream's workspace in turn, also in a graph")
{
    if (!is_hopper()) {
        MESSAGE("skipped: only the kernels for compute capability 9.0 share tiles");
        return;
    }
    // One tile per product and a long sum, so that clusters share each tile.
    Case test{.m = 64, .n = 64, .k = 49152, .levels = {2, 2}, .a = Layout::heads, .d = Layout::heads};
    test.addend = Addend::in_place;
    GemmProblem problem = problem_of<bf16, float>(test);
    problem.has_c = true;
    problem.c = problem.d;
    const GemmPlan plan = GemmPlan::prepare(Device::current(), problem);
    REQUIRE(plan.explain().find("as 2 launches of 2 matrices each") != std::string::npos);
    REQUIRE(plan.workspace_bytes() > 0);  // otherwise this test needs another product
    const Stream stream;
    check<bf16, float>(stream, test, [&](const auto& a, const auto& b, const auto& d, const Epilogue& epilogue) {
        plan.launch(stream, a, b, d, epilogue);
    });
    check<bf16, float>(stream, test, [&](const auto& a, const auto& b, const auto& d, const Epilogue& epilogue) {
        stream.synchronize();
        const Graph graph =
            Graph::capture(stream, [&](StreamRef captured) { plan.launch(captured, a, b, d, epilogue); });
        CHECK(graph.node_count() == 2);
        graph.launch(stream);
        stream.synchronize();
    });
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
