// digits: a small neural network reads all 1797 handwritten digits of data/.
//
// The network is 64 -> 128 -> 64 -> 10 with ReLU between the layers. A layer is one Gemm::launch with bias and
// activation in its epilogue. The three launches are captured into a graph. The answers are compared with those of a
// float64 forward pass, which train.py stored with the weights.
#include <tessera/tessera.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/error_bound.hpp"
#include "common/run_example.hpp"
#include "npy.hpp"

using namespace tessera;

namespace {

constexpr std::int64_t image_count = 1797;

struct Layer {
    std::int64_t inputs;
    std::int64_t outputs;
    std::vector<float> weight;  // (inputs, outputs)
    std::vector<float> bias;    // (outputs)
};

struct Digits {
    std::int64_t count = 0;
    std::vector<float> images;  // (count, inputs of the first layer)
    std::vector<std::int32_t> labels;
    std::vector<std::int32_t> split;  // 0: training, 1: test
    std::array<Layer, 3> layers;
    std::vector<double> logits;  // (count, outputs of the last layer)
    std::vector<std::int32_t> predictions;

    std::int64_t classes() const { return layers.back().outputs; }
};

/// Reads a row-major array of the given extents.
template <class T>
std::vector<T> read(const std::filesystem::path& path, const std::vector<std::int64_t>& shape)
{
    auto array = npy::read<T>(path);
    if (array.shape != shape || array.column_major) {
        throw npy::Error(path.string(), "the array does not have the shape and order that this network needs",
                         "make the data again with train.py");
    }
    return std::move(array.elements);
}

Digits read_digits(const std::filesystem::path& folder)
{
    constexpr std::int64_t count = image_count;
    constexpr std::array<std::int64_t, 4> sizes{64, 128, 64, 10};
    Digits digits;
    digits.count = count;
    digits.images = read<float>(folder / "images.npy", {count, sizes.front()});
    digits.labels = read<std::int32_t>(folder / "labels.npy", {count});
    digits.split = read<std::int32_t>(folder / "split.npy", {count});
    digits.logits = read<double>(folder / "reference_logits.npy", {count, sizes.back()});
    digits.predictions = read<std::int32_t>(folder / "reference_predictions.npy", {count});
    for (std::size_t i = 0; i < digits.layers.size(); ++i) {
        const std::string name = "layer" + std::to_string(i + 1);
        digits.layers[i] = {sizes[i], sizes[i + 1],
                            read<float>(folder / (name + "_weight.npy"), {sizes[i], sizes[i + 1]}),
                            read<float>(folder / (name + "_bias.npy"), {sizes[i + 1]})};
    }
    return digits;
}

template <class T>
DeviceBuffer<T> upload(StreamRef stream, const std::vector<float>& elements)
{
    return DeviceBuffer<T>::from_host(stream, std::vector<T>(elements.begin(), elements.end()));
}

struct Answer {
    std::vector<float> logits;  // (count, classes)
    double seconds;             // of one forward pass over all images: the median of `replays`
    std::size_t replays;        // 0 on an emulated device, whose times mean nothing
};

/// The forward pass on the GPU: images, weights and hidden activations of type T, biases and logits f32.
template <class T>
Answer classify(const Digits& digits)
{
    constexpr std::size_t most_replays = 101;
    constexpr double enough_seconds = 2;
    const Layer& first = digits.layers[0];
    const Layer& second = digits.layers[1];
    const Layer& third = digits.layers[2];
    const Stream stream;
    const auto images = upload<T>(stream, digits.images);
    const auto weight1 = upload<T>(stream, first.weight);
    const auto weight2 = upload<T>(stream, second.weight);
    const auto weight3 = upload<T>(stream, third.weight);
    const auto bias1 = upload<float>(stream, first.bias);
    const auto bias2 = upload<float>(stream, second.bias);
    const auto bias3 = upload<float>(stream, third.bias);
    const auto elements = [&](std::int64_t columns) { return static_cast<std::size_t>(digits.count * columns); };
    DeviceBuffer<T> hidden1(stream, elements(first.outputs));
    DeviceBuffer<T> hidden2(stream, elements(second.outputs));
    DeviceBuffer<float> logits(stream, elements(third.outputs));

    const Graph graph = Graph::capture(stream, [&](StreamRef s) {
        Gemm::launch(s, images.matrix(digits.count, first.inputs), weight1.matrix(first.inputs, first.outputs),
                     hidden1.matrix(digits.count, first.outputs),
                     {.bias = Bias::per_column(bias1.span()), .activation = Activation::relu});
        Gemm::launch(s, hidden1.matrix(digits.count, second.inputs), weight2.matrix(second.inputs, second.outputs),
                     hidden2.matrix(digits.count, second.outputs),
                     {.bias = Bias::per_column(bias2.span()), .activation = Activation::relu});
        Gemm::launch(s, hidden2.matrix(digits.count, third.inputs), weight3.matrix(third.inputs, third.outputs),
                     logits.matrix(digits.count, third.outputs), {.bias = Bias::per_column(bias3.span())});
    });

    graph.launch(stream);  // loads the kernels
    const Event start(EventKind::timing);
    const Event stop(EventKind::timing);
    std::vector<double> seconds;
    const std::size_t replays = examples::is_emulated(Device::current().properties()) ? 0 : most_replays;
    double sum = 0;
    while (seconds.size() < replays && sum < enough_seconds) {
        start.record(stream);
        graph.launch(stream);
        stop.record(stream);
        stop.synchronize();
        seconds.push_back(stop.seconds_since(start));
        sum += seconds.back();
    }
    if (seconds.empty()) {
        return {logits.to_vector(), 0.0, 0};
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return {logits.to_vector(), *middle, seconds.size()};
}

/// How much the logits of one image may differ from the float64 ones if the network is computed in type T. The errors
/// of a layer's inputs and weights pass through the layer, and the layer's own rounding errors are added.
template <class T>
std::vector<double> logit_bounds(const Digits& digits, std::int64_t image)
{
    const auto rounding_of = [](float value) {
        return std::fabs(static_cast<double>(static_cast<float>(T(value))) - static_cast<double>(value));
    };
    const auto pixels = static_cast<std::size_t>(digits.layers.front().inputs);
    std::vector<double> values;
    std::vector<double> errors;
    for (std::size_t i = 0; i < pixels; ++i) {
        const float pixel = digits.images[static_cast<std::size_t>(image) * pixels + i];
        values.push_back(static_cast<double>(pixel));
        errors.push_back(rounding_of(pixel));
    }
    for (const Layer& layer : digits.layers) {
        const bool last = &layer == &digits.layers.back();
        const auto outputs = static_cast<std::size_t>(layer.outputs);
        std::vector<double> sums(layer.bias.begin(), layer.bias.end());
        std::vector<double> sum_errors(outputs, 0.0);
        std::vector<double> magnitudes(outputs, 0.0);
        for (std::size_t k = 0; k < values.size(); ++k) {
            for (std::size_t j = 0; j < outputs; ++j) {
                const float weight = layer.weight[k * outputs + j];
                const double exact = values[k] * static_cast<double>(weight);
                const double largest =
                    (std::fabs(values[k]) + errors[k]) * (std::fabs(static_cast<double>(weight)) + rounding_of(weight));
                sums[j] += exact;
                sum_errors[j] += largest - std::fabs(exact);
                magnitudes[j] += largest;
            }
        }
        const double roundings = static_cast<double>(layer.inputs) + 3.0;  // products, scale, bias: see gemm_npy
        for (std::size_t j = 0; j < outputs; ++j) {
            magnitudes[j] += std::fabs(static_cast<double>(layer.bias[j]));
            sum_errors[j] += (examples::gamma(roundings, examples::f32_roundoff) +
                              examples::gamma(roundings, examples::f64_roundoff)) *
                                 magnitudes[j] +
                             roundings * examples::f32_smallest;
            if (!last) {
                sums[j] = std::max(sums[j], 0.0);
                if (element_traits<T>::type != ElementType::f32) {
                    sum_errors[j] += examples::rounding_error(sums[j] + sum_errors[j], element_traits<T>::type);
                }
            }
        }
        values = std::move(sums);
        errors = std::move(sum_errors);
    }
    return errors;
}

struct Score {
    std::array<int, 2> images{};  // in the training part and the test part
    std::array<int, 2> correct{};
    int differing = 0;  // predictions that differ from the reference's
    double worst_error = 0.0;
    double worst_ratio = 0.0;  // of an error to its bound
};

template <class T>
Score score(const Digits& digits, const std::vector<float>& logits)
{
    Score result;
    const auto classes = static_cast<std::size_t>(digits.classes());
    for (std::size_t i = 0; i < static_cast<std::size_t>(digits.count); ++i) {
        const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * classes);
        const auto prediction =
            static_cast<std::int32_t>(std::max_element(row, row + static_cast<std::ptrdiff_t>(classes)) - row);
        const std::size_t part = digits.split[i] == 0 ? 0 : 1;
        ++result.images[part];
        result.correct[part] += prediction == digits.labels[i] ? 1 : 0;
        result.differing += prediction == digits.predictions[i] ? 0 : 1;

        const std::vector<double> bounds = logit_bounds<T>(digits, static_cast<std::int64_t>(i));
        for (std::size_t j = 0; j < classes; ++j) {
            const double error =
                std::fabs(static_cast<double>(logits[i * classes + j]) - digits.logits[i * classes + j]);
            // std::max would drop a NaN.
            const double ratio = std::isnan(error) ? std::numeric_limits<double>::infinity() : error / bounds[j];
            result.worst_error = std::max(result.worst_error, error);
            result.worst_ratio = std::max(result.worst_ratio, ratio);
        }
    }
    return result;
}

/// The probability of each class: the softmax of the network's logits.
std::vector<double> probabilities(const float* logits, std::size_t classes)
{
    const float largest = *std::max_element(logits, logits + classes);
    std::vector<double> result;
    double sum = 0;
    for (std::size_t j = 0; j < classes; ++j) {
        result.push_back(std::exp(static_cast<double>(logits[j]) - static_cast<double>(largest)));
        sum += result.back();
    }
    for (double& value : result) {
        value /= sum;
    }
    return result;
}

/// Draws one image with the network's answer beside it. A pixel is two characters wide, so that it looks square.
void show(const Digits& digits, std::int64_t image, const std::vector<float>& logits)
{
    constexpr std::array<const char*, 5> shades{"  ", "\u2591\u2591", "\u2592\u2592", "\u2593\u2593", "\u2588\u2588"};
    constexpr std::size_t side = 8;
    const auto index = static_cast<std::size_t>(image);
    const auto classes = static_cast<std::size_t>(digits.classes());
    const std::vector<double> answer = probabilities(logits.data() + index * classes, classes);
    const auto best = static_cast<std::size_t>(std::max_element(answer.begin(), answer.end()) - answer.begin());
    for (std::size_t row = 0; row < side; ++row) {
        std::fputs("    ", stdout);
        for (std::size_t column = 0; column < side; ++column) {
            const float pixel = digits.images[(index * side + row) * side + column];
            const float shade = std::clamp(pixel, 0.0F, 1.0F) * static_cast<float>(shades.size() - 1);
            std::fputs(shades[static_cast<std::size_t>(std::lround(shade))], stdout);
        }
        if (row == 2) {
            std::printf("    image %lld of 0 to %lld, from the %s images", static_cast<long long>(image),
                        static_cast<long long>(digits.count - 1), digits.split[index] == 0 ? "training" : "test");
        } else if (row == 3) {
            std::printf("    the network reads %zu, with a probability of %.1f %%", best, 100.0 * answer[best]);
        } else if (row == 4) {
            std::printf("    its writer meant %d", digits.labels[index]);
        }
        std::fputc('\n', stdout);
    }
}

template <class T>
int run(const Digits& digits, const std::optional<std::int64_t>& shown)
{
    const Answer answer = classify<T>(digits);
    const Score result = score<T>(digits, answer.logits);
    if (shown) {
        show(digits, *shown, answer.logits);
    }
    const auto print_accuracy = [&](const char* name, std::size_t part) {
        std::printf("%s  %4d of %4d right (%.2f %%)\n", name, result.correct[part], result.images[part],
                    100.0 * result.correct[part] / result.images[part]);
    };
    std::printf("device    %s, %s\n", Device::current().properties().name.c_str(),
                std::string(to_string(element_traits<T>::type)).c_str());
    print_accuracy("training", 0);
    print_accuracy("test    ", 1);
    std::printf("float64   %d of %lld predictions differ from the reference\n", result.differing,
                static_cast<long long>(digits.count));
    std::printf("logits    largest error %.3g; %s\n", result.worst_error,
                result.worst_ratio <= 1.0 ? "every one is within its rounding error bound" : "WRONG");
    if (answer.replays > 0) {
        std::printf("time      %.1f us for all images, median of %zu graph replays\n", 1e6 * answer.seconds,
                    answer.replays);
    }

    if (!(result.worst_ratio <= 1.0)) {
        std::fprintf(stderr, "digits: a logit is outside of its error bound: %.3g times as far as rounding explains\n",
                     result.worst_ratio);
        return examples::exit_failure;
    }
    if (std::is_same_v<T, f32> && result.differing != 0) {
        std::fprintf(stderr, "digits: in f32 all predictions must be those of the float64 reference\n");
        return examples::exit_failure;
    }
    return examples::exit_success;
}

/// The folder of the data: in the repository if the program runs there, else where it was at build time.
std::filesystem::path default_folder()
{
    const std::filesystem::path in_repository = "examples/digits/data";
    return std::filesystem::is_directory(in_repository) ? in_repository : DIGITS_DATA_FOLDER;
}

}  // namespace

int main(int argc, char** argv)  // NOLINT(bugprone-exception-escape): only if parsing runs out of memory
{
    std::string folder = default_folder().string();
    std::string type = "f32";
    CLI::App app("Classifies handwritten digits with a small neural network on the GPU", "digits");
    app.add_option("--data", folder, "folder of the .npy files")->type_name("FOLDER")->capture_default_str();
    app.add_option("--type", type, "type of images, weights and hidden activations")
        ->check(CLI::IsMember({"f32", "f16", "bf16"}))
        ->capture_default_str();
    std::optional<std::int64_t> shown;
    app.add_option("--show", shown, "draw this image, with the network's answer")
        ->type_name("IMAGE")
        ->check(CLI::Range(std::int64_t{0}, image_count - 1));
    app.footer("Exit codes: 0 done, 1 an error or a wrong result, 2 bad command line, 77 no CUDA device.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? examples::exit_success : examples::exit_usage;
    }
    return examples::run_example("digits", [&] {
        const Digits digits = read_digits(folder);
        return type == "f16"    ? run<f16>(digits, shown)
               : type == "bf16" ? run<bf16>(digits, shown)
                                : run<f32>(digits, shown);
    });
}
