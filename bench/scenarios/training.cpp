/// Scenario 9: a network that reads handwritten digits is trained, on one GPU and on all: each has a part of the batch, and the
/// gradients are summed by copies between GPUs.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

#include "npy.hpp"
#include "scenarios/kernels.hpp"
#include "scenarios/training.hpp"
#include "tessera/gemm.hpp"
#include "tessera/graph.hpp"

namespace tessera::scenarios {
namespace {

constexpr std::int64_t side = 8;  // of an image

/// A network's copy on one device, with its part of the batch.
class Worker {
    template <class Buffer>
    auto weight_of(Buffer& buffer, std::size_t layer)
    {
        return buffer.span()
            .subspan(network_.weight_offset(layer))
            .matrix(network_.widths[layer], network_.widths[layer + 1]);
    }
    DeviceSpan<float> bias_of(DeviceBuffer<float>& buffer, std::size_t layer)
    {
        return buffer.subspan(network_.bias_offset(layer), static_cast<std::size_t>(network_.widths[layer + 1]));
    }
    MatrixView<const float> input_of(std::size_t layer)
    {
        return layer == 0 ? std::as_const(images_).matrix(rows_, network_.widths[0])
                          : std::as_const(results_[layer - 1]).matrix(rows_, network_.widths[layer]);
    }

public:
    Worker(const Device& device, const Network& network, const Samples& all, std::size_t first, std::size_t count)
        : network_(network),
          stream_(device),
          ready_(device),
          rows_(static_cast<std::int64_t>(count)),
          total_(static_cast<std::int64_t>(all.labels.size()))
    {
        const auto inputs = static_cast<std::size_t>(network.widths.front());
        images_ = DeviceBuffer<float>::from_host(
            stream_, gsl::span<const float>(all.images).subspan(first * inputs, count * inputs));
        labels_ = DeviceBuffer<std::int32_t>::from_host(
            stream_, gsl::span<const std::int32_t>(all.labels).subspan(first, count));
        // Peers read and write these: cudaMalloc's memory, which peer access is enabled for as a whole.
        parameters_ = DeviceBuffer<float>(stream_, network.size(), Allocation::plain);
        gradients_ = DeviceBuffer<float>(stream_, network.size(), Allocation::plain);
        received_ = DeviceBuffer<float>(stream_, network.size(), Allocation::plain);
        for (std::size_t layer = 0; layer < layers; ++layer) {
            const auto elements = count * static_cast<std::size_t>(network.widths[layer + 1]);
            results_[layer] = DeviceBuffer<float>(stream_, elements);
            deltas_[layer] = DeviceBuffer<float>(stream_, elements);
        }
        losses_ = DeviceBuffer<float>(stream_, count);
        ones_ = DeviceBuffer<float>(stream_, count);
        ones_.fill(stream_, 1.0F);
    }

    void reset(const std::vector<float>& parameters) { parameters_.copy_from(parameters); }
    const Stream& stream() const { return stream_; }
    const Event& ready() const { return ready_; }
    DeviceBuffer<float>& parameters() { return parameters_; }
    DeviceBuffer<float>& gradients() { return gradients_; }
    DeviceBuffer<float>& received() { return received_; }
    std::vector<float> logits() const { return results_.back().to_vector(); }
    std::vector<float> losses() const { return losses_.to_vector(); }

    /// The results of all layers.
    void forward(StreamRef stream, bool fused)
    {
        for (std::size_t layer = 0; layer < layers; ++layer) {
            const bool hidden = layer + 1 < layers;
            const auto bias = bias_of(parameters_, layer);
            DeviceBuffer<float>& result = results_[layer];
            const auto d = result.matrix(rows_, network_.widths[layer + 1]);
            if (fused) {
                Gemm::launch(
                    stream, input_of(layer), weight_of(parameters_, layer), d,
                    {.bias = Bias::per_column(bias), .activation = hidden ? Activation::relu : Activation::none});
                continue;
            }
            Gemm::launch(stream, input_of(layer), weight_of(parameters_, layer), d);
            add_bias(stream, result.span(), bias);
            if (hidden) {
                apply_relu(stream, result.span());
            }
        }
    }

