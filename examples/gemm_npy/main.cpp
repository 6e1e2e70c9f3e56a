// gemm_npy A.npy B.npy -o D.npy: matrices from NumPy through Gemm::launch and back; see --help.
//
//     gemm_npy images.npy weights.npy --bias-per-column bias.npy --epilogue relu --verify -o hidden.npy
#include <tessera/tessera.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/error_bound.hpp"
#include "common/run_example.hpp"
#include "npy.hpp"
#include "options.hpp"
#include "verify.hpp"

using namespace tessera;

namespace {

struct Inputs {
    npy::Array<float> a;
    npy::Array<float> b;
    npy::Array<float> c;
    std::vector<float> bias;

    std::int64_t m() const { return a.shape[0]; }
    std::int64_t n() const { return b.shape[1]; }
    std::int64_t k() const { return a.shape[1]; }
};

npy::Array<float> read_matrix(const std::string& path)
{
    auto array = npy::read_as_float(path);
    if (!array.is_matrix()) {
        throw npy::Error(path, "this is a vector, and a matrix is needed", "array.reshape(1, -1) makes it a row");
    }
    return array;
}

Inputs read_inputs(const Options& options)
{
    Inputs inputs;
    inputs.a = read_matrix(options.a);
    inputs.b = read_matrix(options.b);
    const auto require_equal = [](const std::string& path, const char* what, std::int64_t found, const char* wanted_by,
                                  std::int64_t wanted) {
        if (found != wanted) {
            throw npy::Error(
                path,
                std::string(what) + " " + std::to_string(found) + ", and " + wanted_by + " " + std::to_string(wanted),
                "pass matrices that fit: A is M x K, B is K x N, C is M x N");
        }
    };
    require_equal(options.b, "the number of rows is", inputs.b.shape[0], "A's number of columns is", inputs.k());
    if (!options.c.empty()) {
        inputs.c = read_matrix(options.c);
        require_equal(options.c, "the number of rows is", inputs.c.shape[0], "A's is", inputs.m());
        require_equal(options.c, "the number of columns is", inputs.c.shape[1], "B's is", inputs.n());
    }
    if (!options.bias.empty()) {
        auto bias = npy::read_as_float(options.bias);
        if (bias.is_matrix()) {
            throw npy::Error(options.bias, "this is a matrix, and the bias is a vector", "array.ravel() makes it one");
        }
        const bool per_row = options.bias_axis == BiasAxis::per_row;
        require_equal(options.bias, "the number of elements is", bias.shape[0],
                      per_row ? "the product's number of rows is" : "the product's number of columns is",
                      per_row ? inputs.m() : inputs.n());
        inputs.bias = std::move(bias.elements);
    }
    return inputs;
}

GemmProblem problem_of(const Options& options, const Inputs& inputs)
{
    GemmProblem problem;
    problem.m = inputs.m();
    problem.n = inputs.n();
    problem.k = inputs.k();
    problem.input = options.type;
    problem.output = options.output_type;
    problem.a.row_major = !inputs.a.column_major;
    problem.b.row_major = !inputs.b.column_major;
    problem.has_c = !options.c.empty() && options.beta != 0.0F;
    problem.bias = options.bias_axis;
    problem.activation = options.activation;
    return problem;
}

/// The scale that lets 8-bit elements use their type's whole range: the largest magnitude divided by it is the type's
/// largest value. 1 for other types, whose range suffices.
template <class T>
float scale_for(const std::vector<float>& elements)
{
    float largest = 0;
    for (const float element : elements) {
        largest = std::isfinite(element) ? std::max(largest, std::fabs(element)) : largest;
    }
    const float range = T(std::numeric_limits<float>::max());  // saturates
    return sizeof(T) == 1 && largest > 0 ? largest / range : 1.0F;
}

/// Rounds `elements` to T, in place too, so that host and device hold the same values.
template <class T>
DeviceBuffer<T> upload(StreamRef stream, std::vector<float>& elements)
{
    const std::vector<T> rounded(elements.begin(), elements.end());
    std::copy(rounded.begin(), rounded.end(), elements.begin());
    return DeviceBuffer<T>::from_host(stream, rounded);
}

/// A matrix whose order is known only at run time.
template <class T>
using AnyOrderView = std::variant<MatrixView<const T, RowMajor>, MatrixView<const T, ColumnMajor>>;

template <class T>
AnyOrderView<T> view_of(const DeviceBuffer<T>& buffer, const npy::Array<float>& array)
{
    if (array.column_major) {
        return buffer.matrix(array.shape[0], array.shape[1], ColumnMajor{});
    }
    return buffer.matrix(array.shape[0], array.shape[1], RowMajor{});
}

struct Timing {
    double median_seconds;
    int launches;
};

/// One launch to warm up, then `repeat` launches, each measured. Without any the median is 0.
template <class Launch>
Timing time_launches(StreamRef stream, int repeat, const Launch& launch)
{
    const Device device(stream.device());
    const Event start(device, EventKind::timing);
    const Event stop(device, EventKind::timing);
    std::vector<double> seconds;
    launch();
    for (int i = 0; i < repeat; ++i) {
        start.record(stream);
        launch();
        stop.record(stream);
        stop.synchronize();
        seconds.push_back(stop.seconds_since(start));
    }
    if (seconds.empty()) {
        return {0.0, 0};
    }
    const auto middle = seconds.begin() + repeat / 2;
    std::nth_element(seconds.begin(), middle, seconds.end());
    return {*middle, repeat};
}

std::vector<float> row_major(npy::Array<float>& array)
{
    if (!array.column_major) {
        return std::move(array.elements);
    }
    const std::int64_t rows = array.shape[0];
    const std::int64_t columns = array.shape[1];
    std::vector<float> elements(array.elements.size());
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
            elements[static_cast<std::size_t>(row * columns + column)] =
                array.elements[static_cast<std::size_t>(column * rows + row)];
        }
    }
    return elements;
}

