/// Scenario 6: the first launch of a tile program that is compiled at run time, with an empty cache and with a warm one, and of the same
/// program compiled ahead of time.

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "scenarios/layer_program.hpp"
#include "scenarios/operands.hpp"
#include "tessera/error.hpp"
#include "tessera/tile/program.hpp"

namespace tessera::scenarios {
namespace {

/// A folder for compiled programs, removed with its contents.
class ScratchFolder {
public:
    explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path))
    {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directory(path_);
    }
    ~ScratchFolder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// Returns the program's kernel for the current device.
/// @throws Skip where there is no compiler
tile::Kernel compiled(const tile::Program& program)
{
    try {
        return program.kernel(layer_type);
    } catch (const Error& error) {
        if (std::string_view(error.what()).find("which compiles programs at run time, was not found") !=
            std::string_view::npos) {
            throw Skip("it needs NVRTC, which the CUDA Toolkit and the Python package nvidia-cuda-nvrtc have");
        }
        throw;
    }
}

}  // namespace

Outcome run_compilation(const Context& given)
{
    Context context = given;
    context.repetitions = std::min<std::size_t>(given.repetitions, 3);  // each compiles for seconds
    context.warm_up = false;                                            // the first time is what this is about
    const std::int64_t m = context.full ? 2048 : 130, n = context.full ? 2048 : 72, k = context.full ? 2048 : 64;
    Outcome outcome;
    outcome.work = fmt::format("{}x{}x{} in f16 with a bias, {}", m, n, k, layer_type);

    const Stream stream(context.device);
    const auto host_x = normal_values<f16>(context, m * k, 1);
    const auto host_w = normal_values<f16>(context, k * n, 2, 1 / std::sqrt(static_cast<float>(k)));
    const auto host_bias = normal_values<float>(context, n, 3);
    const auto x = DeviceBuffer<f16>::from_host(stream, host_x);
    const auto w = DeviceBuffer<f16>::from_host(stream, host_w);
    const auto bias = DeviceBuffer<float>::from_host(stream, host_bias);
    const auto elements = static_cast<std::size_t>(m * n);
    DeviceBuffer<float> d_cold(stream, elements), d_warm(stream, elements), d_ahead(stream, elements);
    for (DeviceBuffer<float>* d : {&d_cold, &d_warm, &d_ahead}) {
        d->fill(stream, poison<float>());
    }
    stream.synchronize();

    // Each cold run has a cache of its own, which the warm run after it reads.
    const ScratchFolder caches(context.scratch / fmt::format("tessera-scenarios-{}", ::getpid()));
    std::size_t run = 0;
    std::size_t from_cache = 0;
    const auto entry = [&](DeviceBuffer<float>& d, const char* phase, bool is_cold) {
        return [&, phase, is_cold](Recorder& recorder) {
            const std::filesystem::path cache = caches.path() / std::to_string(run);
            std::filesystem::create_directory(cache);
            const auto program =
                tile::Program::from_file((context.programs / "layer.cuh").string(), {.cache_folder = cache.string()});
            std::optional<tile::Kernel> kernel;
            recorder.on_host(phase, [&] { kernel = compiled(program); });
            recorder.on_stream("launch", stream, [&] {
                kernel->launch(stream, x.matrix(m, k), w.matrix(k, n), bias.matrix(1, n), d.matrix(m, n));
            });
            stream.synchronize();
            from_cache += kernel->code().from_cache ? 1 : 0;
            run += is_cold ? 0 : 1;
        };
    };
    measure(context, outcome, entry(d_cold, "compile", true), entry(d_warm, "read the cache", false));
    if (from_cache != context.repetitions) {
        throw std::runtime_error(
            fmt::format("the cache was read {} times, and should have been {} times", from_cache, context.repetitions));
    }

    const auto start = std::chrono::steady_clock::now();
    launch_layer(stream, x.matrix(m, k), w.matrix(k, n), bias.matrix(1, n), d_ahead.matrix(m, n));
    stream.synchronize();
    const std::chrono::duration<double> ahead = std::chrono::steady_clock::now() - start;
    outcome.figures = {{"first launch, compiled with an empty cache", median_of(outcome.baseline) * 1e3, "ms"},
                       {"first launch, from the cache on disk", median_of(outcome.optimized) * 1e3, "ms"},
                       {"first launch, compiled ahead of time", ahead.count() * 1e3, "ms"}};

    const auto expected = d_cold.to_vector();
    outcome.checks.push_back(equal_bits("both entries", bytes_of(expected), bytes_of(d_warm.to_vector())));
    outcome.checks.push_back(
        equal_bits("compiled ahead of time against at run time", bytes_of(d_ahead.to_vector()), bytes_of(expected)));
    outcome.checks.push_back(check_product<f16, float>(
        context, "optimized against float64",
        product_of(m, n, k, ElementType::f16, ElementType::f32, bench::Fusion::bias_relu), host_x, host_w,
        d_warm.to_vector(), bench::Accumulation::tensor_core,
        [&](std::int64_t, std::int64_t column) { return double{host_bias[static_cast<std::size_t>(column)]}; }));
    return outcome;
}

}  // namespace tessera::scenarios
