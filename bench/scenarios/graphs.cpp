/// Scenario 5: four independent chains of small products, such as the heads of a small model.

#include <array>

#include "scenarios/operands.hpp"
#include "tessera/gemm.hpp"
#include "tessera/graph.hpp"

namespace tessera::scenarios {
namespace {

constexpr std::size_t chains = 4;

struct Sizes {
    std::size_t layers;
    std::int64_t rows;
    std::int64_t width;
};

}  // namespace

Outcome run_graphs(const Context& context)
{
    const Sizes sizes = context.full ? Sizes{64, 16, 512} : Sizes{6, 16, 64};
    const auto elements = static_cast<std::size_t>(sizes.rows * sizes.width);
    Outcome outcome;
    outcome.work = fmt::format("{} chains of {} products {}x{}x{} in bf16", chains, sizes.layers, sizes.rows,
                               sizes.width, sizes.width);

    const std::array<Stream, chains> streams{Stream(context.device), Stream(context.device), Stream(context.device),
                                             Stream(context.device)};
    const Stream& first = streams[0];
    const auto host_x = normal_values<bf16>(context, sizes.rows * sizes.width, 1);
    const auto x = DeviceBuffer<bf16>::from_host(first, host_x);
    // sqrt(2/width) keeps the size of the activations through the layers.
    const float scale = std::sqrt(2 / static_cast<float>(sizes.width));
    std::vector<DeviceBuffer<bf16>> weights;
    std::vector<bf16> last_weights;
    for (std::size_t i = 0; i < chains * sizes.layers; ++i) {
        last_weights = normal_values<bf16>(context, sizes.width * sizes.width, 2 + i, scale);
        weights.push_back(DeviceBuffer<bf16>::from_host(first, last_weights));
    }
    // Two outputs of each chain, which the layers write in turn.
    std::vector<DeviceBuffer<bf16>> outputs;
    for (std::size_t i = 0; i < 2 * chains; ++i) {
        outputs.emplace_back(first, elements);
    }
    const auto layer = [&](StreamRef stream, std::size_t chain, std::size_t number) {
        const DeviceBuffer<bf16>& from = number == 0 ? x : outputs[2 * chain + (number - 1) % 2];
        Gemm::launch(stream, from.matrix(sizes.rows, sizes.width),
                     weights[chain * sizes.layers + number].matrix(sizes.width, sizes.width),
                     outputs[2 * chain + number % 2].matrix(sizes.rows, sizes.width), {.activation = Activation::relu});
    };
    first.synchronize();
    const Graph graph = Graph::capture(first, [&](StreamRef captured) {
        for (std::size_t chain = 0; chain < chains; ++chain) {
            const StreamRef stream = chain == 0 ? captured : StreamRef(streams[chain]);
            if (chain != 0) {
                stream.wait(captured);  // the fork: this stream is captured, too
            }
            for (std::size_t number = 0; number < sizes.layers; ++number) {
                layer(stream, chain, number);
            }
        }
        for (std::size_t chain = 1; chain < chains; ++chain) {
            captured.wait(streams[chain]);
        }
    });

    const auto results = [&] {
        std::vector<bf16> all;
        for (std::size_t chain = 0; chain < chains; ++chain) {
            const auto one = outputs[2 * chain + (sizes.layers - 1) % 2].to_vector();
            all.insert(all.end(), one.begin(), one.end());
        }
        return all;
    };
    std::vector<bf16> by_launches, by_graph;
    const auto forget = [&] {
        for (DeviceBuffer<bf16>& output : outputs) {
            output.fill(first, poison<bf16>());
        }
    };
    const auto baseline = [&](Recorder& recorder) {
        recorder.on_stream("launches", first, [&] {
            for (std::size_t chain = 0; chain < chains; ++chain) {
                for (std::size_t number = 0; number < sizes.layers; ++number) {
                    layer(first, chain, number);
                }
            }
        });
        recorder.on_host("wait", [&] { first.synchronize(); });
    };
    const auto optimized = [&](Recorder& recorder) {
        recorder.on_stream("graph launch", first, [&] { graph.launch(first); });
        recorder.on_host("wait", [&] { first.synchronize(); });
    };
    measure(context, outcome, baseline, optimized);
    // Once more of each, into outputs that are poisoned.
    Recorder unused(false);
    forget();
    baseline(unused);
    by_launches = results();
    forget();
    graph.launch(first);
    by_graph = results();

    outcome.checks.push_back(equal_bits("all chains of both entries", bytes_of(by_launches), bytes_of(by_graph)));
    // The last layer of the last chain, from the input that it had.
    const auto input = outputs[2 * (chains - 1) + sizes.layers % 2].to_vector();
    const std::vector<bf16> result(by_graph.end() - static_cast<std::ptrdiff_t>(elements), by_graph.end());
    outcome.checks.push_back(check_product<bf16, bf16>(
        context, "the last layer of the last chain against float64",
        product_of(sizes.rows, sizes.width, sizes.width, ElementType::bf16, ElementType::bf16,
                   bench::Fusion::bias_relu),
        input, last_weights, result, bench::Accumulation::tensor_core, [](std::int64_t, std::int64_t) { return 0.0; }));
    const auto products = static_cast<double>(chains * sizes.layers);
    outcome.figures.push_back(
        {"host time of a launch, one by one", outcome.baseline.phases[0].host_seconds / products * 1e6, "us"});
    outcome.figures.push_back(
        {"host time of a launch, in the graph", outcome.optimized.phases[0].host_seconds / products * 1e6, "us"});
    return outcome;
}

}  // namespace tessera::scenarios