/// `alpha` includes the scales of A and B. The elements are those that the GPU was given.
bool report_verification(const Options& options, Inputs& inputs, float alpha, Variant variant,
                         const std::vector<float>& d)
{
    ReferenceProblem problem;
    problem.m = inputs.m();
    problem.n = inputs.n();
    problem.k = inputs.k();
    problem.a = row_major(inputs.a);
    problem.b = row_major(inputs.b);
    problem.c = row_major(inputs.c);
    problem.bias = inputs.bias;
    problem.bias_axis = options.bias_axis;
    problem.alpha = static_cast<double>(alpha);
    problem.beta = options.c.empty() ? 0.0 : static_cast<double>(options.beta.value_or(1.0F));
    problem.activation = options.activation;
    problem.output = options.output_type;
    if (variant == Variant::hopper && is_float8(options.type)) {
        problem.product_loss = examples::float8_tensor_core_loss(problem.k);
    }

    const Verdict verdict = verify(problem, d, options.seed);
    std::printf("verify   %s\n", verdict.summary().c_str());
    if (verdict.rows_checked < problem.m) {
        std::printf("         %lld of %lld rows were checked, chosen with --seed %llu\n",
                    static_cast<long long>(verdict.rows_checked), static_cast<long long>(problem.m),
                    static_cast<unsigned long long>(options.seed));
    }
    if (verdict.unbounded > 0) {
        std::printf("         %lld elements were not checked: their inputs are not finite, or float32 may overflow\n",
                    static_cast<long long>(verdict.unbounded));
    }
    if (verdict.checked > 0) {
        std::printf("         the nearest to its bound: D(%lld,%lld) = %.9g, float64 gives %.9g\n",
                    static_cast<long long>(verdict.worst_row), static_cast<long long>(verdict.worst_column),
                    verdict.worst_actual, verdict.worst_expected);
    }
    if (!verdict.passed()) {
        std::fprintf(stderr, "gemm_npy: %s\n", verdict.summary().c_str());
    }
    return verdict.passed();
}

template <class Output>
void store(const std::string& path, std::int64_t m, std::int64_t n, const std::vector<Output>& d)
{
    if constexpr (std::is_same_v<Output, bf16>) {
        npy::write(path, npy::matrix(m, n, std::vector<float>(d.begin(), d.end())));
    } else {
        npy::write(path, npy::matrix(m, n, d));
    }
    std::printf("stored   %s, %lldx%lld %s\n", path.c_str(), static_cast<long long>(m), static_cast<long long>(n),
                std::is_same_v<Output, f16> ? "float16" : "float32");
}