    /// The gradients of this part of the batch: its share of the mean over the whole batch.
    void backward(StreamRef stream)
    {
        cross_entropy(stream, results_.back().span(), labels_.span(), total_, deltas_.back().span(), losses_.span());
        for (std::size_t layer = layers; layer-- > 0;) {
            const std::int64_t outputs = network_.widths[layer + 1];
            const auto delta = std::as_const(deltas_[layer]).matrix(rows_, outputs);
            Gemm::launch(stream, input_of(layer).transposed(), delta, weight_of(gradients_, layer));
            Gemm::launch(stream, std::as_const(ones_).matrix(1, rows_), delta,
                         bias_of(gradients_, layer).matrix(1, outputs));
            if (layer > 0) {
                Gemm::launch(stream, delta, weight_of(std::as_const(parameters_), layer).transposed(),
                             deltas_[layer - 1].matrix(rows_, network_.widths[layer]));
                relu_gradient(stream, deltas_[layer - 1].span(), results_[layer - 1].span());
            }
        }
    }

private:
    Network network_;
    Stream stream_;
    Event ready_;
    std::int64_t rows_;   // of this part
    std::int64_t total_;  // of the batch
    DeviceBuffer<float> images_;
    DeviceBuffer<std::int32_t> labels_;
    DeviceBuffer<float> parameters_;
    DeviceBuffer<float> gradients_;
    DeviceBuffer<float> received_;  // another device's gradients
    std::array<DeviceBuffer<float>, layers> results_;
    std::array<DeviceBuffer<float>, layers>
        deltas_;  // gradients with respect to a layer's result before its activation
    DeviceBuffer<float> losses_;
    DeviceBuffer<float> ones_;
};

/// Lets devices copy to each other directly where they can.
void enable_peers(const std::vector<Device>& devices)
{
    for (const Device& one : devices) {
        for (const Device& other : devices) {
            int can = 0;
            if (one == other || cudaDeviceCanAccessPeer(&can, one.ordinal(), other.ordinal()) != cudaSuccess ||
                can == 0) {
                continue;
            }
            one.make_current();
            static_cast<void>(cudaDeviceEnablePeerAccess(other.ordinal(),
                                                         0));  // fails if it is enabled; without it copies are slower
            static_cast<void>(cudaGetLastError());
        }
    }
}

/// The digits' training images and, for a larger batch, the same moved by a pixel in each direction.
Samples read_samples(const Context& context, std::size_t most, bool moved)
{
    const auto images = npy::read<float>(context.digits / "images.npy");
    const auto labels = npy::read<std::int32_t>(context.digits / "labels.npy");
    const auto split = npy::read<std::int32_t>(context.digits / "split.npy");
    constexpr std::size_t pixels = side * side;
    Samples samples;
    for (std::int64_t dy = moved ? -1 : 0; dy <= (moved ? 1 : 0); ++dy) {
        for (std::int64_t dx = moved ? -1 : 0; dx <= (moved ? 1 : 0); ++dx) {
            for (std::size_t image = 0; image < labels.elements.size() && samples.labels.size() < most; ++image) {
                if (split.elements[image] != 0) {
                    continue;
                }
                samples.labels.push_back(labels.elements[image]);
                for (std::int64_t y = 0; y < side; ++y) {
                    for (std::int64_t x = 0; x < side; ++x) {
                        const std::int64_t from_y = y - dy, from_x = x - dx;
                        const bool inside = from_y >= 0 && from_y < side && from_x >= 0 && from_x < side;
                        samples.images.push_back(
                            inside ? images.elements[image * pixels + static_cast<std::size_t>(from_y * side + from_x)]
                                   : 0.0F);
                    }
                }
            }
        }
    }
    return samples;
}

}  // namespace

Outcome run_training(const Context& context)
{
    const Network network{context.full ? std::array<std::int64_t, layers + 1>{side * side, 1536, 1536, 10}
                                       : std::array<std::int64_t, layers + 1>{side * side, 32, 32, 10}};
    int steps = context.full ? 20 : 2;
    const float rate = 0.1F;
    const Samples samples = read_samples(context, context.full ? std::size_t{1} << 20U : 96, context.full);
    const std::vector<float> start = initial_parameters(context, network);
    Outcome outcome;

    // All devices like the first: a slower one would hold up the others.
    std::vector<Device> devices{context.device};
    for (int i = 0; i < Device::count(); ++i) {
        if (Device(i) != context.device && Device(i).properties().name == context.device.properties().name) {
            devices.emplace_back(i);
        }
    }
    enable_peers(devices);
    context.device.make_current();
    outcome.work = fmt::format("{} steps over {} images, network {}-{}-{}-{}, f32, on {} GPU{}", steps,
                               samples.labels.size(), network.widths[0], network.widths[1], network.widths[2],
                               network.widths[3], devices.size(), devices.size() == 1 ? "" : "s");
    if (devices.size() == 1) {
        outcome.notes.push_back(
            "this machine has one GPU: the optimized entry runs on it alone, and gains by fusion and a graph only");
    }

    Worker alone(context.device, network, samples, 0, samples.labels.size());
    std::vector<Worker> workers;
    std::vector<Graph> graphs;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        const std::size_t first = samples.labels.size() * i / devices.size();
        workers.emplace_back(devices[i], network, samples, first,
                             samples.labels.size() * (i + 1) / devices.size() - first);
    }
    for (Worker& worker : workers) {
        worker.reset(start);
        const auto both = [&](StreamRef stream) {
            worker.forward(stream, true);
            worker.backward(stream);
        };
        both(worker.stream());  // loads the kernels
        worker.stream().synchronize();
        graphs.push_back(Graph::capture(worker.stream(), both));
    }

