/// Scenario 2: one product by the library's kernel for Hopper or Blackwell, in clusters whose CTAs share operands by multicast, and
/// without. The public API chooses clusters by itself, so this asks the library's own layer for one choice of each kind.

#include <algorithm>

#include "kernels/blackwell/blackwell_kernels.hpp"
#include "scenarios/operands.hpp"
#include "sdk/src/gemm/backend.hpp"
#include "sdk/src/gemm/gemm_operands.hpp"
#include "tessera/gemm.hpp"

namespace tessera::scenarios {
namespace {

struct Choices {
    detail::KernelChoice alone;
    detail::KernelChoice in_clusters;
};

/// CTAs of a cluster.
std::uint32_t cluster_of(const GemmProblem& problem, const detail::KernelChoice& choice)
{
    if (choice.variant == Variant::blackwell) {
        return kernels::blackwell_kernels(size_of(problem.input))[choice.config].config->cluster;
    }
    return std::uint32_t{choice.cluster_m} * choice.cluster_n * choice.cluster_k;
}

/// Returns the choices to compare: the library's own, and one of the same tile and raster with the other kind of cluster. Where a
/// configuration has clusters of one size alone, as on Blackwell, another configuration stands for the other kind: the last one, which has
/// the largest tile. None needs a workspace.
Choices choices_of(const detail::Backend& backend, Variant variant, const detail::GemmRequest& request)
{
    const auto is_alone = [&](const detail::KernelChoice& choice) { return cluster_of(request.problem, choice) == 1; };
    const detail::KernelChoice own = backend.choose(variant, request, 0);
    std::vector<detail::KernelChoice> others;
    backend.add_candidates(variant, request, others);
    std::erase_if(others, [&](const detail::KernelChoice& choice) {
        return choice.stream_k || choice.swapped != own.swapped || choice.cluster_k != 1 ||
               is_alone(choice) == is_alone(own);
    });
    if (others.empty()) {
        throw Skip(fmt::format("it needs kernels with clusters and without for one product, and {} has one kind",
                               to_string(variant)));
    }
    const auto same = std::find_if(others.begin(), others.end(), [&](const detail::KernelChoice& choice) {
        return choice.config == own.config && choice.band == own.band;
    });
    const detail::KernelChoice other = same != others.end() ? *same : others.back();
    return is_alone(own) ? Choices{own, other} : Choices{other, own};
}

/// A product, and its results by both choices.
class Product {
public:
    Product(const Context& context, const Stream& stream, Variant variant, const bench::Shape& shape)
        : context_(context), stream_(stream), backend_(detail::backend_of(variant)), shape_(shape)
    {
        const auto [m, n, k] = shape;
        host_a_ = normal_values<bf16>(context, m * k, 1);
        host_b_ = normal_values<bf16>(context, k * n, 2, 1 / std::sqrt(static_cast<float>(k)));
        a_ = DeviceBuffer<bf16>::from_host(stream, host_a_);
        b_ = DeviceBuffer<bf16>::from_host(stream, host_b_);
        for (DeviceBuffer<bf16>* d : {&d_alone_, &d_in_clusters_}) {
            *d = DeviceBuffer<bf16>(stream, static_cast<std::size_t>(m * n));
            d->fill(stream, poison<bf16>());
        }
        problem_ = detail::problem_of(operands(d_alone_), {});
        choices_ = choices_of(backend_, variant, {problem_, context.device.properties()});
    }

    void multiply_alone() { enqueue(choices_.alone, d_alone_); }
    void multiply_in_clusters() { enqueue(choices_.in_clusters, d_in_clusters_); }