template <class Input, class Output>
int multiply(const Options& options, Inputs& inputs)
{
    const Device device(options.device);
    const GemmPlan plan = GemmPlan::prepare(device, problem_of(options, inputs), options.variant);

    const Stream stream(device);
    const float scale_a = scale_for<Input>(inputs.a.elements);
    const float scale_b = scale_for<Input>(inputs.b.elements);
    const auto divide = [](std::vector<float>& elements, float scale) {
        std::ranges::transform(elements, elements.begin(), [&](float element) { return element / scale; });
    };
    divide(inputs.a.elements, scale_a);
    divide(inputs.b.elements, scale_b);
    const auto scales = DeviceBuffer<float>::from_host(stream, std::vector<float>{scale_a, scale_b});
    const auto a = upload<Input>(stream, inputs.a.elements);
    const auto b = upload<Input>(stream, inputs.b.elements);
    const auto c = upload<Output>(stream, inputs.c.elements);
    const auto bias = upload<float>(stream, inputs.bias);
    DeviceBuffer<Output> d(stream, static_cast<std::size_t>(inputs.m() * inputs.n()));

    Epilogue epilogue{.alpha = options.alpha,
                      .beta = options.beta,
                      .activation = options.activation,
                      .scale_a = scales.subspan(0, 1),
                      .scale_b = scales.subspan(1, 1)};
    if (!options.c.empty()) {
        std::visit([&](auto view) { epilogue.c = view; }, view_of(c, inputs.c));
    }
    if (options.bias_axis != BiasAxis::none) {
        epilogue.bias =
            options.bias_axis == BiasAxis::per_row ? Bias::per_row(bias.span()) : Bias::per_column(bias.span());
    }
    // Times of an emulated device mean nothing: one launch is enough.
    const bool emulated = examples::is_emulated(device.properties());
    const Timing timing = time_launches(stream, emulated ? 0 : options.repeat, [&] {
        std::visit(
            [&](auto a_view, auto b_view) {
                plan.launch(stream, a_view, b_view, d.matrix(inputs.m(), inputs.n()), epilogue);
            },
            view_of(a, inputs.a), view_of(b, inputs.b));
    });
    const std::vector<Output> product = d.to_vector();

    const GemmProblem& problem = plan.problem();
    const double operations =
        2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
    std::printf("problem  %s\n", problem.describe().c_str());
    std::printf("ran      %s on %s\n", std::string(to_string(plan.variant())).c_str(),
                device.properties().name.c_str());
    if (!emulated) {
        std::printf("time     %.2f us, median of %d: %.1f GFLOP/s\n", 1e6 * timing.median_seconds, timing.launches,
                    1e-9 * operations / timing.median_seconds);
    }
    if (!options.d.empty()) {
        store(options.d, inputs.m(), inputs.n(), product);
    }
    if (options.verify && !report_verification(options, inputs, options.alpha * scale_a * scale_b, plan.variant(),
                                               {product.begin(), product.end()})) {
        return examples::exit_failure;
    }
    return examples::exit_success;
}

int explain(const Options& options, const Inputs& inputs)
{
    const DeviceProperties device = options.compute_capability
                                        ? DeviceProperties::of_compute_capability(*options.compute_capability / 10,
                                                                                  *options.compute_capability % 10)
                                        : Device(options.device).properties();
    std::fputs(GemmPlan::explain(problem_of(options, inputs), device, options.variant).c_str(), stdout);
    return examples::exit_success;
}

/// Calls `work` with the C++ type of `type`, a type that C and D can have.
template <class Work>
int with_output_type(ElementType type, const Work& work)
{
    switch (type) {
        case ElementType::f16: return work.template operator()<f16>();
        case ElementType::bf16: return work.template operator()<bf16>();
        default: break;
    }
    return work.template operator()<f32>();
}

/// The same for the types of A and B.
template <class Work>
int with_input_type(ElementType type, const Work& work)
{
    switch (type) {
        case ElementType::tf32: return work.template operator()<tf32>();
        case ElementType::f8e4m3: return work.template operator()<f8e4m3>();
        case ElementType::f8e5m2: return work.template operator()<f8e5m2>();
        default: break;
    }
    return with_output_type(type, work);
}

}  // namespace

int main(int argc, char** argv)
{
    int exit_code = examples::exit_success;
    const auto options = parse_options(argc, argv, exit_code);
    if (!options) {
        return exit_code;
    }
    return examples::run_example("gemm_npy", [&] {
        Inputs inputs = read_inputs(*options);
        if (options->explain) {
            return explain(*options, inputs);
        }
        return with_input_type(options->type, [&]<class Input>() {
            return with_output_type(options->output_type,
                                    [&]<class Output>() { return multiply<Input, Output>(*options, inputs); });
        });
    });
}