    const auto baseline = [&](Recorder& recorder) {
        const Stream& stream = alone.stream();
        recorder.on_host("start parameters", [&] { alone.reset(start); });
        for (int step = 0; step < steps; ++step) {
            recorder.on_stream("forward", stream, [&] { alone.forward(stream, false); });
            recorder.on_stream("backward", stream, [&] { alone.backward(stream); });
            recorder.on_stream("update", stream,
                               [&] { add_scaled(stream, alone.parameters().span(), -rate, alone.gradients().span()); });
        }
        stream.synchronize();
    };
    const auto optimized = [&](Recorder& recorder) {
        Worker& first = workers.front();
        for (Worker& worker : workers) {
            recorder.on_host("start parameters", [&] { worker.reset(start); });
        }
        for (int step = 0; step < steps; ++step) {
            for (std::size_t i = 0; i < workers.size(); ++i) {
                const Stream& stream = workers[i].stream();
                recorder.on_stream(fmt::format("forward and backward, GPU {}", i), stream,
                                   [&] { graphs[i].launch(stream); });
                workers[i].ready().record(stream);
            }
            for (std::size_t i = 1; i < workers.size(); ++i) {
                first.stream().wait(workers[i].ready());
                recorder.on_stream("sum of gradients", first.stream(), [&] {
                    first.received().copy_from_async(first.stream(), workers[i].gradients().span());
                    add_scaled(first.stream(), first.gradients().span(), 1, first.received().span());
                });
            }
            recorder.on_stream("update", first.stream(), [&] {
                add_scaled(first.stream(), first.parameters().span(), -rate, first.gradients().span());
            });
            first.ready().record(first.stream());
            for (std::size_t i = 1; i < workers.size(); ++i) {
                const Stream& stream = workers[i].stream();
                stream.wait(first.ready());
                recorder.on_stream("parameters to the others", stream,
                                   [&] { workers[i].parameters().copy_from_async(stream, first.parameters().span()); });
            }
        }
        for (Worker& worker : workers) {
            worker.stream().synchronize();
        }
    };
    measure(context, outcome, baseline, optimized);

    const auto parameters_of = [](Worker& worker) { return worker.parameters().to_vector(); };
    const auto of_baseline = parameters_of(alone);
    outcome.checks.push_back(check_parameters("parameters of both entries", {network, samples, start, steps, rate},
                                              parameters_of(workers.front()),
                                              std::vector<double>(of_baseline.begin(), of_baseline.end())));
    for (std::size_t i = 1; i < workers.size(); ++i) {
        const auto of_first = parameters_of(workers[0]), of_other = parameters_of(workers[i]);
        outcome.checks.push_back(
            equal_bits(fmt::format("parameters on GPU {} and GPU 0", i), bytes_of(of_first), bytes_of(of_other)));
    }
    const auto images = static_cast<double>(samples.labels.size()) * steps;
    outcome.figures.push_back({"baseline", images / median_of(outcome.baseline), "images/s"});
    outcome.figures.push_back({"optimized", images / median_of(outcome.optimized), "images/s"});
    const std::vector<float> losses = alone.losses();
    double loss = 0;
    for (const float one : losses) {
        loss += double{one} / static_cast<double>(losses.size());
    }
    outcome.figures.push_back({"mean cross entropy before the last step", loss, ""});

    // A large network is too slow for float64 on the host: one step of it.
    steps = context.full ? 1 : steps;
    Recorder unused(false);
    baseline(unused);
    optimized(unused);
    const Training training{network, samples, start, steps, rate};
    const std::vector<double> expected = train_in_float64(training);
    const std::string after = fmt::format("after {} step{} against float64", steps, steps == 1 ? "" : "s");
    outcome.checks.push_back(check_parameters("baseline " + after, training, parameters_of(alone), expected));
    outcome.checks.push_back(
        check_parameters("optimized " + after, training, parameters_of(workers.front()), expected));
    return outcome;
}

}  // namespace tessera::scenarios