    void check(Outcome& outcome) const
    {
        const auto [m, n, k] = shape_;
        const auto alone = d_alone_.to_vector(), in_clusters = d_in_clusters_.to_vector();
        const std::string name = bench::to_string(shape_);
        outcome.checks.push_back(equal_bits(name + ": both entries", bytes_of(alone), bytes_of(in_clusters)));
        outcome.checks.push_back(check_product<bf16, bf16>(
            context_, name + ": optimized against float64", product_of(m, n, k, ElementType::bf16, ElementType::bf16),
            host_a_, host_b_, in_clusters, bench::Accumulation::tensor_core));
        outcome.notes.push_back(fmt::format(
            "{}: {}; {}, in clusters of {} CTAs", name, backend_.describe_config(problem_, choices_.alone),
            backend_.describe_config(problem_, choices_.in_clusters), cluster_of(problem_, choices_.in_clusters)));
    }

private:
    detail::GemmOperands operands(DeviceBuffer<bf16>& d) const
    {
        return {a_.matrix(shape_.m, shape_.k), b_.matrix(shape_.k, shape_.n), d.matrix(shape_.m, shape_.n)};
    }
    void enqueue(const detail::KernelChoice& choice, DeviceBuffer<bf16>& d)
    {
        detail::enqueue_gemm(stream_, operands(d), {}, problem_, context_.device.properties(), choice,
                             "tessera-scenarios", std::source_location::current());
    }

    const Context& context_;
    const Stream& stream_;
    const detail::Backend& backend_;
    bench::Shape shape_;
    std::vector<bf16> host_a_;
    std::vector<bf16> host_b_;
    DeviceBuffer<bf16> a_;
    DeviceBuffer<bf16> b_;
    DeviceBuffer<bf16> d_alone_;
    DeviceBuffer<bf16> d_in_clusters_;
    GemmProblem problem_;
    Choices choices_{};
};

}  // namespace

Outcome run_clusters(const Context& context)
{
    const DeviceProperties& device = context.device.properties();
    // First a few rows, where two CTAs want the same part of B; then products where it depends.
    const std::vector<bench::Shape> shapes =
        context.full ? std::vector<bench::Shape>{{128, 8192, 8192}, {4096, 4096, 512}, {8192, 8192, 8192}}
                     : std::vector<bench::Shape>{{128, 256, 128}, {512, 256, 64}};
    const GemmProblem problem{
        .m = shapes[0].m, .n = shapes[0].n, .k = shapes[0].k, .input = ElementType::bf16, .output = ElementType::bf16};
    Variant variant = Variant::automatic;
    for (const Variant candidate : {Variant::blackwell, Variant::hopper}) {
        if (GemmPlan::refusal(problem, device, candidate).empty()) {
            variant = candidate;
            break;
        }
    }
    if (variant == Variant::automatic) {
        throw Skip(fmt::format("it needs compute capability 9.0 or 10.x, and {} has {}.{}", device.name,
                               device.compute_capability_major, device.compute_capability_minor));
    }
    const int products = context.full ? 20 : 1;  // of a run
    Outcome outcome;
    outcome.work =
        fmt::format("{} product{} {} in bf16", products, products == 1 ? "" : "s", bench::to_string(shapes[0]));

    const Stream stream(context.device);
    for (const bench::Shape& shape : shapes) {
        Product product(context, stream, variant, shape);
        stream.synchronize();
        const auto entry = [&](const auto& multiply) {
            return [&, multiply](Recorder& recorder) {
                recorder.on_stream("products", stream, [&] {
                    for (int i = 0; i < products; ++i) {
                        multiply();
                    }
                });
                stream.synchronize();
            };
        };
        Outcome one;
        measure(context, one, entry([&] { product.multiply_alone(); }), entry([&] { product.multiply_in_clusters(); }));
        product.check(outcome);
        const double alone = one.baseline.phases[0].device_seconds / products,
                     in_clusters = one.optimized.phases[0].device_seconds / products;
        const std::string name = bench::to_string(shape);
        outcome.figures.push_back({name + ", every CTA alone", alone * 1e6, "us"});
        outcome.figures.push_back({name + ", in clusters", in_clusters * 1e6, "us"});
        if (shape == shapes[0]) {
            outcome.baseline = one.baseline;
            outcome.optimized = one.optimized;
        }
    }
    return outcome;
}

}  // namespace tessera::scenarios
